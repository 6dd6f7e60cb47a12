// triton_metal._mlx_<version>: kernels on MLX's arrays, in place. Knows one minor version of MLX,
// and Python's arrays of it.
#include "python/bindings/PackedLaunch.h"
#include "python/bindings/WithoutLock.h"
#include "python/bindings/mlx/Graph.h"
#include "runtime/mlx/InPlace.h"

#include "mlx/device.h"
#include "mlx/ops.h"
#include "mlx/stream.h"
#include "mlx/transforms.h"
#include "mlx/version.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <cstring>

namespace nb = nanobind;

namespace triton_metal::mlx_route {

namespace {

/// Whether launches on arrays that are all there run at once, without a graph.
bool atOnce = true;

/// How many arrays are one node: MLX tells only whether that and the buffer's count are both 1.
long holdersOf(const mx::array &array);
template <auto Descriptor> struct Holders {
  friend long holdersOf(const mx::array &array) { return (array.*Descriptor).use_count(); }
};
template struct Holders<&mx::array::array_desc_>;

/// Keeps the memory of a buffer under another count.
struct Keeper {
  std::shared_ptr<mx::array::Data> memory;
  void operator()(mx::allocator::Buffer) const {}
};

/// The same array with its buffer's holders counted anew. MLX holds what an evaluation gave until
/// the stream has passed it, so that a launch right after another would find the buffer held, by
/// something that neither reads nor writes it, and copy.
mx::array countedAnew(const mx::array &array) {
  std::shared_ptr<mx::array::Data> memory = array.data_shared_ptr();
  if (const Keeper *keeper = memory->d.target<Keeper>())
    memory = keeper->memory;
  mx::array fresh(array.shape(), array.dtype(), nullptr, {});
  fresh.set_data(memory->buffer, array.data_size(), array.strides(), array.flags(), array.offset(),
                 Keeper{memory});
  fresh.set_status(array.status());
  fresh.attach_event(array.event());
  return fresh;
}

/// The arrays of a launch, each once, as Python holds them.
struct Arrays {
  std::vector<PyObject *> objects;
  std::vector<mx::array *> arrays;

  size_t size() const { return arrays.size(); }
  uint32_t indexOf(PyObject *object) {
    for (size_t i = 0; i < objects.size(); ++i)
      if (objects[i] == object)
        return static_cast<uint32_t>(i);
    objects.push_back(object);
    arrays.push_back(nb::inst_ptr<mx::array>(object));
    return static_cast<uint32_t>(arrays.size() - 1);
  }
};

Launch readLaunch(nb::handle compiled, nb::tuple grid, nb::list arguments, nb::bytes words,
                  Arrays &arrays) {
  static PyObject *native = PyUnicode_InternFromString("native");
  static PyObject *tableName = PyUnicode_InternFromString("table");
  nb::object kernel = nb::steal(PyObject_GetAttr(compiled.ptr(), native));
  nb::object capsule =
      kernel.is_valid() ? nb::steal(PyObject_GetAttr(kernel.ptr(), tableName)) : nb::object();
  if (!capsule.is_valid())
    throw nb::python_error();
  auto *table = static_cast<const runtime::KernelTable *>(
      PyCapsule_GetPointer(capsule.ptr(), runtime::kernelTableCapsule));
  if (!table)
    throw nb::python_error();
  if (table->interface != runtime::kernelTableInterface)
    raiseAs("DeviceError",
            "triton_metal's MLX module is of another build than triton_metal._native: "
            "install triton-metal anew");
  PackedLaunch packed(table->name, table->numArguments, table->scalarWords, std::move(grid),
                      arguments, std::move(words));
  Launch launch{KernelReference(table), {}, {}, {}, {}, {}};
  std::copy(packed.grid.begin(), packed.grid.end(), std::begin(launch.grid));
  launch.scalars = std::move(packed.scalars);
  static PyTypeObject *arrayType = reinterpret_cast<PyTypeObject *>(nb::type<mx::array>().ptr());
  for (size_t i = 0; i < table->numArguments; ++i) {
    const runtime::KernelTableArgument &argument = table->arguments[i];
    if (!argument.isBuffer)
      continue;
    PyObject *object = PyList_GET_ITEM(arguments.ptr(), static_cast<Py_ssize_t>(i));
    if (!PyObject_TypeCheck(object, arrayType))
      raiseAs("LaunchTypeError", std::string(table->name) + ": argument " + argument.name +
                                     " must be an mlx.core.array");
    uint32_t index = arrays.indexOf(object);
    launch.outputs.resize(arrays.size(), -1);
    launch.aligned.resize(arrays.size(), false);
    launch.bindings.push_back({argument.slot, index});
    if (argument.writes)
      launch.outputs[index] = 0;
    if (argument.aligned)
      launch.aligned[index] = true;
  }
  int count = 0;
  for (int &output : launch.outputs)
    if (output == 0)
      output = count++;
  return launch;
}

/// Runs on the host device now; every array is available. With `compiled`, as this thread's launch
/// options say.
void runNow(const Launch &launch, Arrays &arrays, PyObject *compiled) {
  // Counts first: the copies of arrays below keep them alive while Python's lock is released.
  std::vector<std::pair<mx::array *, mx::array>> rebound;
  std::vector<mx::array> memory;
  memory.reserve(arrays.size());
  for (size_t i = 0; i < arrays.size(); ++i) {
    mx::array &array = *arrays.arrays[i];
    // MLX's memory for CPUs begins beside a multiple of 16, and that of GPUs at one: what is
    // counted is what a GPU would do.
    bool aligned = launch.aligned[i] || (compiled && array.offset() % 16 == 0);
    bool isWritten = launch.outputs[i] >= 0;
    // An array that a transform left in its graph would be computed anew from there.
    bool inPlace = isUsable(array, aligned) &&
                   (!isWritten || (array.is_donatable() && !array.has_primitive()));
    // What another thread did to the buffer before it let go of it is seen from here on.
    std::atomic_thread_fence(std::memory_order_acquire);
    if (inPlace) {
      memory.push_back(array);
      continue;
    }
    mx::array fresh(array.shape(), array.dtype(), nullptr, {});
    try {
      allocate(fresh, aligned);
    } catch (const std::exception &error) {
      raiseAs("DeviceError", std::string(launch.kernel->name) + ": " + error.what());
    }
    fresh.set_status(mx::array::Status::available);
    StridedCopy(array, fresh).run();
    memory.push_back(fresh);
    if (isWritten)
      rebound.emplace_back(&array, fresh);
  }
  std::vector<BufferBinding> buffers(launch.kernel->numBuffers);
  for (Launch::Binding binding : launch.bindings)
    buffers[binding.slot] = bindingOf(memory[binding.array], launch.outputs[binding.array] >= 0);
  std::vector<uint32_t> scalars = launch.scalars;
  runtime::KernelLaunch call{{launch.grid[0], launch.grid[1], launch.grid[2]},
                             buffers.data(),
                             buffers.size(),
                             scalars.data(),
                             scalars.size()};
  if (compiled) {
    if (!launch.kernel->launchWithOptions(launch.kernel.get(), compiled, &call))
      throw nb::python_error();
  } else {
    char *text;
    {
      WithoutLock unlocked;
      text = launch.kernel->launch(launch.kernel.get(), &call);
    }
    if (text) {
      bool isInterrupted = std::string_view(text).starts_with(launchInterrupted);
      std::string message = std::string(launch.kernel->name) + ": " + text;
      launch.kernel->freeText(text);
      if (isInterrupted) {
        if (!PyErr_CheckSignals())
          PyErr_SetNone(PyExc_KeyboardInterrupt);
        throw nb::python_error();
      }
      raiseAs("DeviceError", message);
    }
  }
  for (auto &[array, fresh] : rebound)
    array->overwrite_descriptor(fresh);
}

/// Makes the launch an operation of MLX's graph and gives its outputs.
std::vector<mx::array> record(Launch launch, Arrays &arrays, mx::Stream stream) {
  std::vector<mx::array> inputs;
  std::vector<mx::Shape> shapes;
  std::vector<mx::Dtype> dtypes;
  for (size_t i = 0; i < arrays.size(); ++i) {
    inputs.push_back(*arrays.arrays[i]);
    if (launch.outputs[i] < 0)
      continue;
    shapes.push_back(arrays.arrays[i]->shape());
    dtypes.push_back(arrays.arrays[i]->dtype());
  }
  auto primitive = std::make_shared<InPlace>(stream, std::move(launch));
  return mx::array::make_arrays(std::move(shapes), dtypes, primitive, inputs);
}

/// Records the launch, binds the written arrays to its outputs and has them computed.
void runLater(Launch launch, Arrays &arrays, mx::Stream stream) {
  std::vector<mx::array *> written;
  for (size_t i = 0; i < arrays.size(); ++i)
    if (launch.outputs[i] >= 0)
      written.push_back(arrays.arrays[i]);
  std::string label = launch.kernel->name;
  std::vector<int> places = launch.outputs;
  std::vector<mx::array> outputs = record(std::move(launch), arrays, stream);
  // Until the outputs are on their way the arrays are bound to a node behind them: what another
  // thread does with an array meanwhile shows in that node.
  std::vector<mx::array> behind;
  for (size_t i = 0; i < written.size(); ++i) {
    behind.push_back(mx::stop_gradient(outputs[i], stream));
    written[i]->overwrite_descriptor(behind[i]);
  }
  std::optional<std::string> problem;
  {
    WithoutLock unlocked;
    try {
      mx::async_eval(outputs);
    } catch (const std::exception &error) {
      problem = error.what();
    }
  }
  if (problem) {
    // Nothing has run, and the outputs still know what they were to be made of.
    for (const mx::array &output : outputs)
      for (size_t i = 0, next = 0; i < output.inputs().size(); ++i)
        if (places[i] >= 0 && written[next]->id() == behind[next].id())
          written[next++]->overwrite_descriptor(output.inputs()[i]);
    raiseAs("DeviceError", label + ": " + *problem);
  }
  for (size_t i = 0; i < written.size(); ++i)
    if (outputs[i].size() > 0 && written[i]->id() == behind[i].id() &&
        behind[i].status() == mx::array::Status::unscheduled && holdersOf(behind[i]) == 2)
      written[i]->overwrite_descriptor(countedAnew(outputs[i]));
}

/// Asked of a launch with options in a function that MLX traces: whether it may run without them.
/// It lives as long as the process.
nb::object *leaveOut = nullptr;

void launchOn(nb::handle compiled, nb::tuple grid, nb::list arguments, nb::bytes words) {
  RunsPython runsPython;
  Arrays arrays;
  Launch launch = readLaunch(compiled, grid, arguments, words, arrays);
  if (std::optional<std::string> error = takeError())
    raiseAs("DeviceError", "an earlier launch failed, and this one was not started: " + *error);
  bool isTraced = false, isAvailable = true;
  std::vector<mx::array> unscheduled;
  for (mx::array *array : arrays.arrays) {
    isTraced |= array->is_tracer();
    isAvailable &= array->is_available();
    if (array->status() == mx::array::Status::unscheduled)
      unscheduled.push_back(*array);
  }
  bool hasOutputs = false;
  for (int output : launch.outputs)
    hasOutputs |= output >= 0;

  mx::Stream stream = mx::default_stream(mx::default_device());
  bool isHost = stream.device == mx::Device::cpu;
  bool hasOptions = launch.kernel->hasOptions();
  if (hasOptions && isTraced && leaveOut && nb::cast<bool>((*leaveOut)(compiled)))
    hasOptions = false;
  if (hasOptions || (!hasOutputs && !isTraced && isHost)) {
    if (isTraced)
      raiseAs("DeviceError",
              std::string(launch.kernel->name) +
                  ": launch_options() needs the arrays' values, and there are none while "
                  "mx.compile, mx.grad or mx.vmap traces a function: launch outside of it");
    if (!isAvailable) {
      WithoutLock unlocked;
      mx::eval(std::move(unscheduled));
      for (mx::array *array : arrays.arrays)
        array->wait();
    }
    runNow(launch, arrays, hasOptions ? compiled.ptr() : nullptr);
    return;
  }
  if (!hasOutputs)
    return; // nothing would show it
  if (isTraced) {
    std::vector<mx::array> outputs = record(launch, arrays, stream);
    for (size_t i = 0; i < arrays.size(); ++i)
      if (launch.outputs[i] >= 0)
        arrays.arrays[i]->overwrite_descriptor(outputs[static_cast<size_t>(launch.outputs[i])]);
    return;
  }
  if (isHost && isAvailable && atOnce) {
    runNow(launch, arrays, nullptr);
    return;
  }
  // What can fail comes before anything is bound anew: the arrays' own graphs, and compiling.
  {
    KernelReference kernel = launch.kernel;
    char *text = nullptr;
    {
      WithoutLock unlocked;
      if (!unscheduled.empty())
        mx::async_eval(std::move(unscheduled));
      if (isHost)
        text = kernel->prepare(kernel.get());
      else
        prepareGpu(*kernel.get(), stream.device);
    }
    if (text) {
      std::string message = std::string(kernel->name) + ": " + text;
      kernel->freeText(text);
      raiseAs("DeviceError", message);
    }
  }
  runLater(std::move(launch), arrays, stream);
}

} // namespace

} // namespace triton_metal::mlx_route

using namespace triton_metal::mlx_route;

NB_MODULE(TRITON_METAL_MLX_MODULE, module) {
  module.doc() = "Kernels on MLX's arrays, in place.";
  // False where MLX's own module was built with another nanobind: arrays cannot be told then.
  module.attr("knows_arrays") = nb::bool_(nb::type<mx::array>().is_valid());
  module.attr("mlx_version") =
      std::to_string(MLX_VERSION_MAJOR) + "." + std::to_string(MLX_VERSION_MINOR);
  module.def("launch", &launchOn);
  module.def(
      "is_traced", [](const mx::array &array) { return array.is_tracer(); },
      "Whether mx.compile, mx.grad or mx.vmap traces a function with this array.");
  module.def(
      "set_leave_out", [](nb::object function) { leaveOut = new nb::object(std::move(function)); },
      "Sets what is asked of a launch with options in a function that MLX traces.");
  module.def("take_error", &takeError,
             "What went wrong in a launch that ran after its call, once.");
  module.def(
      "run_at_once", [](bool run) { return std::exchange(atOnce, run); },
      "Whether launches on arrays that are all there run at once on the host device, without "
      "MLX's graph; returns what was.");
  bindGraph(module);
}

// The last part of a launch: its grid, its scalars, and the device that runs it.
#include "Launcher.h"
#include "Profile.h"

namespace triton_metal {

std::array<uint32_t, 3> Launcher::readGrid(nb::handle grid, const std::vector<Bound> &bound) {
  nb::object computed;
  if (PyCallable_Check(grid.ptr())) {
    nb::dict meta;
    for (size_t i = 0; i < params.size(); ++i)
      meta[params[i].pythonName] = nb::handle(bound[i].object);
    computed = grid(meta);
    grid = computed;
  }
  return triton_metal::readGrid(name, grid);
}

void Launcher::packScalars(const Plan &plan, const std::vector<Bound> &bound,
                           llvm::MutableArrayRef<uint32_t> scalars) const {
  for (const Plan::Step &step : plan.steps) {
    if (step.isBuffer)
      continue;
    const Bound &argument = bound[step.param];
    llvm::MutableArrayRef<uint32_t> words = scalars.slice(step.slot, step.words);
    if (argument.kind == ArgumentKind::Float)
      runtime::packFloat(words, step.kind, argument.real);
    else
      runtime::packInteger(words, argument.integer.bits);
  }
}

/// The device of a launch's arrays, or null without arrays. Throws for arrays of two devices.
const DeviceId *Launcher::deviceOfArrays(const std::vector<Bound> &bound, bool doRun) const {
  const Bound *first = nullptr;
  auto describe = [&](const Bound &argument) {
    return params[static_cast<size_t>(&argument - bound.data())].name + " is " +
           (argument.kind == ArgumentKind::Mock ? "a dtype"
            : argument.array->device == DeviceId::Host
                ? std::string("a ") + Py_TYPE(argument.object)->tp_name
                : deviceEntry(argument.array->device).array);
  };
  for (const Bound &argument : bound) {
    if (!argument.array)
      continue;
    if (argument.kind == ArgumentKind::Mock) {
      if (doRun)
        raiseAs("LaunchTypeError", name + ": argument " + describe(argument) +
                                       ": only warmup takes dtypes in place of arrays");
      continue;
    }
    if (!first)
      first = &argument;
    else if (doRun && argument.array->device != first->array->device)
      raiseAs("LaunchTypeError",
              name + ": argument " + describe(*first) + ", but argument " + describe(argument) +
                  ": the arrays of one launch must be of one framework and on one "
                  "device; a tensor moves with .to()");
  }
  return first ? &first->array->device : nullptr;
}

/// Throws for arrays that are too large for the device, before a framework sees them.
void Launcher::checkSizes(const std::vector<Bound> &bound, const DeviceEntry &device) const {
  if (device.largestArray == UINT64_MAX)
    return;
  for (unsigned i = 0; i < bound.size(); ++i) {
    if (!bound[i].array || bound[i].isConstant)
      continue;
    nb::object bytes = nb::steal(PyObject_GetAttrString(bound[i].object, "nbytes"));
    if (!bytes.is_valid()) {
      PyErr_Clear();
      continue;
    }
    uint64_t size = nb::cast<uint64_t>(bytes);
    if (size > device.largestArray)
      valueProblem(i, "has " + std::to_string(size) + " bytes, but the device " + device.name +
                          " takes " + std::to_string(device.largestArray) + " in one array");
  }
}

/// Packs the launch and calls the device's route.
void Launcher::runOn(DeviceId device, DeviceId own, Plan &plan, std::array<uint32_t, 3> grid,
                     std::vector<Bound> &bound) {
  llvm::SmallVector<uint32_t, 32> scalars(plan.kernel->getMetadata().scalarWords);
  packScalars(plan, bound, scalars);
  nb::object arguments = nb::steal(PyList_New(static_cast<Py_ssize_t>(plan.steps.size())));
  for (size_t i = 0; i < plan.steps.size(); ++i)
    PyList_SET_ITEM(arguments.ptr(), static_cast<Py_ssize_t>(i),
                    Py_NewRef(bound[plan.steps[i].param].object));
  nb::object sizes = nb::make_tuple(grid[0], grid[1], grid[2]);
  nb::bytes words(scalars.data(), scalars.size() * sizeof(uint32_t));
  bool hasMessages = plan.kernel->getMetadata().hasMessages;
  if (device != own) {
    if (hasMessages)
      launchWithMessages(nb::cpp_function([=](nb::handle compiled, nb::handle grid,
                                              nb::handle given, nb::handle packed) {
                           return runElsewhere(device, own, compiled, grid, given, packed);
                         }),
                         plan.compiled, sizes, arguments, words);
    else
      runElsewhere(device, own, plan.compiled, sizes, arguments, words);
    return;
  }
  nb::object route = nb::borrow(deviceEntry(own).route);
  if (!route.is_valid())
    raiseAs("DeviceError", name + ": nothing takes launches on " + deviceEntry(own).array);
  if (hasMessages) {
    launchWithMessages(route, plan.compiled, sizes, arguments, words);
    return;
  }
  PyObject *call[] = {plan.compiled.ptr(), sizes.ptr(), arguments.ptr(), words.ptr()};
  nb::object result = nb::steal(PyObject_Vectorcall(route.ptr(), call, 4, nullptr));
  if (!result.is_valid())
    throw nb::python_error();
}

void Launcher::run(Plan &plan, std::array<uint32_t, 3> grid, std::vector<Bound> &bound) {
  const runtime::Metadata &metadata = plan.kernel->getMetadata();
  llvm::SmallVector<BufferBinding, 16> buffers(metadata.numBuffers);
  llvm::SmallVector<uint32_t, 32> scalars(metadata.scalarWords);
  for (const Plan::Step &step : plan.steps) {
    Bound &argument = bound[step.param];
    if (step.isBuffer) {
      const ArrayInfo &array = *argument.array;
      if (step.writes && !array.writable)
        valueProblem(step.param, "is a read-only array, but the kernel writes it");
      buffers[step.slot] = bindingOf(array);
      continue;
    }
  }
  packScalars(plan, bound, scalars);
  if (metadata.hasMessages)
    launchWithMessages(name, plan.compiled, plan.kernel, grid, buffers, scalars);
  else
    launchAsSet(name, plan.compiled, plan.kernel, grid, buffers, scalars);
}

void Launcher::recordRun(const Plan &plan, std::array<uint32_t, 3> grid,
                         const std::vector<Bound> &bound, DeviceId device, int64_t begin,
                         bool isFirst) const {
  LaunchRecord record;
  record.end = profileClock();
  record.begin = begin;
  record.compiled = plan.compiled;
  record.device = device;
  record.grid = grid;
  record.isFirst = isFirst;
  for (const Plan::Step &step : plan.steps) {
    if (!step.isBuffer)
      continue;
    const Bound &argument = bound[step.param];
    uint64_t bytes = argument.array->bytes;
    // Only the host's arrays are measured here; the others know their sizes.
    if (argument.array->device != DeviceId::Host) {
      nb::object size = nb::steal(PyObject_GetAttrString(argument.object, "nbytes"));
      if (!size.is_valid() || !nb::try_cast(size, bytes))
        PyErr_Clear();
    }
    record.bytesRead += step.reads ? bytes : 0;
    record.bytesWritten += step.writes ? bytes : 0;
  }
  recordLaunch(std::move(record));
}

} // namespace triton_metal

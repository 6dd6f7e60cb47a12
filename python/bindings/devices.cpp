// The host device without the launcher: a kernel's text and contract in, launches on arrays out.
#include "Arrays.h"
#include "Bindings.h"
#include "Launching.h"

#include "runtime/Kernel.h"

#include <nanobind/stl/tuple.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

namespace triton_metal {

namespace {

/// A kernel that the host device has compiled or will at its first launch.
struct LaunchableText {
  std::shared_ptr<runtime::Kernel> kernel;

  /// `arguments` has one object for every argument of the kernel; those of scalars are not read,
  /// their words are in `words`.
  void launch(std::array<uint32_t, 3> grid, nb::list arguments, nb::bytes words) {
    const runtime::Metadata &metadata = kernel->getMetadata();
    if (arguments.size() != metadata.arguments.size() ||
        words.size() != metadata.scalarWords * sizeof(uint32_t))
      raiseAs("LaunchTypeError",
              metadata.name + " takes " + std::to_string(metadata.arguments.size()) + " arguments");
    checkGrid(metadata, grid);
    std::vector<uint32_t> scalars(metadata.scalarWords);
    std::memcpy(scalars.data(), words.c_str(), words.size());
    std::vector<BufferBinding> buffers(metadata.numBuffers);
    // The views of exporters are held until the kernel has run.
    std::vector<std::unique_ptr<ArrayInfo>> arrays;
    for (size_t i = 0; i < metadata.arguments.size(); ++i) {
      const runtime::Argument &argument = metadata.arguments[i];
      if (!argument.isBuffer)
        continue;
      PyObject *object = PyList_GET_ITEM(arguments.ptr(), static_cast<Py_ssize_t>(i));
      std::string place = metadata.name + ": argument " + argument.name + " ";
      ArgumentKind kind = classify(object);
      if (kind != ArgumentKind::Array && kind != ArgumentKind::Tensor)
        raiseAs("LaunchTypeError",
                place + "must be an array that the host device can read, not " + shown(object));
      auto array = std::make_unique<ArrayInfo>();
      ArrayProblem problem;
      if (!readArray(object, kind, *array, problem))
        raiseAs(problem.isType ? "LaunchTypeError" : "LaunchValueError", place + problem.message);
      if ((argument.writes || argument.atomic) && !array->writable)
        raiseAs("LaunchValueError", place + "is a read-only array, but the kernel writes it");
      auto before =
          static_cast<uint64_t>(static_cast<char *>(array->data) - static_cast<char *>(array->low));
      buffers[argument.slot] = {array->data, array->bytes - std::min(before, array->bytes),
                                array->writable};
      arrays.push_back(std::move(array));
    }
    llvm::Error error = llvm::Error::success();
    {
      nb::gil_scoped_release release;
      error = kernel->launch(grid, buffers, scalars, {}, nullptr);
    }
    if (error)
      raiseLaunchError(metadata.name, nb::none(), llvm::toString(std::move(error)));
  }
};

thread_local bool threadAsks = false;
std::atomic<uint32_t> configuration = 0;
std::atomic<uint64_t> largestOfMlx = UINT64_MAX, largestOfMps = UINT64_MAX;

} // namespace

bool asksForDevice() {
  if (threadAsks)
    return true;
  const char *named = std::getenv("TRITON_METAL_DEVICE");
  return named && *named;
}

uint32_t configurationNumber() { return configuration.load(std::memory_order_relaxed); }

uint64_t largestArray(const char *device) {
  if (std::strcmp(device, "mlx") == 0)
    return largestOfMlx.load(std::memory_order_relaxed);
  if (std::strcmp(device, "mps") == 0)
    return largestOfMps.load(std::memory_order_relaxed);
  return UINT64_MAX;
}

void bindDevices(nb::module_ &module) {
  module.def(
      "ask_for_device", [](bool asks) { threadAsks = asks; },
      "Says whether this thread asks for a device by name.");
  module.def(
      "set_largest_array",
      [](const std::string &device, std::optional<uint64_t> bytes) {
        (device == "mlx" ? largestOfMlx : largestOfMps) = bytes.value_or(UINT64_MAX);
      },
      nb::arg("device"), nb::arg("bytes").none(),
      "Says how many bytes one array of a device may have; None where that is not known.");
  module.def(
      "configuration_changed", [] { ++configuration; },
      "Has kernels compiled anew where something changed that they are compiled with.");
  nb::class_<LaunchableText>(module, "HostLibrary",
                             "A kernel's text, compiled for the host device.")
      .def("__init__",
           [](LaunchableText *self, const std::string &metal, const std::string &metadata) {
             llvm::Expected<std::shared_ptr<runtime::Kernel>> kernel =
                 runtime::Kernel::create(metal, metadata);
             if (!kernel)
               raiseAs("DeviceError", llvm::toString(kernel.takeError()));
             new (self) LaunchableText{std::move(*kernel)};
           })
      .def("prepare",
           [](LaunchableText &self) {
             llvm::Error error = llvm::Error::success();
             {
               nb::gil_scoped_release release;
               error = self.kernel->prepare({});
             }
             if (error)
               raiseAs("DeviceError", llvm::toString(std::move(error)));
           })
      .def("launch", [](LaunchableText &self, std::tuple<uint32_t, uint32_t, uint32_t> grid,
                        nb::list arguments, nb::bytes words) {
        auto [x, y, z] = grid;
        self.launch({x, y, z}, std::move(arguments), std::move(words));
      });
}

} // namespace triton_metal

// Any Metal text with any buffers on the host Metal device: what the stand-ins for frameworks run.
#include "Bindings.h"
#include "Launching.h"
#include "WithoutLock.h"

#include "host_device/Checks.h"

#include "runtime/HostDevice.h"

#include <nanobind/stl/array.h>
#include <nanobind/stl/pair.h>

namespace triton_metal {

namespace {

using runtime::MetalLibrary;

std::shared_ptr<MetalLibrary> compileText(const std::string &metal, bool portable,
                                          const std::string &checks,
                                          const std::vector<std::string> &includeDirectories) {
  std::vector<const char *> directories;
  for (const std::string &directory : includeDirectories)
    directories.push_back(directory.c_str());
  HostText text;
  text.text = metal.data();
  text.size = metal.size();
  std::string unknown;
  std::optional<Checks> wanted = Checks::parse(checks, &unknown);
  if (!wanted)
    throw nb::value_error(("there is no check '" + unknown + "'").c_str());
  text.checks = wanted->bits();
  text.portable = portable;
  text.includeDirectories = directories.data();
  text.numIncludeDirectories = directories.size();
  std::shared_ptr<MetalLibrary> library;
  std::string problem;
  {
    WithoutLock unlocked;
    llvm::Expected<std::shared_ptr<MetalLibrary>> result = MetalLibrary::compile(text);
    if (result)
      library = std::move(*result);
    else
      problem = llvm::toString(result.takeError());
  }
  if (!library)
    throw nb::value_error(problem.c_str());
  return library;
}

void dispatch(const std::shared_ptr<MetalLibrary> &self, const std::string &name, nb::list bindings,
              std::array<uint32_t, 3> grid, std::array<uint32_t, 3> group,
              std::optional<uint64_t> seed, uint64_t portableSeed, uint64_t maxSteps,
              uint32_t wholeBuffers) {
  HostKernel *kernel = unwrap(self->kernel(name));
  std::vector<BufferBinding> buffers;
  for (nb::handle entry : bindings) {
    if (entry.is_none()) {
      buffers.push_back({});
      continue;
    }
    nb::tuple fields = nb::cast<nb::tuple>(entry);
    buffers.push_back({reinterpret_cast<void *>(nb::cast<uintptr_t>(fields[0])),
                       nb::cast<uint64_t>(fields[1]), nb::cast<bool>(fields[2])});
  }
  HostDispatch launch;
  launch.hasGridThreads = true;
  std::copy(grid.begin(), grid.end(), launch.gridThreads);
  std::copy(group.begin(), group.end(), launch.threadsPerThreadgroup);
  launch.buffers = buffers.data();
  launch.numBuffers = buffers.size();
  launch.hasSeed = seed.has_value();
  launch.seed = seed.value_or(0);
  launch.portableSeed = portableSeed;
  launch.maxSteps = maxSteps;
  launch.wholeBuffers = wholeBuffers;
  llvm::Error error = llvm::Error::success();
  {
    WithoutLock unlocked;
    error = self->dispatch(kernel, launch);
  }
  if (!error)
    return;
  std::string message = llvm::toString(std::move(error));
  if (llvm::StringRef(message).starts_with(launchInterrupted))
    raiseInterrupt();
  unwrap(llvm::createStringError(message));
}

} // namespace

void bindMetalLibrary(nb::module_ &module) {
  nb::class_<MetalLibrary>(module, "MetalLibrary",
                           "Metal text that the host Metal device compiled, with its kernels.")
      .def(nb::new_(&compileText), nb::arg("text"), nb::kw_only(), nb::arg("portable") = false,
           nb::arg("checks") = "", nb::arg("include_directories") = std::vector<std::string>())
      .def_prop_ro("kernels",
                   [](const std::shared_ptr<MetalLibrary> &self) {
                     nb::dict kernels;
                     for (nb::handle kernel :
                          nb::module_::import_("json").attr("loads")(self->describe()))
                       kernels[kernel["name"]] = kernel;
                     return kernels;
                   })
      .def(
          "threadgroup_memory",
          [](const std::shared_ptr<MetalLibrary> &self, const std::string &name) {
            return unwrap(self->threadgroupMemory(unwrap(self->kernel(name))));
          },
          nb::arg("name"))
      .def("dispatch", &dispatch, nb::arg("name"), nb::arg("buffers"), nb::arg("grid"),
           nb::arg("group"), nb::arg("seed").none() = nb::none(), nb::arg("portable_seed") = 0,
           nb::arg("max_steps") = 0, nb::arg("whole_buffers") = 0,
           "Runs a kernel on a grid of threads, whose edge groups are cut. A buffer is (address, "
           "bytes, writable), or None where nothing is bound.");
}

} // namespace triton_metal

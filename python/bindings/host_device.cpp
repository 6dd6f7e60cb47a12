// Loads the host device when it is first needed. It is a separate package with clang and LLVM.
#include "Bindings.h"
#include "Launching.h"
#include "WithoutLock.h"

#include "host_device/Checks.h"

#include "runtime/HostDevice.h"

namespace triton_metal {

namespace {

/// Imports triton_metal_host and registers its table; without the package, there is no host device.
llvm::Error importHostDevice() {
  nb::object package = nb::steal(PyImport_ImportModule("triton_metal_host"));
  // Who interrupts a launch wants it to end, not to be told that there is no device: the package is
  // loaded, and Python is interrupted behind that.
  if (!package.is_valid() && PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) {
    PyErr_Clear();
    package = nb::steal(PyImport_ImportModule("triton_metal_host"));
    PyErr_SetInterrupt();
  }
  if (!package.is_valid()) {
    nb::python_error problem;
    nb::object name = nb::getattr(problem.value(), "name", nb::none());
    bool isMissing =
        problem.matches(PyExc_ModuleNotFoundError) && name.equal(nb::str("triton_metal_host"));
    return isMissing ? llvm::Error::success()
                     : llvm::createStringError("the host device cannot be loaded: %s",
                                               nb::str(problem.value()).c_str());
  }
  nb::object capsule = nb::getattr(package, "table", nb::none());
  const void *table = PyCapsule_GetPointer(capsule.ptr(), hostDeviceCapsule);
  if (!table) {
    PyErr_Clear();
    return llvm::createStringError(
        "the host device cannot be loaded: triton_metal_host carries no table");
  }
  llvm::Error error = runtime::registerHostDevice(static_cast<const HostDeviceTable *>(table));
  if (!error)
    watchInterrupts(*static_cast<const HostDeviceTable *>(table));
  return error;
}

llvm::Error loadHostDevice() { return withLock(importHostDevice); }

} // namespace

void bindHostDevice(nb::module_ &module) {
  runtime::setHostDeviceLoader(loadHostDevice);
  module.def(
      "host_device_problem",
      []() -> std::optional<std::string> {
        llvm::Expected<const HostDeviceTable *> table = runtime::hostDevice();
        if (!table)
          return llvm::toString(table.takeError());
        return std::nullopt;
      },
      "Why there is no host device, or None if there is one.");
  nb::list names;
  for (std::string_view name : Checks::names)
    names.append(nb::str(name.data(), name.size()));
  // In the order of the bits.
  module.attr("check_names") = nb::tuple(names);
}

} // namespace triton_metal

// The table of devices for launches: what Python registered, and what a thread chose.
#ifndef TRITON_METAL_DEVICES_H
#define TRITON_METAL_DEVICES_H

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <string>
#include <vector>

namespace nb = nanobind;

namespace triton_metal {

/// A device's index in the table. The launcher reads the arrays of these three itself, without
/// calling Python. Every other device describes its own arrays.
enum class DeviceId : uint8_t { Host, Mlx, Mps };

/// What Python registers of a device; see triton_metal/devices/base.py.
struct DeviceEntry {
  std::string name;
  /// One of its arrays, in words: "an MLX array".
  std::string array;
  /// The types of its arrays as "module.name", so that nothing is imported to know them.
  std::vector<std::string> arrayTypes;
  /// Takes launches on its arrays: callable(kernel, grid, arguments, scalar_words). Objects live as
  /// long as the interpreter, or until another one replaces them.
  PyObject *route = nullptr;
  /// Describes an array: callable(array) -> (dtype, address, bytes, begins at a multiple of 16).
  PyObject *describe = nullptr;
  /// The most bytes of one array.
  uint64_t largestArray = UINT64_MAX;
};

DeviceEntry &deviceEntry(DeviceId id);
/// The device of a name; throws where none has it.
DeviceId deviceNamed(const std::string &name);
/// Whether a type or one of its bases is an array type of a device. Sets `id` to this device.
bool isArrayType(PyTypeObject *type, DeviceId &id);

/// Whether this thread or the environment chose a device by name.
bool asksForDevice();
/// The device of a launch if one was chosen. `own` is the device of its arrays, or null.
DeviceId chooseDevice(const std::string &kernel, const DeviceId *own);
/// Runs a launch on a device other than that of its arrays. The other arguments are a route's.
nb::object runElsewhere(DeviceId device, DeviceId own, nb::handle kernel, nb::handle grid,
                        nb::handle arguments, nb::handle words);
/// Counts the changes of the configuration that kernels are compiled with.
uint32_t configurationNumber();

/// The device whose arrays the host's arrays replace in this thread's tests.
DeviceId standInFor();
/// Whether launches on MLX arrays are compiled for addresses that are multiples of 16.
bool mlxAlignment();

} // namespace triton_metal

#endif // TRITON_METAL_DEVICES_H

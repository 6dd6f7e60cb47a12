// Reads, checks and packs grids, scalars and arrays for every kind of launch.
#ifndef TRITON_METAL_PACKING_H
#define TRITON_METAL_PACKING_H

#include "Arrays.h"

#include "host_device/Interface.h"
#include "runtime/Metadata.h"

#include <nanobind/nanobind.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace nb = nanobind;

namespace triton_metal {

/// Reads a grid of programs: an integer, or a tuple or list of 1 to 3 integers. Throws for anything
/// else, and for a grid of 2^31 programs or more.
std::array<uint32_t, 3> readGrid(const std::string &kernel, nb::handle grid);

/// Throws LaunchValueError for a grid that is too large for the kernel's 32-bit indices.
void checkGrid(const runtime::Metadata &metadata, std::array<uint32_t, 3> grid);

/// A Python integer.
struct Integer {
  /// INT64_MAX if the integer only fits into 64 unsigned bits.
  int64_t value = 0;
  uint64_t bits = 0;
  bool needsUnsigned = false;
};

/// Reads an integer, or a boolean as 0 or 1. Empty if it does not fit into 64 bits.
std::optional<Integer> readInteger(PyObject *object);

/// The words of the scalar buffer for arguments in the kernel's order. Throws if one is not a
/// number of its parameter's type.
std::vector<uint32_t> packScalars(const runtime::Metadata &metadata, nb::sequence arguments);

/// An array's memory, and the offset of its first element in it.
BufferBinding bindingOf(const ArrayInfo &array);

/// The bound arrays of a launch on the host device. It takes one object per argument of the kernel,
/// but does not read the scalars.
class BoundArrays {
public:
  BoundArrays(const runtime::Metadata &metadata, nb::list arguments);

  std::vector<BufferBinding> buffers;

private:
  /// Keeps the exporters' views until the kernel has run.
  std::vector<std::unique_ptr<ArrayInfo>> arrays;
};

} // namespace triton_metal

#endif // TRITON_METAL_PACKING_H

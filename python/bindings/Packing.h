// What every launch packs and checks, whatever way it takes: grids, scalars, arrays.
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

/// The grid of programs that Python gives: an integer, or a tuple or list of 1 to 3 integers.
/// Throws for all else, and for more programs than a launch has.
std::array<uint32_t, 3> readGrid(const std::string &kernel, nb::handle grid);

/// Throws LaunchValueError for a grid that is too large for the kernel's 32-bit indices.
void checkGrid(const runtime::Metadata &metadata, std::array<uint32_t, 3> grid);

/// A Python integer.
struct Integer {
  /// INT64_MAX where only 64 bits without a sign hold it.
  int64_t value = 0;
  uint64_t bits = 0;
  bool needsUnsigned = false;
};

/// Reads a number as an integer, a boolean as 0 or 1. Empty for one that fits in no type.
std::optional<Integer> readInteger(PyObject *object);

/// The words of the scalar buffer for arguments in the order of the kernel's. Throws where one is
/// no number of its parameter's type.
std::vector<uint32_t> packScalars(const runtime::Metadata &metadata, nb::sequence arguments);

/// An array's memory, and where its first element is in it.
BufferBinding bindingOf(const ArrayInfo &array);

/// The arrays of a launch on the host device, bound: one object for every argument of the kernel.
/// Those of scalars are not read.
class BoundArrays {
public:
  BoundArrays(const runtime::Metadata &metadata, nb::list arguments);

  std::vector<BufferBinding> buffers;

private:
  /// The views of exporters are held until the kernel has run.
  std::vector<std::unique_ptr<ArrayInfo>> arrays;
};

} // namespace triton_metal

#endif // TRITON_METAL_PACKING_H

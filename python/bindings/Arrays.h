// Arrays as kernels see them: an address, a dtype, and what memory belongs to it.
#ifndef TRITON_METAL_ARRAYS_H
#define TRITON_METAL_ARRAYS_H

#include "Devices.h"

#include <nanobind/nanobind.h>

#include <cstdint>
#include <string>
#include <vector>

namespace nb = nanobind;

namespace triton_metal {

enum class ArgumentKind : uint8_t {
  None,
  Bool,
  Integer,
  Float,
  Array,
  Tensor,
  Mlx,
  Foreign,
  /// An object with data_ptr() and a dtype, such as a tensor that is read as another dtype.
  Pointer,
  /// An array of a library that exports its memory through DLPack or __array_interface__ alone.
  Exported,
  Mock,
  Static,
  Other
};

/// A stand-in for an array of a dtype when nothing runs.
struct MockArray {
  std::string dtype;
  explicit MockArray(std::string dtype) : dtype(std::move(dtype)) {}
};

/// The unique string of a dtype of arrays, or null.
const char *knownDtype(const char *name);

/// The kind of an argument, cached by its Python type.
ArgumentKind classify(PyObject *object);
/// Clears this cache, because a device may have registered types of arrays.
void forgetKinds();

struct ArrayInfo {
  void *data = nullptr;
  /// Lowest address of an element, and the bytes from there to the end of the highest.
  void *low = nullptr;
  uint64_t bytes = 0;
  bool writable = true;
  /// The device that owns the memory. Only arrays of the host have an address here; other routes
  /// find it themselves.
  DeviceId device = DeviceId::Host;
  /// Whether an array without an address is known to begin at a multiple of 16 bytes.
  bool beginsAt16 = false;
  /// Triton's name of the element type ("fp32"), a string that is never freed.
  const char *dtype = nullptr;
  /// Held for exporters of the buffer protocol.
  Py_buffer view{};
  bool holdsView = false;

  ArrayInfo() = default;
  ArrayInfo(const ArrayInfo &) = delete;
  ArrayInfo &operator=(const ArrayInfo &) = delete;
  ~ArrayInfo() {
    if (holdsView)
      PyBuffer_Release(&view);
  }
};

/// Why an object cannot be an argument.
struct ArrayProblem {
  bool isType = true;
  std::string message;
};

/// Reads an array. Returns false and describes the problem if this fails.
bool readArray(PyObject *object, ArgumentKind kind, ArrayInfo &info, ArrayProblem &problem);

/// The tensor in a `Pointer` that wraps one as its `base`; invalid if it wraps none.
nb::object wrappedTensor(PyObject *object);

/// What an array shares with the other arrays of a launch.
struct Sharing {
  /// The same for arrays that may overlap; 0 for one that overlaps with none.
  uint8_t number = 0;
  /// The first argument that is the same array, or -1.
  int8_t sameAs = -1;
};

/// Finds arrays that overlap. Entries are null for arguments that are not arrays. Empty if none
/// overlap.
std::vector<Sharing> findSharing(const std::vector<const ArrayInfo *> &arrays);

/// A short form of a value for messages.
std::string shown(PyObject *object);

} // namespace triton_metal

#endif // TRITON_METAL_ARRAYS_H

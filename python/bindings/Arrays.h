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
  Mock,
  Static,
  Other
};

/// Stands for an array of a dtype where nothing runs.
struct MockArray {
  std::string dtype;
  explicit MockArray(std::string dtype) : dtype(std::move(dtype)) {}
};

/// The one string that stands for a dtype of arrays, or null.
const char *knownDtype(const char *name);

/// What an argument is, remembered by its Python type.
ArgumentKind classify(PyObject *object);
/// Forgets what types are: a device may have taken some as its arrays.
void forgetKinds();

struct ArrayInfo {
  void *data = nullptr;
  /// Lowest address of an element, and the bytes from there to the end of the highest.
  void *low = nullptr;
  uint64_t bytes = 0;
  bool writable = true;
  /// Whose memory it is in. Arrays of other devices than the host have no address here: their
  /// route finds it.
  DeviceId device = DeviceId::Host;
  /// Whether an array without an address is known to begin at a multiple of 16 bytes.
  bool beginsAt16 = false;
  /// Triton's name of the element type ("fp32"), a string that lives for ever.
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

/// Reads an array. Returns false with the problem's words.
bool readArray(PyObject *object, ArgumentKind kind, ArrayInfo &info, ArrayProblem &problem);

/// What an array shares with the other arrays of a launch.
struct Sharing {
  /// The same for arrays that may overlap; 0 for one that overlaps with none.
  uint8_t number = 0;
  /// The first argument that is the very same array, or -1.
  int8_t sameAs = -1;
};

/// Looks for arrays that overlap, null where an argument is none. Empty if there are none.
std::vector<Sharing> findSharing(const std::vector<const ArrayInfo *> &arrays);

/// A short text that shows a value in a message.
std::string shown(PyObject *object);

} // namespace triton_metal

#endif // TRITON_METAL_ARRAYS_H

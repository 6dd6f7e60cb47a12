// Memory of Python objects: the buffer protocol and DLPack.
#include "PythonApi.h"

#include <cstdint>
#include <memory>

namespace {

// The limited API has the buffer protocol since 3.11. 3.10 has the same functions and the same
// structure.
struct BufferView {
  void *data;
  PyObject *owner;
  Py_ssize_t bytes, itemSize;
  int isReadOnly, numDimensions;
  char *format;
  Py_ssize_t *shape, *strides, *suboffsets;
  void *internal;
};
constexpr int wantFormat = 4, wantIndirect = 0x118;

} // namespace

extern "C" {
PyAPI_FUNC(int) PyObject_GetBuffer(PyObject *, BufferView *, int);
PyAPI_FUNC(void) PyBuffer_Release(BufferView *);
}

namespace triton_metal {
namespace {

/// (address, bytes, read-only, type, item size, dimensions, contiguous, what holds the memory)
PyObject *result(const void *data, Py_ssize_t bytes, bool isReadOnly, const char *type,
                 Py_ssize_t itemSize, int dimensions, bool isContiguous, Ref holder) {
  Ref address(PyLong_FromVoidPtr(const_cast<void *>(data)));
  Ref typeName(type ? PyUnicode_FromString(type) : Ref::borrow(Py_None).release());
  if (!address || !typeName)
    return nullptr;
  return Py_BuildValue("(OnOOniOO)", address.get(), bytes, isReadOnly ? Py_True : Py_False,
                       typeName.get(), itemSize, dimensions, isContiguous ? Py_True : Py_False,
                       holder.get());
}

template <typename Extent>
bool isContiguous(const Extent *shape, const Extent *strides, int dimensions, Extent step) {
  for (int i = 0; i != dimensions; ++i)
    if (shape[i] == 0)
      return true;
  for (int i = dimensions; i--;) {
    if (strides && shape[i] != 1 && strides[i] != step)
      return false;
    step *= shape[i];
  }
  return true;
}

PyObject *viewOf(PyObject *, PyObject *object) {
  auto view = std::make_unique<BufferView>();
  if (PyObject_GetBuffer(object, view.get(), wantFormat | wantIndirect))
    return nullptr;
  static constexpr const char *name = "triton_metal_host.view";
  Ref holder(PyCapsule_New(view.get(), name, [](PyObject *self) {
    auto *held = static_cast<BufferView *>(PyCapsule_GetPointer(self, name));
    PyBuffer_Release(held);
    delete held;
  }));
  if (!holder) {
    PyBuffer_Release(view.get());
    return nullptr;
  }
  BufferView &seen = *view.release();
  bool contiguous = !seen.suboffsets && isContiguous<Py_ssize_t>(seen.shape, seen.strides,
                                                                 seen.numDimensions, seen.itemSize);
  return result(seen.data, seen.bytes, seen.isReadOnly, seen.format ? seen.format : "B",
                seen.itemSize, seen.numDimensions, contiguous, std::move(holder));
}

// DLPack's structures, as its specification lays them out.
struct DlTensor {
  void *data;
  int32_t deviceType, deviceId;
  int32_t dimensions;
  uint8_t typeCode, typeBits;
  uint16_t typeLanes;
  int64_t *shape, *strides;
  uint64_t byteOffset;
};
struct DlVersioned {
  uint32_t major, minor;
  void *context;
  void (*deleter)(DlVersioned *);
  uint64_t flags;
  DlTensor tensor;
};

/// Reads a DLPack capsule without consuming it: the capsule holds the memory.
PyObject *dlpackView(PyObject *, PyObject *capsule) {
  const DlTensor *tensor = nullptr;
  bool isReadOnly = false;
  if (PyCapsule_IsValid(capsule, "dltensor")) {
    tensor = static_cast<DlTensor *>(PyCapsule_GetPointer(capsule, "dltensor"));
  } else if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
    auto *versioned =
        static_cast<DlVersioned *>(PyCapsule_GetPointer(capsule, "dltensor_versioned"));
    if (versioned->major != 1) {
      PyErr_SetString(PyExc_BufferError, "the array has a version of DLPack that is not known");
      return nullptr;
    }
    isReadOnly = versioned->flags & 1;
    tensor = &versioned->tensor;
  } else {
    PyErr_SetString(PyExc_BufferError, "__dlpack__ gave no DLPack capsule");
    return nullptr;
  }
  std::string type;
  switch (tensor->typeCode) {
  case 0:
    type = "int";
    break;
  case 1:
    type = "uint";
    break;
  case 2:
    type = "float";
    break;
  case 4:
    type = "bfloat";
    break;
  case 5:
    type = "complex";
    break;
  case 6:
    type = "bool";
    break;
  default:
    type = "code" + std::to_string(tensor->typeCode) + "_";
    break;
  }
  type += std::to_string(tensor->typeBits);
  Py_ssize_t itemSize = (tensor->typeBits * tensor->typeLanes + 7) / 8, bytes = itemSize;
  for (int i = 0; i != tensor->dimensions; ++i)
    bytes *= static_cast<Py_ssize_t>(tensor->shape[i]);
  bool contiguous =
      isContiguous<int64_t>(tensor->shape, tensor->strides, tensor->dimensions, /*step=*/1);
  return result(static_cast<char *>(tensor->data) + tensor->byteOffset, bytes, isReadOnly,
                type.c_str(), itemSize, tensor->dimensions, contiguous, Ref::borrow(capsule));
}

} // namespace

PyMethodDef memoryMethods[] = {
    {"view", viewOf, METH_O, "What the buffer protocol says about an object's memory."},
    {"dlpack_view", dlpackView, METH_O, "What a DLPack capsule says about an array's memory."},
    {nullptr, nullptr, 0, nullptr}};

} // namespace triton_metal

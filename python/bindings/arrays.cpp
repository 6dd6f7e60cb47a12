#include "Arrays.h"

#include "runtime/NoMemory.h"

#include <cstring>
#include <unordered_map>
#include <vector>

namespace triton_metal {

namespace {

/// NumPy's documented array interface.
struct ArrayInterface {
  int two;
  int nd;
  char typekind;
  int itemsize;
  int flags;
  Py_ssize_t *shape;
  Py_ssize_t *strides;
  void *data;
  PyObject *descr;
};
constexpr int isAligned = 0x100, isNativeOrder = 0x200, isWritable = 0x400;

PyObject *interned(const char *text) { return PyUnicode_InternFromString(text); }

/// Every dtype has one string here, so that names can be compared by address.
struct DtypeEntry {
  const char *name;
  const char *torch;
  char kind;
  int itemsize;
};
constexpr DtypeEntry dtypes[] = {
    {"int1", "torch.bool", 'b', 1},
    {"int8", "torch.int8", 'i', 1},
    {"int16", "torch.int16", 'i', 2},
    {"int32", "torch.int32", 'i', 4},
    {"int64", "torch.int64", 'i', 8},
    {"uint8", "torch.uint8", 'u', 1},
    {"uint16", "torch.uint16", 'u', 2},
    {"uint32", "torch.uint32", 'u', 4},
    {"uint64", "torch.uint64", 'u', 8},
    {"fp16", "torch.float16", 'f', 2},
    {"fp32", "torch.float32", 'f', 4},
    {"bf16", "torch.bfloat16", '-', 2},
    {"fp64", "torch.float64", 'f', 8},
    // What the kind says nothing about is known by its name.
    {"fp8e5", "torch.float8_e5m2", '-', 1},
    {"fp8e4nv", "torch.float8_e4m3fn", '-', 1},
    {"fp8e5b16", "torch.float8_e5m2fnuz", '-', 1},
    {"fp8e4b8", "torch.float8_e4m3fnuz", '-', 1},
    // Neither framework has arrays of it.
    {"fp8e4b15", "torch.float8_e4m3b15", '-', 1},
};
constexpr std::string_view torchPrefix = "torch.";

const char *dtypeOf(char kind, Py_ssize_t itemsize) {
  for (const DtypeEntry &entry : dtypes)
    if (entry.kind == kind && entry.itemsize == itemsize)
      return entry.name;
  return nullptr;
}

/// The dtype that torch calls "torch." and this name, of those that NumPy itself does not have.
const char *dtypeNamed(const std::string &name, Py_ssize_t itemsize) {
  for (const DtypeEntry &entry : dtypes)
    if (entry.kind == '-' && entry.itemsize == itemsize &&
        std::string_view(entry.torch).substr(torchPrefix.size()) == name)
      return entry.name;
  return nullptr;
}

constexpr const char *allowedDtypes = "a kernel takes arrays of bool, int8 to int64, uint8 to "
                                      "uint64, float8, float16, bfloat16, float32 and, "
                                      "on the host device, float64";

std::string unsupportedDtype(const std::string &name) {
  std::string hint =
      name.find("64") != std::string::npos && name.find("float") != std::string::npos
          ? " (MLX has float64 on the CPU alone: convert it to float32, or pass a NumPy array)"
          : "";
  return "is an array of " + name + hint + "; " + allowedDtypes;
}

/// The memory that elements of a strided array occupy.
void setExtent(ArrayInfo &info, int nd, const Py_ssize_t *shape, const Py_ssize_t *strides,
               Py_ssize_t itemsize) {
  Py_ssize_t low = 0, high = itemsize;
  for (int i = 0; i < nd; ++i) {
    if (shape[i] == 0) {
      info.low = info.data;
      info.bytes = 0;
      return;
    }
    Py_ssize_t span = (shape[i] - 1) * strides[i];
    (span < 0 ? low : high) += span;
  }
  info.low = static_cast<char *>(info.data) + low;
  info.bytes = static_cast<uint64_t>(high - low);
}

std::string dtypeName(PyObject *object) {
  nb::object dtype = nb::steal(PyObject_GetAttrString(object, "dtype"));
  if (!dtype.is_valid()) {
    PyErr_Clear();
    return Py_TYPE(object)->tp_name;
  }
  nb::object text = nb::steal(PyObject_Str(dtype.ptr()));
  if (!text.is_valid()) {
    PyErr_Clear();
    return "an unknown dtype";
  }
  return nb::str(text).c_str();
}

bool readNumPy(PyObject *object, ArrayInfo &info, ArrayProblem &problem) {
  static PyObject *name = interned("__array_struct__");
  nb::object capsule = nb::steal(PyObject_GetAttr(object, name));
  if (!capsule.is_valid()) {
    PyErr_Clear();
    return false;
  }
  auto *array = static_cast<ArrayInterface *>(PyCapsule_GetPointer(capsule.ptr(), nullptr));
  if (!array || array->two != 2) {
    PyErr_Clear();
    problem.message = "has an array interface that cannot be read";
    return false;
  }
  info.dtype = dtypeOf(array->typekind, array->itemsize);
  // The types of ml_dtypes are opaque to NumPy, and have the names of torch's.
  if (!info.dtype && array->itemsize <= 2)
    info.dtype = dtypeNamed(dtypeName(object), array->itemsize);
  if (!info.dtype) {
    problem.message = unsupportedDtype(dtypeName(object));
    return false;
  }
  if (array->itemsize > 1 && !(array->flags & isNativeOrder)) {
    problem.isType = false;
    problem.message = "has the byte order of another machine (dtype " + dtypeName(object) +
                      "): convert it with .astype(x.dtype.newbyteorder('='))";
    return false;
  }
  if (!(array->flags & isAligned)) {
    problem.isType = false;
    problem.message = "is not aligned to its elements: copy it";
    return false;
  }
  info.data = array->data;
  info.writable = (array->flags & isWritable) != 0;
  setExtent(info, array->nd, array->shape, array->strides, array->itemsize);
  return true;
}

bool readBuffer(PyObject *object, ArrayInfo &info, ArrayProblem &problem) {
  if (PyObject_GetBuffer(object, &info.view, PyBUF_RECORDS_RO) != 0) {
    PyErr_Clear();
    problem.message = "is a " + std::string(Py_TYPE(object)->tp_name) + ", which is not an array";
    return false;
  }
  info.holdsView = true;
  const char *format = info.view.format ? info.view.format : "B";
  char order = std::strchr("<>=@!|", *format) && *format ? *format++ : '@';
  char kind = std::strchr("bhilqn", *format)   ? 'i'
              : std::strchr("BHILQN", *format) ? 'u'
              : std::strchr("efd", *format)    ? 'f'
              : *format == '?'                 ? 'b'
                                               : 'x';
  info.dtype = *format && !format[1] ? dtypeOf(kind, info.view.itemsize) : nullptr;
  if (!info.dtype) {
    problem.message = unsupportedDtype(std::string("format '") + info.view.format + "'");
    return false;
  }
  bool little = order != '>' && order != '!';
  if (info.view.itemsize > 1 && !little) {
    problem.isType = false;
    problem.message =
        std::string("has the byte order of another machine (format '") + info.view.format + "')";
    return false;
  }
  info.data = info.view.buf;
  info.writable = !info.view.readonly;
  if (info.view.shape && info.view.strides) {
    setExtent(info, info.view.ndim, info.view.shape, info.view.strides, info.view.itemsize);
  } else {
    info.low = info.data;
    info.bytes = static_cast<uint64_t>(info.view.len);
  }
  return true;
}

/// torch's dtype objects live as long as torch, so their addresses name them.
const char *torchDtype(PyObject *dtype) {
  static std::unordered_map<PyObject *, const char *> known;
  auto found = known.find(dtype);
  if (found != known.end())
    return found->second;
  nb::object text = nb::steal(PyObject_Str(dtype));
  const char *result = nullptr;
  if (text.is_valid())
    for (const DtypeEntry &entry : dtypes)
      if (std::strcmp(nb::str(text).c_str(), entry.torch) == 0)
        result = entry.name;
  PyErr_Clear();
  if (result) {
    Py_INCREF(dtype);
    known[dtype] = result;
  }
  return result;
}

bool readTensor(PyObject *object, ArrayInfo &info, ArrayProblem &problem) {
  static PyObject *dataPtr = interned("data_ptr"), *dtypeAttr = interned("dtype"),
                  *isCpu = interned("is_cpu"), *isMps = interned("is_mps"),
                  *shapeAttr = interned("shape"), *strideMethod = interned("stride"),
                  *elementSize = interned("element_size"), *isNeg = interned("is_neg");
  nb::object dtype = nb::steal(PyObject_GetAttr(object, dtypeAttr));
  nb::object cpu = nb::steal(PyObject_GetAttr(object, isCpu));
  if (!dtype.is_valid() || !cpu.is_valid()) {
    PyErr_Clear();
    problem.message = "has data_ptr, but neither dtype nor is_cpu";
    return false;
  }
  if (cpu.ptr() != Py_True) {
    nb::object mps = nb::steal(PyObject_GetAttr(object, isMps));
    PyErr_Clear();
    if (!mps.is_valid() || mps.ptr() != Py_True) {
      problem.isType = false;
      problem.message = "is a tensor on another device: a kernel takes CPU and MPS tensors";
      return false;
    }
    info.device = DeviceId::Mps;
  }
  info.dtype = torchDtype(dtype.ptr());
  if (!info.dtype) {
    problem.message = unsupportedDtype(nb::str(dtype).c_str());
    return false;
  }
  // What a kernel writes to such a tensor would change its sign, too, so that no copy can stand for
  // it.
  nb::object negative = nb::steal(PyObject_CallMethodNoArgs(object, isNeg));
  PyErr_Clear();
  if (negative.is_valid() && negative.ptr() == Py_True) {
    problem.isType = false;
    problem.message = "is a tensor with the negative bit, whose numbers lie in memory with the "
                      "other sign: pass what its resolve_neg() gives";
    return false;
  }
  if (info.device == DeviceId::Mps) {
    // The MTLBuffer stands for its memory: tensors of one buffer may overlap, also where they have
    // different storages.
    static PyObject *storageMethod = interned("untyped_storage");
    nb::object storage = nb::steal(PyObject_CallMethodNoArgs(object, storageMethod));
    nb::object number = storage.is_valid()
                            ? nb::steal(PyObject_CallMethodNoArgs(storage.ptr(), dataPtr))
                            : nb::object();
    info.low = number.is_valid() ? PyLong_AsVoidPtr(number.ptr()) : nullptr;
    info.bytes = info.low ? 1 : 0;
    // PyTorch binds the storage's MTLBuffer at this offset, and Metal's buffers begin at 16 bytes.
    static PyObject *offsetMethod = interned("storage_offset");
    nb::object offset = nb::steal(PyObject_CallMethodNoArgs(object, offsetMethod));
    nb::object size = nb::steal(PyObject_CallMethodNoArgs(object, elementSize));
    if (offset.is_valid() && size.is_valid())
      info.beginsAt16 = nb::cast<uint64_t>(offset) * nb::cast<uint64_t>(size) % 16 == 0;
    PyErr_Clear();
    return true;
  }
  nb::object address = nb::steal(PyObject_CallMethodNoArgs(object, dataPtr));
  if (!address.is_valid()) {
    PyErr_Clear();
    problem.isType = false;
    problem.message = "is a tensor without storage";
    return false;
  }
  info.data = reinterpret_cast<void *>(PyLong_AsUnsignedLongLong(address.ptr()));
  info.low = info.data;
  static PyObject *bytes = interned("nbytes"), *isContiguous = interned("is_contiguous");
  nb::object size = nb::steal(PyObject_GetAttr(object, bytes));
  // A fake tensor, and one whose storage was given back.
  if (!info.data && size.is_valid() && nb::cast<uint64_t>(size)) {
    problem.isType = false;
    problem.message = "is a tensor without storage";
    return false;
  }
  nb::object contiguous = nb::steal(PyObject_CallMethodNoArgs(object, isContiguous));
  PyErr_Clear();
  if (size.is_valid() && contiguous.ptr() == Py_True) {
    info.bytes = nb::cast<uint64_t>(size);
  } else {
    nb::object shape = nb::steal(PyObject_GetAttr(object, shapeAttr));
    nb::object strides = nb::steal(PyObject_CallMethodNoArgs(object, strideMethod));
    size = nb::steal(PyObject_CallMethodNoArgs(object, elementSize));
    if (!shape.is_valid() || !strides.is_valid() || !size.is_valid())
      throw nb::python_error();
    Py_ssize_t itemsize = nb::cast<Py_ssize_t>(size);
    std::vector<Py_ssize_t> sizes, steps;
    for (nb::handle value : shape)
      sizes.push_back(nb::cast<Py_ssize_t>(value));
    for (nb::handle value : strides)
      steps.push_back(nb::cast<Py_ssize_t>(value) * itemsize);
    setExtent(info, static_cast<int>(sizes.size()), sizes.data(), steps.data(), itemsize);
  }
  return true;
}

/// MLX creates its dtype objects again at each access, so their hash, the enumerator, identifies
/// them.
const char *mlxDtype(PyObject *dtype) {
  static std::unordered_map<Py_hash_t, const char *> known = [] {
    static constexpr std::pair<const char *, const char *> names[] = {
        {"bool_", "int1"},    {"int8", "int8"},    {"int16", "int16"},   {"int32", "int32"},
        {"int64", "int64"},   {"uint8", "uint8"},  {"uint16", "uint16"}, {"uint32", "uint32"},
        {"uint64", "uint64"}, {"float16", "fp16"}, {"float32", "fp32"},  {"bfloat16", "bf16"}};
    nb::object core = nb::module_::import_("mlx.core"); // has been imported: there is an array
    std::unordered_map<Py_hash_t, const char *> result;
    for (auto [mlx, name] : names)
      result[PyObject_Hash(nb::object(core.attr(mlx)).ptr())] = knownDtype(name);
    return result;
  }();
  auto found = known.find(PyObject_Hash(dtype));
  return found == known.end() ? nullptr : found->second;
}

bool readMlx(PyObject *object, ArrayInfo &info, ArrayProblem &problem) {
  static PyObject *dtypeAttr = interned("dtype");
  nb::object dtype = nb::steal(PyObject_GetAttr(object, dtypeAttr));
  if (!dtype.is_valid())
    throw nb::python_error();
  info.device = DeviceId::Mlx;
  // The same array as two arguments overlaps with itself. Only MLX knows about views.
  info.low = object;
  info.bytes = 1;
  info.dtype = mlxDtype(dtype.ptr());
  if (!info.dtype) {
    problem.message = unsupportedDtype(nb::str(dtype).c_str());
    return false;
  }
  return true;
}

/// An array of a device that only Python knows. The device describes it.
bool readForeign(PyObject *object, ArrayInfo &info, ArrayProblem &problem) {
  isArrayType(Py_TYPE(object), info.device);
  nb::tuple described =
      nb::cast<nb::tuple>(nb::handle(deviceEntry(info.device).describe)(nb::handle(object)));
  std::string dtype = nb::cast<std::string>(nb::str(described[0]));
  info.dtype = knownDtype(dtype.c_str());
  if (!info.dtype) {
    problem.message = unsupportedDtype(dtype);
    return false;
  }
  info.low = reinterpret_cast<void *>(nb::cast<uintptr_t>(described[1]));
  info.bytes = nb::cast<uint64_t>(described[2]);
  info.beginsAt16 = nb::cast<bool>(described[3]);
  return true;
}

/// An object of which an address, a dtype and perhaps the size are known.
bool readPointer(PyObject *object, ArrayInfo &info, ArrayProblem &problem) {
  nb::object dtype = nb::steal(PyObject_GetAttrString(object, "dtype"));
  if (!dtype.is_valid()) {
    PyErr_Clear();
    problem.message = "has data_ptr, but no dtype";
    return false;
  }
  const char *known = knownDtype(nb::str(dtype).c_str());
  if (!known)
    known = torchDtype(dtype.ptr());
  // A name of torch's or NumPy's without the package, such as "float32".
  if (!known && PyUnicode_Check(dtype.ptr()))
    for (const DtypeEntry &entry : dtypes)
      if (std::string("torch.") + nb::str(dtype).c_str() == entry.torch)
        known = entry.name;
  if (!known) {
    problem.message = unsupportedDtype(nb::str(dtype).c_str());
    return false;
  }
  if (nb::object inner = wrappedTensor(object); inner.is_valid()) {
    if (!readTensor(inner.ptr(), info, problem))
      return false;
    info.dtype = known;
    return true;
  }
  nb::object address = nb::steal(PyObject_CallMethod(object, "data_ptr", nullptr));
  if (!address.is_valid())
    throw nb::python_error();
  info.dtype = known;
  info.data = info.low = PyLong_AsVoidPtr(address.ptr());
  if (PyErr_Occurred())
    throw nb::python_error();
  // An object that does not tell its size may reach anywhere behind its address.
  info.bytes = UINT64_C(1) << 40;
  nb::object bytes = nb::steal(PyObject_GetAttrString(object, "nbytes"));
  if (bytes.is_valid() && PyLong_Check(bytes.ptr()))
    info.bytes = PyLong_AsUnsignedLongLong(bytes.ptr());
  PyErr_Clear();
  return true;
}

/// Whether values of the type are single numbers of NumPy, or of a package that adds dtypes to it.
bool isNumPyScalar(PyTypeObject *type) {
  PyObject *bases = type->tp_mro;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(bases); ++i)
    if (std::strcmp(reinterpret_cast<PyTypeObject *>(PyTuple_GET_ITEM(bases, i))->tp_name,
                    "numpy.generic") == 0)
      return true;
  return false;
}

ArgumentKind classifySlowly(PyObject *object) {
  if (nb::isinstance<MockArray>(nb::handle(object)))
    return ArgumentKind::Mock;
  if (DeviceId device; isArrayType(Py_TYPE(object), device))
    return device == DeviceId::Mlx ? ArgumentKind::Mlx : ArgumentKind::Foreign;
  PyTypeObject *type = Py_TYPE(object);
  auto has = [&](const char *name) { return PyObject_HasAttrString(object, name); };
  if (has("data_ptr") && has("is_cpu"))
    return ArgumentKind::Tensor;
  if (has("data_ptr"))
    return ArgumentKind::Pointer;
  if (has("__array_struct__")) {
    // NumPy scalars are numbers.
    if (isNumPyScalar(type)) {
      nb::object item = nb::steal(PyObject_CallMethod(object, "item", nullptr));
      if (!item.is_valid()) {
        PyErr_Clear();
        return ArgumentKind::Other;
      }
      return PyBool_Check(item.ptr())    ? ArgumentKind::Bool
             : PyIndex_Check(object)     ? ArgumentKind::Integer
             : PyFloat_Check(item.ptr()) ? ArgumentKind::Float
                                         : ArgumentKind::Other;
    }
    return ArgumentKind::Array;
  }
  if (PyObject_CheckBuffer(object) && !PyBytes_Check(object))
    return ArgumentKind::Array;
  if (has("__triton_static__"))
    return ArgumentKind::Static;
  if (has("__array_interface__") || has("__dlpack__"))
    return ArgumentKind::Exported;
  if (PyIndex_Check(object))
    return ArgumentKind::Integer;
  return ArgumentKind::Other;
}

} // namespace

nb::object wrappedTensor(PyObject *object) {
  nb::object base = nb::steal(PyObject_GetAttrString(object, "base"));
  bool isTensor = base.is_valid() && PyObject_HasAttrString(base.ptr(), "data_ptr") &&
                  PyObject_HasAttrString(base.ptr(), "is_cpu");
  PyErr_Clear();
  return isTensor ? base : nb::object();
}

/// Types are kept alive, so that an address is never reused.
static std::unordered_map<PyTypeObject *, ArgumentKind> &knownKinds() {
  static std::unordered_map<PyTypeObject *, ArgumentKind> known;
  return known;
}

void forgetKinds() { knownKinds().clear(); }

const char *knownDtype(const char *name) {
  for (const DtypeEntry &entry : dtypes)
    if (std::strcmp(entry.name, name) == 0)
      return entry.name;
  return nullptr;
}

ArgumentKind classify(PyObject *object) {
  if (object == Py_None)
    return ArgumentKind::None;
  if (PyBool_Check(object))
    return ArgumentKind::Bool;
  if (PyLong_CheckExact(object))
    return ArgumentKind::Integer;
  if (PyFloat_CheckExact(object))
    return ArgumentKind::Float;
  std::unordered_map<PyTypeObject *, ArgumentKind> &known = knownKinds();
  auto found = known.find(Py_TYPE(object));
  if (found != known.end())
    return found->second;
  ArgumentKind kind = PyLong_Check(object)    ? ArgumentKind::Integer
                      : PyFloat_Check(object) ? ArgumentKind::Float
                                              : classifySlowly(object);
  Py_INCREF(Py_TYPE(object));
  known[Py_TYPE(object)] = kind;
  return kind;
}

/// Whether an array of NumPy is a view of another object's memory.
static bool isPart(PyObject *object) {
  nb::object base = nb::steal(PyObject_GetAttrString(object, "base"));
  if (!base.is_valid())
    PyErr_Clear();
  return base.is_valid() && !base.is_none();
}

bool readArray(PyObject *object, ArgumentKind kind, ArrayInfo &info, ArrayProblem &problem) {
  bool read = kind == ArgumentKind::Pointer   ? readPointer(object, info, problem)
              : kind == ArgumentKind::Mlx     ? readMlx(object, info, problem)
              : kind == ArgumentKind::Foreign ? readForeign(object, info, problem)
              : kind == ArgumentKind::Tensor  ? readTensor(object, info, problem)
              : PyObject_CheckBuffer(object) &&
                      std::strncmp(Py_TYPE(object)->tp_name, "numpy.", 6) != 0 &&
                      !PyObject_HasAttrString(object, "__array_struct__")
                  ? readBuffer(object, info, problem)
                  : readNumPy(object, info, problem);
  if (!read) {
    if (problem.message.empty())
      problem.message = "cannot be read as an array";
    return false;
  }
  if (info.device != DeviceId::Host)
    return true;
  // An empty array may have no address, or one of a few bytes that it shares with others. One that
  // is part of another array keeps its place: a kernel may go beyond a view.
  if (!info.data || (!info.bytes && !isPart(object))) {
    info.data = info.low = noMemory();
    info.bytes = 0;
  }
  return true;
}

std::vector<Sharing> findSharing(const std::vector<const ArrayInfo *> &arrays) {
  std::vector<Sharing> result;
  auto overlap = [](const ArrayInfo &a, const ArrayInfo &b) {
    auto begin = reinterpret_cast<uintptr_t>(a.low), other = reinterpret_cast<uintptr_t>(b.low);
    return begin < other + b.bytes && other < begin + a.bytes;
  };
  uint8_t last = 0;
  for (size_t i = 1; i < arrays.size(); ++i)
    for (size_t j = 0; arrays[i] && j < i; ++j) {
      if (!arrays[j] || !overlap(*arrays[i], *arrays[j]))
        continue;
      if (result.empty())
        result.resize(arrays.size());
      Sharing &mine = result[i], &other = result[j];
      const ArrayInfo &a = *arrays[i], &b = *arrays[j];
      // Checks for bounds are made against the length of one.
      if (mine.sameAs < 0 && a.data && a.data == b.data && a.low == b.low && a.bytes == b.bytes &&
          a.dtype == b.dtype && a.writable == b.writable && j <= INT8_MAX)
        mine.sameAs = static_cast<int8_t>(j);
      if (!other.number)
        other.number = mine.number ? mine.number : ++last;
      // An array that overlaps with two others joins them.
      uint8_t joined = mine.number ? mine.number : other.number;
      mine.number = other.number;
      for (Sharing &sharing : result)
        if (sharing.number == joined)
          sharing.number = other.number;
    }
  return result;
}

std::string shown(PyObject *object) {
  nb::object text = nb::steal(PyObject_Repr(object));
  if (!text.is_valid()) {
    PyErr_Clear();
    return "an object";
  }
  std::string result = nb::str(text).c_str();
  if (result.size() > 60)
    result = result.substr(0, 57) + "...";
  return result;
}

} // namespace triton_metal

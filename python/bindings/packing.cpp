#include "Packing.h"
#include "Launching.h"

#include "llvm/ADT/StringExtras.h"

namespace triton_metal {

std::array<uint32_t, 3> readGrid(const std::string &kernel, nb::handle grid) {
  nb::object single;
  if (!PyTuple_Check(grid.ptr()) && !PyList_Check(grid.ptr())) {
    if (!PyIndex_Check(grid.ptr()) || PyBool_Check(grid.ptr()))
      raiseAs("LaunchTypeError", kernel +
                                     ": the grid must be a tuple of 1 to 3 integers, or a "
                                     "function that returns one, not " +
                                     shown(grid.ptr()));
    single = nb::make_tuple(grid);
    grid = single;
  }
  Py_ssize_t rank = PySequence_Fast_GET_SIZE(grid.ptr());
  if (rank < 1 || rank > 3)
    raiseAs("LaunchValueError", kernel + ": the grid must have 1 to 3 dimensions, but " +
                                    shown(grid.ptr()) + " has " + std::to_string(rank));
  std::array<uint32_t, 3> sizes = {1, 1, 1};
  for (Py_ssize_t i = 0; i < rank; ++i) {
    PyObject *item = PySequence_Fast_GET_ITEM(grid.ptr(), i);
    nb::object integer = PyBool_Check(item) ? nb::object() : nb::steal(PyNumber_Index(item));
    if (!integer.is_valid()) {
      PyErr_Clear();
      raiseAs("LaunchTypeError", kernel + ": grid dimension " + std::to_string(i) +
                                     " must be an integer, not " + shown(item) +
                                     (PyFloat_Check(item) ? ": use triton.cdiv or //" : ""));
    }
    int overflow = 0;
    long long size = PyLong_AsLongLongAndOverflow(integer.ptr(), &overflow);
    if (overflow || size < 0 || size > INT32_MAX)
      raiseAs("LaunchValueError", kernel + ": grid dimension " + std::to_string(i) + " is " +
                                      shown(item) + "; it must be from 0 to 2147483647");
    sizes[static_cast<size_t>(i)] = static_cast<uint32_t>(size);
  }
  uint64_t programs = 1;
  for (uint32_t size : sizes)
    if ((programs *= size) > INT32_MAX)
      raiseAs("LaunchValueError",
              kernel + ": the grid " + shown(grid.ptr()) + " has more than 2147483647 programs");
  return sizes;
}

void checkGrid(const runtime::Metadata &metadata, std::array<uint32_t, 3> grid) {
  if (std::string problem = metadata.problemOfGrid(grid); !problem.empty())
    raiseAs("LaunchValueError", metadata.name + ": " + problem);
}

std::optional<Integer> readInteger(PyObject *object) {
  nb::object integer = nb::steal(PyNumber_Index(object));
  if (!integer.is_valid()) {
    if (classify(object) != ArgumentKind::Bool) // NumPy's booleans are no index
      throw nb::python_error();
    PyErr_Clear();
    integer = nb::steal(PyLong_FromLong(PyObject_IsTrue(object)));
  }
  Integer result;
  int overflow = 0;
  result.value = PyLong_AsLongLongAndOverflow(integer.ptr(), &overflow);
  result.bits = static_cast<uint64_t>(result.value);
  if (!overflow)
    return result;
  result.bits = overflow > 0 ? PyLong_AsUnsignedLongLong(integer.ptr()) : 0;
  if (overflow < 0 || PyErr_Occurred()) {
    PyErr_Clear();
    return std::nullopt;
  }
  result.value = INT64_MAX;
  result.needsUnsigned = true;
  return result;
}

/// Whether an integer fits into `width` bits, signed or unsigned. The contract's types are
/// signless.
static bool fits(const Integer &integer, unsigned width) {
  if (integer.value >= 0)
    return width == 64 || integer.bits >> width == 0;
  return integer.value >= -(INT64_C(1) << (width - 1)) || width == 64;
}

/// Packs a scalar in the type of the kernel's parameter.
static void packScalar(const runtime::Metadata &metadata, const runtime::Argument &argument,
                       PyObject *value, llvm::MutableArrayRef<uint32_t> words) {
  auto problem = [&](const char *exception, const std::string &message) {
    raiseAs(exception, metadata.name + ": argument " + argument.name + " " + message);
  };
  std::string type = " (" + argument.type + ")";
  bool isNumber = PyFloat_Check(value) || PyIndex_Check(value) ||
                  (PyObject_HasAttrString(value, "__float__") && !PyUnicode_Check(value));
  if (!isNumber)
    problem("LaunchTypeError", "must be a number" + type + ", not " + shown(value));
  if (argument.kind != runtime::ScalarKind::Integer) {
    double number = PyFloat_AsDouble(value);
    if (number == -1.0 && PyErr_Occurred())
      throw nb::python_error();
    runtime::packFloat(words, argument.kind, number);
    return;
  }
  ArgumentKind kind = classify(value);
  if (!PyIndex_Check(value) && kind != ArgumentKind::Bool)
    problem("LaunchTypeError", "must be an integer" + type + ", not " + shown(value));
  std::optional<Integer> integer = readInteger(value);
  unsigned width = 0;
  llvm::to_integer(llvm::StringRef(argument.type).drop_front(), width);
  if (!integer || (width && !fits(*integer, width)))
    problem("LaunchValueError",
            "is " + shown(value) + ", which does not fit its type " + argument.type);
  runtime::packInteger(words, integer->bits);
}

/// Throws unless there is one object per argument of the kernel.
static void checkCount(const runtime::Metadata &metadata, size_t count) {
  if (count == metadata.arguments.size())
    return;
  std::string names;
  for (const runtime::Argument &argument : metadata.arguments)
    names += (names.empty() ? "" : ", ") + argument.name;
  raiseAs("LaunchTypeError", metadata.name + " takes " + std::to_string(metadata.arguments.size()) +
                                 " arguments (" + names + "), but " + std::to_string(count) +
                                 " were given");
}

std::vector<uint32_t> packScalars(const runtime::Metadata &metadata, nb::sequence arguments) {
  checkCount(metadata, nb::len(arguments));
  std::vector<uint32_t> words(metadata.scalarWords);
  for (size_t i = 0; i < metadata.arguments.size(); ++i) {
    const runtime::Argument &argument = metadata.arguments[i];
    if (argument.isBuffer)
      continue;
    nb::object value = arguments[i];
    packScalar(metadata, argument, value.ptr(),
               llvm::MutableArrayRef<uint32_t>(words).slice(argument.slot, argument.words));
  }
  return words;
}

BufferBinding bindingOf(const ArrayInfo &array) {
  auto before =
      static_cast<uint64_t>(static_cast<char *>(array.data) - static_cast<char *>(array.low));
  before = std::min(before, array.bytes);
  return {array.data, array.bytes - before, array.writable, before};
}

BoundArrays::BoundArrays(const runtime::Metadata &metadata, nb::list arguments)
    : buffers(metadata.numBuffers) {
  checkCount(metadata, nb::len(arguments));
  for (size_t i = 0; i < metadata.arguments.size(); ++i) {
    const runtime::Argument &argument = metadata.arguments[i];
    if (!argument.isBuffer)
      continue;
    nb::object object = arguments[i];
    std::string place = metadata.name + ": argument " + argument.name + " ";
    ArgumentKind kind = classify(object.ptr());
    if (kind != ArgumentKind::Array && kind != ArgumentKind::Tensor &&
        kind != ArgumentKind::Pointer)
      raiseAs("LaunchTypeError",
              place + "must be an array that the host device can read, not " + shown(object.ptr()));
    auto array = std::make_unique<ArrayInfo>();
    ArrayProblem problem;
    if (!readArray(object.ptr(), kind, *array, problem))
      raiseAs(problem.isType ? "LaunchTypeError" : "LaunchValueError", place + problem.message);
    if ((argument.writes || argument.atomic) && !array->writable)
      raiseAs("LaunchValueError", place + "is a read-only array, but the kernel writes it");
    buffers[argument.slot] = bindingOf(*array);
    arrays.push_back(std::move(array));
  }
}

} // namespace triton_metal

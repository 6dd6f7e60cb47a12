#include "Arguments.h"

namespace triton_metal {

namespace {

/// What `__array_struct__` gives, as NumPy's array interface lays it out.
struct ArrayStruct {
  int two, dimensions;
  char letter;
  int itemSize, flags;
  Py_ssize_t *shape, *strides;
  void *data;
};
enum ArrayFlags { Contiguous = 1, Aligned = 0x100, NotSwapped = 0x200, Writable = 0x400 };

PyObject *arrayStructName() {
  static PyObject *name = PyUnicode_InternFromString("__array_struct__");
  return name;
}

} // namespace

bool BoundArguments::bindArray(const HeldPipeline::Parameter &parameter, PyObject *argument) {
  if (!parameter.letter)
    return false;
  Ref capsule(PyObject_GetAttr(argument, arrayStructName()));
  if (!capsule) {
    PyErr_Clear();
    return false;
  }
  if (!PyCapsule_IsValid(capsule.get(), nullptr))
    return false;
  auto *array = static_cast<ArrayStruct *>(PyCapsule_GetPointer(capsule.get(), nullptr));
  // A number of NumPy's shows a copy of itself.
  if (parameter.isWritten && array->dimensions == 0)
    return false;
  constexpr int needed = Contiguous | Aligned | NotSwapped;
  bool isWritable = array->flags & Writable;
  if (array->two != 2 || array->letter != parameter.letter ||
      static_cast<unsigned>(array->itemSize) != parameter.scalar.bytes() ||
      (array->flags & needed) != needed || (parameter.isWritten && !isWritable))
    return false;
  uint64_t bytes = static_cast<uint64_t>(array->itemSize);
  for (int i = 0; i != array->dimensions; ++i)
    bytes *= static_cast<uint64_t>(array->shape[i]);
  if (bytes % parameter.size || (parameter.isReference && bytes != parameter.size) ||
      reinterpret_cast<uintptr_t>(array->data) % parameter.alignment)
    return false;
  bindings[parameter.index] = {array->data, bytes, isWritable};
  kept.push_back(std::move(capsule));
  return true;
}

bool BoundArguments::bindScalar(const HeldPipeline::Parameter &parameter, PyObject *argument) {
  metal::Number number;
  bool isFloat =
      parameter.scalar.kind == ScalarKind::Float || parameter.scalar.kind == ScalarKind::BFloat;
  if (PyBool_Check(argument)) {
    number = argument == Py_True;
  } else if (PyLong_Check(argument)) {
    int overflow = 0;
    int64_t value = PyLong_AsLongLongAndOverflow(argument, &overflow);
    if (overflow || (value == -1 && PyErr_Occurred())) {
      PyErr_Clear();
      return false;
    }
    number = value;
  } else if (PyFloat_Check(argument) && isFloat) {
    number = PyFloat_AsDouble(argument);
  } else {
    return false;
  }
  llvm::SmallVector<char, 8> bytes;
  if (llvm::Error error = metal::appendNumber(number, parameter.scalar, bytes)) {
    llvm::consumeError(std::move(error));
    return false;
  }
  if (!scalars)
    scalars = std::make_shared<Scalars>();
  void *place = &(*scalars)[2 * parameter.index];
  std::copy(bytes.begin(), bytes.end(), static_cast<char *>(place));
  bindings[parameter.index] = {place, bytes.size(), false};
  return true;
}

bool BoundArguments::bindSlowly(const HeldPipeline &pipeline, size_t position, PyObject *argument) {
  Ref parameter(PySequence_GetItem(pipeline.parameters.get(), static_cast<Py_ssize_t>(position)));
  if (!parameter)
    return false;
  Ref found(PyObject_CallFunctionObjArgs(pipeline.convert.get(), argument, parameter.get(),
                                         pipeline.plan[position].isWritten ? Py_True : Py_False,
                                         nullptr));
  if (!found)
    return false;
  if (found.get() == Py_None)
    return true;
  unsigned long long address = 0, bytes = 0;
  int isWritable = 0;
  PyObject *holder = nullptr;
  if (!PyArg_ParseTuple(found.get(), "KKpO", &address, &bytes, &isWritable, &holder))
    return false;
  bindings[pipeline.plan[position].index] = {reinterpret_cast<void *>(address), bytes,
                                             isWritable != 0};
  kept.push_back(Ref::borrow(holder));
  return true;
}

bool BoundArguments::bindResources(const HeldPipeline &pipeline, PyObject *arguments,
                                   Py_ssize_t count) {
  uint32_t taken = 0, index = maxBufferBindings;
  for (const HeldPipeline::Parameter &parameter : pipeline.plan)
    taken |= 1u << parameter.index;
  for (auto i = static_cast<Py_ssize_t>(pipeline.plan.size()); i != count; ++i) {
    do {
      if (!index) {
        PyErr_Format(PyExc_ValueError, "a launch can have %u buffers and resources in all",
                     maxBufferBindings);
        return false;
      }
      --index;
    } while (taken >> index & 1);
    unsigned long long address = 0, bytes = 0;
    int isWritable = 0;
    PyObject *holder = nullptr;
    if (!PyArg_ParseTuple(PyTuple_GetItem(arguments, i), "KKpO", &address, &bytes, &isWritable,
                          &holder))
      return false;
    if (bindings.size() <= index)
      bindings.resize(index + 1);
    bindings[index] = {reinterpret_cast<void *>(address), bytes, isWritable != 0};
  }
  return true;
}

bool BoundArguments::bind(const HeldPipeline &pipeline, PyObject *arguments) {
  Py_ssize_t count = PyTuple_Size(arguments);
  if (count < 0)
    return false;
  if (static_cast<size_t>(count) < pipeline.plan.size()) {
    PyErr_SetString(PyExc_TypeError, "each buffer parameter needs one argument");
    return false;
  }
  uint32_t end = 0;
  for (const HeldPipeline::Parameter &parameter : pipeline.plan)
    end = std::max(end, parameter.index + 1);
  bindings.resize(end);
  for (size_t i = 0; i != pipeline.plan.size(); ++i) {
    const HeldPipeline::Parameter &parameter = pipeline.plan[i];
    PyObject *argument = PyTuple_GetItem(arguments, static_cast<Py_ssize_t>(i));
    bool done = parameter.exists && ((parameter.isNumber && bindScalar(parameter, argument)) ||
                                     bindArray(parameter, argument));
    if (!done && !bindSlowly(pipeline, i, argument))
      return false;
  }
  if (!bindResources(pipeline, arguments, count))
    return false;
  kept.push_back(Ref::borrow(arguments));
  return true;
}

} // namespace triton_metal

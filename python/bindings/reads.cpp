// Repeats the reads of a kernel's walk at every launch. Most of them are a comparison of pointers.
#include "Reads.h"
#include "Bindings.h"

#include <cstring>

namespace triton_metal {

namespace {

PyObject *constexprType() {
  static PyObject *type =
      nb::object(nb::module_::import_("triton_metal.constexpr").attr("constexpr")).release().ptr();
  return type;
}

/// Whether a named tuple has no attributes besides its fields.
bool isNamedTuple(PyObject *object) {
  return PyTuple_Check(object) && !PyTuple_CheckExact(object) &&
         PyObject_HasAttrString(reinterpret_cast<PyObject *>(Py_TYPE(object)), "_fields");
}

bool sameBits(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }

bool equal(PyObject *a, PyObject *b) {
  int result = PyObject_RichCompareBool(a, b, Py_EQ);
  if (result < 0)
    PyErr_Clear();
  return result == 1;
}

/// Whether two objects are methods of one function, the second one of `ownerNow` where the first
/// one was of `ownerThen`; without that it was of an owner that may be another one now.
bool sameMethod(PyObject *expected, PyObject *found, PyObject *ownerThen, PyObject *ownerNow) {
  PyObject *selfThen, *selfNow;
  if (PyMethod_Check(expected) && PyMethod_Check(found)) {
    if (PyMethod_GET_FUNCTION(expected) != PyMethod_GET_FUNCTION(found))
      return false;
    selfThen = PyMethod_GET_SELF(expected);
    selfNow = PyMethod_GET_SELF(found);
  } else if (PyCFunction_Check(expected) && PyCFunction_Check(found)) {
    if (PyCFunction_GET_FUNCTION(expected) != PyCFunction_GET_FUNCTION(found))
      return false;
    selfThen = PyCFunction_GET_SELF(expected);
    selfNow = PyCFunction_GET_SELF(found);
  } else {
    return false;
  }
  return selfNow == (!ownerThen || selfThen == ownerThen ? ownerNow : selfThen);
}

} // namespace

PyObject *unwrapped(PyObject *object) {
  while (reinterpret_cast<PyObject *>(Py_TYPE(object)) == constexprType()) {
    static PyObject *name = PyUnicode_InternFromString("value");
    PyObject *value = PyObject_GetAttr(object, name);
    if (!value) {
      PyErr_Clear();
      return object;
    }
    Py_DECREF(value); // the slot holds it
    object = value;
  }
  return object;
}

bool sameContent(PyObject *a, PyObject *b) {
  if (a == b)
    return true;
  if (Py_TYPE(a) != Py_TYPE(b))
    return false;
  if (PyFloat_CheckExact(a))
    return sameBits(PyFloat_AS_DOUBLE(a), PyFloat_AS_DOUBLE(b));
  if (PyComplex_CheckExact(a))
    return sameBits(PyComplex_RealAsDouble(a), PyComplex_RealAsDouble(b)) &&
           sameBits(PyComplex_ImagAsDouble(a), PyComplex_ImagAsDouble(b));
  if (PyTuple_CheckExact(a) || isNamedTuple(a)) {
    Py_ssize_t size = PyTuple_GET_SIZE(a);
    bool same = size == PyTuple_GET_SIZE(b);
    for (Py_ssize_t i = 0; same && i < size; ++i)
      same = sameContent(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i));
    return same;
  }
  if (PyLong_CheckExact(a) || PyUnicode_CheckExact(a) || PyBytes_CheckExact(a) ||
      nb::isinstance<language::Type>(nb::handle(a)))
    return equal(a, b);
  return false;
}

void appendConstant(PyObject *object, llvm::SmallVectorImpl<char> &key,
                    std::vector<PyObject *> &objects) {
  auto append = [&](char tag, const void *data, size_t size) {
    key.push_back(tag);
    key.append(static_cast<const char *>(data), static_cast<const char *>(data) + size);
  };
  object = unwrapped(object);
  if (object == Py_None || PyBool_Check(object)) {
    key.push_back(object == Py_None ? 'n' : object == Py_True ? 't' : 'f');
    return;
  }
  if (PyLong_CheckExact(object)) {
    int overflow = 0;
    long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (!overflow) {
      append('i', &value, sizeof value);
      return;
    }
  } else if (PyFloat_CheckExact(object)) {
    double value = PyFloat_AS_DOUBLE(object);
    append('d', &value, sizeof value);
    return;
  } else if (PyUnicode_CheckExact(object)) {
    Py_ssize_t size = 0;
    const char *text = PyUnicode_AsUTF8AndSize(object, &size);
    if (!text)
      throw nb::python_error();
    append('s', &size, sizeof size);
    key.append(text, text + size);
    return;
  } else if (PyTuple_CheckExact(object)) {
    Py_ssize_t size = PyTuple_GET_SIZE(object);
    append('(', &size, sizeof size);
    for (Py_ssize_t i = 0; i < size; ++i)
      appendConstant(PyTuple_GET_ITEM(object, i), key, objects);
    return;
  } else if (nb::isinstance<language::Type>(nb::handle(object))) {
    std::string text = nb::cast<const language::Type &>(nb::handle(object)).mangled();
    size_t size = text.size();
    append('y', &size, sizeof size);
    key.append(text.begin(), text.end());
    return;
  }
  // Named tuples may have attributes besides their elements.
  PyTypeObject *type = Py_TYPE(object);
  append('o', &type, sizeof type);
  objects.push_back(object);
}

Reads::Reads(nb::handle objects, nb::handle steps, unsigned numSlots, bool isVolatile)
    : isVolatile(isVolatile), numSlots(numSlots) {
  for (nb::handle result : objects)
    this->objects.push_back(nb::cast<ReadResult>(result));
  for (nb::handle entry : steps) {
    nb::tuple fields = nb::cast<nb::tuple>(entry);
    Step step{nb::cast<Read>(fields[0]), nb::cast<ReadResult>(fields[3]),
              nb::cast<int>(fields[5]),  {},
              nb::borrow(fields[2]),     nb::borrow(fields[4])};
    for (nb::handle operand : fields[1]) {
      nb::tuple pair = nb::cast<nb::tuple>(operand);
      int slot = nb::cast<int>(pair[1]);
      step.operands.push_back({slot < 0 ? nb::borrow(pair[0]) : nb::object(), slot});
    }
    this->steps.push_back(std::move(step));
  }
}

bool Reads::holds(const Step &step, std::vector<nb::object> &slots) const {
  auto operand = [&](size_t i) {
    const Operand &operand = step.operands[i];
    return operand.slot < 0 ? operand.object.ptr() : slots[static_cast<size_t>(operand.slot)].ptr();
  };
  PyObject *first = operand(0);
  nb::object owned;
  PyObject *found = nullptr;
  switch (step.kind) {
  case Read::Name:
    found = PyDict_GetItem(first, step.name.ptr());
    break;
  case Read::Cell:
    found = PyCell_GET(first);
    break;
  case Read::Function: {
    auto same = [&](PyObject *now, Py_ssize_t i) {
      return (now ? now : Py_None) == PyTuple_GET_ITEM(step.expected.ptr(), i);
    };
    return same(PyFunction_GET_CODE(first), 0) && same(PyFunction_GET_DEFAULTS(first), 1) &&
           same(PyFunction_GET_KW_DEFAULTS(first), 2);
  }
  case Read::Attribute:
    owned = nb::steal(PyObject_GetAttr(first, step.name.ptr()));
    break;
  case Read::Call: {
    std::vector<PyObject *> arguments;
    for (size_t i = 1; i < step.operands.size(); ++i)
      arguments.push_back(operand(i));
    size_t keywords = static_cast<size_t>(PyTuple_GET_SIZE(step.name.ptr()));
    owned = nb::steal(PyObject_Vectorcall(first, arguments.data(), arguments.size() - keywords,
                                          keywords ? step.name.ptr() : nullptr));
    break;
  }
  }
  if (owned.is_valid())
    found = owned.ptr();
  if (!found) {
    PyErr_Clear(); // the walk will meet it again, and say where
    return step.result == ReadResult::Missing;
  }
  found = unwrapped(found);
  if (step.slot >= 0)
    slots[static_cast<size_t>(step.slot)] = nb::borrow(found);
  PyObject *expected = step.expected.ptr();
  switch (step.result) {
  case ReadResult::Equal:
    return sameContent(expected, found);
  case ReadResult::Same:
    return expected == found;
  case ReadResult::Alike:
    return Py_TYPE(expected) == Py_TYPE(found);
  case ReadResult::Method:
    return sameMethod(expected, found, step.slot >= 0 ? nullptr : step.operands[0].object.ptr(),
                      first);
  case ReadResult::Missing:
  case ReadResult::Function:
    return false;
  }
  return false;
}

bool Reads::hold(const std::vector<PyObject *> &now, const std::vector<nb::object> &before) const {
  if (isVolatile)
    return false;
  for (size_t i = 0; i < now.size(); ++i) {
    PyObject *then = before[i].ptr();
    bool same =
        now[i] == then || (objects[i] == ReadResult::Equal   ? sameContent(then, now[i])
                           : objects[i] == ReadResult::Alike ? Py_TYPE(then) == Py_TYPE(now[i])
                                                             : false);
    if (!same)
      return false;
  }
  std::vector<nb::object> slots(numSlots);
  for (size_t i = 0; i < now.size(); ++i)
    slots[i] = nb::borrow(now[i]);
  for (const Step &step : steps)
    if (!holds(step, slots))
      return false;
  return true;
}

void bindReads(nb::module_ &module) {
  nb::enum_<Read>(module, "Read")
      .value("name", Read::Name)
      .value("cell", Read::Cell)
      .value("function", Read::Function)
      .value("attribute", Read::Attribute)
      .value("call", Read::Call);
  nb::enum_<ReadResult>(module, "ReadResult")
      .value("missing", ReadResult::Missing)
      .value("equal", ReadResult::Equal)
      .value("same", ReadResult::Same)
      .value("alike", ReadResult::Alike)
      .value("method", ReadResult::Method)
      .value("function", ReadResult::Function);
  module.def(
      "same_content", [](nb::handle a, nb::handle b) { return sameContent(a.ptr(), b.ptr()); },
      nb::arg().none(), nb::arg().none());
}

} // namespace triton_metal

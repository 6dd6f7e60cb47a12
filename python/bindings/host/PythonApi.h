// Python's limited API, and what this module adds to it.
#pragma once

#define Py_LIMITED_API 0x030A0000
#define PY_SSIZE_T_CLEAN
#include "python/bindings/WithoutLock.h"

#include <Python.h>

#include <string>
#include <utility>

namespace triton_metal {

/// A reference that is owned. Python's lock must be held where it is made and destroyed.
class Ref {
public:
  Ref() = default;
  explicit Ref(PyObject *owned) : object(owned) {}
  static Ref borrow(PyObject *object) {
    Py_IncRef(object);
    return Ref(object);
  }
  Ref(Ref &&other) noexcept : object(std::exchange(other.object, nullptr)) {}
  Ref &operator=(Ref &&other) noexcept {
    std::swap(object, other.object);
    return *this;
  }
  ~Ref() { Py_DecRef(object); }
  PyObject *get() const { return object; }
  PyObject *release() { return std::exchange(object, nullptr); }
  explicit operator bool() const { return object; }

private:
  PyObject *object = nullptr;
};

/// A Python object that holds a C++ object. `name` is a literal.
template <typename T> PyObject *wrapped(T *object, const char *name) {
  PyObject *capsule = PyCapsule_New(object, name, [](PyObject *self) {
    delete static_cast<T *>(PyCapsule_GetPointer(self, PyCapsule_GetName(self)));
  });
  if (!capsule)
    delete object;
  return capsule;
}
/// The C++ object of a Python object, or null with an error set.
template <typename T> T *unwrapped(PyObject *capsule, const char *name) {
  return static_cast<T *>(PyCapsule_GetPointer(capsule, name));
}

inline PyObject *toPython(const std::string &text) {
  return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
}

/// A function of the module. The table ends with a null name.
extern PyMethodDef metalMethods[];
extern PyMethodDef launchMethods[];
extern PyMethodDef memoryMethods[];
/// Adds the module's exceptions. Returns -1 with an error set.
int addExceptions(PyObject *module);

} // namespace triton_metal

// Python's lock, given back while C++ code works, also while the interpreter ends.
#pragma once

#include <Python.h>

#include <exception>
#include <unistd.h>

namespace triton_metal {

/// A call that may wait for Python's lock. While the interpreter ends, Python up to 3.13 ends other
/// threads in such a call, by unwinding their stacks, which the C++ frames below do not survive:
/// nanobind catches what it does not know, and destructors do not throw. A thread that is unwound
/// sleeps here until the process has ended, as all do from Python 3.14 on. It has given the lock
/// back by then.
class TakingLock {
public:
  TakingLock() = default;
  TakingLock(const TakingLock &) = delete;
  ~TakingLock() {
    while (!isTaken)
      pause();
  }
  void taken() { isTaken = true; }

private:
  bool isTaken = false;
};

/// Other threads run Python meanwhile.
class WithoutLock {
public:
  WithoutLock() : state(PyEval_SaveThread()) {}
  ~WithoutLock() noexcept(false) {
    TakingLock taking;
    PyEval_RestoreThread(state);
    taking.taken();
  }
  WithoutLock(const WithoutLock &) = delete;

private:
  PyThreadState *state;
};

/// Runs code that needs Python's lock in a thread that may not have it. Exceptions of the code
/// derive from std::exception.
template <typename Code> auto withLock(Code code) {
  TakingLock taking; // also where Python ends the thread while the code runs Python
  PyGILState_STATE state = PyGILState_Ensure();
  try {
    auto result = code();
    PyGILState_Release(state);
    taking.taken();
    return result;
  } catch (const std::exception &) {
    PyGILState_Release(state);
    taking.taken();
    throw;
  }
}

#ifndef Py_LIMITED_API
/// A scope whose code runs Python, in a thread that has the lock. Python that runs there may give
/// the lock to another thread, and end this one as TakingLock says.
class RunsPython {
public:
  RunsPython() = default;
  RunsPython(const RunsPython &) = delete;
  ~RunsPython() {
    while (!PyGILState_Check())
      pause();
  }
};
#endif

} // namespace triton_metal

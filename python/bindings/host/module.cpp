// triton_metal_host._engine: the host device's table of functions in a capsule, its API for Python,
// and the scanner of Metal text. Python's limited API, so that one module serves every version.
#include "PythonApi.h"

#include "host_device/Checks.h"
#include "host_device/Compiling.h"
#include "host_device/Interface.h"
#include "host_device/Scanner.h"
#include "host_device/metal/Library.h"

namespace {

PyObject *textOf(const std::string &text) {
  return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
}

PyObject *findQuirks(PyObject *, PyObject *arguments) {
  const char *text = nullptr, *file = nullptr;
  Py_ssize_t size = 0;
  int safeMath = 0;
  if (!PyArg_ParseTuple(arguments, "s#sp", &text, &size, &file, &safeMath))
    return nullptr;
  triton_metal::QuirkOptions options;
  options.text.fileName = file;
  options.safeMath = safeMath;
  std::string hits;
  {
    triton_metal::WithoutLock unlocked;
    hits = triton_metal::quirksAsJson(llvm::StringRef(text, static_cast<size_t>(size)), options);
  }
  return textOf(hits);
}

PyObject *quirkRows(PyObject *, PyObject *) { return textOf(triton_metal::quirkRowsAsJson()); }

PyObject *scannerVersion(PyObject *, PyObject *) {
  return textOf(triton_metal::quirkScannerVersion());
}

PyObject *includesBeside(PyObject *, PyObject *arguments) {
  const char *text = nullptr;
  Py_ssize_t size = 0;
  if (!PyArg_ParseTuple(arguments, "s#", &text, &size))
    return nullptr;
  llvm::StringRef source(text, static_cast<size_t>(size));
  return PyBool_FromLong(triton_metal::metal::includesBeside(source));
}

PyMethodDef methods[] = {{"find_quirks", findQuirks, METH_VARARGS,
                          "find_quirks(text, file_name, safe_math): the findings as JSON."},
                         {"quirk_rows", quirkRows, METH_NOARGS, "The rows of the scanner as JSON."},
                         {"scanner_version", scannerVersion, METH_NOARGS,
                          "What besides the text determines the findings."},
                         {"includes_beside", includesBeside, METH_VARARGS,
                          "includes_beside(text): whether it includes files by quoted names."},
                         {nullptr, nullptr, 0, nullptr}};

/// Adds a new reference to the module. Returns whether that failed.
bool add(PyObject *module, const char *name, PyObject *value) {
  bool failed = !value || PyModule_AddObjectRef(module, name, value) < 0;
  Py_XDECREF(value);
  return failed;
}

template <typename TextT, size_t size> PyObject *tupleOf(const TextT (&texts)[size]) {
  PyObject *tuple = PyTuple_New(size);
  for (size_t i = 0; tuple && i != size; ++i) {
    PyObject *text = textOf(std::string(texts[i]));
    if (!text || PyTuple_SetItem(tuple, static_cast<Py_ssize_t>(i), text) < 0)
      Py_CLEAR(tuple);
  }
  return tuple;
}

int execute(PyObject *module) {
  // The thread that ends the interpreter may never have compiled.
  Py_AtExit(triton_metal::Compiling::finish);
  const void *table = &triton_metal::hostDeviceTable();
  if (add(module, "table",
          PyCapsule_New(const_cast<void *>(table), triton_metal::hostDeviceCapsule, nullptr)) ||
      add(module, "check_names", tupleOf(triton_metal::Checks::names)) ||
      add(module, "language_versions", tupleOf(triton_metal::metal::languageVersions)) ||
      add(module, "default_max_steps",
          PyLong_FromUnsignedLongLong(triton_metal::defaultMaxSteps)) ||
      PyModule_AddFunctions(module, triton_metal::metalMethods) ||
      PyModule_AddFunctions(module, triton_metal::launchMethods) ||
      PyModule_AddFunctions(module, triton_metal::memoryMethods))
    return -1;
  return triton_metal::addExceptions(module);
}

PyModuleDef_Slot slots[] = {{Py_mod_exec, reinterpret_cast<void *>(execute)}, {0, nullptr}};
PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "_engine",
                          "The host Metal device, as a table of functions in a capsule.",
                          0,
                          methods,
                          slots,
                          nullptr,
                          nullptr,
                          nullptr};

} // namespace

PyMODINIT_FUNC PyInit__engine() { return PyModuleDef_Init(&definition); }

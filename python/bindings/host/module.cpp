// triton_metal_host._engine: the host device's table of functions in a capsule. Python's limited
// API, so that one module serves every version.
#define Py_LIMITED_API 0x030A0000
#include <Python.h>

#include "host_device/Interface.h"

namespace {

int execute(PyObject *module) {
  const void *table = &triton_metal::hostDeviceTable();
  PyObject *capsule =
      PyCapsule_New(const_cast<void *>(table), triton_metal::hostDeviceCapsule, nullptr);
  if (!capsule)
    return -1;
  int failed = PyModule_AddObjectRef(module, "table", capsule);
  Py_DecRef(capsule);
  return failed;
}

PyModuleDef_Slot slots[] = {{Py_mod_exec, reinterpret_cast<void *>(execute)}, {0, nullptr}};
PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "_engine",
                          "The host Metal device, as a table of functions in a capsule.",
                          0,
                          nullptr,
                          slots,
                          nullptr,
                          nullptr,
                          nullptr};

} // namespace

PyMODINIT_FUNC PyInit__engine() { return PyModuleDef_Init(&definition); }

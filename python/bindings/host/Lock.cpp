// Python's lock, also while the interpreter ends.
#include "PythonApi.h"

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif

namespace triton_metal {

/// The thread in which an interpreter ends, unless a program embeds it otherwise.
static bool isMainThread() {
#ifdef __linux__
  return syscall(SYS_gettid) == getpid();
#else
  return pthread_main_np();
#endif
}

void takeLock(PyThreadState *state) {
  // Public from Python 3.13 on; the versions before have it with an underscore.
  using Answer = int (*)();
  static const Answer isFinalizing = [] {
    void *found = dlsym(RTLD_DEFAULT, "Py_IsFinalizing");
    return reinterpret_cast<Answer>(found ? found : dlsym(RTLD_DEFAULT, "_Py_IsFinalizing"));
  }();
  while (isFinalizing && isFinalizing() && !isMainThread())
    pause();
  PyEval_RestoreThread(state);
}

} // namespace triton_metal

#include "host_device/engine/ReplaceFile.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Errc.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Process.h"
#include <atomic>
#include <chrono>

using namespace llvm;

namespace triton_metal::engine {

std::error_code createFileBeside(StringRef path, int &descriptor, std::string &name) {
  // LLVM's createUniqueFile replaces each '%' of the folder, too.
  static std::atomic<uint32_t> count{0};
  std::error_code code;
  // A file of this name is one that another machine makes, or that a process has left.
  for (unsigned attempts = 0; attempts != 16; ++attempts) {
    uint64_t now = std::chrono::steady_clock::now().time_since_epoch().count();
    name = (path + "." + Twine::utohexstr(sys::Process::getProcessId()) + "-" +
            Twine::utohexstr(now) + "-" + Twine::utohexstr(count++) + ".tmp")
               .str();
    code = sys::fs::openFileForWrite(name, descriptor, sys::fs::CD_CreateNew, sys::fs::OF_None);
    if (code != errc::file_exists)
      break;
  }
  return code;
}

std::error_code writeTo(raw_fd_ostream &out, function_ref<void(raw_ostream &)> write) {
  write(out);
  out.close();
  std::error_code code = out.error();
  out.clear_error();
  return code;
}

std::error_code replaceFile(StringRef path, function_ref<void(raw_ostream &)> write) {
  std::string temporary;
  int descriptor;
  if (std::error_code code = createFileBeside(path, descriptor, temporary))
    return code;
  raw_fd_ostream out(descriptor, /*shouldClose=*/true);
  std::error_code code = writeTo(out, write);
  if (!code)
    code = sys::fs::rename(temporary, path);
  if (code)
    sys::fs::remove(temporary);
  return code;
}

} // namespace triton_metal::engine

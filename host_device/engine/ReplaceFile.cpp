#include "host_device/engine/ReplaceFile.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"

using namespace llvm;

namespace triton_metal::engine {

std::error_code writeTo(raw_fd_ostream &out, function_ref<void(raw_ostream &)> write) {
  write(out);
  out.close();
  std::error_code code = out.error();
  out.clear_error();
  return code;
}

std::error_code replaceFile(StringRef path, function_ref<void(raw_ostream &)> write) {
  SmallString<128> temporary;
  int descriptor;
  if (std::error_code code =
          sys::fs::createUniqueFile(path + ".%%%%%%%%.tmp", descriptor, temporary))
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

// A tool of the build. It parses the Metal standard library and writes the result, together with a
// source file that embeds it.
#include "host_device/msl/Invocation.h"
#include "clang/Basic/Version.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace triton_metal {
// The tool itself has no embedded library; it creates it.
EmbeddedPrelude embeddedPrelude() { return {}; }
const char *hostDeviceSourceHash();
const char *hostDeviceSourceHash() { return ""; }
} // namespace triton_metal

int main(int argc, char **argv) {
  if (argc != 3) {
    errs() << "usage: triton_metal_make_prelude <stdlib.pch> <Prelude.cpp>\n";
    return 1;
  }
  std::string bytes = triton_metal::parsePrelude();
  std::error_code code;
  raw_fd_ostream data(argv[1], code, sys::fs::OF_None);
  if (!code)
    data << bytes;
  raw_fd_ostream source(argv[2], code, sys::fs::OF_None);
  if (code) {
    errs() << code.message() << "\n";
    return 1;
  }
  SHA256 hash;
  hash.update(bytes);
  // With the hash, the text differs if the embedded bytes differ, so that a compiler cache
  // distinguishes them.
  source << "// " << toHex(hash.final()) << "\n"
         << "#include \"host_device/msl/Invocation.h\"\n\n";
  if (bytes.empty()) {
    source << "namespace triton_metal {\nEmbeddedPrelude embeddedPrelude() { return {}; }\n}\n";
    return 0;
  }
  source << "#ifdef __APPLE__\n#define SECTION \".section __TEXT,__const\\n\"\n#define SYMBOL "
            "\"_tm_prelude\"\n#else\n"
            "#define SECTION \".section .rodata,\\\"a\\\"\\n\"\n#define SYMBOL "
            "\"tm_prelude\"\n#endif\n"
            "__asm__(SECTION \".p2align 4\\n\" SYMBOL \":\\n.incbin \\\""
         << argv[1] << "\\\"\\n.byte 0\\n.text\\n\");\n"
         << "extern \"C\" __attribute__((visibility(\"hidden\"))) const char tm_prelude[];\n\n"
         << "namespace triton_metal {\nEmbeddedPrelude embeddedPrelude() {\n  return "
            "{llvm::StringRef(tm_prelude, "
         << bytes.size() << "), R\"__tm__(" << clang::getClangFullVersion()
         << ")__tm__\"};\n}\n}\n";
  return 0;
}

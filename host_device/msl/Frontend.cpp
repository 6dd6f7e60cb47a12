#include "host_device/msl/Frontend.h"
#include "host_device/msl/ParsedText.h"
#include "host_device/msl/Stdlib.h"
#include "clang/Basic/Version.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"

using namespace llvm;

namespace triton_metal {

Expected<CompiledMsl> compileMsl(StringRef source, const MslOptions &options,
                                 LLVMContext &context) {
  HostFiles files;
  Expected<std::unique_ptr<ParsedText>> text = ParsedText::parse(source, options, files);
  if (!text)
    return text.takeError();
  std::vector<std::string> names;
  for (const KernelInfo &kernel : (*text)->kernels(options.functionConstants))
    names.push_back(kernel.name);
  return (*text)->generate(names, options.functionConstants, context);
}

/// The hash of this program's sources. The build writes it.
const char *hostDeviceSourceHash();

std::string frontendVersion() {
  [[clang::no_destroy]] static const std::string version = [] {
    SHA256 hash;
    hash.update(clang::getClangFullVersion());
    for (const StdlibHeader &header : stdlibHeaders()) {
      hash.update(header.name);
      hash.update(header.text);
    }
    hash.update(hostDeviceSourceHash());
    return "msl-" + toHex(hash.final(), /*LowerCase=*/true).substr(0, 16);
  }();
  return version;
}

} // namespace triton_metal

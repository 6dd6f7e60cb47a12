// clang's static code generator asks for Polly where its package was built with it. The host device
// runs none of clang's own optimisation pipeline, so an extension that adds nothing takes Polly's
// place.
#include "llvm/Plugins/PassPlugin.h"

llvm::PassPluginLibraryInfo getPollyPluginInfo();
llvm::PassPluginLibraryInfo getPollyPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "none", LLVM_VERSION_STRING, [](llvm::PassBuilder &) {}};
}

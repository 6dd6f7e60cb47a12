// metal-run: compiles Metal kernels for the host and runs them on arrays from files.
#include "tools/metal-run/Tool.h"
#include "llvm/Support/InitLLVM.h"

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  return triton_metal::runToolOnStreams(std::vector<std::string>(argv + 1, argv + argc));
}

// Compiles texts of Triton IR one after another, in one process: what tests/fuzz/*.py and `make
// sanitize` drive.
//
// A request on the standard input is a line `BYTES NUM_WARPS NUM_STAGES CHECK_METAL` and the text.
// The answer is a line `STATUS MILLISECONDS BYTES` (the time to Metal text) and a message. STATUS
// says where the text came to an end: `refused` (the message is the compiler's diagnostics),
// `metal` (it compiles to Metal that the host device's front end refuses), `invalid` (the
// compiler refused without an error), or `ok` (the message is the Metal text).

#include "compiler/pipeline/Pipeline.h"
#include "host_device/msl/Frontend.h"

#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <cstdio>
#include <string>

using namespace triton_metal;

namespace {

struct Answer {
  const char *status;
  std::string message;
};

using Milliseconds = std::chrono::duration<double, std::milli>;

Answer compileOne(const std::string &text, const CompileOptions &options, bool checkMetal,
                  Milliseconds &time) {
  std::string diagnostics;
  auto start = std::chrono::steady_clock::now();
  mlir::FailureOr<CompiledKernel> kernel = compileText(text, "text.ttir", options, diagnostics);
  time = std::chrono::steady_clock::now() - start;
  if (mlir::failed(kernel)) {
    if (diagnostics.find("error: ") == std::string::npos)
      return {"invalid", "refused without an error: " + diagnostics};
    return {"refused", diagnostics};
  }
  if (!checkMetal)
    return {"ok", kernel->metal};
  llvm::LLVMContext context;
  llvm::Expected<CompiledMsl> metal = compileMsl(kernel->metal, MslOptions(), context);
  if (!metal)
    return {"metal", llvm::toString(metal.takeError()) + "\n" + kernel->metal};
  return {"ok", kernel->metal};
}

} // namespace

int main() {
  unsigned long long bytes;
  int numWarps, numStages, checkMetal;
  while (std::scanf("%llu %d %d %d", &bytes, &numWarps, &numStages, &checkMetal) == 4) {
    std::getchar();
    std::string text(bytes, '\0');
    if (std::fread(text.data(), 1, bytes, stdin) != bytes)
      return 1;
    CompileOptions options;
    options.numWarps = numWarps;
    options.numStages = numStages;
    Milliseconds time;
    Answer answer = compileOne(text, options, checkMetal, time);
    std::printf("%s %.1f %zu\n", answer.status, time.count(), answer.message.size());
    std::fwrite(answer.message.data(), 1, answer.message.size(), stdout);
    std::fflush(stdout);
  }
  return 0;
}

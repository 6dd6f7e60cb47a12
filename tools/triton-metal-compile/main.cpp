// Compiles a kernel in Triton IR to Metal, or prints it at one of the stages.

#include "compiler/dialect/tt/Import.h"
#include "compiler/pipeline/Pipeline.h"
#include "compiler/pipeline/Register.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"

#include <chrono>

using namespace mlir;

static const char kHelp[] =
    R"(triton-metal-compile: turns a Triton kernel into a Metal kernel

  triton-metal-compile KERNEL.ttir [options]

KERNEL.ttir holds one kernel as Triton IR: the text of `kernel.asm["ttir"]`, from Triton or from triton-metal.
`-` reads it from the standard input.

  -o FILE           write the result to FILE (without it: the standard output)
  --emit=WHAT       what to write:
                      metal      Metal Shading Language, ready for Apple's compiler (the default)
                      metadata   JSON for a launcher: arguments, threads of a threadgroup, threadgroup bytes
                      ttir, ttm, msl
                                 the compiler's own text of the kernel at a stop on the way: as it came, as tiles
                                 with layouts, and as what one thread does
  --num-warps=N     SIMD-groups (of 32 threads) of a threadgroup: 1, 2, 4, 8, 16 or 32 (default: chosen)
  --num-stages=N    2 or more double-buffers the tiles of matrix products in loops, 1 does not (default: chosen)
  --target=TEXT     what the kernel is for, as `python -m triton_metal doctor` prints it: a version of Metal, limits and
                    features (msl=3.1,threads=1024,threadgroup=32768,bfloat,simdgroup_matrix); what it lacks is
                    refused (default: the newest baseline)
  --precise-math    functions and `/` as precise as Metal's, not within the bounds of docs/arithmetic.md
  --no-fp-fusion    no fma of a product and a sum
  --repeat=N        compile N times and print the milliseconds of the fastest to the standard error
  --help            this text

The kernel that comes out is launched with one threadgroup for each program of the grid. Exit status: 0, or 1 with the
reason on the standard error.

Example:
  triton-metal-compile softmax.ttir --num-warps=8 -o softmax.metal
)";

static int fail(const llvm::Twine &message) {
  llvm::errs() << "triton-metal-compile: " << message << "\n";
  return 1;
}

int main(int argc, char **argv) {
  std::string input, output = "-", emit = "metal";
  triton_metal::CompileOptions options;
  int repeat = 0;
  for (int index = 1; index < argc; ++index) {
    llvm::StringRef argument = argv[index];
    // Both `--name=value` and `--name value`.
    auto take = [&](llvm::StringRef name, std::string &value) {
      if (argument.consume_front(name)) {
        if (argument.consume_front("=")) {
          value = argument.str();
          return true;
        }
        if (argument.empty() && index + 1 < argc) {
          value = argv[++index];
          return true;
        }
        argument = argv[index];
      }
      return false;
    };
    std::string number;
    auto takeNumber = [&](llvm::StringRef name, int &value, bool &bad) {
      if (!take(name, number))
        return false;
      bad = llvm::StringRef(number).getAsInteger(10, value);
      return true;
    };
    bool bad = false;
    if (argument == "--help" || argument == "-h") {
      llvm::outs() << kHelp;
      return 0;
    }
    if (takeNumber("--num-warps", options.numWarps, bad) ||
        takeNumber("--num-stages", options.numStages, bad)) {
      if (bad)
        return fail("'" + number + "' is not a number");
    } else if (takeNumber("--repeat", repeat, bad)) {
      if (bad || repeat < 1)
        return fail("--repeat takes a number from 1 on, not '" + number + "'");
    } else if (take("-o", output) || take("--emit", emit) || take("--target", options.target)) {
    } else if (argument == "--precise-math") {
      options.arithmetic.precise = true;
    } else if (argument == "--no-fp-fusion") {
      options.arithmetic.fused = false;
    } else if (argument.starts_with("-") && argument != "-") {
      return fail("there is no option '" + argument + "'; --help says which there are");
    } else if (input.empty()) {
      input = argument.str();
    } else {
      return fail("one kernel at a time: '" + input + "' and '" + argument + "' were given");
    }
  }
  if (input.empty())
    return fail("no kernel was given; --help says how");
  if (!llvm::is_contained({"ttir", "ttm", "msl", "metal", "metadata"}, emit))
    return fail("--emit takes ttir, ttm, msl, metal or metadata, not '" + emit + "'");
  options.printStages = emit == "ttm" || emit == "msl";
  if (options.numWarps &&
      (options.numWarps < 1 || options.numWarps > 32 || !llvm::isPowerOf2_32(options.numWarps)))
    return fail("--num-warps takes 1, 2, 4, 8, 16 or 32");
  if (options.numStages < 0)
    return fail("--num-stages takes 1 or more");

  std::string error;
  std::unique_ptr<llvm::MemoryBuffer> buffer = openInputFile(input, &error);
  if (!buffer)
    return fail(error);
  DialectRegistry registry;
  triton_metal::registerAllDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(buffer), llvm::SMLoc());
  OwningOpRef<ModuleOp> module;
  {
    SourceMgrDiagnosticHandler handler(sources, &context);
    module = triton_metal::tt::parseModule(sources, &context);
  }
  if (!module)
    return fail("'" + input + "' is not Triton IR that this compiler knows");

  std::string diagnostics;
  FailureOr<triton_metal::CompiledKernel> kernel =
      triton_metal::compileModule(*module, options, diagnostics);
  if (!diagnostics.empty())
    llvm::errs() << diagnostics << "\n";
  if (failed(kernel))
    return 1;
  if (repeat > 0) {
    double best = 1e30;
    for (int round = 0; round < repeat; ++round) {
      auto start = std::chrono::steady_clock::now();
      kernel = triton_metal::compileModule(*module, options, diagnostics);
      best = std::min(
          best, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
                    .count());
    }
    llvm::errs() << best << " ms\n";
  }

  const std::string &text = emit == "ttir"    ? kernel->ttir
                            : emit == "ttm"   ? kernel->ttm
                            : emit == "msl"   ? kernel->msl
                            : emit == "metal" ? kernel->metal
                                              : kernel->metadataJson;
  std::unique_ptr<llvm::ToolOutputFile> file = openOutputFile(output, &error);
  if (!file)
    return fail(error);
  file->os() << text;
  if (!text.empty() && text.back() != '\n')
    file->os() << "\n";
  file->os().flush();
  if (file->os().has_error()) {
    std::string reason = file->os().error().message();
    file->os().clear_error();
    return fail("cannot write '" + output + "': " + reason);
  }
  file->keep();
  return 0;
}

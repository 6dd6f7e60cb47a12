// The compiler: from a module of Triton IR to Metal text.
#include "Bindings.h"
#include "LentModule.h"
#include "WithoutLock.h"

#include "host_device/Compiling.h"
#include "pipeline/Coverage.h"
#include "pipeline/Graph.h"
#include "pipeline/Pipeline.h"

namespace triton_metal {

namespace {

using Compile = llvm::function_ref<mlir::FailureOr<CompiledKernel>(const CompileOptions &,
                                                                   std::string &diagnostics)>;

/// Compiles without Python's lock. Diagnostics are raised as a ValueError.
CompiledKernel compile(const CompileOptions &options, Compile run) {
  std::string diagnostics;
  mlir::FailureOr<CompiledKernel> result = mlir::failure();
  {
    WithoutLock unlocked;
    Compiling compiling;
    result = run(options, diagnostics);
  }
  if (mlir::failed(result))
    throw nb::value_error(diagnostics.c_str());
  return *result;
}

/// ``arithmetic`` has the words "precise" and "unfused" where a launch asks for them.
CompileOptions optionsOf(int numWarps, int numStages, const std::string &target,
                         const std::string &arithmetic, bool stages) {
  CompileOptions options;
  options.numWarps = numWarps;
  options.numStages = numStages;
  options.target = target;
  options.printStages = stages;
  llvm::SmallVector<llvm::StringRef, 2> words;
  llvm::StringRef(arithmetic).split(words, ',', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (llvm::StringRef word : words) {
    if (word == "precise")
      options.arithmetic.precise = true;
    else if (word == "unfused")
      options.arithmetic.fused = false;
    else
      throw nb::value_error(
          ("arithmetic is \"" + arithmetic + "\"; its words are precise and unfused").c_str());
  }
  return options;
}

} // namespace

void bindCompiler(nb::module_ &module) {
  // The thread that ends the interpreter may never have compiled.
  Py_AtExit(Compiling::finish);
  nb::class_<CompiledKernel>(module, "CompiledText", "What a kernel is at each stop of the way.")
      .def_ro("ttir", &CompiledKernel::ttir)
      .def_ro("ttm", &CompiledKernel::ttm)
      .def_ro("msl", &CompiledKernel::msl)
      .def_ro("metal", &CompiledKernel::metal)
      .def_ro("metadata", &CompiledKernel::metadataJson)
      .def_ro("lines", &CompiledKernel::linesJson,
              "Where each line of the text comes from, and what is in threadgroup memory, as JSON, "
              "if the stages were asked for.");

  module.def(
      "compile_module",
      [](LentModule &source, int numWarps, int numStages, const std::string &target,
         const std::string &arithmetic, bool stages) {
        return compile(optionsOf(numWarps, numStages, target, arithmetic, stages),
                       [&](const CompileOptions &options, std::string &text) {
                         return compileModule(source.getOp(), options, text, &source.getManagers());
                       });
      },
      nb::arg("module"), nb::arg("num_warps"), nb::arg("num_stages"), nb::arg("target") = "",
      nb::arg("arithmetic") = "", nb::arg("stages") = false);

  module.def(
      "compile_text",
      [](const std::string &ttir, const std::string &name, int numWarps, int numStages,
         const std::string &target, const std::string &arithmetic, bool stages,
         std::vector<int> memory) {
        CompileOptions chosen = optionsOf(numWarps, numStages, target, arithmetic, stages);
        chosen.memory = std::move(memory);
        return compile(chosen, [&](const CompileOptions &options, std::string &text) {
          return compileText(ttir, name, options, text);
        });
      },
      nb::arg("ttir"), nb::arg("name"), nb::arg("num_warps"), nb::arg("num_stages"),
      nb::arg("target") = "", nb::arg("arithmetic") = "", nb::arg("stages") = false,
      nb::arg("memory") = std::vector<int>());

  module.def(
      "coverage_kernel",
      [](const std::string &ttir, const std::string &name) {
        std::string problem;
        std::optional<std::string> text;
        {
          WithoutLock unlocked;
          Compiling compiling;
          llvm::Expected<std::optional<std::string>> result = coverageKernel(ttir, name);
          if (result)
            text = std::move(*result);
          else
            problem = llvm::toString(result.takeError());
        }
        if (!problem.empty())
          throw nb::value_error(problem.c_str());
        return text;
      },
      nb::arg("ttir"), nb::arg("name"),
      "Triton IR that stores 1 wherever the kernel of a text stores; None where that depends on "
      "what it reads.");

  module.def(
      "graph_program",
      [](const std::string &ttir, const std::string &name) {
        std::string diagnostics;
        mlir::FailureOr<std::string> program = mlir::failure();
        {
          WithoutLock unlocked;
          Compiling compiling;
          program = graphProgram(ttir, name, diagnostics);
        }
        if (mlir::failed(program))
          throw nb::value_error(diagnostics.c_str());
        return *program;
      },
      nb::arg("ttir"), nb::arg("name"),
      "The kernel of a text of Triton IR as a program of array operations, in JSON.");
}

} // namespace triton_metal

#include "pipeline/Pipeline.h"

#include "dialect/msl/MSL.h"
#include "dialect/tt/Import.h"
#include "dialect/tt/TT.h"
#include "dialect/ttm/TTM.h"
#include "pipeline/Contexts.h"
#include "pipeline/Diagnostics.h"
#include "pipeline/Metadata.h"
#include "target/msl/Printer.h"
#include "transforms/Passes.h"
#include "transforms/Pipelines.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/ScopeExit.h"

using namespace mlir;

namespace triton_metal {

void buildTTToTTMPipeline(OpPassManager &pm, const CompileOptions &options) {
  buildTTPipeline(pm, options.arithmetic);
  TTChooseThreadsOptions named;
  named.numWarps = options.numWarps;
  named.numStages = options.numStages;
  addStep(pm, createTTChooseThreads(named));
  if (options.sliceTiles)
    addVerified(pm, createTTSliceTiles());
  buildTTMLayoutPipeline(pm, /*numWarps=*/0);
  addStep(pm, createTTMExpandDot());
  addStep(pm, createTTMLowerDot());
  TTMPipelineOptions pipelineOptions;
  pipelineOptions.numStages = 0;
  pipelineOptions.obeyLoops = options.obeyLoopStages;
  addVerified(pm, createTTMPipeline(pipelineOptions));
}

void buildTTMToMSLPipeline(OpPassManager &pm, const CompileOptions &options) {
  buildTTMLegalizationPipeline(pm);
  // The conversion checks that all of its result is legal.
  pm.addPass(createConvertTTMToMSL());
  addStep(pm, createMSLFoldShuffles());
  addStep(pm, createMSLTestPositions());
  addStep(pm, createMSLExpandThreadIndices());
  addCanonicalizer(pm);
  addStep(pm, createMSLLegalizeAtomics());
  addStep(pm, createMSLOrderAtomics());
  pm.addPass(createLoopInvariantCodeMotionPass());
  pm.addPass(createCSEPass());
  addStep(pm, createMSLAllocateThreadgroupMemory());
  addStep(pm, createMSLInsertBarriers());
  addStep(pm, createMSLCheckBarriers());
  addStep(pm, createMSLSinkIntoThreads());
  pm.addPass(createMSLMarkReadOnly());
  pm.addPass(createMSLCoherentLoops());
  addVerified(pm, createMSLVolatileAccumulation());
}

void buildMSLPipeline(OpPassManager &pm, const CompileOptions &options) {
  addStep(pm, createMSLExpandSlots());
  addStep(pm, createMSLExpandInThreads());
  addStep(pm, createMSLLegalizeOperations());
  addStep(pm, createMSLEmulateTypes());
  pm.addPass(createMSLCheckTarget());
  buildMSLLoopsPipeline(pm);
  pm.addPass(createMSLCheckExchanges());
  addStep(pm, createMSLHoistOffsets());
  addStep(pm, createMSLFollowCounters());
  addStep(pm, createMSLBoundLoops());
  addStep(pm, createMSLNarrowComparisons());
  addStep(pm, createMSLCompareSteps());
  addStep(pm, createMSLSplitOffsets());
  addStep(pm, createMSLSharePointers());
  addStep(pm, createMSLStepOffsets());
  addStep(pm, createMSLLegalizeDivisions());
  addStep(pm, createMSLMergeByteOffsets());
  addStep(pm, createMSLWidenBfloats());
  // Constants that folding has brought to light: the text has none that C++ leaves undefined.
  DefineArithmeticOptions constants;
  constants.constantsOnly = true;
  addStep(pm, createDefineArithmetic(constants));
  buildMSLTextPipeline(pm);
}

namespace {
struct MetalPipelineOptions : PassPipelineOptions<MetalPipelineOptions> {
  Option<int> numWarps{*this, "num-warps",
                       llvm::cl::desc("SIMD-groups of the threadgroup; 0 to choose"),
                       llvm::cl::init(4)};
  Option<int> numStages{*this, "num-stages",
                        llvm::cl::desc("2 double-buffers loops, 1 does not, 0 to choose"),
                        llvm::cl::init(2)};
  Option<bool> preciseMath{*this, "precise-math", llvm::cl::desc("No approximate functions"),
                           llvm::cl::init(false)};
  Option<bool> fpFusion{*this, "fp-fusion", llvm::cl::desc("Makes math.fma"), llvm::cl::init(true)};
};
} // namespace

void registerMetalPipeline() {
  PassPipelineRegistration<MetalPipelineOptions>(
      "metal-pipeline", "All passes from Triton IR to msl's text form, in their order",
      [](OpPassManager &manager, const MetalPipelineOptions &chosen) {
        CompileOptions options;
        options.numWarps = chosen.numWarps;
        options.numStages = chosen.numStages;
        options.arithmetic.precise = chosen.preciseMath;
        options.arithmetic.fused = chosen.fpFusion;
        buildTTToTTMPipeline(manager, options);
        buildTTMToMSLPipeline(manager, options);
        buildMSLPipeline(manager, options);
      });
}

/// Where the kernel of a module begins.
static std::optional<Location> placeOfKernel(ModuleOp module) {
  for (tt::FuncOp func : module.getOps<tt::FuncOp>())
    if (func.isPublic())
      return func.getLoc();
  return std::nullopt;
}

static std::string print(ModuleOp module, bool withLocations) {
  std::string text;
  llvm::raw_string_ostream os(text);
  OpPrintingFlags flags;
  if (withLocations)
    flags.enableDebugInfo().printNameLocAsPrefix();
  module.print(os, flags);
  os << "\n";
  return text;
}

/// Whether a kernel was refused for its threadgroup memory.
static bool needsLessMemory(ModuleOp module) {
  int64_t limit = msl::TargetAttr::get(module).getThreadgroupBytes();
  return llvm::any_of(module.getOps<msl::KernelOp>(), [&](msl::KernelOp kernel) {
    return int64_t(kernel.getThreadgroupBytes().value_or(0)) > limit;
  });
}

/// Compiles a module whose text is `ttir`; null where it has not been printed yet.
static FailureOr<CompiledKernel> compile(ModuleOp module, const std::string *ttir,
                                         const CompileOptions &options, std::string &diagnostics,
                                         PassManagers &managers) {
  MLIRContext *context = module.getContext();
  diagnostics.clear();
  // A diagnostic points to the source, not to the compiler's text of it.
  bool printsOperations = context->shouldPrintOpOnDiagnostic();
  context->printOpOnDiagnostic(false);
  llvm::scope_exit restore([&] { context->printOpOnDiagnostic(printsOperations); });
  std::optional<Location> kernelPlace = placeOfKernel(module);
  ScopedDiagnosticHandler handler(context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
      appendDiagnostic(diagnostics, diagnostic, "error", kernelPlace);
    else if (diagnostic.getSeverity() == DiagnosticSeverity::Warning)
      appendDiagnostic(diagnostics, diagnostic, "warning");
    for (const Diagnostic &note : diagnostic.getNotes())
      if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
        appendDiagnostic(diagnostics, note, "note");
    return success();
  });
  auto fail = [&]() -> FailureOr<CompiledKernel> {
    if (diagnostics.empty())
      module.emitError("the kernel could not be compiled");
    return failure();
  };
  if (options.numWarps &&
      (options.numWarps < 1 || options.numWarps > 32 || !llvm::isPowerOf2_32(options.numWarps))) {
    module.emitError("num_warps is ") << options.numWarps << "; it must be 1, 2, 4, 8, 16 or 32";
    return fail();
  }
  context->loadDialect<tt::TTDialect, ttm::TTMDialect, msl::MSLDialect, arith::ArithDialect,
                       math::MathDialect, scf::SCFDialect, ub::UBDialect, vector::VectorDialect>();

  llvm::Expected<msl::TargetAttr> target = msl::TargetAttr::parseSpec(context, options.target);
  if (!target) {
    module.emitError(llvm::toString(target.takeError()));
    return fail();
  }

  // Everything after this relies on it.
  if (failed(tt::checkModule(module)) || failed(verify(module)))
    return fail();
  int kernels = 0;
  for (tt::FuncOp func : module.getOps<tt::FuncOp>())
    kernels += func.isPublic();
  if (kernels != 1) {
    module.emitError("has ") << kernels << " public functions; a kernel's module has one";
    return fail();
  }

  CompiledKernel kernel;
  kernel.ttir = ttir ? *ttir : print(module, /*withLocations=*/true);
  OwningOpRef<ModuleOp> work;
  auto lower = [&](const CompileOptions &chosen) -> LogicalResult {
    work = module.clone();
    (*work)->setAttr(msl::MSLDialect::getTargetAttrName(), *target);
    if (!chosen.sharesOperands)
      (*work)->setAttr(ttm::TTMDialect::getLacksMemoryAttrName(), UnitAttr::get(context));
    if (failed(managers.run(*work, buildTTToTTMPipeline, chosen)))
      return failure();
    if (options.printStages)
      kernel.ttm = print(*work, /*withLocations=*/false);
    return managers.run(*work, buildTTMToMSLPipeline);
  };
  auto lowerInMemory = [&](CompileOptions chosen) -> LogicalResult {
    if (succeeded(lower(chosen)))
      return success();
    if ((*work)->hasAttr(ttm::TTMDialect::getSlicesAttrName())) {
      // What is staged for all slices may be too much. Each of them can stage it for itself.
      if (needsLessMemory(*work)) {
        diagnostics.clear();
        CompileOptions separate = chosen;
        separate.sharesOperands = false;
        if (succeeded(lower(separate)))
          return success();
      }
      // Whole tiles need more registers, but nothing that a target might refuse.
      diagnostics.clear();
      chosen.sliceTiles = false;
      if (succeeded(lower(chosen)))
        return success();
    }
    if (!needsLessMemory(*work))
      return failure();
    std::string first = diagnostics;
    // Tiles of double-buffered loops are the first to go where a kernel needs too much memory, and
    // then what stays in it for a second product.
    if ((*work)->hasAttr(ttm::TTMDialect::getPipelineStagesAttrName())) {
      diagnostics.clear();
      chosen.numStages = 1;
      chosen.obeyLoopStages = false;
      if (succeeded(lower(chosen)))
        return success();
    }
    diagnostics.clear();
    chosen.sharesOperands = false;
    if (succeeded(lower(chosen)))
      return success();
    diagnostics = first;
    return failure();
  };
  if (failed(lowerInMemory(options))) {
    // Where the choice is ours, a kernel is refused only if no other is possible.
    std::string first = diagnostics;
    bool isLowered = false;
    for (int warps : {4, 1, 16}) {
      if (options.numWarps)
        break;
      diagnostics.clear();
      CompileOptions other = options;
      other.numWarps = warps;
      if ((isLowered = succeeded(lowerInMemory(other))))
        break;
    }
    if (!isLowered) {
      diagnostics = first;
      return fail();
    }
  }
  FailureOr<KernelMetadata> metadata = getMetadata(*work);
  if (failed(metadata))
    return fail();
  if (options.printStages)
    kernel.msl = print(*work, /*withLocations=*/false);
  // All verifiers once more before the text is written.
  if (failed(managers.run(*work, buildMSLPipeline)) || failed(verify(*work)))
    return fail();
  llvm::raw_string_ostream os(kernel.metal);
  std::vector<TextLayout> layouts;
  if (failed(printMetal(*work, os, &layouts, options.printStages)))
    return fail();
  metadata->text = std::move(layouts.front());
  if (options.printStages)
    kernel.linesJson = linesToJSON(metadata->text);
  kernel.metadataJson = metadata->toJSON();
  return kernel;
}

/// Says of the kernel's arguments which of them share memory.
static void markMemory(ModuleOp module, ArrayRef<int> numbers) {
  Builder builder(module.getContext());
  for (tt::FuncOp func : module.getOps<tt::FuncOp>()) {
    if (!func.isPublic())
      continue;
    // A tensor descriptor is several arguments of a launch, of which the first is its memory.
    size_t place = 0;
    for (auto [index, type] : llvm::enumerate(func.getArgumentTypes())) {
      if (place < numbers.size() && numbers[place])
        func.setArgAttr(index, tt::memoryAttrName, builder.getI32IntegerAttr(numbers[place]));
      auto desc = dyn_cast<tt::TensorDescType>(type);
      place += desc ? desc.getNumParts() : 1;
    }
  }
}

FailureOr<CompiledKernel> compileModule(ModuleOp module, const CompileOptions &options,
                                        std::string &diagnostics, PassManagers *managers) {
  PassManagers own;
  return compile(module, nullptr, options, diagnostics, managers ? *managers : own);
}

FailureOr<CompiledKernel> compileText(StringRef ttir, StringRef name, const CompileOptions &options,
                                      std::string &diagnostics) {
  ContextLease lease;
  diagnostics.clear();
  OwningOpRef<ModuleOp> module;
  {
    ScopedDiagnosticHandler handler(lease.getContext(), [&](Diagnostic &diagnostic) {
      appendDiagnostic(diagnostics, diagnostic,
                       diagnostic.getSeverity() == DiagnosticSeverity::Warning ? "warning"
                                                                               : "error");
      return success();
    });
    module = tt::parseModule(ttir, name, lease.getContext());
  }
  if (!module) {
    if (diagnostics.empty())
      diagnostics = "error: the text is no Triton IR";
    return failure();
  }
  std::string text = ttir.str();
  if (!options.memory.empty()) {
    markMemory(*module, options.memory);
    text = print(*module, /*withLocations=*/true);
  }
  return compile(*module, &text, options, diagnostics, lease.getManagers());
}

} // namespace triton_metal

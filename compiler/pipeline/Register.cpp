#include "pipeline/Register.h"

#include "dialect/msl/MSL.h"
#include "dialect/tt/TT.h"
#include "dialect/ttg/TTG.h"
#include "dialect/ttm/TTM.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/Transforms/InlinerInterfaceImpl.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "pipeline/Graph.h"
#include "pipeline/Pipeline.h"
#include "target/msl/Printer.h"
#include "transforms/Passes.h"
#include "transforms/Pipelines.h"

using namespace mlir;

namespace triton_metal {

void registerAllDialects(DialectRegistry &registry) {
  registry.insert<arith::ArithDialect, cf::ControlFlowDialect, math::MathDialect, scf::SCFDialect,
                  ub::UBDialect, tt::TTDialect, ttg::TTGDialect, ttm::TTMDialect, msl::MSLDialect,
                  vector::VectorDialect>();
  // Triton expresses assumptions with an operation of the llvm dialect.
  registry.insert<LLVM::LLVMDialect>();
  LLVM::registerInlinerInterface(registry);
}

void registerAllPasses() {
  registerTransformsPasses();
  registerTritonMetalPasses();
  registerPrintMetalPass();
  registerTTPipeline();
  registerGraphPipeline();
  registerMSLLoopsPipeline();
  registerTTMLayoutPipeline();
  registerTTMLegalizationPipeline();
  registerMSLTextPipeline();
  registerMetalPipeline();
}

} // namespace triton_metal

#include "pipeline/Coverage.h"

#include "dialect/tt/Import.h"
#include "dialect/tt/TT.h"
#include "dialect/ttg/TTG.h"
#include "pipeline/Contexts.h"
#include "transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace triton_metal {

/// A number none of whose bytes is 0, or a tile of it; null if the type is not numeric. A store of
/// fewer bytes than an element has, through a pointer to another type, leaves a byte that is 0.
static TypedAttr getMark(Type type) {
  auto shaped = dyn_cast<ShapedType>(type);
  Type element = shaped ? shaped.getElementType() : type;
  if (!element.isIntOrFloat())
    return {};
  unsigned bits = element.getIntOrFloatBitWidth();
  // An i1 is a byte of 0 or 1 in memory.
  APInt number = bits < 8 ? APInt(bits, 1) : APInt::getSplat(bits, APInt(8, 0x3f));
  TypedAttr mark;
  if (auto real = dyn_cast<FloatType>(element))
    mark = FloatAttr::get(real, APFloat(real.getFloatSemantics(), number));
  else
    mark = IntegerAttr::get(element, number);
  return shaped ? DenseElementsAttr::get(shaped, static_cast<Attribute>(mark)) : mark;
}

/// Makes every store a store of a mark and removes prints and assertions. Returns false if the
/// value of a store cannot be one.
static bool keepOnlyStores(ModuleOp module) {
  bool isPossible = true;
  SmallVector<Operation *> idle;
  module.walk([&](Operation *op) {
    if (isa<tt::PrintOp, tt::AssertOp, LLVM::AssumeOp, ttg::BarrierOp>(op)) {
      idle.push_back(op);
    } else if (auto store = dyn_cast<tt::StoreOp>(op)) {
      TypedAttr mark = getMark(store.getValue().getType());
      if (!mark) {
        isPossible = false;
        return;
      }
      OpBuilder builder(op);
      store.getValueMutable().assign(arith::ConstantOp::create(builder, op->getLoc(), mark));
    }
  });
  for (Operation *op : idle)
    op->erase();
  return isPossible;
}

/// Whether nothing accesses memory but stores.
static bool hasOnlyStores(ModuleOp module) {
  WalkResult result = module.walk([](Operation *op) {
    bool isAllowed = isa<ModuleOp, FunctionOpInterface, tt::StoreOp>(op) ||
                     op->hasTrait<OpTrait::IsTerminator>() ||
                     op->hasTrait<OpTrait::HasRecursiveMemoryEffects>() || isMemoryEffectFree(op);
    return isAllowed ? WalkResult::advance() : WalkResult::interrupt();
  });
  return !result.wasInterrupted();
}

llvm::Expected<std::optional<std::string>> coverageKernel(StringRef ttir, StringRef name) {
  ContextLease lease;
  std::string problem;
  ScopedDiagnosticHandler handler(lease.getContext(), [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
      problem += (problem.empty() ? "" : "\n") + diagnostic.str();
    return success();
  });
  OwningOpRef<ModuleOp> module = tt::parseModule(ttir, name, lease.getContext());
  if (!module)
    return llvm::createStringError(problem);
  auto run = [&](llvm::function_ref<void(OpPassManager &)> add) {
    PassManager manager(lease.getContext(), ModuleOp::getOperationName());
    add(manager);
    return manager.run(*module);
  };
  if (failed(run([](OpPassManager &manager) {
        manager.addPass(createTTLiftControlFlow());
        manager.addPass(createTTInline());
        manager.addPass(createTTRewriteDescriptors());
        manager.addPass(createCanonicalizerPass());
      })))
    return llvm::createStringError(problem);
  if (!keepOnlyStores(*module))
    return std::nullopt;
  // Removes what computed the stored values, also what loops carried for them.
  if (failed(run([](OpPassManager &manager) {
        for (int round = 0; round < 2; ++round) {
          manager.addPass(createRemoveDeadValuesPass());
          manager.addPass(createCanonicalizerPass());
          manager.addPass(createCSEPass());
        }
      })))
    return llvm::createStringError(problem);
  if (!hasOnlyStores(*module))
    return std::nullopt;
  std::string text;
  llvm::raw_string_ostream os(text);
  module->print(os);
  return text;
}

} // namespace triton_metal

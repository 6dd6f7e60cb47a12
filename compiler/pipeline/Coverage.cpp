#include "pipeline/Coverage.h"

#include "dialect/tt/Import.h"
#include "dialect/tt/TT.h"
#include "pipeline/Contexts.h"
#include "transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace triton_metal {

/// One, or a tile of ones; null if the type is not numeric.
static TypedAttr getOne(Type type) {
  auto shaped = dyn_cast<ShapedType>(type);
  Type element = shaped ? shaped.getElementType() : type;
  TypedAttr one;
  if (auto real = dyn_cast<FloatType>(element))
    one = FloatAttr::get(real, 1.0);
  else if (element.isInteger())
    one = IntegerAttr::get(element, 1);
  if (!one || !shaped)
    return one;
  return DenseElementsAttr::get(shaped, static_cast<Attribute>(one));
}

/// Makes every store a store of 1 and removes prints and assertions. Returns false if memory is
/// accessed by anything else than loads and stores.
static bool keepOnlyStores(ModuleOp module) {
  bool isPossible = true;
  SmallVector<Operation *> messages;
  module.walk([&](Operation *op) {
    if (isa<tt::AtomicRMWOp, tt::AtomicCASOp, tt::AtomicLoadOp, tt::AtomicStoreOp, tt::AtomicPollOp,
            tt::CallOp>(op)) {
      isPossible = false;
    } else if (isa<tt::PrintOp, tt::AssertOp>(op)) {
      messages.push_back(op);
    } else if (auto store = dyn_cast<tt::StoreOp>(op)) {
      TypedAttr one = getOne(store.getValue().getType());
      if (!one) {
        isPossible = false;
        return;
      }
      OpBuilder builder(op);
      store.getValueMutable().assign(arith::ConstantOp::create(builder, op->getLoc(), one));
    }
  });
  for (Operation *op : messages)
    op->erase();
  return isPossible;
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
  bool reads = false;
  module->walk([&](tt::LoadOp) { reads = true; });
  if (reads)
    return std::nullopt;
  std::string text;
  llvm::raw_string_ostream os(text);
  module->print(os);
  return text;
}

} // namespace triton_metal

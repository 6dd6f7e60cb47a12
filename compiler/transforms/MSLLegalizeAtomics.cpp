// How each atomic update is done: see Passes.td.

#include "analysis/PointerOrigins.h"
#include "dialect/msl/MSL.h"
#include "transforms/MSLSerializePrograms.h"
#include "transforms/Passes.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_MSLLEGALIZEATOMICS
#include "transforms/Passes.h.inc"

namespace {

using namespace msl;

/// An atomic, and the memory that it may update.
struct Update {
  AtomicOpInterface op;
  Origins origins;
  unsigned bits;

  AtomicKind getKind() { return op.getUpdateKind(); }
  bool isUsed() { return !op->use_empty(); }
};

class Chooser {
public:
  explicit Chooser(KernelOp kernel)
      : kernel(kernel), target(TargetAttr::get(kernel)), pointers(kernel) {
    kernel.walk([&](AtomicOpInterface op) {
      SmallVector<MemoryAccess> accesses;
      cast<MemoryAccessOpInterface>(op.getOperation()).getAccesses(accesses);
      Type element = getElementTypeOrSelf(op->getResult(0).getType());
      updates.push_back(
          {op, pointers.get(accesses.front().getOrigin()), element.getIntOrFloatBitWidth()});
    });
  }

  bool run() {
    // Kernels with updates of 64 bits that Metal cannot do while other threadgroups run.
    SmallVector<Operation *> alone;
    for (Update &update : updates)
      if (update.bits == 64 && getForm(update) == AtomicForm::Alone)
        alone.push_back(update.op);
    for (Update &update : updates)
      // Where there is one such, all of 64 bits are done so.
      update.op.setAtomicForm(update.bits == 64 && !alone.empty() ? AtomicForm::Alone
                                                                  : getForm(update));
    // A lock is another reason.
    if (!alone.empty() && !kernel->hasAttr(kSerialAttr))
      kernel->setAttr(kSerialAttr, LocationAttr(alone.front()->getLoc()));
    if (kernel->hasAttr(kSerialAttr))
      serializePrograms(kernel);
    return !updates.empty();
  }

private:
  AtomicForm getForm(Update &update) {
    AtomicKind kind = update.getKind();
    if (update.bits < 32)
      return AtomicForm::Word;
    if (update.bits == 32) {
      bool lacks = kind == AtomicKind::FMin || kind == AtomicKind::FMax ||
                   (kind == AtomicKind::FAdd && !target.has(Feature::FloatAtomics));
      return lacks ? AtomicForm::Word : AtomicForm::Metal;
    }
    if (update.isUsed() || !commutesWithOthers(update))
      return AtomicForm::Alone;
    switch (kind) {
    case AtomicKind::Add:
    case AtomicKind::And:
    case AtomicKind::Or:
    case AtomicKind::Xor:
      return AtomicForm::Halves;
    case AtomicKind::UMin:
    case AtomicKind::UMax:
      return target.has(Feature::Atomic64MinMax) ? AtomicForm::Metal : AtomicForm::Alone;
    default:
      return AtomicForm::Alone;
    }
  }

  /// Whether all updates of this memory are of one kind, so that their order does not matter, not
  /// even that of the parts of a number.
  bool commutesWithOthers(Update &update) {
    return llvm::all_of(updates, [&](Update &other) {
      return (other.bits == update.bits && other.getKind() == update.getKind() &&
              other.isUsed() == update.isUsed()) ||
             !pointers.mayOverlap(update.origins, other.origins);
    });
  }

  KernelOp kernel;
  TargetAttr target;
  PointerOrigins pointers;
  SmallVector<Update> updates;
};

struct MSLLegalizeAtomicsPass : impl::MSLLegalizeAtomicsBase<MSLLegalizeAtomicsPass> {
  void runOnOperation() override {
    bool changes = false;
    for (KernelOp kernel : getOperation().getOps<KernelOp>())
      changes |= Chooser(kernel).run();
    if (!changes)
      markAllAnalysesPreserved();
  }
};

} // namespace
} // namespace triton_metal

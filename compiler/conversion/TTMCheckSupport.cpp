// What Metal does not have, or what this compiler does not do yet: with the place, and what to do
// instead.

#include "conversion/TTMToMSL.h"

#include "transforms/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_TTMCHECKSUPPORT
#include "transforms/Passes.h.inc"

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

static bool isSupported(Type type, const TTMToMSLTypes &types) {
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return ttm::getLayout(tensor) && isSupported(tensor.getElementType(), types);
  if (auto pointer = dyn_cast<tt::PtrType>(type))
    return isDeviceSpace(pointer.getAddressSpace()) && isSupported(pointer.getPointeeType(), types);
  return bool(types.convertType(type));
}

/// Says of a type that Metal does not have what to use instead.
static LogicalResult refuseType(Operation *op, Type type) {
  Type element = getElementTypeOrSelf(type);
  if (auto pointer = dyn_cast<tt::PtrType>(element)) {
    if (!isDeviceSpace(pointer.getAddressSpace()))
      return op->emitOpError("uses ")
             << pointer << ", which points into address space " << pointer.getAddressSpace()
             << "; a kernel's pointers go to device memory, which is 1 (or "
                "0, any memory, or 4, memory that is only read)";
    element = pointer.getPointeeType();
  }
  InFlightDiagnostic diagnostic = op->emitOpError("uses ")
                                  << element << ", which Metal does not have: ";
  if (auto floating = dyn_cast<FloatType>(element); floating && floating.getWidth() <= 8)
    return diagnostic << "Triton's floats of 8 bits are float8e5, float8e4nv, float8e5b16, "
                         "float8e4b8 and float8e4b15";
  return diagnostic
         << "its numbers are integers of 1, 8, 16, 32 and 64 bits, float16, bfloat16, float32 and "
            "float64";
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

/// What to do instead, for what the language has and this compiler does not; empty for anything
/// else.
static StringRef getAdvice(Operation *op) {
  return llvm::TypeSwitch<Operation *, StringRef>(op)
      .Case([](tt::DotOp) {
        return "only dots of two-dimensional tiles, of 16-bit or 32-bit floats or of int8, are";
      })
      .Case<tt::PrintOp, tt::AssertOp>([](Operation *) {
        return "a function that runs for single elements has no messages; print or assert outside "
               "of it";
      })
      .Case(
          [](tt::ElementwiseInlineAsmOp) { return "inline assembler belongs to another machine"; })
      .Default(StringRef());
}

static LogicalResult check(tt::FpToFpOp op) {
  unsigned from = tt::getBitWidth(getElementTypeOrSelf(op.getSrc().getType()));
  Type to = getElementTypeOrSelf(op.getType());
  unsigned width = tt::getBitWidth(to);
  // Bits can be cut off to make a bfloat.
  if (op.getRounding() == tt::RoundingMode::RTZ && from >= width &&
      getElementTypeOrSelf(op.getSrc().getType()) != to && (from == width || !to.isBF16()))
    return op.emitOpError("rounds toward zero, which Metal's conversions do not: use the default");
  return success();
}

template <typename CombineOp> static LogicalResult checkCombine(CombineOp op, StringRef kind) {
  for (Operation &inside : op.getCombineOp().front().without_terminator())
    if (inside.getNumRegions() || !isa<arith::ArithDialect, math::MathDialect>(inside.getDialect()))
      return inside.emitOpError("cannot be part of a ")
             << kind << "'s combine function: use arithmetic and tl.where";
  for (Type type : op.getElementTypes())
    if (isa<tt::PtrType>(type))
      return op.emitOpError("has pointers in its ") << kind << "; take their offsets instead";
  return success();
}

/// Atomics are of whole bytes; what Metal has no function for, msl-legalize-atomics builds.
static LogicalResult checkAtomic(Operation *op, Type type) {
  Type element = getElementTypeOrSelf(type);
  if (element.isIntOrFloat() && element.getIntOrFloatBitWidth() >= 8)
    return success();
  return op->emitOpError("updates ")
         << element << " atomically; atomics are of integers of 8, 16, 32 and 64 bits, float16, "
         << "bfloat16, float32 and float64";
}

static LogicalResult checkOperation(Operation *op) {
  if (StringRef advice = getAdvice(op); !advice.empty())
    return op->emitOpError("cannot be compiled for Metal: ") << advice;
  if (auto external = dyn_cast<tt::ExternElementwiseOp>(op)) {
    if (isLibraryFunction(external))
      return success();
    return op->emitOpError("calls '")
           << external.getSymbol() << "' of a device library that Metal does not have: use tl.math";
  }
  if (auto conversion = dyn_cast<tt::FpToFpOp>(op))
    return check(conversion);
  if (auto reduction = dyn_cast<tt::ReduceOp>(op))
    return checkCombine(reduction, "reduction");
  if (auto scan = dyn_cast<tt::ScanOp>(op))
    return checkCombine(scan, "scan");
  if (auto atomic = dyn_cast<tt::AtomicRMWOp>(op))
    return checkAtomic(op, atomic.getVal().getType());
  if (auto atomic = dyn_cast<tt::AtomicCASOp>(op))
    return checkAtomic(op, atomic.getVal().getType());
  if (auto region = dyn_cast<scf::ExecuteRegionOp>(op); region && !region.getRegion().hasOneBlock())
    return op->emitOpError("cannot be compiled for Metal yet");
  if (isa<ttm::TTMDialect, arith::ArithDialect, math::MathDialect>(op->getDialect()) ||
      isa<scf::ForOp, scf::IfOp, scf::WhileOp, scf::YieldOp, scf::ConditionOp, scf::ExecuteRegionOp,
          scf::IndexSwitchOp, ub::PoisonOp, LLVM::AssumeOp, ttg::BarrierOp, tt::FuncOp,
          tt::ReturnOp, tt::GetProgramIdOp, tt::GetNumProgramsOp, tt::MakeRangeOp, tt::SplatOp,
          tt::UnsplatOp, tt::BroadcastOp, tt::ExpandDimsOp, tt::ReshapeOp, tt::TransOp, tt::JoinOp,
          tt::SplitOp, tt::CatOp, tt::GatherOp, tt::HistogramOp, tt::AddPtrOp, tt::PtrToIntOp,
          tt::IntToPtrOp, tt::BitcastOp, tt::MulhiUIOp, tt::PreciseDivFOp, tt::ApproxDivFOp,
          tt::PreciseSqrtOp, tt::ClampFOp, tt::LoadOp, tt::StoreOp>(op))
    return success();
  return op->emitOpError("cannot be compiled for Metal yet");
}

static LogicalResult checkFunction(tt::FuncOp func, const TTMToMSLTypes &types) {
  if (!func.getResultTypes().empty())
    return func.emitOpError("returns a value; a kernel cannot, let it store what it computes");
  if (!func.getBody().hasOneBlock())
    return func.emitOpError("has branches that are not structured");
  for (Type type : func.getArgumentTypes()) {
    if (!isSupported(type, types))
      return refuseType(func, type);
    if (isa<RankedTensorType>(type))
      return func.emitOpError("has an argument of type ")
             << type << ", which a Metal kernel cannot take";
  }
  WalkResult result = func.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
    for (Type type : llvm::concat<const Type>(op->getOperandTypes(), op->getResultTypes()))
      if (!isSupported(type, types))
        return WalkResult(refuseType(op, type));
    if (failed(checkOperation(op)))
      return WalkResult::interrupt();
    return isa<tt::ReduceOp, tt::ScanOp>(op) ? WalkResult::skip() : WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

namespace {
struct TTMCheckSupportPass : impl::TTMCheckSupportBase<TTMCheckSupportPass> {
  void runOnOperation() override {
    TTMToMSLTypes types(ttm::getNumSimdgroups(getOperation()));
    for (tt::FuncOp func : getOperation().getOps<tt::FuncOp>())
      if (failed(checkFunction(func, types)))
        return signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace

} // namespace triton_metal

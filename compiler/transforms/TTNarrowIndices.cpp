#include "dialect/tt/TT.h"
#include "mlir/Analysis/DataFlowFramework.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "transforms/IntegerRanges.h"
#include "transforms/Passes.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_TTNARROWINDICES
#include "transforms/Passes.h.inc"

namespace {

/// Moves elements before the extension and not after it, so that narrow elements are moved.
template <typename Shape, typename Extend> struct ExtendLast : OpRewritePattern<Shape> {
  using OpRewritePattern<Shape>::OpRewritePattern;
  LogicalResult matchAndRewrite(Shape op, PatternRewriter &rewriter) const override {
    auto extend = op->getOperand(0).template getDefiningOp<Extend>();
    if (!extend)
      return failure();
    Operation *moved = rewriter.clone(*op);
    moved->setOperand(0, extend.getIn());
    auto type = cast<RankedTensorType>(op.getType());
    moved->getResult(0).setType(type.clone(getElementTypeOrSelf(extend.getIn().getType())));
    rewriter.replaceOpWithNewOp<Extend>(op, type, moved->getResult(0));
    return success();
  }
};

/// Offsets are signed, so the sign extension of an offset can be dropped.
struct AddPtrOfExtension : OpRewritePattern<tt::AddPtrOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(tt::AddPtrOp op, PatternRewriter &rewriter) const override {
    auto extend = op.getOffset().getDefiningOp<arith::ExtSIOp>();
    if (!extend || tt::getBitWidth(extend.getIn().getType()) < 32)
      return failure();
    rewriter.modifyOpInPlace(op, [&] { op.getOffsetMutable().assign(extend.getIn()); });
    return success();
  }
};

/// A zero extension of a number that is never negative becomes a sign extension.
struct SignExtension : OpRewritePattern<arith::ExtUIOp> {
  SignExtension(MLIRContext *context, DataFlowSolver &solver)
      : OpRewritePattern(context), solver(solver) {}
  LogicalResult matchAndRewrite(arith::ExtUIOp op, PatternRewriter &rewriter) const override {
    std::optional<ConstantIntRanges> range = getRange(solver, op.getIn());
    if (!range || range->smin().isNegative() || tt::getBitWidth(op.getIn().getType()) < 32)
      return failure();
    rewriter.replaceOpWithNewOp<arith::ExtSIOp>(op, op.getType(), op.getIn());
    return success();
  }
  DataFlowSolver &solver;
};

/// Truncates 64-bit offsets whose range fits into 32 bits, directly at their use.
struct NarrowOffset : OpRewritePattern<tt::AddPtrOp> {
  NarrowOffset(MLIRContext *context, DataFlowSolver &solver)
      : OpRewritePattern(context), solver(solver) {}
  LogicalResult matchAndRewrite(tt::AddPtrOp op, PatternRewriter &rewriter) const override {
    Value offset = op.getOffset();
    if (tt::getBitWidth(offset.getType()) <= 32)
      return failure();
    std::optional<ConstantIntRanges> range = getRange(solver, offset);
    if (!range || !range->smin().isSignedIntN(32) || !range->smax().isSignedIntN(32))
      return failure();
    Type i32 = rewriter.getI32Type();
    Type type = i32;
    if (auto tensor = dyn_cast<RankedTensorType>(offset.getType()))
      type = tensor.clone(i32);
    Value narrow = arith::TruncIOp::create(rewriter, op.getLoc(), type, offset);
    rewriter.modifyOpInPlace(op, [&] { op.getOffsetMutable().assign(narrow); });
    return success();
  }
  DataFlowSolver &solver;
};

//===----------------------------------------------------------------------===//
// 64-bit operations in 32 bits
//===----------------------------------------------------------------------===//

Type to32(Type type) {
  Type i32 = IntegerType::get(type.getContext(), 32);
  auto shaped = dyn_cast<ShapedType>(type);
  return shaped ? Type(shaped.clone(i32)) : i32;
}

/// How a 64-bit number can be recovered from its low 32 bits.
struct Fit {
  bool asSigned = false, asUnsigned = false;
  bool any() const { return asSigned || asUnsigned; }
  Fit operator&(Fit other) const {
    return {asSigned && other.asSigned, asUnsigned && other.asUnsigned};
  }
};

Fit fitOf(const ConstantIntRanges &range) {
  return {range.smin().isSignedIntN(32) && range.smax().isSignedIntN(32), range.umax().isIntN(32)};
}

bool isShift(Operation *op) { return isa<arith::ShLIOp, arith::ShRSIOp, arith::ShRUIOp>(op); }

/// The 32-bit operation that computes the low half of `op`, and how its result is extended. Nothing
/// if the ranges do not prove both. `a` and `b` are the ranges of the operands.
struct Narrowed {
  OperationName name;
  bool isSigned;
};

std::optional<Narrowed> getNarrowed(Operation *op, const ConstantIntRanges &a,
                                    const ConstantIntRanges &b, const ConstantIntRanges &result) {
  MLIRContext *context = op->getContext();
  auto named = [&](StringRef name, bool isSigned) -> std::optional<Narrowed> {
    return Narrowed{OperationName(name, context), isSigned};
  };
  StringRef same = op->getName().getStringRef();
  Fit left = fitOf(a), right = fitOf(b), out = fitOf(result);
  Fit both = left & right;
  // All operands are from 0 to 2^32 - 1.
  bool nonNegative = both.asUnsigned;
  // The low half of sums, differences, products and bitwise operations only depends on the low
  // halves of the operands. The operands must fit, too, so that truncating them costs nothing.
  if (isa<arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::AndIOp, arith::OrIOp, arith::XOrIOp>(
          op))
    return left.any() && right.any() && out.any() ? named(same, out.asSigned) : std::nullopt;
  if (isShift(op)) {
    if (!b.umax().ult(32) || !left.any() || !out.any())
      return std::nullopt;
    if (isa<arith::ShLIOp>(op))
      return named(same, out.asSigned);
    // The bits that are shifted in are those of the extension.
    if (isa<arith::ShRSIOp>(op) && left.asSigned)
      return named(same, true);
    return left.asUnsigned ? named(arith::ShRUIOp::getOperationName(), out.asSigned) : std::nullopt;
  }
  if (isa<arith::DivUIOp, arith::RemUIOp>(op))
    return nonNegative ? named(same, out.asSigned) : std::nullopt;
  if (isa<arith::DivSIOp, arith::RemSIOp>(op)) {
    bool isDivision = isa<arith::DivSIOp>(op);
    // The least 32-bit number divided by -1 does not fit into 32 bits.
    bool overflows = a.smin().sle(INT32_MIN) && b.smin().sle(-1) && b.smax().sge(-1);
    if (both.asSigned && !overflows && out.asSigned)
      return named(same, true);
    if (nonNegative)
      return named(isDivision ? arith::DivUIOp::getOperationName()
                              : arith::RemUIOp::getOperationName(),
                   out.asSigned);
    return std::nullopt;
  }
  // Sign extension preserves signed and unsigned order. After zero extension, the signed order is
  // the unsigned order.
  if (both.asSigned && isa<arith::MinSIOp, arith::MaxSIOp, arith::MinUIOp, arith::MaxUIOp>(op))
    return named(same, true);
  if (nonNegative && isa<arith::MinSIOp, arith::MinUIOp>(op))
    return named(arith::MinUIOp::getOperationName(), false);
  if (nonNegative && isa<arith::MaxSIOp, arith::MaxUIOp>(op))
    return named(arith::MaxUIOp::getOperationName(), false);
  return std::nullopt;
}

/// The low half of a 64-bit number.
Value cut(OpBuilder &builder, Location loc, Value value) {
  return arith::TruncIOp::create(builder, loc, to32(value.getType()), value);
}

/// Narrows an operation on 64 bits if the ranges allow it.
struct NarrowOperation : RewritePattern {
  NarrowOperation(MLIRContext *context, DataFlowSolver &solver)
      : RewritePattern(MatchAnyOpTypeTag(), 1, context), solver(solver) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    if (!isa<arith::ArithDialect>(op->getDialect()) || op->getNumOperands() != 2 ||
        op->getNumResults() != 1)
      return failure();
    Type type = op->getResult(0).getType();
    if (!getElementTypeOrSelf(type).isInteger(64) || op->getOperand(0).getType() != type ||
        op->getOperand(1).getType() != type)
      return failure();
    std::optional<ConstantIntRanges> a = getRange(solver, op->getOperand(0)),
                                     b = getRange(solver, op->getOperand(1)),
                                     result = getRange(solver, op->getResult(0));
    if (!a || !b || !result)
      return failure();
    std::optional<Narrowed> narrowed = getNarrowed(op, *a, *b, *result);
    if (!narrowed)
      return failure();
    Location loc = op->getLoc();
    Value operands[] = {cut(rewriter, loc, op->getOperand(0)),
                        cut(rewriter, loc, op->getOperand(1))};
    // Overflow flags are not copied, because they hold for 64 bits.
    Operation *small = rewriter.create(loc, narrowed->name.getIdentifier(), operands, to32(type));
    Value whole =
        narrowed->isSigned
            ? arith::ExtSIOp::create(rewriter, loc, type, small->getResult(0)).getResult()
            : arith::ExtUIOp::create(rewriter, loc, type, small->getResult(0)).getResult();
    know(whole, *result);
    rewriter.replaceOp(op, whole);
    return success();
  }

  void know(Value value, const ConstantIntRanges &range) const {
    auto *state = solver.getOrCreateState<dataflow::IntegerValueRangeLattice>(value);
    (void)state->join(IntegerValueRange(range));
  }

  DataFlowSolver &solver;
};

/// The unsigned predicate with the same meaning.
arith::CmpIPredicate toUnsigned(arith::CmpIPredicate predicate) {
  using P = arith::CmpIPredicate;
  switch (predicate) {
  case P::slt:
    return P::ult;
  case P::sle:
    return P::ule;
  case P::sgt:
    return P::ugt;
  case P::sge:
    return P::uge;
  default:
    return predicate;
  }
}

/// Sign extension preserves signed and unsigned order. After zero extension, the signed order is
/// the unsigned order.
struct NarrowComparison : OpRewritePattern<arith::CmpIOp> {
  NarrowComparison(MLIRContext *context, DataFlowSolver &solver)
      : OpRewritePattern(context), solver(solver) {}

  LogicalResult matchAndRewrite(arith::CmpIOp op, PatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getLhs().getType()).isInteger(64))
      return failure();
    std::optional<ConstantIntRanges> a = getRange(solver, op.getLhs()),
                                     b = getRange(solver, op.getRhs());
    if (!a || !b)
      return failure();
    Fit both = fitOf(*a) & fitOf(*b);
    if (!both.any())
      return failure();
    Value lhs = cut(rewriter, op.getLoc(), op.getLhs()),
          rhs = cut(rewriter, op.getLoc(), op.getRhs());
    arith::CmpIPredicate predicate =
        both.asSigned ? op.getPredicate() : toUnsigned(op.getPredicate());
    rewriter.replaceOpWithNewOp<arith::CmpIOp>(op, predicate, lhs, rhs);
    return success();
  }
  DataFlowSolver &solver;
};

/// A comparison whose result is the same for all numbers in its operands' ranges, as that of a
/// block's places with a length that is a constant.
struct KnownComparison : OpRewritePattern<arith::CmpIOp> {
  KnownComparison(MLIRContext *context, DataFlowSolver &solver)
      : OpRewritePattern(context, /*benefit=*/2), solver(solver) {}

  LogicalResult matchAndRewrite(arith::CmpIOp op, PatternRewriter &rewriter) const override {
    std::optional<ConstantIntRanges> range = getRange(solver, op.getResult());
    std::optional<APInt> known = range ? range->getConstantValue() : std::nullopt;
    if (!known)
      return failure();
    Type type = op.getType();
    TypedAttr value = rewriter.getBoolAttr(!known->isZero());
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      value = DenseElementsAttr::get(tensor, !known->isZero());
    rewriter.replaceOpWithNewOp<arith::ConstantOp>(op, type, value);
    return success();
  }
  DataFlowSolver &solver;
};

struct TTNarrowIndicesPass : impl::TTNarrowIndicesBase<TTNarrowIndicesPass> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<tt::FuncOp>())
      if (!function.isExternal() && failed(narrow(function)))
        return signalPassFailure();
  }

  LogicalResult narrow(tt::FuncOp function) {
    DataFlowSolver solver;
    if (failed(findRanges(solver, function)))
      return failure();

    MLIRContext *context = &getContext();
    ForgetErased listener(solver);
    RewritePatternSet patterns(context);
    patterns.add<NarrowOperation, NarrowComparison, KnownComparison, SignExtension, NarrowOffset>(
        context, solver);
    patterns.add<AddPtrOfExtension>(context);
    patterns
        .add<ExtendLast<tt::SplatOp, arith::ExtSIOp>, ExtendLast<tt::BroadcastOp, arith::ExtSIOp>,
             ExtendLast<tt::ExpandDimsOp, arith::ExtSIOp>,
             ExtendLast<tt::ReshapeOp, arith::ExtSIOp>, ExtendLast<tt::TransOp, arith::ExtSIOp>>(
            context);
    GreedyRewriteConfig config;
    config.enableFolding(false);
    config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
    config.setListener(&listener);
    return applyPatternsGreedily(function, std::move(patterns), config);
  }
};

} // namespace
} // namespace triton_metal

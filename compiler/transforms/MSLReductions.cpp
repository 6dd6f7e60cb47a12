#include "transforms/MSLReductions.h"

#include "transforms/InlineCombine.h"
#include "transforms/MSLArrays.h"
#include "transforms/MSLTiles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace triton_metal::msl;

TypedAttr triton_metal::msl::getNeutralElement(ReduceRegistersOp reduce) {
  if (reduce.getNumOperands() != 1)
    return {};
  Block &block = reduce.getCombine().front();
  auto yield = cast<YieldOp>(block.getTerminator());
  Operation *op = yield.getOperand(0).getDefiningOp();
  if (!op || op != &block.front() || op->getNumOperands() != 2 || op->getNextNode() != yield)
    return {};
  Value a = block.getArgument(0), b = block.getArgument(1);
  if (!(op->getOperand(0) == a && op->getOperand(1) == b) &&
      !(op->getOperand(0) == b && op->getOperand(1) == a))
    return {};
  Type type = a.getType();
  Builder builder(type.getContext());
  if (auto floating = dyn_cast<FloatType>(type)) {
    const llvm::fltSemantics &semantics = floating.getFloatSemantics();
    auto attr = [&](APFloat value) { return FloatAttr::get(type, value); };
    // The neutral elements must be exact: x + -0 is x for every x, which +0 is not for x = -0.
    // maxnum(NaN, x) is x for every x, which -infinity is not for x = NaN.
    if (isa<arith::AddFOp>(op))
      return attr(APFloat::getZero(semantics, /*Negative=*/true));
    if (isa<arith::MulFOp>(op))
      return attr(APFloat::getOne(semantics));
    if (isa<arith::MaxNumFOp, arith::MinNumFOp>(op))
      return attr(APFloat::getNaN(semantics));
    if (isa<arith::MaximumFOp>(op))
      return attr(APFloat::getInf(semantics, /*Negative=*/true));
    if (isa<arith::MinimumFOp>(op))
      return attr(APFloat::getInf(semantics));
    return {};
  }
  unsigned bits = type.getIntOrFloatBitWidth();
  auto attr = [&](APInt value) { return IntegerAttr::get(type, value); };
  if (isa<arith::AddIOp, arith::OrIOp, arith::XOrIOp, arith::MaxUIOp>(op))
    return attr(APInt::getZero(bits));
  if (isa<arith::MulIOp>(op))
    return attr(APInt(bits, 1));
  if (isa<arith::AndIOp, arith::MinUIOp>(op))
    return attr(APInt::getAllOnes(bits));
  if (isa<arith::MaxSIOp>(op))
    return attr(APInt::getSignedMinValue(bits));
  if (isa<arith::MinSIOp>(op))
    return attr(APInt::getSignedMaxValue(bits));
  return {};
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

ReductionShape ReductionShape::get(ReduceRegistersOp op) {
  ReductionShape shape;
  int64_t registers = getNumRegisters(op.getOperand(0).getType()), bits = op.getBits();
  int64_t step = std::min(msl::getStep({op}, registers), kLargestChunk);
  if (step == 1 && bits == registers - 1)
    step = std::min(registers, kLargestChunk);
  shape.registers = registers;
  shape.bits = bits;
  shape.step = step;
  shape.low = llvm::countr_zero(uint64_t(bits));
  shape.high = shape.low + llvm::popcount(uint64_t(bits));
  shape.inside = bits & (step - 1);
  shape.width = step >> llvm::popcount(uint64_t(shape.inside));
  shape.loopLow = std::max(shape.low, llvm::Log2_64(step));
  unsigned loopHigh = std::max(shape.high, shape.loopLow);
  shape.trip = int64_t(1) << (loopHigh - shape.loopLow);
  SmallVector<Value> operands(op.getOperands());
  shape.nest = getLoopNest(operands, registers, step, {int64_t(shape.loopLow), int64_t(loopHigh)});
  shape.nest.writtenOut = !shape.nest.hasLoopsOnly();
  llvm::erase_if(shape.nest.dims, [&](const LoopDim &dim) {
    return shape.trip != 1 && dim.stride >= (int64_t(1) << shape.loopLow) &&
           dim.stride < (int64_t(1) << loopHigh);
  });
  shape.isChunk = registers >> (shape.high - shape.low) == shape.width && !shape.nest.writtenOut;
  return shape;
}

Coord ReductionShape::compress(const Coord &at) const {
  auto drop = [&](int64_t value) {
    return (value & ((int64_t(1) << low) - 1)) | (value >> high << low);
  };
  Coord result;
  result.constant = drop(at.constant);
  for (const Coord::Term &term : at.terms)
    result.terms.push_back({term.index, drop(term.stride), term.trip});
  return result;
}

//===----------------------------------------------------------------------===//
// Combinations
//===----------------------------------------------------------------------===//

SmallVector<Value> triton_metal::msl::combine(OpBuilder &builder, Location loc, Block &combination,
                                              ValueRange left, ValueRange right) {
  int64_t width = getNumRegisters(left[0].getType());
  bool elementwise = llvm::all_of(combination.without_terminator(), [](Operation &op) {
    return isElementwise(&op) || isa<arith::ConstantOp>(op);
  });
  auto repeat = [&](Value number) -> Value {
    return SplatOp::create(builder, loc, VectorType::get(width, number.getType()), number);
  };
  if (width == 1 || elementwise)
    return inlineCombine(builder, loc, combination, left, right, repeat);
  SmallVector<SmallVector<Value>> components(left.size());
  for (int64_t component = 0; component < width; ++component) {
    SmallVector<Value> a, b;
    for (unsigned index = 0; index < left.size(); ++index) {
      a.push_back(createSwizzle(builder, loc, left[index], component, 1));
      b.push_back(createSwizzle(builder, loc, right[index], component, 1));
    }
    for (auto [index, value] :
         llvm::enumerate(inlineCombine(builder, loc, combination, a, b, repeat)))
      components[index].push_back(value);
  }
  SmallVector<Value> results;
  for (SmallVector<Value> &parts : components)
    results.push_back(
        VectorOp::create(builder, loc, getChunkType(parts[0].getType(), width), parts));
  return results;
}

SmallVector<Value> triton_metal::msl::combineComponents(OpBuilder &builder, Location loc,
                                                        Block &combination,
                                                        SmallVector<Value> chunks, int64_t bits) {
  // Combines halves, from the highest bit down: .xy with .zw, then .x with .y.
  for (int64_t bit = kLargestChunk / 2; bit >= 1; bit >>= 1) {
    if (!(bits & bit))
      continue;
    SmallVector<Value> low, high;
    for (Value chunk : chunks) {
      SmallVector<int64_t> lows, highs;
      for (int64_t component = 0, e = getNumRegisters(chunk.getType()); component < e; ++component)
        (component & bit ? highs : lows).push_back(component);
      Type type = getChunkType(chunk.getType(), lows.size());
      low.push_back(SwizzleOp::create(builder, loc, type, chunk, lows));
      high.push_back(SwizzleOp::create(builder, loc, type, chunk, highs));
    }
    chunks = combine(builder, loc, combination, low, high);
  }
  return chunks;
}

// Reductions over a thread's registers, and products of simdgroup matrices.

#include "transforms/MSLEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace triton_metal::msl;

SmallVector<Value> Emitter::combine(ReduceRegistersOp op, ValueRange left, ValueRange right) {
  Block &block = op.getCombine().front();
  int64_t width = getNumRegisters(left[0].getType());
  bool elementwise = llvm::all_of(block.without_terminator(), [](Operation &inner) {
    return isElementwise(&inner) || isa<arith::ConstantOp>(inner);
  });
  auto clone = [&](ValueRange a, ValueRange b, int64_t lanes) {
    IRMapping mapping = scalars;
    for (unsigned index = 0; index < a.size(); ++index) {
      mapping.map(block.getArgument(index), a[index]);
      mapping.map(block.getArgument(index + a.size()), b[index]);
    }
    for (Operation &inner : block.without_terminator()) {
      if (lanes > 1) {
        // Scalars from outside become vectors beside the vectors of the reduction.
        for (Value operand : inner.getOperands())
          if (Value mapped = mapping.lookupOrNull(operand);
              mapped && !isa<VectorType>(mapped.getType()))
            mapping.map(operand, SplatOp::create(builder, inner.getLoc(),
                                                 VectorType::get(lanes, mapped.getType()), mapped)
                                     .getResult());
      }
      Operation *copy = builder.clone(inner, mapping);
      copy->setLoc(op.getLoc());
      if (lanes == 1 || isa<arith::ConstantOp>(inner))
        continue;
      for (Value result : copy->getResults())
        result.setType(getChunkType(result.getType(), lanes));
    }
    SmallVector<Value> results;
    for (Value value : block.getTerminator()->getOperands()) {
      Value result = mapping.lookup(value);
      if (lanes > 1 && !isa<VectorType>(result.getType()))
        result =
            SplatOp::create(builder, op.getLoc(), VectorType::get(lanes, result.getType()), result);
      results.push_back(result);
    }
    return results;
  };
  if (width == 1 || elementwise)
    return clone(left, right, width);
  SmallVector<SmallVector<Value>> components(left.size());
  for (int64_t component = 0; component < width; ++component) {
    SmallVector<Value> a, b;
    for (unsigned index = 0; index < left.size(); ++index) {
      a.push_back(swizzle(op.getLoc(), left[index], component, 1));
      b.push_back(swizzle(op.getLoc(), right[index], component, 1));
    }
    for (auto [index, value] : llvm::enumerate(clone(a, b, 1)))
      components[index].push_back(value);
  }
  SmallVector<Value> results;
  for (SmallVector<Value> &parts : components)
    results.push_back(
        VectorOp::create(builder, op.getLoc(), getChunkType(parts[0].getType(), width), parts));
  return results;
}

SmallVector<Value> Emitter::combineComponents(ReduceRegistersOp op, SmallVector<Value> chunks,
                                              int64_t bits) {
  // Halves, from the highest bit down: .xy with .zw, then .x with .y.
  for (int64_t bit = 2; bit >= 1; bit >>= 1) {
    if (!(bits & bit))
      continue;
    SmallVector<Value> low, high;
    for (Value chunk : chunks) {
      SmallVector<int64_t> lows, highs;
      for (int64_t component = 0, e = getNumRegisters(chunk.getType()); component < e; ++component)
        (component & bit ? highs : lows).push_back(component);
      Type type = getChunkType(chunk.getType(), lows.size());
      low.push_back(SwizzleOp::create(builder, op.getLoc(), type, chunk, lows));
      high.push_back(SwizzleOp::create(builder, op.getLoc(), type, chunk, highs));
    }
    chunks = combine(op, low, high);
  }
  return chunks;
}

void Emitter::emitReduce(ReduceRegistersOp op) {
  // One range of register bits (the pass has split others): those inside a chunk are combined by
  // halves, those above by a loop, and loops around that go over the bits that stay.
  Location loc = op.getLoc();
  int64_t registers = getNumRegisters(op.getOperand(0).getType());
  int64_t bits = op.getBits();
  int64_t step = std::min<int64_t>(getStep({op}, registers), 4);
  if (step == 1 && registers > 1 && bits == registers - 1)
    step = std::min<int64_t>(registers, 4);
  unsigned low = bits ? llvm::countr_zero(uint64_t(bits)) : 0;
  unsigned high = low + llvm::popcount(uint64_t(bits));
  unsigned chunkBits = llvm::Log2_64(step);
  int64_t inside = bits & (step - 1);
  unsigned loopLow = std::max(low, chunkBits), loopHigh = std::max(high, loopLow);
  int64_t trip = int64_t(1) << (loopHigh - loopLow);
  int64_t left = registers >> (high - low);
  int64_t width = step >> llvm::popcount(uint64_t(inside));
  bool unrolled = false;
  std::vector<Dim> dims;
  SmallVector<Value> operands(op.getOperands());
  for (Dim dim :
       getDims(operands, registers, step, unrolled, {int64_t(loopLow), int64_t(loopHigh)}))
    if (trip == 1 || dim.stride < (int64_t(1) << loopLow) || dim.stride >= (int64_t(1) << loopHigh))
      dims.push_back(dim);
  SmallVector<Storage> results;
  bool single = left == width && !unrolled;
  if (!single)
    for (Value result : op.getResults())
      results.push_back(makeStorage(loc, result.getType(), width, false));
  auto chunksAt = [&](const Coord &at) {
    SmallVector<Value> chunks;
    for (Value operand : op.getOperands())
      chunks.push_back(get(operand, at, step));
    return chunks;
  };
  // Where the result of the registers at `at` goes: the reduced bits are dropped.
  auto compress = [&](const Coord &at) {
    auto drop = [&](int64_t value) {
      int64_t below = value & ((int64_t(1) << low) - 1);
      return below | (value >> high << low);
    };
    Coord result;
    result.constant = drop(at.constant);
    for (const Coord::Term &term : at.terms)
      result.terms.push_back({term.index, drop(term.stride), term.trip});
    return result;
  };
  auto finish = [&](SmallVector<Value> chunks, const Coord &at) {
    chunks = combineComponents(op, chunks, inside);
    for (auto [index, chunk] : llvm::enumerate(chunks)) {
      if (single)
        ssa[op.getResult(index)] = chunk;
      else
        writeStorage(loc, results[index], compress(at), width, chunk);
    }
  };
  if (unrolled) {
    // Register by register, in order.
    for (int64_t first = 0; first < registers; first += step) {
      if (first & bits & ~(step - 1))
        continue;
      SmallVector<Value> chunks = chunksAt(Coord().plus(first));
      for (int64_t k = 1; k < trip; ++k)
        chunks = combine(op, chunks, chunksAt(Coord().plus(first + (k << loopLow))));
      finish(chunks, Coord().plus(first));
    }
  } else {
    auto body = [&](const Coord &at) {
      SmallVector<Value> chunks = chunksAt(at);
      if (trip > 1) {
        SmallVector<Storage> accumulators;
        for (Value chunk : chunks) {
          accumulators.push_back(makeStorage(loc, chunk.getType(), step, false));
          SetOp::create(builder, loc, chunk, accumulators.back().variable, Value(), Value());
        }
        auto current = [&] {
          SmallVector<Value> values;
          for (Storage &storage : accumulators)
            values.push_back(GetOp::create(builder, loc, storage.getType().getValueType(),
                                           storage.variable, Value(), Value()));
          return values;
        };
        auto loop = UnrollOp::create(builder, loc, 1, trip);
        {
          OpBuilder::InsertionGuard guard(builder);
          builder.setInsertionPoint(loop.getBody().front().getTerminator());
          Scope scope(*this);
          SmallVector<Value> next = chunksAt(at.plus(loop.getIndex(), int64_t(1) << loopLow, trip));
          next = combine(op, current(), next);
          for (auto [storage, value] : llvm::zip_equal(accumulators, next))
            SetOp::create(builder, loc, value, storage.variable, Value(), Value());
        }
        chunks = current();
      }
      finish(chunks, at);
    };
    emitNest(loc, dims, false, registers, step, body);
  }
  if (!single)
    for (auto [result, storage] : llvm::zip_equal(op.getResults(), results))
      stored[result] = storage;
}

//===----------------------------------------------------------------------===//
// Matrices
//===----------------------------------------------------------------------===//

Storage Emitter::getFragments(Value value) {
  if (auto it = stored.find(value); it != stored.end() && it->second.isMatrix())
    return it->second;
  Storage storage = makeStorage(value.getLoc(), value.getType(), 2, true);
  copyInto(value, storage);
  return storage;
}

void Emitter::emitMma(MmaOp op, int entry, Block *block) {
  Location loc = op.getLoc();
  Value acc = op.getAcc();
  Storage accumulator;
  if (auto it = stored.find(acc); it != stored.end() && it->second.isMatrix() &&
                                  plan.isDeadAfter(acc, block, entry, /*beforeLast=*/false) &&
                                  acc != op.getA() && acc != op.getB()) {
    accumulator = it->second;
  } else {
    accumulator = makeStorage(loc, acc.getType(), 2, true);
    copyInto(acc, accumulator);
  }
  int64_t m = op.getM(), n = op.getN(), k = op.getK();
  Storage aStored, bStored;
  if (!isa<PtrType>(op.getA().getType()))
    aStored = getFragments(op.getA());
  if (!isa<PtrType>(op.getB().getType()))
    bStored = getFragments(op.getB());
  Type i32 = builder.getI32Type();
  auto nsw = arith::IntegerOverflowFlags::nsw;
  // x * scale + y, without what is 0; null for 0.
  Location nowhere = builder.getUnknownLoc();
  auto add = [&](Value a, Value b) -> Value {
    if (!a || !b)
      return a ? a : b;
    return arith::AddIOp::create(builder, nowhere, a, b, nsw);
  };
  auto scale = [&](Value a, int64_t by) -> Value {
    if (!a || by == 1)
      return a;
    return arith::MulIOp::create(builder, nowhere, a, constant(loc, by, i32), nsw);
  };
  auto loop = [&](int64_t count, function_ref<void(Value)> body) {
    if (count == 1)
      return body(Value());
    OpBuilder::InsertionGuard guard(builder);
    auto unroll = UnrollOp::create(builder, loc, 0, count);
    builder.setInsertionPoint(unroll.getBody().front().getTerminator());
    body(unroll.getIndex());
  };
  auto name = [&](StringRef text) { return NameLoc::get(builder.getStringAttr(text), loc); };
  // The index in an array: none where it has one element.
  auto indexed = [&](const Storage &storage, Value index) -> Value {
    if (storage.getType().getCount() == 1)
      return {};
    return index ? index : constant(loc, 0, i32);
  };
  loop(k, [&](Value kIndex) {
    // Both operands' fragments of this slice of k.
    auto load = [&](Value pointer, int64_t count, int64_t stride, bool transposed, bool alongK,
                    StringRef text) {
      // `alongK`: the tile's rows, as stored, go along k.
      Type element = cast<PtrType>(pointer.getType()).getElementType();
      Storage storage = makeStorage(name(text), VectorType::get(count * 2, element), 2, true);
      loop(count, [&](Value index) {
        Value rows = alongK ? kIndex : index, columns = alongK ? index : kIndex;
        Value offset = add(scale(rows, 8 * stride), scale(columns, 8));
        MatrixLoadOp::create(builder, loc, getScalar(pointer), offset, storage.variable,
                             indexed(storage, index), builder.getI32IntegerAttr(stride),
                             transposed ? builder.getUnitAttr() : UnitAttr());
      });
      return storage;
    };
    Storage a = aStored, b = bStored;
    if (!a)
      a = load(op.getA(), m, op.getAStride(), op.getATransposed(), op.getATransposed(),
               "a_fragment");
    if (!b)
      b = load(op.getB(), n, op.getBStride(), op.getBTransposed(), !op.getBTransposed(),
               "b_fragment");
    loop(m, [&](Value mIndex) {
      loop(n, [&](Value nIndex) {
        Value aIndex = aStored ? add(scale(mIndex, k), kIndex) : mIndex;
        Value bIndex = bStored ? add(scale(kIndex, n), nIndex) : nIndex;
        MultiplyAccumulateOp::create(
            builder, loc, accumulator.variable, indexed(accumulator, add(scale(mIndex, n), nIndex)),
            a.variable, indexed(a, aIndex), b.variable, indexed(b, bIndex));
      });
    });
  });
  stored[op.getResult()] = accumulator;
}

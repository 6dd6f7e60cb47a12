// Reductions over registers, and products of matrices.

#include "dialect/msl/MSL.h"

#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace triton_metal::msl;

LogicalResult ReduceRegistersOp::verify() {
  unsigned count = getNumOperands();
  if (count == 0 || getNumResults() != count)
    return emitOpError("needs as many results as operands, at least one");
  Block &block = getCombine().front();
  auto yield = dyn_cast<YieldOp>(block.getTerminator());
  if (!yield || block.getNumArguments() != 2 * count || yield.getNumOperands() != count)
    return emitOpError("combines ")
           << count << " values, so its region takes " << 2 * count << " and yields " << count;
  int64_t registers = getNumRegisters(getOperand(0).getType());
  int64_t bits = getBits();
  if (!llvm::isPowerOf2_64(registers) || bits < 0 || bits >= registers)
    return emitOpError("reduces register bits that its operands do not have");
  int64_t kept = registers >> llvm::popcount(uint64_t(bits));
  for (unsigned index = 0; index < count; ++index) {
    Type element = getElementTypeOrSelf(getOperand(index).getType());
    if (getNumRegisters(getOperand(index).getType()) != registers)
      return emitOpError("needs operands of one size");
    if (getResult(index).getType() != VectorType::get(kept, element) &&
        (kept != 1 || getResult(index).getType() != element))
      return emitOpError("result ") << index << " must be " << VectorType::get(kept, element);
    if (block.getArgument(index).getType() != element ||
        block.getArgument(index + count).getType() != element ||
        yield.getOperand(index).getType() != element)
      return emitOpError("the region's value ") << index << " must be " << element;
  }
  return success();
}

static bool takesRegisters(MatrixShape shape) {
  const MatrixInstruction *instruction = MatrixInstruction::get(shape);
  return instruction && instruction->inRegisters;
}

/// Whether an array is one of vectors of four.
static bool isOfFours(ArrayType array) {
  auto vector = dyn_cast<VectorType>(array.getElementType());
  return vector && vector.getNumElements() == 4;
}

/// Of what is not behind a pointer, `hasFragments` says whether it consists of so many fragments.
template <typename Op>
static LogicalResult
verifyFragments(Op op,
                function_ref<LogicalResult(Type, int64_t, FragmentShape, StringRef)> hasFragments) {
  int64_t m = int32_t(op.getM()), n = int32_t(op.getN()), k = int32_t(op.getK());
  if (m < 1 || n < 1 || k < 1)
    return op.emitOpError("needs at least one fragment in each dimension");
  int64_t batches = int32_t(op.getBatches()), batch = int32_t(op.getBatch());
  int64_t first = int32_t(op.getFirstBatch());
  if (batch < 1 || first < 0 || first + batch > batches)
    return op.emitOpError("the batch must be a part of the accumulator's");
  MatrixShape shape = op.getInstruction();
  auto check = [&](Type type, int64_t count, FragmentShape fragment, int32_t stride,
                   bool transposed, StringRef name) -> LogicalResult {
    if (isa<PtrType>(type) && takesRegisters(shape))
      return op.emitOpError() << name << " must be in registers, where " << shape.str()
                              << " takes its operands";
    if (!isa<PtrType>(type) && transposed && !takesRegisters(shape))
      return op.emitOpError() << name << " in registers must not be transposed";
    if (!isa<PtrType>(type) && batches > 1)
      return op.emitOpError() << name << " must be in memory, as the accumulator has a batch";
    if (!isa<PtrType>(type))
      return hasFragments(type, count, fragment, name);
    int64_t row = transposed ? fragment.rows : fragment.columns;
    if (stride < row)
      return op.emitOpError() << name << "_stride must be at least " << row << " elements";
    return success();
  };
  return failure(failed(hasFragments(op.getAcc().getType(), batches * m * n, shape.getAccumulator(),
                                     "the accumulator")) ||
                 failed(check(op.getA().getType(), m * k, shape.getOperand(0), op.getAStride(),
                              op.getATransposed(), "a")) ||
                 failed(check(op.getB().getType(), k * n, shape.getOperand(1), op.getBStride(),
                              op.getBTransposed(), "b")));
}

LogicalResult MmaOp::verify() {
  auto hasFragments = [&](Type type, int64_t count, FragmentShape fragment,
                          StringRef name) -> LogicalResult {
    if (getNumRegisters(type) == count * fragment.getNumRegisters())
      return success();
    return emitOpError() << name << " must have " << fragment.getNumRegisters()
                         << " registers for each of its " << count << " fragments";
  };
  return verifyFragments(*this, hasFragments);
}

LogicalResult MatrixProductOp::verify() {
  auto hasFragments = [&](Type type, int64_t count, FragmentShape fragment,
                          StringRef name) -> LogicalResult {
    auto array = cast<ArrayType>(type);
    if (takesRegisters(getInstruction())) {
      if (isOfFours(array) && 4 * array.getCount() == count * fragment.getNumRegisters())
        return success();
      return emitOpError() << name << " must be " << count * fragment.getNumRegisters() / 4
                           << " vectors of four";
    }
    if (array.isMatrix() && array.getCount() == count &&
        array.getMatrixType().getShape() == fragment)
      return success();
    return emitOpError() << name << " must be " << count << " matrices of " << fragment.str();
  };
  return verifyFragments(*this, hasFragments);
}

LogicalResult TensorMultiplyOp::verify() {
  MatrixShape shape = getInstruction();
  if (!takesRegisters(shape))
    return emitOpError() << "no instruction takes " << shape.str() << " from registers";
  auto check = [&](ArrayType array, FragmentShape fragment, StringRef name) -> LogicalResult {
    if (isOfFours(array) && 4 * array.getCount() % fragment.getNumRegisters() == 0)
      return success();
    return emitOpError() << name << " must be vectors of four, as many as " << fragment.str()
                         << " takes or a multiple";
  };
  if (getA().getType().getScalarType() != getB().getType().getScalarType())
    return emitOpError("the factors must be of one type");
  return failure(failed(check(getAcc().getType(), shape.getAccumulator(), "the accumulator")) ||
                 failed(check(getA().getType(), shape.getOperand(0), "a")) ||
                 failed(check(getB().getType(), shape.getOperand(1), "b")));
}

LogicalResult MultiplyAccumulateOp::verify() {
  MatrixShape shape = getInstruction();
  FragmentShape a = getA().getType().getMatrixType().getShape();
  FragmentShape b = getB().getType().getMatrixType().getShape();
  if (shape.getOperand(0) != a || shape.getOperand(1) != b)
    return emitOpError() << "cannot add the product of " << a.str() << " and " << b.str() << " to "
                         << shape.getAccumulator().str();
  return success();
}

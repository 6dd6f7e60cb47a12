// What each operation answers to the interfaces of MSLInterfaces.td.

#include "dialect/msl/MSL.h"

using namespace mlir;
using namespace triton_metal::msl;

#include "dialect/msl/MSLInterfaces.cpp.inc"

//===----------------------------------------------------------------------===//
// Accesses to memory
//===----------------------------------------------------------------------===//

void LoadOp::getAccesses(SmallVectorImpl<MemoryAccess> &accesses) {
  accesses.push_back({MemoryAccess::Read, getBase(), getOffsets()});
}
void StoreOp::getAccesses(SmallVectorImpl<MemoryAccess> &accesses) {
  accesses.push_back({MemoryAccess::Write, getBase(), getOffsets()});
}
void LoadAddressOp::getAccesses(SmallVectorImpl<MemoryAccess> &accesses) {
  accesses.push_back({MemoryAccess::Read, Value(), getAddresses()});
}
void StoreAddressOp::getAccesses(SmallVectorImpl<MemoryAccess> &accesses) {
  accesses.push_back({MemoryAccess::Write, Value(), getAddresses()});
}
void AtomicRMWOp::getAccesses(SmallVectorImpl<MemoryAccess> &accesses) {
  accesses.push_back({MemoryAccess::Atomic, getBase(), getOffsets()});
}
void AtomicCASOp::getAccesses(SmallVectorImpl<MemoryAccess> &accesses) {
  accesses.push_back({MemoryAccess::Atomic, getBase(), getOffsets()});
}
void MmaOp::getAccesses(SmallVectorImpl<MemoryAccess> &accesses) {
  for (Value operand : {getA(), getB()})
    if (isa<PtrType>(operand.getType()))
      accesses.push_back({MemoryAccess::Read, operand, Value()});
}
void ReadOp::getAccesses(SmallVectorImpl<MemoryAccess> &accesses) {
  accesses.push_back({MemoryAccess::Read, getBase(), getOffset()});
}
void WriteOp::getAccesses(SmallVectorImpl<MemoryAccess> &accesses) {
  accesses.push_back({MemoryAccess::Write, getBase(), getOffset()});
}

Value LoadOp::getFullCondition() { return getFull(); }
Value StoreOp::getFullCondition() { return getFull(); }
Value LoadAddressOp::getFullCondition() { return getFull(); }
Value StoreAddressOp::getFullCondition() { return getFull(); }
int32_t LoadOp::getAccessWidth() { return getWidth(); }
int32_t StoreOp::getAccessWidth() { return getWidth(); }
int32_t LoadAddressOp::getAccessWidth() { return getWidth(); }
int32_t StoreAddressOp::getAccessWidth() { return getWidth(); }
int32_t LoadOp::getAccessMaskWidth() { return getMaskWidth(); }
int32_t StoreOp::getAccessMaskWidth() { return getMaskWidth(); }
int32_t LoadAddressOp::getAccessMaskWidth() { return getMaskWidth(); }
int32_t StoreAddressOp::getAccessMaskWidth() { return getMaskWidth(); }
int32_t LoadOp::getAccessMaskRun() { return getMaskRun(); }
int32_t StoreOp::getAccessMaskRun() { return getMaskRun(); }
int32_t LoadAddressOp::getAccessMaskRun() { return getMaskRun(); }
int32_t StoreAddressOp::getAccessMaskRun() { return getMaskRun(); }
bool LoadOp::isUnalignedAccess() { return getUnaligned(); }
bool StoreOp::isUnalignedAccess() { return getUnaligned(); }
bool LoadAddressOp::isUnalignedAccess() { return getUnaligned(); }
bool StoreAddressOp::isUnalignedAccess() { return getUnaligned(); }

AtomicKind AtomicRMWOp::getUpdateKind() { return getKind(); }
AtomicKind AtomicCASOp::getUpdateKind() { return AtomicKind::Exchange; }

//===----------------------------------------------------------------------===//
// Features of the target
//===----------------------------------------------------------------------===//

Feature AtomicRMWOp::getRequiredFeature() {
  if (getForm() != AtomicForm::Metal)
    return Feature::None;
  if (getKind() == AtomicKind::FAdd)
    return Feature::FloatAtomics;
  bool isLong = getElementTypeOrSelf(getType()).getIntOrFloatBitWidth() == 64;
  return isLong ? Feature::Atomic64MinMax : Feature::None;
}
Feature AtomicCASOp::getRequiredFeature() { return Feature::None; }
Feature FenceOp::getRequiredFeature() { return Feature::MemoryOrders; }

//===----------------------------------------------------------------------===//
// Products of matrices
//===----------------------------------------------------------------------===//

Type triton_metal::msl::getNumberType(Type type) {
  if (auto pointer = dyn_cast<PtrType>(type))
    return pointer.getElementType();
  if (auto array = dyn_cast<ArrayType>(type))
    return array.getScalarType();
  return getElementTypeOrSelf(type);
}

LogicalResult triton_metal::msl::verifyMatrixMultiply(Operation *op) {
  auto multiply = cast<MatrixMultiplyOpInterface>(op);
  for (Value factor : {multiply.getA(), multiply.getB()}) {
    Type number = multiply.getNumberType(factor.getType());
    if (!isMatrixNumber(number))
      return op->emitOpError() << "Metal has no simdgroup matrix of " << number;
  }
  return success();
}

// The types of the matrices say it.
MatrixShape MultiplyAccumulateOp::getInstruction() {
  FragmentShape acc = getAcc().getType().getMatrixType().getShape();
  return {acc.rows, acc.columns, getA().getType().getMatrixType().getShape().columns};
}

//===----------------------------------------------------------------------===//
// How results are spread over threads
//===----------------------------------------------------------------------===//

Spread LaneOp::getSpread() { return Spread::Thread; }
Spread SimdgroupOp::getSpread() { return Spread::Simdgroup; }
Spread UniformOp::getSpread() { return Spread::Threadgroup; }
// Each thread that updates memory finds something else there.
Spread AtomicRMWOp::getSpread() { return Spread::Thread; }
Spread AtomicCASOp::getSpread() { return Spread::Thread; }
// Fragments are spread over the lanes, and each thread has variables of its own.
Spread MmaOp::getSpread() { return Spread::Thread; }
Spread VarOp::getSpread() { return Spread::Thread; }
Spread GetOp::getSpread() { return Spread::Thread; }

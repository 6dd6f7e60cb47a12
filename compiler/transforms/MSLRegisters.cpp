#include "transforms/MSLRegisters.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace triton_metal::msl;

RegisterMap RegisterMap::identity(int64_t registers) {
  RegisterMap map;
  for (int64_t bit = 1; bit < registers; bit <<= 1)
    map.bases.push_back(bit);
  return map;
}

int64_t RegisterMap::apply(int64_t index) const {
  int64_t result = offset;
  for (auto [bit, base] : llvm::enumerate(bases))
    if (index >> bit & 1)
      result ^= base;
  return result;
}

RegisterMap RegisterMap::then(const RegisterMap &inner) const {
  RegisterMap result;
  for (int64_t base : bases)
    result.bases.push_back(inner.apply(base) ^ inner.offset);
  result.offset = inner.apply(offset);
  return result;
}

bool RegisterMap::isDisjoint() const {
  int64_t seen = offset;
  for (int64_t base : bases) {
    if (seen & base)
      return false;
    seen |= base;
  }
  return true;
}

bool RegisterMap::isIdentity() const {
  for (auto [bit, base] : llvm::enumerate(bases))
    if (base != int64_t(1) << bit)
      return false;
  return offset == 0;
}

int64_t triton_metal::msl::getConstantElement(DenseElementsAttr constant, int64_t index) {
  if (isa<FloatType>(constant.getElementType()))
    return constant.getValues<APFloat>()[index].bitcastToAPInt().getSExtValue();
  return constant.getValues<APInt>()[index].getSExtValue();
}

std::optional<SmallVector<int64_t>> triton_metal::msl::getLinearStrides(DenseElementsAttr constant,
                                                                        const RegisterMap &map) {
  SmallVector<int64_t> strides(map.bases.size(), 0);
  if (constant.isSplat())
    return strides;
  if (!isa<IntegerType>(constant.getElementType()) || constant.getElementType().isInteger(1))
    return std::nullopt;
  // The sum of the strides is computed in the constant's type and must not overflow.
  unsigned bits = constant.getElementType().getIntOrFloatBitWidth();
  int64_t first = getConstantElement(constant, map.offset), up = 0, down = 0;
  for (auto [bit, base] : llvm::enumerate(map.bases)) {
    int64_t &stride = strides[bit];
    int64_t &total = getConstantElement(constant, map.offset ^ base) < first ? down : up;
    if (llvm::SubOverflow(getConstantElement(constant, map.offset ^ base), first, stride) ||
        llvm::AddOverflow(total, stride, total) || !llvm::isIntN(bits, total))
      return std::nullopt;
  }
  for (int64_t index = 0, e = int64_t(1) << map.bases.size(); index < e; ++index) {
    int64_t sum = 0;
    for (auto [bit, stride] : llvm::enumerate(strides))
      if (index >> bit & 1)
        sum += stride;
    if (llvm::AddOverflow(first, sum, sum) || sum != getConstantElement(constant, map.apply(index)))
      return std::nullopt;
  }
  return strides;
}

int64_t Coord::getBase(Value index, unsigned bit) const {
  int64_t base = 0;
  for (const Term &term : terms)
    if (term.index == index && bit < llvm::Log2_64(term.trip))
      base ^= term.stride << bit;
  return base;
}

bool Coord::isFirstOfIndex(const Term &term) const {
  return llvm::find_if(terms, [&](const Term &other) { return other.index == term.index; }) ==
         &term;
}

Coord Coord::plus(int64_t offset) const {
  Coord result = *this;
  result.constant += offset;
  return result;
}

Coord Coord::plus(Value index, int64_t stride, int64_t trip) const {
  Coord result = *this;
  result.terms.push_back({index, stride, trip});
  return result;
}

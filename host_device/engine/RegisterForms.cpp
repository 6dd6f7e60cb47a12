// Brings the numbers of a thread into the forms in which a GPU's compiler has them: in as few bits
// as the text gave them, and offsets added up as it does.
#include "host_device/engine/RegisterCode.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/Analysis/SimplifyQuery.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace llvm;
using namespace llvm::PatternMatch;

namespace triton_metal::engine::registers {

namespace {

/// An access scales its offset by up to so many bits.
constexpr unsigned mostScaleBits = 4;

class Narrower {
public:
  explicit Narrower(Function &function) : function(function), query(function.getDataLayout()) {}

  void run() {
    SmallVector<WeakTrackingVH, 16> dead;
    for (BasicBlock *block : ReversePostOrderTraversal<Function *>(&function))
      for (Instruction &inst : make_early_inc_range(*block)) {
        auto *binary = dyn_cast<BinaryOperator>(&inst);
        auto *address = dyn_cast<GetElementPtrInst>(&inst);
        if ((binary && binary->getType()->isIntegerTy(64) && narrow(*binary)) ||
            (address && (join(*address) || associate(*address))))
          dead.push_back(&inst);
      }
    RecursivelyDeleteTriviallyDeadInstructionsPermissive(dead);
  }

private:
  /// The low half of a number of 64 bits, if it is there without an instruction.
  Value *lowOf(Value *value, IRBuilder<> &b) {
    Type *type = b.getInt32Ty();
    if (auto *number = dyn_cast<ConstantInt>(value))
      return ConstantInt::get(type, number->getValue().trunc(32));
    if (auto *cast = dyn_cast<CastInst>(value); cast && isa<ZExtInst, SExtInst>(cast)) {
      Value *from = cast->getOperand(0);
      unsigned bits = from->getType()->getIntegerBitWidth();
      if (bits > 32)
        return nullptr;
      if (bits == 32)
        return from;
      Value *&made = widened[cast];
      if (!made) {
        // Beside the conversion, so that every other user finds it.
        IRBuilder<> beside(cast);
        made = beside.CreateCast(cast->getOpcode(), from, type);
      }
      return made;
    }
    return nullptr;
  }

  bool narrow(BinaryOperator &inst) {
    const APInt *by = nullptr;
    switch (inst.getOpcode()) {
    case Instruction::Shl:
      if (!match(inst.getOperand(1), m_APInt(by)) || by->uge(32))
        return false;
      break;
    case Instruction::Add:
    case Instruction::Sub:
    case Instruction::Mul:
    case Instruction::And:
    case Instruction::Or:
    case Instruction::Xor:
      break;
    default:
      return false;
    }
    // What was widened is known not to wrap around. Other sums are of 64 bits in the text.
    if (isa<OverflowingBinaryOperator>(inst) && !inst.hasNoUnsignedWrap() &&
        !inst.hasNoSignedWrap())
      return false;
    IRBuilder<> b(&inst);
    Value *left = lowOf(inst.getOperand(0), b);
    Value *right = left ? lowOf(inst.getOperand(1), b) : nullptr;
    if (!right)
      return false;
    KnownBits known = computeKnownBits(&inst, query.getWithInstruction(&inst));
    bool isUnsigned = known.countMinLeadingZeros() >= 32;
    if (!isUnsigned && known.countMinSignBits() < 33)
      return false;
    Value *result = nullptr;
    if (by && by->ule(mostScaleBits) && all_of(inst.users(), isByteAddress))
      // Accesses shift by themselves.
      result = b.CreateShl(isUnsigned ? b.CreateZExt(left, inst.getType())
                                      : b.CreateSExt(left, inst.getType()),
                           by->getZExtValue());
    else if (by)
      result = b.CreateShl(left, by->getZExtValue(), "", isUnsigned);
    else
      result = b.CreateBinOp(inst.getOpcode(), left, right);
    if (result->getType() != inst.getType())
      result = isUnsigned ? b.CreateZExt(result, inst.getType(), "", known.isNonNegative())
                          : b.CreateSExt(result, inst.getType());
    inst.replaceAllUsesWith(result);
    return true;
  }

  /// Adds up the offsets of an address from another address in 32 bits, if they fit and LLVM has
  /// split them: it adds some of them as bytes.
  bool join(GetElementPtrInst &address) {
    auto *inner = dyn_cast<GetElementPtrInst>(address.getPointerOperand());
    if (!inner || address.getType()->isVectorTy() || address.getPointerAddressSpace() == 3)
      return false;
    const DataLayout &layout = function.getDataLayout();
    uint64_t unit = layout.getTypeAllocSize(address.getSourceElementType()).getFixedValue();
    SmallVector<std::pair<Value *, uint64_t>, 4> terms;
    uint64_t fixed = 0, most = 0;
    bool isSplit = false;
    Value *base = &address;
    for (auto *each = &address; each; each = dyn_cast<GetElementPtrInst>(base)) {
      base = each->getPointerOperand();
      APInt bytes(64, 0);
      if (each->accumulateConstantOffset(layout, bytes)) {
        fixed += bytes.getZExtValue();
        continue;
      }
      if (each->getNumIndices() != 1)
        return false;
      isSplit |= each != &address && each->getSourceElementType()->isIntegerTy(8);
      uint64_t scale = layout.getTypeAllocSize(each->getSourceElementType()).getFixedValue();
      Value *index = each->getOperand(1), *shifted, *number;
      const APInt *by;
      if (match(index, m_Shl(m_Value(shifted), m_APInt(by))) && by->ult(32)) {
        scale <<= by->getZExtValue();
        index = shifted;
      }
      if (!match(index, m_ZExt(m_Value(number))) || !number->getType()->isIntegerTy(32))
        return false;
      if (scale % unit && match(number, m_NUWShl(m_Value(shifted), m_APInt(by)))) {
        scale <<= by->getZExtValue();
        number = shifted;
      }
      if (scale % unit || !isPowerOf2_64(scale / unit))
        return false;
      KnownBits known = computeKnownBits(number, query.getWithInstruction(&address));
      most += known.getMaxValue().getZExtValue() * (scale / unit);
      terms.push_back({number, scale / unit});
    }
    if (terms.size() < 2 || !isSplit || unit == 1 || fixed % unit ||
        fixed / unit > std::numeric_limits<int32_t>::max() ||
        most + fixed / unit > std::numeric_limits<uint32_t>::max())
      return false;
    IRBuilder<> b(&address);
    Value *sum = nullptr;
    for (auto [number, scale] : reverse(terms)) {
      Value *term = scale == 1 ? number : b.CreateShl(number, Log2_64(scale), "", true);
      sum = sum ? b.CreateAdd(sum, term, "", true) : term;
    }
    if (fixed)
      sum = b.CreateAdd(sum, b.getInt32(fixed / unit), "", true);
    address.replaceAllUsesWith(
        b.CreateGEP(address.getSourceElementType(), base, b.CreateZExt(sum, b.getInt64Ty())));
    return true;
  }

  /// The offsets that were added to an address, the first one first, in elements.
  struct Chain {
    Value *base = nullptr;
    SmallVector<Value *, 4> indices;
    int64_t fixed = 0;
  };

  /// Adds up the offsets before they are added to the address, but for one that accesses add by
  /// themselves: of two, one with a sign; of more, the last one if it has a sign, or else one
  /// before it that has none.
  bool associate(GetElementPtrInst &address) {
    const DataLayout &layout = function.getDataLayout();
    uint64_t unit = layout.getTypeAllocSize(address.getSourceElementType()).getFixedValue();
    if (address.getType()->isVectorTy() || address.getPointerAddressSpace() == 3 || unit < 2 ||
        !isPowerOf2_64(unit))
      return false;
    Value *from = address.getPointerOperand();
    Chain chain;
    if (auto found = chains.find({from, unit}); found != chains.end())
      chain = found->second;
    else
      chain.base = from;
    APInt bytes(64, 0);
    if (address.accumulateConstantOffset(layout, bytes)) {
      if (bytes.getSExtValue() % int64_t(unit))
        return false;
      chain.fixed += bytes.getSExtValue() / int64_t(unit);
    } else if (address.getNumIndices() == 1) {
      chain.indices.push_back(address.getOperand(1));
    } else {
      return false;
    }
    size_t count = chain.indices.size();
    if (count < 2) {
      chains[{&address, unit}] = chain;
      return false;
    }
    auto isExtended = [](const Value *value, bool isSigned) {
      return (isSigned ? match(value, m_SExt(m_Value())) : match(value, m_ZExt(m_Value()))) &&
             cast<CastInst>(value)->getSrcTy()->isIntegerTy(32);
    };
    std::optional<size_t> alone;
    if (count == 2 && !chain.fixed) {
      for (size_t i : {1, 0})
        if (!alone && isExtended(chain.indices[i], true))
          alone = i;
    } else if (isExtended(chain.indices.back(), true)) {
      alone = count - 1;
    } else {
      for (size_t i = chain.fixed ? count : count - 1; i-- > 0 && !alone;)
        if (isExtended(chain.indices[i], false))
          alone = i;
    }
    IRBuilder<> b(&address);
    Type *element = address.getSourceElementType();
    Value *base = chain.base, *sum = nullptr;
    if (chain.fixed)
      base = b.CreateGEP(element, base, b.getInt64(chain.fixed));
    for (auto [i, index] : enumerate(chain.indices))
      if (alone != i)
        sum = sum ? b.CreateAdd(sum, index) : index;
    Value *result = b.CreateGEP(element, base, sum);
    if (alone)
      result = b.CreateGEP(element, result, chain.indices[*alone]);
    chains[{result, unit}] = chain;
    address.replaceAllUsesWith(result);
    return true;
  }

  static bool isByteAddress(const User *user) {
    auto *address = dyn_cast<GetElementPtrInst>(user);
    return address && address->getSourceElementType()->isIntegerTy(8);
  }

  Function &function;
  SimplifyQuery query;
  DenseMap<const Value *, Value *> widened;
  DenseMap<std::pair<const Value *, uint64_t>, Chain> chains;
};

} // namespace

void narrowNumbers(Function &function) { Narrower(function).run(); }

} // namespace triton_metal::engine::registers

// Recognises moves between lanes whose source is the thread's own lane combined with a number.
#include "Gpu.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;
using namespace llvm::PatternMatch;

namespace triton_metal::gpu {

/// Looks through conversions and `& 31`, which do not change a lane.
static Value *strip(Value *lane) {
  for (;;) {
    Value *inner;
    if (auto *cast = dyn_cast<CastInst>(lane))
      lane = cast->getOperand(0);
    else if (match(lane, m_And(m_Value(inner), m_SpecificInt(31))))
      lane = inner;
    else
      return lane;
  }
}

static bool isLane(Value *value) {
  auto *call = dyn_cast<CallInst>(strip(value));
  return call && call->getCalledFunction() && call->getCalledFunction()->getName() == "__tm_lane";
}

Source sourceOf(Value *lane) {
  Value *source = strip(lane), *left, *right;
  if (match(source, m_Xor(m_Value(left), m_Value(right)))) {
    if (isLane(right))
      std::swap(left, right);
    if (isLane(left))
      return {Source::Kind::Xor, right};
  }
  // A lane whose source would be outside keeps its own value.
  Value *condition, *yes, *no, *tested;
  if (match(source, m_Select(m_Value(condition), m_Value(yes), m_Value(no))) &&
      match(condition, m_ICmp(m_Value(tested), m_ConstantInt())) && isLane(tested)) {
    if (isLane(yes))
      std::swap(yes, no);
    const APInt *delta;
    if (isLane(no) && match(strip(yes), m_AddLike(m_Value(left), m_APInt(delta))) && isLane(left)) {
      Type *i32 = Type::getInt32Ty(lane->getContext());
      int64_t by = delta->getSExtValue();
      if (by != 0 && by > -32 && by < 32)
        return {by < 0 ? Source::Kind::Up : Source::Kind::Down,
                ConstantInt::get(i32, static_cast<uint64_t>(by < 0 ? -by : by))};
    }
  }
  return {Source::Kind::Lane, lane};
}

} // namespace triton_metal::gpu

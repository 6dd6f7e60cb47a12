#include "transforms/AffineSteps.h"

#include "dialect/tt/TT.h"
#include "transforms/TTMMasks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace triton_metal {

/// Products and sums of such numbers stay far from the ends of 64 bits.
static constexpr int64_t kMostFactor = int64_t(1) << 20, kMostConstant = int64_t(1) << 36;

void Affine::add(const Affine &other, int64_t factor) {
  for (auto [scalar, times] : other.terms) {
    auto *known = llvm::find_if(terms, [&](auto &term) { return term.first == scalar; });
    if (known == terms.end())
      terms.push_back({scalar, factor * times});
    else
      known->second += factor * times;
  }
  llvm::erase_if(terms, [](auto &term) { return term.second == 0; });
  perIndex += factor * other.perIndex;
  low += factor * (factor < 0 ? other.high : other.low);
  high += factor * (factor < 0 ? other.low : other.high);
}

Affine Affine::at(const Affine &index) const {
  Affine result = *this;
  result.perIndex = 0;
  result.add(index, perIndex);
  return result;
}

bool Affine::isSmall() const {
  auto within = [](int64_t value, int64_t most) { return value >= -most && value <= most; };
  return terms.size() <= 4 && within(perIndex, kMostFactor) && within(low, kMostConstant) &&
         within(high, kMostConstant) &&
         llvm::all_of(terms, [&](auto &term) { return within(term.second, kMostFactor); });
}

/// The value of a constant number, or of a tile that has it in every element.
static std::optional<int64_t> getConstant(Value value) {
  if (auto splat = value.getDefiningOp<tt::SplatOp>())
    value = splat.getSrc();
  APInt number;
  if (!matchPattern(value, m_ConstantInt(&number)) || number.getSignificantBits() > 32)
    return std::nullopt;
  return number.getSExtValue();
}

/// A number of 32 bits that a number is; the number itself if it is none.
static Value narrow(Value number) {
  auto wide = number.getDefiningOp<arith::ExtSIOp>();
  return wide && wide.getIn().getType().isInteger(32) ? wide.getIn() : number;
}

std::optional<BlockBound> BlockBound::match(Value value) {
  if (!getElementTypeOrSelf(value).isInteger(32))
    return std::nullopt;
  if (auto splat = value.getDefiningOp<tt::SplatOp>())
    value = splat.getSrc();
  if (auto narrow = value.getDefiningOp<arith::TruncIOp>())
    value = narrow.getIn();
  auto choice = value.getDefiningOp<arith::SelectOp>();
  if (!choice || getConstant(choice.getFalseValue()) != 0)
    return std::nullopt;
  auto order = choice.getCondition().getDefiningOp<arith::CmpIOp>();
  auto least = choice.getTrueValue().getDefiningOp<arith::MinUIOp>();
  if (!order || !least)
    return std::nullopt;
  auto distance = least.getLhs().getDefiningOp<arith::SubIOp>();
  std::optional<int64_t> count = getConstant(least.getRhs());
  bool isSwapped = order.getPredicate() == arith::CmpIPredicate::sgt;
  if (!distance || !count || (!isSwapped && order.getPredicate() != arith::CmpIPredicate::slt))
    return std::nullopt;
  Value smaller = isSwapped ? order.getRhs() : order.getLhs();
  Value larger = isSwapped ? order.getLhs() : order.getRhs();
  std::optional<int64_t> constant = getConstant(larger);
  bool isLarger = narrow(distance.getLhs()) == narrow(larger) ||
                  (constant && constant == getConstant(distance.getLhs()));
  if (!isLarger || narrow(distance.getRhs()) != narrow(smaller))
    return std::nullopt;
  return BlockBound{constant == 0 ? Value() : narrow(larger), narrow(smaller), *count};
}

Affine AffineSteps::first() {
  std::optional<int64_t> constant = getConstant(loop.getLowerBound());
  return constant ? Affine::constant(*constant) : Affine::of(loop.getLowerBound());
}

Affine AffineSteps::last() {
  std::optional<int64_t> constant = getConstant(loop.getUpperBound());
  Affine result = constant ? Affine::constant(*constant) : Affine::of(loop.getUpperBound());
  result.add(Affine::constant(1), -1);
  return result;
}

std::optional<AffineSteps::Part> AffineSteps::getPart(Value value) {
  Operation *op = value.getDefiningOp();
  APInt number, start;
  // No index is negative.
  if (!isa_and_present<arith::ShRUIOp, arith::AndIOp>(op) ||
      op->getOperand(0) != loop.getInductionVar() ||
      !matchPattern(op->getOperand(1), m_ConstantInt(&number)) ||
      !matchPattern(loop.getLowerBound(), m_ConstantInt(&start)) || start.isNegative())
    return std::nullopt;
  if (isa<arith::ShRUIOp>(op))
    return number.ult(31) ? std::optional(Part{false, unsigned(number.getZExtValue())})
                          : std::nullopt;
  return number.isMask() && number.isNonNegative()
             ? std::optional(Part{true, number.getActiveBits()})
             : std::nullopt;
}

bool AffineSteps::joinParts(Affine &sum) {
  std::optional<unsigned> bits;
  int64_t lows = 0, others = 0;
  for (auto [scalar, factor] : sum.terms)
    if (std::optional<Part> part = getPart(scalar)) {
      if (bits && *bits != part->bits)
        return false;
      bits = part->bits;
      (part->isLow ? lows : others) += factor;
    }
  if (!bits)
    return true;
  if (others != lows << *bits)
    return false;
  llvm::erase_if(sum.terms, [&](auto &term) { return getPart(term.first).has_value(); });
  sum.perIndex += lows;
  return true;
}

std::optional<Affine> AffineSteps::getEnd(const Affine &sum, bool isLeast) {
  Affine end = sum, most = last();
  end.terms.clear();
  for (auto [scalar, factor] : sum.terms) {
    std::optional<Part> part = getPart(scalar);
    if (!part) {
      end.terms.push_back({scalar, factor});
    } else if (part->isLow) {
      int64_t range = factor * ((int64_t(1) << part->bits) - 1);
      end.low += std::min<int64_t>(range, 0);
      end.high += std::max<int64_t>(range, 0);
    } else if ((factor > 0) != isLeast) {
      // The other bits of the last index are a part of it at most; those of the first are 0 at
      // least.
      int64_t divisor = int64_t(1) << part->bits;
      if (factor % divisor != 0)
        return std::nullopt;
      end.add(most, factor / divisor);
    }
  }
  end = end.at((end.perIndex < 0) == isLeast ? most : first());
  return end.isSmall() ? std::optional(end) : std::nullopt;
}

bool AffineSteps::isWithin(const Affine &sum, int64_t least, int64_t most) {
  if (sum.perIndex)
    return false;
  std::optional<Affine> from = getEnd(sum, /*isLeast=*/true), to = getEnd(sum, /*isLeast=*/false);
  return from && to && from->terms.empty() && to->terms.empty() && from->low == least &&
         to->high <= most;
}

std::optional<Affine> AffineSteps::getCarried(BlockArgument argument, unsigned depth) {
  // What grows by a constant in each step is its first value and a multiple of the index.
  unsigned number = argument.getArgNumber() - 1;
  auto sum = loop.getYieldedValues()[number].getDefiningOp<arith::AddIOp>();
  if (!sum)
    return std::nullopt;
  std::optional<int64_t> more;
  for (unsigned side : {0, 1})
    if (sum->getOperand(side) == argument)
      more = getConstant(sum->getOperand(1 - side));
  if (!more || *more % step != 0)
    return std::nullopt;
  std::optional<Affine> result = get(loop.getInitArgs()[number], depth + 1);
  if (result) {
    result->perIndex += *more / step;
    result->add(first(), -(*more / step));
  }
  return result;
}

std::optional<Affine> AffineSteps::getSum(Operation *op, unsigned depth) {
  if (isa<arith::AddIOp, arith::SubIOp>(op)) {
    std::optional<Affine> sum = get(op->getOperand(0), depth + 1);
    std::optional<Affine> rhs = sum ? get(op->getOperand(1), depth + 1) : std::nullopt;
    if (!rhs)
      return std::nullopt;
    sum->add(*rhs, isa<arith::AddIOp>(op) ? 1 : -1);
    return sum;
  }
  if (isa<arith::MulIOp>(op))
    for (unsigned side : {0, 1})
      if (std::optional<int64_t> factor = getConstant(op->getOperand(side)))
        if (std::optional<Affine> other = get(op->getOperand(1 - side), depth + 1);
            other && std::abs(*factor) <= kMostFactor) {
          Affine product;
          product.add(*other, *factor);
          return product;
        }
  return std::nullopt;
}

std::optional<Affine> AffineSteps::getWidened(Value value) {
  // Sums of 32 bits may have wrapped around; the index and numbers from before the loop are what
  // they are.
  if (value == loop.getInductionVar())
    return Affine{{}, 1, 0, 0};
  if (std::optional<int64_t> constant = getConstant(value))
    return Affine::constant(*constant);
  bool isKnown =
      value.getType().isInteger(32) && (loop.isDefinedOutsideOfLoop(value) || getPart(value));
  return isKnown ? std::optional(Affine::of(value)) : std::nullopt;
}

std::optional<Affine> AffineSteps::get(Value value, unsigned depth) {
  Type element = getElementTypeOrSelf(value);
  if (depth > 16 || !(element.isInteger(32) || value.getType().isInteger(64)))
    return std::nullopt;
  if (value == loop.getInductionVar())
    return Affine{{}, 1, 0, 0};
  if (std::optional<int64_t> constant = getConstant(value))
    return Affine::constant(*constant);
  std::optional<Affine> result;
  bool isTile = isa<RankedTensorType>(value.getType()), isWide = element.isInteger(64);
  Operation *op = value.getDefiningOp();
  auto argument = dyn_cast<BlockArgument>(value);
  if (argument && argument.getOwner() == loop.getBody())
    result = getCarried(argument, depth);
  else if (!isWide && !isTile && loop.isDefinedOutsideOfLoop(value))
    result = Affine::of(value);
  else if (!op)
    return std::nullopt;
  else if (auto wide = dyn_cast<arith::ExtSIOp>(op))
    result = getWidened(wide.getIn());
  else if (getPart(value))
    result = Affine::of(value);
  else if (onlyMoves(op))
    result = get(op->getOperand(0), depth + 1);
  else if (auto splat = dyn_cast<tt::SplatOp>(op))
    result = get(splat.getSrc(), depth + 1);
  else if (auto range = dyn_cast<tt::MakeRangeOp>(op))
    result = Affine{{}, 0, int32_t(range.getStart()), int32_t(range.getEnd()) - 1};
  else
    result = getSum(op, depth);
  return result && result->isSmall() ? result : std::nullopt;
}

} // namespace triton_metal

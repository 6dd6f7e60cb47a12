#include "transforms/ConditionRanges.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace triton_metal;

namespace {

/// Collects what a condition says.
class FactFinder {
public:
  FactFinder(ValueRanges &ranges, ValueRanges::Facts &facts) : ranges(ranges), facts(facts) {}

  void addCondition(Value condition) {
    if (auto both = condition.getDefiningOp<arith::AndIOp>()) {
      addCondition(both.getLhs());
      addCondition(both.getRhs());
    } else if (auto compare = condition.getDefiningOp<arith::CmpIOp>();
               compare && compare.getLhs().getType().isInteger()) {
      addComparison(compare.getPredicate(), compare.getLhs(), compare.getRhs());
    }
  }

private:
  void addComparison(arith::CmpIPredicate predicate, Value a, Value b) {
    switch (predicate) {
    case arith::CmpIPredicate::slt:
      return addOrder(a, b, 1);
    case arith::CmpIPredicate::sle:
      return addOrder(a, b, 0);
    case arith::CmpIPredicate::sgt:
      return addOrder(b, a, 1);
    case arith::CmpIPredicate::sge:
      return addOrder(b, a, 0);
    default:
      return;
    }
  }

  /// a + gap <= b.
  void addOrder(Value a, Value b, int64_t gap) {
    ConstantIntRanges low = ranges.get(a), high = ranges.get(b);
    APInt most = high.smax(), least = low.smin();
    // Otherwise the condition never holds.
    if (gap && (most.isMinSignedValue() || least.isMaxSignedValue()))
      return;
    bound(a, APInt::getSignedMinValue(most.getBitWidth()), most - gap);
    bound(b, least + gap, APInt::getSignedMaxValue(most.getBitWidth()));
  }

  /// The value lies between two numbers.
  void bound(Value value, APInt low, APInt high) {
    ConstantIntRanges known = ranges.get(value);
    low = llvm::APIntOps::smax(low, known.smin());
    high = llvm::APIntOps::smin(high, known.smax());
    if (low.sgt(high) || (low == known.smin() && high == known.smax()))
      return;
    if (!matchPattern(value, m_Constant()))
      facts.push_back({value, ConstantIntRanges::fromSigned(low, high)});
    if (auto wide = value.getDefiningOp<arith::ExtSIOp>()) {
      unsigned width = wide.getIn().getType().getIntOrFloatBitWidth();
      // What is known of the wide number is within the range of the narrow one.
      bound(wide.getIn(), low.trunc(width), high.trunc(width));
    } else if (auto sum = value.getDefiningOp<arith::AddIOp>()) {
      APInt term;
      if (matchPattern(sum.getRhs(), m_ConstantInt(&term)) && ranges.cannotOverflow(sum))
        boundTerm(sum.getLhs(), low, high, term);
    } else if (auto difference = value.getDefiningOp<arith::SubIOp>()) {
      APInt term;
      if (matchPattern(difference.getRhs(), m_ConstantInt(&term)) && !term.isMinSignedValue() &&
          ranges.cannotOverflow(difference))
        boundTerm(difference.getLhs(), low, high, -term);
    }
  }

  /// The value plus a constant lies between two numbers.
  void boundTerm(Value value, const APInt &low, const APInt &high, const APInt &term) {
    bool isBelow = false, isAbove = false;
    APInt least = low.ssub_ov(term, isBelow), most = high.ssub_ov(term, isAbove);
    if (!isBelow && !isAbove)
      bound(value, least, most);
  }

  ValueRanges &ranges;
  ValueRanges::Facts &facts;
};

} // namespace

ConditionRanges::Scope &ConditionRanges::scopeOf(Operation *op) {
  Region *region = op->getParentRegion();
  if (!region)
    return outside;
  if (Scope *known = scopes.lookup(region))
    return *known;
  Operation *parent = region->getParentOp();
  Scope *scope = &scopeOf(parent);
  if (auto branch = dyn_cast<scf::IfOp>(parent); branch && region == &branch.getThenRegion()) {
    ValueRanges::Facts facts;
    FactFinder(scope->ranges, facts).addCondition(branch.getCondition());
    if (!facts.empty()) {
      // Several comparisons may bound one value.
      ValueRanges::Facts all = scope->facts;
      for (auto &[value, range] : facts) {
        auto *same = llvm::find_if(all, [&](const auto &fact) { return fact.first == value; });
        if (same == all.end())
          all.push_back({value, range});
        else if (ConstantIntRanges both = same->second.intersection(range);
                 both.smin().sle(both.smax()))
          same->second = both;
      }
      owned.push_back(std::make_unique<Scope>());
      scope = owned.back().get();
      scope->facts = std::move(all);
      scope->ranges = ValueRanges(scope->facts);
    }
  }
  scopes[region] = scope;
  return *scope;
}

ValueRanges &ConditionRanges::at(Operation *op) { return scopeOf(op).ranges; }

#include "runtime/mlx/graph/RescaledSums.h"

#include "runtime/mlx/graph/LoopPlan.h"
#include "runtime/mlx/graph/Reductions.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

namespace triton_metal::graph {

namespace {

/// What a value is to the maximum. Values that do not depend on it have no role.
struct Role {
  enum Kind {
    /// The maximum of the steps before and that of this step, times a scale.
    Highest,
    Higher,
    /// x - scale * higher, and scale * highest - scale * higher.
    Exponent,
    FadeExponent,
    /// Their exponentials: multiples of the first one may be added to what the second one scaled.
    Part,
    Fade,
    /// A sum of the steps before, the same scaled to the maximum of this step, and the next sum.
    Before,
    Faded,
    Next
  } kind;
  ScalarKey scale = {};
  /// For sums: which carried value.
  size_t carried = 0;
};

class Search {
public:
  Search(const Program &program, const Operation &loop, const std::function<bool(int)> &isZero)
      : program(program), body(*loop.regions.front()), isZero(isZero) {
    for (size_t i = 0; i < body.operations.size(); ++i)
      for (int number : body.operations[i].results)
        producer[number] = i;
  }

  std::optional<RescaledSums> run(size_t carried) {
    int highest = body.arguments[carried + 1];
    auto found = producer.find(yielded(carried));
    if (found == producer.end())
      return std::nullopt;
    const Operation &op = body.operations[found->second];
    if (op.name != "arith.maxnumf" && op.name != "arith.maximumf")
      return std::nullopt;
    bool isFirst = op.operands[0] == highest;
    if (!isFirst && op.operands[1] != highest)
      return std::nullopt;
    result.carried = carried;
    result.maximum = found->second;
    result.each = op.operands[isFirst ? 1 : 0];
    roles[highest] = {Role::Highest};
    findDependents(highest);
    if (dependents.contains(result.each))
      return std::nullopt;
    roles[op.results[0]] = {Role::Higher};
    for (size_t i = 0; i < body.operations.size() - 1; ++i) {
      const Operation &inner = body.operations[i];
      if (i != result.maximum && !std::any_of(inner.results.begin(), inner.results.end(),
                                              [&](int n) { return dependents.contains(n); })) {
        // What has no result may still take one of these values.
        if (takes(inner))
          return std::nullopt;
        continue;
      }
      result.operations.push_back(i);
      if (i != result.maximum && !assign(i, inner))
        return std::nullopt;
    }
    for (size_t i : result.allCarried) {
      if (i == carried)
        continue;
      std::optional<Role> next = roleOf(yielded(i));
      if (!next || next->kind != Role::Next || next->carried != i ||
          program.useCount(yielded(i)) != 1)
        return std::nullopt;
    }
    return result.sums.empty() || result.sums.size() + 1 != result.allCarried.size()
               ? std::nullopt
               : std::optional(std::move(result));
  }

private:
  int yielded(size_t carried) const { return body.operations.back().operands[carried]; }

  bool takes(const Operation &op) const {
    bool isTaken = false;
    forEachOperand(op, [&](int number) { isTaken |= dependents.contains(number); });
    return isTaken;
  }

  /// The values that depend on the maximum, also by way of the next step, and their roles as
  /// carried values.
  void findDependents(int highest) {
    dependents.insert(highest);
    std::set<size_t> carried = {result.carried};
    for (bool isNew = true; isNew;) {
      isNew = false;
      for (const Operation &op : body.operations)
        if (takes(op))
          for (int number : op.results)
            isNew |= dependents.insert(number).second;
      for (size_t i = 0; i + 1 < body.arguments.size(); ++i)
        if (dependents.contains(yielded(i)) && carried.insert(i).second) {
          isNew = true;
          dependents.insert(body.arguments[i + 1]);
          roles[body.arguments[i + 1]] = {Role::Before, {}, i};
        }
    }
    result.allCarried.assign(carried.begin(), carried.end());
  }

  std::optional<Role> roleOf(int number) const {
    auto found = roles.find(number);
    return found == roles.end() ? std::nullopt : std::optional(found->second);
  }
  bool isIndependent(int number) const { return !dependents.contains(number); }
  bool is(const std::optional<Role> &role, Role::Kind kind) const {
    return role && role->kind == kind;
  }

  /// Finds the role of what a dependent operation makes. False if it has none.
  bool assign(size_t index, const Operation &op) {
    if (op.results.size() != 1)
      return false;
    std::optional<Role> role = find(index, op);
    if (role)
      roles[op.results[0]] = *role;
    return role.has_value();
  }

  std::optional<Role> find(size_t index, const Operation &op) {
    const std::string &name = op.name;
    auto role = [&](size_t operand) { return roleOf(op.operands[operand]); };
    if (name == "tt.splat" || name == "tt.broadcast" || name == "tt.expand_dims" ||
        name == "tt.reshape" || name == "tt.trans")
      return is(role(0), Role::Before) || is(role(0), Role::Next) ? std::nullopt : role(0);
    if (name == "math.exp" || name == "math.exp2")
      return exponential(index, op, *role(0));
    if (name == "arith.subf")
      return difference(op, role(0), role(1));
    if (name == "arith.mulf")
      return product(op, role(0), role(1));
    if (name == "arith.addf")
      return sum(index, op, role(0), role(1));
    // Rounding to fewer bits is no multiple of rounding a multiple, but as exact.
    if (name == "arith.truncf" || name == "arith.extf" || name == "arith.negf" ||
        name == "tt.fp_to_fp")
      return is(role(0), Role::Part) ? role(0) : std::nullopt;
    if (name == "arith.divf" && is(role(0), Role::Part) && isIndependent(op.operands[1]))
      return role(0);
    if (name == "tt.reduce" && op.operands.size() == 1 && combinerOf(op) == "arith.addf" &&
        is(role(0), Role::Part))
      return role(0);
    if (name == "arith.select" && isIndependent(op.operands[0]))
      for (size_t i : {size_t(1), size_t(2)})
        if (is(role(i), Role::Part) && isZero(op.operands[3 - i]))
          return role(i);
    if (name == "tt.dot")
      return tileProduct(index, op);
    return std::nullopt;
  }

  std::optional<Role> exponential(size_t index, const Operation &op, Role role) {
    if (role.kind != Role::Exponent && role.kind != Role::FadeExponent)
      return std::nullopt;
    // All are multiples of the same power.
    if (result.function.empty()) {
      result.function = op.name;
      result.scale = role.scale;
    }
    if (result.function != op.name || result.scale != role.scale)
      return std::nullopt;
    if (role.kind == Role::FadeExponent)
      return Role{Role::Fade};
    result.exponentials.push_back(index);
    return Role{Role::Part};
  }

  std::optional<Role> difference(const Operation &op, const std::optional<Role> &left,
                                 const std::optional<Role> &right) const {
    if (is(right, Role::Higher)) {
      if (isIndependent(op.operands[0]))
        return Role{Role::Exponent, right->scale};
      if (is(left, Role::Highest) && left->scale == right->scale)
        return Role{Role::FadeExponent, right->scale};
    }
    if (is(left, Role::Part) && is(right, Role::Part))
      return left;
    if (is(left, Role::Exponent) && isIndependent(op.operands[1]))
      return left;
    return std::nullopt;
  }

  std::optional<Role> product(const Operation &op, const std::optional<Role> &left,
                              const std::optional<Role> &right) const {
    if (left && right) {
      bool isFirst = left->kind == Role::Before;
      const Role &sum = isFirst ? *left : *right, &factor = isFirst ? *right : *left;
      int number = op.operands[isFirst ? 0 : 1];
      if (sum.kind == Role::Before && factor.kind == Role::Fade && program.useCount(number) == 1)
        return Role{Role::Faded, {}, sum.carried};
      return std::nullopt;
    }
    const Role &role = left ? *left : *right;
    int other = op.operands[left ? 1 : 0];
    if (role.kind == Role::Part)
      return role;
    // The scale of all differences must be one scalar.
    if (!role.scale.isOne() || (role.kind != Role::Highest && role.kind != Role::Higher &&
                                role.kind != Role::Exponent && role.kind != Role::FadeExponent))
      return std::nullopt;
    std::optional<ScalarKey> scale = scalarOf(program, other);
    return scale ? std::optional(Role{role.kind, *scale}) : std::nullopt;
  }

  std::optional<Role> sum(size_t index, const Operation &op, const std::optional<Role> &left,
                          const std::optional<Role> &right) {
    if (is(left, Role::Exponent) && isIndependent(op.operands[1]))
      return left;
    if (is(right, Role::Exponent) && isIndependent(op.operands[0]))
      return right;
    if (!left || !right)
      return std::nullopt;
    if (left->kind == Role::Part && right->kind == Role::Part)
      return left;
    bool isFirst = left->kind == Role::Faded;
    const Role &faded = isFirst ? *left : *right, &part = isFirst ? *right : *left;
    if (faded.kind != Role::Faded || part.kind != Role::Part)
      return std::nullopt;
    RescaledSums::Sum found{faded.carried, index, op.operands[isFirst ? 0 : 1],
                            op.operands[isFirst ? 1 : 0], std::nullopt};
    if (program.useCount(found.faded) != 1)
      return std::nullopt;
    // A sum of products is one longer product.
    size_t maker = producer.at(found.part);
    if (body.operations[maker].name == "tt.dot" && program.useCount(found.part) == 1)
      found.product = maker;
    result.sums.push_back(found);
    return Role{Role::Next, {}, faded.carried};
  }

  std::optional<Role> tileProduct(size_t index, const Operation &op) {
    std::optional<Role> a = roleOf(op.operands[0]), b = roleOf(op.operands[1]),
                        c = roleOf(op.operands[2]);
    bool isPart = (is(a, Role::Part) && isIndependent(op.operands[1])) ||
                  (is(b, Role::Part) && isIndependent(op.operands[0]));
    if (!isPart)
      return std::nullopt;
    if (isZero(op.operands[2]))
      return Role{Role::Part};
    if (!is(c, Role::Faded) || program.useCount(op.operands[2]) != 1)
      return std::nullopt;
    result.sums.push_back({c->carried, index, op.operands[2], -1, index});
    return Role{Role::Next, {}, c->carried};
  }

  const Program &program;
  const Block &body;
  const std::function<bool(int)> &isZero;
  std::unordered_map<int, size_t> producer;
  std::unordered_map<int, Role> roles;
  std::unordered_set<int> dependents;
  RescaledSums result;
};

} // namespace

std::optional<ScalarKey> scalarOf(const Program &program, int number) {
  bool isScalar = false;
  const Operation *op = program.producer(number);
  while (op &&
         (op->name == "tt.splat" || op->name == "tt.broadcast" || op->name == "tt.expand_dims")) {
    isScalar |= op->name == "tt.splat";
    number = op->operands[0];
    op = program.producer(number);
  }
  if (op && op->name == "arith.constant") {
    const nlohmann::json &value = op->attributes.at("value");
    if (!value.is_array())
      return ScalarKey{-1, value.get<int64_t>()};
    return value.size() == 1 ? std::optional(ScalarKey{-1, value[0].get<int64_t>()}) : std::nullopt;
  }
  isScalar |= op ? op->types.front().shape.empty()
                 : static_cast<size_t>(number) < program.arguments.size() &&
                       program.arguments[static_cast<size_t>(number)].shape.empty();
  return isScalar ? std::optional(ScalarKey{number, {}}) : std::nullopt;
}

std::optional<RescaledSums> rescaledSumsOf(const Program &program, const Operation &loop,
                                           size_t carried, const std::function<bool(int)> &isZero) {
  return Search(program, loop, isZero).run(carried);
}

} // namespace triton_metal::graph

#include "runtime/mlx/graph/LoopPlan.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

namespace triton_metal::graph {

namespace {

bool isWrite(const std::string &name) {
  return name == "tt.store" || name == "tt.atomic_store" || name == "tt.atomic_rmw" ||
         name == "tt.atomic_cas";
}

bool isRead(const std::string &name) { return name == "tt.load" || name == "tt.atomic_load"; }

/// An access in a body: the operation of the body that makes it, itself or in its regions.
struct Access {
  size_t node;
  const Operation *op;
  int buffer;
};

class Planner {
public:
  Planner(const Program &program, const Operation &loop, const std::function<int(int)> &bufferOf,
          const std::function<bool(int)> &isZero)
      : program(program), loop(loop), body(*loop.regions.front()), operations(body.operations),
        bufferOf(bufferOf), isZero(isZero), numOperations(operations.size() - 1),
        numCarried(body.arguments.size() - 1), uses(numOperations + numCarried) {
    for (size_t i = 0; i < numOperations; ++i)
      for (int number : operations[i].results)
        producer[number] = i;
    for (size_t i = 0; i < numCarried; ++i) {
      producer[body.arguments[i + 1]] = numOperations + i;
      int initial = loop.operands[i + 3];
      note(body.arguments[i + 1], bufferOf(initial));
    }
    forEachResult(loop, [&](int number) { defined.insert(number); });
    for (size_t i = 0; i < numOperations; ++i)
      forEachOperand(operations[i], [&](int number) { use(i, number); });
    for (size_t i = 0; i < numCarried; ++i)
      use(numOperations + i, yielded(i));
    findBuffers(body);
    for (size_t i = 0; i < numCarried; ++i)
      compare(body.arguments[i + 1], yielded(i));
    for (size_t i = 0; i < numOperations; ++i)
      findAccesses(i, operations[i]);
    orderAccesses();
  }

  LoopPlan plan() {
    index.assign(uses.size(), -1), low.assign(uses.size(), 0), onStack.assign(uses.size(), false);
    for (size_t node = 0; node < uses.size(); ++node)
      if (index[node] < 0)
        visit(node);
    for (size_t i = 0; i < numCarried; ++i)
      if (std::optional<RescaledSums> found = rescaledSumsOf(program, loop, i, isZero))
        join(std::move(*found));
    for (LoopGroup &group : result.groups)
      findOutputs(group);
    result.isRaised =
        std::any_of(result.groups.begin(), result.groups.end(), [&](const LoopGroup &group) {
          return group.kind == LoopGroup::Reduction || group.kind == LoopGroup::Product ||
                 group.kind == LoopGroup::Rescaled || group.kind == LoopGroup::Nested ||
                 (group.kind == LoopGroup::Each &&
                  !operations[group.operations[0]].results.empty());
        });
    return std::move(result);
  }

private:
  int yielded(size_t carried) const { return operations.back().operands[carried]; }

  void use(size_t node, int number) {
    ++useCount[number];
    if (auto found = producer.find(number); found != producer.end())
      uses[node].push_back(found->second);
  }

  /// The buffers of pointers that are made in the loop. A pointer may have another buffer in each
  /// step, or that of one branch; then no buffer is told from another one.
  void findBuffers(const Block &block) {
    for (const Operation &op : block.operations) {
      if (op.name == "scf.for")
        for (size_t i = 3; i < op.operands.size(); ++i)
          note(op.regions[0]->arguments[i - 2], knownBuffer(op.operands[i]));
      if (op.name == "scf.while")
        for (size_t i = 0; i < op.operands.size(); ++i)
          note(op.regions[0]->arguments[i], knownBuffer(op.operands[i]));
      for (const std::optional<Block> &region : op.regions) {
        if (!region)
          continue;
        findBuffers(*region);
        if (region->operations.empty())
          continue;
        const Operation &end = region->operations.back();
        if (end.name == "scf.condition") {
          for (size_t i = 1; i < end.operands.size(); ++i) {
            note(op.results[i - 1], knownBuffer(end.operands[i]));
            note(op.regions[1]->arguments[i - 1], knownBuffer(end.operands[i]));
          }
        } else if (end.name == "scf.yield") {
          for (size_t i = 0; i < end.operands.size(); ++i) {
            if (op.name == "scf.for")
              compare(region->arguments[i + 1], end.operands[i]);
            if (op.name == "scf.while")
              compare(op.regions[0]->arguments[i], end.operands[i]);
            else
              note(op.results[i], knownBuffer(end.operands[i]));
          }
        }
      }
      if (op.regions.empty() && !op.results.empty() && op.types.front().isPointer())
        for (int number : op.operands)
          note(op.results.front(), knownBuffer(number));
    }
  }
  void note(int number, int buffer) {
    if (buffer < 0)
      return;
    auto [found, isNew] = buffers.try_emplace(number, buffer);
    areMixed |= !isNew && found->second != buffer;
  }
  void compare(int before, int after) {
    areMixed |= buffers.contains(before) && knownBuffer(before) != knownBuffer(after);
  }
  int knownBuffer(int number) const {
    auto found = buffers.find(number);
    if (found != buffers.end())
      return found->second;
    return defined.contains(number) ? -1 : bufferOf(number);
  }

  void findAccesses(size_t node, const Operation &op) {
    if (isRead(op.name) || isWrite(op.name))
      accesses.push_back({node, &op, knownBuffer(op.operands.front())});
    for (const std::optional<Block> &region : op.regions)
      if (region)
        for (const Operation &inner : region->operations)
          findAccesses(node, inner);
  }

  /// Operations whose steps may not be told apart by buffers run step by step, in their order.
  void orderAccesses() {
    bool isUnknown =
        areMixed || std::any_of(accesses.begin(), accesses.end(),
                                [](const Access &access) { return access.buffer < 0; });
    std::map<int, std::vector<const Access *>> ofBuffer;
    for (const Access &access : accesses)
      ofBuffer[isUnknown ? -1 : access.buffer].push_back(&access);
    for (const auto &[buffer, all] : ofBuffer) {
      if (std::none_of(all.begin(), all.end(),
                       [](const Access *access) { return isWrite(access->op->name); }))
        continue;
      // A single store may still have one place for each step, which is tried.
      if (!isUnknown && all.size() == 1 && all.front()->op->name == "tt.store")
        continue;
      // Sums, maxima and minima come in any order.
      auto isUpdate = [&](const Access *access) {
        constexpr int64_t add = 4, minUnsigned = 9;
        if (access->op->name != "tt.atomic_rmw" || access->op->isUsed)
          return false;
        int64_t kind = access->op->integer("atomic_rmw_op");
        return kind >= add && kind <= minUnsigned &&
               kind == all.front()->op->integer("atomic_rmw_op");
      };
      if (!isUnknown && all.front()->op->name == "tt.atomic_rmw" &&
          std::all_of(all.begin(), all.end(), isUpdate))
        continue;
      for (size_t i = 0; i < all.size(); ++i)
        uses[all[i]->node].push_back(all[(i + 1) % all.size()]->node);
    }
  }

  /// Tarjan's algorithm: a group is complete behind all that it depends on.
  void visit(size_t node) {
    index[node] = low[node] = next++;
    stack.push_back(node), onStack[node] = true;
    for (size_t used : uses[node]) {
      if (index[used] < 0) {
        visit(used);
        low[node] = std::min(low[node], low[used]);
      } else if (onStack[used]) {
        low[node] = std::min(low[node], index[used]);
      }
    }
    if (low[node] != index[node])
      return;
    LoopGroup group;
    for (bool isLast = false; !isLast;) {
      size_t member = stack.back();
      stack.pop_back(), onStack[member] = false;
      isLast = member == node;
      if (member < numOperations)
        group.operations.push_back(member);
      else
        group.carried.push_back(member - numOperations);
    }
    std::sort(group.operations.begin(), group.operations.end());
    std::sort(group.carried.begin(), group.carried.end());
    classify(group);
    result.groups.push_back(std::move(group));
  }

  bool usesItself(size_t node) const {
    return std::find(uses[node].begin(), uses[node].end(), node) != uses[node].end();
  }

  void classify(LoopGroup &group) const {
    group.kind = LoopGroup::Steps;
    if (group.carried.empty() && group.operations.size() == 1) {
      if (!usesItself(group.operations.front()))
        group.kind = LoopGroup::Each;
      return;
    }
    if (group.carried.size() != 1)
      return;
    int argument = body.arguments[group.carried.front() + 1];
    if (group.operations.empty()) {
      group.kind =
          yielded(group.carried.front()) == argument ? LoopGroup::Invariant : LoopGroup::Previous;
      return;
    }
    if (group.operations.size() != 1)
      return;
    const Operation &op = operations[group.operations.front()];
    if (op.name == "scf.for")
      classifyNested(group, argument, op);
    else
      classifyReduction(group, argument, op);
  }

  static bool writes(const Operation &op) {
    return isWrite(op.name) ||
           std::any_of(op.regions.begin(), op.regions.end(),
                       [](const std::optional<Block> &region) {
                         return region && std::any_of(region->operations.begin(),
                                                      region->operations.end(), writes);
                       });
  }

  void classifyNested(LoopGroup &group, int argument, const Operation &op) const {
    auto isUsed = [&](int number) { return useCount.contains(number); };
    auto found = std::find(op.operands.begin() + 3, op.operands.end(), argument);
    if (found == op.operands.end() || useCount.at(argument) != 1 || writes(op))
      return;
    auto inner = static_cast<size_t>(found - op.operands.begin()) - 3;
    int result = op.results[inner];
    if (yielded(group.carried.front()) != result || useCount.at(result) != 1 ||
        std::count_if(op.results.begin(), op.results.end(), isUsed) != 1)
      return;
    LoopPlan plan = planLoop(program, op, [](int) { return -1; }, isZero);
    for (const LoopGroup &other : plan.groups)
      if (other.carried == std::vector{inner} &&
          (other.kind == LoopGroup::Reduction || other.kind == LoopGroup::Product ||
           other.kind == LoopGroup::Nested)) {
        group.kind = LoopGroup::Nested;
        group.inner = inner;
      }
  }

  void classifyReduction(LoopGroup &group, int argument, const Operation &op) const {
    static const std::unordered_set<std::string> combiners = {
        "arith.addf",  "arith.addi",  "arith.subf",     "arith.subi",
        "arith.mulf",  "arith.muli",  "arith.maximumf", "arith.maxnumf",
        "arith.maxsi", "arith.maxui", "arith.minimumf", "arith.minnumf",
        "arith.minsi", "arith.minui", "arith.andi",     "arith.ori"};
    if (op.results.size() != 1 || useCount.at(argument) != 1 || useCount.at(op.results[0]) != 1)
      return;
    if (op.name == "tt.dot" && op.operands[2] == argument) {
      group.kind = LoopGroup::Product;
      group.product = group.operations.front();
      return;
    }
    if (!combiners.contains(op.name))
      return;
    bool isSecond = op.operands[1] == argument;
    if (isSecond && op.name.starts_with("arith.sub"))
      return;
    group.kind = LoopGroup::Reduction;
    group.operand = op.operands[isSecond ? 0 : 1];
    // A sum of products is a product, where nothing else takes them.
    auto found = producer.find(group.operand);
    if ((op.name != "arith.addf" && op.name != "arith.addi") || found == producer.end() ||
        found->second >= numOperations || useCount.at(group.operand) != 1)
      return;
    const Operation &product = operations[found->second];
    if (product.name == "tt.dot" && isZero(product.operands[2])) {
      group.kind = LoopGroup::Product;
      group.product = found->second;
    }
  }

  /// Makes one group of a maximum and what depends on it. Nothing else depends on these, so they
  /// may come last.
  void join(RescaledSums sums) {
    auto isInside = [&](const std::vector<size_t> &all, size_t i) {
      return std::binary_search(all.begin(), all.end(), i);
    };
    auto isPart = [&](const LoopGroup &group) {
      return std::any_of(group.operations.begin(), group.operations.end(),
                         [&](size_t i) { return isInside(sums.operations, i); }) ||
             std::any_of(group.carried.begin(), group.carried.end(),
                         [&](size_t i) { return isInside(sums.allCarried, i); });
    };
    if (std::any_of(result.groups.begin(), result.groups.end(), [&](const LoopGroup &group) {
          return group.kind == LoopGroup::Rescaled && isPart(group);
        }))
      return;
    std::erase_if(result.groups, isPart);
    LoopGroup group;
    group.kind = LoopGroup::Rescaled;
    group.operations = sums.operations;
    group.carried = sums.allCarried;
    group.rescaled = std::move(sums);
    result.groups.push_back(std::move(group));
  }

  /// The group's values that are taken outside of it.
  void findOutputs(LoopGroup &group) const {
    auto isInside = [&](size_t node) {
      return node < numOperations
                 ? std::binary_search(group.operations.begin(), group.operations.end(), node)
                 : std::binary_search(group.carried.begin(), group.carried.end(),
                                      node - numOperations);
    };
    std::unordered_set<int> own;
    for (size_t i : group.operations)
      own.insert(operations[i].results.begin(), operations[i].results.end());
    for (size_t i : group.carried)
      own.insert(body.arguments[i + 1]);
    std::unordered_set<int> taken;
    auto take = [&](int number) {
      if (own.contains(number) && taken.insert(number).second)
        group.outputs.push_back(number);
    };
    for (size_t i = 0; i < numOperations; ++i)
      if (!isInside(i))
        forEachOperand(operations[i], take);
    for (size_t i = 0; i < numCarried; ++i)
      if (!isInside(numOperations + i))
        take(yielded(i));
  }

  const Program &program;
  const Operation &loop;
  const Block &body;
  const std::vector<Operation> &operations;
  const std::function<int(int)> &bufferOf;
  const std::function<bool(int)> &isZero;
  size_t numOperations, numCarried;
  /// Nodes are the operations, then the carried values.
  std::vector<std::vector<size_t>> uses;
  std::unordered_map<int, size_t> producer;
  std::unordered_map<int, int> useCount, buffers;
  /// Numbers of values that the loop makes.
  std::unordered_set<int> defined;
  bool areMixed = false;
  std::vector<Access> accesses;

  std::vector<int> index, low;
  std::vector<bool> onStack;
  std::vector<size_t> stack;
  int next = 0;
  LoopPlan result;
};

} // namespace

void forEachOperand(const Operation &op, const std::function<void(int)> &visit) {
  for (int number : op.operands)
    visit(number);
  for (const std::optional<Block> &region : op.regions)
    if (region)
      for (const Operation &inner : region->operations)
        forEachOperand(inner, visit);
}

void forEachResult(const Operation &op, const std::function<void(int)> &visit) {
  for (int number : op.results)
    visit(number);
  for (const std::optional<Block> &region : op.regions) {
    if (!region)
      continue;
    for (int number : region->arguments)
      visit(number);
    for (const Operation &inner : region->operations)
      forEachResult(inner, visit);
  }
}

LoopPlan planLoop(const Program &program, const Operation &loop,
                  const std::function<int(int)> &bufferOf, const std::function<bool(int)> &isZero) {
  return Planner(program, loop, bufferOf, isZero).plan();
}

} // namespace triton_metal::graph

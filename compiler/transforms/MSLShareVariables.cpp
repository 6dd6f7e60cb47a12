// Tiles that are never needed at the same time share a variable.

#include "transforms/MSLArrays.h"
#include "transforms/MSLPlaceTiles.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace triton_metal::msl;

namespace {

/// A variable and the operations of its block from the first that uses it to the last.
struct Lifetime {
  VarOp variable;
  unsigned first, last;
};

int64_t getBytes(ArrayType array) {
  return array.getCount() * getNumRegisters(array.getValueType()) *
         llvm::divideCeil(array.getScalarType().getIntOrFloatBitWidth(), 8);
}

/// Whether the operation writes all of the variable and reads nothing of it.
bool isFirstWrite(Operation *op, Value variable) {
  auto loop = dyn_cast<TileLoopOp>(op);
  if (!loop)
    return false;
  bool writes = false;
  for (Operation &inner : loop.getBody().front()) {
    if (auto write = dyn_cast<WriteTileOp>(inner))
      writes |= write.getArray() == variable;
    else if (llvm::is_contained(inner.getOperands(), variable))
      return false;
  }
  return writes;
}

/// Shares the variables of one block among those of one type.
void shareVariables(Block &block, ArrayRef<VarOp> variables) {
  llvm::DenseMap<Operation *, unsigned> positions;
  unsigned next = 0;
  for (Operation &op : block)
    positions[&op] = next++;
  llvm::MapVector<Type, SmallVector<Lifetime>> byType;
  for (VarOp variable : variables) {
    Lifetime lifetime{variable, ~0u, 0};
    Operation *first = nullptr;
    for (Operation *user : variable->getUsers()) {
      Operation *ancestor = block.findAncestorOpInBlock(*user);
      unsigned position = positions.lookup(ancestor);
      if (position < lifetime.first) {
        lifetime.first = position;
        first = ancestor;
      }
      lifetime.last = std::max(lifetime.last, position);
    }
    if (first && isFirstWrite(first, variable))
      byType[variable.getType()].push_back(lifetime);
  }
  for (auto &[type, lifetimes] : byType) {
    llvm::sort(lifetimes, [&](const Lifetime &a, const Lifetime &b) {
      return std::pair(a.first, positions[a.variable]) < std::pair(b.first, positions[b.variable]);
    });
    SmallVector<Lifetime> kept;
    for (const Lifetime &lifetime : lifetimes) {
      auto *free =
          llvm::find_if(kept, [&](const Lifetime &other) { return other.last < lifetime.first; });
      if (free == kept.end()) {
        kept.push_back(lifetime);
        continue;
      }
      VarOp variable = lifetime.variable;
      variable.replaceAllUsesWith(free->variable.getResult());
      variable.erase();
      free->last = lifetime.last;
    }
  }
}

} // namespace

void triton_metal::msl::shareVariables(KernelOp kernel) {
  // A thread's registers hold so much at most. The compiler of the text finds by itself what can
  // share them, and a variable of its own keeps its name.
  constexpr int64_t kMostBytes = 16384;
  llvm::MapVector<Block *, SmallVector<VarOp>> variables;
  int64_t bytes = 0;
  kernel.walk([&](VarOp variable) {
    ArrayType array = getArrayType(variable);
    if (array.isMatrix())
      return;
    bytes += getBytes(array);
    if (array.getCount() > 1)
      variables[variable->getBlock()].push_back(variable);
  });
  if (bytes <= kMostBytes)
    return;
  for (auto &[block, inBlock] : variables)
    ::shareVariables(*block, inBlock);
}

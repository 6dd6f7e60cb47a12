#include "transforms/Erase.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace triton_metal {

/// Reports a user outside of `op`.
static LogicalResult reportRead(Operation *op, Operation *user) {
  return user->emitError("internal error: reads a value of '")
         << op->getName() << "', which a pass has replaced; please report this kernel";
}

/// Succeeds if nothing outside of `op` reads these values.
template <typename Values> static LogicalResult checkUnread(Operation *op, Values &&values) {
  for (Value value : values)
    for (Operation *user : value.getUsers())
      if (!op->isAncestor(user))
        return reportRead(op, user);
  return success();
}

static LogicalResult checkUnread(Operation *op, Region &region) {
  for (Block &block : region) {
    if (failed(checkUnread(op, block.getArguments())))
      return failure();
    for (Operation &inner : block) {
      if (failed(checkUnread(op, inner.getResults())))
        return failure();
      for (Region &innerRegion : inner.getRegions())
        if (failed(checkUnread(op, innerRegion)))
          return failure();
    }
  }
  return success();
}

LogicalResult eraseUnread(Operation *op) {
  for (Value result : op->getResults())
    if (!result.use_empty())
      return reportRead(op, *result.getUsers().begin());
  for (Region &region : op->getRegions())
    if (failed(checkUnread(op, region)))
      return failure();
  op->erase();
  return success();
}

LogicalResult replaceBody(Region &old, Region &body) {
  // `body` is not inside the operation yet, so its users count as outside.
  if (failed(checkUnread(old.getParentOp(), old)))
    return failure();
  old.takeBody(body);
  return success();
}

void eraseDead(Operation *op) {
  op->walk([](Block *block) {
    for (Operation &inner : llvm::make_early_inc_range(llvm::reverse(*block)))
      if (isOpTriviallyDead(&inner))
        inner.erase();
  });
}

} // namespace triton_metal

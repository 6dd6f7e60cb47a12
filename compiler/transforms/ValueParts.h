// Values that become several values each, through the control flow that carries them.
#ifndef TRITON_METAL_TRANSFORMS_VALUEPARTS_H
#define TRITON_METAL_TRANSFORMS_VALUEPARTS_H

#include "dialect/tt/TT.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

#include <string>

namespace triton_metal {

/// A part of a value: its type, what its name ends with, and what a kernel's argument is known to
/// be a multiple of.
struct PartType {
  mlir::Type type;
  std::string suffix;
  int32_t divisibility = 1;
};

/// Replaces values of some types by their parts in one function. Each of its regions has one block.
///
/// Loops, branches and selections carry the parts. What makes and takes the values is rewritten by
/// a derived class.
class ValueParts {
public:
  virtual ~ValueParts() = default;

  /// Rewrites the function and the types of its arguments. `keptAttrs` are the attributes of an
  /// argument that its first part keeps.
  mlir::LogicalResult run(tt::FuncOp function, llvm::ArrayRef<llvm::StringRef> keptAttrs);

protected:
  /// The parts of a value of the type; none if the type stays.
  virtual llvm::SmallVector<PartType> partsOf(mlir::Type type) = 0;
  /// Called when the function's arguments have their parts, before its operations are rewritten.
  virtual void enter(tt::FuncOp function) {}
  /// Rewrites an operation that makes or takes such values, and is not one that only carries them.
  virtual mlir::LogicalResult rewrite(mlir::Operation *op) = 0;

  llvm::ArrayRef<mlir::Value> get(mlir::Value value) const { return parts.find(value)->second; }
  void set(mlir::Value value, llvm::ArrayRef<mlir::Value> values) {
    parts[value].assign(values.begin(), values.end());
  }
  /// Erases the operation when nothing uses its parts any more.
  void eraseLater(mlir::Operation *op) { dead.push_back(op); }

private:
  bool hasParts(mlir::Type type) { return !partsOf(type).empty(); }
  mlir::LogicalResult rewriteBlock(mlir::Block &block);
  void expandArguments(mlir::Block &block);
  mlir::Operation *expand(mlir::Operation *op);
  void expandElementwise(mlir::Operation *op);
  void updateType(tt::FuncOp function, llvm::ArrayRef<llvm::StringRef> keptAttrs);

  llvm::DenseMap<mlir::Value, llvm::SmallVector<mlir::Value>> parts;
  llvm::SmallVector<mlir::Operation *> dead;
  llvm::SmallVector<mlir::BlockArgument> deadArguments;
};

} // namespace triton_metal

#endif // TRITON_METAL_TRANSFORMS_VALUEPARTS_H

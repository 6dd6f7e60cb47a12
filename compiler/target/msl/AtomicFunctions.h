#ifndef TRITON_METAL_TARGET_MSL_ATOMICFUNCTIONS_H
#define TRITON_METAL_TARGET_MSL_ATOMICFUNCTIONS_H

#include "dialect/msl/MSL.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/Support/raw_ostream.h"

#include <optional>
#include <string>

namespace triton_metal::msl {

/// The functions for atomic updates that Metal has no function for, in the order in which the
/// kernels of a text call them.
class AtomicFunctions {
public:
  /// Notes a function for numbers of this type and gives its name. Without a kind, it compares and
  /// exchanges.
  std::string use(AtomicForm form, std::optional<AtomicKind> kind, mlir::Type type);
  /// The function of the prelude that such an update calls.
  static std::optional<llvm::StringRef> getCallee(AtomicKind kind);
  void print(llvm::raw_ostream &os) const;

private:
  llvm::StringSet<> known;
  std::string text;
  bool narrows = false;
};

} // namespace triton_metal::msl

#endif // TRITON_METAL_TARGET_MSL_ATOMICFUNCTIONS_H

#ifndef TRITON_METAL_TARGET_MSL_NAMES_H
#define TRITON_METAL_TARGET_MSL_NAMES_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringSet.h"

#include <string>
#include <vector>

namespace triton_metal::msl {

/// Whether Metal or the printed text reserves the name.
bool isReserved(llvm::StringRef name);
/// Types such as float4, uint3 and simdgroup_float8x8, all names that begin with them, and those
/// that C++ reserves.
bool looksLikeType(llvm::StringRef name);

/// Names in nested scopes. A variable never gets the name of a variable of an enclosing scope.
class Names {
public:
  Names() : scopes(1) {}
  void push() { scopes.emplace_back(); }
  void pop() { scopes.pop_back(); }
  /// `base` as an identifier, with a number at the end if the name is taken.
  std::string make(llvm::StringRef base);
  /// Takes a name of an inner scope for this one.
  void take(llvm::StringRef name) { scopes.back().taken.insert(name); }

private:
  struct Scope {
    llvm::StringSet<> taken;
    /// For each name that was asked for, the first number that may be free.
    llvm::StringMap<unsigned> next;
  };

  bool isTaken(llvm::StringRef name) const;
  std::vector<Scope> scopes;
};

} // namespace triton_metal::msl

#endif // TRITON_METAL_TARGET_MSL_NAMES_H

#ifndef TRITON_METAL_TARGET_MSL_PRELUDE_H
#define TRITON_METAL_TARGET_MSL_PRELUDE_H

#include "dialect/msl/Simdgroup.h"
#include "target/msl/AtomicFunctions.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/raw_ostream.h"

#include <string>

namespace triton_metal::msl {

/// The function that multiplies fragments with a tensor operation.
inline std::string getTensorMultiplyName(MatrixShape shape) { return "multiply_" + shape.str(); }

/// The functions that Metal does not have and the kernels of a text call.
class Prelude {
public:
  /// Notes a call; most functions are Metal's own, and need nothing.
  void use(llvm::StringRef function);
  void useCompareExchange(llvm::StringRef space);
  /// Notes an atomic update that Metal has no function for, and gives the function's name.
  std::string useAtomic(AtomicForm form, std::optional<AtomicKind> kind, mlir::Type type) {
    if (auto callee = kind ? AtomicFunctions::getCallee(*kind) : std::nullopt)
      use(*callee);
    return atomics.use(form, kind, type);
  }
  /// Notes simdgroup matrices, whose header is one of its own.
  void useMatrices() { matrices = true; }
  bool usesMatrices() const { return matrices; }
  /// Notes `elements` of fragments.
  void useElements(FragmentShape fragment);
  /// Notes products of Metal 4's tensor operations, whose header is one of its own.
  void useTensorMultiply(MatrixShape shape) {
    if (!llvm::is_contained(tensorMultiplies, shape))
      tensorMultiplies.push_back(shape);
  }
  bool usesTensors() const { return !tensorMultiplies.empty(); }
  void print(llvm::raw_ostream &os) const;

private:
  unsigned used = 0;
  /// The functions of 64-bit floats that are called.
  llvm::StringSet<> float64;
  /// The approximate functions that are called.
  llvm::StringSet<> approximate;
  /// The functions of the library that are called.
  llvm::StringSet<> library;
  bool matrices = false;
  llvm::SmallVector<FragmentShape, 1> fragments;
  llvm::SmallVector<MatrixShape, 1> tensorMultiplies;
  AtomicFunctions atomics;
  bool exchangesInDevice = false, exchangesInThreadgroup = false;
};

} // namespace triton_metal::msl

#endif

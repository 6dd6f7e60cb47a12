// Calls that give a value which Metal does not promise. The front end inserts them in portable
// modules, and the engine turns each of them into a site whose values the launch draws.
#pragma once

#include "host_device/Unpromised.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

namespace triton_metal {

/// `i64 (i1 wanted, i32 note, i64 salt)`: any bits if `wanted`, otherwise nothing in particular.
/// Lanes with the same operands get the same bits from the first function, and their own from the
/// second.
inline constexpr llvm::StringLiteral anyName = "__tm_any", anyOfLaneName = "__tm_any_of_lane";
/// `i32 ()`: 1, 0 or -1, the direction in which the launch moves inexact results.
inline constexpr llvm::StringLiteral directionName = "__tm_direction";
/// Whether the front end inserts calls of this function in portable modules.
inline bool isAnyFunction(llvm::StringRef name) {
  return name == anyName || name == anyOfLaneName || name == directionName;
}
/// A list of nodes {reason, text} that the operand `note` counts.
inline constexpr llvm::StringLiteral notesName = "tm.notes";

/// Marks a module as portable. `isPortable` is true until the engine has numbered the sites.
void makePortable(llvm::Module &module);
bool isPortable(const llvm::Module &module);

struct AnyValue {
  Unpromised reason;
  /// What the message names, for example a variable.
  llvm::StringRef note = {};
  bool ofLane = false;
  /// What the bits depend on besides the place; may be null.
  llvm::Value *salt = nullptr;
};

/// Any value of a type of numbers. Vectors have any value for each element.
llvm::Value *buildAny(llvm::IRBuilderBase &builder, llvm::Value *wanted, llvm::Type *type,
                      const AnyValue &what);
/// `bad ? any value : value`, element by element.
llvm::Value *buildAnyIf(llvm::IRBuilderBase &builder, llvm::Value *bad, llvm::Value *value,
                        const AnyValue &what);

/// Makes any value of signed sums, differences and products that overflow (PessimizeOverflow.cpp).
/// Runs on clang's output, in SSA form.
void pessimizeOverflow(llvm::Function &function);

/// Replaces what the standard library says about its results: `__tm_outside(lane)`, a lane that is
/// not promised, `__tm_undefined(result, bad)`, a result that Metal does not define, and
/// `__tm_fast_f32(result, bad, ulps, absolute)`, one that is not exact.
void resolvePromises(llvm::Module &module);

/// Fills each local variable with any value where it comes to life, and removes the markers of
/// lifetimes.
void fillVariables(llvm::Function &function);

} // namespace triton_metal

// Keeps what stands in front of a `break` or a `return` inside of its loop.
#pragma once

#include "clang/AST/ASTContext.h"
#include "clang/AST/Decl.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/IR/Module.h"

namespace triton_metal {

/// To a compiler, a statement in front of a `break` is not part of the loop, since it is not
/// repeated: threads that leave the loop in different steps would come to it together, after the
/// loop. In the text, each thread comes to it in its own step, with those that leave in the same
/// one:
///
///     while (true) {
///       uint first = simd_broadcast_first(key);
///       if (key == first) {
///         total = simd_sum(value); // of the threads with this key
///         break;
///       }
///     }
///
/// This class marks loops and the statements that leave them in the syntax tree, by calls of
/// `__tm_loop` and `__tm_leave`. `keepExitsInLoops` acts on the calls.
class LoopExits {
public:
  /// May be called several times for a declaration; nothing is marked twice.
  void run(clang::ASTContext &context, clang::Decl *declaration);

private:
  llvm::DenseSet<const clang::FunctionDecl *> done;
  clang::FunctionDecl *loop = nullptr, *leave = nullptr;
};

/// Makes the way from the loop to a `break` or `return` a part of the loop, where threads exchange
/// values on it or under a condition in the loop. It then ends in a branch at the end of the step,
/// which all threads of the step come to, and which no pass may lead a thread around. Removes the
/// calls that mark loops. Functions must not be inlined yet, and variables must be in memory.
void keepExitsInLoops(llvm::Module &module);
/// Removes the calls alone.
void dropLoopExits(llvm::Module &module);

/// A call that stands in the branch at the end of a step. It does nothing.
inline constexpr llvm::StringLiteral stepEndName = "__tm_step_end";

} // namespace triton_metal

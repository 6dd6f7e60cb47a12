// Checks of values, for libraries that ask for them (Checks.h): the front end inserts a call where
// a value may be wrong, and the engine makes a site of it.
#pragma once

#include "host_device/Checks.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PassManager.h"

namespace triton_metal {

/// `void (i1 bad, i32 note)`: the launch fails where `bad` holds.
inline constexpr llvm::StringLiteral checkValueName = "__tm_check_value";
/// `void (i32)`: all threads of the SIMD-group must come here.
inline constexpr llvm::StringLiteral togetherName = "__tm_together";
/// A list of texts that the operand `note` counts.
inline constexpr llvm::StringLiteral checkNotesName = "tm.checks";

/// Keeps in the module what is checked, until the engine has numbered the sites.
void setChecks(llvm::Module &module, const Checks &checks);
Checks checksOf(const llvm::Module &module);
/// From here on, nothing is checked any more.
void dropChecks(llvm::Module &module);

/// Checks a condition. A vector holds if one of its elements does.
void buildCheck(llvm::IRBuilderBase &builder, llvm::Value *bad, llvm::StringRef text);

/// Checks that local variables have a value where one is read. All calls must have been inlined.
void checkVariables(llvm::Function &function);

/// Checks that no operation makes a NaN of numbers. Runs on clang's output.
void checkNans(llvm::Module &module);

/// Removes checks that always hold.
struct DropChecksPass : llvm::PassInfoMixin<DropChecksPass> {
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &);
};

} // namespace triton_metal

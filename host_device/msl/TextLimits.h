// Texts that clang takes minutes for, or crashes on.
#pragma once

#include "llvm/ADT/StringRef.h"

namespace triton_metal {

/// Ends the compilation (as fatal errors of LLVM do) of a text with more than 512 comparisons
/// after each other in one expression, as in a == b == c. Clang evaluates both sides of each of
/// them.
void refuseLongComparisons(llvm::StringRef source);

/// Whether the text ends in a pragma that belongs to the loop behind it. Clang crashes if another
/// pragma follows.
bool endsInLoopHint(llvm::StringRef source);

} // namespace triton_metal

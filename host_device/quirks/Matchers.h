// The patterns of the rows, each on the walk of one kernel.
#pragma once

#include "host_device/quirks/Quirks.h"
#include "host_device/quirks/Walk.h"
#include "llvm/ADT/Twine.h"
#include <functional>

namespace triton_metal::quirks {

/// What a matcher has.
struct Scan {
  Values &values;
  const Walk &walk;
  /// Whether the text or the program that compiles it asks for the safe math mode.
  bool safeMath;
  std::function<void(int row, QuirkClass kind, clang::SourceLocation location,
                     const llvm::Twine &message)>
      report;

  /// The line of a place in the text, for messages.
  std::function<unsigned(clang::SourceLocation)> lineOf;

  /// Whether an index is a constant once the loops are unrolled that ask for it, and the short
  /// loops of constant length if `alsoShort`: any compiler unrolls them.
  bool isStatic(Value index, const Scope *scope, bool alsoShort = false) const;
  /// The space that an access reads or writes.
  static Space spaceOf(const Access &access) { return Values::spaceOf(access.type); }
  Pointer pointerOf(const Access &access) const {
    return access.pointer ? values.pointer({access.pointer, access.frame})
                          : values.address(access.lvalue, access.frame);
  }
};

// MatchArithmetic.cpp: rows 2, 3, 7 and 17.
void matchArithmetic(const Scan &scan);
// MatchLoops.cpp: rows 4, 5, 6 and 16.
void matchAccumulations(const Scan &scan);
void matchRereads(const Scan &scan);
void matchSwaps(const Scan &scan);
void matchEndlessLoops(const Scan &scan);
// MatchMemory.cpp: rows 1, 8, 9, 10, 23, 26 and 28.
void matchSignature(const Scan &scan);
void matchByteAccesses(const Scan &scan);
void matchLocalArrays(const Scan &scan);
void matchSizes(const Scan &scan);
// MatchAtomics.cpp: rows 14, 21 and 22.
void matchAtomics(const Scan &scan);
// MatchMatrices.cpp: rows 24 and 25.
void matchMatrices(const Scan &scan);
// MatchFloats.cpp: rows 14 and 15.
void matchFloats(const Scan &scan);
// MatchSimd.cpp: row 27 and what is not promised of SIMD-groups.
void matchSimdFunctions(const Scan &scan);
// MatchBarriers.cpp: barriers in divergent flow.
void matchBarriers(const Scan &scan);

} // namespace triton_metal::quirks

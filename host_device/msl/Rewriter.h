// The few places where Metal is not C++ for clang, rewritten as tokens before clang sees the text.
#pragma once

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace triton_metal {

/// Text with its edits. No edit adds or removes a line.
struct RewrittenText {
  std::string text;

  /// Where in the original text this byte of the rewritten one comes from.
  size_t originalOffset(size_t rewritten) const;

  struct Edit {
    size_t original;  // where in the original text
    size_t removed;   // bytes of the original that it replaces
    size_t rewritten; // where in the rewritten text
    size_t inserted;  // bytes that stand there instead
  };
  llvm::SmallVector<Edit> edits;
};

/// Rewrites what of Metal's syntax no macro, attribute or option of clang's can express:
/// - the attributes `[[kernel]]` and `[[threadgroup(0)]]`, whose names are macros, are renamed, and
///   attributes of explicit instantiations are written the other way that clang has for attributes;
/// - arrays as parameters that have an address space become pointers, and literals get the suffixes
///   that clang knows;
/// - what a conditional operator reads from memory becomes a value;
/// - address spaces after a method's parameters go, and of overloads that differ in nothing else
///   the first one stays.
RewrittenText rewriteMsl(llvm::StringRef source);

} // namespace triton_metal

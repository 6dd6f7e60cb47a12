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

/// Rewrites Metal's own syntax:
/// - `[[buffer(0)]]`, `[[kernel]]`, `[[host_name("f")]]` and their like become `annotate`
/// attributes, which survive template
///   instantiation and explicit instantiations;
/// - variables in the threadgroup and constant address spaces become static, and function constants
/// external;
/// - arrays as parameters that have an address space become pointers, and literals get the suffixes
/// that clang knows;
/// - what a conditional operator reads from memory becomes a value;
/// - address spaces after a method's parameters go, and of overloads that differ in nothing else
/// the first one stays.
RewrittenText rewriteMsl(llvm::StringRef source);

} // namespace triton_metal

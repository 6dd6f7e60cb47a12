// The few places where Metal is not C++ for clang, rewritten as tokens before clang sees the text.
#pragma once

#include "host_device/msl/Tokens.h"

namespace triton_metal {

/// Rewrites what of Metal's syntax no macro, attribute or option of clang's can express:
/// - attributes whose names are macros (`[[kernel]]`, `[[threadgroup(0)]]`) are renamed, and
/// attributes
///   of explicit instantiations are written the other way that clang has for attributes;
/// - the address space of a method's object gets the words that clang takes there;
/// - arrays as parameters that have an address space become pointers, and literals get the suffixes
///   that clang knows;
/// - what a conditional operator reads from memory becomes a value.
/// Each goes by the tokens around it, so that it also works inside macros. What a rule does not
/// recognise stays as it is, which clang refuses.
RewrittenText rewriteMsl(llvm::StringRef source);

} // namespace triton_metal

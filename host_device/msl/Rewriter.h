// Rewrites the few constructs of Metal that clang cannot parse, before clang sees the text.
#pragma once

#include "host_device/msl/Tokens.h"

namespace triton_metal {

/// Rewrites the constructs that no macro, attribute or option of clang can express:
/// - attributes whose names are macros (`[[kernel]]`), and attributes of explicit instantiations;
/// - address spaces of methods;
/// - array parameters with an address space;
/// - suffixes of literals;
/// - memory reads as operands of the conditional operator.
/// Each rule looks only at neighbouring tokens, so it also works inside macros. Text that no rule
/// matches is not changed, and clang rejects it.
RewrittenText rewriteMsl(llvm::StringRef source);

/// Rewrites only the suffixes of literals, as the headers of the standard library need it.
std::string rewriteLiterals(llvm::StringRef source);

} // namespace triton_metal

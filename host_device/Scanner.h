// The scanner of host_device/quirks for programs: a crash of clang is an error.
#pragma once

#include "host_device/quirks/Quirks.h"

namespace triton_metal {

/// As `scanForQuirks`, on a stack that is large enough for any text.
llvm::Expected<std::vector<QuirkHit>> findQuirksIn(llvm::StringRef text,
                                                   const QuirkOptions &options = {});

/// The findings as a JSON list of objects, or as `{"error": text}`.
std::string quirksAsJson(llvm::StringRef text, const QuirkOptions &options = {});

/// The rows of the scanner as a JSON list.
std::string quirkRowsAsJson();

} // namespace triton_metal

// metal-run as a function: the program and `python -m triton_metal_host` call it.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/raw_ostream.h"
#include <string>

namespace triton_metal {

/// Runs the tool with these arguments, without the program's name. Returns the exit status.
int runTool(llvm::ArrayRef<std::string> arguments, llvm::raw_ostream &out, llvm::raw_ostream &err);

/// The same with the standard streams. An output that cannot be written is an error, and one that
/// nobody reads to its end stops the tool as a pipe does.
int runToolOnStreams(llvm::ArrayRef<std::string> arguments);

} // namespace triton_metal

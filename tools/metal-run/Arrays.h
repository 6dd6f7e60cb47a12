// Arrays and numbers from the command line.
#pragma once

#include "host_device/KernelInfo.h"
#include "tools/metal-run/Npy.h"

namespace triton_metal {

/// A file, `zeros:type:shape`, `full:type:shape:value`, `arange:type:shape` or
/// `random:type:shape[:seed]`.
llvm::Expected<NpyArray> makeArray(llvm::StringRef text);
/// The numbers of a `constant T &` parameter: `5`, `uint:5` or `1,2,3`.
llvm::Expected<NpyArray> makeScalar(llvm::StringRef text, const ParameterInfo &parameter);
/// Hexadecimal digits, or `@file`.
llvm::Expected<NpyArray> makeBytes(llvm::StringRef text);
/// `x`, `x,y` or `x,y,z`; the option's name is for messages.
llvm::Expected<std::array<uint32_t, 3>> parseExtent(llvm::StringRef text, llvm::StringRef option);

/// Prints an array as its numbers, one line for each row.
void printArray(llvm::raw_ostream &out, llvm::StringRef name, const NpyArray &array);

} // namespace triton_metal

// Keeps LLVM from shifting the high halves of products away.
#pragma once

namespace llvm {
class Function;
}

namespace triton_metal::engine {

/// The instruction selection of LLVM 22 makes `x >> (32 - c)` of the high half of `x * 2^c` for
/// vectors of integers. Where c is 0 for all lanes of a register, that shifts by the whole width,
/// and any number comes out. Products of vectors whose high halves are taken multiply even and odd
/// lanes for themselves instead, as such code does on x86 anyway. It runs after the last pass that
/// could undo that.
void splitHighProducts(llvm::Function &function);

} // namespace triton_metal::engine

#include "host_device/quirks/Quirks.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/ErrorHandling.h"

using namespace llvm;

namespace triton_metal {

ArrayRef<QuirkRow> quirkRows() {
  static constexpr QuirkRow rows[] = {
      {1, "at most 32 threads",
       "With a bound of at most 32 threads, threadgroup barriers do not order threadgroup memory.",
       "KhronosGroup/MoltenVK#2711, tracel-ai/cubecl#1636, tracel-ai/cubek#645"},
      {2, "remainder of a quotient",
       "The remainder by a constant of an unsigned quotient by a constant is wrong.",
       "pytorch/pytorch#175481, pytorch/pytorch#184392"},
      {3, "64-bit remainder of 32-bit numbers",
       "A 64-bit division of two extended 32-bit numbers is wrong.", "HigherOrderCO/Bend#824"},
      {4, "accumulation of device loads",
       "A loop that adds up what it reads from device memory, after a store to device memory, "
       "gives a wrong sum.",
       "ahrefs/ocannl#782, ahrefs/ocannl#820"},
      {5, "device memory read again by a loop",
       "An iteration does not see what an earlier one has stored in the same place.",
       "Mesa KosmicKrisp, workaround 6"},
      {6, "arrays that change places",
       "Thread arrays that a loop moves into each other are wrong from the second iteration.",
       "nicholasjng/palladium, msl-loop-bug.md"},
      {7, "shifted fast remainder as an address",
       "A load in a branch whose address contains a shifted multiply-and-shift remainder gives 0.",
       "tinygrad/tinygrad#14137"},
      {8, "one-byte access with chained offsets",
       "With exactly two threadgroups, the first one's access is dropped.",
       "JuliaGPU/GPUCompiler.jl#862"},
      {9, "run-time index into a local array of a large kernel",
       "An element of a local array reads 0 in a very large kernel.",
       "Genesis-Embodied-AI/quadrants#835"},
      {10, "threadgroup memory as a parameter",
       "Values of threadgroup parameters are stale after a barrier.",
       "gfx-rs/wgpu#4500, gfx-rs/wgpu#3181"},
      {11, "cooperative tensors",
       "Tensor operations are wrong if the library is compiled for a target below macOS 26.2; a "
       "text cannot say that it is not.",
       "ml-explore/mlx#3586, ml-explore/mlx#3622, ml-explore/mlx#3797"},
      {14, "fast math",
       "The compiler's default changes results with NaN, infinities and large numbers.",
       "google/filament#7485, iree-org/iree#23914"},
      {15, "fast tanh", "fast::tanh gives NaN above 45.", "apache/tvm#16438"},
      {16, "loop without a visible end",
       "The compiler removes code around such a loop, or crashes.",
       "gfx-rs/wgpu#6528, gfx-rs/wgpu#6929, Mesa KosmicKrisp, workaround 2"},
      {17, "signed overflow or remainder",
       "Signed overflow and remainders of negative numbers are undefined.",
       "gfx-rs/wgpu#6959, gfx-rs/wgpu#7012, Metal Shading Language Specification"},
      {21, "threadgroup atomic through a cast",
       "The compiler crashes on an atomic in threadgroup memory of another type.",
       "JuliaGPU/Metal.jl#282"},
      {22, "compare-exchange on a plain word",
       "Plain accesses of a threadgroup word that is also compared and exchanged give zeros.",
       "JuliaGPU/Metal.jl#217"},
      {23, "very large code",
       "Long unrolled bodies, wide loads of structs and nested literals stop the compiler.",
       "modular/modular#6768, JuliaGPU/Metal.jl#792"},
      {24, "matrices passed to a function",
       "Every index into an array of simdgroup matrices reads the first one in a function that is "
       "not inlined.",
       "a public thread"},
      {25, "matrices indexed at run time",
       "Simdgroup matrices that a rolled loop indexes are spilled.", "tile-ai/tilelang#3195"},
      {26, "threadgroup matrix type", "Matrix types have no constructor in threadgroup memory.",
       "ggml-org/llama.cpp#26646"},
      {27, "simd_is_first() and its else branch",
       "A ballot in the else branch of simd_is_first() has the first thread too.",
       "Mesa KosmicKrisp, workaround 3"},
      {28, "uninitialised local array", "The compiler crashes on a local array without a value.",
       "Mesa KosmicKrisp, workaround 1"},
      {101, "SIMD-group function of a 64-bit number or bfloat",
       "The functions of a SIMD-group take no 64-bit types and no bfloat.",
       "huggingface/candle#1614, modular/modular#5487"},
      {102, "shuffle of an unusual type",
       "Shuffles of vectors other than int2, uint2 and float2 and of 8-bit types are not known to "
       "work.",
       "MLX and PyTorch ship the others"},
      {103, "simd_max or simd_min of a possible NaN",
       "What simd_max and simd_min make of a NaN is not promised.",
       "MLX and PyTorch test for NaN first"},
      {104, "barrier in divergent flow", "A barrier that some threads do not reach hangs.",
       "KhronosGroup/MoltenVK#973"},
  };
  return rows;
}

const QuirkRow &quirkRow(int number) {
  for (const QuirkRow &row : quirkRows())
    if (row.number == number)
      return row;
  llvm_unreachable("a row that the table does not have");
}

StringRef nameOf(QuirkClass kind) {
  switch (kind) {
  case QuirkClass::Defect:
    return "defect";
  case QuirkClass::Costly:
    return "costly";
  case QuirkClass::Unproven:
    return "unproven";
  case QuirkClass::Advice:
    return "advice";
  }
  return "";
}

std::string describe(const QuirkHit &hit) {
  const QuirkRow &row = quirkRow(hit.row);
  std::string text = hit.file + ":" + std::to_string(hit.line) + ":" + std::to_string(hit.column) +
                     ": row " + std::to_string(hit.row) + " (" + row.name.str() +
                     "): " + hit.message;
  if (hit.kind != QuirkClass::Defect)
    text += " [" + nameOf(hit.kind).str() + "]";
  return text;
}

} // namespace triton_metal

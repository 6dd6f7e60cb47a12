// What a GPU offers to kernels in the front end's form. A back end says how it does each of these;
// the rest of the tool is the same for all.
#pragma once

#include "host_device/KernelInfo.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"
#include <optional>

namespace triton_metal::gpu {

/// A function of one number that the GPU has as an instruction, or as a few that its compiler
/// knows.
enum class Unit : uint8_t { Exp2, Log2, Reciprocal, ReciprocalRoot, Root, Sine, Cosine };

/// What all threads of a SIMD-group compute together.
enum class Across : uint8_t { Sum, Product, Min, Max, And, Or, Xor };

/// Which lane a thread's value comes from.
struct Source {
  enum class Kind : uint8_t { Lane, Xor, Up, Down };
  Kind kind = Kind::Lane;
  /// The lane, or what the thread's own lane is combined with.
  llvm::Value *operand = nullptr;
};

enum class Number : uint8_t { Float, Signed, Unsigned };

/// One back end. Each function adds instructions where the builder is.
class Gpu {
public:
  virtual ~Gpu() = default;

  virtual llvm::Value *unit(llvm::IRBuilder<> &b, Unit what, llvm::Value *x) = 0;
  virtual llvm::Value *divide(llvm::IRBuilder<> &b, llvm::Value *x, llvm::Value *y,
                              bool isFast) = 0;
  /// The smaller or the larger number. A NaN counts as missing.
  virtual llvm::Value *order(llvm::IRBuilder<> &b, bool isMax, llvm::Value *x, llvm::Value *y) = 0;

  virtual llvm::Value *lane(llvm::IRBuilder<> &b) = 0;
  /// A 32-bit value of another lane.
  virtual llvm::Value *shuffle(llvm::IRBuilder<> &b, llvm::Value *value, Source source) = 0;
  virtual llvm::Value *ballot(llvm::IRBuilder<> &b, llvm::Value *condition) = 0;
  virtual llvm::Value *reduce(llvm::IRBuilder<> &b, Across what, Number number,
                              llvm::Value *value) = 0;
  /// The sum or the product of all lanes before this one, and of this one if `isInclusive`.
  virtual llvm::Value *scan(llvm::IRBuilder<> &b, Across what, Number number, bool isInclusive,
                            llvm::Value *value) = 0;
  /// a * b + c of 8x8 matrices, of which each thread has two elements. Null if the GPU has none.
  virtual llvm::Value *multiply(llvm::IRBuilder<> &b, llvm::Value *left, llvm::Value *right,
                                llvm::Value *sum) = 0;
  virtual void threadgroupBarrier(llvm::IRBuilder<> &b) = 0;
  virtual void simdgroupBarrier(llvm::IRBuilder<> &b) = 0;

  /// A 32-bit number that every thread can ask for. `dimension` is 0 to 2. Null if there is none.
  virtual llvm::Value *position(llvm::IRBuilder<> &b, Position what, unsigned dimension) = 0;

  /// How many threads a threadgroup has. Said before anything else.
  virtual void setThreads(unsigned threads) = 0;
  /// The address space of a pointer, from the front end's.
  virtual unsigned addressSpace(unsigned space) = 0;
  /// Whether a launch can hand a kernel a buffer of constants itself, in place of its address.
  virtual bool hasBuffersByValue() = 0;
  /// Whether bfloats become 16-bit integers.
  virtual bool hasBfloat() = 0;
  /// Makes the kernel an entry point for threadgroups of so many threads.
  virtual void makeEntry(llvm::Function &kernel, unsigned threads) = 0;
  virtual llvm::CallingConv::ID callingConvention() = 0;
};

std::unique_ptr<Gpu> makeSpirv(llvm::Module &module);
std::unique_ptr<Gpu> makeNvptx(llvm::Module &module);

/// The kernel without the parameters for positions: the GPU is asked for these. Those that it does
/// not know become parameters at the end, whose names are added to `more`. `byValue` are the
/// buffers whose bytes are in the launch, as Metal's `setBytes` puts them there, with how many
/// these are.
llvm::Expected<llvm::Function *> makeEntry(llvm::Module &module, Gpu &gpu, const KernelInfo &kernel,
                                           unsigned threads,
                                           const llvm::DenseMap<unsigned, unsigned> &byValue,
                                           std::vector<std::string> &more);

/// Replaces all calls of the front end's functions. `threadgroupBytes` is what the kernel's
/// variables take.
llvm::Error lowerBuiltins(llvm::Function &kernel, Gpu &gpu, uint64_t &threadgroupBytes);

/// Computes a function of KeepMath.h; null if there is no form for GPUs.
llvm::Value *lowerMath(llvm::IRBuilder<> &b, Gpu &gpu, llvm::StringRef name,
                       llvm::ArrayRef<llvm::Value *> arguments);

/// Where the value of `__tm_simd_shuffle` comes from, if its lane is a simple function of the
/// thread's own.
Source sourceOf(llvm::Value *lane);

/// Undoes what the front end adds for a processor: defined divisions and conversions. Then fuses
/// what may be fused.
void tidyArithmetic(llvm::Function &kernel, Gpu &gpu, bool fuse);

/// Has 32-bit products take the low half of a 64-bit product of the same factors.
void shareProducts(llvm::Function &kernel);

/// Reads and writes vectors whole where they are aligned, which only the launch knows, and by
/// elements where they are not.
void versionUnaligned(llvm::Function &kernel);

/// Has atomics of integers stand in for those of floats: Mesa's SPIR-V has none. The code is
/// measured and never runs, and each is one instruction on the same operands.
void standInForFloatAtomics(llvm::Function &kernel);

/// Computes with bfloats in float. The type itself remains for memory and moves.
void expandBfloat(llvm::Function &kernel);

/// A loop that is left in the kernel, in the order of the code.
struct LoopInfo {
  unsigned depth = 1;
  /// How often it runs, if that is known.
  std::optional<unsigned> trips;
  unsigned line = 0;
};

std::vector<LoopInfo> findLoops(llvm::Function &kernel);

} // namespace triton_metal::gpu

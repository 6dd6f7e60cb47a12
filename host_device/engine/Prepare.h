// Prepares the front end's function of one thread for the SIMD-group transformation: everything
// inlined, in SSA form, parameters replaced by calls that identify them, counted and checked on
// request, optimised, with canonical control flow.
#pragma once

#include "host_device/engine/Code.h"
#include "host_device/engine/Lines.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"

namespace llvm {
class DILocation;
} // namespace llvm

namespace triton_metal::engine {

/// Prepares `kernel` and removes all other functions from the module. Returns the function, which
/// has no parameters.
/// `laneFunctions` are the functions that it calls, prepared in the same way.
llvm::Expected<llvm::Function *>
prepareKernel(llvm::Module &module, const KernelInfo &kernel, const CodeOptions &options,
              CodeFacts &facts, llvm::SmallVectorImpl<llvm::Function *> &laneFunctions);

// Steps in files of their own.

/// Replaces the parameters by `__tm_engine_*` calls (Parameters.cpp).
llvm::Expected<llvm::Function *> replaceParameters(llvm::Function &function,
                                                   const KernelInfo &kernel);
/// Inserts `__tm_engine_count_*` calls and fills in the tables for them (Counting.cpp).
void insertCounting(llvm::Function &function, MarkedFunctions &marked, CodeFacts &facts);
/// Writes the offsets of addresses as arithmetic, and optimises that. Blocks stay as they are
/// (Addresses.cpp).
void expandAddresses(llvm::Function &function);
/// The same for arithmetic that is left after the optimisations, with that of addresses.
void insertOptimizedCounting(llvm::Function &function, const MarkedFunctions &marked,
                             CodeFacts &facts);
/// Inserts `__tm_engine_check` before every access, if `accessesToo`, and adds the locations of
/// barriers (Bounds.cpp).
void insertChecks(llvm::Function &function, bool accessesToo, CodeFacts &facts);
/// Numbers the values that Metal does not promise, and makes threadgroup memory that no thread has
/// written one of them (Pessimize.cpp). The module must come from a portable compilation.
void insertSites(llvm::Function &function, CodeFacts &facts);
/// Sets the location in the user's text. Functions from headers are replaced by their callers.
void fillLocation(Site &site, llvm::Instruction &inst);
/// Sets what is accessed, and how.
void fillObject(Site &site, const struct MemoryAccess &access);
/// Makes the access to the 32-bit word around a smaller number one to the number.
void narrowToNumber(struct MemoryAccess &access);
/// Moves a place to the innermost loop of the text that is around it (CountSteps.cpp).
void placeAtLoop(Site &site, const llvm::Module &module);
/// Replaces the marks of coherent pointers by metadata of their accesses (TrackVisibility.cpp).
void collectCoherent(llvm::Function &function);
/// Inserts `__tm_engine_stored`, `_loaded` and `_atomic` at the accesses to device memory.
void trackVisibility(llvm::Function &function, const KernelInfo &kernel, CodeFacts &facts);
/// Inserts `__tm_engine_access` at the accesses to device and threadgroup memory (TrackRaces.cpp).
void trackRaces(llvm::Function &function, const KernelInfo &kernel, bool onlyStores,
                CodeFacts &facts);
/// Inserts `__tm_engine_step` into all loops (CountSteps.cpp).
void insertSteps(llvm::Function &function, CodeFacts &facts);
/// Inserts checks of threadgroup memory that no thread has written (Unwritten.cpp).
void checkThreadgroupMemory(llvm::Function &function, CodeFacts &facts);
/// Makes sites of the front end's checks of values (CheckValues.cpp).
void insertValueChecks(llvm::Function &function, CodeFacts &facts);
/// Inserts `__tm_engine_waits` into loops that only other threads can end (Waits.cpp).
void insertWaits(llvm::Function &function, CodeFacts &facts);
void fillLocation(Site &site, const llvm::DILocation *location);
/// An estimate of the 32-bit registers that a thread takes on a GPU (Registers.cpp).
uint32_t estimateRegisters(llvm::Function &function);
/// Buffers that stores may reach, one bit each (Bounds.cpp).
uint32_t findWrittenBuffers(llvm::Function &function, const KernelInfo &kernel);
/// Buffers whose pointers are used, one bit each (Bounds.cpp).
uint32_t findUsedBuffers(llvm::Function &function);
/// Expands memcpy, memmove and memset into loads, stores and loops (Parameters.cpp).
void expandMemoryIntrinsics(llvm::Function &function);
/// Replaces accesses to vectors of bits by accesses to the bytes that contain them
/// (WholeBytes.cpp).
void accessWholeBytes(llvm::Function &function);

/// Whether an atomic operation also orders other accesses.
bool isOrdered(const llvm::Instruction &inst);
/// The order of an atomic access, or relaxed.
llvm::AtomicOrdering orderingOf(const llvm::Instruction &inst);
/// An access to memory outside of the thread: the pointer and the bytes.
struct MemoryAccess {
  llvm::Value *pointer = nullptr;
  uint64_t bytes = 0;
  uint64_t alignment = 1;
  AccessKind kind = AccessKind::Load;
  AddressSpace space = AddressSpace::Thread;
};
std::optional<MemoryAccess> memoryAccess(llvm::Instruction &inst);
/// The array of the thread that the pointer is derived from, or null.
llvm::AllocaInst *arrayOf(llvm::Value *pointer);
/// The buffer whose pointer `pointer` is derived from, or -1.
int32_t bufferOf(llvm::Value *pointer);

} // namespace triton_metal::engine

// The table of the functions that the engine implements: what Metal's standard library calls and
// clang cannot generate code for, and what the engine's own passes put into the scalar code. A row
// says everything that the passes ask about a function, and which code a SIMD-group's call becomes.
// The rows stand beside their emitters: LaneOperations.cpp has the functions that cross lanes,
// VectorizeCalls.cpp the others.
#pragma once

#include "host_device/Counters.h"
#include "host_device/engine/Code.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/IR/DerivedTypes.h"
#include "llvm/IR/InstrTypes.h"
#include <optional>

namespace triton_metal::engine {

class SimdEmitter;

/// How a call's result is spread over the lanes that take part.
enum class Spread : uint8_t {
  /// A function of its operands, lane by lane.
  Elementwise,
  Uniform,
  /// Nothing is known.
  PerLane,
  /// The lane's own number.
  LaneNumber,
  /// Operand 0 of the lane that operand 1 names.
  Shuffle,
  /// What the `Position` that operand 0 names is for dimension operand 1.
  Position,
};

/// What a call does beside computing its result, from which its attributes follow.
enum class Effect : uint8_t {
  None,
  /// It reads other lanes' operands, so that it must stay among the lanes that it is called for.
  ReadsLanes,
  /// It orders the memory accesses of several threads.
  OrdersMemory,
  /// It writes what the kernel cannot see, once for each call that is executed.
  Counts,
  /// The same, and it may end the launch.
  Checks,
};

/// A counter that a call adds one to, and for whom.
struct Tally {
  enum class Per : uint8_t { Lane, Simdgroup, Threadgroup };
  Counters::Index counter;
  Per per;
};

struct Builtin {
  /// Of a function that exists for several address spaces ("name.1"), the part before the point.
  llvm::StringLiteral name;
  Spread spread = Spread::PerLane;
  Effect effect = Effect::None;
  /// Emits what a SIMD-group's call becomes.
  void (*emit)(SimdEmitter &emitter, llvm::CallInst &call) = nullptr;
  std::optional<Tally> tally = std::nullopt;
  /// What an error at run time calls the call, for those that can fail: they get a `tm.site`.
  std::optional<AccessKind> site = std::nullopt;
  /// Made by the engine's passes only: the front end's module must not have it.
  bool isInternal = false;
};

/// Every row.
std::vector<const Builtin *> builtins();

/// The row of a function, or null.
const Builtin *findBuiltin(llvm::StringRef name);
/// The row of the function that `value` calls, or null.
const Builtin *builtinCalledBy(const llvm::Value *value);
/// Whether `value` is a call of the function with this row.
bool isCallOf(const llvm::Value *value, llvm::StringRef name);
/// Of any call; an intrinsic of LLVM's works lane by lane.
Spread spreadOf(const llvm::CallBase &call);

/// Gives a declaration the attributes that follow from its row.
void addAttributes(llvm::Function &function, const Builtin &builtin);
/// The function `name` of the table; with `space`, its form for pointers to that address space.
llvm::FunctionCallee declareBuiltin(llvm::Module &module, llvm::StringRef name, llvm::Type *result,
                                    llvm::ArrayRef<llvm::Type *> parameters,
                                    std::optional<unsigned> space = std::nullopt);

// Functions that passes make or look for.
inline constexpr llvm::StringLiteral positionName = "__tm_engine_position";
inline constexpr llvm::StringLiteral bufferName = "__tm_engine_buffer";
inline constexpr llvm::StringLiteral threadgroupArgumentName = "__tm_engine_threadgroup_argument";
inline constexpr llvm::StringLiteral threadgroupAllocName = "__tm_threadgroup_alloc";
inline constexpr llvm::StringLiteral countBlockName = "__tm_engine_count_block";
inline constexpr llvm::StringLiteral countLinesName = "__tm_engine_count_lines";
inline constexpr llvm::StringLiteral checkName = "__tm_engine_check";

} // namespace triton_metal::engine

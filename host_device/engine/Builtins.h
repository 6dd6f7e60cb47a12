// The table of the functions that the engine implements. Metal's standard library calls some of
// them without a definition, and the engine's passes insert others into the scalar code. A row
// contains everything that the passes need to know about a function, and the emitter of its vector
// code. The rows are next to their emitters: LaneOperations.cpp contains the functions that cross
// lanes, and VectorizeCalls.cpp the others.
#pragma once

#include "host_device/Counters.h"
#include "host_device/engine/Code.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/IR/DerivedTypes.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Instructions.h"
#include <optional>

namespace triton_metal::engine {

class SimdEmitter;

/// How the result of a call is distributed over the active lanes.
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

/// The side effects of a call. They determine the attributes of the function.
enum class Effect : uint8_t {
  None,
  /// Reads the operands of other lanes, so the set of active lanes must not change.
  ReadsLanes,
  /// Orders the memory accesses of several threads.
  OrdersMemory,
  /// Writes memory that the kernel cannot access, once per executed call.
  Counts,
  /// As `Counts`, and may end the launch.
  Checks,
  /// As `Checks`, and reads and writes what its pointers point to.
  Observes,
};

/// The counter that a call increments, and whether once per lane, SIMD-group or threadgroup.
struct Tally {
  enum class Per : uint8_t { Lane, Simdgroup, Threadgroup };
  Counters::Index counter;
  Per per;
};

struct Builtin {
  /// For a function with a version for each address space ("name.1"), the part before the dot.
  llvm::StringLiteral name;
  Spread spread = Spread::PerLane;
  Effect effect = Effect::None;
  /// Emits the code of a SIMD-group's call.
  void (*emit)(SimdEmitter &emitter, llvm::CallInst &call) = nullptr;
  std::optional<Tally> tally = std::nullopt;
  /// The name of the call in errors at run time, if it can fail. Such calls have a `tm.site`.
  std::optional<AccessKind> site = std::nullopt;
  /// Only the engine's passes insert calls. The front end's module must not contain any.
  bool isInternal = false;
};

/// All rows.
std::vector<const Builtin *> builtins();

/// The row of a function, or null.
const Builtin *findBuiltin(llvm::StringRef name);
/// The row of the function that `value` calls, or null.
const Builtin *builtinCalledBy(const llvm::Value *value);
/// Whether `value` is a call of the function with this row.
bool isCallOf(const llvm::Value *value, llvm::StringRef name);
/// The distribution of any call's result. LLVM's intrinsics are elementwise.
Spread spreadOf(const llvm::CallBase &call);

/// Adds the attributes that the row implies to a declaration.
void addAttributes(llvm::Function &function, const Builtin &builtin);
/// Declares the function `name`. With `space`, it is the version for that address space.
llvm::FunctionCallee declareBuiltin(llvm::Module &module, llvm::StringRef name, llvm::Type *result,
                                    llvm::ArrayRef<llvm::Type *> parameters,
                                    std::optional<unsigned> space = std::nullopt);

/// Replaces the uses of a load by a call of the function `name` behind it. Its operands are the
/// load and `more`, and it has a version for each type.
void replaceByCall(llvm::LoadInst &load, llvm::StringRef name, llvm::ArrayRef<llvm::Value *> more);

// Functions that passes insert or look for.
inline constexpr llvm::StringLiteral positionName = "__tm_engine_position";
inline constexpr llvm::StringLiteral bufferName = "__tm_engine_buffer";
inline constexpr llvm::StringLiteral threadgroupArgumentName = "__tm_engine_threadgroup_argument";
inline constexpr llvm::StringLiteral operandName = "__tm_engine_operand";
inline constexpr llvm::StringLiteral resultName = "__tm_engine_result";
inline constexpr llvm::StringLiteral threadgroupAllocName = "__tm_threadgroup_alloc";
inline constexpr llvm::StringLiteral countBlockName = "__tm_engine_count_block";
inline constexpr llvm::StringLiteral countLinesName = "__tm_engine_count_lines";
inline constexpr llvm::StringLiteral countBanksName = "__tm_engine_count_banks";
inline constexpr llvm::StringLiteral countBranchName = "__tm_engine_count_branch";
inline constexpr llvm::StringLiteral checkName = "__tm_engine_check";
inline constexpr llvm::StringLiteral coherentName = "__tm_coherent";
inline constexpr llvm::StringLiteral storedName = "__tm_engine_stored";
inline constexpr llvm::StringLiteral loadedName = "__tm_engine_loaded";
inline constexpr llvm::StringLiteral stagedName = "__tm_engine_staged";
inline constexpr llvm::StringLiteral writerName = "__tm_engine_writer";
inline constexpr llvm::StringLiteral atomicName = "__tm_engine_atomic";
inline constexpr llvm::StringLiteral accessName = "__tm_engine_access";
inline constexpr llvm::StringLiteral failName = "__tm_engine_fail";
inline constexpr llvm::StringLiteral stepName = "__tm_engine_step";
inline constexpr llvm::StringLiteral waitsName = "__tm_engine_waits";

} // namespace triton_metal::engine

// What a Metal kernel's signature says: plain data, made by the MSL front end, read by whoever
// launches the kernel.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace triton_metal {

/// The number of buffers and of threadgroup memory arguments that a Metal kernel can have.
inline constexpr uint32_t maxBufferBindings = 31;
/// Bytes of threadgroup memory, variables and arguments together.
inline constexpr uint32_t maxThreadgroupMemory = 32 * 1024;
/// Threads in a threadgroup.
inline constexpr uint32_t maxThreadsPerThreadgroup = 1024;
/// Threads in a SIMD-group.
inline constexpr uint32_t simdWidth = 32;

/// LLVM address spaces of pointers in the front end's modules.
enum class AddressSpace : uint8_t { Thread = 0, Device = 1, Constant = 2, Threadgroup = 3 };

/// The attributes by which a kernel asks where in the grid a thread is.
enum class Position : uint8_t {
  ThreadPositionInGrid,
  ThreadPositionInThreadgroup,
  ThreadIndexInThreadgroup,
  ThreadIndexInSimdgroup,
  ThreadsPerGrid,
  ThreadsPerThreadgroup,
  ThreadsPerSimdgroup,
  ThreadgroupPositionInGrid,
  ThreadgroupsPerGrid,
  SimdgroupIndexInThreadgroup,
  SimdgroupsPerThreadgroup,
  ThreadExecutionWidth,
  DispatchThreadsPerThreadgroup,
  DispatchSimdgroupsPerThreadgroup,
  GridSize,
  GridOrigin,
  QuadgroupIndexInThreadgroup,
  QuadgroupsPerThreadgroup,
  DispatchQuadgroupsPerThreadgroup,
  ThreadIndexInQuadgroup,
};

struct ParameterInfo {
  enum class Kind : uint8_t {
    /// `device T *`, `constant T *`, or a reference to one: an LLVM pointer in address space 1
    /// or 2.
    Buffer,
    /// `threadgroup T *`, whose length the dispatch sets: an LLVM pointer in address space 3.
    Threadgroup,
    /// A number or a vector of numbers that the device supplies: iB or <N x iB>.
    Position,
  };

  std::string name;
  Kind kind = Kind::Buffer;

  // Buffer and Threadgroup.
  uint32_t index = 0;
  AddressSpace addressSpace = AddressSpace::Device;
  /// The pointee is const: the kernel's type says that it does not write here.
  bool isConst = false;
  bool isReference = false;
  /// False where `[[function_constant(c)]]` takes the parameter away, for c is false: nothing need
  /// be bound to it.
  bool exists = true;
  /// What the pointer points at: its spelling, size in bytes (0 for void) and alignment.
  std::string elementType;
  uint64_t elementSize = 0;
  uint64_t elementAlignment = 1;

  // Position.
  Position position = Position::ThreadPositionInGrid;
  /// 16 or 32.
  uint32_t scalarBits = 32;
  /// 1 to 3.
  uint32_t vectorWidth = 1;

  bool operator==(const ParameterInfo &) const = default;
};

/// A threadgroup variable of a kernel, its helpers included: its address is
/// `__tm_threadgroup_alloc(id, size, alignment)`.
struct ThreadgroupVariableInfo {
  std::string name;
  uint32_t id = 0;
  uint64_t size = 0;
  uint64_t alignment = 1;

  bool operator==(const ThreadgroupVariableInfo &) const = default;
};

/// `constant T name [[function_constant(index)]]`, and whether the kernel was given a value for it.
struct FunctionConstantInfo {
  std::string name;
  uint32_t index = 0;
  std::string type;
  bool defined = false;

  bool operator==(const FunctionConstantInfo &) const = default;
};

struct KernelInfo {
  /// The name that `newFunctionWithName:` would take, and the LLVM function's name.
  std::string name;
  /// Where the kernel begins in the source: a line, from 1.
  uint32_t line = 0;
  std::vector<ParameterInfo> parameters;
  std::vector<ThreadgroupVariableInfo> threadgroupVariables;
  /// Function constants that the library declares.
  std::vector<FunctionConstantInfo> functionConstants;
  /// `[[max_total_threads_per_threadgroup(n)]]`, or the device's limit.
  uint32_t maxTotalThreadsPerThreadgroup = maxThreadsPerThreadgroup;
  /// Why this kernel cannot be run, though others of its library can: a function constant that it
  /// uses has no value.
  std::string unusable;

  bool operator==(const KernelInfo &) const = default;
};

} // namespace triton_metal

// The signature of a Metal kernel as plain data. The MSL front end creates it, and launchers read
// it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace triton_metal {

/// The number of buffers and of threadgroup memory arguments that a Metal kernel can have.
inline constexpr uint32_t maxBufferBindings = 31;
/// The maximum bytes of threadgroup memory, for variables and arguments together.
inline constexpr uint32_t maxThreadgroupMemory = 32 * 1024;
/// Threads in a threadgroup.
inline constexpr uint32_t maxThreadsPerThreadgroup = 1024;
/// Threads in a SIMD-group.
inline constexpr uint32_t simdWidth = 32;

/// LLVM address spaces of pointers in the front end's modules.
enum class AddressSpace : uint8_t { Thread = 0, Device = 1, Constant = 2, Threadgroup = 3 };

/// The attributes of kernel parameters that ask for a thread's position in the grid.
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

/// The kind of the numbers that a type consists of.
enum class ScalarKind : uint8_t { None, Bool, Signed, Unsigned, Float, BFloat };

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

  // For Buffer and Threadgroup.
  uint32_t index = 0;
  AddressSpace addressSpace = AddressSpace::Device;
  /// Whether the pointee is const, so that the kernel does not write through this pointer.
  bool isConst = false;
  bool isReference = false;
  /// False if `[[function_constant(c)]]` removes the parameter because c is false. Nothing has to
  /// be bound then.
  bool exists = true;
  /// The spelling of the pointee's type, its size in bytes (0 for void) and its alignment.
  std::string elementType;
  uint64_t elementSize = 0;
  uint64_t elementAlignment = 1;

  // For Position.
  Position position = Position::ThreadPositionInGrid;

  /// The numbers of the pointee, or of the position. None for structures, unions and void.
  ScalarKind scalarKind = ScalarKind::None;
  /// 16 or 32 for a position.
  uint32_t scalarBits = 32;
  /// The number of components: 1 to 4 of vectors (for a position 1 to 3), up to 16 of matrices.
  uint32_t vectorWidth = 1;

  bool operator==(const ParameterInfo &) const = default;
};

/// A threadgroup variable of a kernel or of a function that it calls. Its address is
/// `__tm_threadgroup_alloc(id, size, alignment)`.
struct ThreadgroupVariableInfo {
  std::string name;
  uint32_t id = 0;
  uint64_t size = 0;
  uint64_t alignment = 1;
  /// Where it is declared, counted from 1; 0 if that is not known.
  uint32_t line = 0, column = 0;

  bool operator==(const ThreadgroupVariableInfo &) const = default;
};

/// `constant T name [[function_constant(index)]]`, and whether the library was given a value for
/// it.
struct FunctionConstantInfo {
  std::string name;
  uint32_t index = 0;
  std::string type;
  bool defined = false;
  /// Whether the kernel uses it without asking whether it is defined, and there is no value.
  bool required = false;
  /// The numbers of its type.
  ScalarKind scalarKind = ScalarKind::None;
  uint32_t scalarBits = 0;
  uint32_t vectorWidth = 1;

  bool operator==(const FunctionConstantInfo &) const = default;
};

struct KernelInfo {
  /// The name that `newFunctionWithName:` would take, and the LLVM function's name.
  std::string name;
  /// The line of the kernel in the source, counted from 1.
  uint32_t line = 0;
  std::vector<ParameterInfo> parameters;
  std::vector<ThreadgroupVariableInfo> threadgroupVariables;
  /// Function constants that the library declares.
  std::vector<FunctionConstantInfo> functionConstants;
  /// `[[max_total_threads_per_threadgroup(n)]]`, or the device's limit.
  uint32_t maxTotalThreadsPerThreadgroup = maxThreadsPerThreadgroup;
  /// The reason why this kernel cannot be run although others of its library can: it uses a
  /// function constant without a value.
  std::string unusable;

  bool operator==(const KernelInfo &) const = default;
};

} // namespace triton_metal

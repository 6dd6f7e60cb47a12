// A compiled kernel in memory and in the cache: machine code, and the facts that the launcher
// needs.
#pragma once

#include "host_device/Counters.h"
#include "host_device/KernelInfo.h"
#include "host_device/Unpromised.h"
#include "host_device/engine/Abi.h"
#include "llvm/ADT/SmallVector.h"
#include <string>
#include <vector>

namespace triton_metal::engine {

enum class AccessKind : uint8_t { Load, Store, Atomic, Barrier, Shuffle, AnyValue, Value, Loop };

/// A place in the MSL at which an access can fail, or at which a value is any value.
struct Site {
  uint32_t line = 0, column = 0;
  /// The name of the file that the line is in, if it is not the main text.
  std::string file = {};
  AccessKind kind = AccessKind::Load;
  AddressSpace space = AddressSpace::Device;
  uint32_t bytes = 0;
  /// The buffer of the pointer, if it is known; otherwise -1.
  int32_t buffer = -1;
  /// The threadgroup variable of the pointer, if it is known; otherwise -1. `arguments` and more
  /// are threadgroup arguments. `note` is its name.
  int32_t variable = -1;
  static constexpr int32_t arguments = 1 << 20;
  /// The bytes of the array of the thread, or of the constant, that `note` names; otherwise 0.
  uint64_t variableBytes = 0;
  /// What the address must be a multiple of.
  uint32_t alignment = 1;
  /// For a value that Metal does not promise: why, and what a message names.
  Unpromised reason = Unpromised::Variable;
  std::string note = {};
  /// The bits of its type, and whether that is a floating-point type.
  uint8_t bits = 0;
  bool isFloat = false;
  /// The kernel's call of the function that the line is in; 0 in the kernel itself.
  uint32_t callLine = 0, callColumn = 0;
  /// The name of its file, if that is not the main text.
  std::string callFile = {};

  /// "line 3:9", or "line 3:9 of header.h".
  std::string where() const { return where(line, column, file); }
  static std::string where(uint32_t line, uint32_t column, const std::string &file) {
    std::string text = "line " + std::to_string(line) + ":" + std::to_string(column);
    return file.empty() ? text : text + " of " + file;
  }
  /// " (called in line 30:5)", or nothing.
  std::string call() const {
    return callLine ? " (called in " + where(callLine, callColumn, callFile) + ")" : std::string();
  }
  /// ", line 3:9", or nothing for a site without a line.
  std::string place() const {
    if (!line)
      return {};
    return ", " + where() + call();
  }
};

/// A line of the program's text, or of a file that it includes.
struct SourceLine {
  std::string file;
  uint32_t line = 0;
  auto operator<=>(const SourceLine &) const = default;
};

/// What an execution of a line adds to a counter.
struct LineAmount {
  /// The place in CodeFacts::lines.
  uint32_t line = 0;
  /// A Counters::Index.
  uint32_t counter = 0;
  uint32_t amount = 0;
};

/// What one execution of a basic block counts: for each active lane, for each SIMD-group, and once
/// for the threadgroup.
struct BlockCounts {
  std::vector<LineAmount> lane, simdgroup, threadgroup;
};

struct CodeFacts {
  bool usesThreadgroupBarrier = false;
  /// The bytes of stack of a SIMD-group, for private arrays and spilled registers.
  uint64_t stackBytes = 0;
  /// The bytes of threadgroup variables. Arguments follow them.
  uint64_t threadgroupBytes = 0;
  /// Where each threadgroup variable is, by its number: the first byte, and the bytes.
  std::vector<std::pair<uint64_t, uint64_t>> threadgroupPlaces;
  /// One bit for each buffer that a store may reach, and for each buffer that is used.
  uint32_t writtenBuffers = 0;
  uint32_t usedBuffers = 0;
  /// One bit for each buffer that loads, atomics that write, and other stores may reach. Only for
  /// portable code.
  uint32_t loadedBuffers = 0, updatedBuffers = 0, storedBuffers = 0;
  /// A power of two that divides the addresses and sizes of all accesses to device memory. Only for
  /// portable code and for code that checks races.
  uint32_t granule = 1;
  /// The same for threadgroup memory.
  uint32_t threadgroupGranule = 1;
  /// Whether the kernel has fences of device memory, or atomics that order it.
  bool hasFences = false;
  /// Whether a loop may wait for another threadgroup. Only for portable code.
  bool mayWait = false;
  /// Constants that integers and floats of 32 bits are compared with, without 0, 1 and -1. Only for
  /// portable code.
  std::vector<uint64_t> comparedIntegers, comparedFloats;
  uint32_t registersPerThread = 0;
  std::vector<Site> sites;
  std::vector<BlockCounts> blocks;
  /// The counters whose amounts are known only at run time. Each amount is 1.
  std::vector<LineAmount> dynamicCounters;
  /// The lines that count something.
  std::vector<SourceLine> lines;

  /// The number of words in GroupState::counts: three for each block (lanes, SIMD-groups, first
  /// SIMD-groups) and one for each dynamic counter.
  size_t countWords() const { return 3 * blocks.size() + dynamicCounters.size(); }
};

struct KernelCode {
  std::string entryName;
  CodeFacts facts;
  /// The object file.
  std::string object;
};

} // namespace triton_metal::engine

#include "host_device/engine/Describe.h"
#include "host_device/Interface.h"
#include "host_device/engine/Guard.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <csignal>

using namespace llvm;

namespace triton_metal::engine {

namespace {

/// "3,0,0".
std::string numbers(const std::array<uint32_t, 3> &position) {
  return (Twine(position[0]) + "," + Twine(position[1]) + "," + Twine(position[2])).str();
}

class Description {
public:
  Description(const FailureRecord &failure, const CodeFacts &facts, const KernelInfo &info,
              const LaunchState &launch)
      : failure(failure), facts(facts), info(info), launch(launch), stream(text) {
    if (failure.site < facts.sites.size())
      site = facts.sites[failure.site];
  }

  std::string make() {
    stream << "kernel '" << info.name << "'" << site.place() << ": ";
    switch (failure.failure) {
    case Failure::OutOfBounds:
      if (!failure.note.empty())
        break;
      access();
      place();
      break;
    case Failure::Misaligned:
      access();
      if (int32_t buffer = bufferOfAddress(); buffer >= 0)
        stream << " at byte " << offsetIn(buffer) << " of " << nameOfBuffer(buffer);
      else if (site.space == AddressSpace::Threadgroup)
        placeInThreadgroupMemory();
      else
        stream << " at address " << format_hex(failure.address, 18);
      stream << ", which is not aligned for its type: the address must be a multiple of "
             << site.alignment;
      break;
    case Failure::ReadOnly:
      access();
      place();
      stream << ": that buffer was bound read-only";
      break;
    case Failure::DivergentBarrier:
      if (failure.note.empty())
        stream << "not all threads of the SIMD-group come to this threadgroup barrier";
      break;
    case Failure::SeveralBarriers:
      stream << "some SIMD-groups of the threadgroup wait at this barrier, and SIMD-group "
             << failure.other.thread / simdWidth << " at the one in " << otherSite().where()
             << ": all threads must come to the same one";
      break;
    case Failure::DivergentOperation:
      stream << "not all threads of the SIMD-group come to this " << site.note;
      break;
    case Failure::ShuffleLane:
      stream << "a shuffle reads lane " << failure.address << ", which "
             << (failure.address < simdWidth ? "takes no part" : "does not exist");
      break;
    case Failure::Fault:
      stream << "the kernel faulted (" << signalName(failure.signal);
      if (failure.address)
        stream << " at address " << format_hex(failure.address, 18);
      stream << ")" << failure.note << " in threadgroup " << numbers(failure.threadgroup);
      if (failure.signal == SIGFPE) {
        stream << ": an operation on integers stopped the processor. That is a defect of the host "
                  "device; please report it";
        return text;
      }
      stream
          << ": it accesses memory that it was not given, or is not aligned for its type. Run it "
             "with check=\"bounds\" (metal-run: --check) to find the line";
      return text;
    case Failure::Endless:
      return text +
             "the kernel does not end: it runs many times as long as with other values that Metal "
             "does not promise, or for more than a minute";
    case Failure::Interrupted:
      return std::string(launchInterrupted) + failure.note;
    case Failure::Stale:
      break;
    case Failure::Waits:
      stream << (site.space == AddressSpace::Device
                     ? "this loop waits for another threadgroup: Metal does not promise that two "
                       "threadgroups run at the same time"
                     : "this loop waits for another thread of its threadgroup: Metal promises that "
                       "threads run on together at barriers only");
      break;
    case Failure::Race:
      race();
      break;
    case Failure::Unwritten:
      access();
      placeInThreadgroupMemory();
      stream << ": no thread of the threadgroup has written it";
      break;
    case Failure::Value:
      stream << site.note;
      break;
    case Failure::Steps:
      stream << "the kernel does not end: a SIMD-group has run " << failure.address
             << " iterations of its loops, the last one of this loop";
      break;
    case Failure::Missing: {
      auto buffer = uint32_t(failure.address >> 48);
      uint64_t byte = failure.address & ((uint64_t(1) << 48) - 1);
      stream << "no thread has written byte " << byte << " of " << nameOfBuffer(buffer)
             << elementOf(buffer, int64_t(byte)) << failure.note;
      return text;
    }
    }
    stream << failure.note << " (threadgroup " << numbers(failure.threadgroup) << ", SIMD-group "
           << failure.simdgroup << ", lane " << failure.lane;
    if (uint32_t thread = failure.simdgroup * simdWidth + failure.lane; failure.threads[0]) {
      std::array<uint32_t, 3> inGroup = positionOf(thread), inGrid = inGroup;
      for (unsigned d = 0; d != 3; ++d)
        inGrid[d] += failure.threadgroup[d] * launch.dispatchThreads[d];
      stream << ", thread " << numbers(inGroup) << ", in the grid " << numbers(inGrid);
    }
    stream << ")";
    return text;
  }

private:
  const FailureRecord &failure;
  const CodeFacts &facts;
  const KernelInfo &info;
  const LaunchState &launch;
  Site site;
  std::string text;
  raw_string_ostream stream;

  /// The position of a thread in the threadgroup.
  std::array<uint32_t, 3> positionOf(uint32_t thread) const {
    uint32_t width = std::max(1u, failure.threads[0]), height = std::max(1u, failure.threads[1]);
    return {thread % width, thread / width % height, thread / width / height};
  }

  static StringRef verb(AccessKind kind) {
    return kind == AccessKind::Load    ? "a load"
           : kind == AccessKind::Store ? "a store"
                                       : "an atomic operation";
  }
  void access() { stream << verb(site.kind) << " of " << site.bytes << " bytes"; }

  std::string nameOfBuffer(uint32_t index) const {
    for (const ParameterInfo &parameter : info.parameters)
      if (parameter.kind == ParameterInfo::Kind::Buffer && parameter.index == index)
        return "'" + parameter.name + "' (buffer " + std::to_string(index) + ")";
    return "buffer " + std::to_string(index);
  }

  int32_t bufferOfAddress() const {
    if (site.space == AddressSpace::Thread || site.space == AddressSpace::Threadgroup)
      return -1;
    if (site.buffer >= 0)
      return site.buffer;
    for (uint32_t index = 0; index != maxBufferBindings; ++index)
      if (launch.bufferBytes[index] &&
          failure.address - uint64_t(launch.bufferStarts[index]) < launch.bufferBytes[index])
        return int32_t(index);
    return -1;
  }
  int64_t offsetIn(int32_t buffer) const {
    return int64_t(failure.address - uint64_t(launch.buffers[buffer]));
  }

  /// ", element 4", if the buffer has a type.
  std::string elementOf(uint32_t buffer, int64_t byte) const {
    for (const ParameterInfo &parameter : info.parameters)
      if (parameter.kind == ParameterInfo::Kind::Buffer && parameter.index == buffer &&
          parameter.elementSize && !parameter.isReference) {
        auto size = int64_t(parameter.elementSize);
        int64_t element = byte >= 0 ? byte / size : -((-byte + size - 1) / size);
        return ", element " + std::to_string(element);
      }
    return "";
  }

  void place() {
    if (site.space == AddressSpace::Thread || site.variableBytes) {
      bool isArray = site.space == AddressSpace::Thread;
      stream << " outside its " << (isArray ? "array" : "constant");
      if (site.variableBytes && !site.note.empty())
        stream << " '" << site.note << "'";
      if (isArray)
        stream << " in thread memory";
      if (site.variableBytes)
        stream << ": at byte " << int64_t(failure.address) << " of " << site.variableBytes;
      return;
    }
    if (site.space == AddressSpace::Threadgroup) {
      stream << " outside its threadgroup "
             << (site.variable >= Site::arguments ? "argument" : "variable");
      if (site.variable >= 0) {
        auto [start, size] = placeOf(site.variable);
        stream << " '" << site.note << "': at byte "
               << int64_t(failure.address - failure.threadgroupMemory - start) << " of " << size;
      }
      return;
    }
    int32_t buffer = bufferOfAddress();
    if (buffer < 0) {
      stream << " at " << format_hex(failure.address, 18) << ", which is in no buffer";
      return;
    }
    int64_t offset = offsetIn(buffer);
    stream << " at byte " << offset << " of " << nameOfBuffer(buffer) << elementOf(buffer, offset)
           << ", which has " << launch.bufferBytes[buffer] << " bytes";
    if (uint64_t before = uint64_t(launch.buffers[buffer]) - uint64_t(launch.bufferStarts[buffer]))
      stream << ", " << before << " of them before its first element";
  }

  /// The first byte and the bytes of a threadgroup variable, or of an argument (from
  /// Site::arguments on).
  std::pair<uint64_t, uint64_t> placeOf(int32_t variable) const {
    if (variable >= Site::arguments)
      return {launch.argumentOffsets[variable - Site::arguments],
              launch.argumentBytes[variable - Site::arguments]};
    if (size_t(variable) < facts.threadgroupPlaces.size())
      return facts.threadgroupPlaces[variable];
    return {0, maxThreadgroupMemory};
  }

  /// " at byte 8 of threadgroup variable 'tile'".
  void placeInThreadgroupMemory() {
    uint64_t offset = failure.address - failure.threadgroupMemory;
    for (const ThreadgroupVariableInfo &variable : info.threadgroupVariables) {
      auto [start, size] = placeOf(int32_t(variable.id));
      if (offset - start >= size)
        continue;
      stream << " at byte " << offset - start << " of threadgroup variable '" << variable.name
             << "'";
      if (variable.line)
        stream << " (declared in line " << variable.line << ":" << variable.column << ")";
      return;
    }
    for (const ParameterInfo &parameter : info.parameters) {
      if (parameter.kind != ParameterInfo::Kind::Threadgroup)
        continue;
      auto [start, size] = placeOf(Site::arguments + int32_t(parameter.index));
      if (offset - start >= size)
        continue;
      stream << " at byte " << offset - start << " of '" << parameter.name
             << "' (threadgroup argument " << parameter.index << ")";
      if (parameter.elementSize)
        stream << ", element " << (offset - start) / parameter.elementSize;
      return;
    }
    stream << " at byte " << offset << " of threadgroup memory";
  }

  Site otherSite() const {
    return failure.other.site < facts.sites.size() ? facts.sites[failure.other.site] : Site();
  }

  void race() {
    Site other = otherSite();
    bool isThreadgroup = site.space == AddressSpace::Threadgroup;
    stream << "a race: " << verb(site.kind) << " of " << site.bytes << " bytes";
    if (isThreadgroup) {
      placeInThreadgroupMemory();
    } else if (int32_t buffer = bufferOfAddress(); buffer >= 0) {
      int64_t offset = offsetIn(buffer);
      stream << " at byte " << offset << " of " << nameOfBuffer(buffer)
             << elementOf(buffer, offset);
    }
    std::array<uint32_t, 3> theirs = positionOf(failure.other.thread);
    stream << " meets " << verb(other.kind) << " of " << other.bytes << " bytes in "
           << other.where() << other.call();
    bool sameGroup = failure.other.threadgroup == failure.threadgroup;
    stream << " by thread " << numbers(theirs) << " of "
           << (sameGroup ? std::string("the same threadgroup")
                         : "threadgroup " + numbers(failure.other.threadgroup))
           << (failure.other.isSame ? ", with the same value. " : ". ");
    const char *flag = isThreadgroup ? "mem_threadgroup" : "mem_device";
    if (!sameGroup)
      stream << "Nothing orders two threadgroups of a launch but atomics with fences";
    else if (failure.other.thread / simdWidth == failure.simdgroup)
      stream << "No simdgroup_barrier or threadgroup_barrier with mem_flags::" << flag
             << " is between them: threads of a SIMD-group do not run in lockstep";
    else
      stream << "No threadgroup_barrier with mem_flags::" << flag << " is between them";
  }
};

} // namespace

std::string describeFailure(const FailureRecord &failure, const CodeFacts &facts,
                            const KernelInfo &info, const LaunchState &launch) {
  return Description(failure, facts, info, launch).make();
}

} // namespace triton_metal::engine

#include "host_device/engine/BufferContents.h"
#include "host_device/engine/PerProcess.h"
#include "host_device/engine/Pool.h"
#include <algorithm>
#include <cstring>
#include <mutex>

namespace triton_metal::engine {

/// Calls `body(from, to)` for the bytes from `start` to `end`, or for those of them in the chunks.
template <typename Body>
static void forEachPiece(char *start, char *end, const std::vector<uint64_t> *chunks, Body body) {
  if (!chunks)
    return body(start, end);
  for (uint64_t chunk : *chunks) {
    char *from = std::max(start, reinterpret_cast<char *>(chunk << chunkShift));
    char *to = std::min(end, reinterpret_cast<char *>((chunk + 1) << chunkShift));
    if (from < to)
      body(from, to);
  }
}

/// Calls `body(buffer, from, size)` for pieces of the buffers, on several threads if they are
/// large.
template <typename Buffers, typename Body>
static void copy(unsigned numThreads, Buffers &buffers, Body body) {
  constexpr size_t pieceBytes = 1 << 18;
  size_t total = 0;
  for (auto &buffer : buffers)
    total += (buffer.bytes.size() + pieceBytes - 1) / pieceBytes;
  Pieces pieces(0, total, 1);
  auto work = [&] {
    for (uint64_t piece, end; pieces.take(piece, end);)
      for (auto &buffer : buffers) {
        size_t count = (buffer.bytes.size() + pieceBytes - 1) / pieceBytes;
        if (piece < count) {
          size_t from = piece * pieceBytes;
          body(buffer, from, std::min(pieceBytes, buffer.bytes.size() - from));
          break;
        }
        piece -= count;
      }
  };
  unsigned helpers = std::min<size_t>(numThreads, total / 2);
  if (helpers < 2 || !runOnThreads(helpers - 1, work))
    work();
}

namespace {
/// Memory of earlier launches.
struct KeptMemory {
  static constexpr size_t mostBytes = size_t(256) << 20, leastBytes = 1 << 18;
  std::mutex mutex;
  std::vector<llvm::SmallVector<char, 0>> lists;
  size_t total = 0;

  llvm::SmallVector<char, 0> take(size_t bytes) {
    std::lock_guard lock(mutex);
    auto found = std::find_if(lists.begin(), lists.end(), [&](const auto &list) {
      return list.capacity() >= bytes && list.capacity() / 4 <= bytes;
    });
    if (found == lists.end())
      return {};
    llvm::SmallVector<char, 0> list = std::move(*found);
    lists.erase(found);
    total -= list.capacity();
    return list;
  }
};
} // namespace

void BufferContents::keepMemory() {
  auto &kept = perProcess<KeptMemory>();
  std::lock_guard lock(kept.mutex);
  for (Buffer &buffer : buffers)
    if (size_t capacity = buffer.bytes.capacity();
        capacity >= KeptMemory::leastBytes && kept.total + capacity <= KeptMemory::mostBytes) {
      kept.total += capacity;
      kept.lists.push_back(std::move(buffer.bytes));
    }
  buffers.clear();
}

BufferContents::BufferContents(const LaunchPlan &plan, const std::vector<uint64_t> *chunks) {
  const LaunchState &launch = plan.state;
  for (uint32_t index = 0; index != maxBufferBindings; ++index)
    if ((plan.facts->writtenBuffers >> index & 1) && launch.bufferWritable[index] &&
        launch.bufferBytes[index]) {
      auto *start = static_cast<char *>(launch.bufferStarts[index]);
      forEachPiece(start, start + launch.bufferBytes[index], chunks, [&](char *from, char *to) {
        buffers.push_back({index, from, perProcess<KeptMemory>().take(to - from)});
        buffers.back().bytes.resize_for_overwrite(to - from);
      });
    }
  copy(plan.numThreads, buffers, [](Buffer &buffer, size_t from, size_t size) {
    std::memcpy(buffer.bytes.data() + from, buffer.start + from, size);
  });
}

void BufferContents::restore(const std::vector<uint64_t> *chunks) const {
  for (const Buffer &buffer : buffers)
    forEachPiece(buffer.start, buffer.start + buffer.bytes.size(), chunks,
                 [&](char *from, char *to) {
                   std::memcpy(from, buffer.bytes.data() + (from - buffer.start), to - from);
                 });
}

bool BufferContents::isUnchanged() const {
  return std::all_of(buffers.begin(), buffers.end(), [](const Buffer &buffer) {
    return !std::memcmp(buffer.start, buffer.bytes.data(), buffer.bytes.size());
  });
}

} // namespace triton_metal::engine

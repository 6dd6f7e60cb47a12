// Stands for metal-cpp where there is no Metal: the names that MLX's own metal/device.h uses, with
// metal-cpp's signatures. MLX's header is the real one, so what compiles against it here calls MLX
// as MLX declares itself.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace NS {
using UInteger = std::uintptr_t;

/// Holds; counts nothing, as nothing here is freed.
template <typename T> class SharedPtr {
public:
  SharedPtr() = default;
  explicit SharedPtr(T *pointer) : pointer(pointer) {}
  T *get() const { return pointer; }
  T *operator->() const { return pointer; }
  explicit operator bool() const { return pointer != nullptr; }

private:
  T *pointer = nullptr;
};
class AutoreleasePool;
} // namespace NS

namespace MTL {
enum class DataType : NS::UInteger {};

struct Size {
  NS::UInteger width = 0, height = 0, depth = 0;
  Size() = default;
  Size(NS::UInteger width, NS::UInteger height, NS::UInteger depth)
      : width(width), height(height), depth(depth) {}
};

class Allocation {};
class Resource : public Allocation {};
class Buffer : public Resource {};
class ResidencySet {};
class CommandQueue {};
class CommandBuffer {};
class Fence {};
class Device {};
class Function;
class LinkedFunctions;

class Library {
public:
  std::string name, text;
};

class ComputePipelineState {
public:
  std::string name;
  Library *library = nullptr;
  NS::UInteger threads = 1024;
  NS::UInteger maxTotalThreadsPerThreadgroup() const { return threads; }
};

/// Tells a listener what is set.
class ComputeCommandEncoder {
public:
  std::function<void(const ComputePipelineState *)> onPipeline;
  std::function<void(std::vector<uint8_t>, NS::UInteger)> onBytes;

  void setComputePipelineState(const ComputePipelineState *pipeline) { onPipeline(pipeline); }
  void setBytes(const void *bytes, NS::UInteger length, NS::UInteger index) {
    auto *first = static_cast<const uint8_t *>(bytes);
    onBytes(std::vector<uint8_t>(first, first + length), index);
  }
  void setThreadgroupMemoryLength(NS::UInteger, NS::UInteger) {}
};
} // namespace MTL

// The launch of a kernel as an operation of MLX's graph. Its inputs are all arrays, its outputs the
// arrays that the kernel writes.
#ifndef TRITON_METAL_RUNTIME_MLX_INPLACE_H
#define TRITON_METAL_RUNTIME_MLX_INPLACE_H

#include "runtime/KernelTable.h"

#include "mlx/array.h"
#include "mlx/primitives.h"

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace triton_metal::mlx_route {

namespace mx = mlx::core;

/// A counted reference to a kernel.
class KernelReference {
public:
  explicit KernelReference(const runtime::KernelTable *table) : table(table) {
    table->retain(table);
  }
  KernelReference(const KernelReference &other) : KernelReference(other.table) {}
  KernelReference &operator=(const KernelReference &other) = delete;
  ~KernelReference() { table->release(table); }
  const runtime::KernelTable *operator->() const { return table; }
  const runtime::KernelTable *get() const { return table; }

private:
  const runtime::KernelTable *table;
};

/// A launch without its arrays.
struct Launch {
  KernelReference kernel;
  uint32_t grid[3] = {1, 1, 1};
  std::vector<uint32_t> scalars;
  /// The binding of a buffer and the index of its array in the launch. One array may have several
  /// bindings.
  struct Binding {
    uint32_t slot;
    uint32_t array;
  };
  std::vector<Binding> bindings;
  /// For each array: its index among the outputs, or -1 if the kernel only reads it.
  std::vector<int> outputs;
  /// For each array: whether the kernel was compiled for an address that is a multiple of 16.
  std::vector<bool> aligned;
};

class InPlace : public mx::Primitive {
public:
  InPlace(mx::Stream stream, Launch launch)
      : Primitive(stream), launch(std::move(launch)),
        label("triton_metal kernel " + std::string(this->launch.kernel->name)) {}

  void eval_cpu(const std::vector<mx::array> &inputs, std::vector<mx::array> &outputs) override;
  void eval_gpu(const std::vector<mx::array> &inputs, std::vector<mx::array> &outputs) override;
  std::vector<mx::array> jvp(const std::vector<mx::array> &, const std::vector<mx::array> &,
                             const std::vector<int> &) override;
  std::vector<mx::array> vjp(const std::vector<mx::array> &, const std::vector<mx::array> &,
                             const std::vector<int> &, const std::vector<mx::array> &) override;
  std::pair<std::vector<mx::array>, std::vector<int>> vmap(const std::vector<mx::array> &,
                                                           const std::vector<int> &) override;
  std::vector<mx::Shape> output_shapes(const std::vector<mx::array> &) override;
  const char *name() const override { return label.c_str(); }

private:
  Launch launch;
  std::string label;
};

/// Gives an array row-contiguous memory of its own, aligned to 16 bytes if requested. Throws if
/// there is no memory, which MLX's allocator for CPUs does not.
void allocate(mx::array &array, bool aligned = false);

/// Whether a kernel can use the memory of an array as it is.
bool isUsable(const mx::array &array, bool aligned);

/// Copies the elements of one array to another one, which is row-contiguous.
using Copier = std::function<void(const mx::array &from, mx::array &to)>;

/// Gives every array of a launch row-contiguous memory. An output takes the buffer of its input if
/// nothing else holds that buffer; otherwise it gets a new buffer with the input's elements.
std::vector<mx::array> placeArrays(const Launch &launch, const std::vector<mx::array> &inputs,
                                   std::vector<mx::array> &outputs, const Copier &copy,
                                   std::vector<mx::array> &temporaries);

/// Copies the elements of an array, given by addresses, in row-major order.
struct StridedCopy {
  const char *from;
  char *to;
  size_t size, itemsize;
  bool isContiguous;
  mx::Shape shape;
  mx::Strides strides;

  StridedCopy(const mx::array &from, mx::array &to);
  void run() const;
};

/// The memory of a row-contiguous array for the host device.
BufferBinding bindingOf(const mx::array &array, bool writable);

/// Prepares what the compiled kernel needs on the GPU before its launch, so that errors are raised
/// at the launch. Throws.
void prepareGpu(const runtime::KernelTable &kernel, mx::Device device);

/// Keeps the error of a launch that ran after its call returned, until it is asked for.
void keepError(std::string message);
std::optional<std::string> takeError();

} // namespace triton_metal::mlx_route

#endif // TRITON_METAL_RUNTIME_MLX_INPLACE_H

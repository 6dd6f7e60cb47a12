// Evaluation on a GPU stream of MLX. It uses MLX's device, library cache and command encoder, so
// that MLX's order of commands holds.
#include "runtime/mlx/InPlace.h"

#include "mlx/backend/metal/device.h"

#include <algorithm>
#include <cstdio>
#include <stdexcept>

namespace triton_metal::mlx_route {

namespace {

/// Copies elements into row-major order. Rank 0 means that they are in this order already.
constexpr const char *copyText = R"metal(#include <metal_stdlib>
using namespace metal;

template <typename T>
void copy_elements(device const T *from, device T *to, constant const int *shape,
                   constant const long *strides, int rank, ulong size, uint3 position,
                   uint3 threads) {
  ulong index = ulong(position.y) * threads.x + position.x;
  if (index >= size)
    return;
  long offset = rank == 0 ? long(index) : 0;
  ulong rest = index;
  for (int axis = rank - 1; axis >= 0; --axis) {
    offset += long(rest % ulong(shape[axis])) * strides[axis];
    rest /= ulong(shape[axis]);
  }
  to[index] = from[offset];
}

#define COPY(name, type)                                                                           \
  kernel void name(device const type *from [[buffer(0)]], device type *to [[buffer(1)]],           \
                   constant const int *shape [[buffer(2)]],                                        \
                   constant const long *strides [[buffer(3)]],                                     \
                   constant const int &rank [[buffer(4)]],                                         \
                   constant const ulong &size [[buffer(5)]],                                       \
                   uint3 position [[thread_position_in_grid]],                                     \
                   uint3 threads [[threads_per_grid]]) {                                           \
    copy_elements(from, to, shape, strides, rank, size, position, threads);                        \
  }
COPY(triton_metal_copy_1, uchar)
COPY(triton_metal_copy_2, ushort)
COPY(triton_metal_copy_4, uint)
COPY(triton_metal_copy_8, ulong)
)metal";

void encodeCopy(const mx::array &from, mx::array &to, mx::Stream stream) {
  if (from.size() == 0)
    return;
  auto &device = mx::metal::device(stream.device);
  auto *library = device.get_library("triton_metal_copy", [] { return std::string(copyText); });
  auto *pipeline =
      device.get_kernel("triton_metal_copy_" + std::to_string(from.itemsize()), library);
  bool isContiguous = from.flags().row_contiguous || from.ndim() == 0;
  // Metal cannot set an argument of zero bytes, so there is at least one dimension.
  mx::Shape shape = isContiguous ? mx::Shape{1} : from.shape();
  mx::Strides strides = isContiguous ? mx::Strides{1} : from.strides();
  auto rank = static_cast<int>(isContiguous ? 0 : from.ndim());
  auto size = static_cast<uint64_t>(from.size());

  auto &encoder = mx::metal::get_command_encoder(stream);
  encoder.set_compute_pipeline_state(pipeline);
  encoder.set_input_array(from, 0);
  encoder.set_output_array(to, 1);
  encoder.set_vector_bytes(shape, 2);
  encoder.set_vector_bytes(strides, 3);
  encoder.set_bytes(rank, 4);
  encoder.set_bytes(size, 5);
  uint64_t width = std::min<uint64_t>(size, UINT64_C(1) << 30);
  encoder.dispatch_threads(MTL::Size(width, (size + width - 1) / width, 1),
                           MTL::Size(std::min<uint64_t>(width, 256), 1, 1));
}

MTL::ComputePipelineState *pipelineOf(const runtime::KernelTable &kernel, mx::Device where) {
  std::string text(kernel.metal, kernel.metalBytes);
  // MLX passes the text to Metal as ASCII.
  if (std::any_of(text.begin(), text.end(), [](char c) { return static_cast<uint8_t>(c) > 127; }))
    throw std::invalid_argument(std::string(kernel.name) +
                                ": MLX compiles Metal text in ASCII only, and the kernel's has "
                                "other characters: rename what brought them in");
  auto &device = mx::metal::device(where);
  char hash[20];
  std::snprintf(hash, sizeof hash, "%zx", std::hash<std::string>{}(text));
  std::string name = std::string("triton_metal_") + kernel.name + "_" + hash;
  auto *library = device.get_library(name, [&] { return text; });
  auto *pipeline = device.get_kernel(kernel.name, library);
  if (kernel.threads > pipeline->maxTotalThreadsPerThreadgroup())
    throw std::invalid_argument(
        std::string(kernel.name) + ": " + std::to_string(kernel.threads) +
        " threads are more than the " + std::to_string(pipeline->maxTotalThreadsPerThreadgroup()) +
        " that this GPU runs of this kernel together: launch it with a smaller num_warps");
  return pipeline;
}

} // namespace

void prepareGpu(const runtime::KernelTable &kernel, mx::Device device) {
  pipelineOf(kernel, device);
}

void InPlace::eval_gpu(const std::vector<mx::array> &inputs, std::vector<mx::array> &outputs) {
  const runtime::KernelTable &kernel = *launch.kernel.get();
  std::vector<mx::array> temporaries;
  std::vector<mx::array> memory = placeArrays(
      launch, inputs, outputs,
      [&](const mx::array &from, mx::array &to) { encodeCopy(from, to, stream()); }, temporaries);

  auto &encoder = mx::metal::get_command_encoder(stream());
  encoder.set_compute_pipeline_state(pipelineOf(kernel, stream().device));
  for (Launch::Binding binding : launch.bindings) {
    mx::array *array = &memory[binding.array];
    if (array->size() == 0) {
      // Metal cannot bind an empty buffer. The kernel must not access this one.
      array =
          &temporaries.emplace_back(mx::Shape{4}, mx::uint32, nullptr, std::vector<mx::array>());
      allocate(*array);
    }
    if (launch.outputs[binding.array] >= 0)
      encoder.set_output_array(*array, static_cast<int>(binding.slot));
    else
      encoder.set_input_array(*array, static_cast<int>(binding.slot));
  }
  if (kernel.scalarBuffer >= 0)
    encoder.set_vector_bytes(launch.scalars, kernel.scalarBuffer);
  encoder.dispatch_threadgroups(MTL::Size(launch.grid[0], launch.grid[1], launch.grid[2]),
                                MTL::Size(kernel.threads, 1, 1));
  encoder.add_temporaries(std::move(temporaries));
}

} // namespace triton_metal::mlx_route

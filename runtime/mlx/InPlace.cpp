#include "runtime/mlx/InPlace.h"

#include "runtime/NoMemory.h"

#include "mlx/allocator.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <stdexcept>

namespace triton_metal::mlx_route {

namespace {

std::mutex errorMutex;
std::optional<std::string> keptError;

[[noreturn]] void refuse(const char *transform, const std::string &label) {
  throw std::invalid_argument(
      std::string("[") + transform + "] " + label +
      " has no derivative and no batched form of its own: give the function that launches it one "
      "with mx.custom_function" +
      (std::strcmp(transform, "vmap") == 0 ? " (its .vmap), or launch it over a larger grid."
                                           : " (its .vjp or .jvp).") +
      " Functions of triton_metal.ops have first derivatives only, and no batched form.");
}

/// Copies elements of one size: a loop over the last axis, counters for the other axes.
template <typename T> void copyElements(const StridedCopy &copy) {
  const T *from = reinterpret_cast<const T *>(copy.from);
  T *to = reinterpret_cast<T *>(copy.to);
  size_t rank = copy.shape.size();
  auto inner = static_cast<size_t>(copy.shape[rank - 1]);
  int64_t step = copy.strides[rank - 1];
  std::vector<int32_t> index(rank, 0);
  for (size_t done = 0; done < copy.size; done += inner) {
    int64_t offset = 0;
    for (size_t axis = 0; axis + 1 < rank; ++axis)
      offset += index[axis] * copy.strides[axis];
    for (size_t i = 0; i < inner; ++i)
      *to++ = from[offset + static_cast<int64_t>(i) * step];
    for (size_t axis = rank - 1; axis-- > 0;) {
      if (++index[axis] < copy.shape[axis])
        break;
      index[axis] = 0;
    }
  }
}

} // namespace

std::vector<mx::array> InPlace::jvp(const std::vector<mx::array> &, const std::vector<mx::array> &,
                                    const std::vector<int> &) {
  refuse("jvp", label);
}

std::vector<mx::array> InPlace::vjp(const std::vector<mx::array> &, const std::vector<mx::array> &,
                                    const std::vector<int> &, const std::vector<mx::array> &) {
  refuse("vjp", label);
}

std::pair<std::vector<mx::array>, std::vector<int>> InPlace::vmap(const std::vector<mx::array> &,
                                                                  const std::vector<int> &) {
  refuse("vmap", label);
}

std::vector<mx::Shape> InPlace::output_shapes(const std::vector<mx::array> &) {
  // MLX would replace the shapes by those of the new inputs, but the grid belongs to the traced
  // shapes.
  throw std::invalid_argument("[compile] " + label +
                              " has the grid of the shapes that it was traced with: compile the "
                              "function without shapeless=True.");
}

StridedCopy::StridedCopy(const mx::array &source, mx::array &target)
    : from(source.data<char>()), to(target.data<char>()), size(source.size()),
      itemsize(source.itemsize()), isContiguous(source.flags().row_contiguous),
      shape(source.shape()), strides(source.strides()) {}

void StridedCopy::run() const {
  if (size == 0)
    return;
  if (isContiguous || shape.empty()) {
    std::memcpy(to, from, size * itemsize);
    return;
  }
  switch (itemsize) {
  case 1:
    return copyElements<uint8_t>(*this);
  case 2:
    return copyElements<uint16_t>(*this);
  case 4:
    return copyElements<uint32_t>(*this);
  default:
    return copyElements<uint64_t>(*this);
  }
}

bool isUsable(const mx::array &array, bool aligned) {
  return array.flags().row_contiguous &&
         (!aligned || array.size() == 0 ||
          (reinterpret_cast<uintptr_t>(array.data<char>()) & 15) == 0);
}

void allocate(mx::array &array, bool aligned) {
  // MLX's memory for CPUs begins 8 bytes after a multiple of 16.
  mx::allocator::Buffer buffer = mx::allocator::malloc(array.nbytes() + (aligned ? 16 : 0));
  if (array.nbytes() > 0 && !buffer.ptr())
    throw std::runtime_error("Unable to allocate " + std::to_string(array.nbytes()) +
                             " bytes for a copy of an array.");
  int64_t offset = aligned ? -reinterpret_cast<intptr_t>(buffer.raw_ptr()) & 15 : 0;
  size_t longest = 1;
  for (int32_t size : array.shape())
    longest = std::max(longest, static_cast<size_t>(size));
  mx::array::Flags flags;
  flags.contiguous = flags.row_contiguous = true;
  flags.col_contiguous = array.size() <= 1 || array.size() == longest;
  array.set_data(buffer, array.size(), array.strides(), flags, offset);
}

std::vector<mx::array> placeArrays(const Launch &launch, const std::vector<mx::array> &inputs,
                                   std::vector<mx::array> &outputs, const Copier &copy,
                                   std::vector<mx::array> &temporaries) {
  // Each sibling holds the inputs. Once one output is evaluated, the references of the others would
  // only hide that an input has no other user. A graph that is being traced keeps them.
  if (!outputs.front().is_tracer())
    for (mx::array &output : outputs)
      if (&output.inputs() != &inputs)
        output.inputs().clear();
  std::vector<mx::array> memory;
  memory.reserve(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const mx::array &input = inputs[i];
    bool aligned = launch.aligned[i];
    bool isUsableNow = isUsable(input, aligned);
    if (launch.outputs[i] >= 0) {
      mx::array &output = outputs[static_cast<size_t>(launch.outputs[i])];
      if (isUsableNow && input.size() > 0 && input.is_donatable()) {
        output.copy_shared_buffer(input);
      } else {
        allocate(output, aligned);
        copy(input, output);
      }
      memory.push_back(output);
    } else if (isUsableNow) {
      memory.push_back(input);
    } else {
      mx::array &temporary =
          temporaries.emplace_back(input.shape(), input.dtype(), nullptr, std::vector<mx::array>());
      allocate(temporary, aligned);
      copy(input, temporary);
      memory.push_back(temporary);
    }
  }
  return memory;
}

BufferBinding bindingOf(const mx::array &array, bool writable) {
  BufferBinding result;
  result.data = array.size() > 0 ? const_cast<char *>(array.data<char>()) : noMemory();
  result.bytes = array.nbytes();
  result.writable = writable;
  return result;
}

void keepError(std::string message) {
  std::lock_guard<std::mutex> lock(errorMutex);
  if (!keptError)
    keptError = std::move(message);
}

std::optional<std::string> takeError() {
  std::lock_guard<std::mutex> lock(errorMutex);
  return std::exchange(keptError, std::nullopt);
}

} // namespace triton_metal::mlx_route

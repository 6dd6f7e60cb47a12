// Used if MLX has no Metal back end.
#include "runtime/mlx/InPlace.h"

#include <stdexcept>

namespace triton_metal::mlx_route {

void InPlace::eval_gpu(const std::vector<mx::array> &, std::vector<mx::array> &) {
  throw std::runtime_error(label + " cannot run on a GPU stream: this build of triton_metal has no "
                                   "Metal. Use a CPU stream (mx.set_default_device(mx.cpu)).");
}

void prepareGpu(const runtime::KernelTable &kernel, mx::Device) {
  throw std::runtime_error(std::string("triton_metal kernel ") + kernel.name +
                           " cannot run on a GPU stream: this build of triton_metal has no Metal. "
                           "Use a CPU stream (mx.set_default_device(mx.cpu)).");
}

} // namespace triton_metal::mlx_route

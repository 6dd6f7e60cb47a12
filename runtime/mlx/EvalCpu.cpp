// Evaluation on a CPU stream of MLX: runs the kernel on the host Metal device.
#include "runtime/mlx/InPlace.h"

#include "mlx/backend/cpu/encoder.h"

namespace triton_metal::mlx_route {

void InPlace::eval_cpu(const std::vector<mx::array> &inputs, std::vector<mx::array> &outputs) {
  std::vector<StridedCopy> copies;
  std::vector<mx::array> temporaries;
  std::vector<mx::array> memory = placeArrays(
      launch, inputs, outputs,
      [&](const mx::array &from, mx::array &to) { copies.emplace_back(from, to); }, temporaries);
  std::vector<BufferBinding> buffers(launch.kernel->numBuffers);
  for (Launch::Binding binding : launch.bindings)
    buffers[binding.slot] =
        bindingOf(memory[binding.array], /*writable=*/launch.outputs[binding.array] >= 0);

  auto &encoder = mx::cpu::get_command_encoder(stream());
  for (const mx::array &input : inputs)
    encoder.set_input_array(input);
  for (mx::array &output : outputs)
    encoder.set_output_array(output);
  encoder.add_temporaries(std::move(temporaries));
  // The task runs in a thread of MLX, in which an exception would end the process.
  encoder.dispatch([copies = std::move(copies), buffers = std::move(buffers),
                    scalars = launch.scalars, kernel = launch.kernel, x = launch.grid[0],
                    y = launch.grid[1], z = launch.grid[2]]() mutable noexcept {
    for (const StridedCopy &copy : copies)
      copy.run();
    runtime::KernelLaunch call{
        {x, y, z}, buffers.data(), buffers.size(), scalars.data(), scalars.size()};
    if (char *text = kernel->launch(kernel.get(), &call)) {
      keepError(std::string(kernel->name) + ": " + text);
      kernel->freeText(text);
    }
  });
}

} // namespace triton_metal::mlx_route

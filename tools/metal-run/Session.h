// One run of the tool: dispatches with their arrays, and what is printed of them.
#pragma once

#include "host_device/Metal.h"
#include "tools/metal-run/Npy.h"
#include "tools/metal-run/Options.h"
#include <map>

namespace triton_metal {

/// Prints the kernels of a library, their parameters and function constants.
void printKernels(llvm::raw_ostream &out, const metal::Library &library);

class Session {
public:
  Session(const ToolOptions &options, std::shared_ptr<metal::Library> library,
          llvm::raw_ostream &out)
      : options(options), library(std::move(library)), out(out) {}
  /// Compiles the kernels and reads the arrays.
  llvm::Error prepare();
  /// Runs the dispatches once.
  llvm::Error run();
  /// Writes and prints what was asked for, and runs again to measure time.
  llvm::Error report();

private:
  struct Planned {
    std::shared_ptr<metal::ComputePipelineState> pipeline;
    Dispatch dispatch;
    /// The arrays by buffer index.
    std::map<uint32_t, std::shared_ptr<NpyArray>> arrays;
  };
  llvm::Error plan(const DispatchOptions &given);
  llvm::Error bind(const DispatchOptions &given, Planned &planned);
  llvm::Error setGrid(const DispatchOptions &given, Planned &planned);
  llvm::Expected<std::shared_ptr<metal::CommandBuffer>> execute();
  /// The array that a parameter's name or index means: that of the last dispatch that has it.
  llvm::Expected<std::shared_ptr<NpyArray>> arrayOf(llvm::StringRef option, llvm::StringRef name);
  void printInfo(const metal::ComputePipelineState &pipeline);

  const ToolOptions &options;
  std::shared_ptr<metal::Library> library;
  llvm::raw_ostream &out;
  std::shared_ptr<metal::CommandQueue> queue = std::make_shared<metal::CommandQueue>();
  std::vector<Planned> dispatches;
  /// The arrays of parameters by name, as the dispatches before have bound them.
  std::map<std::string, std::shared_ptr<NpyArray>> named;
  std::shared_ptr<metal::CommandBuffer> first;
};

} // namespace triton_metal

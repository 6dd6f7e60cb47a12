// Arguments of a pipeline in Python, bound to buffers.
#pragma once

#include "PythonApi.h"

#include "host_device/Metal.h"
#include "llvm/ADT/SmallVector.h"
#include <array>
#include <memory>
#include <vector>

namespace triton_metal {

/// A pipeline as Python holds it, with what it takes to read its arguments.
struct HeldPipeline {
  std::shared_ptr<metal::ComputePipelineState> state;
  /// The buffers of the function in the order of their declaration, as Python's objects.
  Ref parameters;
  /// convert(argument, parameter) -> (address, bytes, writable, what holds the memory) reads an
  /// argument that is not of the usual kind, or raises what is wrong with it.
  Ref convert;

  struct Parameter {
    uint32_t index;
    bool exists, isReference, isNumber, isWritten;
    metal::ScalarType scalar;
    /// NumPy's letter of the type; 0 if it has none.
    char letter;
    uint64_t size, alignment;
  };
  std::vector<Parameter> plan;
};

/// The buffers of a launch, and what keeps their memory.
class BoundArguments {
public:
  /// Reads one argument for each parameter. Returns false with an error set.
  bool bind(const HeldPipeline &pipeline, PyObject *arguments);

  llvm::ArrayRef<BufferBinding> buffers() const { return bindings; }
  /// The objects that the memory needs.
  llvm::SmallVector<Ref, 8> kept;
  /// The memory of the scalars.
  std::shared_ptr<void> scalarMemory() const { return scalars; }

private:
  bool bindArray(const HeldPipeline::Parameter &parameter, PyObject *argument);
  bool bindScalar(const HeldPipeline::Parameter &parameter, PyObject *argument);
  /// Binds memory that the kernel reaches by addresses in its buffers: tuples after the arguments,
  /// at indices that no parameter has.
  bool bindResources(const HeldPipeline &pipeline, PyObject *arguments, Py_ssize_t count);
  bool bindSlowly(const HeldPipeline &pipeline, size_t position, PyObject *argument);

  llvm::SmallVector<BufferBinding, 8> bindings;
  typedef std::array<uint64_t, 2 * maxBufferBindings> Scalars;
  std::shared_ptr<Scalars> scalars;
};

} // namespace triton_metal

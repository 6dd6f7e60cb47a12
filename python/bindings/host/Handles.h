// The objects of the engine as Python holds them, and its exceptions.
#pragma once

#include "PythonApi.h"

#include "host_device/Metal.h"
#include <memory>
#include <string>

namespace triton_metal {

inline constexpr const char *libraryName = "triton_metal_host.library",
                            *functionName = "triton_metal_host.function",
                            *pipelineName = "triton_metal_host.pipeline";

typedef std::shared_ptr<metal::Library> HeldLibrary;
typedef std::shared_ptr<metal::Function> HeldFunction;

/// Sets an error. Returns null.
PyObject *fail(PyObject *type, const std::string &text);
/// Raises what went wrong with a launch: an interrupt is what its handler raises. Returns null.
PyObject *failLaunch(const std::string &text);

} // namespace triton_metal

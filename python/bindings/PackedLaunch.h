// A packed launch, as a route receives it in Python objects. This header does not need LLVM, so
// that every extension module can use it.
#ifndef TRITON_METAL_PACKEDLAUNCH_H
#define TRITON_METAL_PACKEDLAUNCH_H

#include <nanobind/nanobind.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

namespace nb = nanobind;

namespace triton_metal {

/// Throws an exception of triton_metal.errors.
[[noreturn]] inline void raiseAs(const char *exception, const std::string &message) {
  nb::object type = nb::module_::import_("triton_metal.errors").attr(exception);
  PyErr_SetString(type.ptr(), message.c_str());
  throw nb::python_error();
}

struct PackedLaunch {
  std::array<uint32_t, 3> grid;
  std::vector<uint32_t> scalars;

  /// Takes the results of `Kernel.grid` and `Kernel.pack`, and checks the number of arguments.
  PackedLaunch(const std::string &kernel, size_t numArguments, size_t scalarWords, nb::tuple sizes,
               nb::list arguments, nb::bytes words)
      : scalars(scalarWords) {
    if (arguments.size() != numArguments || words.size() != scalarWords * sizeof(uint32_t) ||
        sizes.size() != grid.size())
      raiseAs("LaunchTypeError", kernel + " takes " + std::to_string(numArguments) + " arguments");
    for (size_t i = 0; i < grid.size(); ++i)
      grid[i] = nb::cast<uint32_t>(sizes[i]);
    std::memcpy(scalars.data(), words.c_str(), words.size());
  }
};

} // namespace triton_metal

#endif // TRITON_METAL_PACKEDLAUNCH_H

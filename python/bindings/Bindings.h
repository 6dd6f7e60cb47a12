// Declarations that the files of the extension module share.
#ifndef TRITON_METAL_BINDINGS_H
#define TRITON_METAL_BINDINGS_H

#include "language/Builder.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;

namespace triton_metal {

class LentModule;

void bindTypes(nb::module_ &module);
void bindBuilder(nb::module_ &module);
void bindBlocks(nb::module_ &module);
/// The module `ir`, with which programs read a module of Triton IR.
void bindOperations(nb::module_ &module, nb::class_<LentModule> &modules);
void bindCompiler(nb::module_ &module);
void bindHostDevice(nb::module_ &module);
void bindLauncher(nb::module_ &module);
void bindReads(nb::module_ &module);
void bindDevices(nb::module_ &module);
void bindMetalLibrary(nb::module_ &module);
void bindProfile(nb::module_ &module);

/// Throws an error as a Python exception.
[[noreturn]] void raise(llvm::Error error);

template <typename T> T unwrap(llvm::Expected<T> expected) {
  if (!expected)
    raise(expected.takeError());
  return std::move(*expected);
}
inline void unwrap(llvm::Error error) {
  if (error)
    raise(std::move(error));
}

/// Fills `result` if `object` is a bool, an int or a float. Raises for an int that no type can
/// hold.
bool toConstant(nb::handle object, language::Constant &result);

} // namespace triton_metal

namespace nanobind::detail {

/// A tensor or a Python number.
template <> struct type_caster<triton_metal::language::Operand> {
  NB_TYPE_CASTER(triton_metal::language::Operand, const_name("tensor | int | float | bool"))

  bool from_python(handle source, uint8_t, cleanup_list *) {
    // `Value` would be this caster's own alias.
    using Tensor = triton_metal::language::Value;
    if (isinstance<Tensor>(source)) {
      value = cast<Tensor>(source);
      return true;
    }
    triton_metal::language::Constant constant;
    if (!triton_metal::toConstant(source, constant))
      return false;
    value = constant;
    return true;
  }
  static handle from_cpp(const triton_metal::language::Operand &, rv_policy, cleanup_list *) {
    return {};
  }
};

} // namespace nanobind::detail

#endif // TRITON_METAL_BINDINGS_H

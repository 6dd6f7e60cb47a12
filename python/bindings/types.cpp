// dtype and tensor: the language's types and values.
#include "Bindings.h"

#include <functional>

namespace triton_metal {

using language::Constant;
using language::ScalarKind;
using language::Type;
using language::Value;

void raise(llvm::Error error) {
  std::string message;
  bool isType = false;
  llvm::handleAllErrors(std::move(error), [&](const llvm::ErrorInfoBase &info) {
    if (!message.empty())
      message += "\n";
    if (info.isA<language::LanguageError>())
      isType = static_cast<const language::LanguageError &>(info).getKind() ==
               language::LanguageError::Kind::Type;
    message += info.message();
  });
  if (isType)
    throw nb::type_error(message.c_str());
  throw nb::value_error(message.c_str());
}

bool toConstant(nb::handle object, Constant &result) {
  if (PyBool_Check(object.ptr())) {
    result = Constant::of(object.ptr() == Py_True);
    return true;
  }
  if (PyFloat_Check(object.ptr())) {
    result = Constant::of(PyFloat_AS_DOUBLE(object.ptr()));
    return true;
  }
  if (!PyIndex_Check(object.ptr()) || nb::isinstance<Value>(object))
    return false;
  nb::object integer = nb::steal(PyNumber_Index(object.ptr()));
  if (!integer.is_valid())
    throw nb::python_error();
  int overflow = 0;
  long long small = PyLong_AsLongLongAndOverflow(integer.ptr(), &overflow);
  if (!overflow) {
    result = Constant::of(static_cast<__int128>(small));
    return true;
  }
  unsigned long long large = overflow > 0 ? PyLong_AsUnsignedLongLong(integer.ptr()) : 0;
  if (overflow < 0 || PyErr_Occurred()) {
    PyErr_Clear();
    std::string message = "integer " + std::string(nb::str(integer).c_str()) +
                          " fits in no type: the largest are int64 and uint64";
    throw nb::value_error(message.c_str());
  }
  result = Constant::of(static_cast<__int128>(large));
  return true;
}

static nb::tuple shapeOf(const Type &type) {
  nb::list sizes;
  for (int64_t size : type.getShape())
    sizes.append(size);
  return nb::tuple(sizes);
}

static bool isKind(const Type &type, ScalarKind kind) { return type.is(kind) && !type.isBlock(); }

/// The package whose name texts have: programs that PyTorch generates import triton alone.
static std::string packageName = "triton_metal";

static std::string reprOf(const Type &type) {
  if (type.isBlock() || type.isPointer() || type.isDescriptor())
    return type.name();
  return packageName + ".language." + type.str();
}

/// How a copy is made, in this process or another: a function and its arguments.
static nb::tuple reductionOf(const Type &type) {
  // Functions of this module cannot be pickled.
  nb::object made = nb::module_::import_("triton_metal.signatures").attr("made_by");
  if (type.isDescriptor())
    return nb::make_tuple(
        made, nb::make_tuple("descriptor", type.scalar(), shapeOf(type), type.isConst()));
  if (type.isBlock())
    return nb::make_tuple(made, nb::make_tuple("block", type.scalar(), shapeOf(type)));
  if (type.isPointer())
    return nb::make_tuple(made, nb::make_tuple("pointer", type.pointee(), type.isConst()));
  return nb::make_tuple(nb::type<Type>(), nb::make_tuple(type.str()));
}

void bindTypes(nb::module_ &module) {
  module.def(
      "set_package_name", [](const std::string &name) { packageName = name; }, nb::arg("name"),
      "The package that the texts of dtypes name.");
  nb::class_<Type> dtype(module, "dtype",
                         "A type of the language: a scalar, a pointer, or a tile of either.");
  dtype
      .def("__init__",
           [](Type *self, const std::string &name) {
             std::optional<Type> type = Type::parse(name);
             if (!type) {
               std::string message = "there is no dtype '" + name + "'";
               throw nb::value_error(message.c_str());
             }
             new (self) Type(*type);
           })
      .def_static("pointer", &Type::pointerTo, nb::arg("element"), nb::arg("const") = false)
      .def_static("block",
                  [](const Type &element, const std::vector<int64_t> &shape) {
                    return element.withShape(shape);
                  })
      .def_static("descriptor",
                  [](const Type &element, const std::vector<int64_t> &block, bool isConst) {
                    return Type::descriptorOf(element, block, isConst);
                  })
      .def_static("integer",
                  [](unsigned width, bool isSigned) {
                    if (width != 1 && width != 8 && width != 16 && width != 32 && width != 64)
                      throw nb::value_error("an integer dtype has 1, 8, 16, 32 or 64 bits");
                    return isSigned ? Type::signedInteger(width) : Type::unsignedInteger(width);
                  })
      .def_prop_ro("name", &Type::name)
      .def_prop_ro("primitive_bitwidth", &Type::bitWidth)
      .def_prop_ro("int_bitwidth", &Type::bitWidth)
      .def_prop_ro("itemsize", [](const Type &type) { return type.bitWidth() / 8; })
      .def_prop_ro("fp_mantissa_width", &Type::mantissaWidth)
      .def_prop_ro("scalar", &Type::scalar)
      .def_prop_ro("element_ty",
                   [](const Type &type) {
                     if (type.isBlock() || type.isDescriptor())
                       return type.scalar();
                     if (type.isPointer())
                       return type.pointee();
                     std::string message = type.str() + " has no element type";
                     throw nb::attribute_error(message.c_str());
                   })
      .def_prop_ro("shape", shapeOf)
      .def_prop_ro("numel", &Type::numElements)
      .def("is_block", &Type::isBlock)
      .def("is_ptr", [](const Type &type) { return type.isPointer() && !type.isBlock(); })
      .def("is_const", &Type::isConst)
      .def("is_floating", [](const Type &type) { return type.isFloating() && !type.isBlock(); })
      .def(
          "is_standard_floating",
          [](const Type &type) { return type.isFloating() && !type.isFloat8() && !type.isBlock(); })
      .def("is_fp8", [](const Type &type) { return type.isFloat8() && !type.isBlock(); })
      .def("is_fp8e5", [](const Type &type) { return isKind(type, ScalarKind::Float8E5); })
      .def("is_fp8e4nv", [](const Type &type) { return isKind(type, ScalarKind::Float8E4NV); })
      .def("is_fp8e5b16", [](const Type &type) { return isKind(type, ScalarKind::Float8E5B16); })
      .def("is_fp8e4b8", [](const Type &type) { return isKind(type, ScalarKind::Float8E4B8); })
      .def("is_fp8e4b15", [](const Type &type) { return isKind(type, ScalarKind::Float8E4B15); })
      .def("is_int", [](const Type &type) { return type.isInteger() && !type.isBlock(); })
      .def("is_int_signed", [](const Type &type) { return type.isSigned() && !type.isBlock(); })
      .def("is_int_unsigned", [](const Type &type) { return type.isUnsigned() && !type.isBlock(); })
      .def("is_bool", [](const Type &type) { return isKind(type, ScalarKind::Int1); })
      .def("is_int1", [](const Type &type) { return isKind(type, ScalarKind::Int1); })
      .def("is_int8", [](const Type &type) { return isKind(type, ScalarKind::Int8); })
      .def("is_int16", [](const Type &type) { return isKind(type, ScalarKind::Int16); })
      .def("is_int32", [](const Type &type) { return isKind(type, ScalarKind::Int32); })
      .def("is_int64", [](const Type &type) { return isKind(type, ScalarKind::Int64); })
      .def("is_uint8", [](const Type &type) { return isKind(type, ScalarKind::UInt8); })
      .def("is_uint16", [](const Type &type) { return isKind(type, ScalarKind::UInt16); })
      .def("is_uint32", [](const Type &type) { return isKind(type, ScalarKind::UInt32); })
      .def("is_uint64", [](const Type &type) { return isKind(type, ScalarKind::UInt64); })
      .def("is_fp16", [](const Type &type) { return isKind(type, ScalarKind::Float16); })
      .def("is_bf16", [](const Type &type) { return isKind(type, ScalarKind::BFloat16); })
      .def("is_fp32", [](const Type &type) { return isKind(type, ScalarKind::Float32); })
      .def("is_fp64", [](const Type &type) { return isKind(type, ScalarKind::Float64); })
      .def("mangle", &Type::mangled)
      .def("__str__", &Type::name)
      .def("__repr__", reprOf)
      .def("__reduce__", reductionOf)
      .def("__hash__", [](const Type &type) { return std::hash<std::string>()(type.mangled()); })
      .def("__eq__", [](const Type &a, const Type &b) { return a == b; })
      .def(
          "__eq__", [](const Type &, nb::handle) { return false; }, nb::arg().none())
      .def("__ne__", [](const Type &a, const Type &b) { return a != b; })
      .def("__ne__", [](const Type &, nb::handle) { return true; }, nb::arg().none());

  // A dtype may be passed to a kernel, as a constant.
  dtype.attr("__triton_static__") = true;

  nb::class_<Value>(
      module, "tensor",
      "A value of a running program: a scalar or a tile. Its operators work inside @jit functions.")
      .def_prop_ro("type", [](const Value &value) { return value.type; })
      .def_prop_ro("dtype", [](const Value &value) { return value.type.scalar(); })
      .def_prop_ro("shape", [](const Value &value) { return shapeOf(value.type); })
      .def_prop_ro("numel", [](const Value &value) { return value.type.numElements(); })
      .def("_same", [](const Value &a, const Value &b) { return a.handle == b.handle; })
      .def("__str__", [](const Value &value) { return value.type.str(); })
      .def("__repr__", [](const Value &value) { return value.type.str(); });
}

} // namespace triton_metal

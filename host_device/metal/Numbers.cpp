#include "host_device/metal/Numbers.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace llvm;

namespace triton_metal::metal {

std::optional<ScalarType> scalarTypeNamed(StringRef name) {
  using Kind = ScalarKind;
  ScalarType type =
      StringSwitch<ScalarType>(name)
          .Cases({"bool", "b1"}, {Kind::Bool, 8})
          .Cases({"char", "int8_t", "int8", "i1"}, {Kind::Signed, 8})
          .Cases({"uchar", "uint8_t", "uint8", "u1"}, {Kind::Unsigned, 8})
          .Cases({"short", "int16_t", "int16", "i2"}, {Kind::Signed, 16})
          .Cases({"ushort", "uint16_t", "uint16", "u2"}, {Kind::Unsigned, 16})
          .Cases({"int", "int32_t", "int32", "i4"}, {Kind::Signed, 32})
          .Cases({"uint", "uint32_t", "uint32", "u4"}, {Kind::Unsigned, 32})
          .Cases({"long", "int64_t", "int64", "i8"}, {Kind::Signed, 64})
          .Cases({"ulong", "uint64_t", "uint64", "size_t", "u8"}, {Kind::Unsigned, 64})
          .Cases({"half", "float16_t", "float16", "f2"}, {Kind::Float, 16})
          .Cases({"bfloat", "bfloat16_t", "bfloat16"}, {Kind::BFloat, 16})
          .Cases({"float", "float32", "f4"}, {Kind::Float, 32})
          .Default({});
  if (type.kind == Kind::None)
    return std::nullopt;
  return type;
}

std::string nameOf(ScalarType type) {
  switch (type.kind) {
  case ScalarKind::None:
    return "bytes";
  case ScalarKind::Bool:
    return "bool";
  case ScalarKind::BFloat:
    return "bfloat";
  case ScalarKind::Float:
    return type.bits == 16 ? "half" : "float";
  case ScalarKind::Signed:
  case ScalarKind::Unsigned: {
    std::string name = type.bits == 8    ? "char"
                       : type.bits == 16 ? "short"
                       : type.bits == 32 ? "int"
                                         : "long";
    return type.kind == ScalarKind::Unsigned ? "u" + name : name;
  }
  }
  return "";
}

unsigned radixOf(StringRef text) {
  text.consume_front("-");
  return text.starts_with_insensitive("0x") || text.starts_with_insensitive("0b") ? 0 : 10;
}

Expected<Number> parseNumber(StringRef text) {
  if (text == "true" || text == "false")
    return Number(text == "true");
  int64_t value;
  if (!text.getAsInteger(radixOf(text), value))
    return Number(value);
  uint64_t large;
  if (!text.getAsInteger(radixOf(text), large))
    return Number(large);
  StringRef digits = text;
  bool isNegative = digits.consume_front("-");
  double number;
  if (digits == "inf" || digits == "INFINITY")
    number = std::numeric_limits<double>::infinity();
  else if (digits == "nan" || digits == "NAN")
    number = std::numeric_limits<double>::quiet_NaN();
  else if (digits.empty() || digits.getAsDouble(number, /*AllowInexact=*/true))
    return createStringError("'" + text.str() + "' is no number");
  return Number(isNegative ? -number : number);
}

std::string textOf(const Number &number) {
  if (const bool *value = std::get_if<bool>(&number))
    return *value ? "true" : "false";
  if (const int64_t *value = std::get_if<int64_t>(&number))
    return std::to_string(*value);
  if (const uint64_t *value = std::get_if<uint64_t>(&number))
    return std::to_string(*value);
  return formatv("{0}", std::get<double>(number)).str();
}

static APFloat floatOf(const Number &number, const fltSemantics &semantics) {
  APFloat result(semantics);
  if (const double *value = std::get_if<double>(&number)) {
    result = APFloat(*value);
    bool inexact;
    result.convert(semantics, APFloat::rmNearestTiesToEven, &inexact);
    return result;
  }
  bool isSigned = std::holds_alternative<int64_t>(number);
  uint64_t bits = isSigned ? static_cast<uint64_t>(std::get<int64_t>(number))
                  : std::holds_alternative<bool>(number) ? std::get<bool>(number)
                                                         : std::get<uint64_t>(number);
  result.convertFromAPInt(APInt(64, bits), isSigned, APFloat::rmNearestTiesToEven);
  return result;
}

Error appendNumber(const Number &number, ScalarType type, SmallVectorImpl<char> &bytes) {
  auto put = [&](uint64_t bits) {
    for (unsigned i = 0; i != type.bytes(); ++i)
      bytes.push_back(static_cast<char>(bits >> (8 * i)));
  };
  auto refuse = [&](const char *why) {
    return createStringError(textOf(number) + " " + why + " '" + nameOf(type) + "'");
  };
  switch (type.kind) {
  case ScalarKind::None:
    return createStringError("a number cannot be given to a parameter that is no number");
  case ScalarKind::Float:
  case ScalarKind::BFloat: {
    const fltSemantics &semantics = type.kind == ScalarKind::BFloat ? APFloat::BFloat()
                                    : type.bits == 16               ? APFloat::IEEEhalf()
                                                                    : APFloat::IEEEsingle();
    APFloat result = floatOf(number, semantics);
    if (const double *value = std::get_if<double>(&number);
        result.isInfinity() && !(value && std::isinf(*value)))
      return refuse("does not fit into");
    put(result.bitcastToAPInt().getZExtValue());
    return Error::success();
  }
  case ScalarKind::Bool:
  case ScalarKind::Signed:
  case ScalarKind::Unsigned:
    break;
  }
  bool isNegative = false;
  uint64_t bits = 0;
  if (const double *value = std::get_if<double>(&number)) {
    if (!(std::floor(*value) == *value && std::abs(*value) < 0x1p63))
      return refuse("is no whole number, as needed for");
    bits = static_cast<uint64_t>(static_cast<int64_t>(*value));
    isNegative = *value < 0;
  } else if (const int64_t *value = std::get_if<int64_t>(&number)) {
    bits = static_cast<uint64_t>(*value);
    isNegative = *value < 0;
  } else if (const uint64_t *value = std::get_if<uint64_t>(&number)) {
    bits = *value;
  } else {
    bits = std::get<bool>(number);
  }
  bool fits = type.kind == ScalarKind::Bool ? bits <= 1
              : type.kind == ScalarKind::Signed
                  ? (isNegative ? isIntN(type.bits, static_cast<int64_t>(bits))
                                : isUIntN(type.bits - 1, bits))
                  : !isNegative && (type.bits == 64 || isUIntN(type.bits, bits));
  if (!fits)
    return refuse("does not fit into");
  put(bits);
  return Error::success();
}

} // namespace triton_metal::metal

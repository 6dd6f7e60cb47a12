#include "dialect/msl/ScalarTypes.h"

#include "dialect/msl/MSL.h"

using namespace mlir;
using namespace triton_metal::msl;

// Metal Shading Language Specification: 2.1 (scalar types), 2.5 (simdgroup_matrix), 6.9.2
// (SIMD-group functions), 6.15 (atomics).
static constexpr Feature kMatrices =
    static_cast<Feature>(uint32_t(Feature::SimdgroupMatrix) | uint32_t(Feature::TensorOps));
static constexpr ScalarType scalarTypes[] = {
    // name, unsigned name, code, isFloat, bits, bytes, SIMD form, reduction, matrices, atomic,
    // feature
    {"bool", "bool", "i1", false, 1, 1, SimdForm::AsByte, false, Feature::None, false,
     Feature::None},
    {"char", "uchar", "i8", false, 8, 1, SimdForm::Itself, false, Feature::None, false,
     Feature::None},
    {"short", "ushort", "i16", false, 16, 2, SimdForm::Itself, true, Feature::None, false,
     Feature::None},
    {"int", "uint", "i32", false, 32, 4, SimdForm::Itself, true, Feature::None, true,
     Feature::None},
    {"long", "ulong", "i64", false, 64, 8, SimdForm::Itself, false, Feature::None, false,
     Feature::None},
    {"half", "half", "f16", true, 16, 2, SimdForm::Itself, true, kMatrices, false, Feature::None},
    {"bfloat", "bfloat", "bf16", true, 16, 2, SimdForm::AsBits, false, kMatrices, false,
     Feature::BFloat},
    {"float", "float", "f32", true, 32, 4, SimdForm::Itself, true, kMatrices, true, Feature::None},
    // Metal has no double: msl-emulate-types makes its numbers the integers that hold their bits.
    {"", "", "f64", true, 64, 8, SimdForm::AsBits, false, Feature::None, false, Feature::None},
};

const ScalarType *ScalarType::get(Type type) {
  auto row = [](StringRef code) {
    return llvm::find_if(scalarTypes, [&](const ScalarType &entry) { return entry.code == code; });
  };
  if (type.isF16())
    return row("f16");
  if (type.isBF16())
    return row("bf16");
  if (type.isF32())
    return row("f32");
  if (type.isF64())
    return row("f64");
  auto integer = dyn_cast<IntegerType>(type);
  if (!integer)
    return nullptr;
  for (const ScalarType &entry : scalarTypes)
    if (!entry.isFloat && entry.bits == integer.getWidth())
      return &entry;
  return nullptr;
}

int64_t triton_metal::msl::getElementBytes(Type type) {
  if (const ScalarType *scalar = ScalarType::get(type))
    return scalar->bytes;
  return 8;
}

#include "host_device/engine/Builtins.h"
#include "host_device/engine/Abi.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Intrinsics.h"

using namespace llvm;

namespace triton_metal::engine {

std::optional<LaneReduction> LaneReduction::parse(StringRef name) {
  LaneReduction result;
  if (!name.consume_front("__tm_simd_"))
    return std::nullopt;
  if (name.consume_front("inclusive_"))
    result.isScan = result.inclusive = true;
  else if (name.consume_front("exclusive_"))
    result.isScan = true;
  auto [operation, type] = name.split('_');
  auto kind = StringSwitch<std::optional<ReductionKind>>(operation)
                  .Case("sum", ReductionKind::Sum)
                  .Case("product", ReductionKind::Product)
                  .Case("min", ReductionKind::Min)
                  .Case("max", ReductionKind::Max)
                  .Case("and", ReductionKind::And)
                  .Case("or", ReductionKind::Or)
                  .Case("xor", ReductionKind::Xor)
                  .Default(std::nullopt);
  if (!kind || !(type == "f32" || type == "i32" || type == "u32" || type == "i64" || type == "u64"))
    return std::nullopt;
  result.kind = *kind;
  result.isFloat = type == "f32";
  result.isSigned = type.starts_with("i");
  if (result.isFloat &&
      (*kind == ReductionKind::And || *kind == ReductionKind::Or || *kind == ReductionKind::Xor))
    return std::nullopt;
  return result;
}

BuiltinUniformity builtinUniformity(const CallBase &call) {
  const Function *callee = call.getCalledFunction();
  if (!callee)
    return BuiltinUniformity::Varying;
  if (callee->isIntrinsic())
    return BuiltinUniformity::Pure;
  StringRef name = callee->getName();
  if (name == "__tm_lane")
    return BuiltinUniformity::Lane;
  if (name == "__tm_simd_shuffle_u32" || name == "__tm_simd_shuffle_u64")
    return BuiltinUniformity::ShuffleLike;
  if (name == "__tm_simd_ballot")
    return BuiltinUniformity::Uniform;
  if (auto reduction = LaneReduction::parse(name))
    return reduction->isScan ? BuiltinUniformity::Varying : BuiltinUniformity::Uniform;
  if (name.starts_with("__tm_libm_"))
    return BuiltinUniformity::Pure;
  if (name.starts_with(bufferName) || name.starts_with(threadgroupArgumentName) ||
      name.starts_with(threadgroupAllocName))
    return BuiltinUniformity::Uniform;
  return BuiltinUniformity::Varying;
}

bool isKnownBuiltin(StringRef name) {
  return name == "__tm_lane" || name == "__tm_simd_shuffle_u32" ||
         name == "__tm_simd_shuffle_u64" || name == "__tm_simd_ballot" ||
         name == "__tm_threadgroup_barrier" || name == "__tm_simdgroup_barrier" ||
         name == "__tm_simdgroup_mma" || name == threadgroupAllocName ||
         LaneReduction::parse(name) || name.starts_with("__tm_libm_") ||
         name.starts_with("__tm_engine_");
}

} // namespace triton_metal::engine

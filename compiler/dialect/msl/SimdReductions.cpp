#include "dialect/msl/SimdReductions.h"

#include "dialect/msl/ScalarTypes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace triton_metal::msl {

std::optional<SimdReduceKind> getSimdReduceKind(Operation *combiner) {
  if (!combiner || !ScalarType::get(combiner->getResult(0).getType())->hasSimdReduction)
    return std::nullopt;
  return llvm::TypeSwitch<Operation *, std::optional<SimdReduceKind>>(combiner)
      .Case<arith::AddFOp, arith::AddIOp>([](Operation *) { return SimdReduceKind::Sum; })
      .Case<arith::MulFOp, arith::MulIOp>([](Operation *) { return SimdReduceKind::Product; })
      .Case([](arith::AndIOp) { return SimdReduceKind::And; })
      .Case([](arith::OrIOp) { return SimdReduceKind::Or; })
      .Case([](arith::XOrIOp) { return SimdReduceKind::Xor; })
      .Case([](arith::MaxSIOp) { return SimdReduceKind::Max; })
      .Case([](arith::MinSIOp) { return SimdReduceKind::Min; })
      .Case([](arith::MaxUIOp) { return SimdReduceKind::UMax; })
      .Case([](arith::MinUIOp) { return SimdReduceKind::UMin; })
      .Default(std::optional<SimdReduceKind>());
}

TypedAttr getNeutralElement(SimdReduceKind kind, Type element) {
  if (auto type = dyn_cast<FloatType>(element)) {
    const llvm::fltSemantics &semantics = type.getFloatSemantics();
    // x + -0 is x for every x, which +0 is not for x = -0.
    if (kind == SimdReduceKind::Sum)
      return FloatAttr::get(type, APFloat::getZero(semantics, /*Negative=*/true));
    if (kind == SimdReduceKind::Product)
      return FloatAttr::get(type, APFloat::getOne(semantics));
    llvm_unreachable("floats have no such reduction");
  }
  unsigned bits = element.getIntOrFloatBitWidth();
  switch (kind) {
  case SimdReduceKind::Sum:
  case SimdReduceKind::Or:
  case SimdReduceKind::Xor:
  case SimdReduceKind::UMax:
    return IntegerAttr::get(element, APInt::getZero(bits));
  case SimdReduceKind::Product:
    return IntegerAttr::get(element, APInt(bits, 1));
  case SimdReduceKind::And:
  case SimdReduceKind::UMin:
    return IntegerAttr::get(element, APInt::getAllOnes(bits));
  case SimdReduceKind::Max:
    return IntegerAttr::get(element, APInt::getSignedMinValue(bits));
  case SimdReduceKind::Min:
    return IntegerAttr::get(element, APInt::getSignedMaxValue(bits));
  }
  llvm_unreachable("covered");
}

bool isIdempotent(SimdReduceKind kind) {
  return kind != SimdReduceKind::Sum && kind != SimdReduceKind::Product &&
         kind != SimdReduceKind::Xor;
}

} // namespace triton_metal::msl

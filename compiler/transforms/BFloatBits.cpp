#include "transforms/BFloatBits.h"

#include "dialect/msl/MSL.h"
#include "transforms/Constants.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace triton_metal {

Value makeFloatOfBits(OpBuilder &builder, Location loc, Value bits) {
  Type words = msl::withElement(bits.getType(), builder.getI32Type());
  Value wide = arith::ExtUIOp::create(builder, loc, words, bits);
  wide = arith::ShLIOp::create(builder, loc, wide, makeConstantLike(builder, loc, words, 16));
  return arith::BitcastOp::create(builder, loc, msl::withElement(words, builder.getF32Type()),
                                  wide);
}

} // namespace triton_metal

// Converts tiles with layouts to the work of one thread: a tensor becomes the vector of the
// thread's registers. Each family of operations has a file of patterns.
#ifndef TRITON_METAL_CONVERSION_TTMTOMSL_H
#define TRITON_METAL_CONVERSION_TTMTOMSL_H

#include "conversion/RegisterBuilder.h"
#include "dialect/tt/TT.h"
#include "dialect/ttg/TTG.h"
#include "dialect/ttm/LocationNames.h"
#include "dialect/ttm/TTM.h"

#include "mlir/Transforms/DialectConversion.h"

namespace triton_metal {

/// tensor<..., layout> to vector<registers x element>; !tt.ptr to a pointer to device memory,
/// !ttm.tile to one to threadgroup memory; index to i32. Null for types that Metal does not have.
class TTMToMSLTypes : public mlir::TypeConverter {
public:
  explicit TTMToMSLTypes(unsigned numSimdgroups);
  unsigned getNumSimdgroups() const { return numSimdgroups; }

private:
  unsigned numSimdgroups;
};

/// Whether pointers with this address space point to device memory. A kernel has no others.
bool isDeviceSpace(int space);

/// Whether the call of a device library's function can be lowered.
bool isLibraryFunction(tt::ExternElementwiseOp call);

/// The layout of a tensor; tensors at this level have one.
inline LinearLayout layoutOf(mlir::Value value) { return *ttm::getLayout(value); }

/// A pattern that builds operations on registers.
template <typename Op> class RegisterPattern : public mlir::OpConversionPattern<Op> {
public:
  using mlir::OpConversionPattern<Op>::OpConversionPattern;

protected:
  const TTMToMSLTypes &types() const { return *this->template getTypeConverter<TTMToMSLTypes>(); }
  mlir::Type convert(mlir::Type type) const { return types().convertType(type); }
  RegisterBuilder buildAt(mlir::Location loc, mlir::OpBuilder &rewriter) const {
    return RegisterBuilder(loc, rewriter, types().getNumSimdgroups());
  }
};

void populateProgramPatterns(const TTMToMSLTypes &types, mlir::RewritePatternSet &patterns);
void populateControlFlowPatterns(const TTMToMSLTypes &types, mlir::RewritePatternSet &patterns);
void populateLibraryPatterns(const TTMToMSLTypes &types, mlir::RewritePatternSet &patterns);
void populateElementwisePatterns(const TTMToMSLTypes &types, mlir::RewritePatternSet &patterns);
void populateShapePatterns(const TTMToMSLTypes &types, mlir::RewritePatternSet &patterns);
void populateLayoutPatterns(const TTMToMSLTypes &types, mlir::RewritePatternSet &patterns);
void populateMemoryPatterns(const TTMToMSLTypes &types, mlir::RewritePatternSet &patterns);
void populateAtomicPatterns(const TTMToMSLTypes &types, mlir::RewritePatternSet &patterns);
void populateTilePatterns(const TTMToMSLTypes &types, mlir::RewritePatternSet &patterns);
void populateReducePatterns(const TTMToMSLTypes &types, mlir::RewritePatternSet &patterns);

} // namespace triton_metal

#endif

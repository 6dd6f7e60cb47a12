// The kernel itself, and its position in the grid.

#include "conversion/TTMToMSL.h"
#include "dialect/tt/Messages.h"
#include "transforms/TTLocks.h"

using namespace mlir;

namespace triton_metal {

namespace {

struct FuncPattern : RegisterPattern<tt::FuncOp> {
  using RegisterPattern::RegisterPattern;

  LogicalResult matchAndRewrite(tt::FuncOp func, OpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    TypeConverter::SignatureConversion signature(func.getNumArguments());
    if (failed(types().convertSignatureArgs(func.getArgumentTypes(), signature)))
      return failure();
    auto kernel = msl::KernelOp::create(rewriter, func.getLoc(), func.getName(),
                                        rewriter.getFunctionType(signature.getConvertedTypes(), {}),
                                        kSimdWidth * types().getNumSimdgroups());
    for (auto [index, argument] : llvm::enumerate(func.getArguments())) {
      // The location carries the name that the source gave to the argument.
      if (auto name = argument.getLoc()->findInstanceOf<NameLoc>())
        kernel.setArgAttr(index, msl::kNameAttr, name.getName());
      if (Attribute memory = func.getArgAttr(index, tt::memoryAttrName))
        kernel.setArgAttr(index, msl::kMemoryAttr, memory);
      if (Attribute role = func.getArgAttr(index, tt::messageRoleAttrName))
        kernel.setArgAttr(index, tt::messageRoleAttrName, role);
    }
    if (Attribute place = func->getAttr(kSerialFunctionAttr))
      kernel->setAttr(msl::kSerialAttr, place);
    rewriter.inlineRegionBefore(func.getBody(), kernel.getBody(), kernel.getBody().end());
    if (failed(rewriter.convertRegionTypes(&kernel.getBody(), types(), &signature)))
      return failure();
    rewriter.eraseOp(func);
    return success();
  }
};

struct ReturnPattern : RegisterPattern<tt::ReturnOp> {
  using RegisterPattern::RegisterPattern;

  LogicalResult matchAndRewrite(tt::ReturnOp op, OpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<msl::ReturnOp>(op);
    return success();
  }
};

template <typename From, typename To> struct GridPattern : RegisterPattern<From> {
  using RegisterPattern<From>::RegisterPattern;

  LogicalResult matchAndRewrite(From op, typename From::Adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<To>(op, op.getAxisAsInt());
    return success();
  }
};

struct BarrierPattern : RegisterPattern<ttg::BarrierOp> {
  using RegisterPattern::RegisterPattern;

  LogicalResult matchAndRewrite(ttg::BarrierOp op, OpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    auto barrier = msl::BarrierOp::create(rewriter, op.getLoc());
    barrier.setDevice(true);
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void populateProgramPatterns(const TTMToMSLTypes &types, RewritePatternSet &patterns) {
  patterns.add<FuncPattern, ReturnPattern, GridPattern<tt::GetProgramIdOp, msl::ProgramIdOp>,
               GridPattern<tt::GetNumProgramsOp, msl::NumProgramsOp>, BarrierPattern>(
      types, patterns.getContext());
}

} // namespace triton_metal

#include "pipeline/Metadata.h"

#include "analysis/PointerOrigins.h"
#include "dialect/msl/MSL.h"
#include "dialect/msl/ScalarTypes.h"
#include "dialect/ttm/TTM.h"

using namespace mlir;

namespace triton_metal {

static std::string getTypeCode(Type type) {
  if (auto pointer = dyn_cast<msl::PtrType>(type))
    return "*" + getTypeCode(pointer.getElementType());
  return msl::ScalarType::get(type)->code.str();
}

/// What the kernel's accesses do to the memory of its arguments.
static void addUses(msl::KernelOp kernel, std::vector<ArgumentMetadata> &arguments) {
  msl::PointerOrigins origins(kernel);
  SmallVector<msl::MemoryAccess> accesses;
  kernel.walk([&](msl::MemoryAccessOpInterface op) { op.getAccesses(accesses); });
  for (const msl::MemoryAccess &access : accesses) {
    if (access.pointer &&
        cast<msl::PtrType>(access.pointer.getType()).getSpace() != msl::AddressSpace::Device)
      continue;
    const msl::Origins &from = origins.get(access.getOrigin());
    for (auto [index, argument] : llvm::enumerate(arguments))
      if (argument.isBuffer && (from.isUnknown || from.arguments.contains(index))) {
        argument.reads |= access.reads();
        argument.writes |= access.writes();
        argument.isAtomic |= access.kind == msl::MemoryAccess::Atomic;
      }
  }
}

FailureOr<KernelMetadata> getMetadata(ModuleOp module) {
  auto kernels = module.getOps<msl::KernelOp>();
  if (!llvm::hasSingleElement(kernels)) {
    module.emitError("does not have exactly one kernel");
    return failure();
  }
  msl::KernelOp kernel = *kernels.begin();
  KernelMetadata metadata;
  metadata.name = getMetalName(kernel.getSymName());
  metadata.threads = kernel.getThreads();
  metadata.threadgroupBytes = kernel.getThreadgroupBytes().value_or(0);
  if (auto stages =
          module->getAttrOfType<IntegerAttr>(ttm::TTMDialect::getPipelineStagesAttrName()))
    metadata.pipelineStages = stages.getInt();
  if (auto limits = module->getAttrOfType<ArrayAttr>(ttm::TTMDialect::getGridLimitsAttrName()))
    for (auto sum : limits.getAsRange<DenseI64ArrayAttr>())
      llvm::copy(sum.asArrayRef().take_front(4), metadata.gridLimits.emplace_back().begin());

  unsigned buffers = 0, words = 0;
  for (auto [index, type] : llvm::enumerate(kernel.getArgumentTypes())) {
    ArgumentMetadata &argument = metadata.arguments.emplace_back();
    StringRef name = kernel.getArgName(index);
    argument.name = name.empty() ? "arg" + std::to_string(index) : name.str();
    argument.type = getTypeCode(type);
    argument.isBuffer = isa<msl::PtrType>(type);
    argument.words = argument.isBuffer ? 0 : type.getIntOrFloatBitWidth() > 32 ? 2 : 1;
    argument.slot = argument.isBuffer ? buffers++ : words;
    words += argument.words;
  }
  if (words)
    metadata.scalarBuffer = buffers;
  addUses(kernel, metadata.arguments);
  return metadata;
}

} // namespace triton_metal

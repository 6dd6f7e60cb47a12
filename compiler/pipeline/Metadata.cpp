#include "pipeline/Metadata.h"

#include "analysis/PointerOrigins.h"
#include "dialect/msl/MSL.h"
#include "dialect/msl/ScalarTypes.h"
#include "dialect/tt/Messages.h"
#include "dialect/ttm/TTM.h"

using namespace mlir;

namespace triton_metal {

static std::string getTypeCode(Type type) {
  if (auto pointer = dyn_cast<msl::PtrType>(type))
    return "*" + getTypeCode(pointer.getElementType());
  return msl::ScalarType::get(type)->code.str();
}

static MessageSite::Operand getOperand(DictionaryAttr fields) {
  MessageSite::Operand operand;
  if (auto type = fields.getAs<TypeAttr>("type"))
    llvm::raw_string_ostream(operand.type) << type.getValue();
  if (auto sign = fields.getAs<BoolAttr>("signed"))
    operand.isSigned = sign.getValue();
  llvm::append_range(operand.shape, fields.getAs<DenseI64ArrayAttr>("shape").asArrayRef());
  return operand;
}

static MessageSite getSite(DictionaryAttr fields) {
  MessageSite site;
  if (auto prefix = fields.getAs<StringAttr>("prefix")) {
    site.isPrint = true;
    site.text = prefix.str();
    site.hex = fields.getAs<BoolAttr>("hex").getValue();
    for (auto operand : fields.getAs<ArrayAttr>("operands").getAsRange<DictionaryAttr>())
      site.operands.push_back(getOperand(operand));
  } else {
    site.text = fields.getAs<StringAttr>("message").str();
    site.operands.push_back(getOperand(fields));
  }
  addFrames(cast<LocationAttr>(fields.get("loc")), site.source);
  return site;
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
  if (auto stages = module->getAttrOfType<IntegerAttr>(ttm::TTMDialect::getNumStagesAttrName()))
    metadata.numStages = stages.getInt();
  if (auto choice = module->getAttrOfType<StringAttr>(ttm::TTMDialect::getChoiceAttrName()))
    metadata.choice = choice.str();
  if (auto slices = module->getAttrOfType<IntegerAttr>(ttm::TTMDialect::getSlicesAttrName()))
    metadata.slices = slices.getInt();
  if (auto limits = module->getAttrOfType<ArrayAttr>(ttm::TTMDialect::getGridLimitsAttrName()))
    for (auto sum : limits.getAsRange<DenseI64ArrayAttr>())
      llvm::copy(sum.asArrayRef().take_front(4), metadata.gridLimits.emplace_back().begin());
  if (auto sites = module->getAttrOfType<ArrayAttr>(tt::messagesAttrName))
    for (auto site : sites.getAsRange<DictionaryAttr>())
      metadata.messages.push_back(getSite(site));

  if (auto place = kernel->getAttrOfType<LocationAttr>(msl::kSerialAttr))
    addFrames(Location(place), metadata.serial.emplace());

  unsigned buffers = 0, words = 0;
  SmallVector<msl::MemoryUse> uses = msl::getMemoryUses(kernel);
  for (auto [index, type] : llvm::enumerate(kernel.getArgumentTypes())) {
    ArgumentMetadata &argument = metadata.arguments.emplace_back();
    StringRef name = kernel.getArgName(index);
    argument.name = name.empty() ? "arg" + std::to_string(index) : name.str();
    argument.type = getTypeCode(type);
    if (auto role = kernel.getArgAttrOfType<StringAttr>(index, tt::messageRoleAttrName))
      argument.messageRole = role.str();
    argument.isBuffer = isa<msl::PtrType>(type);
    argument.words = argument.isBuffer ? 0 : type.getIntOrFloatBitWidth() > 32 ? 2 : 1;
    argument.slot = argument.isBuffer ? buffers++ : words;
    words += argument.words;
    if (argument.isBuffer)
      argument.memory = uses[index];
  }
  if (words)
    metadata.scalarBuffer = buffers;
  return metadata;
}

} // namespace triton_metal

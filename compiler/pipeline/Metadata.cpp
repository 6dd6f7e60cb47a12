// The launch contract of a kernel: what a launcher must know of its arguments and its threadgroup.

#include "dialect/msl/MSL.h"
#include "dialect/ttm/TTM.h"
#include "pipeline/Pipeline.h"
#include "target/msl/Printer.h"
#include "transforms/MSLOrigins.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/JSON.h"

using namespace mlir;

namespace triton_metal {

namespace {
struct Use {
  bool reads = false, writes = false, atomic = false;
};
} // namespace

static std::string typeName(Type type) {
  if (auto pointer = dyn_cast<msl::PtrType>(type))
    return "*" + typeName(pointer.getElementType());
  if (type.isBF16())
    return "bf16";
  if (isa<FloatType>(type))
    return "f" + std::to_string(type.getIntOrFloatBitWidth());
  return "i" + std::to_string(type.getIntOrFloatBitWidth());
}

FailureOr<std::string> printMetadata(ModuleOp module) {
  auto kernels = module.getOps<msl::KernelOp>();
  if (!llvm::hasSingleElement(kernels)) {
    module.emitError("has not one kernel");
    return failure();
  }
  msl::KernelOp kernel = *kernels.begin();
  Block *entry = &kernel.getBody().front();
  SmallVector<Use> uses(kernel.getNumArguments());
  auto touch = [&](Value pointer, bool reads, bool writes, bool atomic) {
    auto type = dyn_cast<msl::PtrType>(pointer.getType());
    if (type && type.getSpace() != msl::AddressSpace::Device)
      return;
    msl::Origins origins = msl::Origins::get(pointer, entry);
    for (unsigned index = 0; index < uses.size(); ++index)
      if (isa<msl::PtrType>(entry->getArgument(index).getType()) &&
          (origins.all || origins.arguments.contains(index))) {
        uses[index].reads |= reads;
        uses[index].writes |= writes;
        uses[index].atomic |= atomic;
      }
  };
  int64_t threadgroupBytes = 0;
  kernel.walk([&](Operation *op) {
    if (auto load = dyn_cast<msl::LoadOp>(op))
      touch(load.getBase(), true, false, false);
    else if (auto load = dyn_cast<msl::LoadAddressOp>(op))
      touch(load.getAddresses(), true, false, false);
    else if (auto store = dyn_cast<msl::StoreOp>(op))
      touch(store.getBase(), false, true, false);
    else if (auto store = dyn_cast<msl::StoreAddressOp>(op))
      touch(store.getAddresses(), false, true, false);
    else if (auto atomic = dyn_cast<msl::AtomicRMWOp>(op))
      touch(atomic.getBase(), true, true, true);
    else if (auto atomic = dyn_cast<msl::AtomicCASOp>(op))
      touch(atomic.getBase(), true, true, true);
    else if (auto alloc = dyn_cast<msl::AllocOp>(op)) {
      int64_t bytes = std::max(
          1u, cast<msl::PtrType>(alloc.getType()).getElementType().getIntOrFloatBitWidth() / 8);
      threadgroupBytes =
          std::max<int64_t>(threadgroupBytes, alloc.getOffset().value_or(0) +
                                                  llvm::alignTo(alloc.getCount() * bytes, 16));
    }
  });

  Builder builder(module.getContext());
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::json::OStream json(os, 2);
  unsigned buffers = 0, words = 0;
  json.objectBegin();
  json.attribute("name", getMetalName(kernel.getSymName()));
  json.attribute("threads", int64_t(kernel.getThreads()));
  json.attribute("threadgroup_bytes", threadgroupBytes);
  json.attribute("num_warps", int64_t(kernel.getThreads()) / 32);
  auto stages = module->getAttrOfType<IntegerAttr>(ttm::TTMDialect::getPipelineStagesAttrName());
  json.attribute("pipeline_stages", stages ? stages.getInt() : int64_t(1));
  if (auto limits = module->getAttrOfType<ArrayAttr>(ttm::TTMDialect::getGridLimitsAttrName()))
    json.attributeArray("grid_limits", [&] {
      for (auto sum : limits.getAsRange<DenseI64ArrayAttr>())
        json.array([&] { llvm::for_each(sum.asArrayRef(), [&](int64_t n) { json.value(n); }); });
    });
  json.attributeBegin("args");
  json.arrayBegin();
  for (auto [index, argument] : llvm::enumerate(entry->getArguments())) {
    bool isBuffer = isa<msl::PtrType>(argument.getType());
    json.objectBegin();
    StringRef name = kernel.getArgName(index);
    json.attribute("name", name.empty() ? "arg" + std::to_string(index) : name.str());
    json.attribute("index", int64_t(index));
    json.attribute("kind", isBuffer ? "buffer" : "scalar");
    json.attribute("type", typeName(argument.getType()));
    int64_t width = isBuffer ? 0 : (argument.getType().getIntOrFloatBitWidth() > 32 ? 2 : 1);
    json.attribute("slot", isBuffer ? int64_t(buffers) : int64_t(words));
    json.attribute("words", width);
    json.attribute("reads", uses[index].reads);
    json.attribute("writes", uses[index].writes);
    // What a launch covers depends on its grid, which is not known here.
    json.attribute("wholly_written", false);
    json.attribute("atomic", uses[index].atomic);
    json.objectEnd();
    if (isBuffer) {
      ++buffers;
      if (!uses[index].writes)
        kernel.setArgAttr(index, msl::kReadOnlyAttr, builder.getUnitAttr());
    } else {
      words += width;
    }
  }
  json.arrayEnd();
  json.attributeEnd();
  json.attribute("scalar_buffer", words ? int64_t(buffers) : int64_t(-1));
  json.objectEnd();
  return text;
}

} // namespace triton_metal

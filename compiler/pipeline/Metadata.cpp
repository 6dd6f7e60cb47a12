// The launch contract of a kernel: what a launcher must know of its arguments and its threadgroup.

#include "dialect/msl/MSL.h"
#include "pipeline/Pipeline.h"
#include "target/msl/Printer.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/JSON.h"

using namespace mlir;

namespace triton_metal {

namespace {
struct Use {
  bool reads = false, writes = false, atomic = false;
};

/// Which arguments a pointer may come from; `all` where it cannot be said.
struct Origins {
  llvm::SmallSetVector<unsigned, 4> arguments;
  bool all = false;
};
} // namespace

/// Follows a pointer, or an address made from one, back to the kernel's arguments.
static Origins originsOf(Value pointer, Block *entry) {
  Origins origins;
  llvm::SetVector<Value> worklist;
  worklist.insert(pointer);
  for (unsigned index = 0; index < worklist.size(); ++index) {
    Value value = worklist[index];
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      if (argument.getOwner() == entry) {
        if (isa<msl::PtrType>(argument.getType()))
          origins.arguments.insert(argument.getArgNumber());
        else if (index == 0)
          origins.all = true;
        continue;
      }
      // Carried through a loop: from before it, and from its end.
      Operation *parent = argument.getOwner()->getParentOp();
      if (auto loop = dyn_cast<scf::ForOp>(parent)) {
        if (OpOperand *init = loop.getTiedLoopInit(argument)) {
          worklist.insert(init->get());
          worklist.insert(loop.getTiedLoopYieldedValue(argument)->get());
        }
        continue;
      }
      if (auto loop = dyn_cast<scf::WhileOp>(parent)) {
        bool isBefore = argument.getOwner() == loop.getBeforeBody();
        unsigned number = argument.getArgNumber();
        if (isBefore) {
          worklist.insert(loop.getInits()[number]);
          worklist.insert(loop.getYieldOp().getOperand(number));
        } else {
          worklist.insert(loop.getConditionOp().getArgs()[number]);
        }
        continue;
      }
      origins.all = true;
      continue;
    }
    Operation *op = value.getDefiningOp();
    unsigned number = cast<OpResult>(value).getResultNumber();
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      worklist.insert(loop.getInitArgs()[number]);
      worklist.insert(loop.getBody()->getTerminator()->getOperand(number));
    } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
      worklist.insert(loop.getConditionOp().getArgs()[number]);
    } else if (auto ifOp = dyn_cast<scf::IfOp>(op)) {
      worklist.insert(ifOp.thenBlock()->getTerminator()->getOperand(number));
      worklist.insert(ifOp.elseBlock()->getTerminator()->getOperand(number));
    } else if (isa<msl::PtrAddOp, msl::PtrCastOp, msl::PtrToIntOp>(op)) {
      worklist.insert(op->getOperand(0));
    } else if (isa<msl::LoadOp, msl::LoadAddressOp>(op)) {
      // An address from memory may be that of any array.
      origins.all |= getElementTypeOrSelf(value.getType()).isInteger(64);
    } else {
      worklist.insert(op->operand_begin(), op->operand_end());
    }
  }
  // An address that comes from no argument may point anywhere.
  if (origins.arguments.empty())
    origins.all = true;
  return origins;
}

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
    Origins origins = originsOf(pointer, entry);
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

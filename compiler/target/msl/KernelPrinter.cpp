// A kernel's signature, its arguments and its threadgroup memory; the module's text.

#include "target/msl/KernelPrinter.h"

#include "dialect/msl/ScalarTypes.h"
#include "target/msl/Printer.h"
#include "target/msl/Types.h"

using namespace mlir;
using namespace triton_metal::msl;

LogicalResult KernelPrinter::refuse(Operation *op, const Twine &why) {
  if (!failed) {
    auto symbol = dyn_cast<KernelOp>(op);
    StringRef name = symbol ? symbol.getSymName() : op->getName().getStringRef();
    op->emitError("cannot be written in Metal: ") << "'" << name << "' " << why;
  }
  failed = true;
  return failure();
}

/// A scalar from the words of the argument buffer, the low one first.
static std::string unpack(Type type, const std::string &args, unsigned word) {
  auto at = [&](unsigned index) { return args + "[" + std::to_string(index) + "]"; };
  if (type.isInteger(1))
    return at(word) + " != 0";
  std::string name = getTypeName(type);
  switch (type.getIntOrFloatBitWidth()) {
  case 64:
    return "as_type<" + name + ">(uint2(" + at(word) + ", " + at(word + 1) + "))";
  case 32:
    return "as_type<" + name + ">(" + at(word) + ")";
  case 16:
    return isa<FloatType>(type) ? "as_type<" + name + ">(ushort(" + at(word) + "))"
                                : name + "(" + at(word) + ")";
  default:
    return name + "(" + at(word) + ")";
  }
}

void KernelPrinter::printSignature() {
  SmallVector<Operation *> positions;
  kernel.walk([&](Operation *op) {
    if (isa<ProgramIdOp, NumProgramsOp, LaneOp, SimdgroupOp>(op))
      positions.push_back(op);
  });
  std::vector<TextParameter> &parameters = layout.parameters;
  unsigned buffers = 0, words = 0;
  Block &body = kernel.getBody().front();
  SmallVector<std::pair<BlockArgument, unsigned>> scalars;
  SmallVector<BlockArgument> coherent;
  for (BlockArgument argument : body.getArguments()) {
    StringRef name = kernel.getArgName(argument.getArgNumber());
    if (name.empty())
      name = getSourceName(argument.getLoc());
    std::string unique =
        names.make(name.empty() ? "arg" + std::to_string(argument.getArgNumber()) : name.str());
    exprs[argument] = Expr{unique};
    if (auto pointer = dyn_cast<PtrType>(argument.getType())) {
      parameters.push_back(
          {unique, getPointerName(pointer, {getQualifiers(argument).isConst}), buffers++, ""});
      if (getQualifiers(argument).isCoherent)
        coherent.push_back(argument);
      continue;
    }
    scalars.push_back({argument, words});
    words += argument.getType().getIntOrFloatBitWidth() == 64 ? 2 : 1;
  }
  std::string args;
  if (!scalars.empty()) {
    args = names.make("args");
    parameters.push_back({args, "constant uint *", buffers++, ""});
  }
  if (buffers > 31)
    (void)refuse(kernel,
                 "needs " + Twine(buffers) + " buffers, and Metal binds 31: pass fewer arrays");
  auto addPosition = [&](auto is, const char *name, const char *type, const char *attribute) {
    std::string unique;
    for (Operation *op : positions) {
      if (!is(op))
        continue;
      if (unique.empty()) {
        unique = names.make(name);
        parameters.push_back({unique, type, std::nullopt, attribute});
      }
      Expr expr{unique};
      if (auto id = dyn_cast<ProgramIdOp>(op))
        expr.text += std::string(".") + "xyz"[id.getAxis()];
      else if (auto count = dyn_cast<NumProgramsOp>(op))
        expr.text += std::string(".") + "xyz"[count.getAxis()];
      exprs[op->getResult(0)] = expr;
    }
  };
  addPosition([](Operation *op) { return isa<ProgramIdOp>(op); }, "program_id", "uint3",
              "threadgroup_position_in_grid");
  addPosition([](Operation *op) { return isa<NumProgramsOp>(op); }, "num_programs", "uint3",
              "threadgroups_per_grid");
  addPosition([](Operation *op) { return isa<LaneOp>(op); }, "lane", "ushort",
              "thread_index_in_simdgroup");
  addPosition([](Operation *op) { return isa<SimdgroupOp>(op); }, "simdgroup", "ushort",
              "simdgroup_index_in_threadgroup");
  // With a bound of 32, threadgroup_barrier has been observed not to order threadgroup memory on
  // some Macs (docs/apple-quirks.md, row 1). A larger bound only reserves fewer registers.
  constexpr unsigned leastBound = 64;
  buffer += "[[kernel, max_total_threads_per_threadgroup(" +
            std::to_string(std::max<unsigned>(kernel.getThreads(), leastBound)) + ")]] void " +
            triton_metal::getMetalName(kernel.getSymName()) + "(";
  for (auto [index, parameter] : llvm::enumerate(parameters)) {
    bool isPointer = StringRef(parameter.type).ends_with("*");
    buffer += (index ? ",\n    " : "\n    ") + parameter.type + (isPointer ? "" : " ") +
              parameter.name + " [[" +
              (parameter.buffer ? "buffer(" + std::to_string(*parameter.buffer) + ")"
                                : parameter.attribute) +
              "]]";
  }
  buffer += ") {\n";
  layout.name = triton_metal::getMetalName(kernel.getSymName());
  layout.bodyBegin = buffer.size();
  // Within the body, so that it holds wherever the body goes: a framework may write the signature.
  for (BlockArgument argument : coherent) {
    std::string type = getPointerName(cast<PtrType>(argument.getType()), getQualifiers(argument));
    std::string name = names.make(exprs[argument].text + "_shared");
    line(type + name + " = (" + StringRef(type).rtrim() + ")" + exprs[argument].text + ";");
    exprs[argument] = Expr{name};
  }
  for (auto [argument, word] : scalars)
    if (!argument.use_empty())
      line("const " + getTypeName(argument.getType()) + " " + exprs[argument].text + " = " +
           unpack(argument.getType(), args, word) + ";");
}

static bool isUpdatedAtomically(AllocOp op) {
  return llvm::any_of(op->getUsers(), llvm::IsaPred<AtomicOpInterface>);
}

void KernelPrinter::printThreadgroupMemory() {
  struct Allocation {
    AllocOp op;
    int64_t begin, end;
    /// It is declared by itself, with the atomics' own type.
    bool isAtomic;
  };
  SmallVector<Allocation> allocations;
  bool overlap = false, placed = true;
  int64_t total = 0;
  kernel.walk([&](AllocOp op) {
    int64_t bytes = op.getBytes();
    placed &= op.getOffset().has_value();
    int64_t begin = op.getOffset() ? int64_t(*op.getOffset()) : 0;
    for (Allocation &other : allocations)
      overlap |= begin < other.end && other.begin < begin + bytes;
    allocations.push_back({op, begin, begin + bytes, isUpdatedAtomically(op)});
    if (!allocations.back().isAtomic)
      total = std::max(total, begin + bytes);
  });
  if (allocations.empty())
    return;
  overlap &= placed;
  std::string memory;
  if (overlap) {
    // Allocations that never live at the same time share bytes.
    memory = names.make("memory");
    line("alignas(16) threadgroup uchar " + memory + "[" + std::to_string((total + 15) / 16 * 16) +
         "];");
  }
  for (Allocation &allocation : allocations) {
    PtrType type = allocation.op.getType();
    std::string name = names.make(allocation.op.getName());
    exprs[allocation.op.getResult()] = Expr{name};
    if (withLines) {
      bufferNumbers[allocation.op] = layout.buffers.size();
      layout.buffers.push_back({name,
                                getTypeName(type.getElementType()),
                                uint64_t(allocation.begin),
                                uint64_t(allocation.end - allocation.begin),
                                {}});
    }
    bool shares = overlap && !allocation.isAtomic;
    if (shares && allocation.begin && getElementBytes(type.getElementType()) == 1) {
      // Single bytes are addressed by one offset (docs/apple-quirks.md, row 8).
      exprs[allocation.op.getResult()] = {name + " + " + std::to_string(allocation.begin), Sum};
      byteMemory[allocation.op.getResult()] = {name, allocation.begin};
      line(getPointerName(type) + name + " = (" + getPointerName(type) + ")" + memory + ";");
    } else if (shares) {
      line(getPointerName(type) + name + " = (" + getPointerName(type) + ")" +
           (allocation.begin ? "(" + memory + " + " + std::to_string(allocation.begin) + ")"
                             : memory) +
           ";");
    } else {
      line("alignas(16) threadgroup " + getTypeName(type.getElementType()) + " " + name + "[" +
           std::to_string(allocation.op.getCount()) + "];");
    }
  }
}

LogicalResult KernelPrinter::print() {
  if (!llvm::hasSingleElement(kernel.getBody()))
    return refuse(kernel, "has branches between blocks");
  printSignature();
  printThreadgroupMemory();
  printBlock(kernel.getBody().front());
  takePlaces();
  layout.bodyEnd = buffer.size();
  buffer += "}\n";
  if (failed)
    return failure();
  os << buffer;
  return success();
}

//===----------------------------------------------------------------------===//
// The module
//===----------------------------------------------------------------------===//

std::string triton_metal::getMetalName(StringRef name) {
  std::string text;
  for (char c : name)
    text += llvm::isAlnum(c) || c == '_' ? c : '_';
  if (text.empty() || llvm::isDigit(text[0]))
    text = "_" + text;
  return isReserved(text) || looksLikeType(text) ? text + "_" : text;
}

void triton_metal::TextLayout::moveLines(unsigned down) {
  for (TextPlace &place : places)
    place.line += down;
  for (TextLine &line : lines)
    line.line += down;
  for (TextBuffer &buffer : buffers)
    for (unsigned &line : buffer.lines)
      line += down;
}

LogicalResult triton_metal::printMetal(ModuleOp module, raw_ostream &os,
                                       std::vector<TextLayout> *layouts, bool withLines) {
  Prelude prelude;
  std::string kernels;
  llvm::raw_string_ostream text(kernels);
  std::vector<TextLayout> places;
  for (auto kernel : module.getOps<KernelOp>()) {
    text << "\n";
    size_t begin = kernels.size();
    KernelPrinter printer(kernel, text, prelude, withLines);
    if (failed(printer.print()))
      return failure();
    TextLayout place = printer.getLayout();
    place.begin += begin;
    place.bodyBegin += begin;
    place.bodyEnd += begin;
    place.moveLines(StringRef(kernels).take_front(begin).count('\n'));
    places.push_back(std::move(place));
  }
  std::string header;
  llvm::raw_string_ostream front(header);
  front << "#include <metal_stdlib>\n";
  if (prelude.usesMatrices())
    front << "#include <metal_simdgroup_matrix>\n";
  if (prelude.usesTensors())
    front << "#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>\n";
  front << "using namespace metal;\n\n";
  // Before, the math mode is a compiler option alone, and safe in MLX and PyTorch.
  if (msl::TargetAttr::get(module).has(msl::Feature::FpPragmas))
    front << "#pragma METAL fp math_mode(safe)\n"
             "#pragma METAL fp contract(off)\n";
  else
    front << "#pragma STDC FP_CONTRACT OFF\n";
  prelude.print(front);
  os << header << kernels;
  if (layouts) {
    for (TextLayout &place : places) {
      place.moveLines(StringRef(header).count('\n'));
      place.begin += header.size();
      place.bodyBegin += header.size();
      place.bodyEnd += header.size();
    }
    *layouts = std::move(places);
  }
  return success();
}

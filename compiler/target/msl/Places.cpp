// Maps lines of the text to lines of the source, for errors at run time.

#include "target/msl/KernelPrinter.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace triton_metal::msl;

/// In the buffer, the number of a line's note stands between these characters.
static constexpr char noteBegin = '\x01', noteEnd = '\x02';

/// The kind of access of an operation that can fail at run time; null for other operations.
static const char *kindOf(Operation *op) {
  if (isa<ReadOp>(op))
    return "load";
  if (isa<WriteOp>(op))
    return "store";
  if (isa<AtomicRMWOp, AtomicCASOp>(op))
    return "atomic";
  auto loop = dyn_cast<ForOp>(op);
  return isa<BarrierOp>(op) || (loop && loop.getWaits()) ? "barrier" : nullptr;
}

void triton_metal::addFrames(Location loc, std::vector<SourcePlace> &frames) {
  if (auto call = dyn_cast<CallSiteLoc>(loc)) {
    addFrames(call.getCallee(), frames);
    addFrames(call.getCaller(), frames);
  } else if (auto name = dyn_cast<NameLoc>(loc)) {
    addFrames(name.getChildLoc(), frames);
  } else if (auto fused = dyn_cast<FusedLoc>(loc)) {
    for (Location part : fused.getLocations()) {
      size_t before = frames.size();
      addFrames(part, frames);
      if (frames.size() != before)
        return;
    }
  } else if (auto file = dyn_cast<FileLineColLoc>(loc)) {
    frames.push_back({file.getFilename().str(), file.getLine(), file.getColumn()});
  }
}

/// Notes the locations of the accesses of a line: of its own statement and of expressions inside of
/// it.
void KernelPrinter::notePlaces(StringRef text) {
  if (!statement)
    return;
  Note note;
  std::vector<TextPlace> &places = note.places;
  auto add = [&](Operation *op, unsigned column) {
    TextPlace place{0, column, kindOf(op), {}};
    addFrames(op->getLoc(), place.source);
    if (!place.source.empty())
      places.push_back(std::move(place));
  };
  // The statement of a variable is that of its value.
  Operation *own = statement;
  if (auto let = dyn_cast<LetOp>(statement); let && let.getValue().getDefiningOp())
    own = let.getValue().getDefiningOp();
  if (kindOf(own))
    add(own, 0);
  llvm::SetVector<Operation *> parts;
  auto addOperands = [&](Operation *op) {
    for (Value operand : op->getOperands())
      if (Operation *definition = operand.getDefiningOp();
          definition && !isa<LetOp, VarOp, AllocOp>(definition))
        parts.insert(definition);
  };
  addOperands(own);
  // Values that the regions of loops and branches yield are written as statements of their own.
  for (Region &region : statement->getRegions())
    for (Block &block : region)
      if (block.mightHaveTerminator())
        addOperands(block.getTerminator());
  for (unsigned index = 0; index < parts.size(); ++index) {
    Operation *part = parts[index];
    addOperands(part);
    if (!kindOf(part))
      continue;
    size_t at = text.find(exprs[part->getResult(0)].text);
    if (at != StringRef::npos)
      add(part, unsigned(at + 2 * depth + 1));
  }
  if (withLines)
    noteLine(own, parts.getArrayRef(), note);
  if (places.empty() && note.line.sources.empty() && note.buffers.empty())
    return;
  llvm::sort(places, [](const TextPlace &a, const TextPlace &b) {
    return std::pair(a.column, a.source.front().line) < std::pair(b.column, b.source.front().line);
  });
  buffer += noteBegin + std::to_string(notes.size()) + noteEnd;
  notes.push_back(std::move(note));
}

/// What stands for operations that have no location of their own: what uses their results, and
/// where there are none, what is in them and what they work on.
static llvm::SetVector<Operation *> getNeighbours(ArrayRef<Operation *> ops) {
  llvm::SetVector<Operation *> found;
  for (Operation *op : ops) {
    found.insert_range(op->getUsers());
    if (op->getNumResults())
      continue;
    for (Region &region : op->getRegions())
      for (Operation &inner : region.getOps())
        found.insert(&inner);
    for (Value operand : op->getOperands())
      if (Operation *definition = operand.getDefiningOp())
        found.insert(definition);
  }
  return found;
}

/// Notes the locations of all operations of a line, and the threadgroup memory that it accesses.
void KernelPrinter::noteLine(Operation *own, ArrayRef<Operation *> parts, Note &note) {
  auto addSource = [&](Operation *op) {
    std::vector<SourcePlace> source;
    addFrames(op->getLoc(), source);
    if (!source.empty() && !llvm::is_contained(note.line.sources, source))
      note.line.sources.push_back(std::move(source));
  };
  auto add = [&](Operation *op) {
    addSource(op);
    // What makes a pointer accesses nothing.
    if (isa<LetOp, VarOp>(op) || llvm::any_of(op->getResultTypes(), llvm::IsaPred<PtrType>))
      return;
    for (Value operand : op->getOperands()) {
      if (!isa<PtrType>(operand.getType()))
        continue;
      for (Operation *allocation : origins.get(operand).allocations)
        if (auto known = bufferNumbers.find(allocation);
            known != bufferNumbers.end() && !llvm::is_contained(note.buffers, known->second))
          note.buffers.push_back(known->second);
    }
  };
  add(own);
  for (Operation *part : parts)
    // Numbers that stand in the text come from everywhere.
    if (!part->hasTrait<OpTrait::ConstantLike>())
      add(part);
  // A thread's position, an address that a loop keeps: they belong to what needs them.
  llvm::SetVector<Operation *> layer, seen;
  layer.insert(own);
  while (note.line.sources.empty() && !layer.empty()) {
    seen.insert_range(layer);
    llvm::SetVector<Operation *> next = getNeighbours(layer.getArrayRef());
    next.set_subtract(seen);
    layer = std::move(next);
    for (Operation *op : layer)
      addSource(op);
  }
}

/// Removes the notes from the complete text and records the lines that they are in.
void KernelPrinter::takePlaces() {
  addFrames(kernel.getLoc(), layout.source);
  std::string text;
  unsigned line = 1;
  for (size_t at = 0; at < buffer.size(); ++at) {
    if (buffer[at] != noteBegin) {
      line += buffer[at] == '\n';
      text += buffer[at];
      continue;
    }
    size_t end = buffer.find(noteEnd, at);
    unsigned number = 0;
    (void)StringRef(buffer).slice(at + 1, end).getAsInteger(10, number);
    Note &note = notes[number];
    for (TextPlace &place : note.places) {
      place.line = line;
      layout.places.push_back(std::move(place));
    }
    if (!note.line.sources.empty()) {
      note.line.line = line;
      layout.lines.push_back(std::move(note.line));
    }
    for (size_t accessed : note.buffers)
      layout.buffers[accessed].lines.push_back(line);
    at = end;
  }
  buffer = std::move(text);
}

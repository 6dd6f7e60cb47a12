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
  return isa<BarrierOp>(op) ? "barrier" : nullptr;
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
  std::vector<TextPlace> places;
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
  if (places.empty())
    return;
  llvm::sort(places, [](const TextPlace &a, const TextPlace &b) {
    return std::pair(a.column, a.source.front().line) < std::pair(b.column, b.source.front().line);
  });
  buffer += noteBegin + std::to_string(notes.size()) + noteEnd;
  notes.push_back(std::move(places));
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
    for (TextPlace &place : notes[number]) {
      place.line = line;
      layout.places.push_back(std::move(place));
    }
    at = end;
  }
  buffer = std::move(text);
}

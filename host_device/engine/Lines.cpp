#include "host_device/engine/Lines.h"
#include "host_device/msl/MarkMath.h"
#include "host_device/msl/Stdlib.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace triton_metal::engine {

SourceLine sourceLineOf(const DILocation *location) {
  SourceLine outermost;
  for (; location; location = location->getInlinedAt()) {
    if (!location->getLine())
      continue;
    SourceLine line{filePathOf(*location), location->getLine()};
    if (!isStdlibFile(line.file))
      return line;
    outermost = line;
  }
  return outermost;
}

LineTable::LineTable(std::vector<SourceLine> &lines) : lines(lines) {
  if (lines.empty())
    lines.emplace_back(); // for what has no line
  for (size_t i = 0; i != lines.size(); ++i)
    numbers[lines[i]] = i;
}

uint32_t LineTable::lineOf(const Instruction &inst) {
  const DILocation *location = inst.getDebugLoc().get();
  auto [place, isNew] = known.try_emplace(location, 0);
  if (isNew) {
    SourceLine line = sourceLineOf(location);
    auto [number, added] = numbers.try_emplace(line, lines.size());
    if (added)
      lines.push_back(line);
    place->second = number->second;
  }
  return place->second;
}

bool isMathMark(const Instruction &inst) {
  auto *call = dyn_cast<CallBase>(&inst);
  return call && call->getCalledFunction() &&
         call->getCalledFunction()->getName().starts_with(mathMarkPrefix);
}

static const DISubprogram *programOf(const DILocation *location) {
  return location ? location->getScope()->getSubprogram() : nullptr;
}

MarkedFunctions::MarkedFunctions(Function &function) {
  for (Instruction &inst : instructions(function))
    if (isMathMark(inst)) {
      marks.push_back(&inst);
      if (const DISubprogram *program = programOf(inst.getDebugLoc().get()))
        programs[program] = true;
    }
}

bool MarkedFunctions::isInside(const Instruction &mark) const {
  const DILocation *location = mark.getDebugLoc().get();
  while (location && (location = location->getInlinedAt()))
    if (programs.contains(programOf(location)))
      return true;
  return false;
}

bool MarkedFunctions::hasPart(const Instruction &inst) const {
  return programs.contains(programOf(inst.getDebugLoc().get())) || isInside(inst);
}

void MarkedFunctions::eraseMarks() {
  for (Instruction *mark : marks)
    mark->eraseFromParent();
  marks.clear();
}

} // namespace triton_metal::engine

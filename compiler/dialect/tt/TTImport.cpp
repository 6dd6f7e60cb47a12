#include "dialect/tt/Import.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/AsmParser/AsmParserState.h"
#include "mlir/IR/Location.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;

namespace triton_metal::tt {

namespace {

bool isNameCharacter(char c) {
  return llvm::isAlnum(c) || c == '_' || c == '$' || c == '.' || c == '-';
}

/// All names of values in a text, without percent signs.
llvm::StringSet<> valueNames(StringRef text) {
  llvm::StringSet<> names;
  for (size_t at = text.find('%'); at != StringRef::npos; at = text.find('%', at + 1))
    names.insert(text.drop_front(at + 1).take_while(isNameCharacter));
  return names;
}

/// The name in the source that a value's name in the text is derived from; empty if there is none.
StringRef sourceName(StringRef name, const llvm::StringSet<> &names) {
  name.consume_front("%");
  // A number at the end distinguishes values of the same name, if another value has the name
  // without it.
  auto [stem, number] = name.rsplit('_');
  if (!number.empty() && llvm::all_of(number, llvm::isDigit) && names.contains(stem))
    name = stem;
  StringRef rest = name;
  if (llvm::all_of(name, llvm::isDigit) ||
      (rest.consume_front("arg") && llvm::all_of(rest, llvm::isDigit)))
    return {};
  return name;
}

} // namespace

OwningOpRef<ModuleOp> parseModule(StringRef text, StringRef name, MLIRContext *context) {
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(text, name), SMLoc());
  return parseModule(sources, context);
}

OwningOpRef<ModuleOp> parseModule(const llvm::SourceMgr &sources, MLIRContext *context) {
  const llvm::MemoryBuffer *buffer = sources.getMemoryBuffer(sources.getMainFileID());
  StringRef text = buffer->getBuffer(), name = buffer->getBufferIdentifier();
  if (failed(checkText(text, name, context)))
    return {};
  // The verifiers only run after the module has been checked.
  ParserConfig config(context, /*verifyAfterParse=*/false);
  Block block;
  AsmParserState state;
  if (failed(parseAsmSourceFile(sources, &block, config, &state)))
    return {};

  llvm::StringSet<> names = valueNames(text);
  for (const AsmParserState::BlockDefinition &definition : state.getBlockDefs()) {
    Operation *parent = definition.block->getParentOp();
    if (!parent)
      continue;
    for (auto [argument, source] :
         llvm::zip(definition.block->getArguments(), definition.arguments)) {
      // Arguments that have a location in the text keep it.
      if (!source.loc.isValid() || !isa<FileLineColLoc>(argument.getLoc()) ||
          cast<FileLineColLoc>(argument.getLoc()).getFilename() != name)
        continue;
      StringRef spelled(source.loc.Start.getPointer(),
                        source.loc.End.getPointer() - source.loc.Start.getPointer());
      StringRef python = sourceName(spelled, names);
      Location place = parent->getLoc();
      if (auto named = dyn_cast<NameLoc>(place))
        place = named.getChildLoc();
      argument.setLoc(python.empty() ? place
                                     : NameLoc::get(StringAttr::get(context, python), place));
    }
  }
  OwningOpRef<ModuleOp> module = detail::constructContainerOpForParserIfNecessary<ModuleOp>(
      &block, context, FileLineColLoc::get(context, name, 1, 1));
  if (!module || failed(checkModule(*module)) || failed(verify(*module)))
    return {};
  return module;
}

} // namespace triton_metal::tt

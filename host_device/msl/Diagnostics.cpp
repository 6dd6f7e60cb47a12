#include "host_device/msl/Diagnostics.h"
#include "host_device/msl/Invocation.h"
#include "clang/AST/ASTDiagnostic.h"
#include "clang/Basic/DiagnosticParse.h"
#include "clang/Basic/DiagnosticSema.h"
#include "clang/Basic/SourceManager.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"

using llvm::StringRef;

namespace triton_metal {

/// More errors than this are rarely read.
static constexpr unsigned maxErrors = 8;

std::string inMetal(StringRef message) {
  static const std::pair<StringRef, StringRef> words[] = {
      {"__restrict ", ""},
      {"__global", "device"},
      {"__constant", "constant"},
      {"__local", "threadgroup"},
      {"__tm_kernel", "kernel"},
      {"__tm_threadgroup", "threadgroup"},
      {"_Float16", "half"},
      {"__private", "thread"},
      {"C++ for OpenCL version 2021", "Metal"},
      {"C++ for OpenCL", "Metal"},
  };
  std::string text = message.str();
  for (auto [from, to] : words)
    for (size_t at; (at = text.find(from.data(), 0, from.size())) != std::string::npos;)
      text.replace(at, from.size(), to.data(), to.size());
  return text;
}

std::string typeInMetal(StringRef text) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    auto isWord = [](char c) { return llvm::isAlnum(c) || c == '_'; };
    size_t end = at;
    while (end < text.size() && isWord(text[end]))
      ++end;
    StringRef word = text.slice(at, end);
    if (word.empty())
      result += text[at++];
    else
      result += word == "double" ? "float" : word == "float" ? "bfloat" : word;
    at = std::max(at, end);
  }
  return result;
}

/// `'half' (aka 'half')` -> `'half'`.
static std::string withoutRepetition(std::string text) {
  constexpr StringRef middle = " (aka ";
  size_t at = text.find(middle);
  if (at == std::string::npos || text.back() != ')')
    return text;
  StringRef also = StringRef(text).slice(at + middle.size(), text.size() - 1);
  return StringRef(text).take_front(at) == also ? text.substr(0, at) : text;
}

void nameTypesInMetal(clang::DiagnosticsEngine &engine, clang::ASTContext &context) {
  engine.SetArgToStringFn(
      [](clang::DiagnosticsEngine::ArgumentKind kind, intptr_t value, StringRef modifier,
         StringRef argument, llvm::ArrayRef<clang::DiagnosticsEngine::ArgumentValue> previous,
         llvm::SmallVectorImpl<char> &output, void *context, llvm::ArrayRef<intptr_t> types) {
        llvm::SmallString<64> text;
        clang::FormatASTNodeDiagnosticArgument(kind, value, modifier, argument, previous, text,
                                               context, types);
        bool isType = kind != clang::DiagnosticsEngine::ak_identifierinfo;
        std::string result =
            isType ? withoutRepetition(typeInMetal(inMetal(text))) : text.str().str();
        output.append(result.begin(), result.end());
      },
      &context);
}

void DiagnosticCollector::show(StringRef level, StringRef message,
                               const clang::SourceManager *sources,
                               clang::SourceLocation location) {
  std::string where = "error";
  std::string line, caret;
  if (sources && location.isValid()) {
    auto [file, offset] = sources->getDecomposedLoc(sources->getExpansionLoc(location));
    StringRef name;
    if (auto entry = sources->getFileEntryRefForID(file))
      name = entry->getName();
    auto found = texts.find(name);
    StringRef body;
    size_t at = offset;
    if (found != texts.end()) {
      const SourceText &text = *found->second;
      name = text.displayName;
      body = text.original;
      at = text.rewritten.originalOffset(offset);
    } else {
      body = sources->getBufferData(file);
      name.consume_front("/metal/");
    }
    at = std::min(at, body.size());
    size_t begin = body.substr(0, at).rfind('\n');
    begin = begin == StringRef::npos ? 0 : begin + 1;
    size_t end = body.find('\n', at);
    StringRef full = body.slice(begin, end == StringRef::npos ? body.size() : end).rtrim("\r");
    size_t lineNumber = body.substr(0, begin).count('\n') + 1;
    // What #line says.
    clang::SourceLocation place = sources->getExpansionLoc(location);
    clang::PresumedLoc said = sources->getPresumedLoc(place),
                       physical = sources->getPresumedLoc(place, /*UseLineDirectives=*/false);
    if (said.isValid() && physical.isValid()) {
      lineNumber += said.getLine() - physical.getLine();
      if (StringRef(said.getFilename()) != physical.getFilename())
        name = said.getFilename();
    }
    where =
        (name + ":" + llvm::Twine(lineNumber) + ":" + llvm::Twine(at - begin + 1) + ": " + level)
            .str();
    line = full.str();
    for (char c : full.substr(0, at - begin))
      caret += c == '\t' ? '\t' : ' ';
    caret += '^';
  } else {
    where = level.str();
  }
  if (!out.empty())
    out += "\n";
  out += where + ": " + inMetal(message);
  if (!line.empty())
    out += "\n" + line + "\n" + caret;
}

/// Whether this is about the pragma that the device puts around the user's text, which an error
/// before it may swallow.
static bool isOfOwnPragma(const clang::Diagnostic &diagnostic) {
  if (!diagnostic.hasSourceManager())
    return false;
  const clang::SourceManager &sources = diagnostic.getSourceManager();
  auto [file, offset] = sources.getDecomposedLoc(sources.getExpansionLoc(diagnostic.getLocation()));
  switch (diagnostic.getID()) {
  case clang::diag::err_pragma_attribute_no_pop_eof:
    return !sources.getFileEntryRefForID(file);
  case clang::diag::err_pragma_misplaced_in_decl:
    return sources.getBufferData(file).size() - offset < StringRef(pragmaAtEnd).size();
  default:
    return false;
  }
}

void DiagnosticCollector::HandleDiagnostic(clang::DiagnosticsEngine::Level level,
                                           const clang::Diagnostic &diagnostic) {
  if (isOfOwnPragma(diagnostic))
    return;
  DiagnosticConsumer::HandleDiagnostic(level, diagnostic);
  if (level < clang::DiagnosticsEngine::Error) {
    // A note is shown if it belongs to an error that was shown and points into the user's text.
    if (level != clang::DiagnosticsEngine::Note || !lastShown || !diagnostic.hasSourceManager())
      return;
    const clang::SourceManager &sources = diagnostic.getSourceManager();
    auto [file, offset] =
        sources.getDecomposedLoc(sources.getExpansionLoc(diagnostic.getLocation()));
    auto entry = sources.getFileEntryRefForID(file);
    if (!entry || texts.find(entry->getName()) == texts.end())
      return;
  } else {
    lastShown = ++errors <= maxErrors;
    if (!lastShown)
      return;
  }
  llvm::SmallString<256> message;
  diagnostic.FormatDiagnostic(message);
  // Swizzles are properties of <metal_vector>, and one of a swizzle would be one of a copy.
  if (diagnostic.getID() == clang::diag::err_member_function_call_bad_ref &&
      message.str().contains("'__p_"))
    message = "a swizzle of a swizzle cannot be assigned; name the components of the vector itself";
  show(level == clang::DiagnosticsEngine::Note ? "note" : "error", message,
       diagnostic.hasSourceManager() ? &diagnostic.getSourceManager() : nullptr,
       diagnostic.getLocation());
}

void DiagnosticCollector::error(const clang::SourceManager &sources, clang::SourceLocation location,
                                StringRef message) {
  lastShown = ++errors <= maxErrors;
  if (lastShown)
    show("error", message, &sources, location);
}

} // namespace triton_metal

#include "host_device/Scanner.h"
#include "host_device/Compiling.h"
#include "host_device/engine/Protect.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include <optional>

using namespace llvm;

namespace triton_metal {

Expected<std::vector<QuirkHit>> findQuirksIn(StringRef text, const QuirkOptions &options) {
  Compiling compiling;
  std::optional<Expected<std::vector<QuirkHit>>> result;
  std::optional<std::string> problem =
      engine::runProtected([&] { result.emplace(scanForQuirks(text, options)); });
  if (problem) {
    if (result)
      consumeError(result->takeError());
    return createStringError(inconvertibleErrorCode(),
                             options.text.fileName + ": error: cannot be scanned: " + *problem);
  }
  return std::move(*result);
}

std::string quirksAsJson(StringRef text, const QuirkOptions &options) {
  Expected<std::vector<QuirkHit>> hits = findQuirksIn(text, options);
  if (!hits)
    return formatv("{0}", json::Value(json::Object{{"error", toString(hits.takeError())}})).str();
  json::Array list;
  for (const QuirkHit &hit : *hits)
    list.push_back(json::Object{{"row", hit.row},
                                {"name", quirkRow(hit.row).name},
                                {"file", hit.file},
                                {"line", hit.line},
                                {"column", hit.column},
                                {"kind", nameOf(hit.kind)},
                                {"message", hit.message}});
  return formatv("{0}", json::Value(std::move(list))).str();
}

std::string quirkRowsAsJson() {
  json::Array list;
  for (const QuirkRow &row : quirkRows())
    list.push_back(json::Object{{"row", row.number},
                                {"name", row.name},
                                {"explanation", row.explanation},
                                {"source", row.source}});
  return formatv("{0}", json::Value(std::move(list))).str();
}

} // namespace triton_metal

#include "pipeline/Diagnostics.h"

#include "mlir/IR/Location.h"

using namespace mlir;

namespace triton_metal {

/// The places in the source that a location stands for: the innermost first, and after it the calls
/// that led there. What was made of several places is where the first of them is.
static void collectPlaces(Location loc, SmallVectorImpl<FileLineColLoc> &places) {
  if (auto call = dyn_cast<CallSiteLoc>(loc)) {
    collectPlaces(call.getCallee(), places);
    collectPlaces(call.getCaller(), places);
  } else if (auto name = dyn_cast<NameLoc>(loc)) {
    collectPlaces(name.getChildLoc(), places);
  } else if (auto fused = dyn_cast<FusedLoc>(loc)) {
    size_t before = places.size();
    for (Location part : fused.getLocations())
      if (places.size() == before)
        collectPlaces(part, places);
  } else if (auto file = dyn_cast<FileLineColLoc>(loc)) {
    places.push_back(file);
  } else if (auto opaque = dyn_cast<OpaqueLoc>(loc)) {
    collectPlaces(opaque.getFallbackLocation(), places);
  }
}

static std::string describe(FileLineColLoc place) {
  return (place.getFilename().getValue() + ":" + Twine(place.getLine()) + ":" +
          Twine(place.getColumn()))
      .str();
}

void appendDiagnostic(std::string &text, const Diagnostic &diagnostic, StringRef kind,
                      std::optional<Location> otherwise) {
  SmallVector<FileLineColLoc> places;
  collectPlaces(diagnostic.getLocation(), places);
  if (places.empty() && otherwise)
    collectPlaces(*otherwise, places);
  if (!text.empty())
    text += "\n";
  if (!places.empty())
    text += describe(places.front()) + ": ";
  text += kind.str() + ": " + diagnostic.str();
  for (FileLineColLoc caller : ArrayRef(places).drop_front(places.empty() ? 0 : 1))
    text += "\n" + describe(caller) + ": note: called from here";
}

} // namespace triton_metal

// Profiles as a table, as JSON, and as the text with each line's counts beside it.
#pragma once

#include "host_device/Profile.h"
#include "host_device/metal/Library.h"
#include "llvm/Support/raw_ostream.h"
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace triton_metal::metal {

/// What launches did, for each library that they ran functions of.
struct ProfileReport {
  struct Part {
    std::shared_ptr<Library> library;
    Profile profile;
  };
  std::vector<Part> parts;

  void add(const std::shared_ptr<Library> &library, const Profile &profile);
  bool isEmpty() const { return parts.empty(); }
};

/// The cycles of a SIMD-group that a line would take on a simple model of a GPU. It ranks lines and
/// predicts no times. docs/metal-device.md has its numbers.
double modelledCycles(const Counters &counters);

enum class ReportForm { Listing, Table, Json, Html };
/// "text" or "listing", "table", "json", "html".
std::optional<ReportForm> reportFormNamed(llvm::StringRef name);
void print(llvm::raw_ostream &out, const ProfileReport &report, ReportForm form);

} // namespace triton_metal::metal

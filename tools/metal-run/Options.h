// The command line of metal-run.
#pragma once

#include "host_device/Checks.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace triton_metal {

/// `left=right` of an option.
typedef std::pair<std::string, std::string> Assignment;

/// One kernel to run: the options before the first --then, or after one.
struct DispatchOptions {
  std::string kernel;
  /// What is bound to parameters, by name or index.
  enum class Binding { Array, Scalar, Bytes };
  struct Bound {
    Binding kind;
    std::string parameter, value;
  };
  std::vector<Bound> bindings;
  std::vector<Assignment> threadgroupMemory;
  std::string threads, threadgroups, group;
  /// How the option of `threads` was spelled.
  std::string threadsOption = "threads";
};

struct ToolOptions {
  std::vector<std::string> files;
  std::vector<DispatchOptions> dispatches;
  std::vector<Assignment> outputs, macros, constants;
  std::vector<std::string> shown, includeDirectories;
  bool help = false, list = false, info = false;
  Checks checks;
  std::optional<uint64_t> maxSteps;
  /// Parameters of which a launch must write each byte.
  std::vector<std::string> whole;
  bool portable = false;
  std::optional<uint64_t> seed, schedule;
  bool counters = false, json = false;
  /// The form of the profile: "text", "table", "json" or "html".
  std::optional<std::string> profile;
  std::optional<unsigned> timedRuns;
  bool quirks = false, safeMath = false;
};

/// Reads the command line, without the program's name.
llvm::Expected<ToolOptions> parseOptions(llvm::ArrayRef<std::string> arguments);
void printHelp(llvm::raw_ostream &out);

llvm::Error failure(const llvm::Twine &message);

} // namespace triton_metal

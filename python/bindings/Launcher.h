// What launches a function: its parameters, the kernels that were compiled for it, and the way of
// Python's arguments to a dispatch.
#pragma once

#include "Arrays.h"
#include "Bindings.h"
#include "Launching.h"
#include "Packing.h"
#include "Reads.h"

#include "llvm/ADT/StringMap.h"

#include <functional>

namespace triton_metal {

struct Param {
  std::string name;
  nb::object pythonName;
  nb::object defaultValue; // invalid where there is none
  bool isConstexpr, isConst, specialize, specializeAlignment;
  std::string annotation; // "i64", "*fp32", or ""
  bool isVariadic;        // *args
};

/// One argument of one launch.
struct Bound {
  PyObject *object = nullptr;
  ArgumentKind kind = ArgumentKind::None;
  bool isConstant = false;
  Integer integer;
  double real = 0;
  const char *type = nullptr; // Triton's name where the kernel takes a scalar
  /// Of an array's address, in bytes and negative if the kernel tests it, or of an integer.
  int8_t divisibility = 0;
  std::unique_ptr<ArrayInfo> array;
  nb::object owned;
};

/// How a launch passes its arguments to a kernel.
struct Plan {
  /// Whether a launch has had the kernel loaded, which is what hooks are told.
  bool isLoaded = false;
  struct Step {
    unsigned param;
    unsigned slot, words;
    bool isBuffer, reads, writes;
    runtime::ScalarKind kind;
  };
  std::shared_ptr<runtime::Kernel> kernel;
  nb::object compiled;
  std::vector<Step> steps;
  /// Objects whose contents are not in the key, and all reads of the walk.
  std::vector<nb::object> objects;
  Reads reads;
};
/// Kernels with the same key, but different reads.
using Plans = std::vector<std::shared_ptr<Plan>>;
constexpr size_t maxPlans = 32;

/// The options of a launch that are part of the kernel. A number is 0, and a choice -1, if it is
/// not given.
struct LaunchKeywords {
  int64_t numWarps = 0, numStages = 0;
  int8_t debug = -1, sanitizeOverflow = -1;
  /// Options of other backends, by name.
  nb::object others;
};

class Launcher {
public:
  Launcher(std::string name, nb::object owner, nb::object function);
  Launcher(const Launcher &) = delete;
  Launcher &operator=(const Launcher &) = delete;
  nb::object launch(nb::handle grid, nb::args args, nb::kwargs kwargs, bool run);
  /// Compiles all kernels again when they are needed.
  void forget() { ++generation; }

  /// Calls `visit` with the objects that this holds, for Python's garbage collector: a function
  /// holds its launcher, whose kernels hold what they read.
  template <typename Visit> void forEachObject(Visit visit) const;
  /// Lets go of these objects.
  void clear();

private:
  void readParams();
  bool hasChanged() const;
  nb::object launchApart(nb::handle grid, nb::args args, nb::kwargs kwargs,
                         const std::vector<Bound> &bound, bool run);
  void bind(nb::args args, nb::kwargs kwargs, std::vector<Bound> &bound, LaunchKeywords &options);
  void examine(unsigned index, Bound &bound, bool doRun, llvm::SmallVectorImpl<char> &key,
               std::vector<PyObject *> &objects);
  std::shared_ptr<Plan> plan(llvm::StringRef key, const std::vector<PyObject *> &objects,
                             const std::vector<Bound> &bound, const LaunchKeywords &options,
                             const std::vector<Sharing> &sharing, DeviceId device, bool doRun);
  std::array<uint32_t, 3> readGrid(nb::handle grid, const std::vector<Bound> &bound);
  void run(Plan &plan, std::array<uint32_t, 3> grid, std::vector<Bound> &bound);
  const DeviceId *deviceOfArrays(const std::vector<Bound> &bound, bool doRun) const;
  void checkSizes(const std::vector<Bound> &bound, const DeviceEntry &device) const;
  void runOn(DeviceId device, DeviceId own, Plan &plan, std::array<uint32_t, 3> grid,
             std::vector<Bound> &bound);
  void recordRun(const Plan &plan, std::array<uint32_t, 3> grid, const std::vector<Bound> &bound,
                 DeviceId device, int64_t begin, bool isFirst) const;
  void packScalars(const Plan &plan, const std::vector<Bound> &bound,
                   llvm::MutableArrayRef<uint32_t> scalars) const;
  [[noreturn]] void typeProblem(unsigned index, const std::string &message) const {
    raiseAs("LaunchTypeError", name + ": argument " + params[index].name + " " + message);
  }
  [[noreturn]] void valueProblem(unsigned index, const std::string &message) const {
    raiseAs("LaunchValueError", name + ": argument " + params[index].name + " " + message);
  }

  std::string name;
  nb::object owner;
  std::vector<Param> params;
  nb::dict index;
  llvm::StringMap<Plans> plans;
  /// The Python function, and its code and defaults when the parameters were read.
  nb::object function;
  std::vector<nb::object> state;
  /// Functions that are called with the arguments of a launch, before it.
  nb::object before;
  /// Counts these reads. Plans of earlier ones are not used any more.
  uint32_t generation = 0;
  /// Launches with tuples by their structure: what launches their elements, and its owner in
  /// Python, which holds the tuples' types.
  struct Apart {
    nb::object owner;
    Launcher *launcher;
  };
  llvm::StringMap<Apart> apart;
};

template <typename Visit> void Launcher::forEachObject(Visit visit) const {
  for (const nb::object &object : {std::cref(owner), std::cref(function), std::cref(before)})
    visit(object);
  visit(index);
  for (const Param &param : params) {
    visit(param.pythonName);
    visit(param.defaultValue);
  }
  for (const nb::object &object : state)
    visit(object);
  for (const auto &entry : plans)
    for (const std::shared_ptr<Plan> &plan : entry.second) {
      visit(plan->compiled);
      for (const nb::object &object : plan->objects)
        visit(object);
      plan->reads.forEachObject(visit);
    }
  for (const auto &entry : apart)
    visit(entry.second.owner);
}

/// Whether a launch takes the object apart: a tuple, or a tensor descriptor.
bool hasParts(PyObject *object);

} // namespace triton_metal

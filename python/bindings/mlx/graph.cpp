#include "python/bindings/mlx/Graph.h"

#include "python/bindings/PackedLaunch.h"
#include "runtime/mlx/graph/Tracer.h"

#include "mlx/ops.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>

namespace nb = nanobind;

namespace triton_metal::mlx_route {

namespace {

namespace mx = mlx::core;

/// A refusal whose message begins with its place, as a diagnostic of the compiler does.
struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

[[noreturn]] void raise(const graph::Program &program, const graph::Refusal &refusal) {
  std::string place = program.describe(refusal.place);
  throw Refused(place + (place.empty() ? "" : ": ") + "error: " + refusal.message);
}

/// The contents of every array after a launch, which of them are written, and what was done.
nb::tuple run(const graph::Program &program, std::tuple<int, int, int> grid,
              const std::vector<std::tuple<int, int64_t>> &given,
              const std::vector<mx::array> &arrays) {
  if (given.size() != program.arguments.size())
    raiseAs("LaunchTypeError",
            program.name + " takes " + std::to_string(program.arguments.size()) + " arguments");
  std::vector<graph::Argument> arguments;
  for (auto [buffer, bits] : given)
    arguments.push_back({buffer, bits});
  try {
    graph::Tracer tracer(program, {std::get<0>(grid), std::get<1>(grid), std::get<2>(grid)},
                         arguments, arrays);
    std::vector<mx::array> contents = tracer.run();
    nb::list results, written;
    for (size_t i = 0; i < contents.size(); ++i) {
      bool isWritten = tracer.isWritten(i);
      written.append(isWritten);
      results.append(isWritten ? mx::reshape(contents[i], arrays[i].shape()) : arrays[i]);
    }
    const graph::Summary &summary = tracer.summary;
    nb::dict counts;
    counts["operations"] = summary.operations;
    counts["sliced"] = summary.sliced;
    counts["gathered"] = summary.gathered;
    counts["unchecked_assertions"] = summary.unchecked;
    return nb::make_tuple(results, written, counts);
  } catch (const graph::Refusal &refusal) {
    raise(program, refusal);
  }
}

} // namespace

void bindGraph(nb::module_ &module) {
  // Not one that MLX's own errors become.
  nb::exception<Refused>(module, "GraphRefused");
  nb::class_<graph::Program>(module, "GraphProgram", "A kernel as a program of array operations.")
      .def_static("read", &graph::Program::read, nb::arg("text"))
      .def_prop_ro("arguments",
                   [](const graph::Program &program) {
                     std::vector<std::string> types;
                     for (const graph::Type &type : program.arguments)
                       types.push_back(type.element);
                     return types;
                   })
      .def("run", &run, nb::arg("grid"), nb::arg("arguments"), nb::arg("arrays"));
}

} // namespace triton_metal::mlx_route

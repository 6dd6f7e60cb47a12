#include "python/bindings/mlx/Graph.h"

#include "python/bindings/PackedLaunch.h"
#include "runtime/mlx/graph/Tracer.h"

#include "mlx/ops.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <stdexcept>
#include <unordered_set>

namespace nb = nanobind;

namespace triton_metal::mlx_route {

namespace {

namespace mx = mlx::core;

/// A refusal whose message begins with its place, as a diagnostic of the compiler does.
struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A refusal as a diagnostic of the compiler.
std::string diagnosticOf(const graph::Program &program, const graph::Refusal &refusal) {
  std::string place = program.describe(refusal.place);
  return place + (place.empty() ? "" : ": ") + "error: " + refusal.message;
}

[[noreturn]] void raiseFailure(const graph::Program &program,
                               const graph::FailedAssertion &failure) {
  nb::object error =
      nb::module_::import_("triton_metal.mlx.graph_programs")
          .attr("failed_assertion")(
              program.name, diagnosticOf(program, failure),
              nb::make_tuple(failure.program[0], failure.program[1], failure.program[2]),
              failure.index);
  PyErr_SetObject(error.type().ptr(), error.ptr());
  throw nb::python_error();
}

nb::list notesOf(const graph::Program &program,
                 const std::vector<std::pair<graph::Place, std::string>> &notes) {
  nb::list lines;
  for (const auto &[place, what] : notes) {
    std::string where = program.describe(place);
    lines.append(where.empty() ? what : where + ": " + what);
  }
  return lines;
}

/// The number of MLX's operations between arrays.
int primitivesBetween(const std::vector<mx::array> &inputs, const std::vector<mx::array> &results) {
  std::unordered_set<std::uintptr_t> seen, counted;
  for (const mx::array &input : inputs)
    seen.insert(input.id());
  std::vector<mx::array> open = results;
  while (!open.empty()) {
    mx::array array = open.back();
    open.pop_back();
    if (!seen.insert(array.id()).second || !array.has_primitive())
      continue;
    counted.insert(array.primitive_id());
    open.insert(open.end(), array.inputs().begin(), array.inputs().end());
  }
  return static_cast<int>(counted.size());
}

nb::dict countsOf(const graph::Program &program, const graph::Summary &summary) {
  nb::dict counts;
  counts["operations"] = summary.operations;
  counts["sliced"] = summary.sliced;
  counts["gathered"] = summary.gathered;
  counts["unchecked_assertions"] = summary.unchecked;
  counts["reads_elements"] = summary.readsElements;
  counts["raised"] = notesOf(program, summary.raised);
  counts["fell_back"] = notesOf(program, summary.fellBack);
  return counts;
}

/// The contents of every array after a launch, which of them are written, and what was done.
nb::tuple run(const graph::Program &program, std::tuple<int, int, int> grid,
              const std::vector<std::tuple<int, int64_t>> &given,
              const std::vector<mx::array> &arrays, bool countsPrimitives, bool convolves) {
  if (given.size() != program.arguments.size())
    raiseAs("LaunchTypeError",
            program.name + " takes " + std::to_string(program.arguments.size()) + " arguments");
  std::vector<graph::Argument> arguments;
  for (auto [buffer, bits] : given)
    arguments.push_back({buffer, bits});
  try {
    graph::Traced traced =
        graph::trace(program, {std::get<0>(grid), std::get<1>(grid), std::get<2>(grid)}, arguments,
                     arrays, convolves);
    nb::list results, written;
    for (size_t i = 0; i < traced.contents.size(); ++i) {
      written.append(static_cast<bool>(traced.written[i]));
      results.append(traced.written[i] ? mx::reshape(traced.contents[i], arrays[i].shape())
                                       : arrays[i]);
    }
    nb::dict counts = countsOf(program, traced.summary);
    counts["primitives"] = countsPrimitives ? primitivesBetween(arrays, traced.contents) : 0;
    return nb::make_tuple(results, written, counts);
  } catch (const graph::FailedAssertion &failure) {
    raiseFailure(program, failure);
  } catch (const graph::Refusal &refusal) {
    throw Refused(diagnosticOf(program, refusal));
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
      .def("run", &run, nb::arg("grid"), nb::arg("arguments"), nb::arg("arrays"),
           nb::arg("counts_primitives") = false, nb::arg("convolves") = false);
}

} // namespace triton_metal::mlx_route

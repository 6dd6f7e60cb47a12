// The reads of the walk over a kernel from Python, and whether they still give the same results.
#ifndef TRITON_METAL_READS_H
#define TRITON_METAL_READS_H

#include "llvm/ADT/SmallVector.h"

#include <nanobind/nanobind.h>

#include <vector>

namespace nb = nanobind;

namespace triton_metal {

/// How something was read. The operands' meaning: the namespace; the cell; the function; the
/// object; the callable and its arguments.
enum class Read : uint8_t { Name, Cell, Function, Attribute, Call };

/// What reading it again must give: nothing; a value of the same type and content; the very same
/// object; an object of the same type, which the reads after it look into; a method of the same
/// function; a function with the same code and defaults.
enum class ReadResult : uint8_t { Missing, Equal, Same, Alike, Method, Function };

/// Whether two constants are of one type and have the same content, floats by their bits.
bool sameContent(PyObject *a, PyObject *b);

/// The plain value of an object that may be a constexpr; borrowed from it.
PyObject *unwrapped(PyObject *object);

/// Appends a constant's part of a key: the value itself where it has a plain form, else its type,
/// and the object to those that `Reads` compares.
void appendConstant(PyObject *object, llvm::SmallVectorImpl<char> &key,
                    std::vector<PyObject *> &objects);

class Reads {
public:
  Reads() = default;
  /// Takes what `Reads.finished` of triton_metal/reads.py gives.
  Reads(nb::handle objects, nb::handle steps, unsigned numSlots, bool isVolatile);

  /// Does all reads again, for a launch with these objects. Never raises.
  bool hold(const std::vector<PyObject *> &objects, const std::vector<nb::object> &before) const;

  /// Calls `visit` with the objects that this holds, for Python's garbage collector.
  template <typename Visit> void forEachObject(Visit visit) const {
    for (const Step &step : steps) {
      for (const Operand &operand : step.operands)
        visit(operand.object);
      visit(step.name);
      visit(step.expected);
    }
  }

  bool isVolatile = false;

private:
  struct Operand {
    nb::object object; // invalid where the slot counts
    int slot;
  };
  struct Step {
    Read kind;
    ReadResult result;
    int slot; // where to keep the result, or -1
    std::vector<Operand> operands;
    nb::object name; // of a variable or an attribute, or the names of keyword arguments
    nb::object expected;
  };
  bool holds(const Step &step, std::vector<nb::object> &slots) const;

  std::vector<ReadResult> objects;
  std::vector<Step> steps;
  unsigned numSlots = 0;
};

} // namespace triton_metal

#endif // TRITON_METAL_READS_H

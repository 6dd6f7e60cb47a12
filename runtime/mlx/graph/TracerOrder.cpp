// Refuses launches whose result depends on the order in which programs run. A graph runs each
// operation of all programs before the next one.

#include "runtime/mlx/graph/Tracer.h"

#include <algorithm>

namespace triton_metal::graph {

namespace {

/// Which programs accessed a place: none, one, or several.
constexpr int64_t nobody = -1, several = -2;

/// For each element of an access, in row-major order, the number of its program.
class Programs {
public:
  Programs(const Extents &extents, const OuterAxes &outer) : extents(extents) {
    for (size_t axis = outerAxes; axis < extents.size(); ++axis)
      inner *= extents[axis];
    // An axis of the grid along which nothing changes: all of its programs do the same.
    for (size_t axis = 0; axis < outerAxes; ++axis)
      isShared |= extents[axis] == 1 && outer.ofGrid()[axis] > 1;
    int64_t weight = 1;
    for (size_t dimension = 3; dimension-- > 0;) {
      for (const OuterAxes::Factor &factor : outer.factors(dimension))
        weights[factor.axis] = weight * factor.step;
      weight *= outer.gridSize(dimension);
    }
  }

  int64_t of(size_t element) const {
    if (isShared)
      return several;
    int64_t rest = static_cast<int64_t>(element) / inner, program = 0;
    // Steps of loops belong to one program.
    for (size_t axis = outerAxes; axis-- > 0; rest /= extents[axis])
      program += rest % extents[axis] * weights[axis];
    return program;
  }
  bool areShared() const { return isShared; }

private:
  const Extents &extents;
  std::array<int64_t, outerAxes> weights = {};
  int64_t inner = 1;
  bool isShared = false;
};

} // namespace

void Tracer::checkOrder(const Buffer &buffer) const {
  const std::vector<Access> &accesses = buffer.accesses;
  bool mustBeDistinct = std::any_of(accesses.begin(), accesses.end(),
                                    [](const Access &access) { return access.mustBeDistinct; });
  const Extents &ofGrid = outer.ofGrid();
  bool isOneProgram = isUniform(ofGrid);
  if (!buffer.isWritten || (isOneProgram && !mustBeDistinct))
    return;
  // One store to distinct places, and accesses to the same places by the same elements.
  bool isSimple = std::all_of(accesses.begin(), accesses.end(), [&](const Access &access) {
    const Access &first = accesses.front();
    bool isSame = access.place.affine() && first.place.affine() &&
                  *access.place.affine() == *first.place.affine() &&
                  access.extents == first.extents;
    return isSame && access.kind != Access::Update &&
           (access.kind == Access::Read || access.isDistinct);
  });
  // Updates of one kind may come in any order.
  bool areUpdates = std::all_of(accesses.begin(), accesses.end(), [&](const Access &access) {
    return access.kind == Access::Update && access.update == accesses.front().update;
  });
  if (areUpdates)
    return;
  if (isSimple && !mustBeDistinct) {
    bool coversGrid = true;
    for (size_t axis = 0; axis < outerAxes; ++axis)
      coversGrid &= ofGrid[axis] == 1 || accesses.front().extents[axis] == ofGrid[axis];
    if (coversGrid || accesses.size() == 1)
      return;
  }

  size_t size = buffer.elements.size();
  std::vector<int64_t> writer(size, nobody), reader(size, nobody), updater(size, nobody);
  std::vector<int64_t> update(size, 0);
  // The last access that wrote a place, counted from 1.
  std::vector<size_t> lastWrite(size, 0);
  size_t number = 0;
  auto note = [](int64_t &who, int64_t program) {
    who = who == nobody || who == program ? program : several;
  };
  constexpr const char *what = "a place in memory that is written";
  for (const Access &access : accesses) {
    ++number;
    std::vector<int64_t> places = evaluate(access.place, access.extents, access.source, what);
    std::vector<int64_t> mask;
    if (access.mask)
      mask = evaluate(*access.mask, access.extents, access.source, what);
    Programs programs(access.extents, outer);
    for (size_t element = 0; element < places.size(); ++element) {
      int64_t place = places[element];
      if ((!mask.empty() && !mask[element]) || place < 0 || place >= int64_t(size))
        continue;
      auto at = static_cast<size_t>(place);
      int64_t program = programs.of(element);
      auto fail = [&](const char *how) {
        throw Refusal(access.source, std::string("programs of the grid ") + how + " place " +
                                         std::to_string(place) +
                                         " of an array, and the result depends on their order");
      };
      switch (access.kind) {
      case Access::Read:
        note(reader[at], program);
        break;
      case Access::Write:
        // Programs that all write the same are one writer, for a single store.
        if (writer[at] != nobody && (writer[at] != program || program == several) &&
            accesses.size() > 1)
          fail("both write");
        if (writer[at] != nobody && writer[at] != program)
          fail("both write");
        if (lastWrite[at] == number && access.mustBeDistinct)
          throw Refusal(access.source, "elements update place " + std::to_string(place) +
                                           " of an array together, and what each of them found "
                                           "depends on their order");
        writer[at] = program;
        lastWrite[at] = number;
        break;
      case Access::Update:
        if (update[at] != 0 && update[at] != access.update)
          fail("update in different ways");
        update[at] = access.update;
        note(updater[at], program);
        break;
      }
      if (writer[at] != nobody && reader[at] != nobody &&
          (reader[at] != writer[at] || reader[at] == several))
        fail("read and write");
      if (updater[at] != nobody && (reader[at] != nobody || writer[at] != nobody)) {
        int64_t other = reader[at] != nobody ? reader[at] : writer[at];
        if (other != updater[at] || other == several)
          fail("update and access");
      }
    }
  }
}

} // namespace triton_metal::graph

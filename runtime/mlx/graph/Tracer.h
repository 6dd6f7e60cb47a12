// Makes MLX's graph of a launch, operation by operation, for all programs at once.
#ifndef TRITON_METAL_RUNTIME_MLX_GRAPH_TRACER_H
#define TRITON_METAL_RUNTIME_MLX_GRAPH_TRACER_H

#include "runtime/mlx/graph/Attention.h"
#include "runtime/mlx/graph/LoopPlan.h"
#include "runtime/mlx/graph/OuterAxes.h"

#include <array>
#include <map>
#include <set>

namespace triton_metal::graph {

/// An argument of a launch: the number of a buffer, or a scalar's bits.
struct Argument {
  int buffer = -1;
  int64_t bits = 0;
};

/// One load, store or atomic update, for the judgement of their order.
struct Access {
  enum Kind { Read, Write, Update } kind;
  /// For updates: which one. Those of one kind may come in any order.
  int64_t update;
  Value place;
  /// Null where every element takes part.
  std::optional<Value> mask;
  /// Whether a write is proven to have one place for each program and element.
  bool isDistinct;
  /// Whether two elements may not have one place: the first one found what the second one does not.
  bool mustBeDistinct;
  Extents extents;
  Place source;
};

struct Buffer {
  /// The elements, flat.
  mx::array elements;
  bool isWritten = false;
  std::vector<Access> accesses;
};

/// What a graph was made of, for `summary`.
struct Summary {
  int operations = 0;
  /// Loads and stores as slices and reshapes, and those as gathers and scatters.
  int sliced = 0, gathered = 0;
  /// Assertions whose values are not there yet.
  int unchecked = 0;
  /// Whether the graph depends on the elements of arrays, which were computed for it.
  bool readsElements = false;
  /// What was raised, and what was not and why, with the place in the source.
  std::vector<std::pair<Place, std::string>> raised, fellBack;
};

/// A kernel divides the number of its program, so the dimension of the grid becomes two axes.
struct NeedsDivision {
  Division division;
};

/// Axes that are summed, with their sizes.
using SummedAxes = std::vector<std::pair<size_t, int>>;

/// A loop whose steps are traced together, along one axis.
struct RaisedLoop {
  const Operation &op;
  const Block &body;
  size_t axis;
  int size;
  /// Which steps a program takes, and how many; null where all take all.
  std::optional<Value> runs;
  std::optional<mx::array> counts;
  std::vector<Value> initial, results;
  /// Products of tiles that are a part of a sum along the axis.
  std::set<size_t> merged;
  /// The carried value that is a sum along the axes of loops around, too.
  std::optional<size_t> nested = {};
  SummedAxes around = {};
};

/// What a load takes: the elements of a flat array at places, where its mask holds.
struct LoadedElements {
  Value result;
  mx::array elements;
  Value pointer;
  /// Whether there are zeros elsewhere.
  bool fillsZeros;
  bool isGathered;
  /// The number of its check, where that is made later.
  std::optional<size_t> check;
};

/// Where a load or store must have its places inside of an array: that it does.
struct BoundsCheck {
  size_t number;
  const Operation *op;
  mx::array areInside;
  int64_t size;
};

/// Two values of the program of which a sum has the products.
struct ProductOfTiles {
  int first, second;
  /// Where their axes are among those of all products, and how many these are.
  std::vector<size_t> axesOfFirst, axesOfSecond;
  size_t rank;
  /// The axes that are summed, and the one that the sum no longer has.
  SummedAxes sums;
  std::optional<size_t> removed;
  /// The shape of the sum's tile.
  std::vector<int> shape;
};

/// What a launch leaves in each buffer, flat, which of them it writes, and how.
struct Traced {
  std::vector<mx::array> contents;
  std::vector<bool> written;
  Summary summary;
};

/// Makes the graph of a launch. `convolves` says whether convolutions are MLX's, or sums of slices.
/// Throws Refusal.
Traced trace(const Program &program, std::array<int, 3> grid,
             const std::vector<Argument> &arguments, const std::vector<mx::array> &arrays,
             bool convolves);

class Tracer {
public:
  Tracer(const Program &program, OuterAxes outer, const std::vector<Argument> &arguments,
         const std::vector<mx::array> &arrays, bool convolves);

  /// Throws Refusal, and NeedsDivision where other axes of the grid are better. Buffers that the
  /// kernel does not write are what they were.
  Traced run();

  using Handler = void (Tracer::*)(const Operation &);

private:
  // Values.
  const Value &get(int number) const { return values[static_cast<size_t>(number)]; }
  const Value &operand(const Operation &op, size_t index) const { return get(op.operands[index]); }
  void set(int number, Value value) { values[static_cast<size_t>(number)] = std::move(value); }
  void setResult(const Operation &op, Value value) { set(op.results.front(), std::move(value)); }
  /// The type of the first result.
  const Type &resultType(const Operation &op) const { return op.types.front(); }
  Value constantOf(const Type &type, int64_t bits) const;
  /// The array with the sizes that a tile has, where only broadcasting can change them.
  mx::array whole(const Value &value, const Extents &extents) const;
  Extents fullExtents(const Type &type, const Extents &of) const;
  [[noreturn]] void refuse(const Operation &op, std::string message) const {
    throw Refusal(op.place, std::move(message));
  }
  /// Computes a known value, or one whose arrays are there. Refuses under MLX's transforms.
  std::vector<int64_t> evaluate(const Value &value, const Extents &extents, Place place,
                                const char *what) const;

  // Control flow.
  std::vector<Value> runBlock(const Block &block);
  void runOperation(const Operation &op);
  void runFor(const Operation &op);
  /// The value of a loop's variable in the steps from `first` on, each `step` behind the last.
  static Value following(const Value &position, const Value &step);
  std::optional<Value> within(const std::optional<Value> &condition) const;
  void runWhile(const Operation &op);
  void runIf(const Operation &op);
  Value masked(const Value &mask) const;
  /// The mask of an access, with that of the branches around it. Null if there is none.
  std::optional<Value> activeMask(const Value *mask, size_t rank) const;
  Value choose(const Value &condition, const Value &a, const Value &b) const;
  /// The values where `condition` holds, else the old ones.
  void chooseAll(const Value &condition, std::vector<Value> &fresh,
                 const std::vector<Value> &old) const;
  Value conjunction(const Value &a, const Value &b) const;
  Value negation(const Value &value) const;
  /// A truth value of one program, if all have the same and it is known.
  std::optional<bool> uniform(const Value &condition) const;

  // Loops whose steps are traced together.
  bool raiseFor(const Operation &op, const std::vector<int64_t> &trips, const Extents &extents);
  Value variableOf(const RaisedLoop &loop) const;
  std::optional<Value> stepsOf(const RaisedLoop &loop, const Extents &extents) const;
  void runGroup(RaisedLoop &loop, const LoopGroup &group);
  void runEach(RaisedLoop &loop, size_t operation);
  void runPrevious(RaisedLoop &loop, size_t carried);
  void runReduction(RaisedLoop &loop, const LoopGroup &group);
  void runProduct(RaisedLoop &loop, const LoopGroup &group);
  void runNested(RaisedLoop &loop, const LoopGroup &group);
  /// The axes along which a carried value is a sum.
  static SummedAxes axesOf(const RaisedLoop &loop, size_t carried);
  void runSteps(RaisedLoop &loop, const LoopGroup &group);
  void runRescaled(RaisedLoop &loop, const RescaledSums &sums);
  void addUp(RaisedLoop &loop, const RescaledSums::Sum &sum);
  /// The product of a dot whose operands no step before decides; nothing for others.
  std::optional<Value> independentProduct(const RaisedLoop &loop, const LoopGroup &group,
                                          size_t operation);
  /// Which programs take a step at all; null where all do.
  static std::optional<Value> entered(const RaisedLoop &loop);
  /// What a value is when its program leaves the loop.
  Value lastOf(const RaisedLoop &loop, const Value &initial, const Value &later) const;
  Value neutralOutside(const RaisedLoop &loop, const Value &value, const std::string &combiner);
  /// Throws NotRaised where all steps of a loop together are too long.
  void checkSize(const Extents &extents) const;
  void checkSize(const Operation &op) const;

  // Arithmetic.
  void runElementwise(const Operation &op);
  bool runAffine(const Operation &op);
  /// Quotient and remainder of an affine number that is not negative. Throws NeedsDivision.
  std::optional<std::pair<Affine, Affine>> divided(const Value &value, int64_t divisor) const;
  void runCompare(const Operation &op);
  void runConstant(const Operation &op);
  void runSelect(const Operation &op);
  void runCast(const Operation &op);
  void runBitcast(const Operation &op);
  void runExternal(const Operation &op);

  // What MLX has one function for.
  /// exp(x - max(x)) / sum(exp(x - max(x))) along the last axis. Nothing for other quotients;
  /// `plain` is what the division gives.
  std::optional<Value> softmaxOf(const Operation &op, const Value &plain);
  /// 1 / (1 + exp(-x)), whose gradient is NaN where the exponential is infinite. Nothing for other
  /// quotients.
  std::optional<Value> sigmoidOf(const Operation &op);
  /// softmax(queries x keys) x values, where it ends with this quotient.
  std::optional<Value> attentionAt(const Operation &op);
  std::optional<Visible> visibleOf(const Attention &attention, int rows, int columns) const;
  /// Whether each program takes all steps of which it sees a key.
  bool seesAll(const RescaledLoop &loop, const Visible &visible, int64_t queries, int64_t keys,
               int rows, int columns) const;
  /// The number, if the launch alone decides it.
  std::optional<float> numberOf(const ScalarKey &key, const Type &type) const;
  /// An RMS norm or a layer norm along the last axis, whose last operation this is: the product
  /// with 1 / sqrt(...), its rounding to 16 bits, or what multiplies by a weight or adds a bias.
  std::optional<Value> normOf(const Operation &op, const Value &plain);

  // Sums of products as convolutions; nothing for others.
  friend class FactorReader;
  std::optional<Value> convolutionOf(const Operation &op, const ProductOfTiles &product);
  /// Of a product of tiles, also along the steps of a loop. What is added to it is left out.
  std::optional<Value> convolutionOfDot(const Operation &op, const SummedAxes &along);
  /// Of a sum of products of elements along the axis of a tile, the steps of a loop, or both.
  std::optional<Value> convolutionOfSum(const Operation &op, int number,
                                        const std::vector<int> &shape, const SummedAxes &along);
  Value addedTo(const Operation &op, const Value &initial, const Value &sum) const;
  /// What an operation that changes the shape of a tile makes of another one.
  Value reshapedBy(const Operation &op, const Value &value);

  // Shapes.
  void runProgramId(const Operation &op);
  void runNumPrograms(const Operation &op);
  void runMakeRange(const Operation &op);
  void runSplat(const Operation &op);
  void runUnsplat(const Operation &op);
  void runBroadcast(const Operation &op);
  void runExpandDims(const Operation &op);
  void runReshape(const Operation &op);
  void runTrans(const Operation &op);
  void runJoin(const Operation &op);
  void runSplit(const Operation &op);
  void runCat(const Operation &op);
  void runGather(const Operation &op);
  void runHistogram(const Operation &op);
  void runDot(const Operation &op);
  /// The product of two tiles, without what is added to it. Sums also along some outer axes.
  Value product(const Operation &op, const Value &a, const Value &b, const SummedAxes &along);
  Value sumWith(const Operation &op, const Value &product, const Value &c);

  // Reductions and scans.
  void runReduce(const Operation &op);
  void runScan(const Operation &op);
  /// The sizes of all operands of a reduction or scan, whole along its axis, and whether all are
  /// known.
  std::pair<Extents, bool> sizesAlong(const Operation &op, size_t axis) const;
  std::vector<Value> combine(const Operation &op, const std::vector<Value> &a,
                             const std::vector<Value> &b);

  // Memory.
  void runAddPtr(const Operation &op);
  /// An integer sum of an array and an affine form; false for others.
  bool runSum(const Operation &op, const Value &a, const Value &b);
  void runLoad(const Operation &op);
  void runStore(const Operation &op);
  void runAtomicRmw(const Operation &op);
  void runAtomicCas(const Operation &op);
  void runAtomicLoad(const Operation &op);
  void runAtomicStore(const Operation &op);
  Value load(const Operation &op, const Value &pointer, const Value *mask, const Value *other,
             const Type &type);
  void store(const Operation &op, const Value &pointer, const Value &value, const Value *mask);
  /// The slice that a load takes. One that is not inside of the array is refused, if it must be.
  std::optional<Value> loadWindow(const Operation &op, const Value &pointer,
                                  const std::optional<Value> &mask, const Value *other,
                                  const mx::array &elements, const Type &type,
                                  const Extents &extents, bool mustBeInside);
  /// Rows of neighbours whose first places an array holds. Nothing for other places.
  std::optional<Value> loadRows(const Operation &op, const Value &pointer,
                                const std::optional<Value> &mask, const Value *other,
                                const mx::array &elements, const Type &type,
                                const Extents &extents);
  std::optional<mx::array> storeWindow(const Operation &op, const Value &pointer,
                                       const std::optional<Value> &mask, const Value &value,
                                       const mx::array &elements);
  /// Makes these the elements of a buffer, in its own type.
  void keep(int buffer, const mx::array &elements);
  /// The elements of a buffer as numbers of a type of the same width.
  mx::array viewed(const Operation &op, int buffer, const Type &type) const;
  /// Whether the steps of a loop are among these sizes.
  bool hasSteps(const Extents &extents) const;
  mx::array safePlaces(const Operation &op, const Value &pointer, const std::optional<Value> &mask,
                       int64_t size, int64_t otherwise);
  /// Checks places later, together with others: what becomes a convolution is not looked at.
  void checkLater(const Operation &op, const mx::array &areInside, int64_t size);
  /// Makes the checks from this one on. Refuses places outside of an array.
  void makeChecks(size_t first);
  void record(const Operation &op, Access::Kind kind, int64_t update, const Value &pointer,
              const std::optional<Value> &mask, bool isDistinct, const Extents &extents,
              bool mustBeDistinct = false);
  /// Refuses a launch whose result depends on the order of its programs.
  void checkOrder(const Buffer &buffer) const;

  // Messages.
  void runAssert(const Operation &op);
  void runPrint(const Operation &op);
  void runNothing(const Operation &op) {}

  static Handler handlerOf(const std::string &name);

  const Program &program;
  OuterAxes outer;
  Summary summary;
  mutable bool readsElements = false;
  std::vector<Buffer> buffers;
  std::vector<Value> values;
  /// Constants that are 0.
  std::set<int> zeros;
  /// Loops that go on with a sum of loops around: which carried value it is, and their axes.
  std::map<const Operation *, std::pair<size_t, SummedAxes>> nestedSums;
  /// What each load takes, by its result.
  std::map<int, LoadedElements> loaded;
  /// What is checked later, and where the checks of the loop begin whose steps are traced together.
  std::vector<BoundsCheck> checks;
  size_t firstCheck = 0, numChecks = 0;
  bool convolves;
  /// By the numbers of their results.
  std::map<int, std::shared_ptr<RescaledLoop>> rescaled;
  /// Which programs run the present operation; null for all.
  std::optional<Value> active;
};

} // namespace triton_metal::graph

#endif // TRITON_METAL_RUNTIME_MLX_GRAPH_TRACER_H

#include "runtime/mlx/graph/Tracer.h"

#include "mlx/ops.h"
#include "mlx/transforms.h"

#include <algorithm>
#include <unordered_map>

namespace triton_metal::graph {

Tracer::Tracer(const Program &program, OuterAxes outer, const std::vector<Argument> &arguments,
               const std::vector<mx::array> &arrays, bool convolves)
    : program(program), outer(std::move(outer)), values(static_cast<size_t>(program.numValues)),
      convolves(convolves) {
  for (const mx::array &array : arrays)
    buffers.push_back({mx::reshape(array, {-1}), false, {}});
  for (size_t i = 0; i < program.arguments.size(); ++i) {
    const Type &type = program.arguments[i];
    const Argument &argument = arguments[i];
    Extents extents(outerAxes, 1);
    int number = program.body.arguments[i];
    if (type.isPointer())
      set(number, Value::of(type, extents, Affine::of(0, outerAxes)).withBuffer(argument.buffer));
    else
      set(number, constantOf(type, argument.bits));
  }
}

Traced Tracer::run() {
  runBlock(program.body);
  makeChecks(0);
  Traced traced;
  for (const Buffer &buffer : buffers) {
    checkOrder(buffer);
    traced.contents.push_back(buffer.elements);
    traced.written.push_back(buffer.isWritten);
  }
  traced.summary = std::move(summary);
  traced.summary.readsElements = readsElements;
  return traced;
}

Traced trace(const Program &program, std::array<int, 3> grid,
             const std::vector<Argument> &arguments, const std::vector<mx::array> &arrays,
             bool convolves) {
  std::vector<Division> divisions;
  while (true) {
    try {
      return Tracer(program, OuterAxes(grid, divisions), arguments, arrays, convolves).run();
    } catch (const NeedsDivision &needed) {
      divisions.push_back(needed.division);
    }
  }
}

/// The array of one number that has these bits.
static mx::array arrayOfBits(const Type &type, const std::vector<int64_t> &bits, mx::Shape shape) {
  if (type.isBool()) {
    std::vector<uint8_t> truths;
    for (int64_t bit : bits)
      truths.push_back(bit & 1);
    return mx::astype(mx::array(truths.begin(), shape, mx::uint8), mx::bool_);
  }
  auto make = [&](auto number, mx::Dtype dtype) {
    std::vector<decltype(number)> numbers(bits.begin(), bits.end());
    return mx::view(mx::array(numbers.begin(), shape, dtype), type.dtype());
  };
  switch (type.width()) {
  case 8:
    return make(int8_t(), mx::int8);
  case 16:
    return make(int16_t(), mx::int16);
  case 32:
    return make(int32_t(), mx::int32);
  default:
    return make(int64_t(), mx::int64);
  }
}

Value Tracer::constantOf(const Type &type, int64_t bits) const {
  size_t rank = outerAxes + type.shape.size();
  Extents extents(rank, 1);
  if (type.isBool())
    return Value::of(type, extents,
                     bits & 1 ? std::vector<Affine>() : std::vector{Affine::of(-1, rank)});
  if (!type.isFloat())
    return Value::of(type, extents, Affine::of(bits, rank));
  return Value::of(type, extents, arrayOfBits(type, {bits}, mx::Shape(rank, 1)), true);
}

void Tracer::runConstant(const Operation &op) {
  const Type &type = resultType(op);
  const nlohmann::json &value = op.attributes.at("value");
  if (!value.is_array()) {
    if (value.get<int64_t>() == 0)
      zeros.insert(op.results.front());
    return setResult(op, constantOf(type, value.get<int64_t>()));
  }
  auto bits = value.get<std::vector<int64_t>>();
  if (std::all_of(bits.begin(), bits.end(), [](int64_t number) { return number == 0; }))
    zeros.insert(op.results.front());
  if (bits.size() == 1)
    return setResult(op, constantOf(type, bits.front()));
  Extents extents(outerAxes, 1);
  extents.insert(extents.end(), type.shape.begin(), type.shape.end());
  setResult(op,
            Value::of(type, extents,
                      arrayOfBits(type, bits, mx::Shape(extents.begin(), extents.end())), true));
}

Extents Tracer::fullExtents(const Type &type, const Extents &of) const {
  Extents extents(of.begin(), of.begin() + outerAxes);
  extents.insert(extents.end(), type.shape.begin(), type.shape.end());
  return extents;
}

mx::array Tracer::whole(const Value &value, const Extents &extents) const {
  const mx::array &array = value.array();
  if (value.extents() == extents)
    return array;
  return mx::broadcast_to(array, mx::Shape(extents.begin(), extents.end()));
}

std::vector<int64_t> Tracer::evaluate(const Value &value, const Extents &extents, Place place,
                                      const char *what) const {
  mx::array numbers = mx::contiguous(mx::astype(whole(value, extents), mx::int64));
  if (!value.isKnown() && numbers.is_tracer())
    throw Refusal(place, std::string(what) +
                             " depends on the elements of an array, and there are none while "
                             "mx.compile, mx.grad, mx.jvp or mx.vmap traces a function");
  readsElements |= !value.isKnown();
  mx::eval(numbers);
  const int64_t *data = numbers.data<int64_t>();
  return {data, data + numbers.size()};
}

Tracer::Handler Tracer::handlerOf(const std::string &name) {
  static const std::unordered_map<std::string, Handler> handlers = {
      {"arith.constant", &Tracer::runConstant},
      {"arith.cmpi", &Tracer::runCompare},
      {"arith.cmpf", &Tracer::runCompare},
      {"arith.select", &Tracer::runSelect},
      {"arith.bitcast", &Tracer::runBitcast},
      {"arith.extsi", &Tracer::runCast},
      {"arith.extui", &Tracer::runCast},
      {"arith.trunci", &Tracer::runCast},
      {"arith.extf", &Tracer::runCast},
      {"arith.truncf", &Tracer::runCast},
      {"arith.sitofp", &Tracer::runCast},
      {"arith.uitofp", &Tracer::runCast},
      {"arith.fptosi", &Tracer::runCast},
      {"arith.fptoui", &Tracer::runCast},
      {"arith.index_cast", &Tracer::runCast},
      {"arith.index_castui", &Tracer::runCast},
      {"tt.fp_to_fp", &Tracer::runCast},
      {"tt.bitcast", &Tracer::runBitcast},
      {"tt.extern_elementwise", &Tracer::runExternal},
      {"tt.get_program_id", &Tracer::runProgramId},
      {"tt.get_num_programs", &Tracer::runNumPrograms},
      {"tt.make_range", &Tracer::runMakeRange},
      {"tt.splat", &Tracer::runSplat},
      {"tt.unsplat", &Tracer::runUnsplat},
      {"tt.broadcast", &Tracer::runBroadcast},
      {"tt.expand_dims", &Tracer::runExpandDims},
      {"tt.reshape", &Tracer::runReshape},
      {"tt.trans", &Tracer::runTrans},
      {"tt.join", &Tracer::runJoin},
      {"tt.split", &Tracer::runSplit},
      {"tt.cat", &Tracer::runCat},
      {"tt.gather", &Tracer::runGather},
      {"tt.histogram", &Tracer::runHistogram},
      {"tt.dot", &Tracer::runDot},
      {"tt.reduce", &Tracer::runReduce},
      {"tt.scan", &Tracer::runScan},
      {"tt.addptr", &Tracer::runAddPtr},
      {"tt.load", &Tracer::runLoad},
      {"tt.store", &Tracer::runStore},
      {"tt.atomic_rmw", &Tracer::runAtomicRmw},
      {"tt.atomic_cas", &Tracer::runAtomicCas},
      {"tt.atomic_load", &Tracer::runAtomicLoad},
      {"tt.atomic_store", &Tracer::runAtomicStore},
      {"tt.assert", &Tracer::runAssert},
      {"tt.print", &Tracer::runPrint},
      // All programs run each operation together.
      {"ttg.barrier", &Tracer::runNothing},
      {"ttg.local_barrier", &Tracer::runNothing},
      {"llvm.intr.assume", &Tracer::runNothing},
      {"scf.for", &Tracer::runFor},
      {"scf.while", &Tracer::runWhile},
      {"scf.if", &Tracer::runIf},
  };
  auto found = handlers.find(name);
  return found == handlers.end() ? nullptr : found->second;
}

void Tracer::runOperation(const Operation &op) {
  ++summary.operations;
  if (Handler handler = handlerOf(op.name))
    return (this->*handler)(op);
  if (op.name == "ub.poison") {
    // Any number will do.
    return setResult(op, resultType(op).isPointer()
                             ? Value::of(resultType(op),
                                         Extents(outerAxes + resultType(op).shape.size(), 1),
                                         Affine::of(0, outerAxes + resultType(op).shape.size()))
                             : constantOf(resultType(op), 0));
  }
  runElementwise(op);
}

std::vector<Value> Tracer::runBlock(const Block &block) {
  for (const Operation &op : block.operations) {
    if (op.name == "scf.yield" || op.name == "tt.return" || op.name == "scf.condition" ||
        op.name == "tt.reduce.return" || op.name == "tt.scan.return") {
      std::vector<Value> results;
      for (int number : op.operands)
        results.push_back(get(number));
      return results;
    }
    runOperation(op);
  }
  return {};
}

} // namespace triton_metal::graph

// The language builder: one method for each operation that a program can write.
#include "Bindings.h"
#include "LentModule.h"

namespace triton_metal {

using namespace language;
using nb::arg;

namespace {

struct BlockRef {
  mlir::Block *block;
};

using OptionalOperand = std::optional<Operand>;
using Shape = std::vector<int64_t>;

template <typename Enum>
void bindEnum(nb::module_ &module, const char *name,
              std::initializer_list<std::pair<const char *, Enum>> values) {
  nb::enum_<Enum> binding(module, name);
  for (auto [spelled, value] : values)
    binding.value(spelled, value);
}

void bindEnums(nb::module_ &module) {
  bindEnum<BinaryOp>(module, "BinaryOp",
                     {{"add", BinaryOp::Add},
                      {"sub", BinaryOp::Sub},
                      {"mul", BinaryOp::Mul},
                      {"truediv", BinaryOp::TrueDiv},
                      {"floordiv", BinaryOp::FloorDiv},
                      {"mod", BinaryOp::Mod},
                      {"and_", BinaryOp::And},
                      {"or_", BinaryOp::Or},
                      {"xor", BinaryOp::Xor},
                      {"lshift", BinaryOp::Shl},
                      {"rshift", BinaryOp::Shr},
                      {"logical_and", BinaryOp::LogicalAnd},
                      {"logical_or", BinaryOp::LogicalOr},
                      {"lt", BinaryOp::Lt},
                      {"le", BinaryOp::Le},
                      {"gt", BinaryOp::Gt},
                      {"ge", BinaryOp::Ge},
                      {"eq", BinaryOp::Eq},
                      {"ne", BinaryOp::Ne}});
  bindEnum<UnaryOp>(module, "UnaryOp",
                    {{"neg", UnaryOp::Neg},
                     {"pos", UnaryOp::Plus},
                     {"invert", UnaryOp::Invert},
                     {"not_", UnaryOp::Not}});
  bindEnum<MathOp>(module, "MathOp",
                   {{"exp", MathOp::Exp},
                    {"exp2", MathOp::Exp2},
                    {"log", MathOp::Log},
                    {"log2", MathOp::Log2},
                    {"sin", MathOp::Sin},
                    {"cos", MathOp::Cos},
                    {"sqrt", MathOp::Sqrt},
                    {"sqrt_rn", MathOp::SqrtRn},
                    {"rsqrt", MathOp::Rsqrt},
                    {"erf", MathOp::Erf},
                    {"floor", MathOp::Floor},
                    {"ceil", MathOp::Ceil}});
  bindEnum<AtomicOp>(module, "AtomicOp",
                     {{"add", AtomicOp::Add},
                      {"and_", AtomicOp::And},
                      {"or_", AtomicOp::Or},
                      {"xor", AtomicOp::Xor},
                      {"max", AtomicOp::Max},
                      {"min", AtomicOp::Min},
                      {"xchg", AtomicOp::Xchg}});
  bindEnum<Hint>(module, "Hint",
                 {{"divisibility", Hint::Divisibility},
                  {"contiguity", Hint::Contiguity},
                  {"constancy", Hint::Constancy}});
}

void bindValues(nb::class_<Builder> &builder) {
  builder
      .def("type_of",
           [](Builder &, nb::handle number) {
             Constant constant;
             if (!toConstant(number, constant))
               throw nb::type_error("only bool, int and float have a dtype of their own");
             return unwrap(Builder::typeOf(constant));
           })
      .def("computation_type",
           [](Builder &, Type a, bool aIsNumber, Type b, bool bIsNumber, bool divOrMod) {
             return unwrap(Builder::computationType(a, aIsNumber, b, bIsNumber, divOrMod));
           })
      .def("to_tensor", [](Builder &b, const Operand &x) { return unwrap(b.toTensor(x)); })
      .def("full", [](Builder &b, const Shape &shape, const Operand &x,
                      const Type &type) { return unwrap(b.full(shape, x, type)); })
      .def("poison", &Builder::poison)
      .def("arange",
           [](Builder &b, int64_t start, int64_t end) { return unwrap(b.arange(start, end)); })
      .def("program_id", [](Builder &b, int64_t axis) { return unwrap(b.programId(axis)); })
      .def("num_programs", [](Builder &b, int64_t axis) { return unwrap(b.numPrograms(axis)); })
      .def("operands",
           [](Builder &b, const Operand &x, const Operand &y) { return unwrap(b.operands(x, y)); })
      .def("binary", [](Builder &b, BinaryOp op, const Operand &x,
                        const Operand &y) { return unwrap(b.binary(op, x, y)); })
      .def("unary", [](Builder &b, UnaryOp op, const Operand &x) { return unwrap(b.unary(op, x)); })
      .def("math", [](Builder &b, MathOp op, const Operand &x) { return unwrap(b.math(op, x)); })
      .def("abs", [](Builder &b, const Operand &x) { return unwrap(b.abs(x)); })
      .def("fdiv", [](Builder &b, const Operand &x, const Operand &y,
                      bool ieee) { return unwrap(b.fdiv(x, y, ieee)); })
      .def("div_rn",
           [](Builder &b, const Operand &x, const Operand &y) { return unwrap(b.divRn(x, y)); })
      .def("umulhi",
           [](Builder &b, const Operand &x, const Operand &y) { return unwrap(b.umulhi(x, y)); })
      .def("minimum", [](Builder &b, const Operand &x, const Operand &y,
                         bool nan) { return unwrap(b.minimum(x, y, nan)); })
      .def("maximum", [](Builder &b, const Operand &x, const Operand &y,
                         bool nan) { return unwrap(b.maximum(x, y, nan)); })
      .def("clamp", [](Builder &b, const Operand &x, const Operand &low, const Operand &high,
                       bool nan) { return unwrap(b.clamp(x, low, high, nan)); })
      .def("extern_elementwise",
           [](Builder &b, const std::string &symbol, const std::vector<Value> &values,
              const Type &scalar) { return unwrap(b.externElementwise(symbol, values, scalar)); })
      .def("fma", [](Builder &b, const Operand &x, const Operand &y,
                     const Operand &z) { return unwrap(b.fma(x, y, z)); })
      .def("where", [](Builder &b, const Operand &c, const Operand &x,
                       const Operand &y) { return unwrap(b.where(c, x, y)); })
      .def("cast", [](Builder &b, const Operand &x, const Type &type,
                      const std::string &rounding) { return unwrap(b.cast(x, type, rounding)); })
      .def("bitcast", [](Builder &b, const Operand &x,
                         const Type &type) { return unwrap(b.bitcast(x, type)); })
      .def("splat",
           [](Builder &b, const Value &x, const Shape &shape) { return unwrap(b.splat(x, shape)); })
      .def("unsplat", [](Builder &b, const Value &x) { return unwrap(b.unsplat(x)); })
      .def("reshape", [](Builder &b, const Value &x, const Shape &shape,
                         bool reorder) { return unwrap(b.reshape(x, shape, reorder)); })
      .def("expand_dims",
           [](Builder &b, const Value &x, int64_t axis) { return unwrap(b.expandDims(x, axis)); })
      .def("broadcast_to", [](Builder &b, const Value &x,
                              const Shape &shape) { return unwrap(b.broadcastTo(x, shape)); })
      .def("broadcast",
           [](Builder &b, const Value &x, const Value &y) { return unwrap(b.broadcast(x, y)); })
      .def("permute", [](Builder &b, const Value &x,
                         const Shape &order) { return unwrap(b.permute(x, order)); })
      .def("cat", [](Builder &b, const Value &x, const Value &y) { return unwrap(b.cat(x, y)); })
      .def("join", [](Builder &b, const Value &x, const Value &y) { return unwrap(b.join(x, y)); })
      .def("split", [](Builder &b, const Value &x) { return unwrap(b.split(x)); })
      .def("gather", [](Builder &b, const Value &source, const Value &index,
                        int64_t axis) { return unwrap(b.gather(source, index, axis)); })
      .def(
          "histogram",
          [](Builder &b, const Value &x, int64_t bins, std::optional<Value> mask) {
            return unwrap(b.histogram(x, bins, mask));
          },
          arg("input"), arg("bins"), arg("mask").none());
}

void bindEffects(nb::class_<Builder> &builder) {
  builder
      .def(
          "load",
          [](Builder &b, const Value &pointer, OptionalOperand mask, OptionalOperand other,
             const std::string &cache, const std::string &eviction, bool isVolatile) {
            return unwrap(b.load(pointer, mask, other, cache, eviction, isVolatile));
          },
          arg("pointer"), arg("mask").none(), arg("other").none(), arg("cache"), arg("eviction"),
          arg("volatile"))
      .def(
          "store",
          [](Builder &b, const Value &pointer, const Operand &value, OptionalOperand mask,
             const std::string &cache, const std::string &eviction) {
            unwrap(b.store(pointer, value, mask, cache, eviction));
          },
          arg("pointer"), arg("value"), arg("mask").none(), arg("cache"), arg("eviction"))
      .def(
          "atomic_rmw",
          [](Builder &b, AtomicOp op, const Value &pointer, const Operand &value,
             OptionalOperand mask, const std::string &sem, const std::string &scope) {
            return unwrap(b.atomicRmw(op, pointer, value, mask, sem, scope));
          },
          arg("op"), arg("pointer"), arg("value"), arg("mask").none(), arg("sem"), arg("scope"))
      .def(
          "atomic_load",
          [](Builder &b, const Value &pointer, OptionalOperand mask, const std::string &sem,
             const std::string &scope) { return unwrap(b.atomicLoad(pointer, mask, sem, scope)); },
          arg("pointer"), arg("mask").none(), arg("sem"), arg("scope"))
      .def(
          "atomic_store",
          [](Builder &b, const Value &pointer, const Operand &value, OptionalOperand mask,
             const std::string &sem,
             const std::string &scope) { unwrap(b.atomicStore(pointer, value, mask, sem, scope)); },
          arg("pointer"), arg("value"), arg("mask").none(), arg("sem"), arg("scope"))
      .def(
          "atomic_poll",
          [](Builder &b, const Value &pointer, const Operand &expected, const std::string &sem,
             const std::string &scope, OptionalOperand timeout) {
            return unwrap(b.atomicPoll(pointer, expected, sem, scope, timeout));
          },
          arg("pointer"), arg("expected"), arg("sem"), arg("scope"), arg("timeout").none())
      .def("atomic_cas",
           [](Builder &b, const Value &pointer, const Operand &compare, const Operand &value,
              const std::string &sem, const std::string &scope) {
             return unwrap(b.atomicCas(pointer, compare, value, sem, scope));
           })
      .def(
          "dot",
          [](Builder &b, const Value &lhs, const Value &rhs, std::optional<Value> acc,
             const std::string &precision, std::optional<Type> outType, int64_t maxImprecise) {
            return unwrap(b.dot(lhs, rhs, acc, precision, outType, maxImprecise));
          },
          arg("lhs"), arg("rhs"), arg("acc").none(), arg("input_precision"),
          arg("out_dtype").none(), arg("max_num_imprecise_acc"))
      .def(
          "dot_scaled",
          [](Builder &b, const Value &lhs, std::optional<Value> lhsScale,
             const std::string &lhsFormat, const Value &rhs, std::optional<Value> rhsScale,
             const std::string &rhsFormat, std::optional<Value> acc, bool fastMath, bool lhsKPack,
             bool rhsKPack, Type outType) {
            return unwrap(b.dotScaled({lhs, lhsScale, lhsFormat, lhsKPack},
                                      {rhs, rhsScale, rhsFormat, rhsKPack}, acc, fastMath,
                                      outType));
          },
          arg("lhs"), arg("lhs_scale").none(), arg("lhs_format"), arg("rhs"),
          arg("rhs_scale").none(), arg("rhs_format"), arg("acc").none(), arg("fast_math"),
          arg("lhs_k_pack"), arg("rhs_k_pack"), arg("out_dtype"))
      .def("hint", [](Builder &b, Hint kind, const Value &x,
                      const Shape &values) { unwrap(b.hint(kind, x, values)); })
      .def("assume", [](Builder &b, const Operand &condition) { unwrap(b.assume(condition)); })
      .def(
          "device_assert",
          [](Builder &b, const Operand &condition, const std::string &message,
             OptionalOperand mask) { unwrap(b.deviceAssert(condition, message, mask)); },
          arg("condition"), arg("message"), arg("mask").none())
      .def("device_print",
           [](Builder &b, const std::string &prefix, const std::vector<Value> &values, bool hex) {
             unwrap(b.devicePrint(prefix, values, hex));
           })
      .def("debug_barrier", &Builder::debugBarrier);
}

void bindFunctions(nb::class_<Builder> &builder) {
  builder
      .def("begin_function",
           [](Builder &b, const std::string &name, const std::vector<Type> &params,
              const std::vector<std::string> &names, bool isKernel, bool noinline,
              const Shape &divisibility, const Shape &memory) {
             return b.beginFunction(name, params, names, isKernel, noinline, divisibility, memory);
           })
      .def("set_argument_flag", [](Builder &b, const Value &argument, const std::string &name,
                                   bool flag) { b.setArgumentFlag(argument, name, flag); })
      .def("emit_return",
           [](Builder &b, const BlockRef &block, const std::vector<Value> &values) {
             b.emitReturn(block.block, values);
           })
      .def("end_function",
           [](Builder &b, const std::vector<Type> &results) { b.endFunction(results); })
      .def("has_function", [](Builder &b, const std::string &name) { return b.hasFunction(name); })
      .def("call",
           [](Builder &b, const std::string &name, const std::vector<Value> &arguments) {
             return unwrap(b.call(name, arguments));
           })
      .def("current_block", [](Builder &b) { return BlockRef{b.currentBlock()}; })
      .def("set_block", [](Builder &b, const BlockRef &block) { b.setBlock(block.block); })
      .def("create_block", [](Builder &b) { return BlockRef{b.createBlock()}; })
      .def("add_arguments",
           [](Builder &b, const BlockRef &block, const std::vector<Type> &types) {
             return b.addArguments(block.block, types);
           })
      .def("branch", [](Builder &b, const BlockRef &target,
                        const std::vector<Value> &values) { b.branch(target.block, values); })
      .def("cond_branch",
           [](Builder &b, const Value &condition, const BlockRef &thenBlock,
              const BlockRef &elseBlock) {
             b.condBranch(condition, thenBlock.block, elseBlock.block);
           })
      .def("condition", [](Builder &b, const Value &value) { return unwrap(b.condition(value)); })
      .def(
          "begin_for",
          [](Builder &b, const Operand &lower, const Operand &upper, const Operand &step,
             const std::vector<Value> &inits, std::optional<int64_t> numStages,
             std::optional<int64_t> unroll, bool disallowAcc, bool flatten, bool warpSpecialize,
             bool disableLicm) {
            return unwrap(ForLoop::begin(
                b, lower, upper, step, inits,
                {numStages, unroll, disallowAcc, flatten, warpSpecialize, disableLicm}));
          },
          arg("lower"), arg("upper"), arg("step"), arg("inits"), arg("num_stages").none(),
          arg("unroll").none(), arg("disallow_acc_multi_buffer"), arg("flatten"),
          arg("warp_specialize"), arg("disable_licm"), nb::keep_alive<0, 1>())
      .def(
          "begin_while",
          [](Builder &b, const std::vector<Value> &inits) {
            return std::make_unique<WhileLoop>(b, inits);
          },
          nb::keep_alive<0, 1>())
      .def(
          "begin_if",
          [](Builder &b, const Value &condition) {
            return std::make_unique<IfRegion>(b, condition);
          },
          nb::keep_alive<0, 1>())
      .def(
          "begin_reduce",
          [](Builder &b, const std::vector<Value> &inputs, int64_t axis) {
            return unwrap(CombineRegion::reduce(b, inputs, axis));
          },
          nb::keep_alive<0, 1>())
      .def(
          "begin_scan",
          [](Builder &b, const std::vector<Value> &inputs, int64_t axis, bool reverse) {
            return unwrap(CombineRegion::scan(b, inputs, axis, reverse));
          },
          nb::keep_alive<0, 1>())
      .def(
          "begin_map",
          [](Builder &b, const std::vector<Value> &inputs, int64_t pack) {
            return unwrap(CombineRegion::map(b, inputs, pack));
          },
          nb::keep_alive<0, 1>());
}

} // namespace

void bindBuilder(nb::module_ &module) {
  bindEnums(module);

  nb::class_<LentModule> modules(module, "Module", "The TTIR of one kernel.");
  modules.def(nb::init<>())
      .def("__str__", [](LentModule &m) { return m.str(); })
      .def(
          "str", [](LentModule &m, bool debugInfo) { return m.str(debugInfo); },
          arg("debug_info") = true)
      .def(
          "verify",
          [](LentModule &m) {
            unwrap(m.verify());
            return true;
          },
          "True; raises ValueError with what is wrong.")
      .def("drop_idle_divisibility", &LentModule::dropIdleDivisibility, arg("least"),
           "Takes the divisibility below `least` from arguments on which no address and no mask "
           "depends, and returns their names.");
  bindOperations(module, modules);

  nb::class_<BlockRef>(module, "Block");
  nb::class_<ForLoop>(module, "ForLoop")
      .def_ro("arguments", &ForLoop::arguments)
      .def_ro("induction", &ForLoop::induction)
      .def("finish",
           [](ForLoop &loop, const std::vector<Value> &yields) { return loop.finish(yields); });
  nb::class_<WhileLoop>(module, "WhileLoop")
      .def_ro("arguments", &WhileLoop::arguments)
      .def("end_condition", &WhileLoop::endCondition)
      .def("disable_licm", &WhileLoop::disableLicm)
      .def("finish",
           [](WhileLoop &loop, const std::vector<Value> &yields) { return loop.finish(yields); });
  nb::class_<IfRegion>(module, "IfRegion")
      .def("begin_else", &IfRegion::beginElse)
      .def("finish", [](IfRegion &region, const std::vector<Value> &thenValues,
                        const std::vector<Value> &elseValues) {
        return region.finish(thenValues, elseValues);
      });
  nb::class_<CombineRegion>(module, "CombineRegion")
      .def_ro("arguments", &CombineRegion::arguments)
      .def("finish", [](CombineRegion &region, const std::vector<Value> &results) {
        return unwrap(region.finish(results));
      });

  nb::class_<Builder> builder(module, "Builder", "Emits the operations of one module.");
  builder.def(nb::init<std::shared_ptr<LentModule>>())
      .def("set_location", [](Builder &b, const std::string &file, unsigned line,
                              unsigned column) { b.setLocation(file, line, column); })
      .def("set_name",
           [](Builder &b, const Value &value, const std::string &name) { b.setName(value, name); });
  bindValues(builder);
  bindEffects(builder);
  bindFunctions(builder);
}

} // namespace triton_metal

NB_MODULE(_native, module) {
  if (PyInterpreterState_Get() != PyInterpreterState_Main())
    throw nb::import_error("triton_metal works in the main interpreter of a process alone");
  module.doc() = "The compiled part of triton_metal.";
  triton_metal::bindTypes(module);
  triton_metal::bindBuilder(module);
  triton_metal::bindBlocks(module);
  triton_metal::bindCompiler(module);
  triton_metal::bindHostDevice(module);
  triton_metal::bindReads(module);
  triton_metal::bindLauncher(module);
  triton_metal::bindDevices(module);
  triton_metal::bindMetalLibrary(module);
  triton_metal::bindProfile(module);
  // Kernels live as long as the functions that they belong to: as long as the process.
  nb::set_leak_warnings(false);
}

// Kernels as SPIR-V of OpenCL's kind, for Mesa's compilers. Functions called nir_X become the
// operation X of Mesa's IR.
#include "Gpu.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;
using namespace llvm::PatternMatch;

namespace triton_metal::gpu {

namespace {

class Spirv final : public Gpu {
public:
  explicit Spirv(Module &module) : module(module) {}

  Value *unit(IRBuilder<> &b, Unit what, Value *x) override {
    static constexpr const char *names[] = {"fexp2", "flog2", "frcp", "frsq",
                                            "fsqrt", "fsin",  "fcos"};
    return nir(b, names[static_cast<unsigned>(what)], x->getType(), {x});
  }
  /// Two steps of Newton's method after the reciprocal, for the precise form.
  Value *divide(IRBuilder<> &b, Value *x, Value *y, bool isFast) override {
    Value *reciprocal = unit(b, Unit::Reciprocal, y);
    if (isFast)
      return b.CreateFMul(x, reciprocal);
    auto fma = [&](Value *p, Value *q, Value *r) {
      return b.CreateIntrinsic(Intrinsic::fma, {x->getType()}, {p, q, r});
    };
    Value *minus = b.CreateFNeg(y);
    reciprocal =
        fma(fma(minus, reciprocal, ConstantFP::get(x->getType(), 1)), reciprocal, reciprocal);
    Value *quotient = b.CreateFMul(x, reciprocal);
    return fma(fma(minus, quotient, x), reciprocal, quotient);
  }
  Value *order(IRBuilder<> &b, bool isMax, Value *x, Value *y) override {
    std::string name = isMax ? "fmax" : "fmin";
    return nir(b, x->getType()->isFloatTy() ? name + "_agx" : name, x->getType(), {x, y});
  }

  Value *lane(IRBuilder<> &b) override {
    return call(b, "_Z22get_sub_group_local_idv", b.getInt32Ty(), {});
  }
  Value *shuffle(IRBuilder<> &b, Value *value, Source source) override {
    static constexpr const char *names[] = {"shuffle", "shuffle_xor", "shuffle_up", "shuffle_down"};
    std::string name = names[static_cast<unsigned>(source.kind)];
    if (source.kind == Source::Kind::Lane && isa<ConstantInt>(source.operand))
      name = "read_invocation";
    return nir(b, name, b.getInt32Ty(), {value, source.operand}, /*isConvergent=*/true);
  }
  Value *ballot(IRBuilder<> &b, Value *condition) override {
    Type *votes = FixedVectorType::get(b.getInt32Ty(), 4);
    Value *all =
        call(b, "_Z16sub_group_balloti", votes, {b.CreateZExt(condition, b.getInt32Ty())}, true);
    return b.CreateExtractElement(all, uint64_t(0));
  }
  Value *reduce(IRBuilder<> &b, Across what, Number number, Value *value) override {
    return across(b, isGroup(what) ? "sub_group_reduce_" : "sub_group_non_uniform_reduce_", what,
                  number, value);
  }
  Value *scan(IRBuilder<> &b, Across what, Number number, bool isInclusive, Value *value) override {
    std::string name = isGroup(what) ? "sub_group_scan_" : "sub_group_non_uniform_scan_";
    return across(b, name + (isInclusive ? "inclusive_" : "exclusive_"), what, number, value);
  }
  Value *multiply(IRBuilder<> &b, Value *left, Value *right, Value *sum) override {
    return nir(b, "matrix_multiply_add_agx", sum->getType(),
               {halves(b, left), halves(b, right), sum}, true);
  }
  void threadgroupBarrier(IRBuilder<> &b) override {
    call(b, "_Z7barrierj", b.getVoidTy(), {b.getInt32(1)}, true);
  }
  /// The hardware runs a SIMD-group in step.
  void simdgroupBarrier(IRBuilder<> &) override {}

  Value *position(IRBuilder<> &b, Position what, unsigned dimension) override {
    auto id = [&](StringRef name) -> Value * {
      return b.CreateTrunc(call(b, name, b.getInt64Ty(), {b.getInt32(dimension)}), b.getInt32Ty());
    };
    switch (what) {
    case Position::ThreadPositionInGrid:
      return id("_Z13get_global_idj");
    case Position::ThreadPositionInThreadgroup:
    case Position::ThreadIndexInThreadgroup: // groups are as long as they are large
      return id("_Z12get_local_idj");
    case Position::ThreadgroupPositionInGrid:
      return id("_Z12get_group_idj");
    case Position::ThreadIndexInSimdgroup:
      return b.CreateCall(module.getOrInsertFunction("__tm_lane", b.getInt32Ty()));
    case Position::SimdgroupIndexInThreadgroup:
      return call(b, "_Z16get_sub_group_idv", b.getInt32Ty(), {});
    case Position::ThreadsPerSimdgroup:
    case Position::ThreadExecutionWidth:
      return b.getInt32(simdWidth);
    case Position::ThreadsPerThreadgroup:
    case Position::DispatchThreadsPerThreadgroup:
      return b.getInt32(dimension ? 1 : threads);
    case Position::SimdgroupsPerThreadgroup:
    case Position::DispatchSimdgroupsPerThreadgroup:
      return b.getInt32(divideCeil(threads, simdWidth));
    default:
      return nullptr;
    }
  }

  unsigned addressSpace(unsigned space) override { return space; }
  bool hasBuffersByValue() override { return false; }
  bool hasBfloat() override { return false; }
  void makeEntry(Function &kernel, unsigned count) override {
    LLVMContext &context = kernel.getContext();
    Type *i32 = Type::getInt32Ty(context);
    auto number = [&](unsigned n) { return ConstantAsMetadata::get(ConstantInt::get(i32, n)); };
    kernel.setMetadata("reqd_work_group_size",
                       MDNode::get(context, {number(count), number(1), number(1)}));
  }
  CallingConv::ID callingConvention() override { return CallingConv::SPIR_KERNEL; }
  void setThreads(unsigned count) override { threads = count; }

private:
  Value *call(IRBuilder<> &b, StringRef name, Type *result, ArrayRef<Value *> arguments,
              bool isConvergent = false) {
    SmallVector<Type *> types;
    for (Value *argument : arguments)
      types.push_back(argument->getType());
    FunctionCallee callee =
        module.getOrInsertFunction(name, FunctionType::get(result, types, false));
    auto *function = cast<Function>(callee.getCallee());
    function->setCallingConv(CallingConv::SPIR_FUNC);
    function->setDoesNotThrow();
    if (isConvergent)
      function->setConvergent();
    else
      function->setDoesNotAccessMemory();
    CallInst *made = b.CreateCall(callee, arguments);
    made->setCallingConv(CallingConv::SPIR_FUNC);
    if (isConvergent)
      made->setConvergent();
    return made;
  }

  /// The suffix keeps functions of several types apart.
  Value *nir(IRBuilder<> &b, const std::string &name, Type *result, ArrayRef<Value *> arguments,
             bool isConvergent = false) {
    std::string full = "nir_" + name + "__";
    for (Value *argument : arguments)
      full += argument->getType()->getScalarType()->isHalfTy() ? 'h'
              : argument->getType()->isIntOrIntVectorTy()      ? 'i'
                                                               : 'f';
    return call(b, full, result, arguments, isConvergent);
  }

  static bool isGroup(Across what) {
    return what == Across::Sum || what == Across::Min || what == Across::Max;
  }

  Value *across(IRBuilder<> &b, std::string name, Across what, Number number, Value *value) {
    static constexpr const char *operations[] = {"add", "mul", "min", "max", "and", "or", "xor"};
    name += operations[static_cast<unsigned>(what)];
    std::string type = number == Number::Float ? "f" : number == Number::Signed ? "i" : "j";
    return call(b, "_Z" + std::to_string(name.size()) + name + type, value->getType(), {value},
                true);
  }

  /// The instruction takes halves as they are: two that were widened become what they were.
  static Value *halves(IRBuilder<> &b, Value *pair) {
    Value *x, *y;
    auto *vector = FixedVectorType::get(b.getHalfTy(), 2);
    if (match(pair, m_InsertElt(m_InsertElt(m_Value(), m_FPExt(m_Value(x)), m_SpecificInt(0)),
                                m_FPExt(m_Value(y)), m_SpecificInt(1))) &&
        x->getType()->isHalfTy() && y->getType()->isHalfTy())
      return b.CreateInsertElement(b.CreateInsertElement(PoisonValue::get(vector), x, uint64_t(0)),
                                   y, uint64_t(1));
    if (match(pair, m_FPExt(m_Value(x))) && x->getType() == vector)
      return x;
    return pair;
  }

  Module &module;
  unsigned threads = 1;
};

} // namespace

std::unique_ptr<Gpu> makeSpirv(Module &module) { return std::make_unique<Spirv>(module); }

} // namespace triton_metal::gpu

// Kernels for NVIDIA's GPUs, whose warps are as wide as SIMD-groups. They have no 8x8 matrices.
#include "Gpu.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;

namespace triton_metal::gpu {

namespace {

constexpr unsigned globalSpace = 1;

class Nvptx final : public Gpu {
public:
  explicit Nvptx(Module &module) : module(module) {}

  Value *unit(IRBuilder<> &b, Unit what, Value *x) override {
    switch (what) {
    case Unit::Exp2:
      return intrinsic(b, Intrinsic::nvvm_ex2_approx, {x}, {x->getType()});
    case Unit::Log2:
      return intrinsic(b, Intrinsic::nvvm_lg2_approx_f, {x});
    case Unit::Reciprocal:
      return intrinsic(b, Intrinsic::nvvm_rcp_approx_ftz_f, {x});
    case Unit::ReciprocalRoot:
      return intrinsic(b, Intrinsic::nvvm_rsqrt_approx_f, {x});
    case Unit::Root:
      return intrinsic(b, Intrinsic::nvvm_sqrt_approx_f, {x});
    case Unit::Sine:
      return intrinsic(b, Intrinsic::nvvm_sin_approx_f, {x});
    case Unit::Cosine:
      return intrinsic(b, Intrinsic::nvvm_cos_approx_f, {x});
    }
    return nullptr;
  }
  Value *divide(IRBuilder<> &b, Value *x, Value *y, bool) override {
    return intrinsic(b, Intrinsic::nvvm_div_full, {x, y});
  }
  Value *order(IRBuilder<> &b, bool isMax, Value *x, Value *y) override {
    return b.CreateBinaryIntrinsic(isMax ? Intrinsic::maxnum : Intrinsic::minnum, x, y);
  }

  Value *lane(IRBuilder<> &b) override {
    return intrinsic(b, Intrinsic::nvvm_read_ptx_sreg_laneid, {});
  }
  Value *shuffle(IRBuilder<> &b, Value *value, Source source) override {
    static constexpr Intrinsic::ID moves[] = {
        Intrinsic::nvvm_shfl_sync_idx_i32, Intrinsic::nvvm_shfl_sync_bfly_i32,
        Intrinsic::nvvm_shfl_sync_up_i32, Intrinsic::nvvm_shfl_sync_down_i32};
    Value *clamp = b.getInt32(source.kind == Source::Kind::Up ? 0 : 31);
    return intrinsic(b, moves[static_cast<unsigned>(source.kind)],
                     {b.getInt32(~0u), value, source.operand, clamp});
  }
  Value *ballot(IRBuilder<> &b, Value *condition) override {
    return intrinsic(b, Intrinsic::nvvm_vote_ballot_sync, {b.getInt32(~0u), condition});
  }
  Value *reduce(IRBuilder<> &b, Across what, Number number, Value *value) override {
    if (number != Number::Float && what != Across::Product)
      return intrinsic(b, integerReduction(what, number), {value, b.getInt32(~0u)});
    for (unsigned mask = 16; mask; mask /= 2)
      value =
          combine(b, what, number, value, moved(b, value, {Source::Kind::Xor, b.getInt32(mask)}));
    return value;
  }
  Value *scan(IRBuilder<> &b, Across what, Number number, bool isInclusive, Value *value) override {
    Value *identity = ConstantInt::get(b.getInt32Ty(), what == Across::Product);
    if (number == Number::Float)
      identity = ConstantFP::get(b.getFloatTy(), what == Across::Product ? 1 : 0);
    Value *place = lane(b);
    for (unsigned delta = 1; delta != simdWidth; delta *= 2) {
      Value *other = moved(b, value, {Source::Kind::Up, b.getInt32(delta)});
      Value *inside = b.CreateICmpUGE(place, b.getInt32(delta));
      value = combine(b, what, number, value, b.CreateSelect(inside, other, identity));
    }
    if (isInclusive)
      return value;
    Value *before = moved(b, value, {Source::Kind::Up, b.getInt32(1)});
    return b.CreateSelect(b.CreateIsNull(place), identity, before);
  }
  Value *multiply(IRBuilder<> &, Value *, Value *, Value *) override { return nullptr; }
  void threadgroupBarrier(IRBuilder<> &b) override {
    intrinsic(b, Intrinsic::nvvm_barrier_cta_sync_aligned_all, {b.getInt32(0)});
  }
  void simdgroupBarrier(IRBuilder<> &b) override {
    intrinsic(b, Intrinsic::nvvm_bar_warp_sync, {b.getInt32(~0u)});
  }

  Value *position(IRBuilder<> &b, Position what, unsigned dimension) override {
    static constexpr Intrinsic::ID threadIds[] = {Intrinsic::nvvm_read_ptx_sreg_tid_x,
                                                  Intrinsic::nvvm_read_ptx_sreg_tid_y,
                                                  Intrinsic::nvvm_read_ptx_sreg_tid_z};
    static constexpr Intrinsic::ID groupIds[] = {Intrinsic::nvvm_read_ptx_sreg_ctaid_x,
                                                 Intrinsic::nvvm_read_ptx_sreg_ctaid_y,
                                                 Intrinsic::nvvm_read_ptx_sreg_ctaid_z};
    static constexpr Intrinsic::ID groups[] = {Intrinsic::nvvm_read_ptx_sreg_nctaid_x,
                                               Intrinsic::nvvm_read_ptx_sreg_nctaid_y,
                                               Intrinsic::nvvm_read_ptx_sreg_nctaid_z};
    auto size = [&](unsigned d) { return b.getInt32(d ? 1 : threads); };
    switch (what) {
    case Position::ThreadPositionInGrid:
      return b.CreateAdd(b.CreateMul(intrinsic(b, groupIds[dimension], {}), size(dimension)),
                         intrinsic(b, threadIds[dimension], {}));
    case Position::ThreadPositionInThreadgroup:
      return intrinsic(b, threadIds[dimension], {});
    case Position::ThreadIndexInThreadgroup:
      return intrinsic(b, threadIds[0], {});
    case Position::ThreadgroupPositionInGrid:
      return intrinsic(b, groupIds[dimension], {});
    case Position::ThreadgroupsPerGrid:
      return intrinsic(b, groups[dimension], {});
    case Position::ThreadsPerGrid:
    case Position::GridSize:
      return b.CreateMul(intrinsic(b, groups[dimension], {}), size(dimension));
    case Position::ThreadIndexInSimdgroup:
      return b.CreateCall(module.getOrInsertFunction("__tm_lane", b.getInt32Ty()));
    case Position::SimdgroupIndexInThreadgroup:
      return b.CreateLShr(intrinsic(b, threadIds[0], {}), 5);
    case Position::ThreadsPerSimdgroup:
    case Position::ThreadExecutionWidth:
      return b.getInt32(simdWidth);
    case Position::ThreadsPerThreadgroup:
    case Position::DispatchThreadsPerThreadgroup:
      return size(dimension);
    case Position::SimdgroupsPerThreadgroup:
    case Position::DispatchSimdgroupsPerThreadgroup:
      return b.getInt32(divideCeil(threads, simdWidth));
    case Position::GridOrigin:
      return b.getInt32(0);
    default:
      return nullptr;
    }
  }

  /// Buffers of constants are buffers; they are read through the same caches.
  unsigned addressSpace(unsigned space) override {
    return space == static_cast<unsigned>(AddressSpace::Constant) ? globalSpace : space;
  }
  bool hasBuffersByValue() override { return true; }
  bool hasBfloat() override { return true; }
  void makeEntry(Function &kernel, unsigned count) override {
    kernel.addFnAttr("nvvm.reqntid", std::to_string(count) + ",1,1");
  }
  CallingConv::ID callingConvention() override { return CallingConv::PTX_Kernel; }
  void setThreads(unsigned count) override { threads = count; }

private:
  static Value *intrinsic(IRBuilder<> &b, Intrinsic::ID id, ArrayRef<Value *> arguments,
                          ArrayRef<Type *> types = {}) {
    return b.CreateIntrinsic(id, types, arguments);
  }

  Value *moved(IRBuilder<> &b, Value *value, Source source) {
    Value *bits = shuffle(b, b.CreateBitCast(value, b.getInt32Ty()), source);
    return b.CreateBitCast(bits, value->getType());
  }

  static Intrinsic::ID integerReduction(Across what, Number number) {
    bool isSigned = number == Number::Signed;
    switch (what) {
    case Across::Min:
      return isSigned ? Intrinsic::nvvm_redux_sync_min : Intrinsic::nvvm_redux_sync_umin;
    case Across::Max:
      return isSigned ? Intrinsic::nvvm_redux_sync_max : Intrinsic::nvvm_redux_sync_umax;
    case Across::And:
      return Intrinsic::nvvm_redux_sync_and;
    case Across::Or:
      return Intrinsic::nvvm_redux_sync_or;
    case Across::Xor:
      return Intrinsic::nvvm_redux_sync_xor;
    default:
      return Intrinsic::nvvm_redux_sync_add;
    }
  }

  Value *combine(IRBuilder<> &b, Across what, Number number, Value *x, Value *y) {
    bool isFloat = number == Number::Float;
    switch (what) {
    case Across::Sum:
      return isFloat ? b.CreateFAdd(x, y) : b.CreateAdd(x, y);
    case Across::Product:
      return isFloat ? b.CreateFMul(x, y) : b.CreateMul(x, y);
    default:
      return order(b, what == Across::Max, x, y);
    }
  }

  Module &module;
  unsigned threads = 1;
};

} // namespace

std::unique_ptr<Gpu> makeNvptx(Module &module) { return std::make_unique<Nvptx>(module); }

} // namespace triton_metal::gpu

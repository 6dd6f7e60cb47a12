// The functions that were not inlined (host_device/msl/OutOfLine.h). Each becomes a function of
// SIMD-groups, as the kernel does, with a frame of vectors for its operands and its result.
#include "host_device/engine/LaneFunctions.h"
#include "host_device/engine/Builtins.h"
#include "host_device/engine/Vectorize.h"
#include "host_device/msl/OutOfLine.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace triton_metal::engine {

static constexpr StringLiteral bodySuffix = ".lane", simdSuffix = ".lanes";

/// A frame is 256 bytes for each: the active lanes, the result and the operands.
static constexpr uint64_t slotBytes = 256;
static constexpr uint64_t resultSlot = slotBytes, firstOperandSlot = 2 * slotBytes;

/// The internal function with this name for numbers of a type.
static FunctionCallee declare(Module &module, StringRef name, Type *number, Type *result,
                              Type *parameter) {
  std::string full;
  raw_string_ostream(full) << name << '.' << *number;
  auto callee = module.getOrInsertFunction(full, FunctionType::get(result, {parameter}, false));
  addAttributes(*cast<Function>(callee.getCallee()), *findBuiltin(name));
  return callee;
}

/// Moves the code of a function into one without operands, which asks for them.
static Function *takeBody(Function &function) {
  Module &module = *function.getParent();
  LLVMContext &context = module.getContext();
  auto *body =
      Function::Create(FunctionType::get(Type::getVoidTy(context), false),
                       GlobalValue::ExternalLinkage, function.getName() + bodySuffix, module);
  body->addFnAttr("tm-lane-function");
  body->setSubprogram(function.getSubprogram());
  body->splice(body->begin(), &function);
  function.setSubprogram(nullptr);
  function.setLinkage(GlobalValue::ExternalLinkage);
  IRBuilder<> builder(&body->getEntryBlock(), body->getEntryBlock().getFirstInsertionPt());
  for (Argument &argument : function.args()) {
    FunctionCallee operand =
        declare(module, operandName, argument.getType(), argument.getType(), builder.getInt32Ty());
    argument.replaceAllUsesWith(
        builder.CreateCall(operand, {builder.getInt32(argument.getArgNo())}));
  }
  for (BasicBlock &block : *body)
    if (auto *end = dyn_cast<ReturnInst>(block.getTerminator())) {
      Value *value = end->getReturnValue();
      builder.SetInsertPoint(end);
      builder.CreateCall(
          declare(module, resultName, value->getType(), builder.getVoidTy(), value->getType()),
          {value});
      builder.CreateRetVoid();
      end->eraseFromParent();
    }
  return body;
}

static void collect(Function &function, SetVector<Function *> &found) {
  for (Instruction &inst : instructions(function))
    if (auto *call = dyn_cast<CallBase>(&inst))
      if (Function *callee = call->getCalledFunction();
          callee && isOutOfLine(*callee) && !found.contains(callee)) {
        collect(*callee, found);
        found.insert(callee);
      }
}

SmallVector<Function *> makeLaneFunctions(Function &kernel) {
  // Those that others call come first.
  SetVector<Function *> found;
  collect(kernel, found);
  SmallVector<Function *> bodies;
  for (Function *function : found)
    bodies.push_back(takeBody(*function));
  return bodies;
}

bool isLaneFunction(const Function &body) { return body.hasFnAttribute("tm-lane-function"); }

std::string simdNameOf(const Function &body) {
  return (body.getName().drop_back(bodySuffix.size()) + simdSuffix).str();
}

//===----------------------------------------------------------------------===//
// Code of SIMD-groups
//===----------------------------------------------------------------------===//

Value *SimdEmitter::frameSlot(Value *frame, uint64_t offset) {
  return b.CreatePtrAdd(frame, b.getInt64(offset));
}

Value *SimdEmitter::lanesOfFrame() {
  Value *bits = b.CreateAlignedLoad(b.getInt32Ty(), launch, Align(64), "active");
  return b.CreateBitCast(bits, lanesOf(b.getInt1Ty()));
}

void SimdEmitter::emitOperand(CallInst &call) {
  uint64_t number = cast<ConstantInt>(call.getArgOperand(0))->getZExtValue();
  Value *place = frameSlot(launch, firstOperandSlot + slotBytes * number);
  define(call, 0, b.CreateAlignedLoad(lanesOf(call.getType()), place, Align(64)));
}

void SimdEmitter::emitResult(CallInst &call) {
  b.CreateMaskedStore(vector(call.getArgOperand(0)), frameSlot(launch, resultSlot), Align(64),
                      mask);
}

void SimdEmitter::emitOutOfLine(CallInst &call, Function &callee) {
  Function *function = module.getFunction((callee.getName() + simdSuffix).str());
  if (!function)
    return fail(&call, Twine("internal error: '") + callee.getName() + "' has no code");
  AllocaInst *frame = slot(
      ArrayType::get(b.getInt8Ty(), firstOperandSlot + slotBytes * callee.arg_size()), "frame");
  frame->setAlignment(Align(64));
  // A uniform value is the same in lanes that take no part.
  bool isOne = isUniform(&call);
  b.CreateAlignedStore(isOne ? b.getInt32(~0u) : maskBits(mask), frame, Align(64));
  for (Use &operand : call.args())
    b.CreateAlignedStore(
        vector(operand),
        frameSlot(frame, firstOperandSlot + slotBytes * call.getArgOperandNo(&operand)), Align(64));
  b.CreateCall(function, {frame, group, b.getInt32(0), b.getInt32(1)});
  Type *type = isOne ? call.getType() : lanesOf(call.getType());
  define(call, 0, b.CreateAlignedLoad(type, frameSlot(frame, resultSlot), Align(64)));
}

} // namespace triton_metal::engine

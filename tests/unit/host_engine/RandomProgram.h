// What generators of random programs share: drawing, and the shapes of code.
#pragma once

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include <cstdio>
#include <cstdlib>
#include <random>

namespace triton_metal::testing {

/// Numbers of test instances; TRITON_METAL_TEST_SEEDS=first:last runs others, or more of them.
inline std::pair<int, int> seeds(int count) {
  int first = 0, last = count;
  if (const char *text = std::getenv("TRITON_METAL_TEST_SEEDS"))
    std::sscanf(text, "%d:%d", &first, &last);
  return {first, last};
}

/// Writes a function `k` of random code.
class RandomProgram {
protected:
  RandomProgram(llvm::Module &module, uint64_t seed, llvm::ArrayRef<llvm::Type *> parameters)
      : random(seed), b(module.getContext()), module(module), i32(b.getInt32Ty()),
        function(llvm::Function::Create(llvm::FunctionType::get(b.getVoidTy(), parameters, false),
                                        llvm::GlobalValue::ExternalLinkage, "k", module)) {
    b.SetInsertPoint(block("entry"));
    array = b.CreateAlloca(llvm::ArrayType::get(i32, elements), nullptr, "array");
  }

  unsigned pick(unsigned count) { return random() % count; }
  bool chance(unsigned percent) { return pick(100) < percent; }

  llvm::BasicBlock *block(const llvm::Twine &name) {
    return llvm::BasicBlock::Create(b.getContext(), name, function);
  }
  /// Goes on at `next`, unless the code has left already.
  void close(llvm::BasicBlock *next) {
    if (!b.GetInsertBlock()->getTerminator())
      b.CreateBr(next);
  }

  llvm::Value *load(llvm::Value *slot) { return b.CreateLoad(i32, slot); }
  llvm::Value *word(llvm::Value *base, llvm::Value *at) {
    return b.CreateGEP(i32, base, b.CreateZExt(at, b.getInt64Ty()));
  }
  /// Of the thread's array.
  llvm::Value *element(llvm::Value *at) {
    return b.CreateGEP(llvm::ArrayType::get(i32, elements), array,
                       {b.getInt64(0), b.CreateZExt(at, b.getInt64Ty())});
  }
  void fillArray() {
    for (unsigned i = 0; i != elements; ++i)
      b.CreateStore(b.getInt32(i * 3), element(b.getInt32(i)));
  }

  void when(llvm::Value *held, llvm::function_ref<void()> then,
            llvm::function_ref<void()> otherwise = {}) {
    llvm::BasicBlock *yes = block("then"), *join = block("join"),
                     *no = otherwise ? block("else") : join;
    b.CreateCondBr(held, yes, no);
    b.SetInsertPoint(yes);
    then();
    close(join);
    if (otherwise) {
      b.SetInsertPoint(no);
      otherwise();
      close(join);
    }
    b.SetInsertPoint(join);
  }

  /// Where `continue` and `break` of a loop go.
  struct Loop {
    llvm::BasicBlock *latch, *end;
  };
  /// Runs `body` for 0, 1, 2, ... while `goesOn`.
  void loop(llvm::function_ref<llvm::Value *(llvm::Value *)> goesOn,
            llvm::function_ref<void(llvm::Value *, Loop)> body) {
    llvm::IRBuilder<> top(&function->getEntryBlock(), function->getEntryBlock().begin());
    auto *step = top.CreateAlloca(i32, nullptr, "i");
    b.CreateStore(b.getInt32(0), step);
    llvm::BasicBlock *head = block("head"), *inside = block("body"), *latch = block("latch"),
                     *end = block("end");
    b.CreateBr(head);
    b.SetInsertPoint(head);
    llvm::Value *now = load(step);
    b.CreateCondBr(goesOn(now), inside, end);
    b.SetInsertPoint(inside);
    body(now, {latch, end});
    close(latch);
    b.SetInsertPoint(latch);
    b.CreateStore(b.CreateAdd(load(step), b.getInt32(1)), step);
    b.CreateBr(head);
    b.SetInsertPoint(end);
  }

  static constexpr unsigned elements = 8;
  std::mt19937_64 random;
  llvm::IRBuilder<> b;
  llvm::Module &module;
  llvm::Type *i32;
  llvm::Function *function;
  llvm::AllocaInst *array = nullptr;
};

} // namespace triton_metal::testing

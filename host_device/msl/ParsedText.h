// A text that clang has parsed, whose kernels become LLVM IR one by one.
#pragma once

#include "host_device/msl/Frontend.h"
#include "host_device/msl/SourceFiles.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <vector>

namespace triton_metal {

/// Clang's syntax tree of a text. Parsing finds all of clang's errors, also in instantiated
/// templates. Code is only generated for the kernels that are asked for. One thread at a time.
class ParsedText {
public:
  /// Parses with the function constants of the options. `files` are as for makeSourceFiles. The
  /// error is clang's diagnostics.
  static llvm::Expected<std::unique_ptr<ParsedText>>
  parse(llvm::StringRef source, const MslOptions &options, HostFiles &files);
  ~ParsedText();
  ParsedText(const ParsedText &) = delete;

  /// Whether kernels can be listed and generated with these function constants. Constants with
  /// values become part of the tree, so a tree takes one set of values.
  bool takes(llvm::ArrayRef<FunctionConstantValue> constants) const;
  /// The kernels as they are declared, with these function constants. Which constants a kernel
  /// needs, its threadgroup variables and most reasons why it cannot be run are not known.
  std::vector<KernelInfo> kernels(llvm::ArrayRef<FunctionConstantValue> constants) const;
  size_t numKernels() const;
  /// Makes a module with the kernels of these names, in the order of the text. The tree must take
  /// the constants.
  llvm::Expected<CompiledMsl> generate(llvm::ArrayRef<std::string> names,
                                       llvm::ArrayRef<FunctionConstantValue> constants,
                                       llvm::LLVMContext &context);
  /// How many functions clang has generated code for since the last call.
  unsigned takeGeneratedFunctions();

private:
  struct State;
  explicit ParsedText(std::unique_ptr<State> state);
  std::unique_ptr<State> state;
};

} // namespace triton_metal

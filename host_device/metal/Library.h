// Libraries of Metal text, their functions, and what is known about them.
#pragma once

#include "host_device/KernelInfo.h"
#include "host_device/metal/Numbers.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace triton_metal {
class Library;
struct LibraryOptions;
} // namespace triton_metal

namespace triton_metal::metal {

struct CompileOptions {
  /// The name of the text in messages.
  std::string fileName = "kernel.metal";
  std::vector<std::pair<std::string, std::string>> preprocessorMacros;
  /// Folders for #include.
  std::vector<std::string> includeDirectories;
};

/// The versions of Metal that a text can be told of.
inline constexpr llvm::StringLiteral languageVersions[] = {"2.4", "3.0", "3.1", "3.2", "4.0"};
/// Whether a text includes files by names in quotes, which are looked for beside it first.
bool includesBeside(llvm::StringRef source);

/// Values for `[[function_constant(index)]]`, by index or name. They get the types of the
/// constants when a function is made with them.
class FunctionConstantValues {
public:
  FunctionConstantValues &set(uint32_t index, Number value) {
    return set(index, std::vector<Number>{value});
  }
  FunctionConstantValues &set(std::string name, Number value) {
    return set(std::move(name), std::vector<Number>{value});
  }
  /// The components of a vector.
  FunctionConstantValues &set(uint32_t index, std::vector<Number> components);
  FunctionConstantValues &set(std::string name, std::vector<Number> components);

private:
  friend class Library;
  struct Entry {
    std::string name; ///< Empty if the index says which.
    uint32_t index = 0;
    std::vector<Number> components;
    std::string shown() const;
  };
  std::vector<Entry> entries;
};

class Library;

/// A kernel of a library with values for its function constants.
class Function {
public:
  const std::string &name() const { return kernel.name; }
  /// Its parameters, threadgroup variables, function constants and limits.
  const KernelInfo &info() const { return kernel; }
  const std::shared_ptr<Library> &library() const { return owner; }

  /// The text's options with this function's constants.
  const LibraryOptions &options() const { return *compileOptions; }

private:
  friend class Library;
  Function() = default;
  std::shared_ptr<Library> owner;
  KernelInfo kernel;
  std::shared_ptr<const LibraryOptions> compileOptions;
};

class Library : public std::enable_shared_from_this<Library> {
public:
  /// Compiles Metal text. The error is clang's diagnostics, with the lines and columns of the text.
  static llvm::Expected<std::shared_ptr<Library>> compile(llvm::StringRef source,
                                                          const CompileOptions &options);

  std::vector<std::string> functionNames() const;
  /// All kernels as they are declared. Which constants they need and their threadgroup variables
  /// are not known; `info` knows them.
  const std::vector<KernelInfo> &declarations() const;
  /// All about a kernel without values for function constants. Lowers it.
  llvm::Expected<KernelInfo> info(llvm::StringRef name) const;
  /// All about all kernels. Lowers each; one that cannot be lowered is as it is declared, and
  /// `unusable` says why.
  std::vector<KernelInfo> functions() const;
  /// A kernel by its name. All constants that it needs must have values, and all names, indices and
  /// types must be right.
  llvm::Expected<std::shared_ptr<Function>>
  newFunction(llvm::StringRef name, const FunctionConstantValues &constants = {});
  const std::string &source() const { return text; }
  /// The name of the text in messages.
  const std::string &fileName() const;

  /// This text with other options, for pipelines.
  llvm::Expected<std::shared_ptr<triton_metal::Library>> with(const LibraryOptions &options) const;

private:
  Library() = default;
  std::string text;
  std::shared_ptr<LibraryOptions> options;
  std::shared_ptr<triton_metal::Library> compiled;
};

/// What is known about kernels, as a JSON list.
std::string describeAsJson(llvm::ArrayRef<KernelInfo> kernels);
/// A parameter as it is declared, without its attribute: "device const float *x".
std::string declarationOf(const ParameterInfo &parameter);
/// "; did you mean 'a' or 'b'?" with those of the names that are like `name`, or else a list of the
/// first ones.
std::string suggestion(llvm::StringRef name, llvm::ArrayRef<std::string> names,
                       llvm::StringRef kind);

} // namespace triton_metal::metal

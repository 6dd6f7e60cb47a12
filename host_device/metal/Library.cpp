#include "host_device/metal/Library.h"
#include "host_device/Device.h"
#include "llvm/Support/Regex.h"

using namespace llvm;

namespace triton_metal::metal {

//===----------------------------------------------------------------------===//
// Function constants
//===----------------------------------------------------------------------===//

FunctionConstantValues &FunctionConstantValues::set(uint32_t index,
                                                    std::vector<Number> components) {
  entries.push_back({"", index, std::move(components)});
  return *this;
}

FunctionConstantValues &FunctionConstantValues::set(std::string name,
                                                    std::vector<Number> components) {
  entries.push_back({std::move(name), 0, std::move(components)});
  return *this;
}

std::string FunctionConstantValues::Entry::shown() const {
  return name.empty() ? "function constant " + std::to_string(index)
                      : "function constant '" + name + "'";
}

static Expected<uint64_t> bitsOf(ArrayRef<Number> components, const FunctionConstantInfo &info) {
  if (info.scalarKind == ScalarKind::None || info.scalarBits * info.vectorWidth > 64)
    return createStringError("has type '" + info.type +
                             "'; only numbers and vectors of up to 64 bits can be given values");
  if (components.size() != info.vectorWidth)
    return createStringError("has type '" + info.type + "', which takes " +
                             std::to_string(info.vectorWidth) + " numbers, but got " +
                             std::to_string(components.size()));
  SmallVector<char, 8> bytes;
  for (const Number &number : components)
    if (Error error = appendNumber(number, {info.scalarKind, info.scalarBits}, bytes))
      return std::move(error);
  uint64_t bits = 0;
  for (size_t i = 0; i != bytes.size(); ++i)
    bits |= uint64_t(static_cast<uint8_t>(bytes[i])) << (8 * i);
  return bits;
}

//===----------------------------------------------------------------------===//
// Libraries
//===----------------------------------------------------------------------===//

bool includesBeside(StringRef source) {
  [[clang::no_destroy]] static const Regex quoted("^[ \t]*#[ \t]*(include|import)[ \t]*\"",
                                                  Regex::Newline);
  return quoted.match(source);
}

Expected<std::shared_ptr<Library>> Library::compile(StringRef source, const CompileOptions &given) {
  [[clang::no_destroy]] static const Regex macroName(
      "^[A-Za-z_][A-Za-z_0-9]*(\\([A-Za-z_0-9, .]*\\))?$");
  for (const auto &[name, value] : given.preprocessorMacros)
    if (!macroName.match(name))
      return createStringError("'" + name + "' is no name of a macro");
  auto options = std::make_shared<LibraryOptions>();
  options->fileName = given.fileName;
  options->macros = given.preprocessorMacros;
  options->includeDirectories = given.includeDirectories;
  auto compiled = triton_metal::Device::get().compile(source, *options);
  if (!compiled)
    return compiled.takeError();
  std::shared_ptr<Library> library(new Library);
  library->text = source.str();
  library->options = std::move(options);
  library->compiled = std::move(*compiled);
  return library;
}

const std::vector<KernelInfo> &Library::declarations() const { return compiled->kernels(); }

Expected<KernelInfo> Library::info(StringRef name) const { return compiled->info(name); }

std::vector<KernelInfo> Library::functions() const {
  std::vector<KernelInfo> result = declarations();
  for (KernelInfo &kernel : result) {
    Expected<KernelInfo> whole = info(kernel.name);
    if (whole)
      kernel = std::move(*whole);
    else
      kernel.unusable = toString(whole.takeError());
  }
  return result;
}

Expected<std::shared_ptr<triton_metal::Library>> Library::with(const LibraryOptions &other) const {
  return compiled->with(other);
}

const std::string &Library::fileName() const { return options->fileName; }

std::vector<std::string> Library::functionNames() const {
  std::vector<std::string> names;
  for (const KernelInfo &info : declarations())
    names.push_back(info.name);
  return names;
}

static const KernelInfo *kernelNamed(ArrayRef<KernelInfo> kernels, StringRef name) {
  for (const KernelInfo &info : kernels)
    if (info.name == name)
      return &info;
  return nullptr;
}

static std::string list(ArrayRef<std::string> items) {
  std::string text;
  for (const std::string &item : items)
    text += (text.empty() ? "" : ", ") + item;
  return text;
}

Expected<std::shared_ptr<Function>> Library::newFunction(StringRef name,
                                                         const FunctionConstantValues &constants) {
  const KernelInfo *declared = kernelNamed(declarations(), name);
  if (!declared) {
    std::vector<std::string> names = functionNames();
    return createStringError(
        "the library has no function '" + name.str() + "'" +
        (names.empty() ? std::string(": it has no kernel") : suggestion(name, names, "functions")));
  }
  auto specialised = std::make_shared<LibraryOptions>(*options);
  for (const FunctionConstantValues::Entry &entry : constants.entries) {
    const FunctionConstantInfo *constant = nullptr;
    std::vector<std::string> known;
    for (const FunctionConstantInfo &candidate : declared->functionConstants) {
      if (entry.name.empty() ? candidate.index == entry.index : candidate.name == entry.name)
        constant = &candidate;
      known.push_back(candidate.name + " (index " + std::to_string(candidate.index) + ")");
    }
    if (!constant)
      return createStringError("'" + declared->name + "': there is no " + entry.shown() +
                               (known.empty() ? std::string(": the library declares none")
                                              : "; the library has " + list(known)));
    for (const FunctionConstantValue &other : specialised->functionConstants)
      if (other.index == constant->index)
        return createStringError("'" + declared->name + "': " + entry.shown() +
                                 " is given two values");
    Expected<uint64_t> bits = bitsOf(entry.components, *constant);
    if (!bits)
      return createStringError("'" + declared->name + "': " + entry.shown() + ": " +
                               toString(bits.takeError()));
    specialised->functionConstants.push_back({constant->index, *bits});
  }
  std::sort(specialised->functionConstants.begin(), specialised->functionConstants.end(),
            [](const FunctionConstantValue &a, const FunctionConstantValue &b) {
              return a.index < b.index;
            });
  std::shared_ptr<triton_metal::Library> made = compiled;
  if (!specialised->functionConstants.empty()) {
    auto result = compiled->with(*specialised);
    if (!result)
      return result.takeError();
    made = std::move(*result);
    if (!kernelNamed(made->kernels(), name))
      return createStringError("the library has no function '" + name.str() +
                               "' with these function constants");
  }
  Expected<KernelInfo> info = made->info(name);
  if (!info)
    return info.takeError();
  std::vector<std::string> missing;
  for (const FunctionConstantInfo &constant : info->functionConstants)
    if (constant.required && !constant.defined)
      missing.push_back("'" + constant.name + "' (index " + std::to_string(constant.index) + ", " +
                        constant.type + ")");
  if (!missing.empty())
    return createStringError("kernel '" + info->name + "': needs a value for function constant" +
                             (missing.size() > 1 ? "s " : " ") + list(missing));
  if (!info->unusable.empty())
    return createStringError("kernel '" + info->name + "': " + info->unusable);
  std::shared_ptr<Function> function(new Function);
  function->owner = shared_from_this();
  function->kernel = *info;
  function->compileOptions = std::move(specialised);
  return function;
}

} // namespace triton_metal::metal

#include "host_device/Text.h"
#include "host_device/engine/ContextErrors.h"
#include "host_device/engine/Protect.h"
#include "host_device/msl/ParsedText.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <deque>
#include <optional>

using namespace llvm;

namespace triton_metal {

Text::Text(std::string source, MslOptions options, HostFiles files)
    : text(std::move(source)), options(std::move(options)), hostFiles(std::move(files)) {}
Text::~Text() = default;

HostFiles Text::files() {
  std::lock_guard lock(mutex);
  return hostFiles;
}

Text::Work Text::work() {
  std::lock_guard lock(mutex);
  return done;
}

Error Text::crashed(const std::string &problem) {
  (void)parsed.release(); // in any state: left where it is
  return createStringError(inconvertibleErrorCode(),
                           options.fileName + ": error: cannot be compiled: " + problem);
}

Error Text::parse(ArrayRef<FunctionConstantValue> constants) {
  if (parsed && parsed->takes(constants))
    return Error::success();
  parsed.reset();
  MslOptions all = options;
  all.functionConstants = constants.vec();
  std::optional<Expected<std::unique_ptr<ParsedText>>> result;
  ++done.parsed;
  if (std::optional<std::string> problem =
          engine::runProtected([&] { result.emplace(ParsedText::parse(text, all, hostFiles)); }))
    return crashed(*problem);
  if (!*result)
    return result->takeError();
  parsed = std::move(**result);
  return Error::success();
}

Expected<std::vector<KernelInfo>> Text::kernels(ArrayRef<FunctionConstantValue> constants) {
  std::lock_guard lock(mutex);
  if (Error error = parse(constants))
    return std::move(error);
  keep();
  return parsed->kernels(constants);
}

Expected<Text::Lowered> Text::lower(StringRef name, ArrayRef<FunctionConstantValue> constants) {
  std::lock_guard lock(mutex);
  if (Error error = parse(constants))
    return std::move(error);
  keep();
  std::optional<Expected<Lowered>> result;
  ++done.lowered;
  if (std::optional<std::string> problem = engine::runProtected([&] {
        LLVMContext context;
        engine::ContextErrors errors(context);
        Expected<CompiledMsl> compiled = parsed->generate({name.str()}, constants, context);
        if (!compiled) {
          result.emplace(joinErrors(compiled.takeError(), errors.take()));
          return;
        }
        Lowered lowered{std::move(compiled->kernels.front()), ""};
        raw_string_ostream stream(lowered.bitcode);
        WriteBitcodeToFile(*compiled->module, stream);
        if (Error error = errors.take())
          result.emplace(std::move(error));
        else
          result.emplace(std::move(lowered));
      }))
    return crashed(*problem);
  done.functions += parsed->takeGeneratedFunctions();
  // Nothing else will be asked of a text with one kernel. After an error, clang generates no code.
  if (!*result || (parsed->numKernels() == 1 && (*result)->info.functionConstants.empty()))
    parsed.reset();
  return std::move(*result);
}

/// Keeps the syntax trees of the texts that were used last. A tree can have 100 MB.
void Text::keep() {
  constexpr size_t most = 4;
  static std::mutex poolMutex;
  static auto &recent = *new std::deque<std::weak_ptr<Text>>;
  std::vector<std::shared_ptr<Text>> old;
  {
    std::lock_guard lock(poolMutex);
    auto isGoneOrThis = [&](const std::weak_ptr<Text> &one) {
      std::shared_ptr<Text> other = one.lock();
      return !other || other.get() == this;
    };
    recent.erase(std::remove_if(recent.begin(), recent.end(), isGoneOrThis), recent.end());
    recent.push_back(weak_from_this());
    while (recent.size() > most) {
      if (std::shared_ptr<Text> other = recent.front().lock())
        old.push_back(std::move(other));
      recent.pop_front();
    }
  }
  for (const std::shared_ptr<Text> &other : old)
    if (std::unique_lock lock(other->mutex, std::try_to_lock); lock)
      other->parsed.reset();
}

//===----------------------------------------------------------------------===//
// The host's files
//===----------------------------------------------------------------------===//

std::string listFiles(const HostFiles &files) {
  std::string list;
  for (const auto &[path, file] : files)
    list += path + '\n';
  return list;
}

HostFiles readFiles(StringRef list) {
  HostFiles files;
  SmallVector<StringRef> paths;
  list.split(paths, '\n', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (StringRef path : paths)
    files.emplace(path.str(), readHostFile(path.str()));
  return files;
}

std::string digest(const HostFiles &files) {
  SHA256 hash;
  for (const auto &[path, file] : files) {
    hash.update(path);
    StringRef kind = !file.status ? "absent" : file.status->isDirectory() ? "folder" : "file";
    hash.update("\n" + kind.str() + " " + std::to_string(file.text.size()) + "\n");
    hash.update(file.text);
  }
  return toHex(hash.final(), /*LowerCase=*/true);
}

} // namespace triton_metal

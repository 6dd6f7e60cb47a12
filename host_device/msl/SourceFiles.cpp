#include "host_device/msl/SourceFiles.h"
#include "host_device/msl/Invocation.h"
#include "host_device/msl/Stdlib.h"
#include "host_device/msl/TextLimits.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace triton_metal {

namespace {

std::string rewritten(StringRef path, StringRef display, StringRef body, SourceTexts &texts) {
  auto text = std::make_unique<SourceText>();
  text->displayName = display.str();
  text->original = body.str();
  refuseLongComparisons(body);
  text->rewritten = rewriteMsl(body);
  std::string result = text->rewritten.text;
  texts[path] = std::move(text);
  return result;
}

/// An open file with another text than the one on disk.
class RewrittenFile final : public vfs::File {
public:
  RewrittenFile(vfs::Status status, std::string text)
      : fileStatus(vfs::Status::copyWithNewSize(status, text.size())), text(std::move(text)) {}

  ErrorOr<vfs::Status> status() override { return fileStatus; }
  ErrorOr<std::unique_ptr<MemoryBuffer>> getBuffer(const Twine &name, int64_t, bool,
                                                   bool) override {
    return MemoryBuffer::getMemBufferCopy(text, name);
  }
  std::error_code close() override { return {}; }

private:
  vfs::Status fileStatus;
  std::string text;
};

/// The files of the host in some folders, rewritten.
class UserHeaders final : public vfs::ProxyFileSystem {
public:
  UserHeaders(std::vector<std::string> folders, SourceTexts &texts, HostFiles &files)
      : ProxyFileSystem(vfs::getRealFileSystem()), folders(std::move(folders)), texts(texts),
        files(files) {}

  ErrorOr<vfs::Status> status(const Twine &path) override {
    // The preprocessor expects that a current directory exists.
    if (path.str() == ".")
      return ProxyFileSystem::status(path);
    if (!isIncluded(path.str()))
      return std::make_error_code(std::errc::no_such_file_or_directory);
    const HostFile &file = at(path.str());
    if (!file.status)
      return std::make_error_code(std::errc::no_such_file_or_directory);
    if (file.status->isDirectory())
      return vfs::Status::copyWithNewName(*file.status, path);
    return vfs::Status::copyWithNewSize(vfs::Status::copyWithNewName(*file.status, path),
                                        textOf(path.str(), file).size());
  }

  ErrorOr<std::unique_ptr<vfs::File>> openFileForRead(const Twine &path) override {
    if (!isIncluded(path.str()))
      return std::make_error_code(std::errc::no_such_file_or_directory);
    const HostFile &file = at(path.str());
    if (!file.status)
      return std::make_error_code(std::errc::no_such_file_or_directory);
    if (file.status->isDirectory())
      return std::make_error_code(std::errc::is_a_directory);
    return std::unique_ptr<vfs::File>(std::make_unique<RewrittenFile>(
        vfs::Status::copyWithNewName(*file.status, path), textOf(path.str(), file)));
  }

private:
  std::vector<std::string> folders;
  SourceTexts &texts;
  HostFiles &files;

  /// Whether a path is one of the include folders or leads through one, in any spelling.
  bool isIncluded(StringRef path) const {
    SmallString<256> plain = plainPath(path);
    for (const std::string &folder : folders) {
      SmallString<256> root = plainPath(folder);
      if (isBelow(plain, root) || isBelow(path, folder))
        return true;
    }
    return false;
  }

  static SmallString<256> plainPath(StringRef path) {
    SmallString<256> plain = path;
    sys::fs::make_absolute(plain);
    sys::path::remove_dots(plain, /*remove_dot_dot=*/true);
    return plain;
  }

  static bool isBelow(StringRef path, StringRef folder) {
    while (folder.size() > 1 && sys::path::is_separator(folder.back()))
      folder = folder.drop_back();
    return path.consume_front(folder) && (path.empty() || sys::path::is_separator(path.front()) ||
                                          sys::path::is_separator(folder.back()));
  }

  const HostFile &at(const std::string &path) {
    auto found = files.find(path);
    return found != files.end() ? found->second
                                : files.emplace(path, readHostFile(path)).first->second;
  }

  std::string textOf(const std::string &path, const HostFile &file) {
    if (auto found = texts.find(path); found != texts.end())
      return found->second->rewritten.text;
    return rewritten(path, path, file.text, texts);
  }
};

/// The headers of the standard library as clang reads them.
ArrayRef<std::pair<std::string, std::string>> headers() {
  [[clang::no_destroy]] static const std::vector<std::pair<std::string, std::string>> all = [] {
    std::vector<std::pair<std::string, std::string>> result;
    for (const StdlibHeader &header : stdlibHeaders())
      result.emplace_back("/metal/include/" + header.name.str(), rewriteLiterals(header.text));
    return result;
  }();
  return all;
}

} // namespace

HostFile readHostFile(const std::string &path) {
  HostFile result;
  IntrusiveRefCntPtr<vfs::FileSystem> host = vfs::getRealFileSystem();
  ErrorOr<vfs::Status> status = host->status(path);
  if (!status)
    return result;
  if (!status->isDirectory()) {
    auto buffer = host->getBufferForFile(path);
    if (!buffer) // clang goes on to the next folder
      return result;
    result.text = (*buffer)->getBuffer().str();
  }
  result.status = *status;
  return result;
}

IntrusiveRefCntPtr<vfs::FileSystem> makeSourceFiles(StringRef source, StringRef path,
                                                    const MslOptions &options, StringRef prelude,
                                                    SourceTexts &texts, HostFiles &hostFiles) {
  auto memory = makeIntrusiveRefCnt<vfs::InMemoryFileSystem>();
  for (const auto &[name, text] : headers())
    memory->addFile(name, 0, MemoryBuffer::getMemBuffer(text, name));
  if (!prelude.empty())
    memory->addFile(
        preludePath, 0,
        MemoryBuffer::getMemBuffer(prelude, preludePath, /*RequiresNullTerminator=*/false));
  // The headers that are included by a path.
  for (const char *name : {"simd", "types", "vector_types", "matrix_types", "vector", "matrix",
                           "packed", "base", "math", "geometry", "common", "logic"})
    memory->addFile("/metal/include/simd/" + Twine(name) + ".h", 0,
                    MemoryBuffer::getMemBuffer("#include <__tm_simd_types>\n"));
  memory->addFile(
      "/metal/include/MetalPerformancePrimitives/MetalPerformancePrimitives.h", 0,
      MemoryBuffer::getMemBuffer("#include <metal_stdlib>\n#include <__tm_tensor_ops>\n"));
  std::string main = rewritten(path, options.fileName, source, texts);
  if (path == mainPath)
    main += Twine(endsInLoopHint(source) ? "\n;" : "").concat(pragmaAtEnd).str();
  memory->addFile(path, 0, MemoryBuffer::getMemBufferCopy(main, path));
  if (options.includeDirectories.empty())
    return memory;
  auto overlay = makeIntrusiveRefCnt<vfs::OverlayFileSystem>(
      makeIntrusiveRefCnt<UserHeaders>(options.includeDirectories, texts, hostFiles));
  overlay->pushOverlay(memory);
  return overlay;
}

} // namespace triton_metal

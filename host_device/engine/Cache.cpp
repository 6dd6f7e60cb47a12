#include "host_device/engine/Cache.h"
#include "host_device/engine/Processor.h"
#include "host_device/engine/ReplaceFile.h"
#include "host_device/msl/Frontend.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"
#include <cstring>
#include <dlfcn.h>
#include <type_traits>

using namespace llvm;

namespace triton_metal::engine {

const std::string &buildIdentity() {
  [[clang::no_destroy]] static const std::string identity = [] {
    std::string text = "engine " + std::to_string(engineVersion) + "; " + frontendVersion() +
                       "; LLVM " LLVM_VERSION_STRING "; " + hostDescription();
    // The size and time of the file that contains this code, so that a rebuilt engine does not run
    // the code of an older one.
    Dl_info info;
    if (dladdr(reinterpret_cast<void *>(&buildIdentity), &info) && info.dli_fname) {
      sys::fs::file_status status;
      if (!sys::fs::status(info.dli_fname, status))
        text += "; " + std::to_string(status.getSize()) + " " +
                std::to_string(status.getLastModificationTime().time_since_epoch().count());
    }
    return text;
  }();
  return identity;
}

//===----------------------------------------------------------------------===//
// DiskCache
//===----------------------------------------------------------------------===//

static constexpr char magic[] = "triton-metal host code\n";

Expected<DiskCache> DiskCache::open(StringRef folder) {
  DiskCache cache;
  if (folder.empty())
    return cache;
  auto refuse = [&](std::error_code error) {
    return createStringError(error, "the cache folder '%s' cannot be written: %s",
                             folder.str().c_str(), error.message().c_str());
  };
  if (std::error_code error = sys::fs::create_directories(folder))
    return refuse(error);
  // Permission bits are not sufficient: the file system may be read-only or full.
  std::string probe;
  int descriptor;
  if (std::error_code error = createFileBeside((folder + "/probe").str(), descriptor, probe))
    return refuse(error);
  sys::fs::file_t file = sys::fs::convertFDToNativeFile(descriptor);
  sys::fs::closeFile(file);
  sys::fs::remove(probe);
  cache.folder = folder.str();
  return cache;
}

std::string DiskCache::path(StringRef kind, StringRef key) const {
  SHA256 hash;
  hash.update(buildIdentity());
  hash.update(StringRef("\0", 1));
  hash.update(kind);
  hash.update(StringRef("\0", 1));
  hash.update(key);
  return folder + "/" + kind.str() + "-" + toHex(hash.final(), /*LowerCase=*/true);
}

static std::string header(StringRef kind, StringRef key) {
  // Another digest of the whole key verifies that the file belongs to it.
  SHA256 hash;
  hash.update(kind);
  hash.update(key);
  return magic + toHex(hash.final(), true) + "\n";
}

std::optional<std::string> DiskCache::find(StringRef kind, StringRef key) const {
  if (!enabled())
    return std::nullopt;
  std::string name = path(kind, key);
  // To open a pipe would wait for what writes it.
  if (!sys::fs::is_regular_file(name))
    return std::nullopt;
  auto file = MemoryBuffer::getFile(name, /*IsText=*/false,
                                    /*RequiresNullTerminator=*/false, /*IsVolatile=*/true);
  if (!file)
    return std::nullopt;
  StringRef text = (*file)->getBuffer();
  if (!text.consume_front(header(kind, key)) || text.size() < 8)
    return std::nullopt;
  uint64_t sum;
  std::memcpy(&sum, text.data(), 8);
  text = text.drop_front(8);
  if (xxh3_64bits(text) != sum)
    return std::nullopt;
  return text.str();
}

void DiskCache::insert(StringRef kind, StringRef key, StringRef content) const {
  if (!enabled())
    return;
  replaceFile(path(kind, key), [&](raw_ostream &stream) {
    uint64_t sum = xxh3_64bits(content);
    stream << header(kind, key);
    stream.write(reinterpret_cast<const char *>(&sum), 8);
    stream << content;
  });
}

//===----------------------------------------------------------------------===//
// Serialisation
//===----------------------------------------------------------------------===//

namespace {

class Writer {
public:
  std::string bytes;
  template <typename T>
  std::enable_if_t<std::is_arithmetic_v<T> || std::is_enum_v<T>> operator()(const T &value) {
    bytes.append(reinterpret_cast<const char *>(&value), sizeof value);
  }
  void operator()(const std::string &text) {
    (*this)(uint64_t(text.size()));
    bytes += text;
  }
  template <typename A, typename B> void operator()(const std::pair<A, B> &pair) {
    (*this)(pair.first);
    (*this)(pair.second);
  }
  template <typename T> void operator()(const std::vector<T> &list) {
    (*this)(uint64_t(list.size()));
    for (const T &item : list)
      (*this)(item);
  }
  template <typename T> std::enable_if_t<std::is_class_v<T>> operator()(const T &value) {
    visit(*this, value);
  }
};

class Reader {
public:
  explicit Reader(StringRef bytes) : bytes(bytes) {}
  bool good = true;
  bool finished() const { return good && bytes.empty(); }
  template <typename T>
  std::enable_if_t<std::is_arithmetic_v<T> || std::is_enum_v<T>> operator()(T &value) {
    if (bytes.size() < sizeof value) {
      good = false;
      return;
    }
    std::memcpy(&value, bytes.data(), sizeof value);
    bytes = bytes.drop_front(sizeof value);
  }
  void operator()(std::string &text) {
    uint64_t size = 0;
    (*this)(size);
    if (!good || size > bytes.size()) {
      good = false;
      return;
    }
    text = bytes.take_front(size).str();
    bytes = bytes.drop_front(size);
  }
  template <typename A, typename B> void operator()(std::pair<A, B> &pair) {
    (*this)(pair.first);
    (*this)(pair.second);
  }
  template <typename T> void operator()(std::vector<T> &list) {
    uint64_t size = 0;
    (*this)(size);
    for (uint64_t i = 0; i != size && good; ++i) {
      list.emplace_back();
      (*this)(list.back());
    }
  }
  template <typename T> std::enable_if_t<std::is_class_v<T>> operator()(T &value) {
    visit(*this, value);
  }

private:
  StringRef bytes;
};

/// `Constant` is const when writing.
template <typename T, typename U>
concept Is = std::is_same_v<std::remove_const_t<T>, U>;

template <typename V, Is<ParameterInfo> T> void visit(V &v, T &p) {
  v(p.name), v(p.kind), v(p.index), v(p.addressSpace), v(p.isConst), v(p.isReference),
      v(p.elementType), v(p.elementSize);
  v(p.elementAlignment), v(p.position), v(p.scalarKind), v(p.scalarBits), v(p.vectorWidth),
      v(p.exists);
}
template <typename V, Is<ThreadgroupVariableInfo> T> void visit(V &v, T &t) {
  v(t.name), v(t.id), v(t.size), v(t.alignment), v(t.line), v(t.column);
}
template <typename V, Is<FunctionConstantInfo> T> void visit(V &v, T &f) {
  v(f.name), v(f.index), v(f.type), v(f.defined), v(f.required), v(f.scalarKind), v(f.scalarBits),
      v(f.vectorWidth);
}
template <typename V, Is<KernelInfo> T> void visit(V &v, T &k) {
  v(k.name), v(k.line), v(k.parameters), v(k.threadgroupVariables), v(k.functionConstants),
      v(k.maxTotalThreadsPerThreadgroup), v(k.unusable);
}
template <typename V, Is<Site> T> void visit(V &v, T &s) {
  v(s.line), v(s.column), v(s.file), v(s.kind), v(s.space), v(s.bytes), v(s.buffer), v(s.variable),
      v(s.variableBytes), v(s.alignment), v(s.reason), v(s.note), v(s.bits), v(s.isFloat),
      v(s.callLine), v(s.callColumn), v(s.callFile);
}
template <typename V, Is<SourceLine> T> void visit(V &v, T &l) { v(l.file), v(l.line); }
template <typename V, Is<LineAmount> T> void visit(V &v, T &a) {
  v(a.line), v(a.counter), v(a.amount);
}
template <typename V, Is<BlockCounts> T> void visit(V &v, T &c) {
  v(c.lane), v(c.simdgroup), v(c.threadgroup);
}
template <typename V, Is<CodeFacts> T> void visit(V &v, T &f) {
  v(f.usesThreadgroupBarrier), v(f.stackBytes), v(f.threadgroupBytes), v(f.threadgroupPlaces),
      v(f.threadgroupGranule), v(f.hasFences), v(f.writtenBuffers), v(f.usedBuffers),
      v(f.loadedBuffers), v(f.updatedBuffers), v(f.storedBuffers), v(f.granule), v(f.mayWait);
  v(f.registersPerThread), v(f.comparedIntegers), v(f.comparedFloats), v(f.sites), v(f.blocks),
      v(f.dynamicCounters), v(f.lines);
}
template <typename V, Is<KernelCode> T> void visit(V &v, T &c) {
  v(c.entryName), v(c.facts), v(c.object);
}

} // namespace

std::string serialize(const KernelCode &code) {
  Writer writer;
  writer(code);
  return std::move(writer.bytes);
}

std::optional<KernelCode> deserializeCode(StringRef bytes) {
  Reader reader(bytes);
  KernelCode code;
  reader(code);
  if (!reader.finished())
    return std::nullopt;
  return code;
}

std::string serialize(const std::vector<KernelInfo> &kernels) {
  Writer writer;
  writer(kernels);
  return std::move(writer.bytes);
}

std::optional<std::vector<KernelInfo>> deserializeKernels(StringRef bytes) {
  Reader reader(bytes);
  std::vector<KernelInfo> kernels;
  reader(kernels);
  if (!reader.finished())
    return std::nullopt;
  return kernels;
}

} // namespace triton_metal::engine

// Kernels on disk: found again, not trusted when damaged, and written by several threads at once.
#include "host_device/engine/Cache.h"
#include "Support.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <chrono>
#include <thread>

using namespace triton_metal;
using namespace triton_metal::testing;

namespace {

class Cache : public ::testing::Test {
protected:
  void SetUp() override {
    llvm::SmallString<128> path;
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("triton-metal-cache-test", path));
    folder = path.str().str();
  }
  void TearDown() override {
    llvm::sys::fs::remove_directories(folder);
    EXPECT_EQ(errorOf(Device::configure({})), "");
  }

  std::vector<std::string> files() const {
    std::vector<std::string> result;
    std::error_code error;
    for (llvm::sys::fs::directory_iterator it(folder, error), end; it != end && !error;
         it.increment(error))
      result.push_back(it->path());
    return result;
  }

  std::string folder;
};

std::string textOf(int number) {
  return "#include <metal_stdlib>\nusing namespace metal;\nkernel void k(device int *o "
         "[[buffer(0)]], uint i "
         "[[thread_position_in_grid]]) { o[i] = int(i) * " +
         std::to_string(number) + "; }\n";
}

std::string runText(const std::string &text, std::vector<int32_t> &out) {
  auto library = Device::get().compile(text);
  if (!library)
    return llvm::toString(library.takeError());
  Dispatch dispatch;
  dispatch.threadsPerThreadgroup = {32, 1, 1};
  std::vector<BufferBinding> buffers{bind(out)};
  dispatch.buffers = buffers;
  return errorOf((*(*library)->kernel("k"))->dispatch(dispatch));
}

TEST_F(Cache, ContentComesBackAndDamageIsNotFound) {
  auto cache = engine::DiskCache::open(folder);
  ASSERT_TRUE(bool(cache));
  EXPECT_FALSE(cache->find("kernel", "a"));
  cache->insert("kernel", "a", "content");
  EXPECT_EQ(cache->find("kernel", "a"), "content");
  EXPECT_FALSE(cache->find("library", "a"));
  EXPECT_FALSE(cache->find("kernel", "b"));
  ASSERT_EQ(files().size(), 1u);
  auto file = llvm::MemoryBuffer::getFile(files()[0]);
  ASSERT_TRUE(bool(file));
  std::string good = (*file)->getBuffer().str();
  auto write = [&](const std::string &text) {
    std::error_code error;
    llvm::raw_fd_ostream stream(files()[0], error);
    stream << text;
  };
  for (size_t place = 0; place != good.size(); ++place) {
    std::string bad = good;
    bad[place] ^= 4;
    write(bad);
    EXPECT_FALSE(cache->find("kernel", "a")) << place;
    write(good.substr(0, place));
    EXPECT_FALSE(cache->find("kernel", "a")) << place;
  }
  write(good);
  EXPECT_EQ(cache->find("kernel", "a"), "content");
}

TEST_F(Cache, FoldersThatCannotBeWrittenAreErrorsOnlyWhereRequired) {
  std::string impossible = "/proc/triton-metal-cannot-be-here";
  EXPECT_NE(errorOf(Device::configure({impossible, true, 0}))
                .find("the cache folder '" + impossible + "' cannot be written"),
            std::string::npos);
  EXPECT_EQ(errorOf(Device::configure({impossible, false, 0})), "");
  std::vector<int32_t> out(32);
  EXPECT_EQ(runText(textOf(11), out), "");
  EXPECT_EQ(out[31], 31 * 11);
}

TEST_F(Cache, KernelsAreWrittenAndDamagedOnesMadeAnew) {
  ASSERT_EQ(errorOf(Device::configure({folder, true, 0})), "");
  std::vector<int32_t> out(32);
  EXPECT_EQ(runText(textOf(13), out), "");
  EXPECT_EQ(out[31], 31 * 13);
  EXPECT_EQ(files().size(), 3u); // the list of kernels, what is known of one, and its code
  for (const std::string &path : files()) {
    std::error_code error;
    llvm::raw_fd_ostream(path, error, llvm::sys::fs::CD_OpenExisting) << "broken";
  }
  Device::get().trim();
  std::fill(out.begin(), out.end(), 0);
  EXPECT_EQ(runText(textOf(13), out), "");
  EXPECT_EQ(out[31], 31 * 13);
  // Good again.
  Device::get().trim();
  auto cache = engine::DiskCache::open(folder);
  ASSERT_TRUE(bool(cache));
  EXPECT_EQ(runText(textOf(13), out), "");
}

TEST_F(Cache, ManyThreadsCompileAndLaunch) {
  ASSERT_EQ(errorOf(Device::configure({folder, true, 0})), "");
  std::vector<std::thread> threads;
  std::vector<std::string> errors(8);
  for (int t = 0; t != 8; ++t)
    threads.emplace_back([&, t] {
      for (int round = 0; round != 4; ++round) {
        std::vector<int32_t> out(32);
        int number = 100 + (t + round) % 3;
        errors[t] += runText(textOf(number), out);
        if (out[31] != 31 * number)
          errors[t] += "wrong result";
        Device::get().trim();
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const std::string &error : errors)
    EXPECT_EQ(error, "");
  // What is compiled again in the background may be on its way to the folder still.
  auto isOnItsWay = [&] {
    return llvm::any_of(files(), [](llvm::StringRef path) { return path.ends_with(".tmp"); });
  };
  for (int i = 0; i != 100 && isOnItsWay(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_FALSE(isOnItsWay());
}

TEST_F(Cache, KnowsProcessorsApart) {
  ASSERT_EQ(errorOf(Device::configure({folder, true})), "");
  std::string text = textOf(91);
  std::vector<Library *> seen;
  size_t entries = 0;
  for (const std::string &name : processors()) {
    LibraryOptions options;
    options.processor = name;
    auto library = Device::get().compile(text, options);
    ASSERT_TRUE(bool(library));
    EXPECT_FALSE(llvm::is_contained(seen, library->get())) << name;
    seen.push_back(library->get());
    std::vector<int32_t> out(32);
    Dispatch dispatch;
    dispatch.threadsPerThreadgroup = {32, 1, 1};
    std::vector<BufferBinding> buffers{bind(out)};
    dispatch.buffers = buffers;
    EXPECT_EQ(errorOf((*(*library)->kernel("k"))->dispatch(dispatch)), "");
    EXPECT_EQ(out[3], 3 * 91);
    EXPECT_EQ(files().size(), entries += 3) << name;
  }
  LibraryOptions options;
  options.processor = "abacus";
  auto library = Device::get().compile(text, options);
  ASSERT_FALSE(bool(library));
  EXPECT_NE(llvm::toString(library.takeError()).find("'abacus' is not a processor that LLVM knows"),
            std::string::npos);
}

} // namespace

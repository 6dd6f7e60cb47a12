// Libraries with files of the host: known again as long as all that they asked for is as it was.
#include "Support.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace triton_metal;
using namespace triton_metal::testing;

namespace {

class IncludeCache : public ::testing::Test {
protected:
  void SetUp() override {
    llvm::SmallString<128> path;
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("triton-metal-include-test", path));
    folder = path.str().str();
    for (const char *name : {"/cache", "/first", "/second"})
      ASSERT_FALSE(llvm::sys::fs::create_directory(folder + name));
    ASSERT_EQ(errorOf(Device::configure({.cacheDirectory = folder + "/cache"})), "");
    options.includeDirectories = {folder + "/first", folder + "/second"};
  }
  void TearDown() override {
    llvm::sys::fs::remove_directories(folder);
    EXPECT_EQ(errorOf(Device::configure({})), "");
  }

  void write(llvm::StringRef name, llvm::StringRef text) {
    std::error_code error;
    llvm::raw_fd_ostream(folder + "/" + name.str(), error) << text;
    ASSERT_FALSE(error);
  }

  /// What the kernel writes, and how often its text was parsed for it.
  std::pair<int32_t, unsigned> run(bool forget = true) {
    std::pair<int32_t, unsigned> result{-1, 0};
    {
      auto library = Device::get().compile(text, options);
      if (!library) {
        ADD_FAILURE() << llvm::toString(library.takeError());
        return result;
      }
      std::vector<int32_t> out(32, -1);
      Dispatch dispatch;
      dispatch.threadsPerThreadgroup = {32, 1, 1};
      std::vector<BufferBinding> buffers{bind(out)};
      dispatch.buffers = buffers;
      EXPECT_EQ(errorOf(llvm::cantFail((*library)->kernel("k"))->dispatch(dispatch)), "");
      result = {out[0], (*library)->work().parsed};
    }
    if (forget) {
      Device::get().finishCompilations();
      Device::get().trim(); // as in another process
    }
    return result;
  }

  std::string folder;
  LibraryOptions options;
  std::string text = R"(#include "value.h"
kernel void k(device int *o) { o[0] = VALUE; }
)";
};

using Result = std::pair<int32_t, unsigned>;

TEST_F(IncludeCache, UnchangedFilesAreAHit) {
  write("second/value.h", "#define VALUE 1\n");
  EXPECT_EQ(run(), Result(1, 1));
  EXPECT_EQ(run(), Result(1, 0));
}

TEST_F(IncludeCache, AChangedHeaderIsReadAgain) {
  write("second/value.h", "#include \"inner.h\"\n");
  write("second/inner.h", "#define VALUE 1\n");
  EXPECT_EQ(run(), Result(1, 1));
  write("second/inner.h", "#define VALUE 2\n"); // as long as before
  EXPECT_EQ(run(), Result(2, 1));
  EXPECT_EQ(run(), Result(2, 0));
  write("second/inner.h", "#define VALUE 1\n");
  EXPECT_EQ(run(), Result(1, 0));
}

TEST_F(IncludeCache, AHeaderThatShadowsAnotherIsFound) {
  write("second/value.h", "#define VALUE 1\n");
  EXPECT_EQ(run(), Result(1, 1));
  write("first/value.h", "#define VALUE 3\n");
  EXPECT_EQ(run(), Result(3, 1));
  ASSERT_FALSE(llvm::sys::fs::remove(folder + "/first/value.h"));
  EXPECT_EQ(run().first, 1);
}

TEST_F(IncludeCache, AFileThatIsOnlyAskedForCounts) {
  text = R"(#if __has_include("extra.h")
#define VALUE 8
#else
#define VALUE 7
#endif
kernel void k(device int *o) { o[0] = VALUE; }
)";
  EXPECT_EQ(run(), Result(7, 1));
  write("first/extra.h", "");
  EXPECT_EQ(run(), Result(8, 1));
  EXPECT_EQ(run(), Result(8, 0));
}

TEST_F(IncludeCache, ChangesAreSeenInOneProcess) {
  write("second/value.h", "#define VALUE 1\n");
  EXPECT_EQ(run(/*forget=*/false).first, 1);
  write("second/value.h", "#define VALUE 5\n");
  EXPECT_EQ(run(/*forget=*/false).first, 5);
}

TEST_F(IncludeCache, ALibraryKeepsTheFilesThatItWasMadeOf) {
  write("second/value.h", "#define VALUE 1\n");
  auto library = llvm::cantFail(Device::get().compile(text, options));
  write("second/value.h", "#define VALUE 6\n");
  LibraryOptions checked = options;
  checked.checks.bounds = true;
  auto other = llvm::cantFail(library->with(checked));
  std::vector<int32_t> out(32, -1);
  Dispatch dispatch;
  std::vector<BufferBinding> buffers{bind(out)};
  dispatch.buffers = buffers;
  EXPECT_EQ(errorOf(llvm::cantFail(other->kernel("k"))->dispatch(dispatch)), "");
  EXPECT_EQ(out[0], 1);
}

TEST_F(IncludeCache, AFolderThatIsNotThereIsAnErrorEachTime) {
  options.includeDirectories.push_back(folder + "/third");
  write("second/value.h", "#define VALUE 1\n");
  for (int i = 0; i != 2; ++i) {
    auto library = Device::get().compile(text, options);
    ASSERT_FALSE(bool(library));
    EXPECT_NE(llvm::toString(library.takeError()).find("third' does not exist"), std::string::npos);
  }
}

} // namespace

#include "compiler/dialect/tt/Import.h"
#include "compiler/pipeline/Register.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"

#include "llvm/Support/MemoryBuffer.h"

#include "gtest/gtest.h"

#include <filesystem>

using namespace mlir;

namespace {

constexpr const char *kLoop = R"(
#loc = loc("k.py":1:1)
#loop = loc("acc"(#loc))
module {
  tt.func public @k(%n: i32 loc("n"(#loc))) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %acc = arith.constant 0 : i32 loc(#loop)
    %acc_2:3 = scf.for %k = %c0 to %n step %c1 iter_args(%acc_1 = %acc, %arg7 = %c0, %x_9 = %c0) -> (i32, i32, i32) : i32 {
      scf.yield %acc_1, %arg7, %x_9 : i32, i32, i32
    } loc(#loop)
    tt.return
  }
}
)";

class ImportTest : public ::testing::Test {
protected:
  ImportTest() {
    DialectRegistry registry;
    triton_metal::registerAllDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }
  MLIRContext context;
};

std::string nameOf(Value value) {
  auto name = dyn_cast<NameLoc>(value.getLoc());
  return name ? name.getName().str() : "";
}

TEST_F(ImportTest, LoopArgumentsKeepTheirPythonNames) {
  auto module = triton_metal::tt::parseModule(kLoop, "k.ttir", &context);
  ASSERT_TRUE(module);
  scf::ForOp loop;
  module->walk([&](scf::ForOp op) { loop = op; });
  ASSERT_TRUE(loop);
  EXPECT_EQ(nameOf(loop.getInductionVar()), "k");
  EXPECT_EQ(nameOf(loop.getRegionIterArg(0)), "acc");
  // The printer's own names say nothing.
  EXPECT_EQ(nameOf(loop.getRegionIterArg(1)), "");
  // A number belongs to the name when no value has the name without it.
  EXPECT_EQ(nameOf(loop.getRegionIterArg(2)), "x_9");
  // Their place is the loop's, in the Python file.
  auto place = cast<NameLoc>(loop.getInductionVar().getLoc()).getChildLoc();
  EXPECT_EQ(cast<FileLineColLoc>(place).getFilename(), "k.py");
}

TEST_F(ImportTest, LocationsInTheTextStay) {
  auto module = triton_metal::tt::parseModule(kLoop, "k.ttir", &context);
  ASSERT_TRUE(module);
  Operation *function = &module->getBody()->front();
  EXPECT_EQ(nameOf(function->getRegion(0).getArgument(0)), "n");
}

TEST_F(ImportTest, ErrorsNameTheFile) {
  std::string message;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    llvm::raw_string_ostream(message) << diagnostic.getLocation() << ": " << diagnostic.str();
    return success();
  });
  EXPECT_FALSE(
      triton_metal::tt::parseModule("tt.func @f() {\n  tt.unheard_of\n}", "bad.ttir", &context));
  EXPECT_NE(message.find("bad.ttir\":2:3"), std::string::npos) << message;
  EXPECT_NE(message.find("tt.unheard_of"), std::string::npos) << message;
}

// What stock Triton 3.7.1, 3.8.0 and 3.9.0 print is printed again byte by byte, names and locations
// included.
TEST_F(ImportTest, StockTextsPrintAsTheyWere) {
  auto folder = std::filesystem::path(TRITON_METAL_TESTS) / "lit/tt/stock";
  unsigned count = 0;
  for (const auto &entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".ttir")
      continue;
    auto file = llvm::MemoryBuffer::getFile(entry.path().string());
    ASSERT_TRUE(bool(file)) << entry.path();
    // The first line tells lit what to do.
    llvm::StringRef text = (*file)->getBuffer().split('\n').second;
    auto module = triton_metal::tt::parseModule(text, entry.path().string(), &context);
    ASSERT_TRUE(module) << entry.path();
    std::string printed;
    llvm::raw_string_ostream stream(printed);
    module->print(stream,
                  OpPrintingFlags().enableDebugInfo(true, false).printNameLocAsPrefix(true));
    EXPECT_EQ(printed, text.str()) << entry.path();
    ++count;
  }
  EXPECT_GE(count, 60u);
}

} // namespace

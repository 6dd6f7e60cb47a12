// Where pointers come from: what callers rely on while they ask for one after the other.
#include "analysis/PointerOrigins.h"

#include "compiler/pipeline/Register.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

#include "gtest/gtest.h"

#include <string>

using namespace mlir;
using namespace triton_metal;

namespace {

TEST(PointerOrigins, StayWhereTheyAreWhenOthersAreAskedFor) {
  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry);
  context.loadAllAvailableDialects();
  constexpr unsigned kArguments = 200;
  std::string text = "msl.kernel @k(";
  for (unsigned i = 0; i < kArguments; ++i)
    text += (i ? ", %a" : "%a") + std::to_string(i) + ": !msl.ptr<f32, device>";
  text += ") threads 32 {\n  msl.return\n}\n";
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  ASSERT_TRUE(module);
  auto kernel = *module->getOps<msl::KernelOp>().begin();
  msl::PointerOrigins origins(kernel);
  Block &body = kernel.getBody().front();
  const msl::Origins *first = &origins.get(body.getArgument(0));
  for (BlockArgument argument : body.getArguments())
    EXPECT_EQ(origins.mayOverlap(body.getArgument(0), argument), argument.getArgNumber() == 0);
  EXPECT_EQ(first, &origins.get(body.getArgument(0)));
  EXPECT_TRUE(first->arguments.contains(0));
}

} // namespace

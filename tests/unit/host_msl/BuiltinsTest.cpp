// The table of the engine's functions, against what the standard library declares.
#include "host_device/engine/Builtins.h"
#include "host_device/Device.h"
#include "host_device/msl/LoopExits.h"
#include "gtest/gtest.h"
#include <set>

using namespace triton_metal;

namespace {

std::string errorOf(const std::string &text) {
  auto library = Device::get().compile(text);
  if (!library)
    return llvm::toString(library.takeError());
  Dispatch dispatch;
  dispatch.threadgroups = {1, 1, 1};
  dispatch.threadsPerThreadgroup = {32, 1, 1};
  int result = 0;
  BufferBinding buffer{&result, sizeof(result), true};
  dispatch.buffers = buffer;
  auto kernel = (*library)->kernel("k");
  if (!kernel)
    return llvm::toString(kernel.takeError());
  return llvm::toString((*kernel)->dispatch(dispatch));
}

TEST(Builtins, EachHasOneRowAndAnEmitter) {
  std::set<llvm::StringRef> names;
  for (const engine::Builtin *row : engine::builtins()) {
    EXPECT_TRUE(names.insert(row->name).second) << row->name.str();
    EXPECT_TRUE(row->emit) << row->name.str();
    EXPECT_EQ(engine::findBuiltin(row->name), row);
  }
  EXPECT_EQ(engine::findBuiltin("__tm_engine_buffer.2"), engine::findBuiltin("__tm_engine_buffer"));
  EXPECT_EQ(engine::findBuiltin("__tm_simd_sum"), nullptr);
  EXPECT_EQ(engine::findBuiltin("lane"), nullptr);
}

TEST(Builtins, AreDeclaredByTheStandardLibrary) {
  std::string text = "#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>\n";
  for (const engine::Builtin *row : engine::builtins())
    if (!row->isInternal && row->name != engine::threadgroupAllocName &&
        row->name != stepEndName) // made by the front end
      text += "using type_of" + row->name.str() + " = decltype(" + row->name.str() + ");\n";
  EXPECT_EQ(errorOf(text + "kernel void k(device int *p) {}"), "");
}

TEST(Builtins, OfTheEnginesPassesAreNotForTexts) {
  EXPECT_NE(errorOf("extern \"C\" device int *__tm_engine_buffer(int);\n"
                    "kernel void k(device int *p) { *p = *__tm_engine_buffer(0); }")
                .find("the function '__tm_engine_buffer' is the device's own"),
            std::string::npos);
  EXPECT_NE(errorOf("extern \"C\" float __tm_libm_erf_f32(float);\n"
                    "kernel void k(device int *p) { *p = int(__tm_libm_erf_f32(1.0f)); }")
                .find("is not defined and not one of the device's own"),
            std::string::npos);
}

} // namespace

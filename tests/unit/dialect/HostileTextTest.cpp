// Texts that no printer makes: each is an error with a reason, and the process goes on.

#include "compiler/pipeline/Pipeline.h"

#include "gtest/gtest.h"

using namespace triton_metal;

namespace {

std::string repeat(const std::string &text, unsigned count) {
  std::string result;
  for (unsigned index = 0; index < count; ++index)
    result += text;
  return result;
}

/// A kernel with these lines.
std::string kernel(const std::string &body, const std::string &arguments = "%p: !tt.ptr<f32>") {
  return "module { tt.func public @k(" + arguments + ") {\n" + body + "\ntt.return\n} }";
}

/// `count` aliases, each made of the one before it by `next`.
std::string chain(const std::string &sigil, const std::string &first, unsigned count,
                  const std::string &next) {
  std::string text = sigil + "a0 = " + first + "\n";
  for (unsigned index = 1; index < count; ++index) {
    std::string before = sigil + "a" + std::to_string(index - 1), definition = next;
    for (size_t at; (at = definition.find('@')) != std::string::npos;)
      definition.replace(at, 1, before);
    text += sigil + "a" + std::to_string(index) + " = " + definition + "\n";
  }
  return text;
}

std::string errorOf(const std::string &text) {
  std::string diagnostics;
  CompileOptions options;
  if (mlir::succeeded(compileText(text, "k.ttir", options, diagnostics)))
    return "compiled";
  return diagnostics;
}

void expectError(const std::string &text, const std::string &reason) {
  EXPECT_NE(errorOf(text).find(reason), std::string::npos) << errorOf(text) << "\nof\n"
                                                           << text.substr(0, 500);
}

TEST(HostileTextTest, NumbersOfResults) {
  expectError(kernel("%x = arith.addi %x#2147483647, %x : i32"), "k.ttir:2:19: error");
  expectError(kernel("%x = arith.addi %x # 99999999999999999999, %x : i32"),
              "at most 4096 results");
  expectError(kernel("%x:2147483647 = \"tt.splat\"() : () -> ()"), "at most 4096 results");
  EXPECT_EQ(errorOf(kernel("// %x#2147483647")), "compiled");
}

TEST(HostileTextTest, Nesting) {
  for (const char *bracket : {"(", "[", "{", "<", "!tt.ptr<", "tuple<", "module {"})
    expectError(repeat(bracket, 100000), "more than 256 brackets");
  expectError(kernel("", "%p: " + repeat("!tt.ptr<", 300) + "f32" + repeat(">", 300)),
              "more than 256 brackets");
  EXPECT_EQ(errorOf(kernel(repeat("scf.if %c {\n", 100) + repeat("}\n", 100), "%c: i1")),
            "compiled");
  // An arrow closes nothing, and opens nothing.
  EXPECT_EQ(errorOf("module {" + repeat("tt.func private @f() -> i32\n", 1) +
                    "tt.func public @k() { tt.return } }"),
            "compiled");
}

TEST(HostileTextTest, Aliases) {
  expectError(chain("!", "f32", 100000, "!tt.ptr<@>") + kernel("", "%p: !a99999"), "too deep");
  expectError(chain("!", "f32", 60, "tuple<@, @>") + kernel("", "%p: !a59"), "too large");
  expectError(chain("#", "1 : i32", 60, "[@, @]") + kernel(""), "too large");
  expectError(chain("#", "loc(\"a\":1:1)", 100000, "loc(\"n\"(@))") + kernel(""), "too deep");
  for (const char *first : {"loc(\"a\":1:1)", "loc(unknown)"})
    expectError(chain("#", first, 60, "loc(callsite(@ at @))") +
                    kernel("%z = ub.poison : f128 loc(#a59)"),
                "too large");
  // What inlining makes.
  EXPECT_EQ(errorOf(chain("#", "loc(\"a\":1:1)", 60, "loc(callsite(@ at #a0))") +
                    "module { tt.func public @k() { tt.return loc(#a59) } }"),
            "compiled");
}

TEST(HostileTextTest, GroupsOfOperands) {
  for (const char *sizes : {"1, 1, 1", "1, -1, 1", "2147483647, 2147483647, 3"})
    expectError(kernel("%x = \"tt.load\"(%p) <{cacheModifier = 1 : i32, evictionPolicy = 1 : i32, "
                       "isVolatile = "
                       "false, operandSegmentSizes = array<i32: " +
                       std::string(sizes) + ">}> : (!tt.ptr<f32>) -> f32"),
                "operandSegmentSizes");
  expectError(
      kernel(
          "%x = \"tt.load\"(%p) <{operandSegmentSizes = array<index: 1>}> : (!tt.ptr<f32>) -> f32"),
      "an array is one of");
}

TEST(HostileTextTest, Types) {
  for (auto [type, reason] : std::initializer_list<std::pair<const char *, const char *>>{
           {"tensor<1073741824xf32>", "at most 1048576 elements"},
           {"tensor<1048576x4611686018427387904xi32>", "at most 1048576 elements"},
           {"tensor<3xf32>", "powers of two"},
           {"tensor<0xf32>", "powers of two"},
           {"tensor<?xf32>", "powers of two"},
           {"tensor<*xf32>", "numbers, pointers, tensor descriptors and tiles"},
           {"i16777215", "i1, i8, i16, i32 or i64"},
           {"tensor<4xi3>", "i1, i8, i16, i32 or i64"},
           {"!tt.ptr<i128>", "i1, i8, i16, i32 or i64"},
           {"ui8", "i1, i8, i16, i32 or i64"},
           {"f128", "at most 64 bits"},
           {"vector<4xf32>", "numbers, pointers, tensor descriptors and tiles"},
           {"tensor<16xf32, 1 : i32>", "no layout yet"}})
    expectError(kernel(std::string("%z = ub.poison : ") + type), reason);
  std::string ones = "tensor<" + repeat("1x", 33) + "f32>";
  expectError(kernel("%z = ub.poison : " + ones), "at most 32 dimensions");
}

TEST(HostileTextTest, Structure) {
  expectError("", "0 public functions");
  expectError(std::string("module {\0}", 10), "null byte");
  expectError("{-# dialect_resources: {} #-}", "metadata");
  expectError(kernel("%z = arith.constant dense_resource<k> : tensor<4xi32>"), "a constant is");
  expectError("module { module { } }", "beside the functions");
  expectError("module { msl.kernel @k() threads 32 { msl.return } }", "beside the functions");
  expectError(kernel("tt.func private @b() { tt.return }"), "error");
}

TEST(HostileTextTest, Hints) {
  for (const char *hint :
       {"0 : i32", "-16 : i32", "\"16\"", "dense<[16, 0]> : tensor<2xi32>",
        "dense<1.0> : tensor<1xf32>", "170141183460469231731687303715884105727 : i128"})
    for (const char *name : {"tt.divisibility", "tt.contiguity", "tt.constancy"}) {
      std::string attr = std::string("{") + name + " = " + hint + "}";
      expectError("module { tt.func public @k(%x: i32 " + attr + ") { tt.return } }",
                  "a positive integer");
      expectError(kernel("%z = tt.make_range {end = 16 : i32, start = 0 : i32, " + attr.substr(1) +
                         " : tensor<16xi32>"),
                  "a positive integer");
    }
}

// Hints are looked for before any verifier has seen the function.
TEST(HostileTextTest, FunctionsWithoutTheirAttributes) {
  auto function = [](const std::string &attributes) {
    return "\"builtin.module\"() ({ \"tt.func\"() <{" + attributes +
           "}> ({ ^bb0(%x: i32): \"tt.return\"() : () -> () }) : () -> () }) : () -> ()";
  };
  expectError(function("sym_name = \"k\""), "error");
  expectError(function("function_type = 5 : i32, sym_name = \"k\""), "error");
  expectError(function("function_type = (i32) -> (), sym_name = \"k\", arg_attrs = [5 : i32]"),
              "error");
  expectError(function("function_type = (i32) -> (), sym_name = \"k\", arg_attrs = [{}, {}]"),
              "error");
}

TEST(HostileTextTest, Barriers) {
  EXPECT_EQ(errorOf(kernel("ttg.barrier all")), "compiled");
  EXPECT_EQ(errorOf(kernel("ttg.barrier local|global_read")), "compiled");
  expectError(kernel("ttg.barrier any"), "to be one of: none, local");
  expectError(kernel("ttg.warp_id"), "ttg.warp_id");
}

TEST(HostileTextTest, Calls) {
  // Each function calls the one before it twice, or once.
  auto calls = [](unsigned levels, unsigned times) {
    std::string text = "module { tt.func private @f0() { tt.return }\n";
    for (unsigned level = 1; level < levels; ++level)
      text += "tt.func private @f" + std::to_string(level) + "() {" +
              repeat(" tt.call @f" + std::to_string(level - 1) + "() : () -> ()\n", times) +
              "tt.return }\n";
    return text + "tt.func public @k() { tt.call @f" + std::to_string(levels - 1) +
           "() : () -> () tt.return } }";
  };
  expectError(calls(60, 2), "operations once what it calls is inlined");
  expectError(calls(400, 1), "calls within one another");
  EXPECT_EQ(errorOf(calls(50, 1)), "compiled");
}

// The carried number grows by way of an inner loop's result, one at a time.
TEST(HostileTextTest, NumbersThatGrowForLong) {
  EXPECT_EQ(errorOf(kernel(R"(
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%x = %c0) -> (i32) : i32 {
      %y = arith.addi %x, %c1 : i32
      %z = scf.for %j = %c0 to %n step %c1 iter_args(%w = %y) -> (i32) : i32 {
        tt.store %p, %w : !tt.ptr<i32>
        scf.yield %w : i32
      }
      scf.yield %z : i32
    }
    tt.store %p, %r : !tt.ptr<i32>)",
                           "%p: !tt.ptr<i32>, %n: i32")),
            "compiled");
}

} // namespace

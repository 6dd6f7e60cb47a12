// RUN: triton-metal-opt %s --ttm-legalization-pipeline --convert-ttm-to-msl --msl-expand-thread-indices --canonicalize --cse | FileCheck %s

#l = #ttm.linear<{register = [[32]], lane = [[1], [2], [4], [8], [16]], simdgroup = []}>

module attributes {ttm.num_simdgroups = 1 : i32, ttm.threads = 32 : i32} {
  // CHECK-LABEL: msl.kernel @arithmetic
  // CHECK: %[[X:.*]] = msl.load
  // CHECK: %[[E:.*]] = math.exp %[[X]] : vector<2xf32>
  // CHECK: %[[Q:.*]] = msl.precise_div %[[E]], %[[X]]
  // CHECK: %[[R:.*]] = msl.precise_sqrt %[[Q]]
  // CHECK: %[[LOW:.*]] = arith.maxnumf %[[R]], %{{.*}} : vector<2xf32>
  // CHECK: %[[C:.*]] = arith.minnumf %[[LOW]]
  // CHECK: %[[B:.*]] = arith.bitcast %[[C]] : vector<2xf32> to vector<2xi32>
  // CHECK: %[[M:.*]] = msl.mulhi unsigned %[[B]], %[[B]]
  // CHECK: %[[F:.*]] = arith.bitcast %[[M]] : vector<2xi32> to vector<2xf32>
  // CHECK: %[[H:.*]] = arith.truncf %[[F]] : vector<2xf32> to vector<2xbf16>
  // From bfloat to half goes through float.
  // CHECK: %[[W:.*]] = arith.extf %[[H]] : vector<2xbf16> to vector<2xf32>
  // CHECK: arith.truncf %[[W]] : vector<2xf32> to vector<2xf16>
  tt.func public @arithmetic(%p: !tt.ptr<f32>, %q: !tt.ptr<f16>, %lo: f32, %hi: f32) {
    %s = tt.splat %p : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>, #l>
    %t = tt.splat %q : !tt.ptr<f16> -> tensor<64x!tt.ptr<f16>, #l>
    %l = tt.splat %lo : f32 -> tensor<64xf32, #l>
    %h = tt.splat %hi : f32 -> tensor<64xf32, #l>
    %x = tt.load %s : tensor<64x!tt.ptr<f32>, #l>
    %e = math.exp %x : tensor<64xf32, #l>
    %d = tt.precise_divf %e, %x : tensor<64xf32, #l>
    %r = tt.precise_sqrt %d : tensor<64xf32, #l>
    %c = tt.clampf %r, %l, %h, propagateNan = none : tensor<64xf32, #l>
    %b = tt.bitcast %c : tensor<64xf32, #l> -> tensor<64xi32, #l>
    %m = tt.mulhiui %b, %b : tensor<64xi32, #l>
    %f = tt.bitcast %m : tensor<64xi32, #l> -> tensor<64xf32, #l>
    %bf = tt.fp_to_fp %f, rounding = rtne : tensor<64xf32, #l> -> tensor<64xbf16, #l>
    %half = tt.fp_to_fp %bf, rounding = rtne : tensor<64xbf16, #l> -> tensor<64xf16, #l>
    tt.store %t, %half : tensor<64x!tt.ptr<f16>, #l>
    tt.return
  }

  // Bits above those that bfloat keeps are cut off; a NaN stays one.
  // CHECK-LABEL: msl.kernel @toward_zero
  // CHECK: %[[BITS:.*]] = arith.bitcast %arg1 : f32 to i32
  // CHECK: %[[UP:.*]] = arith.shrui %[[BITS]], %c16_i32
  // CHECK: %[[H:.*]] = arith.trunci %[[UP]] : i32 to i16
  // CHECK: %[[NAN:.*]] = arith.cmpf uno, %arg1, %arg1
  // CHECK: %[[QUIET:.*]] = arith.ori %[[H]], %c64_i16
  // CHECK: arith.select %[[NAN]], %[[QUIET]], %[[H]]
  tt.func public @toward_zero(%p: !tt.ptr<bf16>, %f: f32) {
    %b = tt.fp_to_fp %f, rounding = rtz : f32 -> bf16
    tt.store %p, %b : !tt.ptr<bf16>
    tt.return
  }
}

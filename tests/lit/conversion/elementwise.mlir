// RUN: triton-metal-opt %s --convert-ttm-to-msl --canonicalize --cse | FileCheck %s

#l = #ttm.linear<{register = [[32]], lane = [[1], [2], [4], [8], [16]], simdgroup = []}>
#four = #ttm.linear<{register = [[1], [128], [2]], lane = [[4], [8], [16], [32], [64]], simdgroup = []}>

module attributes {ttm.num_simdgroups = 1 : i32, ttm.threads = 32 : i32} {
  // Operations of arith and math stay what they are, on vectors; those of tt have counterparts.
  // CHECK-LABEL: msl.kernel @arithmetic
  // CHECK-DAG: %[[C:.*]] = arith.constant dense<2.000000e+00> : vector<2xf32>
  // CHECK-DAG: %[[LO:.*]] = msl.splat %arg2 : vector<2xf32>
  // CHECK-DAG: %[[HI:.*]] = msl.splat %arg3 : vector<2xf32>
  // CHECK: %[[X:.*]] = msl.load
  // CHECK: %[[E:.*]] = math.exp %[[X]] : vector<2xf32>
  // CHECK: %[[Q:.*]] = msl.precise_div %[[E]], %[[C]]
  // CHECK: %[[A:.*]] = arith.divf %[[Q]], %[[X]]
  // CHECK: %[[R:.*]] = msl.precise_sqrt %[[A]]
  // CHECK: %[[RAISED:.*]] = arith.maxnumf %[[R]], %[[LO]] : vector<2xf32>
  // CHECK: %[[CLAMPED:.*]] = arith.minnumf %[[RAISED]], %[[HI]]
  // A NaN propagates where the kernel asks for it.
  // CHECK: %[[RAISED2:.*]] = arith.maximumf %[[CLAMPED]], %[[LO]]
  // CHECK: %[[CLAMPED2:.*]] = arith.minimumf %[[RAISED2]], %[[HI]]
  // CHECK: %[[B:.*]] = arith.bitcast %[[CLAMPED2]] : vector<2xf32> to vector<2xi32>
  // CHECK: msl.mulhi unsigned %[[B]], %[[B]]
  tt.func public @arithmetic(%x: !tt.ptr<f32>, %y: !tt.ptr<i32>, %lo: f32, %hi: f32) {
    %i = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #l>
    %c = arith.constant dense<2.0> : tensor<64xf32, #l>
    %l = tt.splat %lo : f32 -> tensor<64xf32, #l>
    %h = tt.splat %hi : f32 -> tensor<64xf32, #l>
    %v = ttm.load %x[%i] : tensor<64xi32, #l>, !tt.ptr<f32> -> tensor<64xf32, #l>
    %e = math.exp %v : tensor<64xf32, #l>
    %q = tt.precise_divf %e, %c : tensor<64xf32, #l>
    %a = tt.approx_divf %q, %v : tensor<64xf32, #l>
    %r = tt.precise_sqrt %a : tensor<64xf32, #l>
    %s = tt.clampf %r, %l, %h, propagateNan = none : tensor<64xf32, #l>
    %t = tt.clampf %s, %l, %h, propagateNan = all : tensor<64xf32, #l>
    %b = tt.bitcast %t : tensor<64xf32, #l> -> tensor<64xi32, #l>
    %m = tt.mulhiui %b, %b : tensor<64xi32, #l>
    ttm.store %m, %y[%i] : tensor<64xi32, #l>, tensor<64xi32, #l>, !tt.ptr<i32>
    tt.return
  }

  // CHECK-LABEL: msl.kernel @float_types
  // CHECK: %[[X:.*]] = msl.load
  // CHECK: %[[B:.*]] = arith.truncf %[[X]] : vector<2xf32> to vector<2xbf16>
  // From bfloat to half goes through float.
  // CHECK: %[[W:.*]] = arith.extf %[[B]] : vector<2xbf16> to vector<2xf32>
  // CHECK: arith.truncf %[[W]] : vector<2xf32> to vector<2xf16>
  tt.func public @float_types(%x: !tt.ptr<f32>, %y: !tt.ptr<f16>) {
    %i = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #l>
    %v = ttm.load %x[%i] : tensor<64xi32, #l>, !tt.ptr<f32> -> tensor<64xf32, #l>
    %b = tt.fp_to_fp %v, rounding = rtne : tensor<64xf32, #l> -> tensor<64xbf16, #l>
    %h = tt.fp_to_fp %b, rounding = rtne : tensor<64xbf16, #l> -> tensor<64xf16, #l>
    ttm.store %h, %y[%i] : tensor<64xf16, #l>, tensor<64xi32, #l>, !tt.ptr<f16>
    tt.return
  }

  // Rounding towards zero keeps the upper bits; a NaN stays a NaN.
  // CHECK-LABEL: msl.kernel @toward_zero
  // CHECK: %[[BITS:.*]] = arith.bitcast %arg1 : f32 to i32
  // CHECK: %[[UP:.*]] = arith.shrui %[[BITS]], %c16_i32
  // CHECK: %[[H:.*]] = arith.trunci %[[UP]] : i32 to i16
  // CHECK: %[[NAN:.*]] = arith.cmpf uno, %arg1, %arg1
  // CHECK: %[[QUIET:.*]] = arith.ori %[[H]], %c64_i16
  // CHECK: %[[S:.*]] = arith.select %[[NAN]], %[[QUIET]], %[[H]]
  // CHECK: arith.bitcast %[[S]] : i16 to bf16
  tt.func public @toward_zero(%p: !tt.ptr<bf16>, %f: f32) {
    %c0 = arith.constant 0 : i32
    %b = tt.fp_to_fp %f, rounding = rtz : f32 -> bf16
    ttm.store %b, %p[%c0] : bf16, i32, !tt.ptr<bf16>
    tt.return
  }

  // Pointers are scalars. Metal adds 32 or 64 bits to one, and an address has 64.
  // CHECK-LABEL: msl.kernel @pointers
  // CHECK-SAME: (%[[P:.*]]: !msl.ptr<f32, device>, %[[N:.*]]: i16, %[[M:.*]]: i64)
  // CHECK: %[[N32:.*]] = arith.extsi %[[N]] : i16 to i32
  // CHECK: %[[Q:.*]] = msl.ptr_add %[[P]], %[[N32]] : <f32, device>, i32
  // CHECK: %[[R:.*]] = msl.ptr_add %[[Q]], %[[M]] : <f32, device>, i64
  // CHECK: %[[WORDS:.*]] = msl.ptr_cast %[[R]] : <f32, device> -> <i64, device>
  // CHECK: %[[ADDRESS:.*]] = msl.ptr_to_int %[[R]]
  // CHECK: msl.store %[[ADDRESS]], %[[WORDS]][%c0_i32]
  // CHECK: %[[AT:.*]] = msl.int_to_ptr %[[M]] : i64 -> <i64, device>
  tt.func public @pointers(%p: !tt.ptr<f32>, %n: i16, %m: i64) {
    %c0 = arith.constant 0 : i32
    %q = tt.addptr %p, %n : !tt.ptr<f32>, i16
    %r = tt.addptr %q, %m : !tt.ptr<f32>, i64
    %words = tt.bitcast %r : !tt.ptr<f32> -> !tt.ptr<i64>
    %address = tt.ptr_to_int %r : !tt.ptr<f32> -> i64
    ttm.store %address, %words[%c0] : i64, i32, !tt.ptr<i64>
    %at = tt.int_to_ptr %m : i64 -> !tt.ptr<i64>
    ttm.store %m, %at[%c0] : i64, i32, !tt.ptr<i64>
    tt.return
  }

  // Poison in a tile stays poison; a scalar becomes zero, which is the same in every run. Assumptions are dropped.
  // CHECK-LABEL: msl.kernel @poison
  // CHECK: %[[TILE:.*]] = ub.poison : vector<2xi32>
  // CHECK: msl.store %[[TILE]], %{{.*}}[%{{.*}}] : vector<2xi32>
  // CHECK: msl.store %c0_i32, %{{.*}} : i32
  // CHECK-NOT: llvm.intr.assume
  tt.func public @poison(%p: !tt.ptr<i32>, %c: i1) {
    %c0 = arith.constant 0 : i32
    %i = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #l>
    %tile = ub.poison : tensor<64xi32, #l>
    %scalar = ub.poison : i32
    ttm.store %tile, %p[%i] : tensor<64xi32, #l>, tensor<64xi32, #l>, !tt.ptr<i32>
    ttm.store %scalar, %p[%c0] : i32, i32, !tt.ptr<i32>
    llvm.intr.assume %c : i1
    tt.return
  }

  // Where neighbours have the same answer, a thread compares once for all of them, with what it computes for one.
  // CHECK-LABEL: msl.kernel @equal_conditions
  // CHECK-DAG: %[[EIGHT:.*]] = arith.constant dense<8> : vector<2xi32>
  // CHECK-DAG: %[[PLACES:.*]] = arith.constant dense<[0, 128]> : vector<2xi32>
  // CHECK: %[[THREAD:.*]] = msl.splat %{{.*}} : vector<2xi32>
  // CHECK: %[[RANGE:.*]] = arith.addi %[[THREAD]], %[[PLACES]]
  // CHECK: %[[AT:.*]] = arith.addi %[[RANGE]], %[[EIGHT]]
  // CHECK: %[[BOUND:.*]] = msl.splat %arg1 : vector<2xi32>
  // CHECK: %[[BELOW:.*]] = arith.cmpi slt, %[[AT]], %[[BOUND]] : vector<2xi32>
  // CHECK: msl.permute_registers %[[BELOW]] {bases = array<i64: 0, 1, 0>} : vector<2xi1> -> vector<8xi1>
  tt.func public @equal_conditions(%p: !tt.ptr<i32>, %n: i32) {
    %i = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32, #four>
    %eight = arith.constant dense<8> : tensor<256xi32, #four>
    %zero = arith.constant dense<0> : tensor<256xi32, #four>
    %ns = tt.splat %n : i32 -> tensor<256xi32, #four>
    %at = arith.addi %i, %eight : tensor<256xi32, #four>
    %m = arith.cmpi slt, %at, %ns {ttm.equal = array<i64: 4>} : tensor<256xi32, #four>
    %v = arith.select %m, %i, %zero : tensor<256xi1, #four>, tensor<256xi32, #four>
    ttm.store %v, %p[%i] : tensor<256xi32, #four>, tensor<256xi32, #four>, !tt.ptr<i32>
    tt.return
  }
}

// Every operation prints as it was read.
// RUN: triton-metal-opt %s | FileCheck %s
// RUN: triton-metal-opt %s | triton-metal-opt | FileCheck %s
// RUN: triton-metal-opt --mlir-print-op-generic %s | triton-metal-opt | FileCheck %s

// CHECK-LABEL: tt.func public @programs(%{{.*}}: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %{{.*}}: !tt.ptr<f16, 3>) attributes {noinline = false}
tt.func public @programs(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %s: !tt.ptr<f16, 3>) attributes {noinline = false} {
  // CHECK: tt.get_program_id x : i32
  %0 = tt.get_program_id x : i32
  // CHECK: tt.get_num_programs z : i32
  %1 = tt.get_num_programs z : i32
  tt.return
}

// CHECK-LABEL: tt.func @shapes
tt.func @shapes(%x: f32, %p: !tt.ptr<f32>) {
  // CHECK: tt.make_range {end = 192 : i32, start = 128 : i32} : tensor<64xi32>
  %r = tt.make_range {end = 192 : i32, start = 128 : i32} : tensor<64xi32>
  // CHECK: tt.splat %{{.*}} : f32 -> tensor<8x4xf32>
  %s = tt.splat %x : f32 -> tensor<8x4xf32>
  // CHECK: tt.splat %{{.*}} : !tt.ptr<f32> -> tensor<1x!tt.ptr<f32>>
  %sp = tt.splat %p : !tt.ptr<f32> -> tensor<1x!tt.ptr<f32>>
  // CHECK: tt.unsplat %{{.*}} : tensor<1x!tt.ptr<f32>>
  %u = tt.unsplat %sp : tensor<1x!tt.ptr<f32>>
  // CHECK: tt.expand_dims %{{.*}} {axis = 1 : i32} : tensor<8x4xf32> -> tensor<8x1x4xf32>
  %e = tt.expand_dims %s {axis = 1 : i32} : tensor<8x4xf32> -> tensor<8x1x4xf32>
  // CHECK: tt.broadcast %{{.*}} : tensor<8x1x4xf32> -> tensor<8x2x4xf32>
  %b = tt.broadcast %e : tensor<8x1x4xf32> -> tensor<8x2x4xf32>
  // CHECK: tt.reshape %{{.*}} : tensor<8x2x4xf32> -> tensor<64xf32>
  %f = tt.reshape %b : tensor<8x2x4xf32> -> tensor<64xf32>
  // CHECK: tt.reshape %{{.*}} allow_reorder efficient_layout : tensor<8x2x4xf32> -> tensor<64xf32>
  %g = tt.reshape %b allow_reorder efficient_layout : tensor<8x2x4xf32> -> tensor<64xf32>
  // CHECK: tt.trans %{{.*}} {order = array<i32: 2, 0, 1>} : tensor<8x2x4xf32> -> tensor<4x8x2xf32>
  %t = tt.trans %b {order = array<i32: 2, 0, 1>} : tensor<8x2x4xf32> -> tensor<4x8x2xf32>
  // CHECK: tt.join %{{.*}}, %{{.*}} : tensor<64xf32> -> tensor<64x2xf32>
  %j = tt.join %f, %g : tensor<64xf32> -> tensor<64x2xf32>
  // CHECK: %{{.*}}, %{{.*}} = tt.split %{{.*}} : tensor<64x2xf32> -> tensor<64xf32>
  %h, %k = tt.split %j : tensor<64x2xf32> -> tensor<64xf32>
  // CHECK: tt.cat %{{.*}}, %{{.*}} : tensor<64xf32> -> tensor<128xf32>
  %c = tt.cat %h, %k : tensor<64xf32> -> tensor<128xf32>
  // CHECK: tt.gather %{{.*}}[%{{.*}}] {axis = 0 : i32} : (tensor<128xf32>, tensor<64xi32>) -> tensor<64xf32>
  %l = tt.gather %c[%r] {axis = 0 : i32} : (tensor<128xf32>, tensor<64xi32>) -> tensor<64xf32>
  // CHECK: tt.histogram %{{.*}} : tensor<64xi32> -> tensor<16xi32>
  %m = tt.histogram %r : tensor<64xi32> -> tensor<16xi32>
  %true = arith.constant dense<true> : tensor<64xi1>
  // CHECK: tt.histogram %{{.*}}, %{{.*}} : tensor<64xi32> -> tensor<16xi32>
  %n = tt.histogram %r, %true : tensor<64xi32> -> tensor<16xi32>
  tt.return
}

// CHECK-LABEL: tt.func @arithmetic
tt.func @arithmetic(%i: tensor<16xi32>, %j: i64, %x: tensor<16xf32>, %h: tensor<16xf16>, %p: tensor<16x!tt.ptr<f32>>) {
  // CHECK: tt.mulhiui %{{.*}}, %{{.*}} : tensor<16xi32>
  %0 = tt.mulhiui %i, %i : tensor<16xi32>
  // CHECK: tt.mulhiui %{{.*}}, %{{.*}} : i64
  %1 = tt.mulhiui %j, %j : i64
  // CHECK: tt.precise_sqrt %{{.*}} : tensor<16xf32>
  %2 = tt.precise_sqrt %x : tensor<16xf32>
  // CHECK: tt.precise_divf %{{.*}}, %{{.*}} : tensor<16xf32>
  %3 = tt.precise_divf %x, %2 : tensor<16xf32>
  // CHECK: tt.approx_divf %{{.*}}, %{{.*}} : tensor<16xf32>
  %4 = tt.approx_divf %x, %2 : tensor<16xf32>
  // CHECK: tt.clampf %{{.*}}, %{{.*}}, %{{.*}}, propagateNan = all : tensor<16xf32>
  %5 = tt.clampf %x, %2, %3, propagateNan = all : tensor<16xf32>
  // CHECK: tt.bitcast %{{.*}} : tensor<16xf32> -> tensor<16xi32>
  %6 = tt.bitcast %x : tensor<16xf32> -> tensor<16xi32>
  // CHECK: tt.fp_to_fp %{{.*}}, rounding = rtz : tensor<16xf32> -> tensor<16xf16>
  %7 = tt.fp_to_fp %x, rounding = rtz : tensor<16xf32> -> tensor<16xf16>
  // CHECK: tt.fp_to_fp %{{.*}} : tensor<16xf16> -> tensor<16xf32>
  %8 = tt.fp_to_fp %7 : tensor<16xf16> -> tensor<16xf32>
  // CHECK: tt.addptr %{{.*}}, %{{.*}} : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %9 = tt.addptr %p, %i : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  // CHECK: tt.ptr_to_int %{{.*}} : tensor<16x!tt.ptr<f32>> -> tensor<16xi64>
  %10 = tt.ptr_to_int %9 : tensor<16x!tt.ptr<f32>> -> tensor<16xi64>
  // CHECK: tt.int_to_ptr %{{.*}} : i64 -> !tt.ptr<i8>
  %11 = tt.int_to_ptr %j : i64 -> !tt.ptr<i8>
  // CHECK: tt.extern_elementwise %{{.*}}, %{{.*}} {libname = "", libpath = "", pure = true, symbol = "f"} : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  %12 = tt.extern_elementwise %x, %2 {libname = "", libpath = "", pure = true, symbol = "f"} : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  tt.return
}

// CHECK-LABEL: tt.func @memory
tt.func @memory(%p: tensor<16x!tt.ptr<f32>>, %m: tensor<16xi1>, %o: tensor<16xf32>, %q: !tt.ptr<i32>, %i: i32, %t: i1) {
  // CHECK: tt.load %{{.*}} : tensor<16x!tt.ptr<f32>>
  %0 = tt.load %p : tensor<16x!tt.ptr<f32>>
  // CHECK: tt.load %{{.*}}, %{{.*}}, %{{.*}} cacheModifier = cg evictionPolicy = evict_last {isVolatile = true} : tensor<16x!tt.ptr<f32>>
  %1 = tt.load %p, %m, %o cacheModifier = cg evictionPolicy = evict_last {isVolatile = true} : tensor<16x!tt.ptr<f32>>
  // CHECK: tt.load %{{.*}} {cachePolicy = #tt.cache_policy<cache_modifier = ca, eviction_policy = evict_normal>} : !tt.ptr<i32>
  %2 = tt.load %q {cachePolicy = #tt.cache_policy<cache_modifier = ca, eviction_policy = evict_normal>} : !tt.ptr<i32>
  // CHECK: tt.store %{{.*}}, %{{.*}}, %{{.*}} cacheModifier = wt : tensor<16x!tt.ptr<f32>>
  tt.store %p, %1, %m cacheModifier = wt : tensor<16x!tt.ptr<f32>>
  // CHECK: tt.store %{{.*}}, %{{.*}} : !tt.ptr<i32>
  tt.store %q, %2 : !tt.ptr<i32>
  // CHECK: tt.atomic_rmw fadd, acq_rel, gpu, %{{.*}}, %{{.*}}, %{{.*}} : (tensor<16x!tt.ptr<f32>>, tensor<16xf32>, tensor<16xi1>) -> tensor<16xf32>
  %3 = tt.atomic_rmw fadd, acq_rel, gpu, %p, %o, %m : (tensor<16x!tt.ptr<f32>>, tensor<16xf32>, tensor<16xi1>) -> tensor<16xf32>
  // CHECK: tt.atomic_rmw umax, relaxed, sys, %{{.*}}, %{{.*}} : (!tt.ptr<i32>, i32) -> i32
  %4 = tt.atomic_rmw umax, relaxed, sys, %q, %i : (!tt.ptr<i32>, i32) -> i32
  // CHECK: tt.atomic_cas acquire, cta, %{{.*}}, %{{.*}}, %{{.*}} : (!tt.ptr<i32>, i32, i32) -> i32
  %5 = tt.atomic_cas acquire, cta, %q, %i, %i : (!tt.ptr<i32>, i32, i32) -> i32
  // CHECK: tt.atomic_load acquire, gpu, %{{.*}}, %{{.*}} : (!tt.ptr<i32>, i1) -> i32
  %6 = tt.atomic_load acquire, gpu, %q, %t : (!tt.ptr<i32>, i1) -> i32
  // CHECK: tt.atomic_store release, gpu, %{{.*}}, %{{.*}}, %{{.*}} : !tt.ptr<i32>
  tt.atomic_store release, gpu, %q, %i, %t : !tt.ptr<i32>
  tt.return
}

// CHECK-LABEL: tt.func @dots
tt.func @dots(%a: tensor<16x32xf16>, %b: tensor<32x64xf16>, %c: tensor<16x64xf32>, %i: tensor<2x16x16xi8>, %z: tensor<2x16x16xi32>, %s: tensor<16x1xi8>) {
  // CHECK: tt.dot %{{.*}}, %{{.*}}, %{{.*}}, inputPrecision = tf32x3 {maxNumImpreciseAcc = 32 : i32} : tensor<16x32xf16> * tensor<32x64xf16> -> tensor<16x64xf32>
  %0 = tt.dot %a, %b, %c, inputPrecision = tf32x3 {maxNumImpreciseAcc = 32 : i32} : tensor<16x32xf16> * tensor<32x64xf16> -> tensor<16x64xf32>
  // CHECK: tt.dot %{{.*}}, %{{.*}}, %{{.*}} : tensor<2x16x16xi8> * tensor<2x16x16xi8> -> tensor<2x16x16xi32>
  %1 = tt.dot %i, %i, %z : tensor<2x16x16xi8> * tensor<2x16x16xi8> -> tensor<2x16x16xi32>
  // CHECK: tt.dot_scaled %{{.*}} scale %{{.*}}, %{{.*}}, %{{.*}} lhs = fp16 rhs = fp16 {fastMath = true} : tensor<16x32xf16>, tensor<16x1xi8> * tensor<32x64xf16> -> tensor<16x64xf32>
  %2 = tt.dot_scaled %a scale %s, %b, %c lhs = fp16 rhs = fp16 {fastMath = true} : tensor<16x32xf16>, tensor<16x1xi8> * tensor<32x64xf16> -> tensor<16x64xf32>
  tt.return
}

// CHECK-LABEL: tt.func @combine
tt.func @combine(%x: tensor<8x32xf32>, %i: tensor<8x32xi32>) {
  // CHECK: "tt.reduce"(%{{.*}}, %{{.*}}) <{axis = 1 : i32}> ({
  // CHECK: tt.reduce.return %{{.*}}, %{{.*}} : f32, i32
  // CHECK: }) : (tensor<8x32xf32>, tensor<8x32xi32>) -> (tensor<8xf32>, tensor<8xi32>)
  %0:2 = "tt.reduce"(%x, %i) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %ai: i32, %b: f32, %bi: i32):
    tt.reduce.return %a, %bi : f32, i32
  }) : (tensor<8x32xf32>, tensor<8x32xi32>) -> (tensor<8xf32>, tensor<8xi32>)
  // CHECK: "tt.scan"(%{{.*}}) <{axis = 0 : i32, reverse = true}> ({
  // CHECK: tt.scan.return %{{.*}} : f32
  %1 = "tt.scan"(%0#0) <{axis = 0 : i32, reverse = true}> ({
  ^bb0(%a: f32, %b: f32):
    tt.scan.return %a : f32
  }) : (tensor<8xf32>) -> tensor<8xf32>
  // CHECK: "tt.map_elementwise"(%{{.*}}) <{pack = 2 : i32}> ({
  // CHECK: tt.map_elementwise.return %{{.*}}, %{{.*}} : f32, f32
  %2 = "tt.map_elementwise"(%1) <{pack = 2 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    tt.map_elementwise.return %b, %a : f32, f32
  }) : (tensor<8xf32>) -> tensor<8xf32>
  tt.return
}

// CHECK-LABEL: tt.func @debugging
tt.func @debugging(%x: tensor<8xf32>, %n: i32, %c: tensor<8xi1>) {
  // CHECK: tt.print "x: " {hex = false, isSigned = array<i32: 0, 1>} : %{{.*}}, %{{.*}} : tensor<8xf32>, i32
  tt.print "x: " {hex = false, isSigned = array<i32: 0, 1>} : %x, %n : tensor<8xf32>, i32
  // CHECK: tt.print "here" {hex = false, isSigned = array<i32>}
  tt.print "here" {hex = false, isSigned = array<i32>}
  // CHECK: tt.assert %{{.*}}, "no" : tensor<8xi1>
  tt.assert %c, "no" : tensor<8xi1>
  // CHECK: tt.elementwise_inline_asm "nop" {constraints = "=r,r", packed_element = 1 : i32, pure = false} %{{.*}} : tensor<8xf32> -> tensor<8xf32>
  %0 = tt.elementwise_inline_asm "nop" {constraints = "=r,r", packed_element = 1 : i32, pure = false} %x : tensor<8xf32> -> tensor<8xf32>
  tt.return
}

// CHECK-LABEL: tt.func private @a.b__c(f32) -> (f32, i1)
tt.func private @a.b__c(f32) -> (f32, i1)

// CHECK-LABEL: tt.func private @calls
tt.func private @calls(%x: f32) -> f32 attributes {noinline = true} {
  // CHECK: tt.call @a.b__c(%{{.*}}) : (f32) -> (f32, i1)
  %0:2 = tt.call @a.b__c(%x) : (f32) -> (f32, i1)
  // CHECK: tt.return %{{.*}} : f32
  tt.return %0#0 : f32
}

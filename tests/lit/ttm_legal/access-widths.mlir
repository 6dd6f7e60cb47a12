// RUN: triton-metal-opt %s --ttm-lower-pointers | FileCheck %s

#four = #ttm.linear<{register = [[1], [2], [4]], lane = [[8], [16], [32], [64], [128]], simdgroup = []}>
#one = #ttm.linear<{register = [[32], [64], [128]], lane = [[1], [2], [4], [8], [16]], simdgroup = []}>
module attributes {ttm.num_simdgroups = 1 : i32, ttm.threads = 32 : i32} {
  // Eight neighbours in registers, of which 16 bytes are one access; a bound that is a multiple of four has one answer
  // for four of them.
  // CHECK-LABEL: @masks
  tt.func public @masks(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 4 : i32}, %m: i32, %q: !tt.ptr<f16>) {
    %r = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32, #four>
    %b = tt.splat %p : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>, #four>
    %a = tt.addptr %b, %r : tensor<256x!tt.ptr<f32>, #four>, tensor<256xi32, #four>
    %ns = tt.splat %n : i32 -> tensor<256xi32, #four>
    %ms = tt.splat %m : i32 -> tensor<256xi32, #four>
    %nm = arith.cmpi slt, %r, %ns : tensor<256xi32, #four>
    %mm = arith.cmpi slt, %r, %ms : tensor<256xi32, #four>
    // CHECK: ttm.load %arg0[%{{[^]]*}}] {width = 4 : i32}
    %0 = tt.load %a : tensor<256x!tt.ptr<f32>, #four>
    // CHECK: ttm.load %arg0[%{{.*}}] mask %{{[^ ]*}} {mask_run = 8 : i32, mask_width = 4 : i32, width = 4 : i32}
    %1 = tt.load %a, %nm : tensor<256x!tt.ptr<f32>, #four>
    // CHECK: ttm.load %arg0[%{{.*}}] mask %{{[^ ]*}} {mask_run = 8 : i32, width = 4 : i32}
    %2 = tt.load %a, %mm : tensor<256x!tt.ptr<f32>, #four>
    // The address of this one is a multiple of two bytes only: a packed vector has four numbers.
    // CHECK: ttm.load %arg3[%{{[^]]*}}] {unaligned, width = 4 : i32} :
    %h = tt.splat %q : !tt.ptr<f16> -> tensor<256x!tt.ptr<f16>, #four>
    %g = tt.addptr %h, %r : tensor<256x!tt.ptr<f16>, #four>, tensor<256xi32, #four>
    %3 = tt.load %g : tensor<256x!tt.ptr<f16>, #four>
    // CHECK: ttm.store %{{.*}}, %arg0[%{{.*}}] mask %{{[^ ]*}} {mask_run = 8 : i32, width = 4 : i32}
    tt.store %a, %0, %mm : tensor<256x!tt.ptr<f32>, #four>
    tt.return
  }

  // Sixteen neighbours have one address: a thread's eight registers are one element. The second mask is asked for each element.
  // CHECK-LABEL: @groups
  tt.func public @groups(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 16 : i32}, %m: i32) {
    %r = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32, #four>
    %c16 = arith.constant dense<16> : tensor<256xi32, #four>
    %g = arith.divsi %r, %c16 : tensor<256xi32, #four>
    %b = tt.splat %p : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>, #four>
    %a = tt.addptr %b, %g : tensor<256x!tt.ptr<f32>, #four>, tensor<256xi32, #four>
    %ns = tt.splat %n : i32 -> tensor<256xi32, #four>
    %ms = tt.splat %m : i32 -> tensor<256xi32, #four>
    %nm = arith.cmpi slt, %r, %ns : tensor<256xi32, #four>
    %mm = arith.cmpi slt, %r, %ms : tensor<256xi32, #four>
    %one = arith.constant dense<1.0> : tensor<256xf32, #four>
    // CHECK: ttm.load %arg0[%{{[^]]*}}] {repeat = 8 : i32} :
    %0 = tt.load %a : tensor<256x!tt.ptr<f32>, #four>
    // CHECK: ttm.load %arg0[%{{.*}}] mask %{{[^ ]*}} other %{{[^ ]*}} {repeat = 8 : i32}
    %1 = tt.load %a, %nm, %one : tensor<256x!tt.ptr<f32>, #four>
    // CHECK: ttm.load %arg0[%{{.*}}] mask %{{[^ ]*}} :
    %2 = tt.load %a, %mm : tensor<256x!tt.ptr<f32>, #four>
    // CHECK: ttm.load %arg0[%{{.*}}] mask %{{[^ ]*}} other %{{[^ ]*}} :
    %3 = tt.load %a, %nm, %2 : tensor<256x!tt.ptr<f32>, #four>
    tt.store %a, %0 : tensor<256x!tt.ptr<f32>, #four>
    tt.store %a, %1 : tensor<256x!tt.ptr<f32>, #four>
    tt.store %a, %3 : tensor<256x!tt.ptr<f32>, #four>
    tt.return
  }

  // A condition on which more than masks depend is one for four neighbours, or for eight. What the text claims does not count.
  // CHECK-LABEL: @conditions
  tt.func public @conditions(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 4 : i32}, %m: i32) {
    %r = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32, #four>
    %b = tt.splat %p : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>, #four>
    %a = tt.addptr %b, %r : tensor<256x!tt.ptr<f32>, #four>, tensor<256xi32, #four>
    %ns = tt.splat %n : i32 -> tensor<256xi32, #four>
    %ms = tt.splat %m : i32 -> tensor<256xi32, #four>
    %c8 = arith.constant dense<8> : tensor<256xi32, #four>
    %zero = arith.constant dense<0.0> : tensor<256xf32, #four>
    // CHECK: arith.cmpi slt, %{{.*}}, %{{.*}} {ttm.equal = array<i64: 4>}
    %nm = arith.cmpi slt, %r, %ns : tensor<256xi32, #four>
    // CHECK-NEXT: arith.cmpi slt, %{{[^ ]*}}, %{{[^ ]*}} : tensor
    %mm = arith.cmpi slt, %r, %ms {ttm.equal = array<i64: 4>} : tensor<256xi32, #four>
    // CHECK: arith.cmpi slt, %{{.*}}, %{{.*}} {ttm.equal = array<i64: 8>}
    %g = arith.divsi %r, %c8 : tensor<256xi32, #four>
    %gm = arith.cmpi slt, %g, %ms : tensor<256xi32, #four>
    // This one is only a mask.
    // CHECK-NEXT: arith.cmpi sgt, %{{[^ ]*}}, %{{[^ ]*}} : tensor
    %only = arith.cmpi sgt, %r, %ns : tensor<256xi32, #four>
    %both = arith.andi %only, %nm : tensor<256xi1, #four>
    %0 = tt.load %a, %both : tensor<256x!tt.ptr<f32>, #four>
    %1 = arith.select %nm, %0, %zero : tensor<256xi1, #four>, tensor<256xf32, #four>
    %2 = arith.select %mm, %1, %zero : tensor<256xi1, #four>, tensor<256xf32, #four>
    %3 = arith.select %gm, %2, %zero : tensor<256xi1, #four>, tensor<256xf32, #four>
    tt.store %a, %3 : tensor<256x!tt.ptr<f32>, #four>
    tt.return
  }

  // The neighbours are in other lanes.
  // CHECK-LABEL: @lanes
  tt.func public @lanes(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
    %r = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32, #one>
    %b = tt.splat %p : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>, #one>
    %a = tt.addptr %b, %r : tensor<256x!tt.ptr<f32>, #one>, tensor<256xi32, #one>
    // CHECK: ttm.load %arg0[%{{[^]]*}}] :
    %0 = tt.load %a : tensor<256x!tt.ptr<f32>, #one>
    tt.return
  }
}

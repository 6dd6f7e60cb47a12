// RUN: triton-metal-opt %s --msl-loops-pipeline --msl-text-pipeline --msl-print-metal -o /dev/null | FileCheck %s

// One branch picks the loop without masks; 16 bytes an access; names of the source.
// CHECK:      #include <metal_stdlib>
// CHECK-NEXT: using namespace metal;
// CHECK-EMPTY:
// CHECK-NEXT: #pragma METAL fp math_mode(safe)
// CHECK-NEXT: #pragma METAL fp contract(off)
// CHECK-EMPTY:
// CHECK-NEXT: {{\[\[}}kernel, max_total_threads_per_threadgroup(128)]] void add(
// CHECK-NEXT:     device const float *x {{\[\[}}buffer(0)]],
// CHECK-NEXT:     device const float *y {{\[\[}}buffer(1)]],
// CHECK-NEXT:     device float *out {{\[\[}}buffer(2)]],
// CHECK-NEXT:     constant uint *args {{\[\[}}buffer(3)]],
// CHECK-NEXT:     uint3 program_id {{\[\[}}threadgroup_position_in_grid]],
// CHECK-NEXT:     ushort lane {{\[\[}}thread_index_in_simdgroup]],
// CHECK-NEXT:     ushort simdgroup {{\[\[}}simdgroup_index_in_threadgroup]]) {
// CHECK-NEXT:   const int n = as_type<int>(args[0]);
// CHECK-NEXT:   uint start = program_id.x * 1024;
// CHECK-NEXT:   int index = lane * 4 + simdgroup * 128;
// CHECK-NEXT:   if (int(start + 1024) <= n) {
// CHECK-NEXT:     #pragma unroll
// CHECK-NEXT:     for (ushort i = 0; i < 2; ++i) {
// CHECK-NEXT:       int offsets = start + (index + i * 512);
// CHECK-NEXT:       *(device float4 *)(out + offsets) = *(device const float4 *)(x + offsets) + *(device const float4 *)(y + offsets);
// CHECK-NEXT:     }
// CHECK-NEXT:   } else {
// CHECK-NEXT:     #pragma unroll
// CHECK-NEXT:     for (ushort i = 0; i < 2; ++i) {
// CHECK-NEXT:       #pragma unroll
// CHECK-NEXT:       for (ushort j = 0; j < 4; ++j) {
// CHECK-NEXT:         int offsets = start + (index + (i * 512 + j));
// CHECK-NEXT:         if (offsets < n)
// CHECK-NEXT:           out[offsets] = x[offsets] + y[offsets];
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }

msl.kernel @add(%x: !msl.ptr<f32, device> {msl.name = "x", msl.readonly}, %y: !msl.ptr<f32, device> {msl.name = "y", msl.readonly},
                %out: !msl.ptr<f32, device> {msl.name = "out"}, %n: i32 {msl.name = "n"}) threads 128 {
  %c1024 = arith.constant 1024 : i32
  %c4 = arith.constant 4 : i32
  %c128 = arith.constant 128 : i32
  %pid = msl.program_id 0 : i32 loc("pid")
  %start = arith.muli %pid, %c1024 : i32 loc("start")
  %lane = msl.lane : i32
  %sg = msl.simdgroup : i32
  %l4 = arith.muli %lane, %c4 : i32
  %s4 = arith.muli %sg, %c128 : i32
  %t = arith.addi %l4, %s4 : i32
  %ts = msl.splat %t : vector<8xi32>
  %reg = arith.constant dense<[0, 1, 2, 3, 512, 513, 514, 515]> : vector<8xi32>
  %r = arith.addi %ts, %reg : vector<8xi32>
  %starts = msl.splat %start : vector<8xi32>
  %offsets = arith.addi %starts, %r : vector<8xi32> loc("offsets")
  %ns = msl.splat %n : vector<8xi32>
  %mask = arith.cmpi slt, %offsets, %ns : vector<8xi32> loc("mask")
  %end = arith.addi %start, %c1024 : i32
  %full = arith.cmpi sle, %end, %n : i32 loc("full")
  %a = msl.load %x[%offsets] mask %mask full %full {width = 4 : i32} : !msl.ptr<f32, device>, vector<8xi32> -> vector<8xf32> loc("a")
  %b = msl.load %y[%offsets] mask %mask full %full {width = 4 : i32} : !msl.ptr<f32, device>, vector<8xi32> -> vector<8xf32> loc("b")
  %c = arith.addf %a, %b : vector<8xf32> loc("c")
  msl.store %c, %out[%offsets] mask %mask full %full {width = 4 : i32} : vector<8xf32>, !msl.ptr<f32, device>, vector<8xi32>
  msl.return
}

// RUN: triton-metal-opt %s --msl-loops-pipeline --msl-text-pipeline --msl-print-metal -o /dev/null | FileCheck %s
// RUN: triton-metal-opt %s --canonicalize --cse --symbol-dce --msl-loops-pipeline --cse --msl-text-pipeline --msl-print-metal -o /dev/null | FileCheck %s

// Each load is a statement of its own, in its place, one element at a time; one that nothing uses stays.
// CHECK-LABEL: void k(
// CHECK: bfloat arg0_value = as_type<bfloat>(*(volatile device const ushort *)arg0);
// CHECK: bfloat arg0_value_1 = as_type<bfloat>(*(volatile device const ushort *)arg0);
// CHECK: arg0[1] = bfloat(float(arg0_value) + float(arg0_value_1));
// CHECK: float arg1_value = *(volatile device const float *)arg1;
// CHECK:   for (ushort i = 0; i < 2; ++i) {
// CHECK:     float arg1_value_1 = *(volatile device const float *)(arg1 + offset)
msl.kernel @k(%x: !msl.ptr<bf16, device>, %y: !msl.ptr<f32, device>) threads 32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %a = msl.load %x[%c0] {is_volatile} : !msl.ptr<bf16, device>, i32 -> bf16
  %b = msl.load %x[%c0] {is_volatile} : !msl.ptr<bf16, device>, i32 -> bf16
  %sum = arith.addf %a, %b : bf16
  msl.store %sum, %x[%c1] : bf16, !msl.ptr<bf16, device>, i32
  %unread = msl.load %y[%c0] {is_volatile} : !msl.ptr<f32, device>, i32 -> f32
  %lane = msl.lane : i32
  %lanes = msl.splat %lane : vector<2xi32>
  %registers = arith.constant dense<[0, 32]> : vector<2xi32>
  %offsets = arith.addi %lanes, %registers : vector<2xi32>
  %v = msl.load %y[%offsets] {is_volatile} : !msl.ptr<f32, device>, vector<2xi32> -> vector<2xf32>
  msl.store %v, %y[%offsets] : vector<2xf32>, !msl.ptr<f32, device>, vector<2xi32>
  msl.return
}

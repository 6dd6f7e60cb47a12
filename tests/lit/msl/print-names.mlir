// RUN: triton-metal-opt %s --split-input-file --msl-loops-pipeline --msl-text-pipeline --msl-print-metal -o /dev/null | FileCheck %s

// Names of Metal's types and macros are those of no kernel and no argument.
// CHECK-LABEL: void float4_(
// CHECK-NEXT:     device float *{{FLT_MAX_1|vFLT_MAX}} {{\[\[}}buffer(0)]],
msl.kernel @float4(%x: !msl.ptr<f32, device> {msl.name = "FLT_MAX"}, %f: f32 {msl.name = "M_PI_F"}) threads 32 {
  %i = msl.lane : i32
  msl.store %f, %x[%i] : f32, !msl.ptr<f32, device>, i32
  msl.return
}

// -----

// CHECK-LABEL: void INT_MAX_(
// CHECK-NEXT:     device float *x {{\[\[}}buffer(0)]],
msl.kernel @INT_MAX(%x: !msl.ptr<f32, device> {msl.name = "x"}, %f: f32 {msl.name = "INT_MAXIMUM"}) threads 32 {
  %i = msl.lane : i32
  msl.store %f, %x[%i] : f32, !msl.ptr<f32, device>, i32
  msl.return
}

// -----

// clang has words that begin as the names that C++ reserves.
// CHECK-LABEL: void words(
// CHECK-NEXT:     device float *v_Complex {{\[\[}}buffer(0)]],
// CHECK:          v_Atomic
msl.kernel @words(%x: !msl.ptr<f32, device> {msl.name = "_Complex"}, %f: f32 {msl.name = "_Atomic"}) threads 32 {
  %i = msl.lane : i32
  msl.store %f, %x[%i] : f32, !msl.ptr<f32, device>, i32
  msl.return
}

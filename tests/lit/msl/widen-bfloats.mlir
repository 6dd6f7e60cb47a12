// RUN: triton-metal-opt %s --msl-widen-bfloats --split-input-file | FileCheck %s

// CHECK-LABEL: @mixed
// CHECK: %[[X:.*]] = msl.read %arg0 : {{.*}} -> vector<2xbf16>
// CHECK: %[[BITS:.*]] = arith.bitcast %[[X]] : vector<2xbf16> to vector<2xi16>
// CHECK: %[[WORDS:.*]] = arith.extui %[[BITS]] : vector<2xi16> to vector<2xi32>
// CHECK: %[[HIGH:.*]] = arith.shli %[[WORDS]], %{{.*}} : vector<2xi32>
// CHECK: arith.bitcast %[[HIGH]] : vector<2xi32> to vector<2xf32>
// CHECK: arith.extf %{{.*}} : vector<2xf16> to vector<2xf32>
msl.kernel @mixed(%x: !msl.ptr<bf16, device>, %y: !msl.ptr<f16, device>) threads 32 {
  %a = msl.read %x : !msl.ptr<bf16, device> -> vector<2xbf16>
  %b = msl.read %y : !msl.ptr<f16, device> -> vector<2xf16>
  %wa = arith.extf %a : vector<2xbf16> to vector<2xf32>
  %wb = arith.extf %b : vector<2xf16> to vector<2xf32>
  %q = arith.divf %wb, %wa : vector<2xf32>
  %h = arith.truncf %q : vector<2xf32> to vector<2xf16>
  msl.write %h, %y : vector<2xf16>, !msl.ptr<f16, device>
  msl.return
}

// -----

// Nothing becomes a half.
// CHECK-LABEL: @bfloats
// CHECK: arith.extf
msl.kernel @bfloats(%x: !msl.ptr<bf16, device>) threads 32 {
  %a = msl.read %x : !msl.ptr<bf16, device> -> bf16
  %w = arith.extf %a : bf16 to f32
  %s = arith.addf %w, %w : f32
  %b = arith.truncf %s : f32 to bf16
  msl.write %b, %x : bf16, !msl.ptr<bf16, device>
  msl.return
}

// RUN: triton-metal-opt %s --msl-unroll-hints | FileCheck %s

// A kernel in slices lacks registers: the steps of a product stay a loop, as their index only says where fragments lie. Those over its matrices cannot.
module attributes {ttm.slices = 2 : i32, ttm.lacks_registers} {
  // CHECK-LABEL: msl.kernel @steps
  // CHECK: msl.unroll %[[STEP:.*]] = 0 to 4 : ui16 {
  // CHECK: msl.unroll %{{.*}} = 0 to 2 : ui16 pragma {
  msl.kernel @steps(%x: !msl.ptr<f16, device>) threads 32 {
    %acc = msl.var : !msl.array<2x!msl.matrix<8x8xf32>>
    %c8 = arith.constant 8 : i32
    msl.unroll %i = 0 to 4 : ui16 {
      %a = msl.var : !msl.array<1x!msl.matrix<8x8xf16>>
      %at = msl.binary mul %i, %c8 : (ui16, i32) -> i32
      %v = msl.read %x[%at : i32] : !msl.ptr<f16, device> -> vector<2xf16>
      msl.set %v, %a : vector<2xf16>, !msl.array<1x!msl.matrix<8x8xf16>>
      msl.unroll %j = 0 to 2 : ui16 {
        msl.multiply_accumulate %acc[%j (ui16)], %a, %a : <2x!msl.matrix<8x8xf32>>, <1x!msl.matrix<8x8xf16>>, <1x!msl.matrix<8x8xf16>>
      }
    }
    msl.return
  }
}

// RUN: triton-metal-opt %s --msl-text-pipeline --msl-print-metal -o /dev/null | FileCheck %s

// A pointer is moved by one number. An access has its offset's parts one by one, as part of them may be a loop's index.
// CHECK-LABEL: void moved(
// CHECK: threadgroup float *rows = tile + ((lane >> 2) * 24 + (lane & 3) * 2);
// CHECK: for (ushort i = 0; i < 4; ++i)
// CHECK: *(threadgroup float2 *)(rows + i * 8) = float2(1.0f);
msl.kernel @moved(%x: !msl.ptr<f32, device>) threads 32 {
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c3 = arith.constant 3 : i32
  %c8 = arith.constant 8 : i32
  %c24 = arith.constant 24 : i32
  %one = arith.constant dense<1.0> : vector<2xf32>
  %tile = msl.alloc "tile", 512 : !msl.ptr<f32, threadgroup>
  %lane = msl.lane : i32
  %high = arith.shrui %lane, %c2 : i32
  %row = arith.muli %high, %c24 : i32
  %low = arith.andi %lane, %c3 : i32
  %column = arith.muli %low, %c2 : i32
  %place = arith.addi %row, %column overflow<nsw> : i32
  %rows = msl.ptr_add %tile, %place : !msl.ptr<f32, threadgroup>, i32 loc("rows")
  msl.unroll %i = 0 to 4 {
    %at = arith.muli %i, %c8 overflow<nsw> : i32
    msl.write %one, %rows[%at : i32] : vector<2xf32>, !msl.ptr<f32, threadgroup>
  }
  msl.return
}

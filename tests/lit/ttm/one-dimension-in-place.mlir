// RUN: triton-metal-opt %s "--convert-tt-to-ttm=num-warps=1" --ttm-coalesce --ttm-assign-dot-layouts --ttm-remove-layout-conversions | FileCheck %s

// A thread needs eight numbers of the vector that no shuffle brings from where they would be read at once: it reads them
// itself, as two barriers and a way through threadgroup memory take longer.
// CHECK-LABEL: @vector_times_rows
tt.func @vector_times_rows(%m: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %y: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
  %k = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %r = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %c16 = arith.constant dense<16> : tensor<64x1xi32>
  %rows = tt.expand_dims %k {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %begin = arith.muli %rows, %c16 : tensor<64x1xi32>
  %columns = tt.expand_dims %r {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
  %0 = tt.broadcast %begin : tensor<64x1xi32> -> tensor<64x16xi32>
  %1 = tt.broadcast %columns : tensor<1x16xi32> -> tensor<64x16xi32>
  %at = arith.addi %0, %1 : tensor<64x16xi32>
  %2 = tt.splat %m : !tt.ptr<f32> -> tensor<64x16x!tt.ptr<f32>>
  %ms = tt.addptr %2, %at : tensor<64x16x!tt.ptr<f32>>, tensor<64x16xi32>
  %3 = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %xs = tt.addptr %3, %k : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %4 = tt.splat %y : !tt.ptr<f32> -> tensor<64x16x!tt.ptr<f32>>
  %ys = tt.addptr %4, %at : tensor<64x16x!tt.ptr<f32>>, tensor<64x16xi32>
  %a = tt.load %ms : tensor<64x16x!tt.ptr<f32>>
  %b = tt.load %xs : tensor<64x!tt.ptr<f32>>
  // CHECK-NOT: ttm.convert_layout
  // CHECK: tt.store
  %5 = tt.expand_dims %b {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
  %6 = tt.broadcast %5 : tensor<64x1xf32> -> tensor<64x16xf32>
  %7 = arith.mulf %a, %6 : tensor<64x16xf32>
  tt.store %ys, %7 : tensor<64x16x!tt.ptr<f32>>
  tt.return
}

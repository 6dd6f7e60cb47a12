// RUN: triton-metal-opt %s --msl-expand-thread-indices --msl-loops-pipeline --msl-text-pipeline --msl-print-metal -o /dev/null | FileCheck %s

// A row of which only the elements' alignment is known: packed vectors, which become vectors where they are read. The bits of
// bfloats travel in packed vectors of ushort.
// CHECK-LABEL: void row(
// CHECK:      if (offset + 3 < n) {
// CHECK-NEXT:   half4 x_values = half4(*(device const packed_half4 *)(x + offset));
// CHECK-NEXT:   *(device packed_half4 *)(y + offset) = packed_half4(x_values + x_values);
// CHECK-NEXT: } else {
// CHECK-NEXT:   if (offset < n) {
// CHECK:          device half *x_part = x + offset;
// CHECK:          x_value[i] = offset + i < n ? x_part[i] : 0.0h;
// CHECK:          int offset_1 = offset + i;
// CHECK-NEXT:     if (offset_1 < n)
// CHECK-NEXT:       y[offset_1] = sum[i];
// CHECK-NEXT:   }
// CHECK-NEXT: }
// CHECK-NEXT: }
msl.kernel @row(%x: !msl.ptr<f16, device> {msl.name = "x"}, %y: !msl.ptr<f16, device> {msl.name = "y"}, %n: i32 {msl.name = "n"}) threads 32 {
  %o = msl.thread_index lanes [4, 8, 16, 32, 64] simdgroups [] : i32
  %os = msl.splat %o : vector<4xi32>
  %i = arith.constant dense<[0, 1, 2, 3]> : vector<4xi32>
  %p = arith.addi %os, %i : vector<4xi32>
  %ns = msl.splat %n : vector<4xi32>
  %m = arith.cmpi slt, %p, %ns : vector<4xi32>
  %v = msl.load %x[%p] mask %m {width = 4 : i32, mask_run = 4 : i32, unaligned} : !msl.ptr<f16, device>, vector<4xi32> -> vector<4xf16>
  %w = arith.addf %v, %v : vector<4xf16>
  msl.store %w, %y[%p] mask %m {width = 4 : i32, mask_run = 4 : i32, unaligned} : vector<4xf16>, !msl.ptr<f16, device>, vector<4xi32>
  msl.return
}
// CHECK-LABEL: void bits(
// CHECK: as_type<bfloat4>(ushort4(*(device const packed_ushort4 *)(x + {{.*}})))
// CHECK: *(device packed_ushort4 *)(y + {{.*}}) = packed_ushort4(as_type<ushort4>(
msl.kernel @bits(%x: !msl.ptr<bf16, device> {msl.name = "x"}, %y: !msl.ptr<bf16, device> {msl.name = "y"}) threads 32 {
  %o = msl.thread_index lanes [4, 8, 16, 32, 64] simdgroups [] : i32
  %os = msl.splat %o : vector<4xi32>
  %i = arith.constant dense<[0, 1, 2, 3]> : vector<4xi32>
  %p = arith.addi %os, %i : vector<4xi32>
  %v = msl.load %x[%p] {width = 4 : i32, unaligned} : !msl.ptr<bf16, device>, vector<4xi32> -> vector<4xbf16>
  %w = arith.addf %v, %v : vector<4xbf16>
  msl.store %w, %y[%p] {width = 4 : i32, unaligned} : vector<4xbf16>, !msl.ptr<bf16, device>, vector<4xi32>
  msl.return
}

// Two rows that end in different places: where one ends, the other one is still read in whole vectors.
// CHECK-LABEL: void two_rows(
// CHECK:      if ({{index|offset \+ 3}} < n) {
// CHECK-NEXT:   *(device packed_half4 *)(y + offset) = packed_half4(half4(*(device const packed_half4 *)(x + offset)));
// CHECK-NEXT: } else {
// CHECK-NEXT:   if (offset < n) {
// CHECK:      if ({{index|offset \+ 3}} < m) {
// CHECK-NEXT:   *(device packed_half4 *)(y + offset) = packed_half4(half4(*(device const packed_half4 *)(z + offset)));
// CHECK-NEXT: } else {
// CHECK-NEXT:   if (offset < m) {
msl.kernel @two_rows(%x: !msl.ptr<f16, device> {msl.name = "x"}, %y: !msl.ptr<f16, device> {msl.name = "y"}, %z: !msl.ptr<f16, device> {msl.name = "z"}, %n: i32 {msl.name = "n"}, %m: i32 {msl.name = "m"}) threads 32 {
  %o = msl.thread_index lanes [4, 8, 16, 32, 64] simdgroups [] : i32
  %os = msl.splat %o : vector<4xi32>
  %i = arith.constant dense<[0, 1, 2, 3]> : vector<4xi32>
  %p = arith.addi %os, %i : vector<4xi32>
  %ns = msl.splat %n : vector<4xi32>
  %ms = msl.splat %m : vector<4xi32>
  %nm = arith.cmpi slt, %p, %ns : vector<4xi32>
  %mm = arith.cmpi slt, %p, %ms : vector<4xi32>
  %v = msl.load %x[%p] mask %nm {width = 4 : i32, mask_run = 4 : i32, unaligned} : !msl.ptr<f16, device>, vector<4xi32> -> vector<4xf16>
  msl.store %v, %y[%p] mask %nm {width = 4 : i32, mask_run = 4 : i32, unaligned} : vector<4xf16>, !msl.ptr<f16, device>, vector<4xi32>
  %w = msl.load %z[%p] mask %mm {width = 4 : i32, mask_run = 4 : i32, unaligned} : !msl.ptr<f16, device>, vector<4xi32> -> vector<4xf16>
  msl.store %w, %y[%p] mask %mm {width = 4 : i32, mask_run = 4 : i32, unaligned} : vector<4xf16>, !msl.ptr<f16, device>, vector<4xi32>
  msl.return
}

// All lanes come to an exchange: the loop it is in asks for the row's end element by element.
// CHECK-LABEL: void exchanged(
// CHECK-NOT: if (
// CHECK: x_value[i] = offset + i < n ? x_part[i] : 0.0h;
// CHECK: simd_shuffle_xor(
msl.kernel @exchanged(%x: !msl.ptr<f16, device> {msl.name = "x"}, %y: !msl.ptr<f16, device> {msl.name = "y"}, %n: i32 {msl.name = "n"}) threads 32 {
  %o = msl.thread_index lanes [4, 8, 16, 32, 64] simdgroups [] : i32
  %os = msl.splat %o : vector<4xi32>
  %i = arith.constant dense<[0, 1, 2, 3]> : vector<4xi32>
  %p = arith.addi %os, %i : vector<4xi32>
  %ns = msl.splat %n : vector<4xi32>
  %m = arith.cmpi slt, %p, %ns : vector<4xi32>
  %v = msl.load %x[%p] mask %m {width = 4 : i32, mask_run = 4 : i32, unaligned} : !msl.ptr<f16, device>, vector<4xi32> -> vector<4xf16>
  %w = msl.simd_shuffle_xor %v, 1 : vector<4xf16>
  msl.store %w, %y[%p] {width = 4 : i32, unaligned} : vector<4xf16>, !msl.ptr<f16, device>, vector<4xi32>
  msl.return
}

// RUN: triton-metal-opt %s --msl-form-tile-loops --msl-place-tiles | FileCheck %s

// A step takes all registers between which choices that are computed on demand choose: the eight codes of a word.
// CHECK-LABEL: msl.kernel @codes
// CHECK:       msl.tile_loop 16 step 8 {
msl.kernel @codes(%x: !msl.ptr<i32, device>, %y: !msl.ptr<i32, device>) threads 32 {
  %at = arith.constant dense<[0, 1]> : vector<2xi32>
  %to = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]> : vector<16xi32>
  %mask = arith.constant dense<15> : vector<2xi32>
  %odd4 = arith.constant dense<[false, true, false, true]> : vector<4xi1>
  %odd8 = arith.constant dense<[false, true, false, true, false, true, false, true]> : vector<8xi1>
  %odd16 = arith.constant dense<[false, true, false, true, false, true, false, true, false, true, false, true, false, true, false, true]> : vector<16xi1>
  %words = msl.load %x[%at] {width = 2 : i32} : !msl.ptr<i32, device>, vector<2xi32> -> vector<2xi32>
  %by0 = arith.constant dense<0> : vector<2xi32>
  %s0 = arith.shrui %words, %by0 : vector<2xi32>
  %c0 = arith.andi %s0, %mask : vector<2xi32>
  %by1 = arith.constant dense<4> : vector<2xi32>
  %s1 = arith.shrui %words, %by1 : vector<2xi32>
  %c1 = arith.andi %s1, %mask : vector<2xi32>
  %by2 = arith.constant dense<8> : vector<2xi32>
  %s2 = arith.shrui %words, %by2 : vector<2xi32>
  %c2 = arith.andi %s2, %mask : vector<2xi32>
  %by3 = arith.constant dense<12> : vector<2xi32>
  %s3 = arith.shrui %words, %by3 : vector<2xi32>
  %c3 = arith.andi %s3, %mask : vector<2xi32>
  %by4 = arith.constant dense<16> : vector<2xi32>
  %s4 = arith.shrui %words, %by4 : vector<2xi32>
  %c4 = arith.andi %s4, %mask : vector<2xi32>
  %by5 = arith.constant dense<20> : vector<2xi32>
  %s5 = arith.shrui %words, %by5 : vector<2xi32>
  %c5 = arith.andi %s5, %mask : vector<2xi32>
  %by6 = arith.constant dense<24> : vector<2xi32>
  %s6 = arith.shrui %words, %by6 : vector<2xi32>
  %c6 = arith.andi %s6, %mask : vector<2xi32>
  %by7 = arith.constant dense<28> : vector<2xi32>
  %s7 = arith.shrui %words, %by7 : vector<2xi32>
  %c7 = arith.andi %s7, %mask : vector<2xi32>
  %p0a = msl.permute_registers %c0 {bases = array<i64: 0, 1>} : vector<2xi32> -> vector<4xi32>
  %p0b = msl.permute_registers %c4 {bases = array<i64: 0, 1>} : vector<2xi32> -> vector<4xi32>
  %p0 = arith.select %odd4, %p0b, %p0a : vector<4xi1>, vector<4xi32>
  %p1a = msl.permute_registers %c1 {bases = array<i64: 0, 1>} : vector<2xi32> -> vector<4xi32>
  %p1b = msl.permute_registers %c5 {bases = array<i64: 0, 1>} : vector<2xi32> -> vector<4xi32>
  %p1 = arith.select %odd4, %p1b, %p1a : vector<4xi1>, vector<4xi32>
  %p2a = msl.permute_registers %c2 {bases = array<i64: 0, 1>} : vector<2xi32> -> vector<4xi32>
  %p2b = msl.permute_registers %c6 {bases = array<i64: 0, 1>} : vector<2xi32> -> vector<4xi32>
  %p2 = arith.select %odd4, %p2b, %p2a : vector<4xi1>, vector<4xi32>
  %p3a = msl.permute_registers %c3 {bases = array<i64: 0, 1>} : vector<2xi32> -> vector<4xi32>
  %p3b = msl.permute_registers %c7 {bases = array<i64: 0, 1>} : vector<2xi32> -> vector<4xi32>
  %p3 = arith.select %odd4, %p3b, %p3a : vector<4xi1>, vector<4xi32>
  %q0a = msl.permute_registers %p0 {bases = array<i64: 0, 1, 2>} : vector<4xi32> -> vector<8xi32>
  %q0b = msl.permute_registers %p2 {bases = array<i64: 0, 1, 2>} : vector<4xi32> -> vector<8xi32>
  %q0 = arith.select %odd8, %q0b, %q0a : vector<8xi1>, vector<8xi32>
  %q1a = msl.permute_registers %p1 {bases = array<i64: 0, 1, 2>} : vector<4xi32> -> vector<8xi32>
  %q1b = msl.permute_registers %p3 {bases = array<i64: 0, 1, 2>} : vector<4xi32> -> vector<8xi32>
  %q1 = arith.select %odd8, %q1b, %q1a : vector<8xi1>, vector<8xi32>
  %ra = msl.permute_registers %q0 {bases = array<i64: 0, 1, 2, 4>} : vector<8xi32> -> vector<16xi32>
  %rb = msl.permute_registers %q1 {bases = array<i64: 0, 1, 2, 4>} : vector<8xi32> -> vector<16xi32>
  %r = arith.select %odd16, %rb, %ra : vector<16xi1>, vector<16xi32>
  msl.store %r, %y[%to] {width = 4 : i32} : vector<16xi32>, !msl.ptr<i32, device>, vector<16xi32>
  msl.return
}

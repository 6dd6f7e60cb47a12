// RUN: triton-metal-opt %s --split-input-file --msl-insert-barriers --msl-check-barriers | FileCheck %s

// Rows of 96 numbers, which are no power of two: eight steps of a loop cannot wrap around in 64 bits, and
// the mask keeps the pairs of a row in it.
// CHECK-LABEL: @rows_of_96
// CHECK: scf.for
// CHECK-NOT: msl.barrier
// CHECK: msl.return
msl.kernel @rows_of_96(%x: !msl.ptr<f32, device>, %number: f32, %length: i32, %n: i32, %begin: i32) threads 32 {
  %f = msl.splat %number : vector<4xf32>
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %size = arith.constant 96 : i64
  %long = arith.extsi %length : i32 to i64
  %lane = msl.lane : i32
  %thread = msl.splat %lane : vector<2xi32>
  %parts = arith.constant dense<[0, 32]> : vector<2xi32>
  %pair = arith.addi %thread, %parts : vector<2xi32>
  %pairs = arith.constant dense<48> : vector<2xi32>
  %m = arith.cmpi slt, %pair, %pairs : vector<2xi32>
  %two = arith.constant dense<2> : vector<2xi32>
  %doubled = arith.muli %pair, %two : vector<2xi32>
  %at = msl.permute_registers %doubled {bases = array<i64: 0, 1>} : vector<2xi32> -> vector<4xi32>
  %mask = msl.permute_registers %m {bases = array<i64: 0, 1>} : vector<2xi1> -> vector<4xi1>
  %sides = arith.constant dense<[0, 1, 0, 1]> : vector<4xi32>
  %o = arith.addi %at, %sides : vector<4xi32>
  %most = arith.addi %begin, %c8 : i32
  %end = arith.minsi %most, %n : i32
  scf.for %head = %begin to %end step %c1 : i32 {
    %h = arith.extsi %head : i32 to i64
    %product = arith.muli %h, %long : i64
    %first = arith.muli %product, %size : i64
    %row = msl.ptr_add %x, %first : !msl.ptr<f32, device>, i64
    msl.store %f, %row[%o] mask %mask : vector<4xf32>, !msl.ptr<f32, device>, vector<4xi32>
  }
  msl.return
}

// -----

// A pair more: the next row may begin there.
// CHECK-LABEL: @a_pair_too_many
// CHECK: scf.for
// CHECK: msl.barrier device
// CHECK: msl.return
msl.kernel @a_pair_too_many(%x: !msl.ptr<f32, device>, %number: f32, %length: i32, %n: i32, %begin: i32) threads 32 {
  %f = msl.splat %number : vector<4xf32>
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %size = arith.constant 96 : i64
  %long = arith.extsi %length : i32 to i64
  %lane = msl.lane : i32
  %thread = msl.splat %lane : vector<2xi32>
  %parts = arith.constant dense<[0, 32]> : vector<2xi32>
  %pair = arith.addi %thread, %parts : vector<2xi32>
  %pairs = arith.constant dense<49> : vector<2xi32>
  %m = arith.cmpi slt, %pair, %pairs : vector<2xi32>
  %two = arith.constant dense<2> : vector<2xi32>
  %doubled = arith.muli %pair, %two : vector<2xi32>
  %at = msl.permute_registers %doubled {bases = array<i64: 0, 1>} : vector<2xi32> -> vector<4xi32>
  %mask = msl.permute_registers %m {bases = array<i64: 0, 1>} : vector<2xi1> -> vector<4xi1>
  %sides = arith.constant dense<[0, 1, 0, 1]> : vector<4xi32>
  %o = arith.addi %at, %sides : vector<4xi32>
  %most = arith.addi %begin, %c8 : i32
  %end = arith.minsi %most, %n : i32
  scf.for %head = %begin to %end step %c1 : i32 {
    %h = arith.extsi %head : i32 to i64
    %product = arith.muli %h, %long : i64
    %first = arith.muli %product, %size : i64
    %row = msl.ptr_add %x, %first : !msl.ptr<f32, device>, i64
    msl.store %f, %row[%o] mask %mask : vector<4xf32>, !msl.ptr<f32, device>, vector<4xi32>
  }
  msl.return
}

// -----

// A row one number shorter.
// CHECK-LABEL: @rows_of_95
// CHECK: scf.for
// CHECK: msl.barrier device
// CHECK: msl.return
msl.kernel @rows_of_95(%x: !msl.ptr<f32, device>, %number: f32, %length: i32, %n: i32, %begin: i32) threads 32 {
  %f = msl.splat %number : vector<4xf32>
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %size = arith.constant 95 : i64
  %long = arith.extsi %length : i32 to i64
  %lane = msl.lane : i32
  %thread = msl.splat %lane : vector<2xi32>
  %parts = arith.constant dense<[0, 32]> : vector<2xi32>
  %pair = arith.addi %thread, %parts : vector<2xi32>
  %pairs = arith.constant dense<48> : vector<2xi32>
  %m = arith.cmpi slt, %pair, %pairs : vector<2xi32>
  %two = arith.constant dense<2> : vector<2xi32>
  %doubled = arith.muli %pair, %two : vector<2xi32>
  %at = msl.permute_registers %doubled {bases = array<i64: 0, 1>} : vector<2xi32> -> vector<4xi32>
  %mask = msl.permute_registers %m {bases = array<i64: 0, 1>} : vector<2xi1> -> vector<4xi1>
  %sides = arith.constant dense<[0, 1, 0, 1]> : vector<4xi32>
  %o = arith.addi %at, %sides : vector<4xi32>
  %most = arith.addi %begin, %c8 : i32
  %end = arith.minsi %most, %n : i32
  scf.for %head = %begin to %end step %c1 : i32 {
    %h = arith.extsi %head : i32 to i64
    %product = arith.muli %h, %long : i64
    %first = arith.muli %product, %size : i64
    %row = msl.ptr_add %x, %first : !msl.ptr<f32, device>, i64
    msl.store %f, %row[%o] mask %mask : vector<4xf32>, !msl.ptr<f32, device>, vector<4xi32>
  }
  msl.return
}

// -----

// So many steps that numbers may wrap around in 64 bits.
// CHECK-LABEL: @any_number_of_steps
// CHECK: scf.for
// CHECK: msl.barrier device
// CHECK: msl.return
msl.kernel @any_number_of_steps(%x: !msl.ptr<f32, device>, %number: f32, %length: i32, %n: i32, %begin: i32) threads 32 {
  %f = msl.splat %number : vector<4xf32>
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %size = arith.constant 96 : i64
  %long = arith.extsi %length : i32 to i64
  %lane = msl.lane : i32
  %thread = msl.splat %lane : vector<2xi32>
  %parts = arith.constant dense<[0, 32]> : vector<2xi32>
  %pair = arith.addi %thread, %parts : vector<2xi32>
  %pairs = arith.constant dense<48> : vector<2xi32>
  %m = arith.cmpi slt, %pair, %pairs : vector<2xi32>
  %two = arith.constant dense<2> : vector<2xi32>
  %doubled = arith.muli %pair, %two : vector<2xi32>
  %at = msl.permute_registers %doubled {bases = array<i64: 0, 1>} : vector<2xi32> -> vector<4xi32>
  %mask = msl.permute_registers %m {bases = array<i64: 0, 1>} : vector<2xi1> -> vector<4xi1>
  %sides = arith.constant dense<[0, 1, 0, 1]> : vector<4xi32>
  %o = arith.addi %at, %sides : vector<4xi32>
  %most = arith.addi %begin, %c8 : i32

  scf.for %head = %begin to %n step %c1 : i32 {
    %h = arith.extsi %head : i32 to i64
    %product = arith.muli %h, %long : i64
    %first = arith.muli %product, %size : i64
    %row = msl.ptr_add %x, %first : !msl.ptr<f32, device>, i64
    msl.store %f, %row[%o] mask %mask : vector<4xf32>, !msl.ptr<f32, device>, vector<4xi32>
  }
  msl.return
}

// -----

// Rows that are multiplied in 32 bits may wrap around, and what is left is no multiple of 96.
// CHECK-LABEL: @rows_in_32_bits
// CHECK: scf.for
// CHECK: msl.barrier device
// CHECK: msl.return
msl.kernel @rows_in_32_bits(%x: !msl.ptr<f32, device>, %number: f32, %length: i32, %n: i32, %begin: i32) threads 32 {
  %f = msl.splat %number : vector<4xf32>
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %size = arith.constant 96 : i32
  %lane = msl.lane : i32
  %thread = msl.splat %lane : vector<2xi32>
  %parts = arith.constant dense<[0, 32]> : vector<2xi32>
  %pair = arith.addi %thread, %parts : vector<2xi32>
  %pairs = arith.constant dense<48> : vector<2xi32>
  %m = arith.cmpi slt, %pair, %pairs : vector<2xi32>
  %two = arith.constant dense<2> : vector<2xi32>
  %doubled = arith.muli %pair, %two : vector<2xi32>
  %at = msl.permute_registers %doubled {bases = array<i64: 0, 1>} : vector<2xi32> -> vector<4xi32>
  %mask = msl.permute_registers %m {bases = array<i64: 0, 1>} : vector<2xi1> -> vector<4xi1>
  %sides = arith.constant dense<[0, 1, 0, 1]> : vector<4xi32>
  %o = arith.addi %at, %sides : vector<4xi32>
  %most = arith.addi %begin, %c8 : i32
  %end = arith.minsi %most, %n : i32
  scf.for %head = %begin to %end step %c1 : i32 {
    %product = arith.muli %head, %length : i32
    %first = arith.muli %product, %size : i32
    %row = msl.ptr_add %x, %first : !msl.ptr<f32, device>, i32
    msl.store %f, %row[%o] mask %mask : vector<4xf32>, !msl.ptr<f32, device>, vector<4xi32>
  }
  msl.return
}

// -----

// Rows of a power of two are apart even so.
// CHECK-LABEL: @rows_of_128_in_32_bits
// CHECK: scf.for
// CHECK-NOT: msl.barrier
// CHECK: msl.return
msl.kernel @rows_of_128_in_32_bits(%x: !msl.ptr<f32, device>, %number: f32, %length: i32, %n: i32, %begin: i32) threads 32 {
  %f = msl.splat %number : vector<4xf32>
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %size = arith.constant 128 : i32
  %lane = msl.lane : i32
  %thread = msl.splat %lane : vector<2xi32>
  %parts = arith.constant dense<[0, 32]> : vector<2xi32>
  %pair = arith.addi %thread, %parts : vector<2xi32>
  %pairs = arith.constant dense<64> : vector<2xi32>
  %m = arith.cmpi slt, %pair, %pairs : vector<2xi32>
  %two = arith.constant dense<2> : vector<2xi32>
  %doubled = arith.muli %pair, %two : vector<2xi32>
  %at = msl.permute_registers %doubled {bases = array<i64: 0, 1>} : vector<2xi32> -> vector<4xi32>
  %mask = msl.permute_registers %m {bases = array<i64: 0, 1>} : vector<2xi1> -> vector<4xi1>
  %sides = arith.constant dense<[0, 1, 0, 1]> : vector<4xi32>
  %o = arith.addi %at, %sides : vector<4xi32>
  %most = arith.addi %begin, %c8 : i32
  %end = arith.minsi %most, %n : i32
  scf.for %head = %begin to %end step %c1 : i32 {
    %product = arith.muli %head, %length : i32
    %first = arith.muli %product, %size : i32
    %row = msl.ptr_add %x, %first : !msl.ptr<f32, device>, i32
    msl.store %f, %row[%o] mask %mask : vector<4xf32>, !msl.ptr<f32, device>, vector<4xi32>
  }
  msl.return
}

// -----

// Two rows of 96 numbers at once, of which a thread has two neighbours in each half: its lane is in the row and the place.
// CHECK-LABEL: @two_rows_at_once
// CHECK: scf.for
// CHECK-NOT: msl.barrier
// CHECK: msl.return
msl.kernel @two_rows_at_once(%x: !msl.ptr<f32, device>, %number: f32, %length: i32, %n: i32, %begin: i32) threads 32 {
  %f = msl.splat %number : vector<2xf32>
  %c1 = arith.constant 1 : i32
  %c4 = arith.constant 4 : i32
  %c2 = arith.constant 2 : i32
  %c8 = arith.constant 8 : i32
  %c15 = arith.constant 15 : i32
  %c96 = arith.constant 96 : i32
  %half = arith.constant 48 : i32
  %size = arith.constant 192 : i64
  %long = arith.extsi %length : i32 to i64
  %lane = msl.lane : i32
  %position = arith.shrui %lane, %c4 : i32
  %in_row = arith.andi %lane, %c15 : i32
  %row_at = arith.muli %position, %c96 : i32
  %pair = arith.muli %in_row, %c2 : i32
  %at = arith.addi %row_at, %pair : i32
  %thread = msl.splat %at : vector<2xi32>
  %sides = arith.constant dense<[0, 1]> : vector<2xi32>
  %o = arith.addi %thread, %sides : vector<2xi32>
  %most = arith.addi %begin, %c8 : i32
  %end = arith.minsi %most, %n : i32
  scf.for %head = %begin to %end step %c1 : i32 {
    %h = arith.extsi %head : i32 to i64
    %product = arith.muli %h, %long : i64
    %first = arith.muli %product, %size : i64
    %row = msl.ptr_add %x, %first : !msl.ptr<f32, device>, i64
    msl.store %f, %row[%o] : vector<2xf32>, !msl.ptr<f32, device>, vector<2xi32>
    %other = msl.ptr_add %row, %half : !msl.ptr<f32, device>, i32
    msl.store %f, %other[%o] : vector<2xf32>, !msl.ptr<f32, device>, vector<2xi32>
  }
  msl.return
}

// -----

// The next step begins one row further: it may write the second row again.
// CHECK-LABEL: @one_row_further
// CHECK: scf.for
// CHECK: msl.barrier device
// CHECK: msl.return
msl.kernel @one_row_further(%x: !msl.ptr<f32, device>, %number: f32, %length: i32, %n: i32, %begin: i32) threads 32 {
  %f = msl.splat %number : vector<2xf32>
  %c1 = arith.constant 1 : i32
  %c4 = arith.constant 4 : i32
  %c2 = arith.constant 2 : i32
  %c8 = arith.constant 8 : i32
  %c15 = arith.constant 15 : i32
  %c96 = arith.constant 96 : i32
  %half = arith.constant 48 : i32
  %size = arith.constant 96 : i64
  %long = arith.extsi %length : i32 to i64
  %lane = msl.lane : i32
  %position = arith.shrui %lane, %c4 : i32
  %in_row = arith.andi %lane, %c15 : i32
  %row_at = arith.muli %position, %c96 : i32
  %pair = arith.muli %in_row, %c2 : i32
  %at = arith.addi %row_at, %pair : i32
  %thread = msl.splat %at : vector<2xi32>
  %sides = arith.constant dense<[0, 1]> : vector<2xi32>
  %o = arith.addi %thread, %sides : vector<2xi32>
  %most = arith.addi %begin, %c8 : i32
  %end = arith.minsi %most, %n : i32
  scf.for %head = %begin to %end step %c1 : i32 {
    %h = arith.extsi %head : i32 to i64
    %product = arith.muli %h, %long : i64
    %first = arith.muli %product, %size : i64
    %row = msl.ptr_add %x, %first : !msl.ptr<f32, device>, i64
    msl.store %f, %row[%o] : vector<2xf32>, !msl.ptr<f32, device>, vector<2xi32>
    %other = msl.ptr_add %row, %half : !msl.ptr<f32, device>, i32
    msl.store %f, %other[%o] : vector<2xf32>, !msl.ptr<f32, device>, vector<2xi32>
  }
  msl.return
}

// -----

// The halves of a row meet.
// CHECK-LABEL: @halves_that_meet
// CHECK: scf.for
// CHECK: msl.barrier device
// CHECK: msl.return
msl.kernel @halves_that_meet(%x: !msl.ptr<f32, device>, %number: f32, %length: i32, %n: i32, %begin: i32) threads 32 {
  %f = msl.splat %number : vector<2xf32>
  %c1 = arith.constant 1 : i32
  %c4 = arith.constant 4 : i32
  %c2 = arith.constant 2 : i32
  %c8 = arith.constant 8 : i32
  %c15 = arith.constant 15 : i32
  %c96 = arith.constant 96 : i32
  %half = arith.constant 30 : i32
  %size = arith.constant 192 : i64
  %long = arith.extsi %length : i32 to i64
  %lane = msl.lane : i32
  %position = arith.shrui %lane, %c4 : i32
  %in_row = arith.andi %lane, %c15 : i32
  %row_at = arith.muli %position, %c96 : i32
  %pair = arith.muli %in_row, %c2 : i32
  %at = arith.addi %row_at, %pair : i32
  %thread = msl.splat %at : vector<2xi32>
  %sides = arith.constant dense<[0, 1]> : vector<2xi32>
  %o = arith.addi %thread, %sides : vector<2xi32>
  %most = arith.addi %begin, %c8 : i32
  %end = arith.minsi %most, %n : i32
  scf.for %head = %begin to %end step %c1 : i32 {
    %h = arith.extsi %head : i32 to i64
    %product = arith.muli %h, %long : i64
    %first = arith.muli %product, %size : i64
    %row = msl.ptr_add %x, %first : !msl.ptr<f32, device>, i64
    msl.store %f, %row[%o] : vector<2xf32>, !msl.ptr<f32, device>, vector<2xi32>
    %other = msl.ptr_add %row, %half : !msl.ptr<f32, device>, i32
    msl.store %f, %other[%o] : vector<2xf32>, !msl.ptr<f32, device>, vector<2xi32>
  }
  msl.return
}

// -----

// Two lanes of a row have the same place.
// CHECK-LABEL: @lanes_that_are_alike
// CHECK: scf.for
// CHECK: msl.barrier device
// CHECK: msl.return
msl.kernel @lanes_that_are_alike(%x: !msl.ptr<f32, device>, %number: f32, %length: i32, %n: i32, %begin: i32) threads 32 {
  %f = msl.splat %number : vector<2xf32>
  %c1 = arith.constant 1 : i32
  %c4 = arith.constant 4 : i32
  %c2 = arith.constant 2 : i32
  %c8 = arith.constant 8 : i32
  %c15 = arith.constant 7 : i32
  %c96 = arith.constant 96 : i32
  %half = arith.constant 48 : i32
  %size = arith.constant 192 : i64
  %long = arith.extsi %length : i32 to i64
  %lane = msl.lane : i32
  %position = arith.shrui %lane, %c4 : i32
  %in_row = arith.andi %lane, %c15 : i32
  %row_at = arith.muli %position, %c96 : i32
  %pair = arith.muli %in_row, %c2 : i32
  %at = arith.addi %row_at, %pair : i32
  %thread = msl.splat %at : vector<2xi32>
  %sides = arith.constant dense<[0, 1]> : vector<2xi32>
  %o = arith.addi %thread, %sides : vector<2xi32>
  %most = arith.addi %begin, %c8 : i32
  %end = arith.minsi %most, %n : i32
  scf.for %head = %begin to %end step %c1 : i32 {
    %h = arith.extsi %head : i32 to i64
    %product = arith.muli %h, %long : i64
    %first = arith.muli %product, %size : i64
    %row = msl.ptr_add %x, %first : !msl.ptr<f32, device>, i64
    msl.store %f, %row[%o] : vector<2xf32>, !msl.ptr<f32, device>, vector<2xi32>
    %other = msl.ptr_add %row, %half : !msl.ptr<f32, device>, i32
    msl.store %f, %other[%o] : vector<2xf32>, !msl.ptr<f32, device>, vector<2xi32>
  }
  msl.return
}

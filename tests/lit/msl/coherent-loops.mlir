// RUN: triton-metal-opt %s --msl-coherent-loops --split-input-file | FileCheck %s

// Each step reads what the last one has written.
// CHECK-LABEL: msl.kernel @same_place(%{{.*}}: !msl.ptr<f32, device> {msl.coherent}, %{{.*}}: !msl.ptr<f32, device>, %
msl.kernel @same_place(%x: !msl.ptr<f32, device>, %y: !msl.ptr<f32, device>, %n: i32) threads 32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %lane = msl.lane : i32
  scf.for %k = %c0 to %n step %c1 : i32 {
    %v = msl.load %x[%lane] : !msl.ptr<f32, device>, i32 -> f32
    %w = msl.load %y[%lane] : !msl.ptr<f32, device>, i32 -> f32
    %sum = arith.addf %v, %w : f32
    msl.store %sum, %x[%lane] : f32, !msl.ptr<f32, device>, i32
  }
  msl.return
}

// -----

// Each step has a place of its own: the memory of a threadgroup is enough.
// CHECK-LABEL: msl.kernel @other_places
// CHECK-NOT: msl.coherent
msl.kernel @other_places(%x: !msl.ptr<f32, device>, %n: i32) threads 32 {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %lane = msl.lane : i32
  scf.for %k = %c0 to %n step %c32 : i32 {
    %place = arith.addi %k, %lane : i32
    %v = msl.load %x[%place] : !msl.ptr<f32, device>, i32 -> f32
    %sum = arith.addf %v, %v : f32
    msl.store %sum, %x[%place] : f32, !msl.ptr<f32, device>, i32
  }
  msl.return
}

// -----

// The places overlap by one element.
// CHECK-LABEL: msl.kernel @neighbours(%{{.*}}: !msl.ptr<f32, device> {msl.coherent}
msl.kernel @neighbours(%x: !msl.ptr<f32, device>, %n: i32) threads 32 {
  %c0 = arith.constant 0 : i32
  %c31 = arith.constant 31 : i32
  %lane = msl.lane : i32
  scf.for %k = %c0 to %n step %c31 : i32 {
    %place = arith.addi %k, %lane : i32
    %v = msl.load %x[%place] : !msl.ptr<f32, device>, i32 -> f32
    msl.store %v, %x[%place] : f32, !msl.ptr<f32, device>, i32
  }
  msl.return
}

// -----

// A block that a bound cuts has one step, and no later one.
// CHECK-LABEL: msl.kernel @cut_block
// CHECK-NOT: msl.coherent
msl.kernel @cut_block(%x: !msl.ptr<f32, device>, %whole: i32, %n: i32) threads 32 {
  %c32 = arith.constant 32 : i32
  %lane = msl.lane : i32
  %place = arith.addi %whole, %lane : i32
  scf.for %k = %whole to %n step %c32 : i32 {
    %v = msl.load %x[%place] : !msl.ptr<f32, device>, i32 -> f32
    msl.store %v, %x[%place] : f32, !msl.ptr<f32, device>, i32
  } {msl.at_most_once}
  msl.return
}

// -----

// Before Metal 3.2 there is no such memory.
// CHECK-LABEL: msl.kernel @older
// CHECK-NOT: msl.coherent
module attributes {msl.target = #msl.target<metal(3, 1), threads = 1024, threadgroup_bytes = 32768, registers = 128, features = none>} {
msl.kernel @older(%x: !msl.ptr<f32, device>, %n: i32) threads 32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %k = %c0 to %n step %c1 : i32 {
    %v = msl.load %x[%c0] : !msl.ptr<f32, device>, i32 -> f32
    msl.store %v, %x[%c0] : f32, !msl.ptr<f32, device>, i32
  }
  msl.return
}
}

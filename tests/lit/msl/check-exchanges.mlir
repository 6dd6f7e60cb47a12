// RUN: triton-metal-opt %s --msl-check-exchanges -verify-diagnostics -split-input-file

// The condition is the same in all lanes of a SIMD-group, or all lanes come.
msl.kernel @same(%x: !msl.ptr<f32, device>, %n: i32) threads 64 {
  %c0 = arith.constant 0 : i32
  %lane = msl.lane : i32
  %simdgroup = msl.simdgroup : i32
  %v = msl.read %x[%lane : i32] : !msl.ptr<f32, device> -> f32
  %isFirst = arith.cmpi eq, %simdgroup, %c0 : i32
  scf.if %isFirst {
    %w = msl.simd_shuffle_xor %v, 1 : f32
    msl.write %w, %x[%lane : i32] : f32, !msl.ptr<f32, device>
  }
  %isInside = arith.cmpi slt, %lane, %n : i32
  %u = msl.simd_shuffle_xor %v, 2 : f32
  scf.if %isInside {
    msl.write %u, %x[%lane : i32] : f32, !msl.ptr<f32, device>
  }
  msl.return
}

// -----

msl.kernel @parted(%x: !msl.ptr<f32, device>, %n: i32) threads 64 {
  %lane = msl.lane : i32
  %v = msl.read %x[%lane : i32] : !msl.ptr<f32, device> -> f32
  %isInside = arith.cmpi slt, %lane, %n : i32
  // expected-note @below {{lanes part ways here}}
  scf.if %isInside {
    msl.unroll %i = 0 to 2 {
      // expected-error @below {{exchanges numbers where not all lanes of a SIMD-group come}}
      %w = msl.simd_shuffle_xor %v, 1 : f32
      msl.write %w, %x[%lane : i32] : f32, !msl.ptr<f32, device>
    }
  }
  msl.return
}

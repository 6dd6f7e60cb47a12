// RUN: triton-metal-opt %s --split-input-file --verify-diagnostics

msl.kernel @bits_outside_of_the_mask() threads 64 {
  // expected-error @below {{wants bits that its masks leave out}}
  msl.in_threads lanes 3 = 4 {
  }
  msl.return
}

// -----

msl.kernel @lanes_beyond() threads 64 {
  // expected-error @below {{asks for lanes beyond the 32 of a SIMD-group}}
  msl.in_threads lanes 32 = 0 {
  }
  msl.return
}

// -----

msl.kernel @simdgroups_beyond() threads 64 {
  // expected-error @below {{asks for SIMD-groups beyond the 2 of its threadgroup}}
  msl.in_threads simdgroups 3 = 0 {
  }
  msl.return
}

// -----

msl.kernel @yields_of_threads(%f: f32) threads 64 {
  // expected-error @below {{must yield its results}}
  %r = msl.in_threads lanes 31 = 0 -> (i32) {
    msl.yield %f : f32
  }
  msl.return
}

// RUN: triton-metal-opt %s --split-input-file --msl-emulate-types --verify-diagnostics

msl.kernel @refused(%x: !msl.ptr<f64, device>) threads 32 {
  %c0 = arith.constant 0 : i32
  %v = msl.load %x[%c0] : !msl.ptr<f64, device>, i32 -> f64
  // expected-error @below {{computes 'math.clampf' of float64, which has no function in software: convert to float32}}
  %a = math.clampf %v to [%v, %v] : f64
  msl.store %a, %x[%c0] : f64, !msl.ptr<f64, device>, i32
  msl.return
}

// -----

msl.kernel @unknown(%x: !msl.ptr<f64, device>) threads 32 {
  %c0 = arith.constant 0 : i32
  %v = msl.load %x[%c0] : !msl.ptr<f64, device>, i32 -> f64
  // expected-error @below {{computes 'saturate' of float64, which has no function in software: convert to float32}}
  %a = msl.library "saturate"(%v) : (f64) -> f64
  msl.store %a, %x[%c0] : f64, !msl.ptr<f64, device>, i32
  msl.return
}

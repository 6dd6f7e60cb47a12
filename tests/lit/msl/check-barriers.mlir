// RUN: triton-metal-opt %s --split-input-file --msl-check-barriers --verify-diagnostics

msl.kernel @fine(%n: i32, %x: !msl.ptr<i32, device>) threads 128 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %v = msl.load %x[%n] : !msl.ptr<i32, device>, i32 -> i32
  scf.for %k = %v to %n step %c1 : i32 {
    %c = arith.cmpi eq, %k, %c0 : i32
    scf.if %c {
      msl.barrier
    }
  }
  msl.return
}

// -----

msl.kernel @branch() threads 32 {
  %c0 = arith.constant 0 : i32
  %lane = msl.lane : i32
  %c = arith.cmpi eq, %lane, %c0 : i32
  // expected-note @below {{threads part ways here}}
  scf.if %c {
    // expected-error @below {{is where not all threads of the threadgroup come}}
    msl.barrier
  }
  msl.return
}

// -----

msl.kernel @in_threads() threads 64 {
  // expected-note @below {{threads part ways here}}
  msl.in_threads simdgroups 1 = 0 {
    // expected-error @below {{is where not all threads of the threadgroup come}}
    msl.barrier
  }
  msl.return
}

// -----

// The others have another result.
msl.kernel @result_of_threads(%n: i32) threads 64 {
  %r = msl.in_threads simdgroups 1 = 0 -> (i32) {
    msl.yield %n : i32
  }
  %c0 = arith.constant 0 : i32
  %c = arith.cmpi sgt, %r, %c0 : i32
  // expected-note @below {{threads part ways here}}
  scf.if %c {
    // expected-error @below {{is where not all threads of the threadgroup come}}
    msl.barrier
  }
  msl.return
}

// -----

// The steps that a thread has made follow from what it carries.
msl.kernel @carried(%n: i32) threads 32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %lane = msl.lane : i32
  // expected-note @below {{threads part ways here}}
  %r = scf.while (%k = %c0) : (i32) -> i32 {
    %more = arith.cmpi slt, %k, %n : i32
    scf.condition(%more) %k : i32
  } do {
  ^bb0(%k: i32):
    // expected-error @below {{is where not all threads of the threadgroup come}}
    msl.barrier
    %next = arith.addi %k, %lane : i32
    scf.yield %next : i32
  }
  msl.return
}

// -----

// A loop's result, where threads leave it at different steps.
msl.kernel @result(%n: i32) threads 32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %lane = msl.lane : i32
  %r = scf.for %k = %c0 to %lane step %c1 iter_args(%i = %c0) -> (i32) : i32 {
    %next = arith.addi %i, %c1 : i32
    scf.yield %next : i32
  }
  %c = arith.cmpi slt, %r, %n : i32
  // expected-note @below {{threads part ways here}}
  scf.if %c {
    // expected-error @below {{is where not all threads of the threadgroup come}}
    msl.barrier
  }
  msl.return
}

// -----

// Each thread that updates memory finds something else.
msl.kernel @atomic(%x: !msl.ptr<i32, device>) threads 32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %old = msl.atomic_rmw add %x[%c0], %c1 : !msl.ptr<i32, device>, i32, i32
  %c = arith.cmpi eq, %old, %c0 : i32
  // expected-note @below {{threads part ways here}}
  scf.if %c {
    // expected-error @below {{is where not all threads of the threadgroup come}}
    msl.barrier
  }
  msl.return
}

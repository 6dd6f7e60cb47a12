// RUN: triton-metal-opt %s --split-input-file --tt-check-progress --verify-diagnostics
// RUN: triton-metal-opt %s --split-input-file --canonicalize --cse --tt-check-progress --verify-diagnostics

tt.func public @lock(%lock: !tt.ptr<i32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.while : () -> () {
    // expected-error @below {{tl.atomic_cas waits here until another program changes memory}}
    %old = tt.atomic_cas acq_rel, gpu, %lock, %c0, %c1 : (!tt.ptr<i32>, i32, i32) -> i32
    %taken = arith.cmpi eq, %old, %c1 : i32
    scf.condition(%taken)
  } do {
    scf.yield
  }
  tt.return
}

// -----

// What was found goes from step to step.
tt.func public @carried(%lock: !tt.ptr<i32>, %i: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %true = arith.constant true
  %p = tt.addptr %lock, %i : !tt.ptr<i32>, i32
  %first = tt.atomic_rmw exch, acquire, gpu, %p, %c1, %true : (!tt.ptr<i32>, i32, i1) -> i32
  %last = scf.while (%v = %first) : (i32) -> i32 {
    %taken = arith.cmpi ne, %v, %c0 : i32
    scf.condition(%taken) %v : i32
  } do {
  ^bb0(%v: i32):
    // expected-error @below {{the atomic access waits here until another program changes memory}}
    %next = tt.atomic_rmw exch, acquire, gpu, %p, %c1, %true : (!tt.ptr<i32>, i32, i1) -> i32
    scf.yield %next : i32
  }
  tt.return
}

// -----

// Reading in a loop, with a count that does not end it.
tt.func public @poll(%flag: !tt.ptr<i32>, %out: !tt.ptr<i32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %steps = scf.while (%k = %c0) : (i32) -> i32 {
    // expected-error @below {{tl.load waits here until another program changes memory}}
    %v = tt.load %flag {isVolatile = true} : !tt.ptr<i32>
    %wait = arith.cmpi slt, %v, %n : i32
    scf.condition(%wait) %k : i32
  } do {
  ^bb0(%k: i32):
    tt.store %out, %k : !tt.ptr<i32>
    %next = arith.addi %k, %c1 : i32
    scf.yield %next : i32
  }
  tt.return
}

// -----

// Adding nothing is reading; an `or` ends when both sides do.
tt.func public @either(%flag: !tt.ptr<i32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %true = arith.constant true
  %steps = scf.while (%k = %c0) : (i32) -> i32 {
    // expected-error @below {{the atomic access waits here until another program changes memory}}
    %v = tt.atomic_rmw add, acquire, gpu, %flag, %c0, %true : (!tt.ptr<i32>, i32, i1) -> i32
    %unset = arith.cmpi eq, %v, %c0 : i32
    %few = arith.cmpi slt, %k, %n : i32
    %wait = arith.ori %unset, %few : i1
    scf.condition(%wait) %k : i32
  } do {
  ^bb0(%k: i32):
    %next = arith.addi %k, %c1 : i32
    scf.yield %next : i32
  }
  tt.return
}

// -----

// Tickets run out, tries are counted, a compare-and-exchange is tried again with what it found, a table has other places,
// and a loop may read what it has written.
tt.func public @fine(%p: !tt.ptr<i32>, %q: !tt.ptr<i32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %true = arith.constant true
  scf.while : () -> () {
    %ticket = tt.atomic_rmw add, acq_rel, gpu, %p, %c1, %true : (!tt.ptr<i32>, i32, i1) -> i32
    %more = arith.cmpi slt, %ticket, %n : i32
    scf.condition(%more)
  } do {
    scf.yield
  }
  %tries = scf.while (%k = %c0) : (i32) -> i32 {
    %old = tt.atomic_cas acq_rel, gpu, %p, %c0, %c1 : (!tt.ptr<i32>, i32, i32) -> i32
    %taken = arith.cmpi eq, %old, %c1 : i32
    %few = arith.cmpi slt, %k, %n : i32
    %again = arith.andi %taken, %few : i1
    scf.condition(%again) %k : i32
  } do {
  ^bb0(%k: i32):
    %next = arith.addi %k, %c1 : i32
    scf.yield %next : i32
  }
  %start = tt.load %p : !tt.ptr<i32>
  %updated = scf.while (%seen = %start) : (i32) -> i32 {
    %next = arith.muli %seen, %n : i32
    %old = tt.atomic_cas acq_rel, gpu, %p, %seen, %next : (!tt.ptr<i32>, i32, i32) -> i32
    %lost = arith.cmpi ne, %old, %seen : i32
    scf.condition(%lost) %old : i32
  } do {
  ^bb0(%old: i32):
    scf.yield %old : i32
  }
  %place = scf.while (%k = %c0) : (i32) -> i32 {
    %slot = tt.addptr %q, %k : !tt.ptr<i32>, i32
    %old = tt.atomic_cas acq_rel, gpu, %slot, %c0, %n : (!tt.ptr<i32>, i32, i32) -> i32
    %taken = arith.cmpi ne, %old, %c0 : i32
    scf.condition(%taken) %k : i32
  } do {
  ^bb0(%k: i32):
    %next = arith.addi %k, %c1 : i32
    scf.yield %next : i32
  }
  scf.while : () -> () {
    %v = tt.load %q : !tt.ptr<i32>
    %more = arith.cmpi sgt, %v, %c0 : i32
    scf.condition(%more)
  } do {
    %w = tt.load %q : !tt.ptr<i32>
    %less = arith.subi %w, %c1 : i32
    tt.store %q, %less : !tt.ptr<i32>
    scf.yield
  }
  tt.return
}

// -----

// The program keeps the lock under a condition.
tt.func public @kept(%lock: !tt.ptr<i32>, %mask: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.while : () -> () {
    // expected-error @below {{tl.atomic_cas waits here until another program changes memory}}
    %old = tt.atomic_cas acq_rel, gpu, %lock, %c0, %c1 : (!tt.ptr<i32>, i32, i32) -> i32
    %taken = arith.cmpi eq, %old, %c1 : i32
    scf.condition(%taken)
  } do {
    scf.yield
  }
  %was = tt.atomic_rmw exch, acq_rel, gpu, %lock, %c0, %mask : (!tt.ptr<i32>, i32, i1) -> i32
  tt.return
}

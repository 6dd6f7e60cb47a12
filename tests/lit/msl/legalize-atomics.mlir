// RUN: triton-metal-opt %s --split-input-file --msl-legalize-atomics | FileCheck %s

// Numbers of 8 and 16 bits are updated in the 32-bit word that holds them, of whatever is asked.
// CHECK-LABEL: msl.kernel @narrow
// CHECK: msl.atomic_rmw add %{{.*}} form word : <i8, device>
// CHECK: msl.atomic_rmw fadd %{{.*}} form word : <f16, device>
// CHECK: msl.atomic_cas %{{.*}} form word : <i16, device>
// CHECK: msl.atomic_rmw add[%{{.*}}], %{{.*}} form word : i64, i16
msl.kernel @narrow(%b: !msl.ptr<i8, device>, %h: !msl.ptr<f16, device>, %s: !msl.ptr<i16, device>, %x: i8, %y: f16, %z: i16, %a: i64) threads 32 {
  %c0 = arith.constant 0 : i32
  %0 = msl.atomic_rmw add %b[%c0], %x : !msl.ptr<i8, device>, i32, i8
  %1 = msl.atomic_rmw fadd %h[%c0], %y : !msl.ptr<f16, device>, i32, f16
  %2 = msl.atomic_cas %s[%c0], %z, %z : !msl.ptr<i16, device>, i32, i16
  %3 = msl.atomic_rmw add [%a], %z : i64, i16
  msl.return
}

// -----

// Metal has these.
// CHECK-LABEL: msl.kernel @words
// CHECK-NOT: form
// CHECK: msl.atomic_rmw fmax %{{.*}} form word : <f32, device>
msl.kernel @words(%f: !msl.ptr<f32, device>, %i: !msl.ptr<i32, device>, %u: !msl.ptr<i64, device>, %x: f32, %n: i32, %l: i64) threads 32 {
  %c0 = arith.constant 0 : i32
  %0 = msl.atomic_rmw fadd %f[%c0], %x : !msl.ptr<f32, device>, i32, f32
  %1 = msl.atomic_rmw max %i[%c0], %n : !msl.ptr<i32, device>, i32, i32
  %2 = msl.atomic_cas %i[%c0], %n, %n : !msl.ptr<i32, device>, i32, i32
  %3 = msl.atomic_rmw umax %u[%c0], %l : !msl.ptr<i64, device>, i32, i64
  %4 = msl.atomic_rmw fmax %f[%c0], %x : !msl.ptr<f32, device>, i32, f32
  msl.return
}

// -----

module attributes {msl.target = #msl.target<metal(3, 0), threads = 1024, threadgroup_bytes = 32768, registers = 128,
    features = simd_reductions>} {
  // CHECK-LABEL: msl.kernel @lacking
  // CHECK-SAME: attributes {msl.serial
  // CHECK: msl.atomic_rmw fadd %{{.*}} form word
  // CHECK: msl.atomic_rmw umax %{{.*}} form alone
  msl.kernel @lacking(%f: !msl.ptr<f32, device>, %u: !msl.ptr<i64, device>, %x: f32, %l: i64) threads 32 {
    %c0 = arith.constant 0 : i32
    %0 = msl.atomic_rmw fadd %f[%c0], %x : !msl.ptr<f32, device>, i32, f32
    %1 = msl.atomic_rmw umax %u[%c0], %l : !msl.ptr<i64, device>, i32, i64
    msl.return
  }
}

// -----

// Sums in one array and exclusive ors in another: in each, the order of updates does not matter.
// CHECK-LABEL: msl.kernel @halves
// CHECK-NOT: msl.serial
// CHECK: msl.atomic_rmw add %{{.*}} form halves : <i64, device>
// CHECK: msl.atomic_rmw add %{{.*}} form halves : <i64, device>
// CHECK: msl.atomic_rmw xor %{{.*}} form halves : <i64, device>
msl.kernel @halves(%x: !msl.ptr<i64, device>, %y: !msl.ptr<i64, device>, %l: i64) threads 32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %0 = msl.atomic_rmw add %x[%c0], %l : !msl.ptr<i64, device>, i32, i64
  %1 = msl.atomic_rmw add %x[%c1], %l : !msl.ptr<i64, device>, i32, i64
  %2 = msl.atomic_rmw xor %y[%c0], %l : !msl.ptr<i64, device>, i32, i64
  msl.return
}

// -----

// One asks what it found: nothing else runs meanwhile. One threadgroup works all programs; a scalar's thread is one.
// CHECK-LABEL: msl.kernel @serial
// CHECK-SAME: attributes {msl.serial = #loc
// CHECK: %[[LANE:.*]] = msl.lane
// CHECK: %[[M:.*]] = msl.alloc "m"
// CHECK-DAG: %[[X:.*]] = msl.program_id 0
// CHECK-DAG: %[[N:.*]] = msl.num_programs 0
// CHECK-DAG: %[[D:.*]] = msl.num_programs 2
// CHECK: scf.if
// CHECK: scf.for %{{.*}} to %[[D]] step
// CHECK: scf.for
// CHECK: scf.for %[[ID:.*]] = %{{.*}} to %[[N]] step
// CHECK-NEXT: msl.barrier device
// CHECK: msl.barrier device
// CHECK-NEXT: %[[OLD:.*]] = msl.in_threads lanes 31 = 0 -> (i64) {
// CHECK-NEXT: msl.atomic_rmw add %{{.*}} form alone : <i64, device>
// CHECK-NOT: order
// CHECK: msl.barrier device
// CHECK: msl.store %[[OLD]], %arg0[%[[ID]]]
msl.kernel @serial(%x: !msl.ptr<i64, device>, %l: i64) threads 32 {
  %lane = msl.lane : i32
  %c0 = arith.constant 0 : i32
  %id = msl.program_id 0 : i32
  %m = msl.alloc "m", 4 : !msl.ptr<i32, threadgroup>
  %old = msl.in_threads lanes 31 = 0 -> (i64) {
    %r = msl.atomic_rmw add %x[%c0], %l order acq_rel : !msl.ptr<i64, device>, i32, i64
    msl.yield %r : i64
  }
  msl.store %old, %x[%id] : i64, !msl.ptr<i64, device>, i32
  msl.return
}

// -----

// A tile: its threads take turns. Of a kernel with one such update, all of 64 bits are done so.
// CHECK-LABEL: msl.kernel @turns
// CHECK: scf.for
// CHECK: scf.for
// CHECK: scf.for
// CHECK: %[[C16:.*]] = arith.constant 16 : i32
// CHECK: %[[OLD:.*]] = scf.for %[[TURN:.*]] = %{{.*}} to %[[C16]] step %{{.*}} iter_args(%[[SO_FAR:.*]] = %{{.*}}) -> (vector<2xi64>)
// CHECK-NEXT: msl.barrier device
// CHECK-NEXT: %[[MINE:.*]] = arith.cmpi eq, %{{.*}}, %[[TURN]]
// CHECK-NEXT: %[[NEXT:.*]] = scf.if %[[MINE]] -> (vector<2xi64>) {
// CHECK-NEXT: %[[R:.*]] = msl.in_threads lanes 16 = 0
// CHECK-NEXT: msl.atomic_rmw max %{{.*}} form alone
// CHECK: scf.yield %[[R]]
// CHECK: } else {
// CHECK-NEXT: scf.yield %[[SO_FAR]]
// CHECK: scf.yield %[[NEXT]]
// CHECK: msl.barrier device
// CHECK: scf.for
// CHECK: scf.if
// CHECK-NEXT: msl.in_threads lanes 16 = 0
// CHECK-NEXT: msl.atomic_rmw add %{{.*}} form alone
msl.kernel @turns(%x: !msl.ptr<i64, device>, %y: !msl.ptr<i64, device>, %l: i64, %i: i32) threads 32 {
  %o = msl.splat %i : vector<2xi32>
  %v = msl.splat %l : vector<2xi64>
  %old = msl.in_threads lanes 16 = 0 -> (vector<2xi64>) {
    %r = msl.atomic_rmw max %x[%o], %v : !msl.ptr<i64, device>, vector<2xi32>, vector<2xi64>
    msl.yield %r : vector<2xi64>
  }
  msl.in_threads lanes 16 = 0 {
    %r = msl.atomic_rmw add %y[%o], %v : !msl.ptr<i64, device>, vector<2xi32>, vector<2xi64>
  }
  msl.store %old, %x[%o] : vector<2xi64>, !msl.ptr<i64, device>, vector<2xi32>
  msl.return
}

// RUN: triton-metal-opt %s --split-input-file --msl-insert-barriers --msl-check-barriers | FileCheck %s

// Writes of one thread stay in order, also from step to step; what the others read waits for them.
// CHECK-LABEL: @one_thread
// CHECK: scf.for
// CHECK-NEXT: msl.in_threads
// CHECK-NEXT: msl.store
// CHECK-NEXT: }
// CHECK-NEXT: msl.in_threads
// CHECK-NEXT: msl.store
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: msl.barrier device
// CHECK-NEXT: msl.load
msl.kernel @one_thread(%x: !msl.ptr<f32, device>, %f: f32, %i: i32, %j: i32) threads 128 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %k = %c0 to %i step %c1 : i32 {
    msl.in_threads lanes 31 = 0 simdgroups 3 = 0 {
      msl.store %f, %x[%j] : f32, !msl.ptr<f32, device>, i32
    }
    msl.in_threads lanes 31 = 0 simdgroups 3 = 0 {
      msl.store %f, %x[%k] : f32, !msl.ptr<f32, device>, i32
    }
  }
  %v = msl.load %x[%i] : !msl.ptr<f32, device>, i32 -> f32
  %w = msl.alloc "w", 1 : !msl.ptr<f32, threadgroup>
  msl.store %v, %w[%c0] : f32, !msl.ptr<f32, threadgroup>, i32
  msl.return
}

// -----

// Another thread, or a thread of each SIMD-group. An atomic waits in any case.
// CHECK-LABEL: @others
// CHECK: msl.store
// CHECK: msl.barrier device
// CHECK-NEXT: msl.in_threads lanes 31 = 1 simdgroups 3 = 0 {
// CHECK: msl.barrier device
// CHECK-NEXT: msl.in_threads lanes 31 = 1 {
// CHECK: msl.barrier device
// CHECK-NEXT: msl.in_threads lanes 31 = 1 {
// CHECK: msl.barrier device
// CHECK-NEXT: msl.in_threads lanes 31 = 0 simdgroups 3 = 0 {
// CHECK: msl.barrier device
// CHECK-NEXT: msl.in_threads lanes 31 = 0 simdgroups 3 = 0 {
// CHECK-NEXT: msl.atomic_rmw
msl.kernel @others(%x: !msl.ptr<i32, device>, %n: i32, %i: i32, %j: i32) threads 128 {
  msl.in_threads lanes 31 = 0 simdgroups 3 = 0 {
    msl.store %n, %x[%i] : i32, !msl.ptr<i32, device>, i32
  }
  msl.in_threads lanes 31 = 1 simdgroups 3 = 0 {
    msl.store %n, %x[%j] : i32, !msl.ptr<i32, device>, i32
  }
  msl.in_threads lanes 31 = 1 {
    msl.store %n, %x[%i] : i32, !msl.ptr<i32, device>, i32
  }
  msl.in_threads lanes 31 = 1 {
    msl.store %n, %x[%j] : i32, !msl.ptr<i32, device>, i32
  }
  msl.in_threads lanes 31 = 0 simdgroups 3 = 0 {
    msl.store %n, %x[%i] : i32, !msl.ptr<i32, device>, i32
  }
  msl.in_threads lanes 31 = 0 simdgroups 3 = 0 {
    %r = msl.atomic_rmw add %x[%i], %n : !msl.ptr<i32, device>, i32, i32
  }
  msl.return
}

// -----

// The same threads in the same places meet themselves; all threads read what some of them write.
// CHECK-LABEL: @same_places
// CHECK: msl.load
// CHECK-NEXT: msl.barrier device
// CHECK-NEXT: msl.in_threads simdgroups 3 = 0 {
// CHECK-NEXT: msl.store
// CHECK-NEXT: }
// CHECK-NEXT: msl.in_threads simdgroups 3 = 0 {
// CHECK-NEXT: msl.store
// CHECK-NEXT: }
// CHECK-NEXT: msl.barrier device
// CHECK-NEXT: msl.load
msl.kernel @same_places(%x: !msl.ptr<f32, device>, %f: f32) threads 128 {
  %lane = msl.lane : i32
  %v = msl.load %x[%lane] : !msl.ptr<f32, device>, i32 -> f32
  msl.in_threads simdgroups 3 = 0 {
    msl.store %f, %x[%lane] : f32, !msl.ptr<f32, device>, i32
  }
  msl.in_threads simdgroups 3 = 0 {
    msl.store %v, %x[%lane] : f32, !msl.ptr<f32, device>, i32
  }
  %w = msl.load %x[%lane] : !msl.ptr<f32, device>, i32 -> f32
  %m = msl.alloc "m", 1 : !msl.ptr<f32, threadgroup>
  %c0 = arith.constant 0 : i32
  msl.store %w, %m[%c0] : f32, !msl.ptr<f32, threadgroup>, i32
  msl.return
}

// -----

// A hazard within a region cuts it in two; results go through to the second part.
// CHECK-LABEL: @cut
// CHECK: %[[U:.*]] = msl.in_threads lanes 31 = 0 -> (f32) {
// CHECK: %[[LOADED:.*]] = msl.load %arg1
// CHECK: msl.store
// CHECK-NEXT: msl.yield %[[LOADED]] : f32
// CHECK-NEXT: }
// CHECK-NEXT: msl.barrier
// CHECK-NEXT: %[[R:.*]] = msl.in_threads lanes 31 = 0 -> (f32) {
// CHECK-NEXT: msl.load %{{.*}} : <f32, threadgroup>
// CHECK-NEXT: %[[SUM:.*]] = arith.addf %{{.*}}, %[[U]]
// CHECK-NEXT: msl.yield %[[SUM]]
// CHECK-NEXT: }
// CHECK: msl.store %[[R]]
msl.kernel @cut(%f: f32, %out: !msl.ptr<f32, device>) threads 128 {
  %c1 = arith.constant 1 : i32
  %a = msl.alloc "a", 4 : !msl.ptr<f32, threadgroup>
  %lane = msl.lane : i32
  %simdgroup = msl.simdgroup : i32
  %other = arith.xori %simdgroup, %c1 : i32
  %r = msl.in_threads lanes 31 = 0 -> (f32) {
    %u = msl.load %out[%simdgroup] : !msl.ptr<f32, device>, i32 -> f32
    msl.store %u, %a[%simdgroup] : f32, !msl.ptr<f32, threadgroup>, i32
    %x = msl.load %a[%other] : !msl.ptr<f32, threadgroup>, i32 -> f32
    %y = arith.addf %x, %u : f32
    msl.yield %y : f32
  }
  %place = arith.addi %lane, %simdgroup : i32
  msl.store %r, %out[%place] : f32, !msl.ptr<f32, device>, i32
  msl.return
}

// -----

// Regions in a branch at which threads part ways: the branch is cut between them.
// CHECK-LABEL: @branch
// CHECK: scf.if %[[C:.*]] {
// CHECK-NEXT: msl.in_threads
// CHECK-NEXT: msl.store
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: msl.barrier
// CHECK-NEXT: scf.if %[[C]] {
// CHECK-NEXT: msl.in_threads
// CHECK-NEXT: msl.load
msl.kernel @branch(%f: f32, %out: !msl.ptr<f32, device>, %n: i32) threads 128 {
  %c1 = arith.constant 1 : i32
  %a = msl.alloc "a", 4 : !msl.ptr<f32, threadgroup>
  %lane = msl.lane : i32
  %simdgroup = msl.simdgroup : i32
  %other = arith.xori %simdgroup, %c1 : i32
  %c = arith.cmpi slt, %lane, %n : i32
  scf.if %c {
    msl.in_threads lanes 31 = 0 {
      msl.store %f, %a[%simdgroup] : f32, !msl.ptr<f32, threadgroup>, i32
    }
    msl.in_threads lanes 31 = 0 {
      %x = msl.load %a[%other] : !msl.ptr<f32, threadgroup>, i32 -> f32
      msl.store %x, %out[%simdgroup] : f32, !msl.ptr<f32, device>, i32
    }
  }
  msl.return
}

// -----

// What a region gives is not the same in all threads: the two places cannot be told apart.
// CHECK-LABEL: @result_as_place
// CHECK: msl.store
// CHECK-NEXT: msl.barrier device
// CHECK-NEXT: msl.load
msl.kernel @result_as_place(%x: !msl.ptr<f32, device>, %f: f32, %n: i32) threads 128 {
  %c1 = arith.constant 1 : i32
  %r = msl.in_threads lanes 31 = 0 simdgroups 3 = 0 -> (i32) {
    msl.yield %n : i32
  }
  %s = arith.addi %r, %c1 : i32
  msl.store %f, %x[%r] : f32, !msl.ptr<f32, device>, i32
  %v = msl.load %x[%s] : !msl.ptr<f32, device>, i32 -> f32
  %m = msl.alloc "m", 2 : !msl.ptr<f32, threadgroup>
  msl.store %v, %m[%c1] : f32, !msl.ptr<f32, threadgroup>, i32
  msl.return
}

// RUN: triton-metal-opt %s --split-input-file --tt-legalize-atomics --verify-diagnostics

tt.func public @pointers(%x: !tt.ptr<!tt.ptr<f32>>) {
  // expected-error @below {{accesses '!tt.ptr<f32>' atomically; integers and floats can be}}
  %v = tt.atomic_load acquire, gpu, %x : (!tt.ptr<!tt.ptr<f32>>) -> !tt.ptr<f32>
  tt.return
}

// -----

tt.func public @floats(%x: !tt.ptr<f32>, %f: f32, %time: i64) {
  // expected-error @below {{accesses 'f32' atomically; integers can be}}
  %there = tt.atomic_poll acquire, gpu, %x, %f timeout %time : !tt.ptr<f32>, f32 -> i1
  tt.return
}

// -----

tt.func public @other(%x: !tt.ptr<i32>, %n: i64, %time: i64) {
  // expected-error @below {{compares 'i32' with 'i64'; they must have one type}}
  %there = tt.atomic_poll acquire, gpu, %x, %n timeout %time : !tt.ptr<i32>, i64 -> i1
  tt.return
}

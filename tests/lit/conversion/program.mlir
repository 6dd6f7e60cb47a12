// RUN: triton-metal-opt %s --convert-ttm-to-msl | FileCheck %s

module attributes {ttm.num_simdgroups = 4 : i32, ttm.threads = 128 : i32} {
  // A function is a kernel with the threads of its SIMD-groups; arguments keep their names.
  // CHECK: msl.kernel @program(%[[X:.*]]: !msl.ptr<i32, device> {msl.name = "x"}, %{{.*}}: i32) threads 128 {
  // CHECK: %[[ID:.*]] = msl.program_id 1 : i32
  // CHECK: %[[COUNT:.*]] = msl.num_programs 0 : i32
  // CHECK: %[[P:.*]] = msl.ptr_add %[[X]], %[[ID]]
  // CHECK: msl.in_threads lanes 31 = 0 simdgroups 3 = 0 {
  // CHECK-NEXT: msl.store %[[COUNT]], %[[P]]
  // CHECK: msl.barrier device
  // CHECK: msl.return
  tt.func public @program(%x: !tt.ptr<i32> loc("x"), %n: i32) {
    %c0 = arith.constant 0 : i32
    %id = tt.get_program_id y : i32
    %count = tt.get_num_programs x : i32
    %p = tt.addptr %x, %id : !tt.ptr<i32>, i32
    ttm.store %count, %p[%c0] : i32, i32, !tt.ptr<i32>
    ttg.barrier all
    tt.return
  }
}

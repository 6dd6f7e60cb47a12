// What all tt passes together make of Triton's text: one structured kernel, scalar pointers, offsets out of the loops.
// RUN: triton-metal-opt --tt-pipeline %S/stock/3.9.0/matmul.ttir | FileCheck %s --check-prefix=MATMUL
// RUN: triton-metal-opt --tt-pipeline %S/stock/3.7.1/matmul.ttir | FileCheck %s --check-prefix=MATMUL
// RUN: triton-metal-opt --tt-pipeline %S/stock/3.9.0/attention.ttir | FileCheck %s --check-prefix=ATTENTION
// RUN: triton-metal-opt --tt-pipeline %S/stock/3.9.0/early_return.ttir | FileCheck %s --check-prefix=RETURN
// RUN: triton-metal-opt --tt-pipeline %S/stock/3.9.0/calls.ttir | FileCheck %s --check-prefix=CALLS
// RUN: triton-metal-opt --tt-pipeline %S/stock/3.9.0/while_loop.ttir | FileCheck %s --check-prefix=WHILE

// MATMUL: tt.func public @matmul(%[[A:.*]]: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %[[B:.*]]: !tt.ptr<f16> {{.*}}, %{{.*}}: !tt.ptr<f16>
// MATMUL: scf.for {{.*}} iter_args(%[[PA:.*]] = %[[A]], %[[PB:.*]] = %[[B]], %{{.*}} = %{{.*}}) -> (!tt.ptr<f16>, !tt.ptr<f16>, tensor<64x64xf32>)
// MATMUL-NOT: tensor<{{.*}}xi64>
// MATMUL: tt.addptr %[[PA]], %c32_i32 : !tt.ptr<f16>, i32
// MATMUL: tt.addptr %[[PB]], %{{.*}} : !tt.ptr<f16>, i32
// MATMUL-NEXT: scf.yield

// Rows start at multiples of the head's size, so that all offsets have 32 bits.
// ATTENTION-NOT: tensor<{{.*}}xi64>
// ATTENTION: scf.for
// ATTENTION: } {tt.num_stages = 2 : i32}

// RETURN-NOT: cf.
// RETURN-NOT: scf.index_switch
// RETURN: scf.if
// RETURN: tt.return

// CALLS-NOT: tt.call
// CALLS-NOT: tt.func private
// CALLS: tt.return

// WHILE: scf.while
// WHILE: tt.addptr %{{.*}}, %{{.*}} : !tt.ptr<i32>, i32

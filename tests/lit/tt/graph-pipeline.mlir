// What an MLX graph is made of: structured control flow, exact functions, pointers as offsets from an argument; nothing is made for Metal.
// RUN: triton-metal-opt --graph-pipeline %S/stock/3.9.0/matmul.ttir | FileCheck %s --check-prefix=MATMUL
// RUN: triton-metal-opt --graph-pipeline %S/stock/3.9.0/early_return.ttir | FileCheck %s --check-prefix=RETURN
// RUN: triton-metal-opt --graph-pipeline %S/stock/3.9.0/calls.ttir | FileCheck %s --check-prefix=CALLS

// MATMUL: tt.func public @matmul(%{{.*}}: !tt.ptr<f16>
// MATMUL: scf.for
// MATMUL: tt.dot
// MATMUL-NOT: math.fma
// MATMUL: tt.store

// RETURN-NOT: cf.
// RETURN: scf.if
// RETURN: tt.return

// CALLS-NOT: tt.call
// CALLS: tt.return

// Outside of stress mode the verifiers run where a form is complete, and not behind each pass. With TRITON_METAL_STRESS, everything that MLIR's passes may do at any time is done around each pass of this project.
// RUN: env TRITON_METAL_STRESS=1 triton-metal-opt --tt-pipeline --dump-pass-pipeline %s 2>&1 | FileCheck %s --check-prefix=STRESS
// RUN: env -u TRITON_METAL_STRESS triton-metal-opt --tt-pipeline --dump-pass-pipeline %s 2>&1 | FileCheck %s --check-prefix=PLAIN

// STRESS:      cse,
// STRESS-NEXT: remove-dead-values
// STRESS-NEXT: symbol-dce,
// STRESS-NEXT: canonicalize{
// STRESS-NEXT: verify,
// STRESS-NEXT: tt-check-progress,
// STRESS-NEXT: verify,
// STRESS-NEXT: canonicalize{
// STRESS-NEXT: cse,
// STRESS-NEXT: remove-dead-values
// STRESS-NEXT: symbol-dce,
// STRESS-NEXT: canonicalize{
// STRESS-NEXT: verify,

// PLAIN-NOT:  symbol-dce
// PLAIN:      tt-check-progress,
// PLAIN-NEXT: tt-legalize-atomics,
// PLAIN-NOT:  remove-dead-values
module {}

// RUN: not triton-metal-compile %s --repeat=0 2>&1 | FileCheck %s --check-prefix=REPEAT
// RUN: not triton-metal-compile %s --num-warps=3 2>&1 | FileCheck %s --check-prefix=WARPS
// RUN: triton-metal-compile %s --repeat=1 -o %t 2>&1 | FileCheck %s --check-prefix=TIME

// REPEAT: triton-metal-compile: --repeat takes a number from 1 on, not '0'
// WARPS: triton-metal-compile: --num-warps takes 1, 2, 4, 8, 16 or 32
// TIME: ms
tt.func public @one(%x: !tt.ptr<f32>) {
  %c = arith.constant 1.0 : f32
  tt.store %x, %c : !tt.ptr<f32>
  tt.return
}

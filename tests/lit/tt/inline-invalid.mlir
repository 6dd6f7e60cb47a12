// RUN: triton-metal-opt %s --split-input-file --verify-diagnostics --tt-inline

// expected-error @+1 {{function 'again' calls itself; a kernel has no stack, write a loop instead}}
tt.func private @again(%x: f32) -> f32 {
  %0 = tt.call @again(%x) : (f32) -> f32
  tt.return %0 : f32
}

tt.func public @kernel(%x: f32) {
  %0 = tt.call @again(%x) : (f32) -> f32
  tt.return
}

// -----

tt.func private @outside(f32) -> f32

tt.func public @kernel(%x: f32) {
  // expected-error @+1 {{'tt.call' op cannot be inlined: 'outside' has no body}}
  %0 = tt.call @outside(%x) : (f32) -> f32
  tt.return
}

// -----

// Two functions that call each other have no end either.
tt.func private @ping(%x: f32) {
  tt.call @pong(%x) : (f32) -> ()
  tt.return
}

// expected-error @+1 {{calls itself; a kernel has no stack, write a loop instead}}
tt.func private @pong(%x: f32) {
  tt.call @ping(%x) : (f32) -> ()
  tt.return
}

tt.func public @kernel(%x: f32) {
  tt.call @pong(%x) : (f32) -> ()
  tt.return
}

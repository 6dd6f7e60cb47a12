// RUN: triton-metal-opt %s --msl-explicit-types | FileCheck %s --check-prefix=TYPES
// RUN: triton-metal-opt %s --msl-explicit-types --msl-form-expressions --msl-print-metal -o /dev/null | FileCheck %s --check-prefix=TEXT

// A function comes with those that it calls, and before the kernel. A vector is taken component by component.
// TEXT: inline ulong library_digits(float x)
// TEXT: inline float library_cube_root(float a)
// TEXT-NOT: library_hypot
// TEXT: inline float library_cbrt(float x)
// TEXT: kernel, max_total
// TEXT: library_cbrt

// TYPES-LABEL: msl.kernel @roots
// TYPES: %[[X:.*]] = msl.swizzle %[[V:.*]] [0]
// TYPES: msl.call "library_cbrt"(%[[X]])
// TYPES: %[[Y:.*]] = msl.swizzle %[[V]] [1]
// TYPES: msl.call "library_cbrt"(%[[Y]])
// TYPES: msl.vector
msl.kernel @roots(%x: !msl.ptr<f32, device>, %n: !msl.ptr<i32, device>) threads 64 {
  %v = msl.read %x : <f32, device> -> vector<2xf32>
  %r = msl.library "cbrt"(%v) : (vector<2xf32>) -> vector<2xf32>
  msl.write %r, %x : vector<2xf32>, <f32, device>
  %s = msl.read %x : <f32, device> -> f32
  %e = msl.library "ilogb"(%s) : (f32) -> i32
  msl.write %e, %n : i32, <i32, device>
  msl.return
}

// RUN: triton-metal-opt %s --msl-loops-pipeline --msl-text-pipeline --msl-print-metal -o /dev/null | FileCheck %s

// A function in front of the kernel for each kind and type of update that Metal has no function for.
// CHECK: inline ushort bfloat_bits(float x) {
// CHECK: // An update of the 32-bit word that holds the number; gives what was there.
// CHECK-NEXT: __attribute__((always_inline)) inline half fetch_add(device half *p, half value) {
// CHECK-NEXT:   uint byte = uint(reinterpret_cast<ulong>(p)) & 2u;
// CHECK-NEXT:   device atomic_uint *word = (device atomic_uint *)((device uchar *)p - byte);
// CHECK-NEXT:   uint shift = 8u * byte;
// CHECK-NEXT:   uint old = atomic_fetch_or_explicit(word, 0u, memory_order_relaxed);
// CHECK-NEXT:   half found = as_type<half>(ushort(old >> shift));
// CHECK-NEXT:   while (!atomic_compare_exchange_weak_explicit(word, &old, (old & ~(65535u << shift)) | (uint(as_type<ushort>(half(found + value))) << shift), memory_order_relaxed, memory_order_relaxed))
// CHECK-NEXT:     found = as_type<half>(ushort(old >> shift));
// CHECK-NEXT:   return found;
// CHECK-NEXT: }
// CHECK: inline char fetch_max(device char *p, char value) {
// CHECK-NEXT: uint(reinterpret_cast<ulong>(p)) & 3u;
// CHECK: char found = char(uchar(old >> shift));
// CHECK: inline ushort fetch_add_bfloat(device ushort *p, ushort value) {
// CHECK: inline ushort compare_exchange(device ushort *p, ushort expected, ushort desired) {
// CHECK: uint old = atomic_fetch_or_explicit(word, 0u, memory_order_relaxed);
// CHECK: while (found == expected &&
// CHECK: inline float fetch_max(device float *p, float value) {
// CHECK-NEXT:   device atomic_uint *word = (device atomic_uint *)p;
// CHECK: as_type<uint>(float(fmax(found, value)))
// CHECK: inline void add_halves(device ulong *p, ulong value) {
// CHECK-NEXT:   device atomic_uint *halves = (device atomic_uint *)p;
// CHECK-NEXT:   uint low = uint(value), high = uint(value >> 32);
// CHECK-NEXT:   uint old = atomic_fetch_add_explicit(halves, low, memory_order_relaxed);
// CHECK-NEXT:   high += old + low < low ? 1u : 0u;
// CHECK-NEXT:   atomic_fetch_add_explicit(halves + 1, high, memory_order_relaxed);
// CHECK-NEXT: }
// CHECK: inline void xor_halves(device ulong *p, ulong value) {
// CHECK: inline long fetch_min_alone(volatile device long *p, long value) {
// CHECK-NEXT:   long found = *p;
// CHECK-NEXT:   *p = min(found, value);
// CHECK-NEXT:   return found;
// CHECK-NEXT: }

// CHECK: void updates(
// CHECK: if (c)
// CHECK-NEXT:   fetch_add((device half *)h, x);
// CHECK: char old_b = fetch_max((device char *)(b + 5), n);
// CHECK: fetch_add_bfloat((device ushort *)s, ushort({{.*}}));
// CHECK: compare_exchange((device ushort *)s,
// CHECK: fetch_max((device float *)f, y);
// CHECK: add_halves((device ulong *)l, ulong(m));
// CHECK: xor_halves((device ulong *)l, ulong(m));
// CHECK: fetch_min_alone((device long *)l, m);
// CHECK: atomic_max_explicit((device atomic_ulong *)l, ulong(m), memory_order_relaxed);
// CHECK: fetch_add((device half *)reinterpret_cast<device half *>(ulong(m)), x);
msl.kernel @updates(%h: !msl.ptr<f16, device> {msl.name = "h"}, %b: !msl.ptr<i8, device> {msl.name = "b"},
    %s: !msl.ptr<i16, device> {msl.name = "s"}, %f: !msl.ptr<f32, device> {msl.name = "f"},
    %l: !msl.ptr<i64, device> {msl.name = "l"}, %x: f16 {msl.name = "x"}, %n: i8 {msl.name = "n"},
    %k: i16 {msl.name = "k"}, %y: f32 {msl.name = "y"}, %m: i64 {msl.name = "m"}, %c: i1 {msl.name = "c"}) threads 64 {
  %c0 = arith.constant 0 : i32
  %c5 = arith.constant 5 : i32
  %0 = msl.atomic_rmw fadd %h[%c0], %x mask %c form word : !msl.ptr<f16, device>, i32, f16
  %1 = msl.atomic_rmw max %b[%c5], %n form word : !msl.ptr<i8, device>, i32, i8
  msl.store %1, %b[%c0] : i8, !msl.ptr<i8, device>, i32
  %2 = msl.atomic_rmw bfadd %s[%c0], %k form word : !msl.ptr<i16, device>, i32, i16
  %3 = msl.atomic_cas %s[%c0], %k, %k form word : !msl.ptr<i16, device>, i32, i16
  %4 = msl.atomic_rmw fmax %f[%c0], %y form word : !msl.ptr<f32, device>, i32, f32
  %5 = msl.atomic_rmw add %l[%c0], %m form halves : !msl.ptr<i64, device>, i32, i64
  %6 = msl.atomic_rmw xor %l[%c0], %m form halves : !msl.ptr<i64, device>, i32, i64
  %7 = msl.atomic_rmw min %l[%c0], %m form alone : !msl.ptr<i64, device>, i32, i64
  %8 = msl.atomic_rmw umax %l[%c0], %m : !msl.ptr<i64, device>, i32, i64
  %9 = msl.atomic_rmw fadd[%m], %x form word : i64, f16
  msl.return
}

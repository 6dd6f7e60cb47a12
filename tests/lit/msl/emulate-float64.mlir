// RUN: triton-metal-opt %s --msl-emulate-types | FileCheck %s

// 64-bit floats travel as their bits on every target; arithmetic is a function of them.
// CHECK-LABEL: msl.kernel @arithmetic(
// CHECK-SAME: !msl.ptr<i64, device>
// CHECK-SAME: i64
// CHECK: %[[V:.*]] = msl.load {{.*}} : <i64, device>, vector<4xi32> -> vector<4xi64>
// CHECK: %[[S:.*]] = msl.splat %{{.*}} : vector<4xi64>
// CHECK: %[[SUM:.*]] = msl.float64 "add"(%[[V]], %[[S]]) : (vector<4xi64>, vector<4xi64>) -> vector<4xi64>
// CHECK: %[[FMA:.*]] = msl.float64 "fma"(%[[SUM]], %[[V]], %[[S]])
// CHECK: %[[NEGATED:.*]] = arith.xori %[[FMA]], %{{.*}} : vector<4xi64>
// CHECK: %[[LESS:.*]] = msl.float64 "less"(%[[NEGATED]], %[[V]]) : (vector<4xi64>, vector<4xi64>) -> vector<4xi1>
// CHECK: %[[NOT:.*]] = arith.xori %[[LESS]], %{{.*}} : vector<4xi1>
// CHECK: %[[CHOSEN:.*]] = arith.select %[[NOT]], %[[NEGATED]], %[[V]] : vector<4xi1>, vector<4xi64>
// CHECK: msl.store %[[CHOSEN]]
msl.kernel @arithmetic(%x: !msl.ptr<f64, device>, %s: f64) threads 32 {
  %places = arith.constant dense<[0, 1, 2, 3]> : vector<4xi32>
  %v = msl.load %x[%places] : !msl.ptr<f64, device>, vector<4xi32> -> vector<4xf64>
  %a = msl.splat %s : vector<4xf64>
  %sum = arith.addf %v, %a : vector<4xf64>
  %fma = math.fma %sum, %v, %a : vector<4xf64>
  %neg = arith.negf %fma : vector<4xf64>
  %uge = arith.cmpf uge, %neg, %v : vector<4xf64>
  %chosen = arith.select %uge, %neg, %v : vector<4xi1>, vector<4xf64>
  msl.store %chosen, %x[%places] : vector<4xf64>, !msl.ptr<f64, device>, vector<4xi32>
  msl.return
}

// Conversions round once: a half does not come through a float, and an integer saturates.
// CHECK-LABEL: msl.kernel @conversions(
// CHECK: %[[NARROW:.*]] = msl.float64 "narrow<10, 15, 0>"(%{{.*}}) : (i64) -> i32
// CHECK: %[[BITS:.*]] = arith.trunci %[[NARROW]] : i32 to i16
// CHECK: arith.bitcast %[[BITS]] : i16 to f16
// CHECK: msl.float64 "from_float"(%{{.*}}) : (f32) -> i64
// CHECK: %[[WHOLE:.*]] = msl.float64 "to_long"
// CHECK: arith.minsi %[[WHOLE]]
// CHECK: arith.maxsi
// CHECK: arith.trunci {{.*}} : i64 to i8
// CHECK: arith.extui {{.*}} : i8 to i64
// CHECK: msl.float64 "from_ulong"
msl.kernel @conversions(%x: !msl.ptr<f64, device>, %h: !msl.ptr<f16, device>, %b: !msl.ptr<i8, device>) threads 32 {
  %c0 = arith.constant 0 : i32
  %v = msl.load %x[%c0] : !msl.ptr<f64, device>, i32 -> f64
  %half = arith.truncf %v : f64 to f16
  msl.store %half, %h[%c0] : f16, !msl.ptr<f16, device>, i32
  %back = arith.extf %half : f16 to f64
  msl.store %back, %x[%c0] : f64, !msl.ptr<f64, device>, i32
  %byte = arith.fptosi %v : f64 to i8
  msl.store %byte, %b[%c0] : i8, !msl.ptr<i8, device>, i32
  %number = arith.uitofp %byte : i8 to f64
  msl.store %number, %x[%c0] : f64, !msl.ptr<f64, device>, i32
  msl.return
}

// The region of a reduction, constants, and 0.5 as its bits.
// CHECK-LABEL: msl.kernel @reduction(
// CHECK: arith.constant 4602678819172646912 : i64
// CHECK: msl.reduce_registers
// CHECK: ^bb0(%[[A:.*]]: i64, %[[B:.*]]: i64):
// CHECK: msl.float64 "maximum"(%[[A]], %[[B]])
msl.kernel @reduction(%x: !msl.ptr<f64, device>) threads 32 {
  %c0 = arith.constant 0 : i32
  %half = arith.constant 0.5 : f64
  %places = arith.constant dense<[0, 1, 2, 3]> : vector<4xi32>
  %v = msl.load %x[%places] : !msl.ptr<f64, device>, vector<4xi32> -> vector<4xf64>
  %m = msl.reduce_registers(%v) bits 3 {
  ^bb0(%a: f64, %b: f64):
    %r = arith.maximumf %a, %b : f64
    msl.yield %r : f64
  } : (vector<4xf64>) -> vector<1xf64>
  %first = vector.extract %m[0] : f64 from vector<1xf64>
  %sum = arith.addf %first, %half : f64
  msl.store %sum, %x[%c0] : f64, !msl.ptr<f64, device>, i32
  msl.return
}

// Functions of a library, with integers and floats of 32 bits among operands and results. A direction of rounding is a template's
// parameter.
// CHECK-LABEL: msl.kernel @library(
// CHECK: msl.float64 "pow"(%{{.*}}, %{{.*}}) : (vector<2xi64>, vector<2xi64>) -> vector<2xi64>
// CHECK: msl.float64 "atan2"
// CHECK: msl.float64 "tgamma"(%{{.*}}) : (vector<2xi64>) -> vector<2xi64>
// CHECK: msl.float64 "add_to<2>"
// CHECK: msl.float64 "jn"(%{{.*}}, %{{.*}}) : (i32, i64) -> i64
// CHECK: msl.float64 "from_long_to<3>"
// CHECK: %[[NARROW:.*]] = msl.float64 "narrow<23, 127, 1>"(%{{.*}}) : (i64) -> i32
// CHECK: arith.bitcast %[[NARROW]] : i32 to f32
// CHECK: msl.float64 "ilogb"(%{{.*}}) : (i64) -> i32
msl.kernel @library(%x: !msl.ptr<f64, device>, %f: !msl.ptr<f32, device>, %i: !msl.ptr<i32, device>, %l: i64) threads 32 {
  %c0 = arith.constant 0 : i32
  %places = arith.constant dense<[0, 1]> : vector<2xi32>
  %v = msl.load %x[%places] : !msl.ptr<f64, device>, vector<2xi32> -> vector<2xf64>
  %pow = math.powf %v, %v : vector<2xf64>
  %angle = math.atan2 %pow, %v : vector<2xf64>
  %gamma = msl.library "tgamma"(%angle) : (vector<2xf64>) -> vector<2xf64>
  %sum = msl.library "add_rd"(%gamma, %v) : (vector<2xf64>, vector<2xf64>) -> vector<2xf64>
  msl.store %sum, %x[%places] : vector<2xf64>, !msl.ptr<f64, device>, vector<2xi32>
  %s = msl.load %x[%c0] : !msl.ptr<f64, device>, i32 -> f64
  %n = msl.load %i[%c0] : !msl.ptr<i32, device>, i32 -> i32
  %j = msl.library "jn"(%n, %s) : (i32, f64) -> f64
  msl.store %j, %x[%c0] : f64, !msl.ptr<f64, device>, i32
  %whole = msl.library "ll_to_double_ru"(%l) : (i64) -> f64
  msl.store %whole, %x[%c0] : f64, !msl.ptr<f64, device>, i32
  %narrow = msl.library "double_to_float_rz"(%s) : (f64) -> f32
  msl.store %narrow, %f[%c0] : f32, !msl.ptr<f32, device>, i32
  %e = msl.library "ilogb"(%s) : (f64) -> i32
  msl.store %e, %i[%c0] : i32, !msl.ptr<i32, device>, i32
  msl.return
}

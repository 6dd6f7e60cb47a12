// RUN: triton-metal-opt %s --tt-reciprocals | FileCheck %s

// CHECK-LABEL: @rows
// CHECK-SAME: (%[[X:.*]]: tensor<8x64xf32>, %[[S:.*]]: tensor<8x1xf32>)
tt.func private @rows(%x: tensor<8x64xf32>, %s: tensor<8x1xf32>) -> tensor<8x64xf32> {
  // A quarter of both where the reciprocal would be subnormal.
  // CHECK: %[[LARGE:.*]] = arith.cmpf ogt, %{{.*}}, %{{.*}} : tensor<8x1xf32>
  // CHECK: %[[SCALE:.*]] = arith.select %[[LARGE]], %{{.*}}, %{{.*}} : tensor<8x1xi1>, tensor<8x1xf32>
  // CHECK: %[[D:.*]] = arith.mulf %[[S]], %[[SCALE]]
  // CHECK: %[[SCALES:.*]] = tt.broadcast %[[SCALE]]
  // CHECK: %[[R:.*]] = arith.divf %{{.*}}, %[[D]] : tensor<8x1xf32>
  // CHECK: %[[B:.*]] = tt.broadcast %[[R]]
  // CHECK: %[[Y:.*]] = arith.mulf %[[X]], %[[SCALES]]
  // CHECK: arith.mulf %[[Y]], %[[B]]
  %0 = tt.broadcast %s : tensor<8x1xf32> -> tensor<8x64xf32>
  %1 = arith.divf %x, %0 fastmath<afn> : tensor<8x64xf32>
  tt.return %1 : tensor<8x64xf32>
}

// CHECK-LABEL: @halves
// CHECK-SAME: (%[[X:.*]]: tensor<64xf16>, %[[S:.*]]: f16)
tt.func private @halves(%x: tensor<64xf16>, %s: f16) -> tensor<64xf16> {
  // CHECK: %[[W:.*]] = arith.extf %[[S]] : f16 to f32
  // CHECK: %[[R:.*]] = arith.divf %{{.*}}, %[[W]] : f32
  // CHECK: %[[B:.*]] = tt.splat %[[R]] : f32 -> tensor<64xf32>
  // CHECK: %[[V:.*]] = arith.extf %[[X]]
  // CHECK: %[[P:.*]] = arith.mulf %[[V]], %[[B]]
  // CHECK: arith.truncf %[[P]]
  %0 = tt.splat %s : f16 -> tensor<64xf16>
  %1 = arith.divf %x, %0 fastmath<afn> : tensor<64xf16>
  tt.return %1 : tensor<64xf16>
}

// A sum of powers of what is below the greatest is at most their number.
// CHECK-LABEL: @softmax
tt.func private @softmax(%x: tensor<64xf32>) -> tensor<64xf32> {
  // CHECK-NOT: arith.cmpf
  // CHECK: %[[R:.*]] = arith.divf %{{.*}}, %{{.*}} : f32
  // CHECK: %[[B:.*]] = tt.splat %[[R]]
  // CHECK: arith.mulf %{{.*}}, %[[B]]
  %m = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.maxnumf %a, %b : f32
    tt.reduce.return %c : f32
  }) : (tensor<64xf32>) -> f32
  %0 = tt.splat %m : f32 -> tensor<64xf32>
  %1 = arith.subf %x, %0 : tensor<64xf32>
  %e = math.exp %1 : tensor<64xf32>
  %s = "tt.reduce"(%e) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tt.reduce.return %c : f32
  }) : (tensor<64xf32>) -> f32
  %2 = tt.splat %s : f32 -> tensor<64xf32>
  %3 = arith.divf %e, %2 fastmath<afn> : tensor<64xf32>
  tt.return %3 : tensor<64xf32>
}

// The greatest of columns bounds no row, and without it nothing is known.
// CHECK-LABEL: @other_axis
tt.func private @other_axis(%x: tensor<8x8xf32>, %y: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // CHECK: arith.cmpf ogt
  // CHECK: arith.divf
  %m = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.maxnumf %a, %b : f32
    tt.reduce.return %c : f32
  }) : (tensor<8x8xf32>) -> tensor<8xf32>
  %0 = tt.expand_dims %m {axis = 1 : i32} : tensor<8xf32> -> tensor<8x1xf32>
  %1 = tt.broadcast %0 : tensor<8x1xf32> -> tensor<8x8xf32>
  %2 = arith.subf %x, %1 : tensor<8x8xf32>
  %e = math.exp %2 : tensor<8x8xf32>
  %s = "tt.reduce"(%e) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tt.reduce.return %c : f32
  }) : (tensor<8x8xf32>) -> tensor<8xf32>
  %3 = tt.expand_dims %s {axis = 1 : i32} : tensor<8xf32> -> tensor<8x1xf32>
  %4 = tt.broadcast %3 : tensor<8x1xf32> -> tensor<8x8xf32>
  %5 = arith.divf %y, %4 fastmath<afn> : tensor<8x8xf32>
  tt.return %5 : tensor<8x8xf32>
}

// What is exact, what has no product to save, and what shares nothing.
// CHECK-LABEL: @others
tt.func private @others(%x: tensor<64xf32>, %s: f32) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) {
  // CHECK-NOT: arith.mulf
  // CHECK-COUNT-3: arith.divf
  %one = arith.constant dense<1.0> : tensor<64xf32>
  %0 = tt.splat %s : f32 -> tensor<64xf32>
  %1 = arith.divf %x, %0 : tensor<64xf32>
  %2 = arith.divf %one, %0 fastmath<afn> : tensor<64xf32>
  %3 = arith.divf %0, %x fastmath<afn> : tensor<64xf32>
  tt.return %1, %2, %3 : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
}

// The greatest of two tiles is no less than the numbers of either, in whatever shape these are.
// CHECK-LABEL: @blocks
tt.func private @blocks(%x: tensor<64xf32>, %z: tensor<8x8xf32>) -> tensor<64xf32> {
  // CHECK-NOT: arith.cmpf
  // CHECK: %[[R:.*]] = arith.divf %{{.*}}, %{{.*}} : f32
  // CHECK: %[[B:.*]] = tt.splat %[[R]]
  // CHECK: arith.mulf %{{.*}}, %[[B]]
  // CHECK-NOT: arith.mulf
  // CHECK: tt.return
  %flat = tt.reshape %z : tensor<8x8xf32> -> tensor<64xf32>
  %both = arith.maxnumf %x, %flat : tensor<64xf32>
  %m = "tt.reduce"(%both) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.maxnumf %a, %b : f32
    tt.reduce.return %c : f32
  }) : (tensor<64xf32>) -> f32
  %0 = tt.splat %m : f32 -> tensor<64xf32>
  %1 = arith.subf %x, %0 : tensor<64xf32>
  %2 = math.exp %1 : tensor<64xf32>
  %3 = tt.splat %m : f32 -> tensor<8x8xf32>
  %4 = arith.subf %z, %3 : tensor<8x8xf32>
  %5 = math.exp %4 : tensor<8x8xf32>
  %6 = tt.reshape %5 : tensor<8x8xf32> -> tensor<64xf32>
  %sums = arith.addf %2, %6 : tensor<64xf32>
  %s = "tt.reduce"(%sums) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tt.reduce.return %c : f32
  }) : (tensor<64xf32>) -> f32
  %7 = tt.splat %s : f32 -> tensor<64xf32>
  %8 = arith.divf %2, %7 fastmath<afn> : tensor<64xf32>
  tt.return %8 : tensor<64xf32>
}

// A tile that is none of those may have greater numbers.
// CHECK-LABEL: @stranger
// CHECK: arith.cmpf ogt
tt.func private @stranger(%x: tensor<64xf32>, %z: tensor<64xf32>) -> tensor<64xf32> {
  %m = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.maxnumf %a, %b : f32
    tt.reduce.return %c : f32
  }) : (tensor<64xf32>) -> f32
  %0 = tt.splat %m : f32 -> tensor<64xf32>
  %1 = arith.subf %z, %0 : tensor<64xf32>
  %2 = math.exp %1 : tensor<64xf32>
  %s = "tt.reduce"(%2) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tt.reduce.return %c : f32
  }) : (tensor<64xf32>) -> f32
  %3 = tt.splat %s : f32 -> tensor<64xf32>
  %4 = arith.divf %2, %3 fastmath<afn> : tensor<64xf32>
  tt.return %4 : tensor<64xf32>
}

// The divisor of a logistic function is at most 2.
// CHECK-LABEL: @logistic
// CHECK-SAME: %[[X:.*]]: tensor<64xf32>
// CHECK: %[[SIZE:.*]] = math.absf %[[X]]
// CHECK: %[[MINUS:.*]] = arith.negf %[[SIZE]]
// CHECK: %[[E:.*]] = math.exp %[[MINUS]]
// CHECK: %[[SUM:.*]] = arith.addf %[[E]], %[[ONE:.*]] :
// CHECK: %[[ABOVE:.*]] = arith.cmpf ogt, %[[X]], %{{.*}}
// CHECK: %[[N:.*]] = arith.select %[[ABOVE]], %[[E]], %[[ONE]]
// CHECK: arith.divf %[[N]], %[[SUM]] fastmath<arcp,afn>
tt.func private @logistic(%x: tensor<64xf32>) -> tensor<64xf32> {
  %one = arith.constant dense<1.0> : tensor<64xf32>
  %e = math.exp %x : tensor<64xf32>
  %s = arith.addf %e, %one : tensor<64xf32>
  %0 = arith.divf %one, %s fastmath<afn> : tensor<64xf32>
  tt.return %0 : tensor<64xf32>
}

// A smaller constant is a factor of the power. What reads the sum, too, or divides more, keeps it.
// CHECK-LABEL: @half_logistic
// CHECK: %[[E:.*]] = math.exp
// CHECK: arith.mulf %[[E]]
// CHECK: arith.divf {{.*}} fastmath<arcp,afn>
// CHECK-NOT: math.absf
// CHECK: arith.divf {{.*}} fastmath<afn>
// CHECK: arith.divf {{.*}} fastmath<afn>
tt.func private @half_logistic(%x: tensor<64xf32>, %y: tensor<64xf32>, %z: tensor<64xf32>)
    -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) {
  %half = arith.constant dense<0.5> : tensor<64xf32>
  %one = arith.constant dense<1.0> : tensor<64xf32>
  %two = arith.constant dense<2.0> : tensor<64xf32>
  %e = math.exp %x : tensor<64xf32>
  %s = arith.addf %one, %e : tensor<64xf32>
  %0 = arith.divf %half, %s fastmath<afn> : tensor<64xf32>
  %f = math.exp %y : tensor<64xf32>
  %t = arith.addf %f, %one : tensor<64xf32>
  %1 = arith.divf %one, %t fastmath<afn> : tensor<64xf32>
  %g = math.exp %z : tensor<64xf32>
  %u = arith.addf %g, %one : tensor<64xf32>
  %2 = arith.divf %two, %u fastmath<afn> : tensor<64xf32>
  tt.return %0, %1, %t, %2 : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
}

// The reciprocal of a power of two is exact, fast or not; that of 2^15 is subnormal as a half, and that of 2^127 as a float.
// CHECK-LABEL: @powers
// CHECK: %[[EIGHTH:.*]] = arith.constant dense<-1.250000e-01> : tensor<64xf32>
// CHECK: arith.mulf %{{.*}}, %[[EIGHTH]]
// CHECK: %[[HALF:.*]] = arith.constant 5.000000e-01 : bf16
// CHECK: arith.mulf %{{.*}}, %[[HALF]]
// CHECK: arith.divf {{.*}} : tensor<64xf16>
// CHECK: arith.divf {{.*}} : tensor<64xf32>
// CHECK: arith.divf {{.*}} : tensor<64xf32>
tt.func private @powers(%x: tensor<64xf32>, %y: bf16, %z: tensor<64xf16>)
    -> (tensor<64xf32>, bf16, tensor<64xf16>, tensor<64xf32>, tensor<64xf32>) {
  %eight = arith.constant dense<-8.0> : tensor<64xf32>
  %two = arith.constant 2.0 : bf16
  %half = arith.constant dense<32768.0> : tensor<64xf16>
  %large = arith.constant dense<0x7F000000> : tensor<64xf32>
  %three = arith.constant dense<3.0> : tensor<64xf32>
  %0 = arith.divf %x, %eight fastmath<afn> : tensor<64xf32>
  %1 = arith.divf %y, %two : bf16
  %2 = arith.divf %z, %half fastmath<afn> : tensor<64xf16>
  %3 = arith.divf %x, %large fastmath<afn> : tensor<64xf32>
  %4 = arith.divf %x, %three fastmath<afn> : tensor<64xf32>
  tt.return %0, %1, %2, %3, %4 : tensor<64xf32>, bf16, tensor<64xf16>, tensor<64xf32>, tensor<64xf32>
}

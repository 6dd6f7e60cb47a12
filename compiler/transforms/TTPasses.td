// Passes on `tt`: Triton IR as it comes from a front end.

#ifndef TRITON_METAL_TRANSFORMS_TTPASSES_TD
#define TRITON_METAL_TRANSFORMS_TTPASSES_TD

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// tt to tt
//===----------------------------------------------------------------------===//

def TTLiftControlFlow : Pass<"tt-lift-control-flow", "::mlir::ModuleOp"> {
  let summary = "Turns the branches of tt functions into scf";
  let description = [{
    Early returns reach the compiler as branches between blocks. Every function body becomes one block with
    structured control flow in it.

    ```mlir
    cf.cond_br %out, ^bb1, ^bb2
    ^bb1: tt.return
    ^bb2: tt.store %p, %x : !tt.ptr<f32>
          tt.return
    ```
    becomes
    ```mlir
    scf.if %out {
    } else {
      tt.store %p, %x : !tt.ptr<f32>
    }
    tt.return
    ```
  }];
  let dependentDialects = ["::mlir::scf::SCFDialect", "::mlir::cf::ControlFlowDialect",
                           "::mlir::arith::ArithDialect", "::mlir::ub::UBDialect"];
}

def TTInline : Pass<"tt-inline", "::mlir::ModuleOp"> {
  let summary = "Inlines every tt.call, and drops the functions that nothing calls any more";
  let description = [{
    Functions marked `noinline` are inlined too: a call in Metal cannot pass a tile that is spread over threads.
    A function that calls itself is refused.

    ```mlir
    %0 = tt.call @square(%x) : (f32) -> f32
    ```
    becomes the body of `@square`.
  }];
}

def TTRewriteDescriptors : Pass<"tt-rewrite-descriptors", "::mlir::ModuleOp"> {
  let summary = "Makes addresses and masks of block pointers and tensor descriptors";
  let description = [{
    A descriptor becomes its base, sizes, strides, and two flags: whether elements outside of the tensor are NaN, and
    whether what is loaded is rounded to tf32. A block pointer becomes its base, sizes, strides and offsets. Control flow carries
    these parts, and a kernel's argument is replaced by one argument for each part. A launch promises that the base and
    the strides of such an argument are multiples of 16 bytes, and that the last stride is 1. Triton's front end passes
    sizes and strides again, for the kernel's own use: with `tt.shape_follows`, the next arguments are these.

    What all elements of a block share goes to the scalar base. A dimension's mask compares the place in the block with
    two scalars, from which a later pass sees whether all elements are inside.

    Where each place in a tensor is memory of its own, by its sizes and strides or by what a launch says (`tt.non_overlapping`), accesses
    tell which tensor they touch, and at which offsets (`tt.places`), so that a later pass sees which blocks do not overlap.

    ```mlir
    %d = tt.make_tensor_descriptor %x, [%n], [%c1] : <f32>, <64xf32>
    %v = tt.descriptor_load %d[%i] : !tt.tensordesc<64xf32> -> tensor<64xf32>
    ```
    becomes
    ```mlir
    %base = tt.addptr %x, %i : !tt.ptr<f32>, i32
    %p = tt.addptr %bases, %range : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %difference = arith.subi %n, %i : i32
    %rest = arith.minui %difference, %c64 : i32
    %some = arith.cmpi slt, %i, %n : i32
    %end = arith.select %some, %rest, %c0 : i32
    %inside = arith.cmpi slt, %range, %ends : tensor<64xi32>
    (the same for the elements before the tensor, unless %i is a constant that is not negative)
    %v = tt.load %p, %mask, %zeros {tt.places = array<i32: 0, 0, 0>} : tensor<64x!tt.ptr<f32>>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def TTPrepareMessages : Pass<"tt-prepare-messages", "::mlir::ModuleOp"> {
  let summary = "Brings assertions out of the combine functions of reductions and scans, and floats of 8 bits out of prints";
  let description = [{
    Floats of 8 bits are printed as the floats, or the bits, that they are; later passes only know their codes.

    For assertions in a combine function, one more operand collects a bit for each assertion that has failed. It is tested behind the operation, so that the
    reduction itself stays one. From the 32nd on, assertions share a bit.

    ```mlir
    %s = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb0(%a: i32, %b: i32):
      tt.assert %ok, "overflow" : i1
      tt.reduce.return %sum : i32
    }) : (tensor<8xi32>) -> i32
    ```
    becomes
    ```mlir
    %s, %failed = "tt.reduce"(%x, %zeros) <{axis = 0 : i32}> ({
    ^bb0(%a: i32, %left: i32, %b: i32, %right: i32):
      %both = arith.ori %left, %right : i32
      %bit = arith.select %ok, %c0, %c1 : i32
      %bits = arith.ori %both, %bit : i32
      tt.reduce.return %sum, %bits : i32, i32
    }) : (tensor<8xi32>, tensor<8xi32>) -> (i32, i32)
    %holds = arith.cmpi eq, %failed, %c0 : i32
    tt.assert %holds, "overflow" : i1
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def TTRegionsOnTiles : Pass<"tt-regions-on-tiles", "::mlir::ModuleOp"> {
  let summary = "Replaces functions that are called for each element by operations on tiles";
  let description = [{
    `tt.map_elementwise` goes, and so do the reductions and scans whose combine function has loops, assertions or
    operations outside of `arith` and `math`. In a combine function that only branches, selections replace the branches.

    Where elements differ in their branch, both sides are computed and each element takes its own. A loop runs until
    no element wants another iteration; elements that have ended keep their values. Loads, stores, atomics and
    assertions of elements that would not come there are masked.

    ```mlir
    %y = "tt.map_elementwise"(%x) <{pack = 1 : i32}> ({
    ^bb0(%a: i32):
      %c = arith.cmpi slt, %a, %zero : i32
      %r = scf.if %c -> i32 { %n = arith.subi %zero, %a : i32  scf.yield %n : i32 } else { scf.yield %a : i32 }
      tt.map_elementwise.return %r : i32
    }) : (tensor<128xi32>) -> tensor<128xi32>
    ```
    becomes
    ```mlir
    %c = arith.cmpi slt, %x, %zeros : tensor<128xi32>
    %n = arith.subi %zeros, %x : tensor<128xi32>
    %y = arith.select %c, %n, %x : tensor<128xi1>, tensor<128xi32>
    ```
    A reduction in such steps combines neighbours, then pairs of neighbours. A scan combines each element with
    the one that is 1, 2, 4, ... places before it.
  }];
  let dependentDialects = ["::mlir::scf::SCFDialect", "::mlir::arith::ArithDialect", "::mlir::ub::UBDialect"];
}

def TTDecomposeScaledDots : Pass<"tt-decompose-scaled-dots", "::mlir::ModuleOp"> {
  let summary = "Turns tt.dot_scaled into conversions, products with the scales, and tt.dot";
  let description = [{
    The operands are converted, multiplied by their scales in fp32, and given to the dot in the smallest type that holds all of
    these products: bfloat16 for numbers of up to 8 bits that have exponents for scales, float16 where neither side has scales,
    fp32 for everything else. No digit is lost before the dot; only numbers beyond the range of a float are. A scale whose bits are 0 is 0. The
    scale 255 makes NaNs of its block, unless the operation has `fastMath`.

    ```mlir
    %d = tt.dot_scaled %a scale %s, %b, %c lhs = e5m2 rhs = bf16 {fastMath = true}
        : tensor<64x64xf8E5M2>, tensor<64x2xi8> * tensor<64x64xbf16> -> tensor<64x64xf32>
    ```
    becomes, with %a in f32
    ```mlir
    %0 = arith.extui %s : tensor<64x2xi8> to tensor<64x2xi32>
    %1 = arith.shli %0, %c23 : tensor<64x2xi32>
    %2 = arith.bitcast %1 : tensor<64x2xi32> to tensor<64x2xf32>
    %3 = tt.expand_dims %2 {axis = 2 : i32} : tensor<64x2xf32> -> tensor<64x2x1xf32>
    %4 = tt.broadcast %3 : tensor<64x2x1xf32> -> tensor<64x2x32xf32>
    %5 = tt.reshape %4 : tensor<64x2x32xf32> -> tensor<64x64xf32>
    %6 = arith.mulf %a, %5 : tensor<64x64xf32>
    %7 = arith.truncf %6 : tensor<64x64xf32> to tensor<64x64xbf16>
    %d = tt.dot %7, %b, %c : tensor<64x64xbf16> * tensor<64x64xbf16> -> tensor<64x64xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def TTEmulateFloats : Pass<"tt-emulate-floats", "::mlir::ModuleOp"> {
  let summary = "Replaces floats of 8 bits by their codes, and conversions toward zero by integer arithmetic";
  let description = [{
    Metal has no float of 8 bits. Every value of such a type becomes an i8 with its code: loads, stores, constants and all that moves
    numbers keep their form. Conversions become arithmetic on the bits, without tables and branches. They round once. To the nearest, numbers that
    are too large become the largest of the type, infinity too, as in stock Triton; toward zero, infinity stays infinity where the
    type has one. Dots multiply halves, which hold every such number. Other arithmetic is done in float and rounded, which gives the correctly rounded
    result. `f8E4M3B11FNUZ` stands for Triton's fp8e4b15, whose bias is 15 and which has neither infinity nor NaN.

    Metal rounds to the nearest number. A conversion to a half or a float toward zero goes one number back if it has gone too far.

    ```mlir
    %0 = tt.fp_to_fp %x : tensor<64xf8E5M2> -> tensor<64xf16>
    ```
    becomes
    ```mlir
    %1 = arith.extui %x : tensor<64xi8> to tensor<64xi16>
    %2 = arith.shli %1, %c8 : tensor<64xi16>
    %0 = arith.bitcast %2 : tensor<64xi16> to tensor<64xf16>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def TTExpandConstants : Pass<"tt-expand-constants", "::mlir::ModuleOp"> {
  let summary = "Computes constants whose elements differ from the elements' places";
  let description = [{
    Integers in equal steps are a multiple of the place. For others each bit of the place chooses between two halves, where
    they differ.

    ```mlir
    %c = arith.constant dense<[0, 5, 10, 15]> : tensor<4xi32>
    ```
    becomes
    ```mlir
    %place = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
    %five = arith.constant dense<5> : tensor<4xi32>
    %c = arith.muli %place, %five : tensor<4xi32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def TTLowerMessages : Pass<"tt-lower-messages", "::mlir::ModuleOp"> {
  let summary = "Turns prints and assertions into records in a buffer that the launcher reads";
  let description = [{
    A kernel with `tt.print` or `tt.assert` gets arguments behind its own: a buffer for prints and one for failed assertions,
    what their words hold before a launch, and how many words prints may take (`dialect/tt/Messages.h` has the places). The
    arguments' attribute `tt.message_role` says which is which. The module's attribute `tt.messages` lists the sites: text,
    types and shapes of operands, and location.

    A print reserves words with an atomic counter, and stores the number of its site, the program id and the bits of its operands. The counter
    only grows, so a program's records lie in the order of its prints. Once the buffer is full, prints are only counted.

    An assertion on a tile is reduced to the first element that fails. The first failing assertion of a program writes
    the site, the program id and the element, unless a program that comes before it in the grid has failed already; so the failure with the least
    program is always among the records. The program goes on.

    ```mlir
    tt.assert %ok, "out of range" : tensor<64xi1>
    ```
    becomes
    ```mlir
    %failed = arith.cmpi eq, %ok, %false : tensor<64xi1>
    %indices = arith.select %failed, %range, %c64 : tensor<64xi1>, tensor<64xi32>
    %element = "tt.reduce"(%indices) <{axis = 0 : i32}> ({ /* minimum */ }) : (tensor<64xi32>) -> i32
    %fails = arith.cmpi ult, %element, %c64 : i32
    scf.if %fails {
      %before = tt.atomic_rmw umax, relaxed, gpu, %failed_program, %rank : (!tt.ptr<i32>, i32) -> i32
      %first = arith.cmpi ult, %before, %rank : i32
      scf.if %first {
        // reserves a record and stores it
      }
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def DefineArithmetic : Pass<"define-arithmetic", "::mlir::ModuleOp"> {
  let summary = "Gives operations on integers the results that they have at run time for every operand";
  let description = [{
    Shifts by the width or more, divisions by zero or of the least number by -1, and floats too large for their
    integer type are undefined in MLIR and in C++. Here they have a result, which is the same for numbers that are
    known while compiling and for those that are not: amounts count modulo the width, a division by zero is one by 1,
    the least number by -1 is itself, and a float becomes the nearest number of the type, NaN becomes 0. Amounts that
    are known at run time alone are cut to the width, unless their range proves that they are below it. Truth values
    are divided, shifted and compared by logic. A loop whose constant bounds are further apart than the largest signed
    number, which MLIR takes for empty, counts its steps.

    ```mlir
    %0 = arith.shli %x, %c33 : i32
    %1 = arith.shrui %x, %n : i32
    %2 = arith.divsi %x, %c0 : i32
    ```
    becomes
    ```mlir
    %0 = arith.shli %x, %c1 : i32
    %m = arith.andi %n, %c31 : i32
    %1 = arith.shrui %x, %m : i32
    %2 = arith.divsi %x, %c1 : i32
    ```
  }];
  let options = [Option<"constantsOnly", "constants-only", "bool", "false",
                        "Leaves amounts that are known at run time alone as they are">];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def TTWidenCombine : Pass<"tt-widen-combine", "::mlir::ModuleOp"> {
  let summary = "Reduces and scans bfloats as floats, and rounds once at the end";
  let description = [{
    The order in which a reduction or a scan combines elements is open, so no result is the only one that is right. One
    that is rounded once is the closest, and costs less: most chips have no arithmetic on bfloats, and round a float
    after each step. Regions that only choose among their operands are exact as they are.

    ```mlir
    %s = "tt.scan"(%x) <{axis = 0 : i32, reverse = false}> ({
    ^bb0(%a: bf16, %b: bf16):
      %c = arith.addf %a, %b : bf16
      tt.scan.return %c : bf16
    }) : (tensor<128xbf16>) -> tensor<128xbf16>
    ```
    becomes
    ```mlir
    %w = arith.extf %x : tensor<128xbf16> to tensor<128xf32>
    %0 = "tt.scan"(%w) <{axis = 0 : i32, reverse = false}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.scan.return %c : f32
    }) : (tensor<128xf32>) -> tensor<128xf32>
    %s = arith.truncf %0 : tensor<128xf32> to tensor<128xbf16>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def TTLegalizeAtomics : Pass<"tt-legalize-atomics", "::mlir::ModuleOp"> {
  let summary = "Atomic loads, stores and polls become updates";
  let description = [{
    A store exchanges and ignores what it finds. A load updates memory with the bits that are there (`or` with zero): this finds the newest
    value, which a plain atomic load of another threadgroup's update need not. A poll with a timeout is one load and a
    comparison: Metal has no clock, and Triton promises one look. `tt-check-progress` has refused polls without one.

    ```mlir
    %v = tt.atomic_load acquire, gpu, %p : (!tt.ptr<i32>) -> i32
    ```
    becomes
    ```mlir
    %v = tt.atomic_rmw or, acquire, gpu, %p, %c0 : (!tt.ptr<i32>, i32) -> i32
    ```
  }];
  let dependentDialects = ["::triton_metal::tt::TTDialect", "::mlir::arith::ArithDialect"];
}

def TTCheckProgress : Pass<"tt-check-progress", "::mlir::ModuleOp"> {
  let summary = "Refuses loops that end only when another program changes memory";
  let description = [{
    Nothing promises that two programs of a launch run at the same time, or that one goes on while another waits: a lock
    between programs may hang the GPU. A `scf.while` is refused if its condition is made of an access that finds something
    else only after another program wrote there: a compare-and-exchange, an exchange or a load whose operands are the same
    in each step (for a load: of memory that the loop does not write). Sums that grow, updates whose operands change, and
    conditions of which one part ends by itself (`and`) pass.

    A lock passes, too: a compare-and-exchange or an exchange that ends the loop when it finds a number, which the same
    program puts there again behind the loop. Programs that run one after the other always find it free. The function gets the attribute
    `tt.serial`, with the place, and `msl-legalize-atomics` makes one threadgroup work all programs.

    This is refused:
    ```mlir
    scf.while : () -> () {
      %old = tt.atomic_cas acq_rel, gpu, %lock, %c0, %c1 : (!tt.ptr<i32>, i32, i32) -> i32
      %taken = arith.cmpi eq, %old, %c1 : i32
      scf.condition(%taken)
    } do {
      scf.yield
    }
    ```
  }];
}

def TTFuseMultiplyAdd : Pass<"tt-fuse-multiply-add", "::mlir::ModuleOp"> {
  let summary = "Makes math.fma of multiplications whose product is only added or subtracted";
  let description = [{
    What the option `enable_fp_fusion` allows is done here, and not by a device's compiler: the text says `fma`, and every device
    gives the same result.

    ```mlir
    %0 = arith.mulf %a, %b : tensor<64xf32>
    %1 = arith.subf %c, %0 : tensor<64xf32>
    ```
    becomes
    ```mlir
    %0 = arith.negf %a : tensor<64xf32>
    %1 = math.fma %0, %b, %c : tensor<64xf32>
    ```
    Where both operands of a sum are products, the first one is fused. Only float32 and float16 are fused: bfloat16 has no fma that
    rounds once in Metal, and that of float64 costs more than the two operations. Sums of reductions are marked `contract`, and
    `msl-fuse-reductions` fuses them with what they add.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def TTApproximate : Pass<"tt-approximate", "::mlir::ModuleOp"> {
  let summary = "Marks the functions and quotients of which approximate forms may be used";
  let description = [{
    Triton's ordinary functions and `/` promise bounds (docs/arithmetic.md), and not the nearest number. They get
    `fastmath<afn>`. `tt.precise_divf`, `tt.precise_sqrt` and the functions of the library are other operations, and float64 keeps its
    own. With `precise_math` this pass does not run. What later passes make of their own stays precise.

    ```mlir
    %0 = math.exp %x : tensor<64xf32>
    ```
    becomes
    ```mlir
    %0 = math.exp %x fastmath<afn> : tensor<64xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def TTReciprocals : Pass<"tt-reciprocals", "::mlir::ModuleOp"> {
  let summary = "Multiplies by the reciprocal of a divisor that many elements share";
  let description = [{
    ```mlir
    %1 = tt.broadcast %s : tensor<8x1xf32> -> tensor<8x64xf32>
    %2 = arith.divf %x, %1 fastmath<afn> : tensor<8x64xf32>
    ```
    becomes
    ```mlir
    %r = arith.divf %ones, %s : tensor<8x1xf32>
    %1 = tt.broadcast %r : tensor<8x1xf32> -> tensor<8x64xf32>
    %2 = arith.mulf %x, %1 : tensor<8x64xf32>
    ```
    float16 and bfloat16 are multiplied as float32, and rounded once. A divisor that is a constant power of two becomes its
    reciprocal, which is exact.

    A reciprocal of more than 2^126 is subnormal. Where the divisor may be as large, a quarter of `%x` is divided by a quarter of
    `%s`. Where it cannot, quotients that share no divisor are marked `arcp`: they need no such scale in the text either.

    `c / (1 + exp(x))` with a constant c of at most 1, a logistic function, becomes `n / (1 + exp(-|x|))`, where n is c, or c times
    that power if x is positive: no divisor is above 2.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def TTAccumulateDots : Pass<"tt-accumulate-dots", "::mlir::ModuleOp"> {
  let summary = "Starts a product from the tile that it is added to";
  let description = [{
    `acc += tl.dot(a, b)` is `acc = tl.dot(a, b, acc)`, as in stock Triton: a product of its own would need as many registers as the
    accumulator, and an addition each.

    ```mlir
    %0 = tt.dot %a, %b, %zero : tensor<64x32xf16> * tensor<32x64xf16> -> tensor<64x64xf32>
    %1 = arith.addf %acc, %0 : tensor<64x64xf32>
    ```
    becomes
    ```mlir
    %1 = tt.dot %a, %b, %acc : tensor<64x32xf16> * tensor<32x64xf16> -> tensor<64x64xf32>
    ```
    The product has no other reader, starts from zero, and stands in the block of the sum: one in front of a loop is not computed in it.
  }];
  let dependentDialects = ["::triton_metal::tt::TTDialect"];
}

def TTReorderBroadcast : Pass<"tt-reorder-broadcast", "::mlir::ModuleOp"> {
  let summary = "Does arithmetic before a value is repeated over a tile, and not after";
  let description = [{
    ```mlir
    %0 = tt.splat %a : i32 -> tensor<64xi32>
    %1 = tt.splat %b : i32 -> tensor<64xi32>
    %2 = arith.addi %0, %1 : tensor<64xi32>
    ```
    becomes
    ```mlir
    %0 = arith.addi %a, %b : i32
    %2 = tt.splat %0 : i32 -> tensor<64xi32>
    ```
    and the same for `tt.broadcast` of tiles of one shape.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def TTNarrowShapes : Pass<"tt-narrow-shapes", "::mlir::ModuleOp"> {
  let summary = "Shortens numbers before their tile takes another shape, and not after";
  let description = [{
    ```mlir
    %0 = tt.trans %a {order = array<i32: 0, 2, 1>} : tensor<64x2x32xf32> -> tensor<64x32x2xf32>
    %1, %2 = tt.split %0 : tensor<64x32x2xf32> -> tensor<64x32xf32>
    %3 = arith.truncf %1 : tensor<64x32xf32> to tensor<64x32xf16>
    %4 = arith.truncf %2 : tensor<64x32xf32> to tensor<64x32xf16>
    ```
    becomes
    ```mlir
    %0 = arith.truncf %a : tensor<64x2x32xf32> to tensor<64x2x32xf16>
    %1 = tt.trans %0 {order = array<i32: 0, 2, 1>} : tensor<64x2x32xf16> -> tensor<64x32x2xf16>
    %3, %4 = tt.split %1 : tensor<64x32x2xf16> -> tensor<64x32xf16>
    ```
    Numbers that change threads for another shape take half of the threadgroup memory then, and half of the registers. All users of a shape must
    shorten it alike.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def TTSplitPointers : Pass<"tt-split-pointers", "::mlir::ModuleOp"> {
  let summary = "Makes every tile of pointers a scalar pointer and a tile of offsets";
  let description = [{
    Address arithmetic on tiles of 64-bit pointers becomes arithmetic on one scalar pointer, and a tile of integer
    offsets. What is the same for the whole tile goes to the scalar, so that in a loop that moves its pointers by the
    same amount everywhere the offsets do not change, and leave the loop.

    ```mlir
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%p = %init) -> (tensor<64x!tt.ptr<f32>>) : i32 {
      %x = tt.load %p : tensor<64x!tt.ptr<f32>>
      %next = tt.addptr %p, %splat_of_step : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
      scf.yield %next : tensor<64x!tt.ptr<f32>>
    }
    ```
    becomes
    ```mlir
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%base = %x) -> (!tt.ptr<f32>) : i32 {
      %s = tt.splat %base : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
      %p = tt.addptr %s, %offsets : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
      %x = tt.load %p : tensor<64x!tt.ptr<f32>>
      %next = tt.addptr %base, %step : !tt.ptr<f32>, i32
      scf.yield %next : !tt.ptr<f32>
    }
    ```
    Tiles whose pointers have no common base (loaded addresses, a choice between two arrays element by element) stay
    as they are. Sums of offsets are made in 64 bits, unless the ranges of the operands prove that 32 suffice. A sum of 32 bits by
    which a loop moves several pointers stays a tile: one number in each step, in place of several pointers.
  }];
  let dependentDialects = ["::mlir::scf::SCFDialect", "::mlir::arith::ArithDialect", "::mlir::ub::UBDialect"];
}

def TTNarrowIndices : Pass<"tt-narrow-indices", "::mlir::ModuleOp"> {
  let summary = "Does 64-bit integer arithmetic in 32 bits where its ranges fit";
  let description = [{
    A GPU's integers are 32 bits wide. Integer range analysis starts from what is known (a program id is at most
    2^31 - 1, `tt.make_range` is between its ends) and shows which 64-bit values fit in 32. An operation is done in 32
    bits where its operands' and result's ranges prove that the result's low half depends on theirs alone, and how it
    is extended: each kind of operation has a rule of its own, and signed operations on numbers from 2^31 to 2^32 - 1
    become unsigned ones.
    A comparison that the ranges decide becomes a constant: places of a block that are all below a length that is a
    constant need no mask.

    ```mlir
    %0 = arith.extsi %range : tensor<64xi32> to tensor<64xi64>
    %1 = arith.muli %0, %c4 : tensor<64xi64>
    %p = tt.addptr %base, %1 : tensor<64x!tt.ptr<f32>>, tensor<64xi64>
    ```
    becomes
    ```mlir
    %1 = arith.muli %range, %c4 : tensor<64xi32>
    %p = tt.addptr %base, %1 : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def TTChooseThreads : Pass<"tt-choose-threads", "::mlir::ModuleOp"> {
  let summary = "Chooses the SIMD-groups and stages that a launch does not name";
  let description = [{
    A model of a core (`transforms/ThreadChoice.h`) says for each number of SIMD-groups, and for loops with one buffer or two,
    what a program costs: instructions, what waits for memory and at barriers, and how many threads a core holds with so many
    registers and so much threadgroup memory. The cheapest is taken. What the options name is kept. The module says what was
    taken, and where something was chosen also why.

    ```mlir
    module {
    ```
    becomes
    ```mlir
    module attributes {ttm.num_warps = 4 : i32, ttm.num_stages = 1 : i32, ttm.choice = "4 SIMD-groups, 1 stages: ..."} {
    ```
  }];
  let options = [Option<"numWarps", "num-warps", "int", "0", "SIMD-groups that the launch names; 0 if it names none">,
                 Option<"numStages", "num-stages", "int", "0", "stages that the launch names; 0 if it names none">];
  let dependentDialects = ["::triton_metal::ttm::TTMDialect", "::triton_metal::msl::MSLDialect"];
}

def TTSliceTiles : Pass<"tt-slice-tiles", "::mlir::ModuleOp"> {
  let summary = "Works on the rows of tiles in slices, one after another, where a thread would need more registers than it can have";
  let description = [{
    Programs for other GPUs name tiles and SIMD-groups for threads with twice the registers. If the model of `tt-choose-threads`
    expects a thread to lack many, the operations on tiles of the same rows become a loop over slices of these rows. What the
    slices share, the keys of attention, say, is loaded for each slice again.

    Rows can be sliced if no operation combines or moves elements along them, if nothing else happens between the operations on them
    but what may be done twice, and if no slice touches what another one writes. Slices write to other arrays than they read from,
    each once; or the sliced dimension fills blocks of its own length in an array, wherever it is accessed, as rows of constant length do, so
    that a slice has the same part of each; or all accesses are to blocks of one tensor at the same offset along it (`tt.places`). What each row has once is computed or loaded for each of its uses, so that it does not
    tie rows to columns. The dimension and the number of slices are those
    with which a thread needs the fewest registers by the model, but no more slices than needed; slices have 16 rows or more. The module says how many slices there
    are.

    Products along K add up, so that K can be sliced where nothing else combines what is along it: each slice adds to the sum of those before it, in fp32 or
    integers as whole products do, and loads nothing again. Groups of columns that share a scale run along K, too: a slice has its share of them. This comes first where the operands of a product do not fit in threadgroup memory, or a thread
    lacks registers. A loop that does nothing but add up takes one slice in each step, and has as many steps more; otherwise the slices of a step are a loop of their own.
    Such a loop is also sliced where nothing is lacking, if operands leave a core fewer threads than it could hold: as many slices as are cheaper by the model, with the
    buffers that the whole loop has room for. In

    ```mlir
    %sum = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %d = tt.dot %a, %b, %acc : tensor<128x64xf16> * tensor<64x128xf16> -> tensor<128x128xf32>
    ```
    the index counts slices then, and its bits are the step and the slice:
    ```mlir
    %sum = scf.for %i = %c0 to %slices step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %whole = arith.shrui %i, %c1 : i32
      %slice = arith.andi %i, %c1 : i32
      %k = arith.muli %whole, %c64 : i32
      %d = tt.dot %a, %b, %acc : tensor<128x32xf16> * tensor<32x128xf16> -> tensor<128x128xf32>
    ```

    Where the SIMD-groups were chosen, the choice is made again: each number of them costs what it does in the slices that it needs, and the cheapest is taken.

    ```mlir
    %rows = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
    %x = tt.load %pointers : tensor<128x64x!tt.ptr<f32>>
    ```
    becomes
    ```mlir
    scf.for %slice = %c0 to %c4 step %c1 : i32 {
      %range = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
      %start = arith.muli %slice, %c32 : i32
      %starts = tt.splat %start : i32 -> tensor<32xi32>
      %rows = arith.addi %range, %starts : tensor<32xi32>
      %x = tt.load %pointers : tensor<32x64x!tt.ptr<f32>>
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect", "::triton_metal::ttm::TTMDialect",
                           "::triton_metal::msl::MSLDialect"];
}

#endif

// Every pass of the compiler: what it does, and a piece of IR before and after.

#ifndef TRITON_METAL_TRANSFORMS_PASSES_TD
#define TRITON_METAL_TRANSFORMS_PASSES_TD

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
    the strides of such an argument are multiples of 16 bytes, and that the last stride is 1.

    What all elements of a block share goes to the scalar base. A dimension's mask compares the place in the block with
    two scalars, from which a later pass sees whether all elements are inside.

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
    %v = tt.load %p, %mask, %zeros : tensor<64x!tt.ptr<f32>>
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
    as they are. Sums of offsets are made in 64 bits, unless the ranges of the operands prove that 32 suffice.
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

//===----------------------------------------------------------------------===//
// tt to ttm: layouts
//===----------------------------------------------------------------------===//

def ConvertTTToTTM : Pass<"convert-tt-to-ttm", "::mlir::ModuleOp"> {
  let summary = "Gives every tensor a layout";
  let description = [{
    Each tensor gets a blocked layout that depends on its shape alone: one element a thread, the last dimension
    fastest. Where an operation's result follows from its operand's layout, it is converted to that layout, so that
    the module is right from here on and later passes only have to make it fast.

    A module without tensors gets one SIMD-group: all threads of a program would do the same.

    ```mlir
    %0 = tt.expand_dims %r {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    ```
    becomes
    ```mlir
    %0 = tt.expand_dims %r {axis = 1 : i32} : tensor<64xi32, #a> -> tensor<64x1xi32, #b>
    %1 = ttm.convert_layout %0 : tensor<64x1xi32, #b> -> tensor<64x1xi32, #c>
    ```
  }];
  let options = [Option<"numWarps", "num-warps", "int", "4", "SIMD-groups of the threadgroup">];
  let dependentDialects = ["::triton_metal::ttm::TTMDialect"];
}

def TTMCoalesce : Pass<"ttm-coalesce", "::mlir::ModuleOp"> {
  let summary = "Gives loads, stores and atomics the layout that suits memory";
  let description = [{
    Axis information says along which dimension the pointers of an access are consecutive, and how far they are
    aligned. A thread takes up to 16 bytes of neighbours, the lanes of a SIMD-group follow each other along the same
    dimension. Accesses of one shape and direction agree on the elements a thread takes, so that what they read can be
    combined as it is. Operands and results are converted to and from that layout.

    ```mlir
    %0 = tt.load %p : tensor<1024x!tt.ptr<f32>, #a>
    ```
    becomes
    ```mlir
    %1 = ttm.convert_layout %p : tensor<1024x!tt.ptr<f32>, #a> -> tensor<1024x!tt.ptr<f32>, #b>
    %2 = tt.load %1 : tensor<1024x!tt.ptr<f32>, #b>
    %3 = ttm.convert_layout %2 : tensor<1024xf32, #b> -> tensor<1024xf32, #a>
    ```
  }];
  let dependentDialects = ["::triton_metal::ttm::TTMDialect"];
}

def TTMAssignDotLayouts : Pass<"ttm-assign-dot-layouts", "::mlir::ModuleOp"> {
  let summary = "Gives the accumulators of dots the layout of simdgroup matrices";
  let description = [{
    The SIMD-groups tile the accumulator, as square as they can. Where the result of one dot becomes operand A of
    another, all SIMD-groups tile the rows, because the result then already is where that operand has to be; where it
    becomes operand B, they tile the columns. In a batch, they take whole products first, as many as threadgroup memory
    holds slices of the operands of, and tile each product with what is left.

    ```mlir
    %d = tt.dot %a, %b, %c : tensor<64x32xf16, #a> * tensor<32x64xf16, #b> -> tensor<64x64xf32, #c>
    ```
    becomes
    ```mlir
    %0 = ttm.convert_layout %c : tensor<64x64xf32, #c> -> tensor<64x64xf32, #mma>
    %1 = tt.dot %a, %b, %0 : tensor<64x32xf16, #a> * tensor<32x64xf16, #b> -> tensor<64x64xf32, #mma>
    %d = ttm.convert_layout %1 : tensor<64x64xf32, #mma> -> tensor<64x64xf32, #c>
    ```
  }];
  let dependentDialects = ["::triton_metal::ttm::TTMDialect", "::triton_metal::msl::MSLDialect"];
}

def TTMRemoveLayoutConversions : Pass<"ttm-remove-layout-conversions", "::mlir::ModuleOp"> {
  let summary = "Chooses layouts again so that little has to be converted";
  let description = [{
    The layouts of memory operations and of dots are kept. From their results, layouts are carried forward through
    everything that is computed of them, loops and branches included; where two meet, that of a dot wins over that of
    a reduction, and this over that of a load. Whatever is computed of ranges, scalars and constants alone (pointers,
    masks) is computed again in each layout that is asked for. Stores take their values in the layout in which they
    are, and loads read in the layout in which they are needed, unless memory would be accessed so much worse that a
    conversion is cheaper. What then still differs is converted, right where the value is defined.

    ```mlir
    %1 = ttm.convert_layout %offsets : tensor<1024xi32, #a> -> tensor<1024xi32, #b>
    %2 = tt.addptr %p, %1 : tensor<1024x!tt.ptr<f32>, #b>, tensor<1024xi32, #b>
    ```
    becomes, with the make_range and addi that make %offsets now in layout #b,
    ```mlir
    %2 = tt.addptr %p, %offsets : tensor<1024x!tt.ptr<f32>, #b>, tensor<1024xi32, #b>
    ```
  }];
  let dependentDialects = ["::triton_metal::ttm::TTMDialect"];
}

//===----------------------------------------------------------------------===//
// ttm to ttm: dots and staging
//===----------------------------------------------------------------------===//

def TTMExpandDot : Pass<"ttm-expand-dot", "::mlir::ModuleOp"> {
  let summary = "Turns dots that simdgroup matrices cannot do into loops of multiply-adds";
  let description = [{
    These are dots on a target without simdgroup matrices, dots of float64, blocks smaller than the target's instruction and
    sums of integers that fp32 does not hold. The operands are staged in threadgroup memory with K first, in parts where they do not fit; each step of
    the loop reads one row of both.

    ```mlir
    %d = tt.dot %a, %b, %c : tensor<16x4xf32, #a> * tensor<4x16xf32, #b> -> tensor<16x16xf32, #c>
    ```
    becomes
    ```mlir
    ttm.store_tile %a_transposed, %a_tile : tensor<4x16xf32, #at>, !ttm.tile<4x16xf32, row_pad = 4>
    ttm.store_tile %b, %b_tile : tensor<4x16xf32, #b>, !ttm.tile<4x16xf32, row_pad = 4>
    %d = scf.for %k = %c0 to %c4 step %c1 iter_args(%acc = %c) -> (tensor<16x16xf32, #c>) : i32 {
      %a_k = ttm.load_tile %a_tile row %k : !ttm.tile<4x16xf32, row_pad = 4> -> tensor<16xf32, #rows>
      %b_k = ttm.load_tile %b_tile row %k : !ttm.tile<4x16xf32, row_pad = 4> -> tensor<16xf32, #columns>
      // ... both are broadcast to 16x16
      %next = math.fma %a_k_all, %b_k_all, %acc : tensor<16x16xf32, #c>
      scf.yield %next : tensor<16x16xf32, #c>
    }
    ```
  }];
  let dependentDialects = ["::triton_metal::ttm::TTMDialect", "::triton_metal::msl::MSLDialect", "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect", "::mlir::scf::SCFDialect"];
}

def TTMLowerDot : Pass<"ttm-lower-dot", "::mlir::ModuleOp"> {
  let summary = "Turns dots into products of simdgroup matrices on tiles in threadgroup memory";
  let description = [{
    Operands are staged in threadgroup memory, each in the direction in which its threads hold neighbours, unless they
    are where a product takes them from registers. What does not fit is staged in slices of K, and a batch in parts before
    that. Operands that do not change in a loop are staged before it. int8 is staged as float16 and its exact sums go to
    int32; sums of float16 accumulators are float32 within the dot.

    ```mlir
    %d = tt.dot %a, %b, %c : tensor<64x32xf16, #a> * tensor<32x64xf16, #b> -> tensor<64x64xf32, #mma>
    ```
    becomes
    ```mlir
    %0 = ttm.alloc_tile : !ttm.tile<64x32xf16, row_pad = 8>
    %1 = ttm.alloc_tile : !ttm.tile<32x64xf16, row_pad = 8>
    ttm.store_tile %a, %0 : tensor<64x32xf16, #a>, !ttm.tile<64x32xf16, row_pad = 8>
    ttm.store_tile %b, %1 : tensor<32x64xf16, #b>, !ttm.tile<32x64xf16, row_pad = 8>
    %d = ttm.mma <8x8x8> %0, %1, %c : !ttm.tile<64x32xf16, row_pad = 8>, !ttm.tile<32x64xf16, row_pad = 8>, tensor<64x64xf32, #mma>
    ```
  }];
  let dependentDialects = ["::triton_metal::ttm::TTMDialect", "::triton_metal::msl::MSLDialect", "::mlir::arith::ArithDialect"];
}

def TTMPipeline : Pass<"ttm-pipeline", "::mlir::ModuleOp"> {
  let summary = "Double-buffers tiles that a loop loads from device memory";
  let description = [{
    With two stages or more, a tile that every step of a loop stages gets two slots. The first step's data are stored
    before the loop; each step loads what the next one needs to registers, multiplies from its own slot, and then
    stores to the other. One barrier a step is left. A loop whose tiles would not fit twice stays as it is.

    More than two stages are two: there is no asynchronous copy, so what a deeper pipeline loads ahead would wait in
    registers, and 32 KB of threadgroup memory hold few tiles three times. `ttm.pipeline_stages` on the module says
    what was made.

    ```mlir
    scf.for %i = %lb to %ub step %s {
      %x = tt.load %p
      ttm.store_tile %x, %t
      %d = ttm.mma <8x8x8> %t, ...
    }
    ```
    becomes
    ```mlir
    ttm.store_tile %first, %t[%c0]
    scf.for %i = %lb to %ub step %s iter_args(%slot = %c0) {
      %next = scf.if %more { tt.load ... }
      %d = ttm.mma <8x8x8> %t[%slot], ...
      %other = arith.xori %slot, %c1
      scf.if %more { ttm.store_tile %next, %t[%other] }
      scf.yield %other
    }
    ```
  }];
  let options = [Option<"numStages", "num-stages", "int", "2", "stages where a loop does not say how many">,
                 Option<"obeyLoops", "obey-loops", "bool", "true", "whether loops that say how many get them">];
  let dependentDialects = ["::triton_metal::ttm::TTMDialect", "::triton_metal::msl::MSLDialect", "::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect", "::mlir::ub::UBDialect"];
}

//===----------------------------------------------------------------------===//
// ttm to ttm: everything that is to be chosen before the way to msl
//===----------------------------------------------------------------------===//

def TTMCheckSupport : Pass<"ttm-check-support", "::mlir::ModuleOp"> {
  let summary = "Refuses what Metal does not have, or what there is no lowering for yet";
  let description = [{
    Types, operations, and forms of operations: with the place in the source and what to do instead. What passes can be
    lowered, and changes nothing here.

    ```mlir
    tt.print "x" {hex = false, isSigned = array<i32: 1>} : %x : tensor<64xi32, #l>
    ```
    is refused: "a Metal kernel cannot print; store the values instead".
  }];
}

def TTMLowerPointers : Pass<"ttm-lower-pointers", "::mlir::ModuleOp"> {
  let summary = "Makes every access one to a base pointer at offsets; leaves no tile of pointers";
  let description = [{
    An access through a tile of pointers gets its uniform base and a tile of offsets as operands. What is the same for
    the whole tile moves the base. Tiles without a common base, and those that loops and branches carry, become tiles of
    addresses in bytes.

    `width` is how many consecutive registers of a thread are consecutive, aligned elements in memory, at most 16 bytes
    of them; `mask_width` is how many of these have one and the same mask. Both may rest on sums of 32-bit numbers and
    the indices of programs that do not wrap around, such as in `(program_id * 1024 + range) // 32`. `ttm.grid_limits` of
    the module lists these sums, and a launch whose grid is too large for one of them is refused.

    ```mlir
    %p = tt.splat %x : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #a>
    %q = tt.addptr %p, %i : tensor<1024x!tt.ptr<f32>, #a>, tensor<1024xi32, #a>
    %v = tt.load %q, %m : tensor<1024x!tt.ptr<f32>, #a>
    ```
    becomes
    ```mlir
    %v = ttm.load %x[%i] mask %m {width = 4 : i32} : tensor<1024xi32, #a>, !tt.ptr<f32> -> tensor<1024xf32, #a>
    ```
  }];
  let dependentDialects = ["::triton_metal::ttm::TTMDialect", "::mlir::arith::ArithDialect", "::mlir::ub::UBDialect"];
}

def TTMUniformMasks : Pass<"ttm-uniform-masks", "::mlir::ModuleOp"> {
  let summary = "Gives masked accesses one test for the whole tile";
  let description = [{
    Masks that compare a range against a bound are all true when the range's last element is inside. The test is exact:
    it never holds where an element's mask is false. Where a kernel is compiled for pointers that may be aligned
    (`tt.tested_divisibility`), wide accesses ask that too.

    ```mlir
    %m = arith.cmpi slt, %range, %n_tile : tensor<1024xi32, #a>
    %v = ttm.load %x[%range] mask %m {width = 4 : i32} : tensor<1024xi32, #a>, !tt.ptr<f32> -> tensor<1024xf32, #a>
    ```
    becomes
    ```mlir
    %m = arith.cmpi slt, %range, %n_tile : tensor<1024xi32, #a>
    %f = arith.cmpi slt, %c1023, %n : i32
    %v = ttm.load %x[%range] mask %m full %f {width = 4 : i32} : ...
    ```
  }];
  let dependentDialects = ["::triton_metal::ttm::TTMDialect", "::mlir::arith::ArithDialect"];
}

def TTMLowerReductions : Pass<"ttm-lower-reductions", "::mlir::ModuleOp"> {
  let summary = "Turns reductions into steps: registers, lanes, and SIMD-groups through threadgroup memory";
  let description = [{
    What depends on the order of the elements is combined in their order, anything else with the registers first. It is
    the same in every run. A tile whose partial results would take more than 8 KB, or whose layout mixes the axis with
    others, is laid out anew first.

    ```mlir
    %sum = "tt.reduce"(%x) <{axis = 0 : i32}> ({ ... }) : (tensor<1024xf32, #a>) -> f32
    ```
    becomes, where a thread holds eight elements and there are four SIMD-groups,
    ```mlir
    %t = ttm.alloc_tile "partial" : !ttm.tile<4xf32>
    %0 = ttm.reduce(%x) axis 0 bits 519 { ... } : (tensor<1024xf32, #a>) -> tensor<128xf32, #b>
    %1 = ttm.reduce(%0) axis 0 bits 31 { ... } : (tensor<128xf32, #b>) -> tensor<4xf32, #c>
    ttm.store_tile %1, %t : tensor<4xf32, #c>, !ttm.tile<4xf32>
    %2 = ttm.load_tile %t : !ttm.tile<4xf32> -> tensor<4xf32, #registers>
    %3 = ttm.reduce(%2) axis 0 bits 3 { ... } : (tensor<4xf32, #registers>) -> tensor<1xf32, #d>
    %sum = tt.unsplat %3 : tensor<1xf32, #d>
    ```
  }];
  let dependentDialects = ["::triton_metal::ttm::TTMDialect", "::triton_metal::msl::MSLDialect", "::mlir::arith::ArithDialect"];
}

def TTMLowerScans : Pass<"ttm-lower-scans", "::mlir::ModuleOp"> {
  let summary = "Turns scans into steps: registers, lanes, and SIMD-groups through threadgroup memory";
  let description = [{
    The lowest bits of a coordinate along the axis are in registers, in lanes or in SIMD-groups. Neighbours in registers are
    combined in pairs, the scan goes on with the pairs, and each pair's first element is combined with what comes before
    the pair: for N registers, 2N - 2 times in all, and no element twice. What lies in lanes stays a `tt.scan`, which the
    conversion makes shuffles of. What lies in SIMD-groups is moved to lanes that hold copies, or else to registers, of all.
    `reverse` exchanges first and last.

    ```mlir
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = false}> ({ ... }) : (tensor<64xf32, #pairs>) -> tensor<64xf32, #pairs>
    ```
    becomes, where a thread holds two neighbours and the other bits are in lanes,
    ```mlir
    %0 = tt.reshape %x : tensor<64xf32, #pairs> -> tensor<32x2xf32, #split>
    %first, %second = tt.split %0 : tensor<32x2xf32, #split> -> tensor<32xf32, #lanes>
    %pair = arith.addf %first, %second : tensor<32xf32, #lanes>
    %upto = "tt.scan"(%pair) <{axis = 0 : i32, reverse = false}> ({ ... }) : (tensor<32xf32, #lanes>) -> tensor<32xf32, #lanes>
    %before = tt.gather %upto[%neighbour] {axis = 0 : i32} : (tensor<32xf32, #lanes>, tensor<32xi32, #lanes>) -> tensor<32xf32, #lanes>
    %sum = arith.addf %before, %first : tensor<32xf32, #lanes>
    %1 = arith.select %hasNeighbour, %sum, %first : tensor<32xi1, #lanes>, tensor<32xf32, #lanes>
    %2 = tt.join %1, %upto : tensor<32xf32, #lanes> -> tensor<32x2xf32, #split>
    %y = tt.reshape %2 : tensor<32x2xf32, #split> -> tensor<64xf32, #pairs>
    ```
  }];
  let dependentDialects = ["::triton_metal::ttm::TTMDialect", "::mlir::arith::ArithDialect"];
}

def TTMBroadcastAtomics : Pass<"ttm-broadcast-atomics", "::mlir::ModuleOp"> {
  let summary = "Brings an atomic's result from the thread that did it to all that hold copies";
  let description = [{
    ```mlir
    %old = ttm.atomic_rmw add, relaxed, gpu, %x[%o], %v : tensor<16xi32, #l>, !tt.ptr<i32>, tensor<16xi32, #l>
    ```
    becomes, if somebody reads the result and several threads hold the same elements,
    ```mlir
    %t = ttm.alloc_tile "broadcast" : !ttm.tile<1x16xi32>
    %own = ttm.in_first_copies #l -> (tensor<16xi32, #l>) {
      %0 = ttm.atomic_rmw add, relaxed, gpu, %x[%o], %v : tensor<16xi32, #l>, !tt.ptr<i32>, tensor<16xi32, #l>
      ttm.yield %0 : tensor<16xi32, #l>
    }
    %1 = tt.reshape %own : tensor<16xi32, #l> -> tensor<1x16xi32, #m>
    ttm.store_tile %1, %t : tensor<1x16xi32, #m>, !ttm.tile<1x16xi32>
    %2 = ttm.load_tile %t : !ttm.tile<1x16xi32> -> tensor<1x16xi32, #m>
    %old = tt.reshape %2 : tensor<1x16xi32, #m> -> tensor<16xi32, #l>
    ```
  }];
  let dependentDialects = ["::triton_metal::ttm::TTMDialect", "::triton_metal::msl::MSLDialect", "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def TTMLowerLayoutConversions : Pass<"ttm-lower-layout-conversions", "::mlir::ModuleOp"> {
  let summary = "Leaves layout conversions that rename registers; turns others into shuffles and tiles";
  let description = [{
    Data that stay within each SIMD-group are shuffled, if one shuffle for each register does. Other data go through a
    tile in threadgroup memory, whose rows of 128 bytes are padded against bank conflicts: in rounds, where the tiles of
    dots leave less room than that takes. A scalar in all elements is the same in any layout. Gathers read from such a tile,
    and histograms count in one, in rounds as well.

    ```mlir
    %1 = ttm.convert_layout %0 : tensor<512xf32, #a> -> tensor<512xf32, #b>
    ```
    becomes
    ```mlir
    %t = ttm.alloc_tile "exchange" : !ttm.tile<16x32xf32, row_pad = 4>
    %2 = tt.reshape %0 : tensor<512xf32, #a> -> tensor<16x32xf32, #c>
    ttm.store_tile %2, %t : tensor<16x32xf32, #c>, !ttm.tile<16x32xf32, row_pad = 4>
    %3 = ttm.load_tile %t : !ttm.tile<16x32xf32, row_pad = 4> -> tensor<16x32xf32, #d>
    %1 = tt.reshape %3 : tensor<16x32xf32, #d> -> tensor<512xf32, #b>
    ```
  }];
  let dependentDialects = ["::triton_metal::ttm::TTMDialect", "::triton_metal::msl::MSLDialect", "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

//===----------------------------------------------------------------------===//
// The way to msl
//===----------------------------------------------------------------------===//

def ConvertTTMToMSL : Pass<"convert-ttm-to-msl", "::mlir::ModuleOp"> {
  let summary = "Turns a tile program into what one thread does";
  let description = [{
    A tensor becomes the vector of the thread's registers, in the layout's order; scalars stay. What several threads hold
    is stored by one of them. Nothing is chosen here: pointers, reductions and layout conversions have been lowered in
    `ttm`.

    ```mlir
    %r = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32, #l>
    ```
    becomes
    ```mlir
    %t = msl.thread_index lanes [2, 4, 8, 16, 32] simdgroups [64, 128] : i32
    %s = msl.splat %t : vector<2xi32>
    %r = arith.addi %s, dense<[0, 1]> : vector<2xi32>
    ```
  }];
  let dependentDialects = ["::triton_metal::msl::MSLDialect", "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect", "::mlir::math::MathDialect"];
}

def MSLExpandThreadIndices : Pass<"msl-expand-thread-indices", "::mlir::ModuleOp"> {
  let summary = "Computes each place that follows from the thread's position once, at the kernel's top";
  let description = [{
    ```mlir
    %t = msl.thread_index lanes [2, 4, 8, 0, 0] simdgroups [16, 32] : i32
    ```
    becomes
    ```mlir
    %0 = arith.muli %simdgroup, %c16 : i32
    %1 = arith.andi %lane, %c7 : i32
    %2 = arith.muli %1, %c2 : i32
    %t = arith.addi %0, %2 : i32
    ```
  }];
  let dependentDialects = ["::triton_metal::msl::MSLDialect", "::mlir::arith::ArithDialect"];
}

def MSLLegalizeAtomics : Pass<"msl-legalize-atomics", "::mlir::ModuleOp"> {
  let summary = "Chooses how each atomic update is done, and serialises kernels that need it";
  let description = [{
    Metal has atomics of 32 bits, and on late chips unsigned extremes of 64 bits that do not give what they found. The rest
    is built so that no thread waits for another threadgroup, because Metal does not promise that it goes on:

    - `word`: numbers of 8 and 16 bits, and extremes of floats, are updated by a compare-and-exchange of the 32-bit word
      that holds them, which is tried again when another thread was faster.
    - `halves`: 64-bit sums and bitwise operations are one atomic for each half, if nobody asks what they found, and if
      all updates of this memory are of the one kind. What is in memory when all have been done is then exact.
    - `alone`: all other updates of 64 bits are a load and a store. They are right because nothing else runs: the first
      threadgroup works all programs of the grid, one after the other, and the others end at once. Inside of it the threads
      take turns, with a barrier after each. The orders of atomics are then those of the barriers. The attribute `msl.serial` of the
      kernel is the place of the first such update. A kernel that takes a lock has the attribute before.

    ```mlir
    %old = msl.atomic_rmw max %x[%c0], %v : !msl.ptr<i64, device>, i32, i64
    ```
    becomes
    ```mlir
    scf.if %is_first_threadgroup {
      scf.for %z = %c0 to %depth step %c1 : i32 {
        ...
          msl.barrier device
          %old = msl.atomic_rmw max %x[%c0], %v form alone : !msl.ptr<i64, device>, i32, i64
          msl.barrier device
    ```
  }];
  let dependentDialects = ["::triton_metal::msl::MSLDialect", "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def MSLOrderAtomics : Pass<"msl-order-atomics", "::mlir::ModuleOp"> {
  let summary = "Turns the orders of atomics into fences and barriers, where a program could tell";
  let description = [{
    An atomic of a tile program orders the accesses of the whole program, which are those of all threads of a threadgroup.
    To release, each thread fences, all wait for one another, and the threads that do the atomic fence again in front of it.
    To acquire, those fence behind it, all wait, and each fences. Metal 3.2 promises that other threadgroups see the order
    through `coherent(device)` pointers alone: arguments in whose memory programs meet become `msl.coherent`.

    Programs of a launch run the same kernel. So the order of X, which releases, and of Y, which acquires what X left, can
    be told only if the kernel has accesses P before X and Q after Y to the same memory, at least one of which writes.
    Two updates that commute and whose results nobody uses are no such pair, nor are two updates of the one element that
    all programs share: counting, histograms and accumulation stay relaxed.

    ```mlir
    msl.store %v, %x[%i] : f32, !msl.ptr<f32, device>, i32
    %old = msl.in_threads lanes 31 = 0 -> (i32) {
      %r = msl.atomic_rmw add %counter[%c0], %c1 order acq_rel : !msl.ptr<i32, device>, i32, i32
      ...
    %w = msl.load %x[%j] : !msl.ptr<f32, device>, i32 -> f32
    ```
    becomes
    ```mlir
    msl.store %v, %x[%i] : f32, !msl.ptr<f32, device>, i32
    msl.fence
    msl.barrier device
    %old = msl.in_threads lanes 31 = 0 -> (i32) {
      msl.fence
      %r = msl.atomic_rmw add %counter[%c0], %c1 : !msl.ptr<i32, device>, i32, i32
      msl.fence
      ...
    msl.barrier device
    msl.fence
    %w = msl.load %x[%j] : !msl.ptr<f32, device>, i32 -> f32
    ```
  }];
  let dependentDialects = ["::triton_metal::msl::MSLDialect"];
}

def MSLInsertBarriers : Pass<"msl-insert-barriers", "::mlir::ModuleOp"> {
  let summary = "Puts barriers between accesses to memory that must not overtake each other";
  let description = [{
    A barrier goes before an access that touches what another thread may have written, or may still read or write,
    since the last barrier. Allocations are told apart, and so are the slots of one allocation where they are `%s` and
    `%s ^ 1`. Loops are walked until nothing changes. In device memory, what is written through an argument and then
    read or written through it again (or read and then written) is ordered, unless every thread meets only itself, or the
    places of the two accesses can be told apart: they are sums of the same uniform numbers and of bounds that do not
    meet, also from step to step of a loop. Writes of one thread (`msl.in_threads`) stay in order.

    ```mlir
    msl.store %x, %m[%i] : vector<1xf32>, !msl.ptr<f32, threadgroup>, vector<1xi32>
    %y = msl.load %m[%j] : !msl.ptr<f32, threadgroup>, vector<1xi32> -> vector<1xf32>
    ```
    gets `msl.barrier` between the two.

    A barrier never goes where threads part ways: into a branch whose condition, or a loop whose trip count, is not known to
    be the same in all of them (`msl.uniform` says so of what reductions leave), or into an `msl.in_threads`. If one is needed
    in such a branch or region, it is cut in two:
    ```mlir
    msl.in_threads lanes 31 = 0 {
      msl.store %x, %m[%simdgroup] : f32, !msl.ptr<f32, threadgroup>, i32
      %y = msl.load %m[%other] : !msl.ptr<f32, threadgroup>, i32 -> f32
      msl.store %y, %out[%simdgroup] : f32, !msl.ptr<f32, device>, i32
    }
    ```
    becomes
    ```mlir
    msl.in_threads lanes 31 = 0 {
      msl.store %x, %m[%simdgroup] : f32, !msl.ptr<f32, threadgroup>, i32
    }
    msl.barrier
    msl.in_threads lanes 31 = 0 {
      %y = msl.load %m[%other] : !msl.ptr<f32, threadgroup>, i32 -> f32
      msl.store %y, %out[%simdgroup] : f32, !msl.ptr<f32, device>, i32
    }
    ```
    A loop cannot be cut, and is refused.
  }];
  let dependentDialects = ["::triton_metal::msl::MSLDialect", "::mlir::scf::SCFDialect", "::mlir::ub::UBDialect"];
}

def MSLCheckBarriers : Pass<"msl-check-barriers", "::mlir::ModuleOp"> {
  let summary = "Refuses a barrier to which not all threads of a threadgroup come";
  let description = [{
    Such a barrier hangs a GPU. Nothing makes one; this pass is the proof, for each kernel that is compiled.
  }];
}

def MSLCheckTarget : Pass<"msl-check-target", "::mlir::ModuleOp"> {
  let summary = "Refuses what the target of the module does not have";
  let description = [{
    Passes before this one choose what the target can do. An operation, a type or a number of threads that is left and that
    the target lacks is an error with its place in the source.

    ```mlir
    module attributes {msl.target = #msl.target<metal(3, 1), threads = 1024, threadgroup_bytes = 32768,
                                                registers = 128, features = bfloat>} {
      msl.kernel @release(%flag: !msl.ptr<i32, device>) threads 32 {
        msl.fence  // error: uses memory orders other than relaxed, which the target (Metal 3.1) does not have
        msl.return
      }
    }
    ```
  }];
}

def MSLCoherentLoops : Pass<"msl-coherent-loops", "::mlir::ModuleOp"> {
  let summary = "Marks arguments as coherent that one step of a loop writes and a later one may read";
  let description = [{
    A thread has been seen to miss, in the next step of a loop, what it has stored to device memory itself. Coherent
    memory has cured that. Arguments whose places in different steps are known to differ stay as they are. Targets before
    Metal 3.2 have no coherent memory.
  }];
}

def MSLVolatileAccumulation : Pass<"msl-volatile-accumulation", "::mlir::ModuleOp"> {
  let summary = "Makes the loads volatile that a loop accumulates, for targets that need it";
  let description = [{
    On one Mac a thread has accumulated wrong sums of what it loads from device memory in a loop, and right ones of what it
    loads through a volatile pointer. That costs: the loads take one element each. The target's feature
    `volatile_accumulation` asks for it.

    ```mlir
    scf.for %k = %c0 to %n step %c1 iter_args(%sum = %zero) -> (f32) : i32 {
      %v = msl.load %x[%k] : !msl.ptr<f32, device>, i32 -> f32
      %next = arith.addf %sum, %v : f32
      scf.yield %next : f32
    }
    ```
    becomes the same loop with
    ```mlir
      %v = msl.load %x[%k] {is_volatile} : !msl.ptr<f32, device>, i32 -> f32
    ```
  }];
}

def MSLMarkReadOnly : Pass<"msl-mark-read-only", "::mlir::ModuleOp"> {
  let summary = "Marks the arguments whose memory a kernel only reads";
  let description = [{
    Their pointers are `const` in the text.

    ```mlir
    msl.kernel @copy(%x: !msl.ptr<f32, device>, %y: !msl.ptr<f32, device>) threads 32
    ```
    becomes
    ```mlir
    msl.kernel @copy(%x: !msl.ptr<f32, device> {msl.readonly}, %y: !msl.ptr<f32, device>) threads 32
    ```
  }];
}

def MSLAllocateThreadgroupMemory : Pass<"msl-allocate-threadgroup-memory", "::mlir::ModuleOp"> {
  let summary = "Gives each allocation its place in threadgroup memory";
  let description = [{
    Scratch of at most a kilobyte has bytes of its own, since sharing them would cost barriers. Larger allocations
    share bytes where their lifetimes do not meet. The kernel then has `threadgroup_bytes`. More than the target has is
    refused, with the size of each allocation.

    ```mlir
    %0 = msl.alloc "a_tile", 2560 : !msl.ptr<f16, threadgroup>
    ```
    becomes
    ```mlir
    %0 = msl.alloc "a_tile", 2560 at 0 : !msl.ptr<f16, threadgroup>
    ```
  }];
  let dependentDialects = ["::triton_metal::msl::MSLDialect"];
}

//===----------------------------------------------------------------------===//
// msl to msl
//===----------------------------------------------------------------------===//

def MSLExpandSlots : Pass<"msl-expand-slots", "::mlir::ModuleOp"> {
  let summary = "Turns slots of allocations into pointer arithmetic";
  let description = [{
    The slots have told the accesses apart; from here on an allocation is one array.

    ```mlir
    %tiles = msl.alloc "a_tile", 2560 slots 2 at 0 : !msl.ptr<f16, threadgroup>
    %p = msl.slot %tiles[%s] : !msl.ptr<f16, threadgroup>
    %n = msl.next_slot %s of 2 : i32
    ```
    becomes
    ```mlir
    %tiles = msl.alloc "a_tile", 5120 at 0 : !msl.ptr<f16, threadgroup>
    %first = arith.muli %s, %c2560 : i32
    %p = msl.ptr_add %tiles, %first : !msl.ptr<f16, threadgroup>, i32
    %n = arith.xori %s, %c1 : i32
    ```
  }];
  let dependentDialects = ["::triton_metal::msl::MSLDialect", "::mlir::arith::ArithDialect"];
}

def MSLExpandInThreads : Pass<"msl-expand-in-threads", "::mlir::ModuleOp"> {
  let summary = "Turns msl.in_threads into branches on the thread's position";
  let description = [{
    The condition is computed once for the regions that it dominates, and outside of the loops right around them. In threads
    that do not run a region its results are 0.

    ```mlir
    %old = msl.in_threads lanes 31 = 0 simdgroups 2 = 2 -> (i32) {
      %r = msl.atomic_rmw add %x[%o], %v : !msl.ptr<i32, device>, i32, i32
      msl.yield %r : i32
    }
    ```
    becomes
    ```mlir
    %0 = arith.cmpi eq, %lane, %c0 : i32
    %1 = arith.andi %simdgroup, %c2 : i32
    %2 = arith.cmpi eq, %1, %c2 : i32
    %3 = arith.andi %0, %2 : i1
    %old = scf.if %3 -> (i32) {
      %r = msl.atomic_rmw add %x[%o], %v : !msl.ptr<i32, device>, i32, i32
      scf.yield %r : i32
    } else {
      scf.yield %c0 : i32
    }
    ```
  }];
  let dependentDialects = ["::triton_metal::msl::MSLDialect", "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def MSLLegalizeOperations : Pass<"msl-legalize-operations", "::mlir::ModuleOp"> {
  let summary = "Computes what the target has no function for with what it has";
  let description = [{
    A reduction over a SIMD-group becomes five shuffles where the target has no reductions.

    ```mlir
    %s = msl.simd_reduce sum %x : f32
    ```
    becomes
    ```mlir
    %y = msl.simd_shuffle_xor %x, 1 : f32
    %s1 = arith.addf %x, %y : f32
    // ... and the same for 2, 4, 8 and 16
    ```
  }];
  let dependentDialects = ["::triton_metal::msl::MSLDialect", "::mlir::arith::ArithDialect"];
}

def MSLEmulateTypes : Pass<"msl-emulate-types", "::mlir::ModuleOp"> {
  let summary = "Computes with types that the target lacks in types that it has";
  let description = [{
    Numbers of such a type travel, in registers and in memory, as integers that hold their bits. Arithmetic widens them to
    float and rounds the result to nearest, ties to even: what bfloat's own arithmetic gives.

    ```mlir
    %v = msl.load %x[%i] : !msl.ptr<bf16, device>, i32 -> bf16
    %w = arith.extf %v : bf16 to f32
    ```
    becomes, on a target without bfloat,
    ```mlir
    %v = msl.load %x[%i] : !msl.ptr<i16, device>, i32 -> i16
    %bits = arith.extui %v : i16 to i32
    %word = arith.shli %bits, %c16 : i32
    %w = arith.bitcast %word : i32 to f32
    ```
    No target has 64-bit floats. Arithmetic on them becomes functions of their bits, which the text brings along:
    ```mlir
    %s = arith.addf %a, %b : vector<4xf64>
    ```
    becomes
    ```mlir
    %s = msl.float64 "add"(%a, %b) : (vector<4xi64>, vector<4xi64>) -> vector<4xi64>
    ```
  }];
  let dependentDialects = ["::triton_metal::msl::MSLDialect", "::mlir::arith::ArithDialect"];
}

def MSLFoldExchanges : Pass<"msl-fold-exchanges", "::mlir::ModuleOp"> {
  let summary = "Makes an exclusive or of registers that only exchanges them another order of registers";
  let description = [{
    The exclusive or of a register and its partner, combined with the register once more, is the partner. Programs in Triton
    write so what has no operation of its own, because a tile cannot be indexed: `x ^ xor_sum(x)` along a dimension of two
    elements reverses it. Between lanes, folding finds the same.

    ```mlir
    %p = msl.reduce_registers (%x) bits 2 { ... arith.xori ... } : (vector<4xi32>) -> vector<2xi32>
    %b = msl.permute_registers %p {bases = array<i64: 1, 0>} : vector<2xi32> -> vector<4xi32>
    %y = arith.xori %x, %b : vector<4xi32>
    ```
    becomes
    ```mlir
    %y = msl.permute_registers %x {bases = array<i64: 1, 2>, offset = 2 : i64} : vector<4xi32> -> vector<4xi32>
    ```
    If `%x` is the bits of floats and `%y` becomes floats, the floats change places.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def MSLScalarize : Pass<"msl-scalarize", "::mlir::ModuleOp"> {
  let summary = "Makes values of one register numbers";
  let description = [{
    After it a vector is a tile: more than one register. Drops `msl.uniform`, which nothing asks for any more.

    ```mlir
    %a = arith.addf %s, %t : vector<1xf32>
    %e = vector.extract %a[0] : f32 from vector<1xf32>
    ```
    becomes
    ```mlir
    %a = arith.addf %s, %t : f32
    ```
  }];
}

def MSLSplitReductions : Pass<"msl-split-reductions", "::mlir::ModuleOp"> {
  let summary = "Makes a reduction over several ranges of register bits one for each range";
  let description = [{
    The highest range is reduced first.

    ```mlir
    %r = msl.reduce_registers (%x) bits 5 {...} : (vector<8xf32>) -> vector<2xf32>
    ```
    becomes
    ```mlir
    %h = msl.reduce_registers (%x) bits 4 {...} : (vector<8xf32>) -> vector<4xf32>
    %r = msl.reduce_registers (%h) bits 1 {...} : (vector<4xf32>) -> vector<2xf32>
    ```
  }];
}

def MSLCarryNumbers : Pass<"msl-carry-numbers", "::mlir::ModuleOp"> {
  let summary = "Makes a tile that a loop only moves by one number its first value and a carried number";
  let description = [{
    ```mlir
    scf.for %i = %lo to %hi step %c1 iter_args(%at = %o) -> (vector<8xi32>) : i32 {
      %next = arith.addi %at, %c64 : vector<8xi32>
      scf.yield %next : vector<8xi32>
    }
    ```
    becomes
    ```mlir
    scf.for %i = %lo to %hi step %c1 iter_args(%moved = %c0) -> (i32) : i32 {
      %s = msl.splat %moved : vector<8xi32>
      %at = arith.addi %o, %s : vector<8xi32>
      %next = arith.addi %moved, %c64 : i32
      scf.yield %next : i32
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def MSLFormTileLoops : Pass<"msl-form-tile-loops", "::mlir::ModuleOp"> {
  let summary = "Puts operations on tiles that share a loop over registers into one region";
  let description = [{
    Neighbours of one size share a loop, unless one needs other registers of the other's result than its own step computes,
    or touches memory that the other writes. What lies between them and needs neither goes before the loop. A tile of little
    cost stays outside of loops, and so does one that only has another order of registers: it is computed wherever it is
    used.

    ```mlir
    %v = msl.load %x[%o] : !msl.ptr<f32, device>, vector<8xi32> -> vector<8xf32>
    %w = math.exp %v : vector<8xf32>
    ```
    becomes
    ```mlir
    %w = msl.tile_loop 8 {
      %v = msl.load %x[%o] : !msl.ptr<f32, device>, vector<8xi32> -> vector<8xf32>
      %w = math.exp %v : vector<8xf32>
      msl.yield %w : vector<8xf32>
    } : vector<8xf32>
    ```
  }];
}

def MSLPlaceTiles : Pass<"msl-place-tiles", "::mlir::ModuleOp"> {
  let summary = "Gives tiles that outlive a loop over registers their variables";
  let description = [{
    Chooses how many registers a loop takes at a time, and so how wide the vectors are that a tile lives in. A tile that a
    loop carries stays in one variable; an operand that nothing reads any more gives its variable to the result; what matrix
    products take lives in simdgroup matrices. After the pass neither loops nor branches carry tiles, and each step reads
    what it needs from variables. In a kernel whose variables have more than 16 KB, tiles of one type that are never needed at
    the same time share one.

    ```mlir
    %w = msl.tile_loop 8 { ... msl.yield %e : vector<8xf32> } : vector<8xf32>
    ```
    becomes
    ```mlir
    %v = msl.var : !msl.array<2xvector<4xf32>>
    msl.tile_loop 8 step 4 { ... msl.write_tile %e, %v }
    ```
  }];
  let dependentDialects = ["::mlir::scf::SCFDialect"];
}

def MSLLowerReductions : Pass<"msl-lower-reductions", "::mlir::ModuleOp"> {
  let summary = "Turns reductions over registers into accumulators, loops and combinations of components";
  let description = [{
    A whole reduction that shares a loop accumulates chunks in it, from the neutral element on; the components are
    combined after the loop. Any other has loops of its own.

    ```mlir
    %s = msl.tile_loop 8 step 4 {
      %v = msl.load %x[%o] ...
      %r = msl.reduce_registers (%v) bits 7 {...} : (vector<8xf32>) -> f32
      msl.yield %r : f32
    } : f32
    ```
    becomes
    ```mlir
    %a = msl.var : !msl.array<1xvector<4xf32>>
    msl.set %neutral, %a
    msl.tile_loop 8 step 4 {
      %v = msl.load %x[%o] ...
      msl.accumulate %v, %a {...}
    }
    %c = msl.get %a
    %xy = msl.swizzle %c [0, 1] ...
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def MSLLowerMma : Pass<"msl-lower-mma", "::mlir::ModuleOp"> {
  let summary = "Turns matrix products into loops of fragments that are loaded and multiplied";
  let description = [{
    ```mlir
    msl.matrix_product <8x8x8> %acc, %a, %b {m = 1, n = 2, k = 1, a_stride = 8, b_stride = 16}
    ```
    becomes
    ```mlir
    msl.matrix_load %a stride 8, %fa
    msl.unroll %n = 0 to 2 { msl.matrix_load %b[%bn] stride 16, %fb[%n] }
    msl.unroll %n = 0 to 2 { msl.multiply_accumulate %acc[%n], %fa, %fb[%n] }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def MSLFormLoops : Pass<"msl-form-loops", "::mlir::ModuleOp"> {
  let summary = "Turns loops over the registers of tiles into loops of constant trip count over chunks";
  let description = [{
    Operations of the loop take Metal vectors, accesses to memory as many registers as one access may. Masked accesses
    with a uniform `full` get two loops and one branch. Of tiles from outside of the loop a step asks for chunks.
    A step takes whole vectors of a tile that it reads in another order. Where a constant that is no arithmetic progression
    differs between steps, as the choice between two halves does, that loop is written out.

    ```mlir
    msl.tile_loop 32 step 4 {
      %v = msl.load %x[%o] {width = 4 : i32} : !msl.ptr<f32, device>, vector<32xi32> -> vector<32xf32>
      msl.store %v, %y[%o] {width = 4 : i32} : vector<32xf32>, !msl.ptr<f32, device>, vector<32xi32>
    }
    ```
    becomes
    ```mlir
    msl.unroll %i = 0 to 8 {
      %o0 = msl.chunk %o[%i] strides [4] : vector<32xi32> -> i32
      %v = msl.read %x[%o0 : i32] : !msl.ptr<f32, device> -> vector<4xf32>
      msl.write %v, %y[%o0 : i32] : vector<4xf32>, !msl.ptr<f32, device>
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def MSLLowerChunks : Pass<"msl-lower-chunks", "::mlir::ModuleOp"> {
  let summary = "Computes the chunks of tiles that are asked for";
  let description = [{
    Constants become arithmetic on loop indices, other orders of registers other indices, and tiles in variables reads. After
    the pass no value is larger than a Metal vector.

    ```mlir
    %o = arith.constant dense<[0, 2, 4, 6, 8, 10, 12, 14]> : vector<8xi32>
    msl.unroll %i = 0 to 8 {
      %a = msl.chunk %o[%i] strides [1] : vector<8xi32> -> i32
    }
    ```
    becomes
    ```mlir
    msl.unroll %i = 0 to 8 {
      %a = arith.muli %i, %c2 : i32
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::ub::UBDialect"];
}

def MSLBoundLoops : Pass<"msl-bound-loops", "::mlir::ModuleOp"> {
  let summary = "Keeps the counter of each loop from passing the largest number of its type";
  let description = [{
    A counter that passes the largest number wraps around, or is undefined in C++, where `range` in Python ends. A loop
    that starts at 0 or above counts without a sign, up to no more than the largest signed number: any step fits. Any
    other loop whose step may be too large becomes a `scf.while` whose counter stays at the largest number. Loops that
    cannot wrap stay as they are.

    ```mlir
    scf.for %k = %c0 to %n step %c32 : i32 {
    }
    ```
    becomes
    ```mlir
    %most = arith.maxsi %n, %c0 : i32
    scf.for unsigned %k = %c0 to %most step %c32 : i32 {
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def MSLLegalizeDivisions : Pass<"msl-legalize-divisions", "::mlir::ModuleOp"> {
  let summary = "Writes integer divisions in forms that Metal defines and Apple's compiler gets right";
  let description = [{
    - Divisions of numbers that are never negative are unsigned.
    - Metal leaves `%` of a negative number undefined, but not `/`: where a number may be negative, the remainder is
      x - x / y * y. A divisor that may be 0 is 1 instead.
    - Apple's compiler has been seen to give wrong remainders of 64-bit numbers that are extended from 32 bits: where both
      numbers fit into 32 bits, the division takes 32 bits.
    - Apple's compiler has been seen to give wrong results for `x / c % d` with constants, where d is no power of two: the
      remainder comes first, which costs as much.

    ```mlir
    %0 = arith.shrui %x, %c16 : i32
    %1 = arith.remui %0, %c6 : i32
    %2 = arith.remsi %y, %c3 : i32
    ```
    becomes
    ```mlir
    %0 = arith.remui %x, %c393216 : i32
    %1 = arith.divui %0, %c65536 : i32
    %quotient = arith.divsi %y, %c3 : i32
    %product = arith.muli %quotient, %c3 overflow<nsw> : i32
    %2 = arith.subi %y, %product overflow<nsw> : i32
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def MSLMergeByteOffsets : Pass<"msl-merge-byte-offsets", "::mlir::ModuleOp"> {
  let summary = "Addresses single bytes by one offset from the buffer";
  let description = [{
    Apple's compiler has been seen to drop accesses of one byte through a byte pointer plus an offset plus another one. The
    sum of the offsets takes 32 bits where it cannot overflow them.

    ```mlir
    %row = msl.ptr_add %x[%offset : i32] : !msl.ptr<i8, device>
    %v = msl.read %row[%column : i32] : !msl.ptr<i8, device> -> i8
    ```
    becomes
    ```mlir
    %0 = arith.extsi %offset : i32 to i64
    %1 = arith.extsi %column : i32 to i64
    %sum = arith.addi %0, %1 overflow<nsw> : i64
    %v = msl.read %x[%sum : i64] : !msl.ptr<i8, device> -> i8
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def MSLWidenBfloats : Pass<"msl-widen-bfloats", "::mlir::ModuleOp"> {
  let summary = "Makes floats of bfloats by their bits in kernels that round floats to halves";
  let description = [{
    LLVM computes `half(float(x) * float(y))` in half if neither operand has more digits than a half, even if one is a bfloat, whose
    range a half does not have (LLVM 22 does; Apple's compiler is built on LLVM). It does not know bits that are shifted
    for such a number.

    ```mlir
    %w = arith.extf %x : bf16 to f32
    ```
    becomes
    ```mlir
    %0 = arith.bitcast %x : bf16 to i16
    %1 = arith.extui %0 : i16 to i32
    %2 = arith.shli %1, %c16 : i32
    %w = arith.bitcast %2 : i32 to f32
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def MSLUnrollHints : Pass<"msl-unroll-hints", "::mlir::ModuleOp"> {
  let summary = "Marks the loops of constant trip count that Metal's compiler is asked to unroll";
  let description = [{
    Unrolled, registers have constant indices. A loop of more than 256 iterations, or over an array of more than 1,024 bytes,
    stays a loop, as a thread's registers could not hold the values; one over simdgroup matrices, which have no index at run
    time, is always unrolled. All others stay loops in a kernel whose loops would become more than 16,384 operations together, or more than
    4,096 beside a loop that is not unrolled.

    ```mlir
    msl.unroll %i = 0 to 8 {
    }
    ```
    becomes
    ```mlir
    msl.unroll %i = 0 to 8 pragma {
    }
    ```
  }];
}

def MSLInferOverflow : Pass<"msl-infer-overflow", "::mlir::ModuleOp"> {
  let summary = "Marks the integer arithmetic that cannot overflow, and what is never negative";
  let description = [{
    In C++ signed overflow is undefined and unsigned arithmetic wraps around. The ranges of what is added, subtracted,
    multiplied or shifted decide where the plain signed operator is safe, and where it does not matter for an operation or an
    offset whether a number has a sign. An integer that a float holds exactly becomes a bfloat by way of it.

    ```mlir
    %lane = msl.lane : i32
    %0 = arith.muli %lane, %c4 : i32
    %1 = arith.divui %0, %c2 : i32
    ```
    becomes
    ```mlir
    %lane = msl.lane : i32
    %0 = arith.muli %lane, %c4 overflow<nsw> : i32
    %1 = arith.divui %0, %c2 {msl.nonnegative} : i32
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def MSLFormVariables : Pass<"msl-form-variables", "::mlir::ModuleOp"> {
  let summary = "Turns what loops and branches give into variables that they assign";
  let description = [{
    ```mlir
    %sum = scf.for %k = %c0 to %n step %c1 iter_args(%s = %zero) -> (f32) : i32 {
      %next = arith.addf %s, %x : f32
      scf.yield %next : f32
    }
    ```
    becomes
    ```mlir
    %s = msl.var = %zero (f32) : !msl.array<1xf32>
    msl.for %c0 to %n step %c1 {
    ^bb0(%k: i32):
      %old = msl.get %s : !msl.array<1xf32> -> f32
      %next = arith.addf %old, %x : f32
      msl.set %next, %s : f32, !msl.array<1xf32>
    } : i32
    %sum = msl.get %s : !msl.array<1xf32> -> f32
    ```
  }];
  let dependentDialects = ["::triton_metal::msl::MSLDialect", "::mlir::scf::SCFDialect"];
}

def MSLExplicitTypes : Pass<"msl-explicit-types", "::mlir::ModuleOp"> {
  let summary = "Gives numbers C++'s types, and makes every conversion an operation";
  let description = [{
    MLIR's integers have no sign, and their sums and products wrap. What `msl-infer-overflow` has not marked is computed
    without a sign (`ui32`), integers of 8 and 16 bits are computed as ints and cut back, bfloats are computed as floats and
    rounded. A lane is a `ui16`. A number stands for a vector beside one. Functions become `msl.call`s.

    ```mlir
    %row = msl.program_id 0 : i32
    %0 = arith.muli %row, %stride : i32
    %p = msl.ptr_add %x, %0 : !msl.ptr<f32, device>, i32
    %e = math.exp %v : bf16
    ```
    becomes
    ```mlir
    %row = msl.program_id 0 : ui32
    %0 = msl.binary mul %row, %stride : (ui32, i32) -> ui32
    %1 = msl.cast %0 : ui32 -> i32
    %p = msl.ptr_add %x, %1 : !msl.ptr<f32, device>, i32
    %2 = msl.cast %v : bf16 -> f32
    %3 = msl.call "precise::exp"(%2) : (f32) -> f32
    %e = msl.cast %3 : f32 -> bf16
    ```
  }];
  let dependentDialects = ["::triton_metal::msl::MSLDialect", "::mlir::arith::ArithDialect"];
}

def MSLFormExpressions : Pass<"msl-form-expressions", "::mlir::ModuleOp"> {
  let summary = "Chooses which values have a variable in the text, and their names";
  let description = [{
    A value that is used once is written where it is used, if it stays short, nothing in between changes what it reads, and it
    would not move into a loop. Any other gets a `msl.let`, as do calls in which lanes meet and atomics. A name is Python's,
    which the location carries, or says what the value is: `max`, `x_row`, `is_first_lane`.

    ```mlir
    %0 = msl.binary add %x, %y : (f32, f32) -> f32
    %1 = msl.simd_reduce sum %0 : f32
    msl.write %1, %p : f32, !msl.ptr<f32, device>
    ```
    becomes
    ```mlir
    %0 = msl.binary add %x, %y : (f32, f32) -> f32
    %1 = msl.simd_reduce sum %0 : f32
    %2 = msl.let "sum" %1 : f32
    msl.write %2, %p : f32, !msl.ptr<f32, device>
    ```
  }];
  let dependentDialects = ["::triton_metal::msl::MSLDialect"];
}

#endif

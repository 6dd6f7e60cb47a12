// Passes on `ttm`: layouts, dots, staging, and what is to be chosen before the way to `msl`.

#ifndef TRITON_METAL_TRANSFORMS_TTMPASSES_TD
#define TRITON_METAL_TRANSFORMS_TTMPASSES_TD

include "mlir/Pass/PassBase.td"

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
  let options = [Option<"numWarps", "num-warps", "int", "4",
                        "SIMD-groups of the threadgroup; 0 for what the module says (ttm.num_warps)">];
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

def TTMSpreadReductions : Pass<"ttm-spread-reductions", "::mlir::ModuleOp"> {
  let summary = "Gives tiles that are reduced more often than they are accessed a layout that suits the reductions";
  let description = [{
    Tiles that are made of rows and columns, as the distances between all pairs of points are, can be made in any layout. A tile that a loop
    carries and reduces in each step is read and written only once. The pass counts the instructions of a layout: combinations of
    registers, shuffles, partial results of SIMD-groups, loads of what a thread has along each dimension, and lines of the accesses to
    the whole tile. Of the layouts that spread lanes and SIMD-groups over the dimensions in some way, it takes the cheapest if that
    saves a tenth. All tiles of one shape agree on it. Tiles of a shape that dots, scans, atomics or ordered reductions have, or that
    another shape becomes, are left alone.

    ```mlir
    %sum = "tt.reduce"(%x) <{axis = 1 : i32}> ({ ... }) : (tensor<32x64xf32, #a>) -> tensor<32xf32, #b>
    ```
    becomes
    ```mlir
    %0 = ttm.convert_layout %x : tensor<32x64xf32, #a> -> tensor<32x64xf32, #c>
    %1 = "tt.reduce"(%0) <{axis = 1 : i32}> ({ ... }) : (tensor<32x64xf32, #c>) -> tensor<32xf32, #d>
    %sum = ttm.convert_layout %1 : tensor<32xf32, #d> -> tensor<32xf32, #b>
    ```
  }];
  let dependentDialects = ["::triton_metal::ttm::TTMDialect"];
}

def TTMAssignDotLayouts : Pass<"ttm-assign-dot-layouts", "::mlir::ModuleOp"> {
  let summary = "Gives the accumulators of dots the layout of the target's matrix instruction";
  let description = [{
    The SIMD-groups tile the accumulator, as square as they can. Where the result of one dot becomes operand A of
    another, all SIMD-groups tile the rows, because the result then already is where that operand has to be; where it
    becomes operand B, they tile the columns. So they do for dots that the first one's result is added to on its way. In a
    batch, they take whole products first, as many as threadgroup memory holds slices of the operands of, and tile each
    product with what is left.

    The instruction is the target's: products of simdgroup matrices of 8x8x8, or tensor operations of 16x32x16 on Apple10
    with Metal 4. Tensor operations take their operands from registers always, so the pass also notes at the dot, for each
    operand, whether threads hold neighbours of a row or of a column, as the load has them in memory. Batches, blocks
    below 16x32x16, operands of two types and fp32 that may not be rounded to TF32 stay on simdgroup matrices.

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
    conversion is cheaper. What else is made of such a load goes with it, reductions included, where it does not move
    more numbers then. What still differs is converted, right where the value is defined.

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
  let summary = "Turns dots into products of matrices on tiles in threadgroup memory or on registers";
  let description = [{
    Operands are staged in threadgroup memory, each in the direction in which its threads hold neighbours, unless they
    are where a product takes them from registers. What does not fit is staged in slices of K, and a batch in parts before
    that. Operands that do not change in a loop are staged before it, while they take half the memory, or all of them if all
    operands fit at once; loops that follow each other share such a tile, as do two dots of one loop. What memory has no room for
    stays in registers over the loop, in the layout of its fragments, if these are no more than it has anyhow. Those that are there before another dot of the block are staged with its own, behind one barrier, if
    a core holds enough threads then. What two dots of a block take, or one of them the transpose of, is staged once, if it
    can stay. int8 is staged as float16 and
    its exact sums go to int32; sums of float16 accumulators are float32 within the dot. Operands of tensor operations are brought into the
    layout of their fragments instead, int8 as float16, and nothing is staged.

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
  let options = [Option<"numStages", "num-stages", "int", "2",
                        "stages where a loop does not say how many; 0 for what the module says (ttm.num_stages)">,
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

def TTMSplitLoops : Pass<"ttm-split-loops", "::mlir::ModuleOp"> {
  let summary = "Splits loops at the step from which masks can be false";
  let description = [{
    A mask that compares a range with a bound is true in a loop up to the step that reaches the bound: blocks in front of it are
    whole, and one or a few behind it are cut. Such a loop becomes two, of which the first has no such masks in its loads,
    stores and choices. What is the same in every step, such as the rows of a program at the edge of a matrix, is asked once: the
    first loop has no steps where it is false. The step is exact integer arithmetic, so that no mask is left out that is false
    for any element. Masks that nothing of this kind is known of stay in both loops. Block pointers and tensor descriptors ask how many places of a block
    are in the tensor (`BlockAccess.cpp`); their masks are taken for comparisons of indices with the tensor's size, and their places may be numbers of 64 bits that the loop carries. A step that
    multiplies by the result of another product keeps these tests, which are few beside its work. Accesses of the second loop whose masks compare
    all of this are never whole (`ttm.cut`), and get no body for blocks that are.

    The sums of a loop of products would live through both loops, which takes registers. If nothing but masks of loads is cut and the bounds
    are known as multiples of 16, one of the loops takes all steps and the other one none (`msl.version`, two sides of a branch in the
    end). Else the loop stays one: its loads and choices stand in both sides of a branch, without these masks and with them, each by the bound of the masks
    that it has itself, and stores to the tiles of the product go with their loads. Masks that are the same in every step stay in both sides. A bound
    that is surely a multiple of the step cuts nothing, and the loop stays one, without the mask. Products on tensor operations stay in
    one loop: where it has choices, these and loads stand in branches, and otherwise it stays as it is.

    ```mlir
    scf.for %k = %c0 to %K step %c16 iter_args(%p = %a) -> (tensor<64x16x!tt.ptr<f16>, #l>) : i32 {
      %left = arith.subi %K, %k : i32
      %bound = tt.splat %left : i32 -> tensor<64x16xi32, #l>
      %m = arith.cmpi slt, %range, %bound : tensor<64x16xi32, #l>
      %v = tt.load %p, %m, %zero : tensor<64x16x!tt.ptr<f16>, #l>
    ```
    becomes
    ```mlir
    %limit = arith.addi %K, %c_15 : i32
    %whole = ... // the first index after 0 that is a multiple of 16 and not below %limit
    %p1 = scf.for %k = %c0 to %whole step %c16 iter_args(%p = %a) -> (tensor<64x16x!tt.ptr<f16>, #l>) : i32 {
      %v = tt.load %p : tensor<64x16x!tt.ptr<f16>, #l>
      ...
    }
    scf.for %k = %whole to %K step %c16 iter_args(%p = %p1) -> (tensor<64x16x!tt.ptr<f16>, #l>) : i32 {
      ... // as before
    ```
  }];
  let dependentDialects = ["::triton_metal::ttm::TTMDialect", "::mlir::arith::ArithDialect"];
}

def TTMLowerPointers : Pass<"ttm-lower-pointers", "::mlir::ModuleOp"> {
  let summary = "Makes every access one to a base pointer at offsets; leaves no tile of pointers";
  let description = [{
    An access through a tile of pointers gets its uniform base and a tile of offsets as operands. What is the same for
    the whole tile moves the base. Tiles without a common base, and those that loops and branches carry, become tiles of
    addresses in bytes.

    `width` is how many consecutive registers of a thread are consecutive elements in memory, at most 16 bytes of them:
    aligned, or up to four that are `unaligned` but surely do not wrap around. `mask_width` is how many of these have one
    and the same mask, and `mask_run` in groups of how many no mask is true behind one that is false. They may rest on sums of 32-bit numbers and
    the indices of programs that do not wrap around, such as in `(program_id * 1024 + range) // 32`. `ttm.grid_limits` of
    the module lists these sums, and a launch whose grid is too large for one of them is refused.

    `ttm.equal` of a comparison on which more than masks of accesses depend is in groups of how many neighbours along each
    dimension its results are equal.

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
    (`tt.tested_divisibility`), wide accesses ask that too. An access whose mask ends within a thread's vectors gets no test that
    is the same in every program: its threads test their own (`mask_run`).

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

def TTMFoldExchanges : Pass<"ttm-fold-exchanges", "::mlir::ModuleOp"> {
  let summary = "Makes an exclusive or that only exchanges elements of two SIMD-groups one round through threadgroup memory";
  let description = [{
    The exclusive or of an element and its partner, combined with the element once more, is the partner (see also
    `msl-fold-exchanges`, which does the same for registers). Where the partner is in another SIMD-group, each thread stores its
    elements where they are neighbours, and reads those of one other thread: half of what the reduction reads, in accesses as wide as
    the thread's neighbours, and from the places that it stores to but for one bit.

    ```mlir
    %0 = "tt.reduce"(%x) <{axis = 0 : i32}> ({ ... arith.xori ... }) : (tensor<2x128xi32, #l>) -> tensor<128xi32, #s>
    %1 = tt.expand_dims %0 {axis = 0 : i32} : tensor<128xi32, #s> -> tensor<1x128xi32, #r>
    %2 = tt.broadcast %1 : tensor<1x128xi32, #r> -> tensor<2x128xi32, #l>
    %y = arith.xori %x, %2 : tensor<2x128xi32, #l>
    ```
    becomes
    ```mlir
    %t = ttm.alloc_tile "partial" : !ttm.tile<256xi32>
    %0 = tt.reshape %x : tensor<2x128xi32, #l> -> tensor<256xi32, #f>
    ttm.store_tile %0, %t : tensor<256xi32, #f>, !ttm.tile<256xi32>
    %1 = ttm.load_tile %t across 128 : !ttm.tile<256xi32> -> tensor<256xi32, #f>
    %y = tt.reshape %1 : tensor<256xi32, #f> -> tensor<2x128xi32, #l>
    ```
    It takes as much threadgroup memory as the tile has; where that is not free, the reduction stays.

    Where what a second exchange would pass on is computed element by element from the first one's elements and partners, as in
    two steps of a sort, the partner's value is computed from what the tile has of the partner and of the partner's partner
    (`across` both bits): three reads follow one write. A thread holds at most 32 bytes of elements then, as it takes four times as many.
  }];
  let dependentDialects = ["::triton_metal::ttm::TTMDialect", "::mlir::arith::ArithDialect"];
}

def TTMLowerReductions : Pass<"ttm-lower-reductions", "::mlir::ModuleOp"> {
  let summary = "Turns reductions into steps: registers, lanes, and SIMD-groups through threadgroup memory";
  let description = [{
    What depends on the order of the elements is combined in their order, anything else with the registers first. It is
    the same in every run. A tile whose partial results would take more than 8 KB, or whose layout mixes the axis with
    others, is laid out anew first. The lanes of a SIMD-group take one partial result each where they combine them at once:
    where they have combined their own so, and where all have the same and there are eight parts or more.

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

#endif

// Passes on `msl`: the way to it, and from tiles as values to loops.

#ifndef TRITON_METAL_TRANSFORMS_MSLPASSES_TD
#define TRITON_METAL_TRANSFORMS_MSLPASSES_TD

include "mlir/Pass/PassBase.td"

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

def MSLFoldShuffles : Pass<"msl-fold-shuffles", "::mlir::ModuleOp"> {
  let summary = "Shuffles of what a shuffle gives become shuffles of what that took";
  let description = [{
    Both lanes must be sums of bits of the thread's position and a constant, and so must be the lane that they come to. Scans ask for
    the last lane of a row whose lanes they have just copied, and a lane that is the same for all costs a GPU least:

    ```mlir
    %a = msl.thread_index lanes [1, 2, 4, 0, 0] simdgroups [0] : i32
    %b = msl.thread_index lanes [0, 0, 0, 8, 16] simdgroups [0] : i32
    %last = arith.addi %b, %c7 : i32
    %0 = msl.simd_shuffle %x, %a : f32, i32
    %1 = msl.simd_shuffle %0, %last : f32, i32
    ```
    becomes
    ```mlir
    %1 = msl.simd_shuffle %x, %c7 : f32, i32
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::triton_metal::msl::MSLDialect"];
}

def MSLTestPositions : Pass<"msl-test-positions", "::mlir::ModuleOp"> {
  let summary = "Tests whether two bits of the thread's position differ on the position itself";
  let description = [{
    A position whose bits are all inverted where one of them is set has the differences from this one in all of its bits. One such
    number serves all tests against this bit, and lives only as long as these: each bit as a number of its own would
    wait in a register from its first test to its last. Networks that sort ask for many pairs of bits, one after the other.

    ```mlir
    %a = msl.thread_index lanes [0, 0, 0, 1, 0] simdgroups [0] : i32
    %b = msl.thread_index lanes [0, 1, 0, 0, 0] simdgroups [0] : i32
    %0 = arith.xori %a, %b : i32
    %differ = arith.cmpi ne, %0, %c0 : i32
    ```
    becomes
    ```mlir
    %0 = arith.shli %lane, %c28 : i32
    %1 = arith.shrsi %0, %c31 : i32
    %2 = arith.xori %lane, %1 : i32
    %3 = arith.andi %2, %c2 : i32
    %differ = arith.cmpi ne, %3, %c0 : i32
    ```
  }];
  let dependentDialects = ["::triton_metal::msl::MSLDialect", "::mlir::arith::ArithDialect"];
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
    An index that is a multiple of another one plus a rest, as a place in a tile is of its row, is made of that one where this
    takes fewer operations: fewer parts of the position then stay in registers.
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
    meet, also from step to step of a loop, and from a loop of whole steps to one that goes on behind it. A mask bounds places, too:
    what is stored at offsets below `%n` does not meet what is stored from `%n` on. A thread meets only itself where the threads'
    places are the same in both accesses but for a distance that is a multiple of more than all of them together. Writes of one
    thread (`msl.in_threads`) stay in order.

    ```mlir
    msl.store %x, %m[%i] : vector<1xf32>, !msl.ptr<f32, threadgroup>, vector<1xi32>
    %y = msl.load %m[%j] : !msl.ptr<f32, threadgroup>, vector<1xi32> -> vector<1xf32>
    ```
    gets `msl.barrier` between the two.

    A barrier that stands between two accesses to device memory already is told to order them (`device`).

    A barrier that orders threadgroup memory goes in front of the reads of device memory whose results are stored behind it, where
    nothing between touches threadgroup memory: what is read goes to its place at once, and waits in no registers.
    ```mlir
    msl.barrier
    %x = msl.load %p[%i] : !msl.ptr<f32, device>, vector<1xi32> -> vector<1xf32>
    msl.store %x, %m[%i] : vector<1xf32>, !msl.ptr<f32, threadgroup>, vector<1xi32>
    ```

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

def MSLSinkIntoThreads : Pass<"msl-sink-into-threads", "::mlir::ModuleOp"> {
  let summary = "Moves reads of threadgroup memory into the msl.in_threads that alone needs them";
  let description = [{
    A reduction over SIMD-groups ends with a read of their results. Where one SIMD-group stores the sum, the others need not compute
    it. A read moves with what is computed from it, as far as nothing else uses that, and nothing between changes threadgroup memory. Functions
    in which lanes meet stay where all lanes run them.

    ```mlir
    %x = msl.load %partial[%i] {width = 4 : i32} : !msl.ptr<f32, threadgroup>, vector<32xi32> -> vector<32xf32>
    %sum = msl.reduce_registers (%x) bits 31 {...} : (vector<32xf32>) -> vector<1xf32>
    msl.in_threads simdgroups 3 = 0 {
      msl.store %sum, %y[%j] : vector<1xf32>, !msl.ptr<f32, device>, vector<1xi32>
    }
    ```
    becomes
    ```mlir
    msl.in_threads simdgroups 3 = 0 {
      %x = msl.load %partial[%i] {width = 4 : i32} : !msl.ptr<f32, threadgroup>, vector<32xi32> -> vector<32xf32>
      %sum = msl.reduce_registers (%x) bits 31 {...} : (vector<32xf32>) -> vector<1xf32>
      msl.store %sum, %y[%j] : vector<1xf32>, !msl.ptr<f32, device>, vector<1xi32>
    }
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
    share bytes where their lifetimes do not meet. Those in one loop share only if the kernel does not fit otherwise, or
    if a core holds fewer than 768 threads without it and more with it (docs/threads.md): each step has a barrier more for it. The kernel then has `threadgroup_bytes`. More than the target has is
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

def MSLBroadcastConditions : Pass<"msl-broadcast-conditions", "::mlir::ModuleOp"> {
  let summary = "Gives all lanes the first one's number where it decides who comes to a barrier or an exchange";
  let description = [{
    A reduction that keeps the order of its operands gives all lanes one number, by choices that depend on the lane. No compiler of the
    text sees that it is one, and a barrier behind a test of it looks as if threads missed it.

    ```mlir
    %u = msl.uniform %a : i32
    ```
    becomes
    ```mlir
    %b = msl.simd_broadcast_first %a : i32
    %u = msl.uniform %b : i32
    ```
  }];
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
    or touches memory that the other writes. What lies between them and needs neither goes before the loop: a loop of another size,
    too, where the second one needs what it leaves. A tile of little cost stays outside of loops, and so does one that only has
    another order of registers: it is computed wherever it is used. So is what makes several tiles of one with fewer numbers, such as the codes that words hold,
    where constant choices put these side by side and take each once: then the words wait, and not the codes.

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

def MSLKeepHalves : Pass<"msl-keep-halves", "::mlir::ModuleOp"> {
  let summary = "Keeps halves, and not their copies in float32, between loops over registers";
  let description = [{
    A tile of eight numbers or more that one loop loads as halves and computes with in float32 takes half of the registers until the next loop
    needs it, which makes the same copy again: GPUs read halves as operands of float32 arithmetic, or convert them in one instruction. Where the
    next loop runs more often, or leaves a tile of float32 itself, which can take the copy's place, the copy stays.

    ```mlir
    %w = msl.tile_loop 32 {
      %v = msl.load %x[%o] : !msl.ptr<f16, device>, vector<32xi32> -> vector<32xf16>
      %w = arith.extf %v : vector<32xf16> to vector<32xf32>
      ...
      msl.yield %w : vector<32xf32>
    } : vector<32xf32>
    msl.tile_loop 32 {
      %e = math.exp %w : vector<32xf32>
    ```
    becomes
    ```mlir
    %v = msl.tile_loop 32 { ... msl.yield %v : vector<32xf16> } : vector<32xf16>
    msl.tile_loop 32 {
      %w = arith.extf %v : vector<32xf16> to vector<32xf32>
      %e = math.exp %w : vector<32xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
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
    combined after the loop. Any other has loops of its own; the outermost one starts from the neutral element, too, so that it
    takes all registers alike and can be one with the loop that leaves them (`msl-fuse-loops`).

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
    msl.set (msl.read %a : vector<2xf16>), %fa
    msl.unroll %n = 0 to 2 {
      msl.set (msl.read %b[%bn] : vector<2xf16>), %fb
      msl.multiply_accumulate %acc[%n], %fa, %fb
    }
    ```
    The factor that has more fragments in a step of k is loaded one by one, each before its products; those of the other stay until the
    last of these. So few are alive at once: next to all sums, fragments decide how many registers a thread takes.

    Each thread reads its own elements of a fragment, so that only constants are added to its pointer. `simdgroup_load`
    would compute the thread's place in each fragment again.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def MSLFormLoops : Pass<"msl-form-loops", "::mlir::ModuleOp"> {
  let summary = "Turns loops over the registers of tiles into loops of constant trip count over chunks";
  let description = [{
    Operations of the loop take Metal vectors, accesses to memory as many registers as one access may. Masked accesses
    with a uniform `full` get two loops and one branch; so do others under the mask of one. Where masks are true up to some register (`mask_run`) and cut vectors, each
    step has a branch for registers that are all inside, one for those at the end, and one for those behind it. Where all accesses of a loop have one mask, and the
    registers of a step one value of it, the step is a branch. Of tiles from outside of the loop a step asks for chunks.
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

def MSLFuseLoops : Pass<"msl-fuse-loops", "::mlir::ModuleOp"> {
  let summary = "Makes one loop of loops over registers that hand over arrays element by element";
  let description = [{
    A loop whose steps read what the same steps of a loop before it have written joins that one, where no other step of either and
    nothing between them stands in the way: accesses to memory do only where they may touch the same and one writes. What goes from one to the other is then a
    value of the step and lives no longer: a row is loaded, multiplied and summed up before the next one. Arithmetic on the vector of all that such a loop leaves, into a variable,
    is done component by component in it.

    ```mlir
    msl.unroll %i = 0 to 4 {
      %v = msl.read %x[%o] ...
      msl.set %v, %a[%i]
    }
    msl.unroll %j = 0 to 4 {
      %v = msl.get %a[%j]
      %s = arith.addf %v, %y : f32
      msl.set %s, %b[%j]
    }
    ```
    becomes
    ```mlir
    msl.unroll %i = 0 to 4 {
      %v = msl.read %x[%o] ...
      %s = arith.addf %v, %y : f32
      msl.set %s, %b[%i]
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def MSLFuseReductions : Pass<"msl-fuse-reductions", "::mlir::ModuleOp"> {
  let summary = "Makes math.fma of a reduction's sums of products";
  let description = [{
    `tt-fuse-multiply-add` has marked sums of reductions `contract` where `enable_fp_fusion` allows it. The product that such a sum
    adds stands beside it only when the reduction is a loop.

    ```mlir
    %0 = arith.mulf %x, %y : vector<4xf32>
    %1 = arith.addf %sum, %0 fastmath<contract> : vector<4xf32>
    ```
    becomes
    ```mlir
    %1 = math.fma %x, %y, %sum : vector<4xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
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

#endif

// Passes on `msl`'s loop form, and from there to text.

#ifndef TRITON_METAL_TRANSFORMS_MSLTEXTPASSES_TD
#define TRITON_METAL_TRANSFORMS_MSLTEXTPASSES_TD

include "mlir/Pass/PassBase.td"

def MSLSingleSteps : Pass<"msl-single-steps", "::mlir::ModuleOp"> {
  let summary = "Makes branches of loops that run at most once, and of two loops of which one runs";
  let description = [{
    A loop with `msl.at_most_once` is what `ttm-split-loops` leaves for the last step, and of two loops with `msl.version` one has all
    steps: they become the sides of a branch. They stay loops until their tiles have variables, as what a loop carries is updated in
    place.

    ```mlir
    %0 = scf.for %k = %whole to %n step %c32 iter_args(%x = %init) -> (f32) : i32 {
      %1 = arith.addf %x, %x : f32
      scf.yield %1 : f32
    } {msl.at_most_once}
    ```
    becomes
    ```mlir
    %runs = arith.cmpi slt, %whole, %n : i32
    %0 = scf.if %runs -> (f32) {
      %1 = arith.addf %init, %init : f32
      scf.yield %1 : f32
    } else {
      scf.yield %init : f32
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def MSLCheckExchanges : Pass<"msl-check-exchanges", "::mlir::ModuleOp"> {
  let summary = "Refuses an exchange between lanes to which not all lanes of a SIMD-group come";
  let description = [{
    A lane that does not come gives an undefined number to the others. Nothing makes such an exchange; this pass looks at the branches
    around each, for every kernel that is compiled. A branch whose condition follows from the lane is an error there.
  }];
}

def MSLHoistOffsets : Pass<"msl-hoist-offsets", "::mlir::ModuleOp"> {
  let summary = "Adds before a loop what all its accesses through a pointer add to it";
  let description = [{
    An access adds one number to a pointer by itself; each further one is an addition in every step, of 64 bits, and the
    sum of those that do not change takes two registers for each access. A term that follows from what is known before
    the loop, and that all accesses through one pointer add, goes there. A pointer that the loop carries begins with it, and what reads it behind the
    loop gets it without; another loop, or an access, that adds it again takes the pointer as it is. Where some accesses add more than one term, or the
    pointer goes on behind the loop, it begins with all that they have in common: it has two registers anyhow.

    ```mlir
    scf.for %k = %c0 to %n step %c32 iter_args(%p = %x) -> !msl.ptr<f16, device> {
      %row = msl.ptr_add %p, %offset : !msl.ptr<f16, device>, i32
      %v = msl.read %row[%column : i32] : !msl.ptr<f16, device> -> f16
      %next = msl.ptr_add %p, %step : !msl.ptr<f16, device>, i32
      scf.yield %next
    }
    ```
    becomes
    ```mlir
    %first = msl.ptr_add %x, %column : !msl.ptr<f16, device>, i32
    scf.for %k = %c0 to %n step %c32 iter_args(%p = %first) -> !msl.ptr<f16, device> {
      %v = msl.read %p[%offset : i32] : !msl.ptr<f16, device> -> f16
      %next = msl.ptr_add %p, %step : !msl.ptr<f16, device>, i32
      scf.yield %next
    }
    ```
    Bytes keep their addresses: `msl-merge-byte-offsets` makes one offset of them.

    Another number that a loop carries may move a pointer from before the loop, at which accesses have two to four places. Then they add it to these,
    and no step adds it to the pointer.
  }];
}

def MSLFollowCounters : Pass<"msl-follow-counters", "::mlir::ModuleOp"> {
  let summary = "Has accesses add a loop's counter to a pointer that the loop would move alike";
  let description = [{
    A pointer that moves by the step of a loop is, in each step, the one that the loop began with plus the counter. An access adds one number by
    itself, so that the pointer stays where it is, and nothing moves it. What accesses add to it besides belongs before the loop: with up to two
    such places the pointers there take no more registers than the moved one and its offsets. A loop that counts from another number than 0, or
    without a sign, and a pointer that something reads behind the loop, keep what they do.

    ```mlir
    scf.for %k = %c0 to %n step %c32 iter_args(%p = %x) -> !msl.ptr<f16, device> {
      %v = msl.read %p[%column : i32] : !msl.ptr<f16, device> -> f16
      %next = msl.ptr_add %p, %c32 : !msl.ptr<f16, device>, i32
      scf.yield %next
    }
    ```
    becomes
    ```mlir
    scf.for %k = %c0 to %n step %c32 {
      %place = msl.ptr_add %x, %column : !msl.ptr<f16, device>, i32
      %v = msl.read %place[%k : i32] : !msl.ptr<f16, device> -> f16
    }
    ```
    Bytes keep their addresses: `msl-merge-byte-offsets` makes one offset of them.
  }];
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

def MSLNarrowComparisons : Pass<"msl-narrow-comparisons", "::mlir::ModuleOp"> {
  let summary = "Compares in 32 bits in loops, where 64 kept a sum from overflowing";
  let description = [{
    Whether the last of several neighbours is inside a bound is asked in 64 bits, where the sum is exact. In a loop the question
    comes again in each step, and what it needs stays in registers: there the bound is made smaller instead, which all
    threads do once. What has been asked before is not asked again, wherever it is.

    ```mlir
    %0 = arith.extsi %start : i32 to i64
    %last = arith.addi %0, %c63_i64 : i64
    %1 = arith.extsi %n : i32 to i64
    %full = arith.cmpi slt, %last, %1 : i64
    ```
    becomes
    ```mlir
    %0 = arith.maxsi %n, %c-2147483585 : i32
    %1 = arith.subi %0, %c63 overflow<nsw> : i32
    %full = arith.cmpi slt, %start, %1 : i32
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def MSLSplitOffsets : Pass<"msl-split-offsets", "::mlir::ModuleOp"> {
  let summary = "Adds before unrolled loops what their accesses add to a pointer in every step";
  let description = [{
    An offset that is the sum of a number and of constants, one for each step of unrolled loops, is an addition of 32 bits in every
    step, and each of the sums may take a register. Where the sum cannot overflow, the number goes to the pointer, before the loops, and the
    steps have constants, which an access adds by itself. Inside of a branch, its condition bounds the sum: `x < n - 63` says that
    `x + 62` fits.

    ```mlir
    scf.if %inside {
      msl.unroll %i = 0 to 8 {
        %row = msl.ptr_add %p, %rows : !msl.ptr<f16, device>, i32
        %eights = arith.muli %i, %c8 : i32
        %offset = arith.addi %x, %eights : i32
        msl.write %v, %row[%offset : i32] : f16, !msl.ptr<f16, device>
      }
    }
    ```
    becomes
    ```mlir
    scf.if %inside {
      %q = msl.ptr_add %p, %x : !msl.ptr<f16, device>, i32
      msl.unroll %i = 0 to 8 {
        %row = msl.ptr_add %q, %rows : !msl.ptr<f16, device>, i32
        %eights = arith.muli %i, %c8 : i32
        msl.write %v, %row[%eights : i32] : f16, !msl.ptr<f16, device>
      }
    }
    ```
    A pointer that is the same in all threads stays so: a GPU adds an offset of 32 bits to it in the access. Bytes keep their addresses:
    `msl-merge-byte-offsets` makes one offset of them.
  }];
}

def MSLSharePointers : Pass<"msl-share-pointers", "::mlir::ModuleOp"> {
  let summary = "Adds to a pointer once what several accesses add to it alike, and leaves constants to them";
  let description = [{
    A thread that reads its numbers in several pieces adds another constant to its place for each. Where these sums cannot overflow, the
    place goes to the pointer, and an access adds a constant by itself. That takes two registers for a pointer of the thread's own, and
    the sums one each: a pointer that all threads have in common needs four places.

    ```mlir
    %second = arith.addi %place, %c128 : i32
    %x = msl.read %row[%place : i32] : !msl.ptr<f32, device> -> vector<4xf32>
    %y = msl.read %row[%second : i32] : !msl.ptr<f32, device> -> vector<4xf32>
    ```
    becomes, for four of them,
    ```mlir
    %own = msl.ptr_add %row, %place : !msl.ptr<f32, device>, i32
    %x = msl.read %own : !msl.ptr<f32, device> -> vector<4xf32>
    %y = msl.read %own[%c128 : i32] : !msl.ptr<f32, device> -> vector<4xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def MSLCompareSteps : Pass<"msl-compare-steps", "::mlir::ModuleOp"> {
  let summary = "Adds the constants of unrolled loops' steps last where sums are compared";
  let description = [{
    A mask within a loop compares a counter, plus a thread's first place, plus a constant for each step of unrolled loops. With the last two added
    first, compilers keep a sum for each step in a register before the loop. What is known before the unrolled loops is added there instead, modulo
    2^32 in whatever order. A sum that something else reads stays as it is.

    ```mlir
    msl.unroll %i = 0 to 4 {
      %place = arith.addi %first, %i : i32
      %n = arith.addi %start, %place : i32
      %mask = arith.cmpi sle, %n, %last : i32
    }
    ```
    becomes
    ```mlir
    %0 = arith.addi %start, %first : i32
    msl.unroll %i = 0 to 4 {
      %n = arith.addi %0, %i : i32
      %mask = arith.cmpi sle, %n, %last : i32
    }
    ```
  }];
}

def MSLStepOffsets : Pass<"msl-step-offsets", "::mlir::ModuleOp"> {
  let summary = "Writes offsets of unrolled loops as a number from before them and multiples of their indices";
  let description = [{
    A row times a stride is a product in each step of unrolled loops, beside the sum that is the row. Modulo 2^32, an offset
    (2^64 where it has 64 bits, and rows that are extended do not wrap around) is as well the first row's plus the steps times the stride: one product and one sum before the loops, which accesses
    of other loops may share, and a sum in each step. What no loop changes is computed before all of them.

    ```mlir
    msl.unroll %i = 0 to 4 {
      %eights = arith.muli %i, %c8 : i32
      %row = arith.addi %first, %eights : i32
      %offset = arith.muli %row, %stride : i32
      msl.write %v, %p[%offset : i32] : f16, !msl.ptr<f16, device>
    }
    ```
    becomes
    ```mlir
    %0 = arith.muli %first, %stride : i32
    %1 = arith.muli %stride, %c8 : i32
    msl.unroll %i = 0 to 4 {
      %2 = arith.muli %i, %1 : i32
      %offset = arith.addi %0, %2 : i32
      msl.write %v, %p[%offset : i32] : f16, !msl.ptr<f16, device>
    }
    ```
  }];
}

def MSLLegalizeDivisions : Pass<"msl-legalize-divisions", "::mlir::ModuleOp"> {
  let summary = "Writes integer divisions in forms that Metal defines and Apple's compiler gets right";
  let description = [{
    - Divisions of numbers that are never negative are unsigned.
    - Metal leaves `%` of a negative number undefined, but not `/`: where a number may be negative, the remainder is
      x - x / y * y. A divisor that may be 0 is 1 instead. One division gives the quotient of the same numbers, too.
    - Apple's compiler has been seen to give wrong remainders of 64-bit numbers that are extended from 32 bits: where both
      numbers fit into 32 bits, the division takes 32 bits. Where one may be -2^31 and the other -1, whose quotient does not
      fit, their magnitudes are divided.
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
    4,096 beside a loop that is not unrolled. The steps of a product along K stay a loop in a kernel that lacks registers (`tt-slice-tiles`).

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

def MSLWaitBeforeTests : Pass<"msl-wait-before-tests", "::mlir::ModuleOp"> {
  let summary = "Moves the first barrier of a loop over matrices in front of the loop's test";
  let description = [{
    Compilers turn a loop into one that tests at its end, behind a test for no steps at all. What the loop has added up is then one of two
    values behind it, and Mesa's compiler for G13 keeps it twice in each step: once for the next step, once for the end. With 64 numbers of
    accumulators in a thread these are 64 registers. No compiler may duplicate a barrier that stands in front of the test, so that the loop
    stays as it is. It is one barrier more for each loop, and one less if another one follows the loop.

    Loops with a barrier before anything else that touches memory, on each way, are changed, if they multiply matrices and if the number
    of their steps is not known.

    ```mlir
    msl.for %c0 to %n step %c1 {
    ^bb0(%k: i32):
      msl.barrier
      msl.write %x, %tile[%i : i32] : f32, <f32, threadgroup>
    } : i32
    ```
    becomes
    ```mlir
    msl.for %c0 to %n step %c1 waits {
    ^bb0(%k: i32):
      msl.write %x, %tile[%i : i32] : f32, <f32, threadgroup>
    } : i32
    ```
  }];
  let dependentDialects = ["::triton_metal::msl::MSLDialect"];
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

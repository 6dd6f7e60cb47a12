//===- MSLLoops.td - tiles in loops, and the loop form of msl ------------===//
//
// What stands between the value form, whose tiles are values, and the text form: loops over a tile's registers, and
// the variables and numbers that these become.
//
//===----------------------------------------------------------------------===//

#ifndef TRITON_METAL_DIALECT_MSL_LOOPS
#define TRITON_METAL_DIALECT_MSL_LOOPS

//===----------------------------------------------------------------------===//
// Operations: between the value form and the loop form
//===----------------------------------------------------------------------===//

def MSL_TileLoopOp : MSL_Op<"tile_loop", [RecursiveMemoryEffects, NoRegionArguments,
    SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "operations on tiles of `registers` registers that share one loop";
  let description = [{
    Each operation of the region takes register r of its operands before any of them takes the next registers: what one of
    them computes, the others use at once. Operations on tiles outside of such a loop have none of their own; they are
    computed wherever their registers are asked for. `step` registers are taken at a time: `msl-place-tiles` chooses it, with
    the variables that tiles live in. Then the loop has results only where all registers fit into one step.

    ```mlir
    %w = msl.tile_loop 32 {
      %v = msl.load %x[%offsets] : !msl.ptr<f32, device>, vector<32xi32> -> vector<32xf32>
      %w = math.exp %v : vector<32xf32>
      msl.yield %w : vector<32xf32>
    } : vector<32xf32>
    ```
  }];
  let arguments = (ins I64Attr:$registers, OptionalAttr<I64Attr>:$step);
  let results = (outs Variadic<MSL_Value>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$registers (`step` $step^)? $body attr-dict (`:` type($results)^)?";
  let hasVerifier = 1;
}

def MSL_ReadTileOp : MSL_Op<"read_tile", [MemoryEffects<[MemRead]>]> {
  let summary = "all registers that a variable holds";
  let description = [{
    The registers are read where they are asked for. `msl-place-tiles` gives a variable to another tile only when nothing asks
    for the registers of the one before.
  }];
  let arguments = (ins MSL_ArrayType:$array);
  let results = (outs MSL_Vector:$result);
  let assemblyFormat = "$array attr-dict `:` type($array) `->` type($result)";
  let hasVerifier = 1;
}

def MSL_WriteTileOp : MSL_Op<"write_tile", [MemoryEffects<[MemWrite]>]> {
  let summary = "sets all registers that a variable holds";
  let arguments = (ins MSL_Vector:$value, MSL_ArrayType:$array);
  let assemblyFormat = "$value `,` $array attr-dict `:` type($value) `,` type($array)";
  let hasVerifier = 1;
}

def MSL_AsTileOp : MSL_Op<"as_tile", [Pure, AllTypesMatch<["value", "result"]>]> {
  let summary = "a tile whose registers a Metal vector holds";
  let description = "Of a tile whose registers are one chunk, which needs no variable: `msl.read_tile` for a value.";
  let arguments = (ins MSL_Vector:$value);
  let results = (outs MSL_Vector:$result);
  let assemblyFormat = "$value attr-dict `:` type($result)";
}

def MSL_ChunkOp : MSL_Op<"chunk", [Pure]> {
  let summary = "one, two or four neighbouring registers of a tile";
  let description = [{
    The first register is the sum of `offset` and of each index, which counts the steps of an `msl.unroll` from 0, times its
    stride. `msl-lower-chunks` computes them and no others.

    ```mlir
    %c = msl.chunk %v[%i, %j] strides [4, 16] offset 8 : vector<64xf32> -> vector<4xf32>
    ```
  }];
  let arguments = (ins MSL_Vector:$value, Variadic<I32>:$indices,
                   DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$strides, DefaultValuedAttr<I64Attr, "0">:$offset);
  let results = (outs MSL_Value:$result);
  let assemblyFormat = [{
    $value (`[` $indices^ `]` `strides` $strides)? (`offset` $offset^)? attr-dict `:` type($value) `->` type($result)
  }];
  let hasVerifier = 1;
}

def MSL_AccumulateOp : MSL_Op<"accumulate", [MemoryEffects<[MemRead, MemWrite]>,
    SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "combines all registers of a tile into a variable";
  let description = [{
    The variable has one element of no more registers than a step of the `msl.tile_loop` around: register r is combined with
    component r modulo their number. The region is that of an `msl.reduce_registers`.
  }];
  let arguments = (ins MSL_Vector:$value, MSL_ArrayType:$array);
  let regions = (region SizedRegion<1>:$combine);
  let assemblyFormat = "$value `,` $array $combine attr-dict `:` type($value) `,` type($array)";
}

def MSL_MatrixProductOp : MSL_Op<"matrix_product", [MemoryEffects<[MemRead, MemWrite]>,
    DeclareOpInterfaceMethods<MSL_MatrixMultiplyOpInterface>]> {
  let summary = "acc += a * b in fragments";
  let description = [{
    `msl.mma` where tiles live in variables: `acc` is an array of simdgroup matrices, and so is what is not behind a pointer.
    Of an instruction that takes its operands from registers, all three are arrays of vectors of four.
  }];
  let arguments = (ins MSL_ArrayType:$acc, AnyTypeOf<[MSL_PtrType, MSL_ArrayType]>:$a,
                   AnyTypeOf<[MSL_PtrType, MSL_ArrayType]>:$b, MSL_MatrixShapeAttr:$instruction,
                   I32Attr:$m, I32Attr:$n, I32Attr:$k,
                   DefaultValuedAttr<I32Attr, "0">:$a_stride, DefaultValuedAttr<I32Attr, "0">:$b_stride,
                   UnitAttr:$a_transposed, UnitAttr:$b_transposed, UnitAttr:$relaxed,
                   DefaultValuedAttr<I32Attr, "1">:$batches, DefaultValuedAttr<I32Attr, "1">:$batch,
                   DefaultValuedAttr<I32Attr, "0">:$first_batch,
                   DefaultValuedAttr<I32Attr, "0">:$a_batch_stride, DefaultValuedAttr<I32Attr, "0">:$b_batch_stride);
  let assemblyFormat = "$instruction $acc `,` $a `,` $b attr-dict `:` type($acc) `,` type($a) `,` type($b)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Operations: the loop form
//===----------------------------------------------------------------------===//

def MSL_VarOp : MSL_Op<"var", [MemoryEffects<[MemAlloc]>, DeclareOpInterfaceMethods<MSL_SpreadOpInterface>]> {
  let summary = "declares a variable or an array of this thread";
  let description = [{
    In the text form it has a name, which is a wish: one that is taken gets a number. A single variable may have a first value.

    ```mlir
    %slot = msl.var "slot" = %c0 (i32) : !msl.array<1xi32>    // int slot = 0;
    ```
  }];
  let arguments = (ins OptionalAttr<StrAttr>:$name, Optional<MSL_Element>:$init);
  let results = (outs MSL_ArrayType:$result);
  let assemblyFormat = "($name^)? (`=` $init^ `(` type($init) `)`)? attr-dict `:` type($result)";
  let builders = [OpBuilder<(ins "::triton_metal::msl::ArrayType":$type), [{ build($_builder, $_state, type, {}, {}); }]>];
  let hasVerifier = 1;
}

def MSL_UnrollOp : MSL_Op<"unroll", [RecursiveMemoryEffects, SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "a loop of constant trip count";
  let description = [{
    With `pragma` the text asks Metal's compiler to unroll it. In the text form the index is a `ui16`.

    ```mlir
    msl.unroll %i = 0 to 8 pragma {
    }
    ```
  }];
  let arguments = (ins I32Attr:$lower, I32Attr:$upper, UnitAttr:$pragma);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "int32_t":$lower, "int32_t":$upper)>];
  let extraClassDeclaration = [{
    ::mlir::BlockArgument getIndex() { return getBody().getArgument(0); }
  }];
}

def MSL_GetOp : MSL_Op<"get", [MemoryEffects<[MemRead]>, DeclareOpInterfaceMethods<MSL_SpreadOpInterface>,
    AttrSizedOperandSegments]> {
  let summary = "reads `array[index]`, or one component of it";
  let arguments = (ins MSL_ArrayType:$array, Optional<MSL_Index>:$index, Optional<MSL_Index>:$element);
  let results = (outs MSL_Element:$result);
  let assemblyFormat = "$array (`[` custom<Index>($index, type($index))^ `]`)? (`element` custom<Index>($element, type($element))^)? attr-dict `:` type($array) `->` type($result)";
  let hasVerifier = 1;
}

def MSL_SetOp : MSL_Op<"set", [MemoryEffects<[MemWrite]>, AttrSizedOperandSegments]> {
  let summary = "writes `array[index]`, or one component of it";
  let arguments = (ins MSL_Element:$value, MSL_ArrayType:$array, Optional<MSL_Index>:$index, Optional<MSL_Index>:$element);
  let assemblyFormat = "$value `,` $array (`[` custom<Index>($index, type($index))^ `]`)? (`element` custom<Index>($element, type($element))^)? attr-dict `:` type($value) `,` type($array)";
  let hasVerifier = 1;
}

def MSL_ReadOp : MSL_Op<"read", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>, DeclareOpInterfaceMethods<MSL_MemoryAccessOpInterface>,
    AttrSizedOperandSegments,
    OptionalTypesMatchWith<"`other` has the result's type", "result", "other", "$_self">]> {
  let summary = "one access of up to 16 bytes at base + offset; where `condition` is false nothing is read";
  let description = [{
    The result is a number, a vector of the pointer's elements, or a vector of i32 that holds their bits; of `unaligned`
    elements, of integers of their size.
  }];
  let arguments = (ins MSL_PtrType:$base, Optional<MSL_Index>:$offset, Optional<I1>:$condition,
                   Optional<MSL_Value>:$other, UnitAttr:$is_volatile, UnitAttr:$unaligned);
  let results = (outs MSL_Value:$result);
  let assemblyFormat = [{
    $base (`[` $offset^ `:` type($offset) `]`)? (`if` $condition^)? (`else` $other^)? attr-dict `:` type($base) `->` type($result)
  }];
  let hasCanonicalizeMethod = 1;
}

def MSL_WriteOp : MSL_Op<"write", [MemoryEffects<[MemWrite]>, DeclareOpInterfaceMethods<MSL_MemoryAccessOpInterface>]> {
  let summary = "one access of up to 16 bytes at base + offset";
  let arguments = (ins MSL_Value:$value, MSL_PtrType:$base, Optional<MSL_Index>:$offset, UnitAttr:$unaligned);
  let assemblyFormat = "$value `,` $base (`[` $offset^ `:` type($offset) `]`)? attr-dict `:` type($value) `,` type($base)";
  let hasCanonicalizeMethod = 1;
}

def MSL_VectorOp : MSL_Op<"vector", [Pure]> {
  let summary = "a Metal vector made of numbers and vectors, in order";
  let arguments = (ins Variadic<MSL_Value>:$parts);
  let results = (outs MSL_Vector:$result);
  let hasFolder = 1;
  let assemblyFormat = "$parts attr-dict `:` type($parts) `->` type($result)";
}

def MSL_SwizzleOp : MSL_Op<"swizzle", [Pure]> {
  let summary = "components of a Metal vector: `v.x`, `v.xz`";
  let arguments = (ins MSL_Vector:$value, DenseI64ArrayAttr:$positions);
  let results = (outs MSL_Value:$result);
  let hasFolder = 1;
  let assemblyFormat = "$value $positions attr-dict `:` type($value) `->` type($result)";
}

def MSL_ElementOp : MSL_Op<"element", [Pure]> {
  let summary = "the component of a Metal vector at a loop index";
  let arguments = (ins MSL_Vector:$value, MSL_Index:$index);
  let results = (outs MSL_Scalar:$result);
  let assemblyFormat = "$value `[` custom<Index>($index, type($index)) `]` attr-dict `:` type($value) `->` type($result)";
}

def MSL_AsTypeOp : MSL_Op<"as_type", [Pure]> {
  let summary = "the same bits as another number or vector: as_type";
  let arguments = (ins MSL_Value:$value);
  let results = (outs MSL_Value:$result);
  let hasFolder = 1;
  let assemblyFormat = "$value attr-dict `:` type($value) `->` type($result)";
}

def MSL_FillOp : MSL_Op<"fill", [MemoryEffects<[MemWrite]>]> {
  let summary = "sets every element of a simdgroup matrix to one value";
  let arguments = (ins MSL_ScalarFloat:$value, MSL_MatrixArray:$array, Optional<MSL_Index>:$index);
  let assemblyFormat = "$value `,` $array (`[` custom<Index>($index, type($index))^ `]`)? attr-dict `:` type($value) `,` type($array)";
}

def MSL_MultiplyAccumulateOp : MSL_Op<"multiply_accumulate", [MemoryEffects<[MemRead, MemWrite]>,
    DeclareOpInterfaceMethods<MSL_MatrixMultiplyOpInterface>, AttrSizedOperandSegments]> {
  let summary = "acc[i] += a[j] * b[k] on simdgroup matrices: one instruction";
  let arguments = (ins MSL_MatrixArray:$acc, Optional<MSL_Index>:$acc_index, MSL_MatrixArray:$a, Optional<MSL_Index>:$a_index,
                   MSL_MatrixArray:$b, Optional<MSL_Index>:$b_index);
  let assemblyFormat = [{
    $acc (`[` custom<Index>($acc_index, type($acc_index))^ `]`)? `,` $a (`[` custom<Index>($a_index, type($a_index))^ `]`)? `,` $b (`[` custom<Index>($b_index, type($b_index))^ `]`)? attr-dict
    `:` type($acc) `,` type($a) `,` type($b)
  }];
  let hasVerifier = 1;
}

def MSL_TensorMultiplyOp : MSL_Op<"tensor_multiply", [MemoryEffects<[MemRead, MemWrite]>,
    DeclareOpInterfaceMethods<MSL_MatrixMultiplyOpInterface>, AttrSizedOperandSegments]> {
  let summary = "acc += a * b on what the lanes of a SIMD-group hold: one tensor operation of Metal 4";
  let description = [{
    The arrays are of vectors of four, and each index is that of a fragment's first vector. A transposed factor's fragment is
    one of [k][m] (a) or [n][k] (b).

    ```mlir
    msl.tensor_multiply <16x32x16> %acc[%i], %a, %b[%j] {b_transposed}
        : !msl.array<8 x vector<4xf32>>, !msl.array<2 x vector<4xf16>>, !msl.array<8 x vector<4xf16>>
    ```
  }];
  let arguments = (ins MSL_ArrayType:$acc, Optional<MSL_Index>:$acc_index, MSL_ArrayType:$a, Optional<MSL_Index>:$a_index,
                   MSL_ArrayType:$b, Optional<MSL_Index>:$b_index, MSL_MatrixShapeAttr:$instruction,
                   UnitAttr:$a_transposed, UnitAttr:$b_transposed, UnitAttr:$relaxed);
  let assemblyFormat = [{
    $instruction $acc (`[` custom<Index>($acc_index, type($acc_index))^ `]`)? `,` $a (`[` custom<Index>($a_index, type($a_index))^ `]`)? `,` $b (`[` custom<Index>($b_index, type($b_index))^ `]`)? attr-dict
    `:` type($acc) `,` type($a) `,` type($b)
  }];
  let hasVerifier = 1;
}

#endif // TRITON_METAL_DIALECT_MSL_LOOPS

// The whole dialect in one file, from which everything generated is made.

#ifndef TRITON_METAL_DIALECT_TTM_TD
#define TRITON_METAL_DIALECT_TTM_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinTypes.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/TensorEncoding.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "dialect/msl/MSLInterfaces.td"
include "dialect/msl/MSLMatrixShape.td"
include "dialect/tt/TTTypes.td"

def TTM_Dialect : Dialect {
  let name = "ttm";
  let cppNamespace = "::triton_metal::ttm";
  let summary = "Tiles with a layout, threadgroup memory and simdgroup matrices";
  let description = [{
    The operations of `tt`, `arith` and `math` stay; every tensor has an encoding `#ttm.linear<...>` that says which
    register of which lane of which SIMD-group holds which element. Elementwise operations have one layout. Operations
    that only rename registers (expand_dims, broadcast, reshape, trans, join, split, cat) have results whose layout
    follows from their operand's. Wherever data has to move, there is a `ttm.convert_layout`.

    A module at this level has `ttm.num_simdgroups` and `ttm.threads`.
  }];
  let dependentDialects = ["::triton_metal::tt::TTDialect", "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::mlir::ub::UBDialect", "::triton_metal::msl::MSLDialect"];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let extraClassDeclaration = [{
    void registerTypes();
    void registerAttributes();
    static constexpr ::llvm::StringLiteral getNumSimdgroupsAttrName() { return "ttm.num_simdgroups"; }
    static constexpr ::llvm::StringLiteral getThreadsAttrName() { return "ttm.threads"; }
    /// Of a module, before it has layouts: the SIMD-groups and stages of a launch, and why they were chosen.
    static constexpr ::llvm::StringLiteral getNumWarpsAttrName() { return "ttm.num_warps"; }
    static constexpr ::llvm::StringLiteral getNumStagesAttrName() { return "ttm.num_stages"; }
    static constexpr ::llvm::StringLiteral getChoiceAttrName() { return "ttm.choice"; }
    /// Of a module: the slices in which its tiles are worked on, if they are more than one.
    static constexpr ::llvm::StringLiteral getSlicesAttrName() { return "ttm.slices"; }
    /// Of a module: a loop runs over slices of its tiles, because a thread would lack registers.
    static constexpr ::llvm::StringLiteral getLacksRegistersAttrName() { return "ttm.lacks_registers"; }
    /// Of a module: threadgroup memory has no room for operands of products beside those of the same product.
    static constexpr ::llvm::StringLiteral getLacksMemoryAttrName() { return "ttm.lacks_memory"; }
    /// Of a module: the most stages in which a loop of it loads tiles.
    static constexpr ::llvm::StringLiteral getPipelineStagesAttrName() { return "ttm.pipeline_stages"; }
    /// Of an access: its mask is false for some element, or nothing is gained where it is not.
    static constexpr ::llvm::StringLiteral getCutAttrName() { return "ttm.cut"; }
    /// Of a comparison: in groups of how many neighbours along each dimension its results are equal. A thread then
    /// compares once for each of its groups.
    static constexpr ::llvm::StringLiteral getEqualAttrName() { return "ttm.equal"; }
    /// Of a module: sums of the indices of a program on which the widths of its accesses rest. Each is four numbers,
    /// [c, x, y, z]; in a launch c + x * program_id(0) + y * program_id(1) + z * program_id(2) stays below 2^31.
    static constexpr ::llvm::StringLiteral getGridLimitsAttrName() { return "ttm.grid_limits"; }
  }];
  let hasOperationAttrVerify = 1;
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

def TTM_LinearLayoutAttr : AttrDef<TTM_Dialect, "LinearLayout", [
    DeclareAttrInterfaceMethods<VerifiableTensorEncoding, ["verifyEncoding"]>]> {
  let mnemonic = "linear";
  let genMnemonicAlias = 1;
  let summary = "Where each element of a tile lives";
  let description = [{
    For each bit of the register, lane and SIMD-group index, the coordinates that the bit moves by. The element that a
    thread's register holds is the exclusive or of the bases of the set bits. A basis of zeros replicates.

    ```mlir
    // 64 rows of 8: a thread holds two neighbours, four lanes a row, eight rows a SIMD-group, two SIMD-groups,
    // and the other rows follow in further registers.
    #ttm.linear<{register = [[0, 1], [16, 0], [32, 0]],
                 lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], simdgroup = [[8, 0]]}>
    ```
    The extents follow from the bases, since together they reach every element.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape, ArrayRefParameter<"uint32_t">:$registers,
                        ArrayRefParameter<"uint32_t">:$lanes, ArrayRefParameter<"uint32_t">:$simdgroups);
  let builders = [AttrBuilder<(ins "const LinearLayout &":$layout)>];
  let extraClassDeclaration = [{
    LinearLayout getLayout() const {
      return LinearLayout(getShape(), getRegisters(), getLanes(), getSimdgroups());
    }
  }];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

def TTM_TileType : TypeDef<TTM_Dialect, "Tile"> {
  let mnemonic = "tile";
  let summary = "A tile in threadgroup memory, row-major with padded rows";
  let description = [{
    `!ttm.tile<64x32xf16, row_pad = 8, slots = 2>`: two tiles of 64 rows of 32 elements; the next row starts 32 + 8
    elements on. The padding is there against bank conflicts.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape, "::mlir::Type":$elementType,
                        DefaultValuedParameter<"int64_t", "0">:$rowPad, DefaultValuedParameter<"int64_t", "1">:$slots);
  let extraClassDeclaration = [{
    int64_t getRank() const { return getShape().size(); }
    /// Elements from one row to the next.
    int64_t getRowStride() const { return getShape().back() + getRowPad(); }
    /// Elements of one slot, padding included.
    int64_t getSlotElements() const {
      int64_t rows = 1;
      for (int64_t extent : getShape().drop_back())
        rows *= extent;
      return rows * getRowStride();
    }
    /// Bytes of all slots.
    int64_t getBytes() const {
      return getSlots() * getSlotElements() * ((getElementType().getIntOrFloatBitWidth() + 7) / 8);
    }
  }];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def TTM_TileOrTensor : AnyTypeOf<[TTM_TileType, AnyRankedTensor], "a tile or a tensor in an operand layout">;

def TTM_ThreadgroupMemory : Resource<"::triton_metal::ttm::ThreadgroupMemory">;

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

class TTM_Op<string mnemonic, list<Trait> traits = []> : Op<TTM_Dialect, mnemonic, traits>;

def TTM_ConvertLayoutOp : TTM_Op<"convert_layout",
    [Pure, SameOperandsAndResultShape, SameOperandsAndResultElementType]> {
  let summary = "The same tile in another layout";
  let description = [{
    ```mlir
    %1 = ttm.convert_layout %0 : tensor<64xf32, #a> -> tensor<64xf32, #b>
    ```
    `ttm-lower-layout-conversions` leaves those that rename registers. The others become `ttm.shuffle`, or go through a
    tile in threadgroup memory.
  }];
  let arguments = (ins AnyRankedTensor:$src);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$src attr-dict `:` type($src) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def TTM_ShuffleOp : TTM_Op<"shuffle", [Pure, SameOperandsAndResultShape, SameOperandsAndResultElementType]> {
  let summary = "The same tile in another layout, by data that stays within each SIMD-group";
  let description = [{
    ```mlir
    %1 = ttm.shuffle %0 : tensor<64xf32, #a> -> tensor<64xf32, #b>
    ```
    A thread reads registers of one other lane, and selects among at most eight alternatives by bits of its own position.
  }];
  let arguments = (ins AnyRankedTensor:$src);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$src attr-dict `:` type($src) `->` type($result)";
  let hasVerifier = 1;
}

def TTM_AllocTileOp : TTM_Op<"alloc_tile"> {
  let summary = "Threadgroup memory for a tile";
  let description = [{
    Its name in Metal is `name`, if there is one, or comes from its location.

    ```mlir
    %0 = ttm.alloc_tile "exchange" : !ttm.tile<32x32xf32, row_pad = 4>
    ```
  }];
  let arguments = (ins OptionalAttr<StrAttr>:$name);
  let results = (outs Res<TTM_TileType, "", [MemAlloc<TTM_ThreadgroupMemory>]>:$tile);
  let assemblyFormat = "($name^)? attr-dict `:` qualified(type($tile))";
  let builders = [OpBuilder<(ins "::mlir::Type":$type), [{ build($_builder, $_state, type, ::mlir::StringAttr()); }]>];
}

def TTM_NextSlotOp : TTM_Op<"next_slot", [Pure]> {
  let summary = "The slot behind another one of a tile, the first behind the last";
  let arguments = (ins I32:$slot, ConfinedAttr<I32Attr, [IntMinValue<2>]>:$slots);
  let results = (outs I32:$result);
  let assemblyFormat = "$slot `of` $slots attr-dict `:` type($result)";
}

def TTM_StoreTileOp : TTM_Op<"store_tile", [AttrSizedOperandSegments]> {
  let summary = "Writes a tensor to a tile";
  let description = [{
    With `offsets`, only the part of the tensor that begins there and has the tile's shape is written. With `part`, the
    tile has the tensor's columns and some of its rows, and the part of the rows with this number is written. Of the threads
    that hold copies of an element the first writes it. Integers may be stored to a tile of floating-point elements that holds
    their values exactly.

    ```mlir
    ttm.store_tile %a, %tile[%slot] : tensor<64x32xf16, #l>, !ttm.tile<64x32xf16, row_pad = 8, slots = 2>
    ttm.store_tile %a, %tile part %i : tensor<64x32xf16, #l>, !ttm.tile<16x32xf16>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$src, Arg<TTM_TileType, "", [MemWrite<TTM_ThreadgroupMemory>]>:$tile,
                       Optional<I32>:$slot, Optional<I32>:$part, OptionalAttr<DenseI64ArrayAttr>:$offsets);
  let assemblyFormat = [{
    $src `,` $tile (`[` $slot^ `]`)? (`part` $part^)? attr-dict `:` type($src) `,` qualified(type($tile))
  }];
  let builders = [
    OpBuilder<(ins "::mlir::Value":$src, "::mlir::Value":$tile, "::mlir::Value":$slot,
                   "::mlir::DenseI64ArrayAttr":$offsets),
              [{ build($_builder, $_state, src, tile, slot, ::mlir::Value(), offsets); }]>
  ];
  let hasVerifier = 1;
}

def TTM_LoadTileOp : TTM_Op<"load_tile", [AttrSizedOperandSegments,
    OptionalTypesMatchWith<"`other` has the result's type", "result", "other", "$_self">]> {
  let summary = "Reads a tile into a tensor of any layout";
  let description = [{
    With `row`, only the part of the tile that has this index along the first dimension is read, and the result has no such
    dimension. With `part`, the tile has the tensor's columns and the part of its rows with this number, and all other rows
    are those of `other`. With `across`, each element is the tile's element whose row-major index differs in these bits: that
    of another thread. The tile has no padding then, and the layout is a permutation.

    ```mlir
    %a_k = ttm.load_tile %tile row %k : !ttm.tile<32x64xf16, row_pad = 8> -> tensor<64xf16, #l>
    %1 = ttm.load_tile %tile part %i other %0 : !ttm.tile<16x32xf16> -> tensor<64x32xf16, #l>
    %2 = ttm.load_tile %tile across 128 : !ttm.tile<256xi32> -> tensor<256xi32, #l>
    ```
  }];
  let arguments = (ins Arg<TTM_TileType, "", [MemRead<TTM_ThreadgroupMemory>]>:$tile, Optional<I32>:$slot, Optional<I32>:$row,
                       Optional<I32>:$part, Optional<AnyRankedTensor>:$other,
                       DefaultValuedAttr<I32Attr, "0">:$across);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $tile (`[` $slot^ `]`)? (`row` $row^)? (`part` $part^ `other` $other)? (`across` $across^)? attr-dict
    `:` qualified(type($tile)) `->` type($result)
  }];
  let builders = [
    OpBuilder<(ins "::mlir::Type":$type, "::mlir::Value":$tile, "::mlir::Value":$slot,
                   CArg<"::mlir::Value", "{}">:$row),
              [{ build($_builder, $_state, type, tile, slot, row, ::mlir::Value(), ::mlir::Value()); }]>
  ];
  let hasVerifier = 1;
}

def TTM_GatherTileOp : TTM_Op<"gather_tile", [
    TypesMatchWith<"the indices are i32 of the result's shape and layout", "result", "indices",
      "::mlir::cast<::mlir::RankedTensorType>($_self).clone(::mlir::IntegerType::get($_self.getContext(), 32))">]> {
  let summary = "Reads the elements of a tile that indices choose along one dimension";
  let description = [{
    Along the other dimensions, where the tile has the result's shape, an element is that of the same coordinates.

    ```mlir
    %1 = ttm.gather_tile %tile[%indices] axis 1 : !ttm.tile<16x64xf32> -> tensor<16x32xf32, #l>
    ```
  }];
  let arguments = (ins Arg<TTM_TileType, "", [MemRead<TTM_ThreadgroupMemory>]>:$tile, AnyRankedTensor:$indices,
                       I32Attr:$axis);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $tile `[` $indices `]` `axis` $axis attr-dict `:` qualified(type($tile)) `->` type($result)
  }];
}

def TTM_CountInTileOp : TTM_Op<"count_in_tile", [
    TypesMatchWith<"the mask has the indices' shape and layout", "indices", "mask",
      "::mlir::cast<::mlir::RankedTensorType>($_self).clone(::mlir::IntegerType::get($_self.getContext(), 1))">]> {
  let summary = "Adds 1 to the elements of a tile of i32 that indices choose, where the mask is true";
  let description = [{
    The tile has one row. An element of the indices counts once, however many threads hold copies of it.

    ```mlir
    ttm.count_in_tile %tile[%indices] mask %m : !ttm.tile<1x64xi32>, tensor<128xi32, #l>
    ```
  }];
  let arguments = (ins Arg<TTM_TileType, "", [MemRead<TTM_ThreadgroupMemory>, MemWrite<TTM_ThreadgroupMemory>]>:$tile,
                       AnyRankedTensor:$indices, AnyRankedTensor:$mask);
  let assemblyFormat = [{
    $tile `[` $indices `]` `mask` $mask attr-dict `:` qualified(type($tile)) `,` type($indices)
  }];
}

def TTM_MMAOp : TTM_Op<"mma", [DeclareOpInterfaceMethods<MSL_MatrixMultiplyOpInterface, ["getNumberType"]>,
    AttrSizedOperandSegments, AllTypesMatch<["acc", "result"]>]> {
  let summary = "acc + a · b on simdgroup matrices";
  let description = [{
    `instruction` is the shape of the target's instruction, in whose fragments the accumulator is laid out. `a` and `b` are
    tiles, or tensors in the operand layout that belongs to the accumulator's. A transposed tile is stored as [k][m] (a) or
    [n][k] (b); so is a transposed tensor, which only instructions take whose operands are always in registers. `relaxed`
    says that fp32 operands may lose bits of their significands. `k_offset` is where in K a register operand is taken from when the other is a tile of fewer k.

    With three dimensions, the first one is a batch of independent products. Tiles may hold a part of the batch, which begins
    at `batch_offset`; the rest of the accumulator stays as it is.

    ```mlir
    %d = ttm.mma <8x8x8> %a[%slot], %b[%slot], %c {b_transposed}
        : !ttm.tile<64x32xf16, slots = 2>, !ttm.tile<64x32xf16, slots = 2>, tensor<64x64xf32, #mma>
    ```
  }];
  // The accumulator comes first, so that its place does not depend on the optional operands: the type of the result is
  // inferred from it.
  let arguments = (ins AnyRankedTensor:$acc,
                       Arg<TTM_TileOrTensor, "", [MemRead<TTM_ThreadgroupMemory>]>:$a, Optional<I32>:$aSlot,
                       Arg<TTM_TileOrTensor, "", [MemRead<TTM_ThreadgroupMemory>]>:$b, Optional<I32>:$bSlot,
                       MSL_MatrixShapeAttr:$instruction, UnitAttr:$a_transposed, UnitAttr:$b_transposed, UnitAttr:$relaxed,
                       DefaultValuedAttr<I64Attr, "0">:$k_offset, DefaultValuedAttr<I64Attr, "0">:$batch_offset);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $instruction $a (`[` $aSlot^ `]`)? `,` $b (`[` $bSlot^ `]`)? `,` $acc attr-dict `:` type($a) `,` type($b) `,` type($acc)
  }];
  let extraClassDeclaration = [{
    int64_t getM();
    int64_t getN();
    /// The terms that this operation adds up.
    int64_t getK();
    /// The products that this operation computes; 1 without a batch.
    int64_t getBatch();
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Reductions in parts
//===----------------------------------------------------------------------===//

def TTM_ReduceOp : TTM_Op<"reduce", [RecursiveMemoryEffects, SameVariadicOperandSize,
    SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "Combines elements that differ in some bits of their coordinate along the axis";
  let description = [{
    A step of a reduction: the bits lie all in registers, or all in lanes, of the operands' layout. The axis keeps the
    other bits, in their order. Lanes that the bits told apart hold the same afterwards.

    The region takes two elements of each operand and yields one of each; it is associative. If it is not commutative as
    well, the bits are the lowest ones, so that neighbours are combined, in their order.

    ```mlir
    %1 = ttm.reduce (%0) axis 0 bits 3 {
      ^bb0(%a: f32, %b: f32):
        %c = arith.addf %a, %b : f32
        ttm.yield %c : f32
    } : (tensor<1024xf32, #a>) -> tensor<256xf32, #b>
    ```
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$srcs, I32Attr:$axis, I64Attr:$bits);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region SizedRegion<1>:$combine);
  let assemblyFormat = [{
    `(` $srcs `)` `axis` $axis `bits` $bits $combine attr-dict `:` functional-type($srcs, $results)
  }];
  let hasVerifier = 1;
}

def TTM_YieldOp : TTM_Op<"yield", [Pure, Terminator, ParentOneOf<["InFirstCopiesOp", "ReduceOp"]>]> {
  let summary = "The values of a region";
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
  let builders = [OpBuilder<(ins), [{ (void)$_builder; (void)$_state; }]>];
}

//===----------------------------------------------------------------------===//
// Some of the threads
//===----------------------------------------------------------------------===//

def TTM_InFirstCopiesOp : TTM_Op<"in_first_copies", [RecursiveMemoryEffects, NoRegionArguments,
    SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "Operations that run in the first of the threads that hold copies";
  let description = [{
    Under `layout` several threads may hold the same elements. The region runs in the first of them; the others have copies of
    0 in the results. Everywhere else in `ttm` all copies of an element are equal. So only stores, which write the first
    copies, and operations on registers in front of them may take these results.

    An atomic updates memory once for each element, however many copies there are, and only the thread that did it knows what
    was there. `ttm-broadcast-atomics` puts an atomic whose result is used into such a region; `convert-ttm-to-msl` makes an
    `msl.in_threads` of it, and refuses such an atomic anywhere else. A flag of the atomic would give one operation two
    meanings, and a pass that does not know the flag would still take the result for a tile like any other.

    ```mlir
    %own = ttm.in_first_copies #l -> (tensor<16xi32, #l>) {
      %old = ttm.atomic_rmw add, relaxed, gpu, %x[%o], %v : tensor<16xi32, #l>, !tt.ptr<i32>, tensor<16xi32, #l>
      ttm.yield %old : tensor<16xi32, #l>
    }
    ttm.store_tile %own, %t : tensor<16xi32, #l>, !ttm.tile<16xi32>
    ```
    A scalar has a copy in every thread, as under a layout of one element.
  }];
  let arguments = (ins TTM_LinearLayoutAttr:$layout);
  let results = (outs Variadic<TT_Value>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "qualified($layout) (`->` `(` type($results)^ `)`)? $body attr-dict";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Device memory
//===----------------------------------------------------------------------===//

def TTM_Offsets : TT_TensorLike<AnyTypeOf<[I32, I64]>, "i32 or i64, or a tensor of them">;

defvar maskOfOffsets = "::triton_metal::tt::getMaskTypeOf($_self)";

/// An access to the elements at offsets from a uniform base pointer; without a base, at addresses in bytes.
class TTM_AccessOp<string mnemonic, list<Trait> traits = []> : TTM_Op<mnemonic, traits # [
    OptionalTypesMatchWith<"the mask has the offsets' shape and layout", "offsets", "mask", maskOfOffsets>]>;

def TTM_LoadOp : TTM_AccessOp<"load", [AttrSizedOperandSegments, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
    OptionalTypesMatchWith<"`other` has the result's type", "result", "other", "$_self">]> {
  let summary = "Reads the elements at base + offsets";
  let description = [{
    Without a base, the offsets are addresses in bytes. Consecutive registers come in groups of `width` elements that are
    neighbours in memory, the first at an address that is aligned to the group, or if `unaligned` to an element;
    `mask_width` registers of an aligned group share their mask, and in a group of `mask_run` registers no mask is true
    behind one that is false. Where the mask is false nothing is read and the result is `other`, or 0.

    If `full` is given, the widths hold only where this scalar is true, and so is then every element of the mask. Where it
    is false, groups of `mask_width` are neighbours.

    Aligned groups of `repeat` registers have one address, one mask and one number of `other`: a thread reads one element for all
    of them. Their width is 1.

    ```mlir
    %v = ttm.load %x[%offsets] mask %m full %f {width = 4 : i32}
       : tensor<1024xi32, #l>, !tt.ptr<f32> -> tensor<1024xf32, #l>
    %w = ttm.load[%addresses] : tensor<1024xi64, #l> -> tensor<1024xf32, #l>
    ```
  }];
  let arguments = (ins Optional<TT_PtrType>:$base, TTM_Offsets:$offsets, Optional<TT_BoolLike>:$mask,
                       Optional<TT_Value>:$other, Optional<I1>:$full, DefaultValuedAttr<I32Attr, "1">:$width,
                       DefaultValuedAttr<I32Attr, "1">:$mask_width, UnitAttr:$is_volatile,
                       DefaultValuedAttr<I32Attr, "1">:$mask_run, UnitAttr:$unaligned,
                       DefaultValuedAttr<I32Attr, "1">:$repeat);
  let results = (outs TT_Value:$result);
  let assemblyFormat = [{
    ($base^)? `[` $offsets `]` (`mask` $mask^)? (`other` $other^)? (`full` $full^)? attr-dict
    `:` type($offsets) (`,` type($base)^)? `->` type($result)
  }];
  let hasVerifier = 1;
}

def TTM_StoreOp : TTM_AccessOp<"store", [AttrSizedOperandSegments, MemoryEffects<[MemWrite]>]> {
  let summary = "Writes a tile to base + offsets";
  let description = [{
    The counterpart of `ttm.load`: where the mask is false nothing is written. Of the threads that hold copies of an element
    the first writes it.
  }];
  let arguments = (ins TT_Value:$value, Optional<TT_PtrType>:$base, TTM_Offsets:$offsets, Optional<TT_BoolLike>:$mask,
                       Optional<I1>:$full, DefaultValuedAttr<I32Attr, "1">:$width,
                       DefaultValuedAttr<I32Attr, "1">:$mask_width,
                       DefaultValuedAttr<I32Attr, "1">:$mask_run, UnitAttr:$unaligned);
  let assemblyFormat = [{
    $value `,` ($base^)? `[` $offsets `]` (`mask` $mask^)? (`full` $full^)? attr-dict
    `:` type($value) `,` type($offsets) (`,` type($base)^)?
  }];
  let hasVerifier = 1;
}

def TTM_AtomicRMWOp : TTM_AccessOp<"atomic_rmw", [AttrSizedOperandSegments, MemoryEffects<[MemRead, MemWrite]>,
    AllTypesMatch<["value", "result"]>]> {
  let summary = "Updates each element at base + offsets atomically; the result is what was there";
  let description = [{
    An element is updated once, however many threads hold copies of it. Without a base, the offsets are addresses in bytes.

    ```mlir
    %old = ttm.atomic_rmw add, relaxed, gpu, %x[%offsets], %v
         : tensor<16xi32, #l>, !tt.ptr<i32>, tensor<16xi32, #l>
    ```
  }];
  let arguments = (ins TT_RMWOp:$kind, TT_MemSemantic:$sem, TT_MemSyncScope:$scope,
                       TTM_Offsets:$offsets, TT_Value:$value, Optional<TT_PtrType>:$base, Optional<TT_BoolLike>:$mask);
  let results = (outs TT_Value:$result);
  let assemblyFormat = [{
    $kind `,` $sem `,` $scope `,` ($base^)? `[` $offsets `]` `,` $value (`mask` $mask^)? attr-dict
    `:` custom<AtomicTypes>(type($offsets), type($base), type($value))
  }];
}

def TTM_AtomicCASOp : TTM_Op<"atomic_cas", [MemoryEffects<[MemRead, MemWrite]>,
    AllTypesMatch<["compare", "value", "result"]>]> {
  let summary = "Puts a value where another is found at base + offsets, atomically; the result is what was there";
  let description = "The bits of floating-point numbers are compared.";
  let arguments = (ins TT_MemSemantic:$sem, TT_MemSyncScope:$scope, TTM_Offsets:$offsets, TT_Value:$compare,
                       TT_Value:$value, Optional<TT_PtrType>:$base);
  let results = (outs TT_Value:$result);
  let assemblyFormat = [{
    $sem `,` $scope `,` ($base^)? `[` $offsets `]` `,` $compare `,` $value attr-dict
    `:` custom<AtomicTypes>(type($offsets), type($base), type($value))
  }];
}

#endif

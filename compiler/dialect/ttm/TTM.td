// The whole dialect in one file, from which everything generated is made.

#ifndef TRITON_METAL_DIALECT_TTM_TD
#define TRITON_METAL_DIALECT_TTM_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinTypes.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/TensorEncoding.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

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
                           "::mlir::ub::UBDialect"];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let extraClassDeclaration = [{
    void registerTypes();
    void registerAttributes();
    static constexpr ::llvm::StringLiteral getNumSimdgroupsAttrName() { return "ttm.num_simdgroups"; }
    static constexpr ::llvm::StringLiteral getThreadsAttrName() { return "ttm.threads"; }
    /// Elements of one device access of a load or store.
    static constexpr ::llvm::StringLiteral getWidthAttrName() { return "ttm.width"; }
    /// Registers whose mask is one and the same.
    static constexpr ::llvm::StringLiteral getMaskWidthAttrName() { return "ttm.mask_width"; }
    /// Of a module: the most stages in which a loop of it loads tiles.
    static constexpr ::llvm::StringLiteral getPipelineStagesAttrName() { return "ttm.pipeline_stages"; }
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
    It is lowered to a renaming of registers, to shuffles within the SIMD-group, or to a round through threadgroup
    memory, whichever is the least that will do.
  }];
  let arguments = (ins AnyRankedTensor:$src);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$src attr-dict `:` type($src) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def TTM_AllocTileOp : TTM_Op<"alloc_tile"> {
  let summary = "Threadgroup memory for a tile";
  let results = (outs Res<TTM_TileType, "", [MemAlloc<TTM_ThreadgroupMemory>]>:$tile);
  let assemblyFormat = "attr-dict `:` qualified(type($tile))";
}

def TTM_NextSlotOp : TTM_Op<"next_slot", [Pure]> {
  let summary = "The slot behind another one of a tile, the first behind the last";
  let arguments = (ins I32:$slot, ConfinedAttr<I32Attr, [IntMinValue<2>]>:$slots);
  let results = (outs I32:$result);
  let assemblyFormat = "$slot `of` $slots attr-dict `:` type($result)";
}

def TTM_StoreTileOp : TTM_Op<"store_tile"> {
  let summary = "Writes a tensor to a tile";
  let description = [{
    With `offsets`, only the part of the tensor that begins there and has the tile's shape is written. Integers may be
    stored to a tile of floating-point elements that holds their values exactly.

    ```mlir
    ttm.store_tile %a, %tile[%slot] : tensor<64x32xf16, #l>, !ttm.tile<64x32xf16, row_pad = 8, slots = 2>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$src, Arg<TTM_TileType, "", [MemWrite<TTM_ThreadgroupMemory>]>:$tile,
                       Optional<I32>:$slot, OptionalAttr<DenseI64ArrayAttr>:$offsets);
  let assemblyFormat = "$src `,` $tile (`[` $slot^ `]`)? attr-dict `:` type($src) `,` qualified(type($tile))";
  let hasVerifier = 1;
}

def TTM_LoadTileOp : TTM_Op<"load_tile", [AttrSizedOperandSegments]> {
  let summary = "Reads a tile into a tensor of any layout";
  let description = [{
    With `row`, only the part of the tile that has this index along the first dimension is read, and the result has no such
    dimension.

    ```mlir
    %a_k = ttm.load_tile %tile row %k : !ttm.tile<32x64xf16, row_pad = 8> -> tensor<64xf16, #l>
    ```
  }];
  let arguments = (ins Arg<TTM_TileType, "", [MemRead<TTM_ThreadgroupMemory>]>:$tile, Optional<I32>:$slot, Optional<I32>:$row);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $tile (`[` $slot^ `]`)? (`row` $row^)? attr-dict `:` qualified(type($tile)) `->` type($result)
  }];
  let hasVerifier = 1;
}

def TTM_MMAOp : TTM_Op<"mma", [AttrSizedOperandSegments, AllTypesMatch<["acc", "result"]>]> {
  let summary = "acc + a · b on simdgroup matrices";
  let description = [{
    `a` and `b` are tiles, or tensors in the operand layout that belongs to the accumulator's. A transposed tile is
    stored as [k][m] (a) or [n][k] (b). `k_offset` is where in K a register operand is taken from when the other is a
    tile of fewer k.

    ```mlir
    %d = ttm.mma %a[%slot], %b[%slot], %c {b_transposed}
        : !ttm.tile<64x32xf16, slots = 2>, !ttm.tile<64x32xf16, slots = 2>, tensor<64x64xf32, #mma>
    ```
  }];
  // The accumulator comes first, so that its place does not depend on the optional operands: the type of the result is
  // inferred from it.
  let arguments = (ins AnyRankedTensor:$acc,
                       Arg<TTM_TileOrTensor, "", [MemRead<TTM_ThreadgroupMemory>]>:$a, Optional<I32>:$aSlot,
                       Arg<TTM_TileOrTensor, "", [MemRead<TTM_ThreadgroupMemory>]>:$b, Optional<I32>:$bSlot,
                       UnitAttr:$a_transposed, UnitAttr:$b_transposed,
                       DefaultValuedAttr<I64Attr, "0">:$k_offset);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $a (`[` $aSlot^ `]`)? `,` $b (`[` $bSlot^ `]`)? `,` $acc attr-dict `:` type($a) `,` type($b) `,` type($acc)
  }];
  let extraClassDeclaration = [{
    int64_t getM();
    int64_t getN();
    /// The terms that this operation adds up.
    int64_t getK();
  }];
  let hasVerifier = 1;
}

#endif

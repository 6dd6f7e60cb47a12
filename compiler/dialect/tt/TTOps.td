// Operations on values: programs, tiles, arithmetic, dot, and debugging.

#ifndef TRITON_METAL_DIALECT_TT_OPS_TD
#define TRITON_METAL_DIALECT_TT_OPS_TD

include "dialect/tt/TTTypes.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/Interfaces/CastInterfaces.td"
include "mlir/Interfaces/InferIntRangeInterface.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

// The sizes of every tile of an operation are powers of two, and it has at most 2^20 elements.
def TT_TileSizes : NativeOpTrait<"TileSizes"> {
  let cppNamespace = "::triton_metal::tt";
}

// All operands and results with a layout have the same layout.
def TT_SameEncoding : NativeOpTrait<"SameEncoding"> {
  let cppNamespace = "::triton_metal::tt";
}
// All operands with a layout have the same layout.
def TT_SameOperandsEncoding : NativeOpTrait<"SameOperandsEncoding"> {
  let cppNamespace = "::triton_metal::tt";
}

class TT_Op<string mnemonic, list<Trait> traits = []> : Op<TT_Dialect, mnemonic, !listconcat(traits, [TT_TileSizes])>;

// An operation with one operand and one result, whose types are written out.
class TT_UnaryOp<string mnemonic, Type source, Type target, list<Trait> traits = []>
    : TT_Op<mnemonic, !listconcat(traits, [Pure])> {
  let arguments = (ins source:$src);
  let results = (outs target:$result);
  let assemblyFormat = "$src attr-dict `:` type($src) `->` type($result)";
}

//===----------------------------------------------------------------------===//
// The program and its grid
//===----------------------------------------------------------------------===//

class TT_ProgramOp<string mnemonic, string least>
    : TT_Op<mnemonic, [Pure, DeclareOpInterfaceMethods<InferIntRangeInterface, ["inferResultRanges"]>]> {
  let arguments = (ins TT_ProgramDim:$axis);
  let results = (outs I32:$result);
  let assemblyFormat = "$axis attr-dict `:` type($result)";
  let builders = [OpBuilder<(ins "int":$axis), [{
    build($_builder, $_state, $_builder.getI32Type(), static_cast<ProgramDim>(axis));
  }]>];
  let extraClassDeclaration = "int32_t getAxisAsInt() { return static_cast<int32_t>(getAxis()); }";
  let extraClassDefinition = [{
    void $cppClass::inferResultRanges(::llvm::ArrayRef<::mlir::ConstantIntRanges>,
                                      ::mlir::SetIntRangeFn setResultRange) {
      setResultRange(getResult(), ::mlir::ConstantIntRanges::fromSigned(
        ::llvm::APInt(32, }] # least # [{), ::llvm::APInt::getSignedMaxValue(32)));
    }
  }];
}

def TT_GetProgramIdOp : TT_ProgramOp<"get_program_id", "0"> {
  let summary = "The place of this program along one axis of the grid";
}

def TT_GetNumProgramsOp : TT_ProgramOp<"get_num_programs", "1"> {
  let summary = "The length of the grid along one axis";
}

//===----------------------------------------------------------------------===//
// Making and reshaping tiles
//===----------------------------------------------------------------------===//

def TT_MakeRangeOp : TT_Op<"make_range",
    [Pure, DeclareOpInterfaceMethods<InferIntRangeInterface, ["inferResultRanges"]>]> {
  let summary = "The integers from `start` up to, and without, `end`";
  let description = [{
    ```mlir
    %0 = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
    ```
  }];
  let arguments = (ins I32Attr:$start, I32Attr:$end);
  let results = (outs TT_IntTensor:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def TT_SplatOp : TT_UnaryOp<"splat", TT_Scalar, TT_Tensor,
    [SameOperandsAndResultElementType, DeclareOpInterfaceMethods<InferIntRangeInterface, ["inferResultRanges"]>]> {
  let summary = "A tile that has one scalar everywhere";
  let hasFolder = 1;
}

def TT_UnsplatOp : TT_Op<"unsplat", [Pure,
    TypesMatchWith<"the result is the tensor's element", "src", "result",
                   "::mlir::cast<::mlir::RankedTensorType>($_self).getElementType()">]> {
  let summary = "The scalar in a tile of one element";
  let arguments = (ins TT_Tensor:$src);
  let results = (outs TT_Scalar:$result);
  let assemblyFormat = "$src attr-dict `:` type($src)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def TT_BroadcastOp : TT_UnaryOp<"broadcast", TT_Tensor, TT_Tensor,
    [SameOperandsAndResultElementType, DeclareOpInterfaceMethods<InferIntRangeInterface, ["inferResultRanges"]>]> {
  let summary = "Repeats a tile along dimensions in which it has size 1";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def TT_ExpandDimsOp : TT_Op<"expand_dims", [Pure, SameOperandsAndResultElementType,
    DeclareOpInterfaceMethods<InferIntRangeInterface, ["inferResultRanges"]>]> {
  let summary = "Inserts a dimension of size 1 before dimension `axis`";
  let arguments = (ins TT_Tensor:$src, I32Attr:$axis);
  let results = (outs TT_Tensor:$result);
  let assemblyFormat = "$src attr-dict `:` type($src) `->` type($result)";
  let builders = [OpBuilder<(ins "::mlir::Value":$src, "int":$axis)>];
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def TT_ReshapeOp : TT_Op<"reshape", [Pure, SameOperandsAndResultElementType,
    DeclareOpInterfaceMethods<InferIntRangeInterface, ["inferResultRanges"]>]> {
  let summary = "The same elements in another shape";
  let description = [{
    Elements keep their row-major order, unless `allow_reorder` says that any order will do.
  }];
  let arguments = (ins TT_Tensor:$src, UnitAttr:$allow_reorder, UnitAttr:$efficient_layout);
  let results = (outs TT_Tensor:$result);
  let assemblyFormat = [{
    $src (`allow_reorder` $allow_reorder^)? (`efficient_layout` $efficient_layout^)? attr-dict
    `:` type($src) `->` type($result)
  }];
  let builders = [OpBuilder<(ins "::mlir::Type":$type, "::mlir::Value":$src), [{
    build($_builder, $_state, type, src, false, false);
  }]>];
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def TT_TransOp : TT_Op<"trans", [Pure, SameOperandsAndResultElementType,
    DeclareOpInterfaceMethods<InferIntRangeInterface, ["inferResultRanges"]>]> {
  let summary = "Permutes dimensions: dimension `i` of the result is dimension `order[i]` of the operand";
  let arguments = (ins TT_Tensor:$src, DenseI32ArrayAttr:$order);
  let results = (outs TT_Tensor:$result);
  let assemblyFormat = "$src attr-dict `:` type($src) `->` type($result)";
  let builders = [OpBuilder<(ins "::mlir::Value":$src, "::llvm::ArrayRef<int32_t>":$order)>];
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def TT_JoinOp : TT_Op<"join", [Pure, SameTypeOperands,
    DeclareOpInterfaceMethods<InferIntRangeInterface, ["inferResultRanges"]>]> {
  let summary = "Two tiles side by side in a new last dimension of size 2";
  let arguments = (ins TT_Tensor:$lhs, TT_Tensor:$rhs);
  let results = (outs TT_Tensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($lhs) `->` type($result)";
  let builders = [OpBuilder<(ins "::mlir::Value":$lhs, "::mlir::Value":$rhs)>];
  let hasVerifier = 1;
  let hasFolder = 1;
}

def TT_SplitOp : TT_Op<"split", [Pure, AllTypesMatch<["outLHS", "outRHS"]>]> {
  let summary = "The two halves of a tile whose last dimension has size 2";
  let arguments = (ins TT_Tensor:$src);
  let results = (outs TT_Tensor:$outLHS, TT_Tensor:$outRHS);
  let assemblyFormat = "$src attr-dict `:` type($src) `->` type($outLHS)";
  let builders = [OpBuilder<(ins "::mlir::Value":$src)>];
  let hasVerifier = 1;
  let hasFolder = 1;
}

def TT_CatOp : TT_Op<"cat", [Pure, SameTypeOperands, SameOperandsAndResultElementType]> {
  let summary = "Two tiles after one another; the order of elements in the result is open";
  let arguments = (ins TT_Tensor:$lhs, TT_Tensor:$rhs);
  let results = (outs TT_Tensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($lhs) `->` type($result)";
  let hasVerifier = 1;
}

def TT_GatherOp : TT_Op<"gather", [Pure]> {
  let summary = "Elements of a tile chosen along one axis by a tile of indices";
  let arguments = (ins TT_Tensor:$src, TT_IntTensor:$indices, I32Attr:$axis, UnitAttr:$efficient_layout);
  let results = (outs TT_Tensor:$result);
  let assemblyFormat = "$src `[` $indices `]` attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def TT_HistogramOp : TT_Op<"histogram", [Pure,
    TypesMatchWith<"the mask has the tile's shape", "src", "mask", "::triton_metal::tt::getMaskTypeOf($_self)",
                   "!this->getMask() || std::equal_to<>()">]> {
  let summary = "How many elements of a tile fall on each of the integers from 0";
  let arguments = (ins TT_IntTensor:$src, Optional<TT_BoolLike>:$mask);
  let results = (outs TT_IntTensor:$result);
  let assemblyFormat = "$src (`,` $mask^)? attr-dict `:` type($src) `->` type($result)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Arithmetic that arith and math do not have
//===----------------------------------------------------------------------===//

class TT_ElementwiseOp<string mnemonic, list<Trait> traits = []>
    : TT_Op<mnemonic, !listconcat(traits, [Pure, Elementwise, SameOperandsAndResultShape])>;

class TT_SameTypeOp<string mnemonic> : TT_ElementwiseOp<mnemonic, [SameOperandsAndResultType]>;

def TT_MulhiUIOp : TT_SameTypeOp<"mulhiui"> {
  let summary = "The upper half of the double-width product of unsigned integers";
  let arguments = (ins TT_IntLike:$x, TT_IntLike:$y);
  let results = (outs TT_IntLike:$result);
  let assemblyFormat = "$x `,` $y attr-dict `:` type($x)";
  let hasFolder = 1;
}

def TT_PreciseSqrtOp : TT_SameTypeOp<"precise_sqrt"> {
  let summary = "Square root, correctly rounded";
  let arguments = (ins TT_FloatLike:$x);
  let results = (outs TT_FloatLike:$result);
  let assemblyFormat = "$x attr-dict `:` type($x)";
}

class TT_DivOp<string mnemonic> : TT_SameTypeOp<mnemonic> {
  let arguments = (ins TT_FloatLike:$x, TT_FloatLike:$y);
  let results = (outs TT_FloatLike:$result);
  let assemblyFormat = "$x `,` $y attr-dict `:` type($x)";
}
def TT_PreciseDivFOp : TT_DivOp<"precise_divf"> {
  let summary = "Quotient, correctly rounded";
}
def TT_ApproxDivFOp : TT_DivOp<"approx_divf"> {
  let summary = "Quotient, as fast as the device can";
}

def TT_ClampFOp : TT_SameTypeOp<"clampf"> {
  let summary = "A number held between two bounds";
  let arguments = (ins TT_FloatLike:$x, TT_FloatLike:$min, TT_FloatLike:$max, TT_PropagateNan:$propagateNan);
  let results = (outs TT_FloatLike:$result);
  let assemblyFormat = [{
    $x `,` $min `,` $max `,` `propagateNan` `=` $propagateNan attr-dict `:` type($result)
  }];
}

class TT_CastOp<string mnemonic, Type source, Type target, list<Trait> traits = []>
    : TT_UnaryOp<mnemonic, source, target,
                 !listconcat(traits, [Elementwise, SameOperandsAndResultShape, TT_SameEncoding])>;

def TT_BitcastOp : TT_CastOp<"bitcast", TT_Value, TT_Value> {
  let summary = "The same bits as another type of the same width";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def TT_IntToPtrOp : TT_CastOp<"int_to_ptr", TT_IntLike, TT_PtrLike> {
  let summary = "A pointer from an address";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def TT_PtrToIntOp : TT_CastOp<"ptr_to_int", TT_PtrLike, TT_IntLike> {
  let summary = "The address of a pointer";
  let hasVerifier = 1;
}

def TT_FpToFpOp : TT_ElementwiseOp<"fp_to_fp", [TT_SameEncoding]> {
  let summary = "Converts between floating-point types; `rounding` is needed where it narrows";
  let arguments = (ins TT_FloatLike:$src, OptionalAttr<TT_RoundingMode>:$rounding);
  let results = (outs TT_FloatLike:$result);
  let assemblyFormat = "$src attr-dict (`,` `rounding` `=` $rounding^)? `:` type($src) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def TT_AddPtrOp : TT_ElementwiseOp<"addptr", [AllTypesMatch<["ptr", "result"]>]> {
  let summary = "A pointer moved by a number of elements (not bytes)";
  let arguments = (ins TT_PtrLike:$ptr, TT_IntLike:$offset);
  let results = (outs TT_PtrLike:$result);
  let assemblyFormat = "$ptr `,` $offset attr-dict `:` type($result) `,` type($offset)";
  let hasFolder = 1;
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Dot
//===----------------------------------------------------------------------===//

def TT_DotOp : TT_Op<"dot", [Pure, AllTypesMatch<["c", "d"]>]> {
  let summary = "d = a · b + c, on matrices or on batches of them";
  let description = [{
    ```mlir
    %d = tt.dot %a, %b, %c, inputPrecision = tf32 : tensor<64x32xf16> * tensor<32x64xf16> -> tensor<64x64xf32>
    ```
    `inputPrecision` says how exactly fp32 operands are taken, and `ieee` is the default.
  }];
  let arguments = (ins TT_NumberTensor:$a, TT_NumberTensor:$b, TT_NumberTensor:$c,
                       DefaultValuedAttr<TT_InputPrecision, "::triton_metal::tt::InputPrecision::IEEE">:$inputPrecision,
                       DefaultValuedAttr<I32Attr, "0">:$maxNumImpreciseAcc);
  let results = (outs TT_NumberTensor:$d);
  let assemblyFormat = [{
    $a `,` $b `,` $c (`,` `inputPrecision` `=` $inputPrecision^)? attr-dict
    `:` type($a) `*` type($b) `->` type($d)
  }];
  let hasVerifier = 1;
}

def TT_DotScaledOp : TT_Op<"dot_scaled", [Pure, AttrSizedOperandSegments, AllTypesMatch<["c", "d"]>]> {
  let summary = "A dot of operands in small floats, each block of 32 with a scale of its own";
  let arguments = (ins TT_NumberTensor:$a, TT_NumberTensor:$b, TT_NumberTensor:$c, Optional<TT_NumberTensor>:$a_scale,
                       Optional<TT_NumberTensor>:$b_scale, TT_ScaleDotElemType:$a_elem_type,
                       TT_ScaleDotElemType:$b_elem_type, BoolAttr:$fastMath,
                       DefaultValuedAttr<BoolAttr, "true">:$lhs_k_pack,
                       DefaultValuedAttr<BoolAttr, "true">:$rhs_k_pack);
  let results = (outs TT_NumberTensor:$d);
  let assemblyFormat = [{
    $a (`scale` $a_scale^)? `,` $b (`scale` $b_scale^)? `,` $c `lhs` `=` $a_elem_type `rhs` `=` $b_elem_type attr-dict
    `:` type($a) (`,` type($a_scale)^)? `*` type($b) (`,` type($b_scale)^)? `->` type($d)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Debugging and foreign code
//===----------------------------------------------------------------------===//

def TT_PrintOp : TT_Op<"print", [MemoryEffects<[MemWrite]>]> {
  let summary = "Prints values at run time";
  let arguments = (ins StrAttr:$prefix, BoolAttr:$hex, Variadic<TT_Value>:$args, DenseI32ArrayAttr:$isSigned);
  let assemblyFormat = "$prefix attr-dict (`:` $args^ `:` type($args))?";
  let hasVerifier = 1;
}

def TT_AssertOp : TT_Op<"assert", [MemoryEffects<[MemWrite]>]> {
  let summary = "Stops the program when a condition is false";
  let arguments = (ins TT_IntLike:$condition, StrAttr:$message);
  let assemblyFormat = "$condition `,` $message attr-dict `:` type($condition)";
}

def TT_ExternElementwiseOp : TT_Op<"extern_elementwise", [Elementwise, TT_SameEncoding,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>, ConditionallySpeculatable]> {
  let summary = "Calls a named function of a device library on every element";
  let arguments = (ins Variadic<TT_Value>:$srcs, StrAttr:$libname, StrAttr:$libpath, StrAttr:$symbol, BoolAttr:$pure);
  let results = (outs TT_Value:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, $result)";
  let extraClassDeclaration = [{
    ::mlir::Speculation::Speculatability getSpeculatability() {
      return getPure() ? ::mlir::Speculation::Speculatable : ::mlir::Speculation::NotSpeculatable;
    }
  }];
}

def TT_ElementwiseInlineAsmOp : TT_Op<"elementwise_inline_asm", [Elementwise, TT_SameEncoding,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "Assembler text for every element; it parses, so that the refusal can say where it stands";
  let arguments = (ins StrAttr:$asm_string, StrAttr:$constraints, BoolAttr:$pure, I32Attr:$packed_element,
                       Variadic<TT_Value>:$args);
  let results = (outs Variadic<TT_Value>:$result);
  let assemblyFormat = "$asm_string attr-dict ($args^ `:` type($args))? `->` type($result)";
}

#endif

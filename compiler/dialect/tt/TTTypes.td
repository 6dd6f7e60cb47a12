// Types, enums and attributes.

#ifndef TRITON_METAL_DIALECT_TT_TYPES_TD
#define TRITON_METAL_DIALECT_TT_TYPES_TD

include "dialect/tt/TTDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinTypes.td"
include "mlir/IR/EnumAttr.td"

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

def TT_PtrType : TypeDef<TT_Dialect, "Ptr"> {
  let mnemonic = "ptr";
  let summary = "A pointer to scalars in one address space, or a block pointer";
  let description = [{
    `!tt.ptr<f32>` points to `f32` in the address space 1, which is a kernel's device memory, and
    `!tt.ptr<f32, 3>` to one in another. Triton 3.9 prints names: "global" is 1, "constant" (memory that the
    kernel only reads) is 4, "descriptor" is 0. Tiles of pointers are tensors of it.
    `!tt.ptr<tensor<8x16xf32>>` is a block pointer: it holds the base, shape and strides of a tensor in memory and
    the offsets of one block in it.
  }];
  let parameters = (ins "::mlir::Type":$pointeeType, DefaultValuedParameter<"int", "1">:$addressSpace);
  let builders = [
    TypeBuilderWithInferredContext<(ins "::mlir::Type":$pointeeType, CArg<"int", "1">:$addressSpace), [{
      return $_get(pointeeType.getContext(), pointeeType, addressSpace);
    }]>
  ];
  let skipDefaultBuilders = 1;
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def TT_TensorDescType : TypeDef<TT_Dialect, "TensorDesc"> {
  let mnemonic = "tensordesc";
  let summary = "A tensor in memory that is accessed in blocks of one shape";
  let description = [{
    Triton 3.8 and 3.9 print `!tt.tensordesc<8x16xf32>`, and Triton 3.7 `!tt.tensordesc<tensor<8x16xf32>>`. The elements of
    an unsigned integer descriptor are `ui32` and so on; the tiles that it loads have signless ones.
  }];
  let parameters = (ins "::mlir::RankedTensorType":$blockType, "bool":$asTensor);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<int64_t> getShape() const { return getBlockType().getShape(); }
    int64_t getRank() const { return getBlockType().getRank(); }
    /// The type of a block as a value: its elements have no sign.
    ::mlir::RankedTensorType getTileType() const;
    /// The values that stand for a descriptor as an argument of a kernel: the base, the sizes and strides, whether
    /// elements outside are NaN, and whether what is loaded is rounded to tf32.
    unsigned getNumParts() const { return 3 + 2 * unsigned(getRank()); }
  }];
}

class TT_TensorLike<Type type, string what> : AnyTypeOf<[type, RankedTensorOf<[type]>], what>;

def TT_Float : AnyTypeOf<[AnyFloat], "floating point">;
def TT_Int : AnyTypeOf<[AnySignlessInteger], "integer">;
def TT_Bool : AnyTypeOf<[I1], "i1">;
def TT_FloatLike : TT_TensorLike<TT_Float, "a floating-point number or a tensor of them">;
def TT_IntLike : TT_TensorLike<TT_Int, "an integer or a tensor of integers">;
def TT_BoolLike : TT_TensorLike<TT_Bool, "an i1 or a tensor of i1">;
def TT_PtrLike : TT_TensorLike<TT_PtrType, "a pointer or a tensor of pointers">;
def TT_Scalar : AnyTypeOf<[TT_Float, TT_Int, TT_PtrType], "a scalar">;
def TT_Tensor : RankedTensorOf<[TT_Float, TT_Int, TT_PtrType]>;
def TT_Value : AnyTypeOf<[TT_Scalar, TT_Tensor], "a scalar or a tensor">;
def TT_IntTensor : RankedTensorOf<[TT_Int]>;
def TT_NumberTensor : RankedTensorOf<[TT_Float, TT_Int]>;

//===----------------------------------------------------------------------===//
// Enums
//===----------------------------------------------------------------------===//

class TT_Enum<string name, string summary, list<I32EnumAttrCase> cases> : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::triton_metal::tt";
}

def TT_CacheModifier : TT_Enum<"CacheModifier", "which caches an access uses", [
  I32EnumAttrCase<"NONE", 1, "none">, I32EnumAttrCase<"CA", 2, "ca">, I32EnumAttrCase<"CG", 3, "cg">,
  I32EnumAttrCase<"WB", 4, "wb">, I32EnumAttrCase<"CS", 5, "cs">, I32EnumAttrCase<"WT", 6, "wt">,
  I32EnumAttrCase<"CV", 7, "cv">]>;

def TT_EvictionPolicy : TT_Enum<"EvictionPolicy", "how soon a cache line may go", [
  I32EnumAttrCase<"NORMAL", 1, "evict_normal">, I32EnumAttrCase<"EVICT_FIRST", 2, "evict_first">,
  I32EnumAttrCase<"EVICT_LAST", 3, "evict_last">]>;

def TT_RMWOp : TT_Enum<"RMWOp", "what an atomic update does", [
  I32EnumAttrCase<"AND", 1, "and">, I32EnumAttrCase<"OR", 2, "or">, I32EnumAttrCase<"XOR", 3, "xor">,
  I32EnumAttrCase<"ADD", 4, "add">, I32EnumAttrCase<"FADD", 5, "fadd">, I32EnumAttrCase<"MAX", 6, "max">,
  I32EnumAttrCase<"MIN", 7, "min">, I32EnumAttrCase<"UMAX", 8, "umax">, I32EnumAttrCase<"UMIN", 9, "umin">,
  I32EnumAttrCase<"XCHG", 10, "exch">]>;

def TT_MemSemantic : TT_Enum<"MemSemantic", "the order of an atomic access", [
  I32EnumAttrCase<"RELAXED", 1, "relaxed">, I32EnumAttrCase<"ACQUIRE", 2, "acquire">,
  I32EnumAttrCase<"RELEASE", 3, "release">, I32EnumAttrCase<"ACQUIRE_RELEASE", 4, "acq_rel">]>;

def TT_MemSyncScope : TT_Enum<"MemSyncScope", "among whom an atomic access is ordered", [
  I32EnumAttrCase<"GPU", 1, "gpu">, I32EnumAttrCase<"CTA", 2, "cta">, I32EnumAttrCase<"SYSTEM", 3, "sys">]>;

def TT_RoundingMode : TT_Enum<"RoundingMode", "how a conversion rounds", [
  I32EnumAttrCase<"RTZ", 0, "rtz">, I32EnumAttrCase<"RTNE", 1, "rtne">]>;

def TT_PropagateNan : TT_Enum<"PropagateNan", "whether a NaN operand makes the result NaN", [
  I32EnumAttrCase<"NONE", 0, "none">, I32EnumAttrCase<"ALL", 0xFFFF, "all">]>;

def TT_InputPrecision : TT_Enum<"InputPrecision", "how exactly a dot takes its fp32 operands", [
  I32EnumAttrCase<"TF32", 0, "tf32">, I32EnumAttrCase<"TF32x3", 1, "tf32x3">, I32EnumAttrCase<"IEEE", 2, "ieee">,
  I32EnumAttrCase<"BF16x3", 3, "bf16x3">, I32EnumAttrCase<"BF16x6", 4, "bf16x6">]>;

def TT_ScaleDotElemType : TT_Enum<"ScaleDotElemType", "the elements of a scaled operand", [
  I32EnumAttrCase<"E4M3", 0, "e4m3">, I32EnumAttrCase<"E5M2", 1, "e5m2">, I32EnumAttrCase<"E2M3", 2, "e2m3">,
  I32EnumAttrCase<"E3M2", 3, "e3m2">, I32EnumAttrCase<"E2M1", 4, "e2m1">, I32EnumAttrCase<"BF16", 5, "bf16">,
  I32EnumAttrCase<"FP16", 6, "fp16">]>;

def TT_ProgramDim : TT_Enum<"ProgramDim", "an axis of the grid", [
  I32EnumAttrCase<"X", 0, "x">, I32EnumAttrCase<"Y", 1, "y">, I32EnumAttrCase<"Z", 2, "z">]> {
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

def TT_CachePolicyAttr : AttrDef<TT_Dialect, "CachePolicy"> {
  let mnemonic = "cache_policy";
  let summary = "Cache modifier and eviction policy of an access in one attribute, as Triton 3.9 prints them";
  let parameters = (ins EnumParameter<TT_CacheModifier>:$cache_modifier,
                        EnumParameter<TT_EvictionPolicy>:$eviction_policy);
  let assemblyFormat = "`<` struct(params) `>`";
}

#endif

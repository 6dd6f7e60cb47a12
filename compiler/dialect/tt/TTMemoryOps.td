// Operations that read and write memory.

#ifndef TRITON_METAL_DIALECT_TT_MEMORY_OPS_TD
#define TRITON_METAL_DIALECT_TT_MEMORY_OPS_TD

include "dialect/tt/TTOps.td"

// A type that follows from the pointer's type. Optional operands are checked if they are present.
class TT_FromPtr<string summary, string value, string function>
    : TypesMatchWith<summary, "ptr", value, "::triton_metal::tt::" # function # "($_self)">;
class TT_OptionalFromPtr<string summary, string value, string getter, string function>
    : TypesMatchWith<summary, "ptr", value, "::triton_metal::tt::" # function # "($_self)",
                     "!this->" # getter # "() || std::equal_to<>()">;

def TT_Result : TT_FromPtr<"the result has the type that the pointers point to", "result", "getPointeeTypeOf">;
def TT_Stored : TT_FromPtr<"the value has the type that the pointers point to", "value", "getPointeeTypeOf">;
def TT_Mask : TT_OptionalFromPtr<"the mask has the pointers' shape", "mask", "getMask", "getMaskTypeOf">;
def TT_Other
    : TT_OptionalFromPtr<"the other value has the type that the pointers point to", "other", "getOther",
                         "getPointeeTypeOf">;

defvar cacheArguments = (ins
  DefaultValuedAttr<TT_CacheModifier, "::triton_metal::tt::CacheModifier::NONE">:$cacheModifier,
  DefaultValuedAttr<TT_EvictionPolicy, "::triton_metal::tt::EvictionPolicy::NORMAL">:$evictionPolicy,
  OptionalAttr<TT_CachePolicyAttr>:$cachePolicy);

// Triton up to 3.8 prints modifier and policy separately, 3.9 as one attribute. Both are kept as they were read; these
// accessors return the effective values.
defvar cacheAccessors = [{
  CacheModifier getCache() {
    return getCachePolicy() ? getCachePolicy()->getCacheModifier() : getCacheModifier();
  }
  EvictionPolicy getEviction() {
    return getCachePolicy() ? getCachePolicy()->getEvictionPolicy() : getEvictionPolicy();
  }
}];

// The shapes of mask, value and result follow from the pointer's type. A block pointer has no shape itself.
def TT_LoadOp : TT_Op<"load", [AttrSizedOperandSegments, TT_SameEncoding, TT_Result, TT_Mask, TT_Other,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "Reads through a pointer or a tile of pointers";
  let description = [{
    Where the mask is false nothing is read, and the result is `other`, or undefined without it.

    A load through a block pointer has no mask. It checks the dimensions in `boundaryCheck`; outside of the tensor, the
    result is 0 (`padding = 1`) or NaN (`padding = 2`), or undefined without padding.

    ```mlir
    %0 = tt.load %ptr, %mask, %other evictionPolicy = evict_last : tensor<128x!tt.ptr<f32>>
    %1 = tt.load %block {boundaryCheck = array<i32: 0, 1>, padding = 1 : i32} : !tt.ptr<tensor<8x16xf32>>
    ```
  }];
  let arguments = !con((ins TT_PtrLike:$ptr, Optional<TT_BoolLike>:$mask, Optional<TT_Value>:$other), cacheArguments,
                       (ins DefaultValuedAttr<BoolAttr, "false">:$isVolatile,
                            OptionalAttr<DenseI32ArrayAttr>:$boundaryCheck, OptionalAttr<I32Attr>:$padding));
  let results = (outs TT_Value:$result);
  let assemblyFormat = [{
    $ptr (`,` $mask^)? (`,` $other^)?
    oilist(`cacheModifier` `=` $cacheModifier | `evictionPolicy` `=` $evictionPolicy) attr-dict `:` type($ptr)
  }];
  let builders = [
    OpBuilder<(ins "::mlir::Value":$ptr, CArg<"::mlir::Value", "{}">:$mask, CArg<"::mlir::Value", "{}">:$other)>
  ];
  let extraClassDeclaration = cacheAccessors;
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
}

def TT_StoreOp : TT_Op<"store", [TT_SameEncoding, TT_Stored, TT_Mask,
    MemoryEffects<[MemWrite]>]> {
  let summary = "Writes through a pointer or a tile of pointers, where the mask is true";
  let arguments = !con((ins Arg<TT_PtrLike, "", []>:$ptr, TT_Value:$value, Optional<TT_BoolLike>:$mask),
                       cacheArguments, (ins OptionalAttr<DenseI32ArrayAttr>:$boundaryCheck));
  let assemblyFormat = [{
    $ptr `,` $value (`,` $mask^)?
    oilist(`cacheModifier` `=` $cacheModifier | `evictionPolicy` `=` $evictionPolicy) attr-dict `:` type($ptr)
  }];
  let builders = [
    OpBuilder<(ins "::mlir::Value":$ptr, "::mlir::Value":$value, CArg<"::mlir::Value", "{}">:$mask)>
  ];
  let extraClassDeclaration = cacheAccessors;
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
}

def TT_AtomicRMWOp : TT_Op<"atomic_rmw", [SameOperandsAndResultShape, TT_SameEncoding,
    MemoryEffects<[MemRead, MemWrite]>,
    TypesMatchWith<"the value has the type that the pointers point to", "ptr", "val",
                   "::triton_metal::tt::getPointeeTypeOf($_self)">, TT_Result, TT_Mask]> {
  let summary = "Updates memory atomically and returns what was there";
  let description = [{
    ```mlir
    %old = tt.atomic_rmw fadd, acq_rel, gpu, %ptr, %value, %mask
        : (tensor<128x!tt.ptr<f32>>, tensor<128xf32>, tensor<128xi1>) -> tensor<128xf32>
    ```
    `max` and `min` take floats too, where NaN counts as missing. Stock's front end prints integers for them.
  }];
  let arguments = (ins TT_RMWOp:$atomic_rmw_op, TT_PtrLike:$ptr, TT_Value:$val, Optional<TT_BoolLike>:$mask,
                       TT_MemSemantic:$sem, TT_MemSyncScope:$scope);
  let results = (outs TT_Value:$result);
  let assemblyFormat = [{
    $atomic_rmw_op `,` $sem `,` $scope `,` $ptr `,` $val (`,` $mask^)? attr-dict
    `:` functional-type(operands, $result)
  }];
  let hasVerifier = 1;
}

def TT_AtomicCASOp : TT_Op<"atomic_cas", [SameOperandsAndResultShape, TT_SameEncoding,
    MemoryEffects<[MemRead, MemWrite]>,
    TypesMatchWith<"the compared value has the type that the pointers point to", "ptr", "cmp",
                   "::triton_metal::tt::getPointeeTypeOf($_self)">,
    TypesMatchWith<"the value has the type that the pointers point to", "ptr", "val",
                   "::triton_metal::tt::getPointeeTypeOf($_self)">, TT_Result]> {
  let summary = "Puts a value where another is found, atomically, and returns what was found";
  let arguments = (ins TT_PtrLike:$ptr, TT_Value:$cmp, TT_Value:$val, TT_MemSemantic:$sem, TT_MemSyncScope:$scope);
  let results = (outs TT_Value:$result);
  let assemblyFormat = [{
    $sem `,` $scope `,` $ptr `,` $cmp `,` $val attr-dict `:` functional-type(operands, $result)
  }];
}

def TT_AtomicLoadOp : TT_Op<"atomic_load", [SameOperandsAndResultShape, TT_SameEncoding,
    MemoryEffects<[MemRead, MemWrite]>, TT_Result, TT_Mask]> {
  let summary = "Reads memory atomically";
  let arguments = (ins TT_PtrLike:$ptr, Optional<TT_BoolLike>:$mask, TT_MemSemantic:$sem, TT_MemSyncScope:$scope);
  let results = (outs TT_Value:$result);
  let assemblyFormat = [{
    $sem `,` $scope `,` $ptr (`,` $mask^)? attr-dict `:` functional-type(operands, $result)
  }];
}

def TT_AtomicStoreOp : TT_Op<"atomic_store", [SameOperandsShape, TT_SameEncoding, MemoryEffects<[MemRead, MemWrite]>,
    TT_Stored, TT_Mask]> {
  let summary = "Writes memory atomically";
  let arguments = (ins TT_PtrLike:$ptr, TT_Value:$value, Optional<TT_BoolLike>:$mask, TT_MemSemantic:$sem,
                       TT_MemSyncScope:$scope);
  let assemblyFormat = "$sem `,` $scope `,` $ptr `,` $value (`,` $mask^)? attr-dict `:` type($ptr)";
}

def TT_AtomicPollOp : TT_Op<"atomic_poll", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Waits until memory holds a value, or for a time; true when it does";
  let arguments = (ins TT_PtrLike:$ptr, TT_Value:$expected, Optional<I64>:$timeout_ns, TT_MemSemantic:$sem,
                       TT_MemSyncScope:$scope);
  let results = (outs TT_BoolLike:$result);
  let assemblyFormat = [{
    $sem `,` $scope `,` $ptr `,` $expected (`timeout` $timeout_ns^)? attr-dict
    `:` type($ptr) `,` type($expected) `->` type($result)
  }];
}

#endif

// Block pointers and tensor descriptors.

#ifndef TRITON_METAL_DIALECT_TT_BLOCK_OPS_TD
#define TRITON_METAL_DIALECT_TT_BLOCK_OPS_TD

include "dialect/tt/TTMemoryOps.td"

//===----------------------------------------------------------------------===//
// Block pointers
//===----------------------------------------------------------------------===//

def TT_Offset : AnyTypeOf<[I32, I64], "an integer of 32 or 64 bits">;

def TT_MakeTensorPtrOp : TT_Op<"make_tensor_ptr", [Pure, AttrSizedOperandSegments,
    TypesMatchWith<"the base points to the block's elements", "result", "base",
                   "::triton_metal::tt::getBlockBaseType($_self)">]> {
  let summary = "A pointer to a block of a tensor in memory";
  let description = [{
    ```mlir
    %0 = tt.make_tensor_ptr %base, [%m, %n], [%sm, %sn], [%i, %j] {order = array<i32: 1, 0>} : <tensor<8x16xf32>>
    ```
    `order` lists the dimensions from the fastest one; the strides say the same, and the compiler reads only them.
    Offsets of 64 bits have their type behind the result's: `<tensor<8x16xf32>> at i64`.
  }];
  let arguments = (ins TT_PtrType:$base, Variadic<I64>:$shape, Variadic<I64>:$strides, Variadic<TT_Offset>:$offsets,
                       DenseI32ArrayAttr:$order);
  let results = (outs TT_PtrType:$result);
  let assemblyFormat = [{
    $base `,` `[` $shape `]` `,` `[` $strides `]` `,` `[` $offsets `]` attr-dict `:` type($result)
    `` custom<OffsetTypes>(type($offsets), ref($offsets))
  }];
  let hasVerifier = 1;
}

def TT_AdvanceOp : TT_Op<"advance", [Pure, AllTypesMatch<["ptr", "result"]>]> {
  let summary = "A block pointer whose offsets are moved";
  let arguments = (ins TT_PtrType:$ptr, Variadic<I32>:$offsets);
  let results = (outs TT_PtrType:$result);
  let assemblyFormat = "$ptr `,` `[` $offsets `]` attr-dict `:` type($result)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Tensor descriptors
//===----------------------------------------------------------------------===//

def TT_DescriptorReduceKind : TT_Enum<"DescriptorReduceKind", "what a reduction into a descriptor's tensor does", [
  I32EnumAttrCase<"ADD", 1, "add">, I32EnumAttrCase<"MIN", 2, "min">, I32EnumAttrCase<"MAX", 3, "max">,
  I32EnumAttrCase<"AND", 6, "and">, I32EnumAttrCase<"OR", 7, "or">, I32EnumAttrCase<"XOR", 8, "xor">]>;

def TT_MakeTensorDescOp : TT_Op<"make_tensor_descriptor", [Pure, AttrSizedOperandSegments]> {
  let summary = "A descriptor of a tensor in memory";
  let description = [{
    Outside of the tensor nothing is accessed, and a load gives 0 (`padding = 1`, or no padding) or NaN (`padding = 2`).

    ```mlir
    %0 = tt.make_tensor_descriptor %base, [%m, %n], [%sm, %c1] {padding = 2 : i32} : <f32>, <8x16xf32>
    ```
  }];
  let arguments = (ins TT_PtrType:$base, Variadic<I32>:$shape, Variadic<I64>:$strides, OptionalAttr<I32Attr>:$padding);
  let results = (outs TT_TensorDescType:$result);
  let assemblyFormat = [{
    $base `,` `[` $shape `]` `,` `[` $strides `]` attr-dict `:` type($base) `,` type($result)
  }];
  let hasVerifier = 1;
}

def TT_DescriptorLoadOp : TT_Op<"descriptor_load", [MemoryEffects<[MemRead]>]> {
  let summary = "Reads a block at offsets";
  let description = [{
    The result may lack dimensions of size 1.

    ```mlir
    %0 = tt.descriptor_load %desc[%i, %j] : !tt.tensordesc<8x16xf32> -> tensor<8x16xf32>
    ```
  }];
  let arguments = !con((ins TT_TensorDescType:$desc, Variadic<I32>:$indices), cacheArguments);
  let results = (outs TT_NumberTensor:$result);
  let assemblyFormat = [{
    $desc `[` $indices `]`
    oilist(`cacheModifier` `=` $cacheModifier | `evictionPolicy` `=` $evictionPolicy) attr-dict
    `:` qualified(type($desc)) `->` type($result)
  }];
  let hasVerifier = 1;
}

def TT_DescriptorStoreOp : TT_Op<"descriptor_store", [MemoryEffects<[MemWrite]>]> {
  let summary = "Writes a block at offsets";
  let arguments = (ins TT_TensorDescType:$desc, TT_NumberTensor:$src, Variadic<I32>:$indices);
  let assemblyFormat = "$desc `[` $indices `]` `,` $src attr-dict `:` qualified(type($desc)) `,` type($src)";
  let hasVerifier = 1;
}

def TT_DescriptorReduceOp : TT_Op<"descriptor_reduce", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Combines a block at offsets with another atomically";
  let description = [{
    ```mlir
    tt.descriptor_reduce add, %desc[%i, %j], %x : !tt.tensordesc<8x16xui32>, tensor<8x16xi32>
    ```
  }];
  let arguments = (ins TT_DescriptorReduceKind:$kind, TT_TensorDescType:$desc, TT_NumberTensor:$src,
                       Variadic<I32>:$indices);
  let assemblyFormat = [{
    $kind `,` $desc `[` $indices `]` `,` $src attr-dict `:` qualified(type($desc)) `,` type($src)
  }];
  let hasVerifier = 1;
}

def TT_DescriptorGatherOp : TT_Op<"descriptor_gather", [MemoryEffects<[MemRead]>]> {
  let summary = "Reads rows of a tensor";
  let description = [{
    The descriptor's blocks are parts of one row.

    ```mlir
    %0 = tt.descriptor_gather %desc[%rows, %j] : (!tt.tensordesc<1x16xf32>, tensor<8xi32>, i32) -> tensor<8x16xf32>
    ```
  }];
  let arguments = (ins TT_TensorDescType:$desc, TT_IntTensor:$x_offsets, I32:$y_offset);
  let results = (outs TT_NumberTensor:$result);
  let assemblyFormat = "$desc `[` $x_offsets `,` $y_offset `]` attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def TT_DescriptorScatterOp : TT_Op<"descriptor_scatter", [MemoryEffects<[MemWrite]>]> {
  let summary = "Writes rows of a tensor";
  let arguments = (ins TT_TensorDescType:$desc, TT_IntTensor:$x_offsets, I32:$y_offset, TT_NumberTensor:$src);
  let assemblyFormat = "$desc `[` $x_offsets `,` $y_offset `]` `,` $src attr-dict `:` type(operands)";
  let hasVerifier = 1;
}

#endif

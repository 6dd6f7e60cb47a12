//===- MSL.td - what one thread does, as Metal offers it ------------------===//
//
// The `msl` dialect has three forms. In the value form a thread's share of a tile is one value, `vector<RxT>`, whose
// element r is register r of the layout. In the loop form (made by `msl-loops-pipeline`) what is larger than a Metal vector
// lives in register arrays, and loops of constant trip count go over them. The text form (made by `msl-text-pipeline`) has
// C++'s types, operators and variables, and the printer writes it one-to-one: MSLText.td.
//
//===----------------------------------------------------------------------===//

#ifndef TRITON_METAL_DIALECT_MSL
#define TRITON_METAL_DIALECT_MSL

include "mlir/IR/OpBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinTypeInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/InferIntRangeInterface.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "dialect/msl/MSLAttrs.td"
include "dialect/msl/MSLInterfaces.td"
include "dialect/msl/MSLMatrixShape.td"

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

class MSL_Type<string name, string typeMnemonic> : TypeDef<MSL_Dialect, name> {
  let mnemonic = typeMnemonic;
}

def MSL_PtrType : MSL_Type<"Ptr", "ptr"> {
  let summary = "a pointer into one of Metal's address spaces";
  let description = [{
    `!msl.ptr<f32, device>` is `device float *`. The element is an integer of 1 (bool), 8, 16, 32 or 64 bits, or f16, bf16
    or f32. Arithmetic counts elements.
  }];
  let parameters = (ins "::mlir::Type":$elementType, EnumParameter<MSL_AddressSpace>:$space);
  let assemblyFormat = "`<` $elementType `,` $space `>`";
  let builders = [TypeBuilderWithInferredContext<
      (ins "::mlir::Type":$elementType, "::triton_metal::msl::AddressSpace":$space),
      [{ return $_get(elementType.getContext(), elementType, space); }]>];
  let genVerifyDecl = 1;
}


def MSL_MatrixType : MSL_Type<"Matrix", "matrix"> {
  let summary = "a simdgroup matrix: a fragment that the lanes of a SIMD-group share";
  let description = [{
    `!msl.matrix<8x8xf32>` is `simdgroup_float8x8`. A thread holds two of its elements, one row's neighbours; in general,
    rows * columns / 32.
  }];
  let parameters = (ins "::triton_metal::msl::FragmentShape":$shape, "::mlir::Type":$elementType);
  let hasCustomAssemblyFormat = 1;
  let builders = [TypeBuilderWithInferredContext<(ins "::triton_metal::msl::FragmentShape":$shape, "::mlir::Type":$elementType),
                                                 [{ return $_get(elementType.getContext(), shape, elementType); }]>];
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Elements that a thread holds.
    int64_t getNumRegisters() const { return getShape().getNumRegisters(); }
  }];
}

def MSL_ArrayType : MSL_Type<"Array", "array"> {
  let summary = "a variable of this thread: an array of numbers, of Metal vectors or of simdgroup matrices";
  let description = "`!msl.array<8 x vector<4xf32>>` is `float4 x[8]`; with one element it is a plain variable.";
  let parameters = (ins "int64_t":$count, "::mlir::Type":$elementType);
  let hasCustomAssemblyFormat = 1;
  let builders = [TypeBuilderWithInferredContext<(ins "int64_t":$count, "::mlir::Type":$elementType),
      [{ return $_get(elementType.getContext(), count, elementType); }]>];
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The matrices that it holds; null where it holds something else.
    MatrixType getMatrixType() const { return ::mlir::dyn_cast<MatrixType>(getElementType()); }
    bool isMatrix() const { return bool(getMatrixType()); }
    /// The number that an element is made of.
    ::mlir::Type getScalarType() const;
    /// What `msl.get` gives for a whole element: what this thread holds of a matrix.
    ::mlir::Type getValueType() const;
  }];
}

def MSL_MatrixArray : ConfinedType<MSL_ArrayType, [CPred<"::llvm::cast<::triton_metal::msl::ArrayType>($_self).isMatrix()">],
                                   "an array of simdgroup matrices">;

// Unsigned integers are of the text form alone, as are indices and offsets of 16 bits or without a sign.
def MSL_ScalarInt : AnyTypeOf<[I1, I8, I16, I32, I64, UI8, UI16, UI32, UI64],
                              "an integer of 1, 8, 16, 32 or 64 bits">;
def MSL_Index : AnyTypeOf<[I32, I64, UI16, UI32, UI64], "an index">;
// f64 is of the value form alone: `msl-emulate-types` makes its numbers the integers that hold their bits.
def MSL_ScalarFloat : AnyTypeOf<[F16, BF16, F32, F64], "f16, bf16, f32 or f64">;
def MSL_Scalar : AnyTypeOf<[MSL_ScalarInt, MSL_ScalarFloat], "a number">;
def MSL_Value : AnyTypeOf<[MSL_Scalar, VectorOfRankAndType<[1], [MSL_Scalar]>],
                          "a number or a vector of registers">;
def MSL_Element : AnyTypeOf<[MSL_Value, MSL_PtrType], "what a variable holds">;
def MSL_Vector : VectorOfRankAndType<[1], [MSL_Scalar]>;
def MSL_Mask : AnyTypeOf<[I1, VectorOfRankAndType<[1], [I1]>], "i1, or a vector of i1">;
def MSL_Offset : AnyTypeOf<[MSL_Index, VectorOfRankAndType<[1], [I32, I64]>],
                           "i32 or i64, or a vector of them">;
def MSL_Addresses : AnyTypeOf<[I64, VectorOfRankAndType<[1], [I64]>], "i64, or a vector of i64">;
def MSL_MmaOperand : AnyTypeOf<[MSL_PtrType, MSL_Vector], "a pointer, or fragments in registers">;

//===----------------------------------------------------------------------===//
// Operations: the kernel
//===----------------------------------------------------------------------===//

class MSL_Op<string mnemonic, list<Trait> traits = []> : Op<MSL_Dialect, mnemonic, traits>;

def MSL_KernelOp : MSL_Op<"kernel", [FunctionOpInterface, IsolatedFromAbove]> {
  let summary = "a Metal compute kernel";
  let description = [{
    Pointer arguments are bound to buffers 0, 1, ... in their order. Scalars travel in one further buffer of 32-bit words
    behind them (64-bit scalars in two, the low word first), which the printer unpacks. `threads` is the number of
    threads of a threadgroup, `threadgroup_bytes` the memory that they share, once it is allocated. Argument attributes: `msl.name` (the name in the source), `msl.readonly`, and `msl.coherent`:
    threadgroups of one launch meet in this memory, so its accesses go through a `coherent(device)` pointer. On the kernel
    itself `msl.coherent` says the same of pointers that are made from addresses.

    ```mlir
    msl.kernel @add(%x: !msl.ptr<f32, device> {msl.name = "x", msl.readonly}, %n: i32 {msl.name = "n"}) threads 128 {
      msl.return
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<FunctionType>:$function_type, I32Attr:$threads,
                   OptionalAttr<I64Attr>:$threadgroup_bytes, OptionalAttr<DictArrayAttr>:$arg_attrs, OptionalAttr<DictArrayAttr>:$res_attrs);
  let regions = (region AnyRegion:$body);
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name, "::mlir::FunctionType":$type, "int32_t":$threads)>];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let skipDefaultBuilders = 1;
  let extraClassDeclaration = [{
    ::mlir::Region *getCallableRegion() { return &getBody(); }
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() { return getFunctionType().getInputs(); }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() { return getFunctionType().getResults(); }
    /// The name that the source gave to argument `index`, or an empty string.
    ::llvm::StringRef getArgName(unsigned index);
  }];
}

def MSL_ReturnOp : MSL_Op<"return", [Pure, Terminator, HasParent<"KernelOp">]> {
  let summary = "the end of a kernel";
  let assemblyFormat = "attr-dict";
}

//===----------------------------------------------------------------------===//
// Operations: positions
//===----------------------------------------------------------------------===//

class MSL_Position<string mnemonic, list<Trait> traits = []>
    : MSL_Op<mnemonic, traits # [Pure, DeclareOpInterfaceMethods<InferIntRangeInterface, ["inferResultRanges"]>]>;

def MSL_LaneOp : MSL_Position<"lane", [DeclareOpInterfaceMethods<MSL_SpreadOpInterface>]> {
  let summary = "this thread's index in its SIMD-group, 0 to 31";
  let results = (outs AnyTypeOf<[I32, UI16]>:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
  let builders = [OpBuilder<(ins), [{ build($_builder, $_state, $_builder.getI32Type()); }]>];
}

def MSL_SimdgroupOp : MSL_Position<"simdgroup", [DeclareOpInterfaceMethods<MSL_SpreadOpInterface>]> {
  let summary = "the index of this thread's SIMD-group in the threadgroup";
  let results = (outs AnyTypeOf<[I32, UI16]>:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
  let builders = [OpBuilder<(ins), [{ build($_builder, $_state, $_builder.getI32Type()); }]>];
}

def MSL_ThreadIndexOp : MSL_Op<"thread_index", [Pure]> {
  let summary = "a sum of numbers for the set bits of this thread's lane and SIMD-group index";
  let description = [{
    ```mlir
    %i = msl.thread_index lanes [2, 4, 8, 0, 0] simdgroups [16, 32] : i32
    ```
    is `simdgroup * 16 + (lane & 7) * 2`, which `msl-expand-thread-indices` computes once for the kernel.
  }];
  let arguments = (ins DenseI32ArrayAttr:$lanes, DenseI32ArrayAttr:$simdgroups);
  let results = (outs I32:$result);
  let assemblyFormat = "`lanes` $lanes `simdgroups` $simdgroups attr-dict `:` type($result)";
}

def MSL_ProgramIdOp : MSL_Position<"program_id"> {
  let summary = "this threadgroup's position in the grid along `axis` (0, 1, 2)";
  let arguments = (ins ConfinedAttr<I32Attr, [IntNonNegative, IntMaxValue<2>]>:$axis);
  let results = (outs AnyTypeOf<[I32, UI32]>:$result);
  let assemblyFormat = "$axis attr-dict `:` type($result)";
  let builders = [OpBuilder<(ins "int32_t":$axis), [{
    build($_builder, $_state, $_builder.getI32Type(), $_builder.getI32IntegerAttr(axis)); }]>];
}

def MSL_NumProgramsOp : MSL_Position<"num_programs"> {
  let summary = "the number of threadgroups in the grid along `axis` (0, 1, 2)";
  let arguments = (ins ConfinedAttr<I32Attr, [IntNonNegative, IntMaxValue<2>]>:$axis);
  let results = (outs AnyTypeOf<[I32, UI32]>:$result);
  let assemblyFormat = "$axis attr-dict `:` type($result)";
  let builders = [OpBuilder<(ins "int32_t":$axis), [{
    build($_builder, $_state, $_builder.getI32Type(), $_builder.getI32IntegerAttr(axis)); }]>];
}

//===----------------------------------------------------------------------===//
// Operations: some of the threads
//===----------------------------------------------------------------------===//

def MSL_InThreadsOp : MSL_Op<"in_threads", [RecursiveMemoryEffects, NoRegionArguments,
    SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "operations that only some threads of the threadgroup run";
  let description = [{
    The region runs in the threads whose lane index has the bits `lanes` where `lane_mask` is set, and whose SIMD-group
    index has the bits `simdgroups` where `simdgroup_mask` is set. A mask of 0 is not written. In all other threads the results
    are 0.

    Several threads may hold the same element of a tile, and all threads hold a scalar. One of them stores it, or updates
    memory with it. Which one is known while compiling, and passes read it here instead of from the arithmetic of a condition:
    `msl-insert-barriers` knows that the writes of one thread stay in order, and `msl-order-atomics` puts fences where the
    atomic's threads run them. An attribute of an access would not cover such a fence, which is an operation of its own.
    `msl-expand-in-threads` turns the operation into an `scf.if` when the barriers are in place.

    ```mlir
    // The first lane of each of two SIMD-groups of four.
    msl.in_threads lanes 31 = 0 simdgroups 2 = 0 {
      msl.store %x, %m[%i] : f32, !msl.ptr<f32, threadgroup>, i32
    }
    %old = msl.in_threads lanes 31 = 0 simdgroups 3 = 0 -> (i32) {
      %r = msl.atomic_rmw add %counter[%c0], %c1 : !msl.ptr<i32, device>, i32, i32
      msl.yield %r : i32
    }
    ```
    A region that all threads run becomes part of the code around it.
  }];
  let arguments = (ins DefaultValuedAttr<I32Attr, "0">:$lane_mask, DefaultValuedAttr<I32Attr, "0">:$lanes,
                       DefaultValuedAttr<I32Attr, "0">:$simdgroup_mask, DefaultValuedAttr<I32Attr, "0">:$simdgroups);
  let results = (outs Variadic<MSL_Value>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    (`lanes` $lane_mask^ `=` $lanes)? (`simdgroups` $simdgroup_mask^ `=` $simdgroups)? (`->` `(` type($results)^ `)`)?
    $body attr-dict
  }];
  let hasVerifier = 1;
  let hasCanonicalizeMethod = 1;
  let skipDefaultBuilders = 1;
  // Adds a block, with its terminator where there are no results, unless it is told not to.
  let builders = [OpBuilder<(ins "::triton_metal::msl::ThreadSet":$threads, CArg<"::mlir::TypeRange", "{}">:$results,
                                 CArg<"bool", "true">:$addBlock)>];
  let extraClassDeclaration = [{
    ::triton_metal::msl::ThreadSet getThreadSet() {
      return {getLaneMask(), getLanes(), getSimdgroupMask(), getSimdgroups()};
    }
    ::mlir::Block *getBodyBlock() { return &getBody().front(); }
    /// The threads that run a block, as far as the operations around it say.
    static ::triton_metal::msl::ThreadSet getThreadsIn(::mlir::Block *block);
  }];
}

//===----------------------------------------------------------------------===//
// Operations: registers
//===----------------------------------------------------------------------===//

def MSL_SplatOp : MSL_Op<"splat", [Pure, DeclareOpInterfaceMethods<InferIntRangeInterface, ["inferResultRanges"]>,
    TypesMatchWith<"the operand is an element of the result", "result", "value",
                   "::mlir::cast<::mlir::VectorType>($_self).getElementType()">]> {
  let summary = "one scalar in every register";
  let arguments = (ins MSL_Scalar:$value);
  let results = (outs MSL_Vector:$result);
  let assemblyFormat = "$value attr-dict `:` type($result)";
  let hasFolder = 1;
}

def MSL_PermuteRegistersOp : MSL_Op<"permute_registers", [Pure]> {
  let summary = "registers under another order: transposition, broadcast, slicing";
  let description = [{
    `result[r] = value[x]`, where x is the exclusive or of `offset` and of `bases[b]` over the bits b that are set in r. There
    is one base for each bit of the result's register index. A zero base repeats registers (broadcast).

    ```mlir
    %r = msl.permute_registers %v {bases = array<i64: 2, 1, 0>} : vector<4xf32> -> vector<8xf32>
    ```
  }];
  let arguments = (ins MSL_Vector:$value, DenseI64ArrayAttr:$bases, DefaultValuedAttr<I64Attr, "0">:$offset);
  let results = (outs MSL_Vector:$result);
  let assemblyFormat = "$value attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let extraClassDeclaration = [{
    /// The register of the operand that register `index` of the result is.
    int64_t getSource(int64_t index) {
      int64_t source = getOffset();
      for (auto [bit, base] : ::llvm::enumerate(getBases()))
        if (index >> bit & 1)
          source ^= base;
      return source;
    }
  }];
}

def MSL_UniformOp : MSL_Op<"uniform", [Pure, DeclareOpInterfaceMethods<MSL_SpreadOpInterface>, AllTypesMatch<["value", "result"]>]> {
  let summary = "a number of which every thread of the threadgroup holds the same";
  let description = [{
    A scalar of the tile program that was made of a tile: reductions leave it in every thread, which the operations that
    compute it do not show. The operand is the result; `msl-scalarize` drops the operation.
  }];
  let arguments = (ins MSL_Scalar:$value);
  let results = (outs MSL_Scalar:$result);
  let assemblyFormat = "$value attr-dict `:` type($value)";
  let hasFolder = 1;
}

def MSL_MulhiOp : MSL_Op<"mulhi", [Pure, SameOperandsAndResultType]> {
  let summary = "the upper half of an integer product; `unsigned` or signed";
  let arguments = (ins MSL_Value:$lhs, MSL_Value:$rhs, UnitAttr:$is_unsigned);
  let results = (outs MSL_Value:$result);
  let assemblyFormat = "(`unsigned` $is_unsigned^)? $lhs `,` $rhs attr-dict `:` type($result)";
}

def MSL_PreciseDivOp : MSL_Op<"precise_div", [Pure, SameOperandsAndResultType]> {
  let summary = "a correctly rounded quotient: precise::divide";
  let arguments = (ins MSL_Value:$lhs, MSL_Value:$rhs);
  let results = (outs MSL_Value:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($result)";
}

def MSL_PreciseSqrtOp : MSL_Op<"precise_sqrt", [Pure, SameOperandsAndResultType]> {
  let summary = "a correctly rounded square root: precise::sqrt";
  let arguments = (ins MSL_Value:$value);
  let results = (outs MSL_Value:$result);
  let assemblyFormat = "$value attr-dict `:` type($result)";
}

def MSL_Float64Op : MSL_Op<"float64", [Pure]> {
  let summary = "a function of 64-bit floats, which are integers that hold their bits";
  let description = [{
    Metal has no double. The text brings the function along, as `float64_add` for `add` (Float64Prelude.cpp). Each operand
    and the result is an i64 that holds a number's bits, or a number of a type that Metal has. Vectors are taken component by component.

    ```mlir
    %sum = msl.float64 "add"(%a, %b) : (vector<4xi64>, vector<4xi64>) -> vector<4xi64>
    ```
  }];
  let arguments = (ins StrAttr:$function, Variadic<MSL_Value>:$inputs);
  let results = (outs MSL_Value:$result);
  let assemblyFormat = "$function `(` $inputs `)` attr-dict `:` functional-type($inputs, $result)";
}

def MSL_LibraryOp : MSL_Op<"library", [Pure]> {
  let summary = "a mathematical function of numbers that Metal does not have";
  let description = [{
    The text brings the function along, as `library_cbrt` for `cbrt` (LibraryPrelude.cpp). Vectors are taken component by component.

    ```mlir
    %root = msl.library "cbrt"(%x) : (vector<4xf32>) -> vector<4xf32>
    ```
  }];
  let arguments = (ins StrAttr:$function, Variadic<MSL_Value>:$inputs);
  let results = (outs MSL_Value:$result);
  let assemblyFormat = "$function `(` $inputs `)` attr-dict `:` functional-type($inputs, $result)";
}

//===----------------------------------------------------------------------===//
// Operations: pointers
//===----------------------------------------------------------------------===//

def MSL_PtrAddOp : MSL_Op<"ptr_add", [Pure, AllTypesMatch<["base", "result"]>]> {
  let summary = "a pointer some elements further";
  let arguments = (ins MSL_PtrType:$base, MSL_Index:$offset);
  let results = (outs MSL_PtrType:$result);
  let assemblyFormat = "$base `,` $offset attr-dict `:` type($base) `,` type($offset)";
  let hasFolder = 1;
  let hasCanonicalizeMethod = 1;
}

def MSL_PtrCastOp : MSL_Op<"ptr_cast", [Pure]> {
  let summary = "the same address with another element type, in the same address space";
  let arguments = (ins MSL_PtrType:$base);
  let results = (outs MSL_PtrType:$result);
  let assemblyFormat = "$base attr-dict `:` type($base) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def MSL_PtrToIntOp : MSL_Op<"ptr_to_int", [Pure]> {
  let summary = "the address in bytes of a device pointer";
  let arguments = (ins MSL_PtrType:$base);
  let results = (outs I64:$result);
  let assemblyFormat = "$base attr-dict `:` type($base)";
}

def MSL_IntToPtrOp : MSL_Op<"int_to_ptr", [Pure]> {
  let summary = "the device pointer at an address in bytes";
  let arguments = (ins AnyTypeOf<[I64, UI64]>:$address);
  let results = (outs MSL_PtrType:$result);
  let assemblyFormat = "$address attr-dict `:` type($address) `->` type($result)";
}

//===----------------------------------------------------------------------===//
// Operations: memory
//===----------------------------------------------------------------------===//

defvar maskShape = "::triton_metal::msl::getMaskType($_self)";

/// Accesses of the value form that have a width, a width of their mask and a condition under which no mask cuts.
def MSL_WideAccess : DeclareOpInterfaceMethods<MSL_RegisterAccessOpInterface,
    ["getFullCondition", "getAccessWidth", "getAccessMaskWidth", "getAccessMaskRun", "isUnalignedAccess"]>;

def MSL_LoadOp : MSL_Op<"load", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>, DeclareOpInterfaceMethods<MSL_MemoryAccessOpInterface>,
    MSL_WideAccess, AttrSizedOperandSegments,
    OptionalTypesMatchWith<"the mask has the offsets' shape", "offsets", "mask", maskShape>,
    OptionalTypesMatchWith<"`other` has the result's type", "result", "other", "$_self">]> {
  let summary = "the elements at base + offsets";
  let description = [{
    Register r is the element at `base[offsets[r]]`. Registers come in aligned groups of `width`: a group's first address is
    aligned to the whole group, or if `unaligned` to an element, and the others follow it. `mask_width` registers of an
    aligned group share their mask, and in a group of `mask_run` registers no mask is true behind one that is false. Where
    the mask is false nothing is read and the result is `other`, or 0. When the uniform `full` is true, so is every mask;
    when it is false, only groups of `mask_width` are known to be aligned.
    With scalar offsets one element is read. A volatile load reads memory each time that it is executed.

    ```mlir
    %v = msl.load %p[%o] mask %m other %z full %f {width = 4 : i32, mask_width = 1 : i32}
       : !msl.ptr<f32, device>, vector<32xi32> -> vector<32xf32>
    ```
  }];
  let arguments = (ins MSL_PtrType:$base, MSL_Offset:$offsets, Optional<MSL_Mask>:$mask, Optional<MSL_Value>:$other,
                   Optional<I1>:$full, DefaultValuedAttr<I32Attr, "1">:$width,
                   DefaultValuedAttr<I32Attr, "1">:$mask_width, UnitAttr:$is_volatile,
                   DefaultValuedAttr<I32Attr, "1">:$mask_run, UnitAttr:$unaligned);
  let results = (outs MSL_Value:$result);
  let assemblyFormat = [{
    $base `[` $offsets `]` (`mask` $mask^)? (`other` $other^)? (`full` $full^)? attr-dict
    `:` type($base) `,` type($offsets) `->` type($result)
  }];
  let hasVerifier = 1;
}

def MSL_StoreOp : MSL_Op<"store", [MemoryEffects<[MemWrite]>, DeclareOpInterfaceMethods<MSL_MemoryAccessOpInterface>,
    MSL_WideAccess, AttrSizedOperandSegments,
    OptionalTypesMatchWith<"the mask has the offsets' shape", "offsets", "mask", maskShape>]> {
  let summary = "writes registers to base + offsets";
  let description = "The counterpart of `msl.load`: where the mask is false nothing is written.";
  let arguments = (ins MSL_Value:$value, MSL_PtrType:$base, MSL_Offset:$offsets, Optional<MSL_Mask>:$mask,
                   Optional<I1>:$full, DefaultValuedAttr<I32Attr, "1">:$width,
                   DefaultValuedAttr<I32Attr, "1">:$mask_width,
                   DefaultValuedAttr<I32Attr, "1">:$mask_run, UnitAttr:$unaligned);
  let assemblyFormat = [{
    $value `,` $base `[` $offsets `]` (`mask` $mask^)? (`full` $full^)? attr-dict
    `:` type($value) `,` type($base) `,` type($offsets)
  }];
  let hasVerifier = 1;
}

def MSL_LoadAddressOp : MSL_Op<"load_address", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>, DeclareOpInterfaceMethods<MSL_MemoryAccessOpInterface>,
    MSL_WideAccess, AttrSizedOperandSegments,
    OptionalTypesMatchWith<"the mask has the addresses' shape", "addresses", "mask", maskShape>,
    OptionalTypesMatchWith<"`other` has the result's type", "result", "other", "$_self">]> {
  let summary = "the elements at device addresses in bytes";
  let description = "`msl.load` for pointers that share no uniform base.";
  let arguments = (ins MSL_Addresses:$addresses, Optional<MSL_Mask>:$mask, Optional<MSL_Value>:$other,
                   Optional<I1>:$full, DefaultValuedAttr<I32Attr, "1">:$width,
                   DefaultValuedAttr<I32Attr, "1">:$mask_width, UnitAttr:$is_volatile,
                   DefaultValuedAttr<I32Attr, "1">:$mask_run, UnitAttr:$unaligned);
  let results = (outs MSL_Value:$result);
  let assemblyFormat = [{
    $addresses (`mask` $mask^)? (`other` $other^)? (`full` $full^)? attr-dict `:` type($addresses) `->` type($result)
  }];
  let hasVerifier = 1;
}

def MSL_StoreAddressOp : MSL_Op<"store_address", [MemoryEffects<[MemWrite]>, DeclareOpInterfaceMethods<MSL_MemoryAccessOpInterface>,
    MSL_WideAccess, AttrSizedOperandSegments,
    OptionalTypesMatchWith<"the mask has the addresses' shape", "addresses", "mask", maskShape>]> {
  let summary = "writes registers to device addresses in bytes";
  let arguments = (ins MSL_Value:$value, MSL_Addresses:$addresses, Optional<MSL_Mask>:$mask, Optional<I1>:$full,
                   DefaultValuedAttr<I32Attr, "1">:$width, DefaultValuedAttr<I32Attr, "1">:$mask_width,
                   DefaultValuedAttr<I32Attr, "1">:$mask_run, UnitAttr:$unaligned);
  let assemblyFormat = [{
    $value `,` $addresses (`mask` $mask^)? (`full` $full^)? attr-dict `:` type($value) `,` type($addresses)
  }];
  let hasVerifier = 1;
}

// An atomic update; without a base, the offsets are device addresses in bytes. Only the value form has such.
// The base stands behind the other operands, because the result's type is that of an operand with a fixed number.
class MSL_AtomicOp<string mnemonic, list<Trait> traits> : MSL_Op<mnemonic, [
    MemoryEffects<[MemRead, MemWrite]>, DeclareOpInterfaceMethods<MSL_MemoryAccessOpInterface>,
    DeclareOpInterfaceMethods<MSL_AtomicOpInterface>, MSL_RegisterAccessOpInterface,
    DeclareOpInterfaceMethods<MSL_SpreadOpInterface>, DeclareOpInterfaceMethods<MSL_TargetFeatureOpInterface>,
    AttrSizedOperandSegments,
    OptionalTypesMatchWith<"the mask has the offsets' shape", "offsets", "mask", maskShape>] # traits>;

defvar atomicAttributes = (ins
    DefaultValuedAttr<MSL_MemoryOrder, "::triton_metal::msl::MemoryOrder::Relaxed">:$order,
    DefaultValuedAttr<MSL_AtomicForm, "::triton_metal::msl::AtomicForm::Metal">:$form);

def MSL_AtomicRMWOp : MSL_AtomicOp<"atomic_rmw", [AllTypesMatch<["value", "result"]>]> {
  let summary = "an atomic update of each element; the result is what was there, 0 where masked";
  let description = [{
    `order` is what it asks of the program's other accesses to device memory, as of all programs of the launch:
    `release` orders what the whole threadgroup did before, `acquire` what it does after. `msl-order-atomics` turns that
    into fences and barriers; what is printed is relaxed. `form` is how it is done, which `msl-legalize-atomics` chooses.
    Without a base, the offsets are device addresses in bytes.

    ```mlir
    %old = msl.atomic_rmw add %x[%o], %v mask %m form word : !msl.ptr<i16, device>, vector<4xi32>, vector<4xi16>
    %all = msl.atomic_rmw add[%addresses], %w : vector<4xi64>, vector<4xi32>
    ```
  }];
  let arguments = !con((ins MSL_AtomicKind:$kind, MSL_Offset:$offsets, MSL_Value:$value, Optional<MSL_PtrType>:$base,
                       Optional<MSL_Mask>:$mask), atomicAttributes);
  let results = (outs MSL_Value:$result);
  let assemblyFormat = [{
    $kind ($base^)? `[` $offsets `]` `,` $value (`mask` $mask^)? (`order` $order^)? (`form` $form^)? attr-dict
    `:` custom<AtomicTypes>(type($base), type($offsets), type($value))
  }];
  let hasVerifier = 1;
}

def MSL_AtomicCASOp : MSL_AtomicOp<"atomic_cas", [AllTypesMatch<["compare", "value", "result"]>]> {
  let summary = "an atomic compare and exchange of each element; the result is what was there, 0 where masked";
  let arguments = !con((ins MSL_Offset:$offsets, MSL_Value:$compare, MSL_Value:$value, Optional<MSL_PtrType>:$base,
                       Optional<MSL_Mask>:$mask), atomicAttributes);
  let results = (outs MSL_Value:$result);
  let assemblyFormat = [{
    ($base^)? `[` $offsets `]` `,` $compare `,` $value (`mask` $mask^)? (`order` $order^)? (`form` $form^)? attr-dict
    `:` custom<AtomicTypes>(type($base), type($offsets), type($value))
  }];
  let hasVerifier = 1;
}

def MSL_AllocOp : MSL_Op<"alloc", [MemoryEffects<[MemAlloc]>]> {
  let summary = "`count` elements of threadgroup memory, at the kernel's top";
  let description = [{
    With `slots` there are that many times `count` elements, one slot after the other, and `msl.slot` points to one of them.
    `offset` is where it begins in the threadgroup's memory, in bytes; allocations whose lifetimes do not meet may share
    bytes. The allocation pass fills it in.
  }];
  let arguments = (ins StrAttr:$name, I64Attr:$count, DefaultValuedOptionalAttr<I64Attr, "1">:$slots,
                   OptionalAttr<I64Attr>:$offset);
  let results = (outs MSL_PtrType:$result);
  let assemblyFormat = "$name `,` $count (`slots` $slots^)? (`at` $offset^)? attr-dict `:` type($result)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Bytes of all slots.
    int64_t getBytes();
  }];
}

def MSL_SlotOp : MSL_Op<"slot", [Pure, AllTypesMatch<["memory", "result"]>]> {
  let summary = "a slot of an allocation";
  let description = [{
    Accesses through different slots touch different memory. `msl-expand-slots` turns it into pointer arithmetic.

    ```mlir
    %p = msl.slot %tiles[%s] : !msl.ptr<f16, threadgroup>
    ```
  }];
  let arguments = (ins MSL_PtrType:$memory, I32:$slot);
  let results = (outs MSL_PtrType:$result);
  let assemblyFormat = "$memory `[` $slot `]` attr-dict `:` type($memory)";
  let hasVerifier = 1;
}

def MSL_NextSlotOp : MSL_Op<"next_slot", [Pure,
    DeclareOpInterfaceMethods<InferIntRangeInterface, ["inferResultRanges"]>]> {
  let summary = "the slot behind another one, the first behind the last";
  let arguments = (ins I32:$slot, ConfinedAttr<I32Attr, [IntMinValue<2>]>:$slots);
  let results = (outs I32:$result);
  let assemblyFormat = "$slot `of` $slots attr-dict `:` type($result)";
}

def MSL_BarrierOp : MSL_Op<"barrier", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "waits for all threads of the threadgroup, and orders threadgroup memory";
  let description = "With `device` it orders device memory too.";
  let arguments = (ins UnitAttr:$device);
  let assemblyFormat = "(`device` $device^)? attr-dict";
  let builders = [OpBuilder<(ins), [{ (void)$_builder; (void)$_state; }]>];
}

def MSL_FenceOp : MSL_Op<"fence", [MemoryEffects<[MemRead, MemWrite]>,
    DeclareOpInterfaceMethods<MSL_TargetFeatureOpInterface>]> {
  let summary = "orders this thread's accesses to device memory, as every thread of the device sees them";
  let description = [{
    `atomic_thread_fence` of device scope. It is sequentially consistent, the one order beside relaxed that Metal 3.2 to 4.0 take.
  }];
  let assemblyFormat = "attr-dict";
  let builders = [OpBuilder<(ins), [{ (void)$_builder; (void)$_state; }]>];
}

//===----------------------------------------------------------------------===//
// Operations: reductions and SIMD-groups
//===----------------------------------------------------------------------===//

def MSL_ReduceRegistersOp : MSL_Op<"reduce_registers", [RecursiveMemoryEffects,
    SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "combines the registers of one thread along register bits";
  let description = [{
    `bits` is the mask of the register-index bits that are reduced. The result has the other bits, in their order, compressed:
    a vector of one register, or a number, where none is left.
    The region takes one scalar for every operand twice, what is accumulated and then the next element, and yields the
    combination, which is associative and commutative.

    ```mlir
    %s = msl.reduce_registers (%x) bits 3 {
      ^bb0(%a: f32, %b: f32):
        %c = arith.addf %a, %b : f32
        msl.yield %c : f32
    } : (vector<8xf32>) -> vector<2xf32>
    ```
  }];
  let arguments = (ins Variadic<MSL_Vector>:$values, I64Attr:$bits);
  let results = (outs Variadic<MSL_Value>:$results);
  let regions = (region SizedRegion<1>:$combine);
  let assemblyFormat = "`(` $values `)` `bits` $bits $combine attr-dict `:` functional-type($values, $results)";
  let hasVerifier = 1;
}

def MSL_YieldOp : MSL_Op<"yield", [Pure, Terminator, ReturnLike]> {
  let summary = "the values of a region";
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
  let builders = [OpBuilder<(ins), [{ (void)$_builder; (void)$_state; }]>];
}

// A function in which the lanes of a SIMD-group meet; `function` is a C++ expression for its name, and `members` are methods
// of its other interfaces.
class MSL_LaneCallOp<string mnemonic, list<Trait> traits = [], string function = "\"" # mnemonic # "\"",
                     string literals = "{}", string members = "">
    : MSL_Op<mnemonic, traits # [NoMemoryEffect, AllTypesMatch<["value", "result"]>, MSL_MetalCallOpInterface]> {
  let extraClassDeclaration = [{
    std::string getMetalFunction() { return }] # function # [{; }
    ::llvm::SmallVector<std::string, 1> getMetalLiterals() { return }] # literals # [{; }
    bool crossesLanes() { return true; }
    }] # members # [{
  }];
}

def MSL_SimdReduceOp : MSL_LaneCallOp<"simd_reduce", [MSL_SpreadOpInterface, MSL_TargetFeatureOpInterface],
    [{("simd_" + stringifySimdReduceKind(getKind()).ltrim('u')).str()}], "{}", [{
      Spread getSpread() { return Spread::Simdgroup; }
      Feature getRequiredFeature() { return Feature::SimdReductions; }
    }]> {
  let summary = "each register combined over the 32 lanes; every lane gets the result";
  let arguments = (ins MSL_SimdReduceKind:$kind, MSL_Value:$value);
  let results = (outs MSL_Value:$result);
  let assemblyFormat = "$kind $value attr-dict `:` type($value)";
}

def MSL_SimdBroadcastFirstOp : MSL_LaneCallOp<"simd_broadcast_first", [MSL_SpreadOpInterface], "\"simd_broadcast_first\"", "{}", [{
      Spread getSpread() { return Spread::Simdgroup; }
    }]> {
  let summary = "each register of the first active lane";
  let arguments = (ins MSL_Value:$value);
  let results = (outs MSL_Value:$result);
  let assemblyFormat = "$value attr-dict `:` type($value)";
}

def MSL_SumOrProduct : AttrConstraint<CPred<"::llvm::is_contained({SimdReduceKind::Sum, SimdReduceKind::Product}, "
    "::llvm::cast<SimdReduceKindAttr>($_self).getValue())">, "sum or product">;

def MSL_SimdPrefixOp : MSL_LaneCallOp<"simd_prefix", [MSL_SpreadOpInterface, MSL_TargetFeatureOpInterface],
    [{("simd_prefix_inclusive_" + stringifySimdReduceKind(getKind())).str()}], "{}", [{
      Spread getSpread() { return Spread::Thread; }
      Feature getRequiredFeature() { return Feature::SimdReductions; }
    }]> {
  let summary = "the sum or product of each register over the lanes up to this one";
  let arguments = (ins ConfinedAttr<MSL_SimdReduceKind, [MSL_SumOrProduct]>:$kind, MSL_Value:$value);
  let results = (outs MSL_Value:$result);
  let assemblyFormat = "$kind $value attr-dict `:` type($value)";
}

def MSL_SimdShuffleXorOp : MSL_LaneCallOp<"simd_shuffle_xor", [], [{"simd_shuffle_xor"}],
                                         [{{std::to_string(getMask())} }]> {
  let summary = "each register of the lane whose index is this lane's exclusive-or `mask`";
  let arguments = (ins MSL_Value:$value, ConfinedAttr<I32Attr, [IntNonNegative, IntMaxValue<31>]>:$mask);
  let results = (outs MSL_Value:$result);
  let assemblyFormat = "$value `,` $mask attr-dict `:` type($value)";
}

def MSL_SimdShuffleOp : MSL_LaneCallOp<"simd_shuffle"> {
  let summary = "each register of the lane `lane`";
  let description = [{
    One lane for all registers, or one for each. Metal's function takes one lane, so that `msl-explicit-types` makes a call
    for each register of the latter.
  }];
  let arguments = (ins MSL_Value:$value, AnyTypeOf<[I32, UI16, VectorOfRankAndType<[1], [I32, UI16]>]>:$lane);
  let results = (outs MSL_Value:$result);
  let assemblyFormat = "$value `,` $lane attr-dict `:` type($value) `,` type($lane)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Operations: simdgroup matrices
//===----------------------------------------------------------------------===//

def MSL_MmaOp : MSL_Op<"mma", [MemoryEffects<[MemRead]>, DeclareOpInterfaceMethods<MSL_MemoryAccessOpInterface>, DeclareOpInterfaceMethods<MSL_SpreadOpInterface>,
    DeclareOpInterfaceMethods<MSL_MatrixMultiplyOpInterface>, AllTypesMatch<["acc", "result"]>]> {
  let summary = "acc + a * b in fragments";
  let description = [{
    `instruction` is the shape of the instruction, and with it that of the fragments; `m`, `n` and `k` count them. The
    registers of a fragment follow each other, and so do the accumulator's fragments, n inner. `a` (and `b`) is a threadgroup
    or device pointer to this thread's first element of its SIMD-group's first fragment, with `a_stride` elements from row to row
    (`a_transposed`: the tile is stored as [k][m]), or fragments in registers, k-fragments (n-fragments for `b`) inner. An instruction that takes its
    operands from registers takes transposed ones too: fragments of [k][m] (a), m-fragments inner, or of [n][k] (b),
    k-fragments inner. `relaxed` says that fp32 factors may lose bits of their significands.

    The accumulator may have `batches` matrices, one after the other. `batch` of them, from `first_batch` on, get products.
    Their operands are in memory, `a_batch_stride` and `b_batch_stride` elements from one to the next.

    ```mlir
    // 16 rows and 16 columns of the accumulator, 8 terms of each sum.
    %d = msl.mma <8x8x8> %c, %a, %b {m = 2 : i32, n = 2 : i32, k = 1 : i32, a_stride = 8 : i32, b_stride = 16 : i32}
        : vector<8xf32>, !msl.ptr<f16, threadgroup>, !msl.ptr<f16, threadgroup>
    ```
  }];
  let arguments = (ins MSL_Vector:$acc, MSL_MmaOperand:$a, MSL_MmaOperand:$b, MSL_MatrixShapeAttr:$instruction,
                   I32Attr:$m, I32Attr:$n, I32Attr:$k,
                   DefaultValuedAttr<I32Attr, "0">:$a_stride, DefaultValuedAttr<I32Attr, "0">:$b_stride,
                   UnitAttr:$a_transposed, UnitAttr:$b_transposed, UnitAttr:$relaxed,
                   DefaultValuedAttr<I32Attr, "1">:$batches, DefaultValuedAttr<I32Attr, "1">:$batch,
                   DefaultValuedAttr<I32Attr, "0">:$first_batch,
                   DefaultValuedAttr<I32Attr, "0">:$a_batch_stride, DefaultValuedAttr<I32Attr, "0">:$b_batch_stride);
  let results = (outs MSL_Vector:$result);
  let assemblyFormat = "$instruction $acc `,` $a `,` $b attr-dict `:` type($acc) `,` type($a) `,` type($b)";
  let hasVerifier = 1;
}

include "dialect/msl/MSLLoops.td"
include "dialect/msl/MSLText.td"

#endif // TRITON_METAL_DIALECT_MSL

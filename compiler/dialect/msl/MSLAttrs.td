//===- MSLAttrs.td - enums of the msl dialect, and the target -------------===//

#ifndef TRITON_METAL_DIALECT_MSL_ATTRS
#define TRITON_METAL_DIALECT_MSL_ATTRS

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "dialect/msl/MSLDialect.td"

//===----------------------------------------------------------------------===//
// Enums
//===----------------------------------------------------------------------===//

def MSL_AddressSpace : I32EnumAttr<"AddressSpace", "a Metal address space", [
    I32EnumAttrCase<"Device", 0, "device">,
    I32EnumAttrCase<"Threadgroup", 1, "threadgroup">,
    I32EnumAttrCase<"Constant", 2, "constant">,
    I32EnumAttrCase<"Thread", 3, "thread">]> {
  let cppNamespace = "::triton_metal::msl";
}

def MSL_SimdReduceKind : I32EnumAttr<"SimdReduceKind", "a reduction over the lanes of a SIMD-group", [
    I32EnumAttrCase<"Sum", 0, "sum">, I32EnumAttrCase<"Product", 1, "product">,
    I32EnumAttrCase<"Min", 2, "min">, I32EnumAttrCase<"Max", 3, "max">,
    I32EnumAttrCase<"UMin", 4, "umin">, I32EnumAttrCase<"UMax", 5, "umax">,
    I32EnumAttrCase<"And", 6, "and">, I32EnumAttrCase<"Or", 7, "or">,
    I32EnumAttrCase<"Xor", 8, "xor">]> {
  let cppNamespace = "::triton_metal::msl";
}

def MSL_AtomicKind : I32EnumAttr<"AtomicKind", "an atomic read-modify-write", [
    I32EnumAttrCase<"Add", 0, "add">, I32EnumAttrCase<"FAdd", 1, "fadd">,
    I32EnumAttrCase<"Min", 2, "min">, I32EnumAttrCase<"Max", 3, "max">,
    I32EnumAttrCase<"UMin", 4, "umin">, I32EnumAttrCase<"UMax", 5, "umax">,
    I32EnumAttrCase<"And", 6, "and">, I32EnumAttrCase<"Or", 7, "or">,
    I32EnumAttrCase<"Xor", 8, "xor">, I32EnumAttrCase<"Exchange", 9, "exchange">,
    I32EnumAttrCase<"FMin", 10, "fmin">, I32EnumAttrCase<"FMax", 11, "fmax">,
    // Of bfloats and of 64-bit floats, whose bits are in integers.
    I32EnumAttrCase<"BFAdd", 12, "bfadd">, I32EnumAttrCase<"BFMin", 13, "bfmin">,
    I32EnumAttrCase<"BFMax", 14, "bfmax">, I32EnumAttrCase<"DAdd", 15, "dadd">,
    I32EnumAttrCase<"DMin", 16, "dmin">, I32EnumAttrCase<"DMax", 17, "dmax">]> {
  let cppNamespace = "::triton_metal::msl";
}

def MSL_AtomicForm : I32EnumAttr<"AtomicForm", "how an atomic update is done", [
    // A function of Metal: of 32 bits, or an extreme of 64 bits of which nobody asks what it found.
    I32EnumAttrCase<"Metal", 0, "metal">,
    // A loop around the compare-and-exchange of the 32-bit word that holds the number.
    I32EnumAttrCase<"Word", 1, "word">,
    // An atomic for each half of 64 bits.
    I32EnumAttrCase<"Halves", 2, "halves">,
    // A load and a store, which no other thread interrupts.
    I32EnumAttrCase<"Alone", 3, "alone">]> {
  let cppNamespace = "::triton_metal::msl";
}

def MSL_MemoryOrder : I32EnumAttr<"MemoryOrder", "the order that an atomic access gives to what is around it", [
    I32EnumAttrCase<"Relaxed", 0, "relaxed">, I32EnumAttrCase<"Acquire", 1, "acquire">,
    I32EnumAttrCase<"Release", 2, "release">, I32EnumAttrCase<"AcqRel", 3, "acq_rel">]> {
  let cppNamespace = "::triton_metal::msl";
}

//===----------------------------------------------------------------------===//
// The target
//===----------------------------------------------------------------------===//

def MSL_Feature : I32BitEnumAttr<"Feature", "what not every version of Metal, or not every GPU, has or needs", [
    I32BitEnumAttrCaseNone<"None", "none">,
    I32BitEnumAttrCaseBit<"BFloat", 0, "bfloat">,
    I32BitEnumAttrCaseBit<"SimdReductions", 1, "simd_reductions">,
    I32BitEnumAttrCaseBit<"SimdgroupMatrix", 2, "simdgroup_matrix">,
    I32BitEnumAttrCaseBit<"FloatAtomics", 3, "float_atomics">,
    I32BitEnumAttrCaseBit<"Atomic64MinMax", 4, "atomic64_min_max">,
    I32BitEnumAttrCaseBit<"MemoryOrders", 5, "memory_orders">,
    I32BitEnumAttrCaseBit<"FpPragmas", 6, "fp_pragmas">,
    I32BitEnumAttrCaseBit<"TensorOps", 7, "tensor_ops">,
    I32BitEnumAttrCaseBit<"VolatileAccumulation", 8, "volatile_accumulation">,
    I32BitEnumAttrCaseBit<"RolledLoops", 9, "rolled_loops">]> {
  let cppNamespace = "::triton_metal::msl";
  let separator = "|";
}

def MSL_TargetAttr : AttrDef<MSL_Dialect, "Target"> {
  let mnemonic = "target";
  let summary = "The Metal that a module is compiled for";
  let description = [{
    The version of the Metal language, the limits of a threadgroup and the features that are there. A module has it as
    `msl.target`; without one it is compiled for the baseline, which the host device runs. Passes read it to choose what
    the target can do; `msl-check-target` refuses what is left that it cannot.

    `threads` and `threadgroup_bytes` are limits of one threadgroup. `registers` is the number of 32-bit registers that a
    thread may use before it spills. `volatile_accumulation` and `rolled_loops` are no abilities: they ask for text that
    avoids a defect of some of Apple's compilers at a cost (docs/apple-quirks.md, rows 4 and 23).

    ```mlir
    module attributes {msl.target = #msl.target<metal(3, 1), threads = 1024, threadgroup_bytes = 32768,
                                                registers = 128, features = bfloat|simdgroup_matrix>} {}
    ```
  }];
  let parameters = (ins "unsigned":$major, "unsigned":$minor, "unsigned":$threads, "unsigned":$threadgroup_bytes,
                        "unsigned":$registers, EnumParameter<MSL_Feature>:$features);
  let assemblyFormat = [{
    `<` `metal` `(` $major `,` $minor `)` `,` struct($threads, $threadgroup_bytes, $registers, $features) `>`
  }];
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    bool has(Feature feature) const { return bitEnumContainsAll(getFeatures(), feature); }
    /// The best of the instructions that multiply matrices and suit; null where there is none. Which ones there are
    /// follows from the features.
    const MatrixInstruction *
    getMatrixInstruction(::llvm::function_ref<bool(const MatrixInstruction &)> suits) const;

    /// Everything that the compiler prints is there: what the host device runs.
    static TargetAttr getBaseline(::mlir::MLIRContext *context);
    /// The target of the module around `op`; the baseline where it names none.
    static TargetAttr get(::mlir::Operation *op);
    /// Reads "msl=3.1,threads=1024,threadgroup=32768,bfloat,float_atomics": a version, limits and the names of the
    /// features that are there, as launchers write it. An empty text is the baseline.
    static ::llvm::Expected<TargetAttr> parseSpec(::mlir::MLIRContext *context, ::llvm::StringRef spec);
  }];
}

#endif // TRITON_METAL_DIALECT_MSL_ATTRS

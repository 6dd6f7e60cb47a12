//===- TTG.td - what Triton IR borrows from Triton's GPU dialect ----------===//
//
// Only the operations that Triton's front end itself creates. The rest of `ttg` belongs to other compilers.
//
//===----------------------------------------------------------------------===//

#ifndef TRITON_METAL_DIALECT_TTG
#define TRITON_METAL_DIALECT_TTG

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def TTG_Dialect : Dialect {
  let name = "ttg";
  let cppNamespace = "::triton_metal::ttg";
  let summary = "What Triton IR borrows from Triton's GPU dialect";
  let useDefaultAttributePrinterParser = 1;
}

def TTG_Local : I32BitEnumAttrCaseBit<"Local", 0, "local">;
def TTG_GlobalRead : I32BitEnumAttrCaseBit<"GlobalRead", 1, "global_read">;
def TTG_GlobalWrite : I32BitEnumAttrCaseBit<"GlobalWrite", 2, "global_write">;
def TTG_TensorRead : I32BitEnumAttrCaseBit<"TensorRead", 3, "tensor_read">;
def TTG_TensorWrite : I32BitEnumAttrCaseBit<"TensorWrite", 4, "tensor_write">;

def TTG_AddrSpace : I32BitEnumAttr<"AddrSpace", "the memory that a barrier orders", [
    I32BitEnumAttrCaseNone<"None", "none">, TTG_Local, TTG_GlobalRead, TTG_GlobalWrite, TTG_TensorRead, TTG_TensorWrite,
    I32BitEnumAttrCaseGroup<"All", [TTG_Local, TTG_GlobalRead, TTG_GlobalWrite, TTG_TensorRead, TTG_TensorWrite],
                            "all">]> {
  let cppNamespace = "::triton_metal::ttg";
  let separator = "|";
  let printBitEnumPrimaryGroups = 1;
  let genSpecializedAttr = 0;
}

def TTG_AddrSpaceAttr : EnumAttr<TTG_Dialect, TTG_AddrSpace, "addr_space">;

def TTG_BarrierOp : Op<TTG_Dialect, "barrier", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "all threads of the program wait for one another";
  let description = [{
    `tl.debug_barrier`. What they have written to any of the memories is seen by all of them behind it.

    ```mlir
    ttg.barrier all
    ```
  }];
  let arguments = (ins TTG_AddrSpaceAttr:$addrSpace);
  let assemblyFormat = "`` $addrSpace attr-dict";
}

#endif

//===- MSLInterfaces.td - what passes ask of operations -------------------===//
//
// Barriers, the order of atomics, the launch metadata, the target check and the printer ask these interfaces, so that none
// of them names an operation, and a new operation answers for itself.
//
//===----------------------------------------------------------------------===//

#ifndef TRITON_METAL_DIALECT_MSL_INTERFACES
#define TRITON_METAL_DIALECT_MSL_INTERFACES

include "mlir/IR/OpBase.td"

class MSL_OpInterface<string name> : OpInterface<name> {
  let cppNamespace = "::triton_metal::msl";
}

def MSL_MemoryAccessOpInterface : MSL_OpInterface<"MemoryAccessOpInterface"> {
  let description = [{
    An operation that reads or writes device or threadgroup memory. It says through which pointers, so that analyses know
    which memory it may touch.
  }];
  let methods = [
    InterfaceMethod<"Adds every access of the operation.", "void", "getAccesses",
                    (ins "::llvm::SmallVectorImpl<::triton_metal::msl::MemoryAccess> &":$accesses)>,
  ];
}

def MSL_RegisterAccessOpInterface : MSL_OpInterface<"RegisterAccessOpInterface"> {
  let description = [{
    An operation of the value form that accesses memory register by register: `width` registers at once, where masks of
    `mask_width` registers agree.
  }];
  let methods = [
    InterfaceMethod<"The mask of the registers; null where all are accessed.", "::mlir::Value", "getAccessMask", (ins),
                    "", "return $_op.getMask();">,
    InterfaceMethod<"The uniform condition under which no mask cuts; null where there is none.", "::mlir::Value",
                    "getFullCondition", (ins), "", "return {};">,
    InterfaceMethod<"Registers of one access.", "int32_t", "getAccessWidth", (ins), "", "return 1;">,
    InterfaceMethod<"Registers that share their mask.", "int32_t", "getAccessMaskWidth", (ins), "", "return 1;">,
    InterfaceMethod<"Registers of which no mask is true behind one that is false.", "int32_t", "getAccessMaskRun", (ins),
                    "", "return 1;">,
    InterfaceMethod<"Whether what is accessed at once is aligned as an element is.", "bool", "isUnalignedAccess", (ins),
                    "", "return false;">,
  ];
}

def MSL_AtomicOpInterface : MSL_OpInterface<"AtomicOpInterface"> {
  let description = "An atomic update of memory, with an order.";
  let methods = [
    InterfaceMethod<"What it asks of the accesses around it.", "::triton_metal::msl::MemoryOrder", "getMemoryOrder",
                    (ins), "", "return $_op.getOrder();">,
    InterfaceMethod<"Changes the order.", "void", "setMemoryOrder", (ins "::triton_metal::msl::MemoryOrder":$order), "",
                    "$_op.setOrder(order);">,
    InterfaceMethod<"The update; an exchange where what stays depends on which one comes last.",
                    "::triton_metal::msl::AtomicKind", "getUpdateKind">,
    InterfaceMethod<"How it is done.", "::triton_metal::msl::AtomicForm", "getAtomicForm", (ins), "",
                    "return $_op.getForm();">,
    InterfaceMethod<"Chooses how it is done.", "void", "setAtomicForm", (ins "::triton_metal::msl::AtomicForm":$form), "",
                    "$_op.setForm(form);">,
    InterfaceMethod<"The pointer that all of its elements share; null where there is none.", "::mlir::Value",
                    "getBasePointer", (ins), "",
                    "return $_op.getBase();">,
    InterfaceMethod<"The elements behind the pointer.", "::mlir::Value", "getElementOffsets", (ins), "",
                    "return $_op.getOffsets();">,
  ];
}

def MSL_TargetFeatureOpInterface : MSL_OpInterface<"TargetFeatureOpInterface"> {
  let description = "An operation that not every target has, beside the types of its values.";
  let methods = [
    InterfaceMethod<"The feature that a target must have; `None` where every target has it.",
                    "::triton_metal::msl::Feature", "getRequiredFeature">,
  ];
}

def MSL_MatrixMultiplyOpInterface : MSL_OpInterface<"MatrixMultiplyOpInterface"> {
  let description = [{
    An operation that adds a product of matrices to an accumulator, with one or several instructions. Their shape determines
    what the operands are made of: m x n fragments of the accumulator, m x k fragments of `a`, k x n fragments of `b`. The
    instruction is one of the target's (`TargetAttr::getMatrixInstruction`); no pass assumes a shape.
  }];
  let methods = [
    InterfaceMethod<"The shape of one instruction.", "::triton_metal::msl::MatrixShape", "getInstruction">,
    InterfaceMethod<"What is added to.", "::mlir::Value", "getAcc">,
    InterfaceMethod<"The factor of m rows.", "::mlir::Value", "getA">,
    InterfaceMethod<"The factor of n columns.", "::mlir::Value", "getB">,
    InterfaceMethod<"The numbers in a value of the type of `a` or `b`.", "::mlir::Type", "getNumberType",
                    (ins "::mlir::Type":$type), "", "return ::triton_metal::msl::getNumberType(type);">,
  ];
  let verify = "return ::triton_metal::msl::verifyMatrixMultiply($_op);";
}

def MSL_SpreadOpInterface : MSL_OpInterface<"SpreadOpInterface"> {
  let description = [{
    How the results of an operation are spread over the threads of a threadgroup, where that does not follow from its
    operands alone.
  }];
  let methods = [
    InterfaceMethod<"Among which threads the results are the same, whatever the operands.",
                    "::triton_metal::msl::Spread", "getSpread">,
  ];
}

def MSL_MetalCallOpInterface : MSL_OpInterface<"MetalCallOpInterface"> {
  let description = [{
    An operation whose text is the call of one Metal function: `function(operands, literals)`. The printer writes any such
    operation without knowing it, so a new Metal function is one operation with this interface.
  }];
  let methods = [
    InterfaceMethod<"The function's name, as it is called: `simd_sum`, `precise::exp`.", "std::string",
                    "getMetalFunction">,
    InterfaceMethod<"What is passed behind the operands.", "::llvm::SmallVector<std::string, 1>", "getMetalLiterals",
                    (ins), "", "return {};">,
    InterfaceMethod<[{
        Whether lanes exchange values in the call. All of them must come to it, so it stays a statement of its own, never
        under `?:` or `&&`.
      }], "bool", "crossesLanes", (ins), "", "return false;">,
  ];
}

#endif // TRITON_METAL_DIALECT_MSL_INTERFACES

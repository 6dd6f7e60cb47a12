//===- TTMInterfaces.td - how layouts pass through operations -------------===//

#ifndef TRITON_METAL_DIALECT_TTM_INTERFACES
#define TRITON_METAL_DIALECT_TTM_INTERFACES

include "mlir/IR/OpBase.td"

def TTM_LayoutTransferOpInterface : OpInterface<"LayoutTransferOpInterface"> {
  let cppNamespace = "::triton_metal::ttm";
  let description = [{
    How the layouts of an operation's tiles depend on each other. The passes that choose layouts, and the check that layouts
    agree, ask nothing else of an operation. An operation without the interface has one layout if it is elementwise, and
    otherwise a layout of its own for each operand and result. Operations of other dialects get the interface from
    LayoutModels.cpp.
  }];
  let methods = [
    InterfaceMethod<"What the layouts of operands and results have to do with each other.",
                    "::triton_metal::ttm::LayoutRule", "getLayoutRule">,
    InterfaceMethod<[{
        The layout of the results when this tile operand has `layout`; none if there is no such layout, or if it is open. For
        a broadcast it is one of several (LinearLayout::broadcastTo).
      }], "std::optional<::triton_metal::LinearLayout>", "inferResultLayout",
      (ins "unsigned":$operandIndex, "const ::triton_metal::LinearLayout &":$layout), "", "return std::nullopt;">,
    InterfaceMethod<[{
        The layout that this tile operand must have for the results to have `layout`; none if it cannot be said.
      }], "std::optional<::triton_metal::LinearLayout>", "inferOperandLayout",
      (ins "unsigned":$operandIndex, "const ::triton_metal::LinearLayout &":$layout), "", "return std::nullopt;">,
    InterfaceMethod<[{
        Whether this tile operand may have any layout, whatever the results' is: the operation reads it from memory that
        all threads share.
      }], "bool", "takesAnyLayout", (ins "unsigned":$operandIndex), "", "return false;">,
  ];
}

#endif // TRITON_METAL_DIALECT_TTM_INTERFACES

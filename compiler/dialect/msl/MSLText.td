//===- MSLText.td - the text form of msl ----------------------------------===//
//
// The last form before the text. Its numbers have C++'s types: `i32` is int, `ui32` uint, and every conversion that
// changes a value or a sign is an operation. Its statements are those of the text: variables, loops without results.
//
//===----------------------------------------------------------------------===//

#ifndef TRITON_METAL_DIALECT_MSL_TEXT
#define TRITON_METAL_DIALECT_MSL_TEXT

include "mlir/IR/BuiltinAttributeInterfaces.td"

def MSL_BinaryKind : I32EnumAttr<"BinaryKind", "an infix operator of C++", [
    I32EnumAttrCase<"Add", 0, "add">, I32EnumAttrCase<"Sub", 1, "sub">, I32EnumAttrCase<"Mul", 2, "mul">,
    I32EnumAttrCase<"Div", 3, "div">, I32EnumAttrCase<"Rem", 4, "rem">, I32EnumAttrCase<"And", 5, "and">,
    I32EnumAttrCase<"Or", 6, "or">, I32EnumAttrCase<"Xor", 7, "xor">, I32EnumAttrCase<"Shl", 8, "shl">,
    I32EnumAttrCase<"Shr", 9, "shr">, I32EnumAttrCase<"Less", 10, "less">,
    I32EnumAttrCase<"LessEqual", 11, "less_equal">, I32EnumAttrCase<"Greater", 12, "greater">,
    I32EnumAttrCase<"GreaterEqual", 13, "greater_equal">, I32EnumAttrCase<"Equal", 14, "equal">,
    I32EnumAttrCase<"NotEqual", 15, "not_equal">, I32EnumAttrCase<"LogicalAnd", 16, "logical_and">,
    I32EnumAttrCase<"LogicalOr", 17, "logical_or">]> {
  let cppNamespace = "::triton_metal::msl";
}

def MSL_UnaryKind : I32EnumAttr<"UnaryKind", "a prefix operator of C++", [
    I32EnumAttrCase<"Negate", 0, "negate">, I32EnumAttrCase<"Not", 1, "not">]> {
  let cppNamespace = "::triton_metal::msl";
}

def MSL_BinaryOp : MSL_Op<"binary", [Pure]> {
  let summary = "an infix operator of C++ on numbers";
  let description = [{
    The result's type is the one that C++ gives it: integers below 32 bits become ints, the wider of two integers counts, and
    of two of one width the unsigned one. A number beside a vector stands for each of its components. Comparisons are `i1`.

    ```mlir
    %start = msl.binary mul %row, %stride : (ui32, i32) -> ui32   // row * stride
    ```
  }];
  let arguments = (ins MSL_BinaryKind:$kind, MSL_Value:$lhs, MSL_Value:$rhs);
  let results = (outs MSL_Value:$result);
  let assemblyFormat = "$kind $lhs `,` $rhs attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def MSL_UnaryOp : MSL_Op<"unary", [Pure, SameOperandsAndResultType]> {
  let summary = "a prefix operator of C++";
  let arguments = (ins MSL_UnaryKind:$kind, MSL_Value:$value);
  let results = (outs MSL_Value:$result);
  let assemblyFormat = "$kind $value attr-dict `:` type($result)";
}

def MSL_ConstantOp : MSL_Op<"constant", [Pure, ConstantLike, AllTypesMatch<["value", "result"]>]> {
  let summary = "a number or a vector of them, which may be unsigned";
  let arguments = (ins TypedAttrInterface:$value);
  let results = (outs MSL_Value:$result);
  let assemblyFormat = "$value attr-dict";
  let hasFolder = 1;
}

def MSL_CastOp : MSL_Op<"cast", [Pure]> {
  let summary = "a conversion as C++ does it: `uint(x)`, `float4(x)`";
  let description = [{
    Between integers the value counts modulo the width, floats are rounded, and a number becomes a vector of it.
  }];
  let arguments = (ins MSL_Value:$value);
  let results = (outs MSL_Value:$result);
  let assemblyFormat = "$value attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
}

def MSL_CallOp : MSL_Op<"call", [Pure, DeclareOpInterfaceMethods<MSL_MetalCallOpInterface, ["getMetalFunction"]>]> {
  let summary = "a function without effects: Metal's, or one that the text brings along";
  let description = [{
    ```mlir
    %e = msl.call "precise::exp"(%x) : (vector<4xf32>) -> vector<4xf32>
    ```
  }];
  let arguments = (ins StrAttr:$function, Variadic<MSL_Element>:$inputs);
  let results = (outs MSL_Value:$result);
  let assemblyFormat = "$function `(` $inputs `)` attr-dict `:` functional-type($inputs, $result)";
}

def MSL_LetOp : MSL_Op<"let", [AllTypesMatch<["value", "result"]>]> {
  let summary = "gives a value a variable in the text";
  let description = [{
    What is no operand of a `msl.let` is written where it is used. The name is a wish: one that is taken gets a number.

    ```mlir
    %sum = msl.let "sum" %0 : f32    // float sum = ...;
    ```
  }];
  let arguments = (ins StrAttr:$name, MSL_Element:$value);
  let results = (outs MSL_Element:$result);
  let assemblyFormat = "$name $value attr-dict `:` type($result)";
}

def MSL_ForOp : MSL_Op<"for", [RecursiveMemoryEffects, SingleBlockImplicitTerminator<"YieldOp">,
                              AllTypesMatch<["lower", "upper", "step"]>]> {
  let summary = "a counted loop that gives no values";
  let description = [{
    It goes on while the counter is below `upper`; with `unsigned` the three are compared without a sign. In the text form
    the counter's type says so: a `ui32` counts without a sign. With `waits` the threads of the threadgroup wait for each other
    before each test, the last one included, as at an `msl.barrier`; with `device` that orders device memory too.

    ```mlir
    msl.for %c0 to %n step %c32 waits {
    ^bb0(%k: ui32):
    } : ui32
    ```
  }];
  let arguments = (ins MSL_ScalarInt:$lower, MSL_ScalarInt:$upper, MSL_ScalarInt:$step, UnitAttr:$is_unsigned,
                       UnitAttr:$waits, UnitAttr:$device);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    (`unsigned` $is_unsigned^)? $lower `to` $upper `step` $step (`waits` $waits^)? (`device` $device^)? $body attr-dict
    `:` type($lower)
  }];
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$lower, "::mlir::Value":$upper, "::mlir::Value":$step,
                                 "bool":$isUnsigned)>];
  let extraClassDeclaration = [{
    ::mlir::BlockArgument getCounter() { return getBody().getArgument(0); }
  }];
}

#endif // TRITON_METAL_DIALECT_MSL_TEXT

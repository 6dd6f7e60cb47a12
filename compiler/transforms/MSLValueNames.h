// What a value is called in the text.

#ifndef TRITON_METAL_TRANSFORMS_MSLVALUENAMES_H
#define TRITON_METAL_TRANSFORMS_MSLVALUENAMES_H

#include "dialect/msl/MSL.h"

#include <string>

namespace triton_metal::msl {

/// The name that Python gave a value; else one that says what it is: `max`, `x_row`, `is_less`.
std::string getValueName(mlir::Value value);

/// That of a variable, after what is assigned to it.
std::string getVariableName(VarOp variable);

} // namespace triton_metal::msl

#endif

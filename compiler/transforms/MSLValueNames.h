// The names of values in the text.

#ifndef TRITON_METAL_TRANSFORMS_MSLVALUENAMES_H
#define TRITON_METAL_TRANSFORMS_MSLVALUENAMES_H

#include "dialect/msl/MSL.h"

#include <string>

namespace triton_metal::msl {

/// The name that Python gave to a value; otherwise a name that describes the value: `max`, `x_row`,
/// `is_less`.
std::string getValueName(mlir::Value value);

/// The name of a variable, after the values that are assigned to it.
std::string getVariableName(VarOp variable);

} // namespace triton_metal::msl

#endif

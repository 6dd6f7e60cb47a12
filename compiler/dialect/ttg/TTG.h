// The part of Triton's GPU dialect that Triton IR uses.
#ifndef TRITON_METAL_DIALECT_TTG_TTG_H
#define TRITON_METAL_DIALECT_TTG_TTG_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialect/ttg/TTGEnums.h.inc"

#include "dialect/ttg/TTGDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/ttg/TTGAttrs.h.inc"

#define GET_OP_CLASSES
#include "dialect/ttg/TTGOps.h.inc"

#endif

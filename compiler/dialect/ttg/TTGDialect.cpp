#include "dialect/ttg/TTG.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace triton_metal::ttg;

#include "dialect/ttg/TTGDialect.cpp.inc"
#include "dialect/ttg/TTGEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/ttg/TTGAttrs.cpp.inc"

#define GET_OP_CLASSES
#include "dialect/ttg/TTGOps.cpp.inc"

void TTGDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialect/ttg/TTGAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialect/ttg/TTGOps.cpp.inc"
      >();
}

#include "dialect/ttg/TTG.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Transforms/InliningUtils.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace triton_metal::ttg;

#include "dialect/ttg/TTGDialect.cpp.inc"
#include "dialect/ttg/TTGEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/ttg/TTGAttrs.cpp.inc"

#define GET_OP_CLASSES
#include "dialect/ttg/TTGOps.cpp.inc"

namespace {

/// A function with a barrier is inlined as any other.
struct TTGInlinerInterface : DialectInlinerInterface {
  using DialectInlinerInterface::DialectInlinerInterface;

  bool isLegalToInline(Operation *op, Region *dest, bool wouldBeCloned,
                       IRMapping &mapping) const final {
    return true;
  }
};

} // namespace

void TTGDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialect/ttg/TTGAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialect/ttg/TTGOps.cpp.inc"
      >();
  addInterfaces<TTGInlinerInterface>();
}

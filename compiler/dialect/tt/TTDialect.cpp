#include "dialect/tt/TT.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Transforms/InliningUtils.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace triton_metal;
using namespace triton_metal::tt;

#include "dialect/tt/TTDialect.cpp.inc"

namespace triton_metal::tt {

/// The offsets of a block pointer have 32 bits, or their type is written.
static ParseResult
parseOffsetTypes(OpAsmParser &parser, SmallVectorImpl<Type> &types,
                 const SmallVectorImpl<OpAsmParser::UnresolvedOperand> &offsets) {
  Type type = parser.getBuilder().getI32Type();
  if (succeeded(parser.parseOptionalKeyword("at")) && parser.parseType(type))
    return failure();
  types.assign(offsets.size(), type);
  return success();
}

static void printOffsetTypes(OpAsmPrinter &printer, Operation *, TypeRange types, OperandRange) {
  if (!types.empty() && !types.front().isInteger(32))
    printer << " at " << types.front();
}

} // namespace triton_metal::tt

#define GET_OP_CLASSES
#include "dialect/tt/TTOps.cpp.inc"

namespace {

/// Calls are always inlined: calls are not cheap in Metal, and a tile cannot be passed to a
/// function.
struct TTInlinerInterface : DialectInlinerInterface {
  using DialectInlinerInterface::DialectInlinerInterface;

  bool isLegalToInline(Operation *call, Operation *callable, bool wouldBeCloned) const final {
    return true;
  }
  bool isLegalToInline(Region *dest, Region *src, bool wouldBeCloned,
                       IRMapping &mapping) const final {
    return true;
  }
  bool isLegalToInline(Operation *op, Region *dest, bool wouldBeCloned,
                       IRMapping &mapping) const final {
    return true;
  }

  void handleTerminator(Operation *op, Block *newDest) const final {
    auto returnOp = dyn_cast<ReturnOp>(op);
    if (!returnOp)
      return;
    OpBuilder builder(op);
    cf::BranchOp::create(builder, op->getLoc(), newDest, returnOp.getSrcs());
    op->erase();
  }

  void handleTerminator(Operation *op, ValueRange valuesToReplace) const final {
    for (auto [old, returned] : llvm::zip_equal(valuesToReplace, cast<ReturnOp>(op).getSrcs()))
      old.replaceAllUsesWith(returned);
  }
};

} // namespace

void TTDialect::initialize() {
  registerTypes();
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "dialect/tt/TTOps.cpp.inc"
      >();
  addInterfaces<TTInlinerInterface>();
}

Operation *TTDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type,
                                          Location loc) {
  if (auto poison = dyn_cast<ub::PoisonAttr>(value))
    return ub::PoisonOp::create(builder, loc, type, poison);
  return arith::ConstantOp::materialize(builder, value, type, loc);
}

std::optional<Dialect::ParseOpHook> TTDialect::getParseOperationHook(StringRef opName) const {
  if (RegisteredOperationName::lookup(opName, getContext()))
    return std::nullopt;
  static auto refuse = [](OpAsmParser &parser, OperationState &state) -> ParseResult {
    return parser.emitError(parser.getNameLoc())
           << "is not an operation that triton-metal knows; it reads what Triton 3.7 to 3.9 print "
              "after the ttir stage";
  };
  return ParseOpHook(refuse);
}

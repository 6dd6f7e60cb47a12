// The module under construction, and where in the source each operation comes from.
#include "language/Builder.h"

#include "analysis/AddressArguments.h"
#include "dialect/tt/TT.h"
#include "dialect/ttg/TTG.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;

namespace triton_metal::language {

Module::Module(std::shared_ptr<MLIRContext> shared) : context(std::move(shared)) {
  context->loadDialect<tt::TTDialect, arith::ArithDialect, cf::ControlFlowDialect, ttg::TTGDialect,
                       LLVM::LLVMDialect, math::MathDialect, scf::SCFDialect, ub::UBDialect>();
  module = ModuleOp::create(UnknownLoc::get(context.get()));
}

Module::~Module() = default;

std::string Module::str(bool debugInfo) {
  std::string text;
  llvm::raw_string_ostream os(text);
  OpPrintingFlags flags;
  if (debugInfo)
    flags.enableDebugInfo().printNameLocAsPrefix();
  module->print(os, flags);
  return text;
}

llvm::Error Module::verify() {
  std::string messages;
  ScopedDiagnosticHandler handler(context.get(), [&](Diagnostic &diagnostic) {
    llvm::raw_string_ostream os(messages);
    if (auto place = diagnostic.getLocation()->findInstanceOf<FileLineColLoc>())
      os << place.getFilename().getValue() << ":" << place.getLine() << ":" << place.getColumn()
         << ": ";
    os << "error: " << diagnostic << "\n";
    return success();
  });
  if (succeeded(mlir::verify(*module)))
    return llvm::Error::success();
  return valueError(messages);
}

std::vector<std::string> Module::dropIdleDivisibility(int64_t least) {
  std::vector<std::string> dropped;
  for (tt::FuncOp function : module->getOps<tt::FuncOp>())
    for (BlockArgument argument : function.getArguments()) {
      unsigned index = argument.getArgNumber();
      auto known = function.getArgAttrOfType<IntegerAttr>(index, tt::divisibilityAttrName);
      if (!known || known.getInt() >= least || reachesAddressOrMask(argument))
        continue;
      function.removeArgAttr(index, tt::divisibilityAttrName);
      dropped.push_back(cast<NameLoc>(argument.getLoc()).getName().str());
    }
  return dropped;
}

Builder::Builder(std::shared_ptr<Module> owner)
    : module(std::move(owner)), builder(&module->getContext()),
      location(UnknownLoc::get(&module->getContext())) {}

void Builder::setLocation(llvm::StringRef file, unsigned line, unsigned column) {
  location = FileLineColLoc::get(builder.getContext(), file, line, column);
}

void Builder::setName(const Value &value, llvm::StringRef name) {
  mlir::Value handle = value.handle;
  // The first name stays: `y = x` gives the value of x no second one.
  if (llvm::isa<NameLoc>(handle.getLoc()))
    return;
  handle.setLoc(NameLoc::get(builder.getStringAttr(name), handle.getLoc()));
}

} // namespace triton_metal::language

// Names from the source, which locations carry.
#ifndef TRITON_METAL_DIALECT_TTM_LOCATIONNAMES_H
#define TRITON_METAL_DIALECT_TTM_LOCATIONNAMES_H

#include "mlir/IR/Location.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"

#include <string>

namespace triton_metal {

/// The name that the source gave to a value with this location; `otherwise` if there is none.
inline std::string nameOf(mlir::Location location, llvm::StringRef otherwise = "") {
  if (auto call = mlir::dyn_cast<mlir::CallSiteLoc>(location))
    return nameOf(call.getCallee(), otherwise);
  if (auto name = mlir::dyn_cast<mlir::NameLoc>(location))
    if (llvm::all_of(name.getName().getValue(),
                     [](char c) { return llvm::isAlnum(c) || c == '_'; }))
      return name.getName().str();
  return otherwise.str();
}

/// The location without the name of a value: for the parts of what computes it.
inline mlir::Location unnamed(mlir::Location location) {
  while (auto name = mlir::dyn_cast<mlir::NameLoc>(location))
    location = name.getChildLoc();
  return location;
}

/// A location that only has a name.
inline mlir::Location named(mlir::MLIRContext *context, const llvm::Twine &name) {
  return mlir::NameLoc::get(mlir::StringAttr::get(context, name), mlir::UnknownLoc::get(context));
}

} // namespace triton_metal

#endif

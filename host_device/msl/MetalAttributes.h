// Registers Metal's attributes (`[[buffer(0)]]`, `[[kernel]]`, `[[host_name("f")]]`, ...) with
// clang, so that they also work in templates and macros.
#pragma once

#include "host_device/KernelInfo.h"
#include "clang/AST/Attr.h"
#include "clang/AST/Decl.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace triton_metal {

/// An attribute that gives a kernel's parameter a position or size in the grid.
struct PositionAttribute {
  llvm::StringLiteral name;
  Position position;
  bool mayBeVector = false;
};
llvm::ArrayRef<PositionAttribute> positionAttributes();

/// Registers the attributes for this process. Must be called before the first parse.
void registerMetalAttributes();

/// The declaration's Metal attribute `name`, or null. Clang represents it as an annotation, which
/// is kept by template instantiations and precompiled headers.
const clang::AnnotateAttr *metalAttribute(const clang::Decl *decl, llvm::StringRef name);
/// The Metal name of an attribute. Empty if it is not a Metal attribute.
llvm::StringRef metalName(const clang::AnnotateAttr *attribute);

} // namespace triton_metal

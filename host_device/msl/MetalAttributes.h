// Metal's attributes, as clang takes them: `[[buffer(0)]]`, `[[kernel]]`, `[[host_name("f")]]` and
// their like, on whatever they stand at, through templates and macros.
#pragma once

#include "host_device/KernelInfo.h"
#include "clang/AST/Attr.h"
#include "clang/AST/Decl.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace triton_metal {

/// An attribute by which a kernel's parameter asks where in the grid a thread is.
struct PositionAttribute {
  llvm::StringLiteral name;
  Position position;
  bool mayBeVector = false;
};
llvm::ArrayRef<PositionAttribute> positionAttributes();

/// Makes clang know the attributes, for this process. To be called before the first parse.
void registerMetalAttributes();

/// An attribute of a declaration, by the name that Metal gives it, or null. (To clang it is an
/// annotation, which survives the instantiation of templates and precompiled headers.)
const clang::AnnotateAttr *metalAttribute(const clang::Decl *decl, llvm::StringRef name);
/// The name that Metal gives an attribute; empty where it is none of Metal's.
llvm::StringRef metalName(const clang::AnnotateAttr *attribute);

} // namespace triton_metal

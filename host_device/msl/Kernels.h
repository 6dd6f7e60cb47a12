// Collects kernels from clang's AST.
#pragma once

#include "host_device/KernelInfo.h"
#include "host_device/msl/CoherentPointers.h"
#include "host_device/msl/DefineExpressions.h"
#include "host_device/msl/Diagnostics.h"
#include "host_device/msl/Frontend.h"
#include "host_device/msl/LoopExits.h"
#include "clang/AST/ASTConsumer.h"
#include "clang/AST/Decl.h"
#include "llvm/ADT/ArrayRef.h"
#include <array>
#include <memory>
#include <vector>

namespace triton_metal {

/// A kernel that the text declares: its signature, and the function that clang generates for it.
struct DeclaredKernel {
  KernelInfo info;
  const clang::FunctionDecl *decl = nullptr;
  /// For each parameter, the function constant that says whether it exists, or nothing.
  std::vector<std::string> existsIf;
};

/// A function constant and the variable that clang generates for it.
struct DeclaredConstant {
  FunctionConstantInfo info;
  const clang::VarDecl *decl = nullptr;
};

/// Collects the declarations of kernels and of function constants during parsing.
class KernelCollector final : public clang::ASTConsumer {
public:
  KernelCollector(DiagnosticCollector &diagnostics, const MslOptions &options)
      : diagnostics(diagnostics), options(options),
        define(options.portable || options.checks.arithmetic) {}

  void Initialize(clang::ASTContext &context) override { ast = &context; }
  bool HandleTopLevelDecl(clang::DeclGroupRef group) override;
  void HandleTranslationUnit(clang::ASTContext &context) override;

  std::vector<DeclaredKernel> kernels;
  std::vector<DeclaredConstant> constants;
  /// The loops of the text: the line and the column of their first and last tokens. Only for
  /// portable code.
  std::vector<std::array<unsigned, 4>> loops;
  const std::vector<DefineExpressions::ThreadgroupVariable> &threadgroupVariables() const {
    return define.threadgroupVariables;
  }

  /// The function constants that have been read and have no value.
  std::vector<FunctionConstantInfo> constantsWithoutValue() const;
  /// Gives function constants values after the text has been read. No constant expression needs
  /// them then, but those in initialisers and conditions get them.
  void setValues(llvm::ArrayRef<FunctionConstantValue> values);
  /// Whether a type or a template's argument names a constant that has no value. Where clang
  /// chooses between templates, that is no error, but another choice.
  bool needsValues() const;
  /// Whether a syntax tree exists.
  bool isReady() const { return ast != nullptr; }

private:
  DiagnosticCollector &diagnostics;
  const MslOptions &options;
  clang::ASTContext *ast = nullptr;
  std::vector<clang::Decl *> declarations;
  std::vector<const clang::FunctionDecl *> functions;
  std::vector<clang::VarDecl *> variables;
  DefineExpressions define;
  CoherentPointers coherent;
  LoopExits exits;

  /// Why the host device cannot run a function, if it uses what the device does not have.
  std::string refusal(const clang::FunctionDecl *function) const;
  void setValue(clang::VarDecl *variable, const clang::AnnotateAttr *attribute,
                llvm::ArrayRef<FunctionConstantValue> values);
  void evaluateAgain(clang::Decl *decl);
  void visit(clang::Decl *decl);
  void collectLoops(clang::Decl *decl);
  void addKernel(const clang::FunctionDecl *function);
  bool readParameter(const clang::ParmVarDecl *parameter, ParameterInfo &info, bool &hasIndex,
                     std::string &existsIf);
  void error(const clang::Decl *decl, const llvm::Twine &message);
};

} // namespace triton_metal

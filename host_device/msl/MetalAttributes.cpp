#include "host_device/msl/MetalAttributes.h"
#include "clang/AST/ASTContext.h"
#include "clang/AST/Attr.h"
#include "clang/AST/DeclCXX.h"
#include "clang/AST/Expr.h"
#include "clang/AST/ExprCXX.h"
#include "clang/Basic/ParsedAttrInfo.h"
#include "clang/Sema/DeclSpec.h"
#include "clang/Sema/Lookup.h"
#include "clang/Sema/ParsedAttr.h"
#include "clang/Sema/Sema.h"
#include <mutex>

using namespace clang;
using llvm::StringRef;

namespace triton_metal {

llvm::ArrayRef<PositionAttribute> positionAttributes() {
  static constexpr bool mayBeVector = true;
  static const PositionAttribute attributes[] = {
      {"dispatch_quadgroups_per_threadgroup", Position::DispatchQuadgroupsPerThreadgroup},
      {"dispatch_simdgroups_per_threadgroup", Position::DispatchSimdgroupsPerThreadgroup},
      {"dispatch_threads_per_threadgroup", Position::DispatchThreadsPerThreadgroup, mayBeVector},
      {"grid_origin", Position::GridOrigin, mayBeVector},
      {"grid_size", Position::GridSize, mayBeVector},
      {"quadgroup_index_in_threadgroup", Position::QuadgroupIndexInThreadgroup},
      {"quadgroups_per_threadgroup", Position::QuadgroupsPerThreadgroup},
      {"simdgroup_index_in_threadgroup", Position::SimdgroupIndexInThreadgroup},
      {"simdgroups_per_threadgroup", Position::SimdgroupsPerThreadgroup},
      {"thread_execution_width", Position::ThreadExecutionWidth},
      {"thread_index_in_quadgroup", Position::ThreadIndexInQuadgroup},
      {"thread_index_in_simdgroup", Position::ThreadIndexInSimdgroup},
      {"thread_index_in_threadgroup", Position::ThreadIndexInThreadgroup},
      {"thread_position_in_grid", Position::ThreadPositionInGrid, mayBeVector},
      {"thread_position_in_threadgroup", Position::ThreadPositionInThreadgroup, mayBeVector},
      {"threadgroup_position_in_grid", Position::ThreadgroupPositionInGrid, mayBeVector},
      {"threadgroups_per_grid", Position::ThreadgroupsPerGrid, mayBeVector},
      {"threads_per_grid", Position::ThreadsPerGrid, mayBeVector},
      {"threads_per_simdgroup", Position::ThreadsPerSimdgroup},
      {"threads_per_threadgroup", Position::ThreadsPerThreadgroup, mayBeVector},
  };
  return attributes;
}

namespace {

/// The other attributes. Some are not supported: they are in this list so that the error for a
/// kernel's parameter can name them.
constexpr llvm::StringLiteral otherAttributes[] = {
    "buffer",
    "function_constant",
    "host_name",
    "id",
    "max_total_threads_per_threadgroup",
    "required_threads_per_threadgroup",
    "sampler",
    "stage_in",
    "texture",
    "visible",
    // Functions of render stages.
    "intersection",
    "mesh",
    "object",
    "__tm_stage",
    // `kernel` and the like are macros, so the rewriter renames these attributes.
    "__tm_kernel",
    "__tm_threadgroup",
    "__tm_vertex",
    "__tm_fragment",
    // Part of the macros `threadgroup` and `constant`: see placeVariable.
    "__tm_variable",
};

class MetalAttributes final : public ParsedAttrInfo {
public:
  MetalAttributes() {
    OptArgs = 15; // any number
    Spellings = spellings();
  }

  AttrHandling handleDeclAttribute(Sema &sema, Decl *decl,
                                   const ParsedAttr &attribute) const override {
    StringRef name = attribute.getAttrName()->getName();
    if (name == "__tm_variable")
      return placeVariable(sema, decl);
    name.consume_front("__tm_");
    llvm::SmallVector<Expr *, 4> arguments;
    for (unsigned index = 0; index != attribute.getNumArgs(); ++index) {
      Expr *argument = argumentOf(sema, attribute, index);
      if (!argument)
        return AttributeNotApplied;
      arguments.push_back(argument);
    }
    if (name == "function_constant") {
      if (auto *parameter = dyn_cast<ParmVarDecl>(decl))
        return makeOptional(sema, parameter, attribute, arguments);
      // The pipeline defines its value, and the code is specialised with it.
      if (auto *variable = dyn_cast<VarDecl>(decl)) {
        variable->setStorageClass(SC_Extern);
        variable->setConstexpr(false); // it is no definition yet
      }
    }
    return annotate(sema, decl, attribute, name, arguments);
  }

private:
  static llvm::ArrayRef<Spelling> spellings() {
    [[clang::no_destroy]] static const std::vector<Spelling> all = [] {
      std::vector<Spelling> result;
      auto add = [&](StringRef name) {
        result.push_back({AttributeCommonInfo::AS_GNU, name.data()});
        result.push_back({AttributeCommonInfo::AS_CXX11, name.data()});
      };
      for (const PositionAttribute &attribute : positionAttributes())
        add(attribute.name);
      for (StringRef name : otherAttributes)
        add(name);
      return result;
    }();
    return all;
  }

  /// The parser does not know the arguments of registered attributes. It represents a single name
  /// as an identifier and not as an expression, so the name is looked up here.
  static Expr *argumentOf(Sema &sema, const ParsedAttr &attribute, unsigned index) {
    if (attribute.isArgExpr(index))
      return attribute.getArgAsExpr(index);
    IdentifierLoc *name = attribute.getArgAsIdent(index);
    LookupResult found(sema, name->getIdentifierInfo(), name->getLoc(), Sema::LookupOrdinaryName);
    sema.LookupName(found, sema.getCurScope());
    if (found.empty()) {
      unsigned id =
          sema.Diags.getCustomDiagID(DiagnosticsEngine::Error, "use of undeclared identifier %0");
      sema.Diag(name->getLoc(), id) << name->getIdentifierInfo();
      return nullptr;
    }
    return sema.BuildDeclarationNameExpr(CXXScopeSpec(), found, /*NeedsADL=*/false).get();
  }

  static AttrHandling annotate(Sema &sema, Decl *decl, const ParsedAttr &attribute, StringRef name,
                               llvm::MutableArrayRef<Expr *> arguments) {
    if (isa<FieldDecl>(decl)) // of an argument buffer; only its place in memory matters
      return AttributeApplied;
    Attr *made = sema.CreateAnnotationAttr(attribute, ("metal." + name).str(), arguments);
    if (!made)
      return AttributeNotApplied;
    decl->addAttr(made);
    return AttributeApplied;
  }

  /// A parameter with a function constant exists only if the constant is true. The value of the
  /// constant is not known yet, so the annotation contains its name.
  static AttrHandling makeOptional(Sema &sema, ParmVarDecl *parameter, const ParsedAttr &attribute,
                                   llvm::ArrayRef<Expr *> arguments) {
    auto *constant = arguments.size() == 1
                         ? dyn_cast<DeclRefExpr>(arguments[0]->IgnoreParenImpCasts())
                         : nullptr;
    if (!constant) {
      unsigned id = sema.Diags.getCustomDiagID(
          DiagnosticsEngine::Error,
          "attribute 'function_constant' of a parameter needs the name of a function constant");
      sema.Diag(attribute.getLoc(), id);
      return AttributeNotApplied;
    }
    ASTContext &context = sema.getASTContext();
    std::string name = constant->getDecl()->getNameAsString();
    Expr *literal = StringLiteral::Create(
        context, name, StringLiteralKind::Ordinary, /*Pascal=*/false,
        context.getStringLiteralArrayType(context.CharTy, name.size()), constant->getLocation());
    return annotate(sema, parameter, attribute, "exists_if", literal);
  }

  /// All threads share a variable in the threadgroup or constant address space, so it is static.
  /// The attribute also occurs on pointers to these address spaces, which stay automatic.
  static AttrHandling placeVariable(Sema &sema, Decl *decl) {
    auto *variable = dyn_cast<VarDecl>(decl);
    if (!variable || isa<ParmVarDecl>(variable) || !variable->getType().hasAddressSpace())
      return AttributeApplied;
    if (variable->hasLocalStorage())
      variable->setStorageClass(SC_Static);
    refuseHuge(sema, *variable);
    return AttributeApplied;
  }

  /// Clang gives each element of a static array of vectors its value, however many there are.
  static void refuseHuge(Sema &sema, VarDecl &variable) {
    QualType type = variable.getType();
    if (type->isDependentType() || type->isIncompleteType() || !type->isConstantSizeType())
      return;
    bool isShared = type.getAddressSpace() == LangAS::opencl_local;
    uint64_t bytes = sema.getASTContext().getTypeSizeInChars(type).getQuantity();
    if (bytes <= (isShared ? mostSharedBytes : mostConstantBytes))
      return;
    unsigned id = sema.Diags.getCustomDiagID(
        DiagnosticsEngine::Error, "%0 variable %1 has %2 bytes, but %3 can have at most %4");
    sema.Diag(variable.getLocation(), id)
        << (isShared ? "threadgroup" : "constant") << &variable << std::to_string(bytes)
        << (isShared ? "a threadgroup" : "a constant") << (isShared ? "32768" : "16777216");
    variable.setInvalidDecl();
  }

  /// A kernel with more than 32768 bytes can be compiled, and its launches are refused.
  static constexpr uint64_t mostSharedBytes = 1u << 20, mostConstantBytes = 1u << 24;
};

/// Orders functions that clang finds equally good. In Metal, a half becomes a float implicitly, and
/// neither of them a bfloat; for clang, these are conversions like any other. Among candidates that
/// need conversions of the same rank, clang prefers the one with more `enable_if` attributes. So
/// each function of the user that takes a float gets two of them, and one that takes a half gets
/// one. A pragma around the user's text applies this attribute to each function.
class OverloadOrder final : public ParsedAttrInfo {
  /// `template <>`. It takes no part in overload resolution, and has the name of the template's own
  /// instance, which has no attribute of its own.
  static bool isSpecialisation(const FunctionDecl &function) {
    unsigned count = function.getNumTemplateParameterLists();
    return count && function.getTemplateParameterList(count - 1)->size() == 0;
  }

public:
  OverloadOrder() {
    static constexpr Spelling spelling[] = {{AttributeCommonInfo::AS_GNU, "__tm_overload"}};
    Spellings = spelling;
    IsSupportedByPragmaAttribute = true;
  }

  void getPragmaAttributeMatchRules(
      llvm::SmallVectorImpl<std::pair<attr::SubjectMatchRule, bool>> &rules,
      const LangOptions &) const override {
    rules.push_back({attr::SubjectMatchRule_function, true});
  }

  AttrHandling handleDeclAttribute(Sema &sema, Decl *decl, const ParsedAttr &) const override {
    auto *function = dyn_cast<FunctionDecl>(decl);
    if (!function || isa<CXXDestructorDecl>(function) || isSpecialisation(*function))
      return AttributeApplied;
    unsigned order = 0;
    auto consider = [&](QualType type) {
      if (auto *number = type->getAs<BuiltinType>())
        order = std::max(order, number->getKind() == BuiltinType::Double    ? 2u
                                : number->getKind() == BuiltinType::Float16 ? 1u
                                                                            : 0u);
    };
    for (const ParmVarDecl *parameter : function->parameters())
      consider(parameter->getType());
    // A class that becomes a float or a bfloat becomes a half by way of float.
    if (isa<CXXConversionDecl>(function))
      consider(function->getReturnType());
    ASTContext &context = sema.getASTContext();
    for (unsigned i = 0; i != order; ++i)
      function->addAttr(EnableIfAttr::CreateImplicit(
          context, CXXBoolLiteralExpr::Create(context, true, context.BoolTy, SourceLocation()),
          ""));
    return AttributeApplied;
  }
};

ParsedAttrInfoRegistry::Add<MetalAttributes> registration("metal", "Metal's attributes");
ParsedAttrInfoRegistry::Add<OverloadOrder> orderRegistration("metal-overloads",
                                                             "The order of overloads");

} // namespace

void registerMetalAttributes() {
  // Clang builds its list of attributes on first use, without a lock.
  static std::once_flag once;
  std::call_once(once, [] { getAttributePluginInstances(); });
}

StringRef metalName(const AnnotateAttr *attribute) {
  StringRef name = attribute->getAnnotation();
  return name.consume_front("metal.") ? name : StringRef();
}

const AnnotateAttr *metalAttribute(const Decl *decl, StringRef name) {
  for (const auto *attribute : decl->specific_attrs<AnnotateAttr>())
    if (metalName(attribute) == name)
      return attribute;
  return nullptr;
}

} // namespace triton_metal

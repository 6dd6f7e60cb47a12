#include "host_device/msl/Kernels.h"
#include "host_device/msl/MetalAttributes.h"
#include "host_device/msl/MetalRules.h"
#include "clang/AST/ASTContext.h"
#include "clang/AST/Attr.h"
#include "clang/AST/DeclCXX.h"
#include "clang/AST/DeclTemplate.h"
#include "clang/AST/Expr.h"
#include "clang/AST/ExprCXX.h"
#include "clang/AST/ExprConcepts.h"
#include "clang/AST/RecursiveASTVisitor.h"
#include "clang/Basic/SourceManager.h"
#include "llvm/ADT/STLExtras.h"
#include <optional>
#include <set>

using namespace clang;

namespace triton_metal {

/// The spelling of a type in Metal.
static std::string spelling(QualType type, const ASTContext &ast) {
  std::string text = inMetal(typeInMetal(type.getAsString(ast.getPrintingPolicy())));
  for (StringRef space : {"device ", "constant ", "threadgroup "})
    if (StringRef(text).starts_with(space))
      text.erase(0, space.size());
  return text;
}

namespace {
/// What a type consists of, if it consists of numbers of one kind.
struct Numbers {
  ScalarKind kind = ScalarKind::None;
  uint32_t bits = 0, count = 1;
};
} // namespace

/// The numbers of a scalar, vector, packed vector, matrix, atomic or array.
static Numbers numbersOf(QualType type, const ASTContext &ast) {
  type = ast.getBaseElementType(type.getCanonicalType()).getUnqualifiedType();
  if (const auto *declared = type->getAsEnumDecl())
    return declared->getIntegerType().isNull() ? Numbers{}
                                               : numbersOf(declared->getIntegerType(), ast);
  if (const auto *builtin = type->getAs<BuiltinType>()) {
    // Clang's own float is Metal's bfloat (MetalTarget.h).
    bool isBfloat = builtin->getKind() == BuiltinType::Float && ast.getTypeSize(type) == 16;
    ScalarKind kind = builtin->isBooleanType()       ? ScalarKind::Bool
                      : isBfloat                     ? ScalarKind::BFloat
                      : builtin->isFloatingPoint()   ? ScalarKind::Float
                      : builtin->isSignedInteger()   ? ScalarKind::Signed
                      : builtin->isUnsignedInteger() ? ScalarKind::Unsigned
                                                     : ScalarKind::None;
    if (kind == ScalarKind::None)
      return {};
    return {kind, static_cast<uint32_t>(ast.getTypeSize(type)), 1};
  }
  const auto *record = type->getAsCXXRecordDecl();
  if (!record)
    return {};
  const auto *special = dyn_cast<ClassTemplateSpecializationDecl>(record);
  if (!special || special->getTemplateArgs().size() == 0 ||
      special->getTemplateArgs()[0].getKind() != TemplateArgument::Type)
    return {};
  Numbers numbers = numbersOf(special->getTemplateArgs()[0].getAsType(), ast);
  StringRef name = special->getName();
  auto size = [&](unsigned index) {
    return static_cast<uint32_t>(special->getTemplateArgs()[index].getAsIntegral().getZExtValue());
  };
  if (name == "atomic" || name == "_atomic")
    return numbers;
  if (name == "vec" || name == "packed_vec")
    return {numbers.kind, numbers.bits, size(1)};
  if (name == "matrix")
    return {numbers.kind, numbers.bits, size(1) * size(2)};
  return {};
}

static std::optional<uint64_t> integerArgument(const AnnotateAttr *attr, const ASTContext &ast) {
  if (!attr || attr->args_size() == 0)
    return std::nullopt;
  Expr::EvalResult result;
  const Expr *argument = *attr->args_begin();
  if (!argument || argument->isValueDependent() || !argument->EvaluateAsInt(result, ast))
    return std::nullopt;
  return result.Val.getInt().getLimitedValue();
}

static std::optional<std::string> stringArgument(const AnnotateAttr *attr) {
  if (!attr || attr->args_size() == 0)
    return std::nullopt;
  const Expr *argument = (*attr->args_begin())->IgnoreParenImpCasts();
  if (const auto *constant = dyn_cast<ConstantExpr>(argument))
    argument = constant->getSubExpr()->IgnoreParenImpCasts();
  if (const auto *literal = dyn_cast<StringLiteral>(argument))
    return literal->getString().str();
  return std::nullopt;
}

/// Whether a function is for a stage of rendering or of ray tracing.
static bool isStage(const FunctionDecl *function) {
  return llvm::any_of(std::initializer_list<StringRef>{"stage", "vertex", "fragment", "object",
                                                       "mesh", "intersection"},
                      [&](StringRef name) { return metalAttribute(function, name) != nullptr; });
}

/// The class of the standard library for textures and the like that a type is, or is an array of.
static const CXXRecordDecl *resource(QualType type, const ASTContext &ast) {
  const CXXRecordDecl *record =
      ast.getBaseElementType(type.getNonReferenceType())->getAsCXXRecordDecl();
  if (!record || !record->hasDefinition())
    return nullptr;
  if (const auto *special = dyn_cast<ClassTemplateSpecializationDecl>(record);
      special && (record->getName() == "array" || record->getName() == "array_ref") &&
      special->getTemplateArgs()[0].getKind() == TemplateArgument::Type)
    return resource(special->getTemplateArgs()[0].getAsType(), ast);
  bool found = false;
  record->forallBases([&](const CXXRecordDecl *base) {
    found |= base->getName() == "__tm_resource";
    return true;
  });
  return found ? record : nullptr;
}

std::string KernelCollector::refusal(const FunctionDecl *function) const {
  const SourceManager &sources = ast->getSourceManager();
  auto line = [&](const Decl *decl) {
    return "line " + std::to_string(sources.getExpansionLineNumber(decl->getLocation()));
  };
  if (!metalAttribute(function, "kernel"))
    return "is a function of a render stage (" + line(function) +
           "), and the host device runs compute kernels only";
  for (const ParmVarDecl *parameter : function->parameters()) {
    std::string what;
    if (const CXXRecordDecl *record = resource(parameter->getType(), *ast))
      what = record->getNameAsString();
    else if (metalAttribute(parameter, "stage_in"))
      what = "stage_in input";
    if (!what.empty())
      return "parameter '" + parameter->getNameAsString() + "' (" + line(parameter) + ") is a " +
             what + ", which the host device does not have";
  }
  return {};
}

void KernelCollector::error(const Decl *decl, const llvm::Twine &message) {
  diagnostics.error(ast->getSourceManager(), decl->getLocation(), message.str());
}

/// A number with a value becomes an ordinary constant, which the text after it may use in constant
/// expressions.
void KernelCollector::setValue(VarDecl *variable, const AnnotateAttr *attribute,
                               llvm::ArrayRef<FunctionConstantValue> values) {
  auto index = integerArgument(attribute, *ast);
  QualType type = variable->getType().getUnqualifiedType();
  type = ast->removeAddrSpaceQualType(ast->getCanonicalType(type)).getUnqualifiedType();
  bool isFloat = type->isRealFloatingType();
  if (!index || variable->hasInit() || !(type->isIntegralOrEnumerationType() || isFloat))
    return;
  const auto *value =
      llvm::find_if(values, [&](const FunctionConstantValue &one) { return one.index == *index; });
  if (value == values.end())
    return;
  SourceLocation place = variable->getLocation();
  llvm::APInt bits = llvm::APInt(64, value->bits).zextOrTrunc(ast->getTypeSize(type));
  Expr *literal;
  if (type->isBooleanType())
    literal = CXXBoolLiteralExpr::Create(*ast, value->bits != 0, type, place);
  else if (isFloat)
    literal = FloatingLiteral::Create(*ast, llvm::APFloat(ast->getFloatTypeSemantics(type), bits),
                                      /*isexact=*/true, type, place);
  else
    literal = IntegerLiteral::Create(*ast, bits, type, place);
  variable->setStorageClass(SC_Static);
  variable->setInit(literal);
  SmallVector<PartialDiagnosticAt, 1> notes;
  variable->checkForConstantInitialization(notes);
}

/// Finds out again whether the constants outside of functions have values.
void KernelCollector::evaluateAgain(Decl *decl) {
  if (isa<NamespaceDecl, LinkageSpecDecl>(decl)) {
    for (Decl *inner : cast<DeclContext>(decl)->decls())
      evaluateAgain(inner);
    return;
  }
  auto *variable = dyn_cast<VarDecl>(decl);
  if (!variable || !variable->hasInit() || variable->getInit()->isValueDependent() ||
      !variable->getType().isConstQualified() || variable->hasConstantInitialization())
    return;
  variable->setInit(variable->getInit());
  SmallVector<PartialDiagnosticAt, 1> notes;
  variable->checkForConstantInitialization(notes);
}

void KernelCollector::setValues(llvm::ArrayRef<FunctionConstantValue> values) {
  for (VarDecl *variable : variables)
    setValue(variable, metalAttribute(variable, "function_constant"), values);
  for (Decl *decl : declarations)
    evaluateAgain(decl);
}

namespace {
/// Looks in types and in arguments of templates for variables outside of functions whose values are
/// not known.
class UnknownConstants : public RecursiveASTVisitor<UnknownConstants> {
  using Base = RecursiveASTVisitor<UnknownConstants>;

public:
  bool found = false;

  bool TraverseTypeLoc(TypeLoc type, bool traverseQualifier = true) {
    ++depth;
    bool more = Base::TraverseTypeLoc(type, traverseQualifier);
    --depth;
    return more;
  }
  bool TraverseTemplateArgumentLoc(const TemplateArgumentLoc &argument) {
    ++depth;
    bool more = Base::TraverseTemplateArgumentLoc(argument);
    --depth;
    return more;
  }
  bool TraverseConceptSpecializationExpr(ConceptSpecializationExpr *expr) {
    ++depth;
    bool more = Base::TraverseConceptSpecializationExpr(expr);
    --depth;
    return more;
  }
  bool TraverseRequiresExpr(RequiresExpr *expr) {
    ++depth;
    bool more = Base::TraverseRequiresExpr(expr);
    --depth;
    return more;
  }
  bool VisitDeclRefExpr(DeclRefExpr *name) {
    auto *variable = dyn_cast<VarDecl>(name->getDecl());
    if (!depth || !variable || !variable->hasGlobalStorage() || variable->isConstexpr() ||
        variable->hasConstantInitialization())
      return true;
    // In a template, what the value is made of decides.
    if (Expr *init = variable->getInit(); init && init->isValueDependent())
      return !seen.insert(variable).second || TraverseStmt(init);
    found = true;
    return false;
  }

private:
  unsigned depth = 0;
  std::set<const VarDecl *> seen;
};
} // namespace

bool KernelCollector::needsValues() const {
  if (variables.empty())
    return false;
  UnknownConstants visitor;
  for (Decl *decl : declarations)
    if (!ast->getSourceManager().isInSystemHeader(decl->getLocation()))
      visitor.TraverseDecl(decl);
  return visitor.found;
}

std::vector<FunctionConstantInfo> KernelCollector::constantsWithoutValue() const {
  std::vector<FunctionConstantInfo> result;
  for (const VarDecl *variable : variables)
    if (auto index = integerArgument(metalAttribute(variable, "function_constant"), *ast);
        index && !variable->hasInit()) {
      FunctionConstantInfo info;
      info.name = variable->getNameAsString();
      info.index = static_cast<uint32_t>(*index);
      result.push_back(std::move(info));
    }
  return result;
}

bool KernelCollector::HandleTopLevelDecl(DeclGroupRef group) {
  for (Decl *decl : group) {
    visit(decl);
    declarations.push_back(decl);
    define.run(*ast, decl); // before code is generated from it
    exits.run(*ast, decl);
    if (options.portable)
      coherent.run(*ast, decl);
  }
  return true;
}

void KernelCollector::visit(Decl *decl) {
  if (auto *function = dyn_cast<FunctionDecl>(decl)) {
    if (!function->isDependentContext() &&
        (metalAttribute(function, "kernel") || isStage(function)))
      functions.push_back(function);
  } else if (auto *variable = dyn_cast<VarDecl>(decl)) {
    if (const AnnotateAttr *attr = metalAttribute(variable, "function_constant")) {
      variables.push_back(variable);
      setValue(variable, attr, options.functionConstants);
    }
  } else if (isa<NamespaceDecl, LinkageSpecDecl>(decl)) {
    for (Decl *inner : cast<DeclContext>(decl)->decls())
      visit(inner);
  }
}

void KernelCollector::HandleTranslationUnit(ASTContext &context) {
  if (diagnostics.hasErrors())
    return;
  checkMetalRules(context, declarations, diagnostics);
  // Once more, for templates that have been instantiated since.
  for (Decl *decl : declarations) {
    define.run(context, decl);
    exits.run(context, decl);
    if (options.portable)
      coherent.run(context, decl);
    if (options.portable || options.checks.steps)
      collectLoops(decl);
  }
  std::set<const VarDecl *> seenVariables;
  for (const VarDecl *variable : variables) {
    if (!seenVariables.insert(variable->getCanonicalDecl()).second)
      continue;
    auto index = integerArgument(metalAttribute(variable, "function_constant"), context);
    if (!index) {
      error(variable, "function_constant needs an index");
      continue;
    }
    FunctionConstantInfo info;
    info.name = variable->getNameAsString();
    info.index = static_cast<uint32_t>(*index);
    info.type = spelling(variable->getType().getUnqualifiedType(), context);
    Numbers numbers = numbersOf(variable->getType(), context);
    info.scalarKind = numbers.kind;
    info.scalarBits = numbers.bits;
    info.vectorWidth = numbers.count;
    constants.push_back({info, variable});
  }
  std::set<const FunctionDecl *> seen;
  for (const FunctionDecl *function : functions) {
    const FunctionDecl *definition = nullptr;
    if (!function->hasBody(definition))
      continue;
    // An explicit instantiation of a template may occur twice.
    if (seen.insert(definition->getCanonicalDecl()).second)
      addKernel(definition);
  }
  std::set<std::string> names;
  for (const DeclaredKernel &kernel : kernels)
    if (!names.insert(kernel.info.name).second)
      error(kernel.decl, "two kernels have the name '" + kernel.info.name + "'");
}

namespace {
class LoopVisitor : public RecursiveASTVisitor<LoopVisitor> {
public:
  LoopVisitor(const SourceManager &sources, std::vector<std::array<unsigned, 4>> &loops)
      : sources(sources), loops(loops) {}
  bool VisitForStmt(ForStmt *loop) { return add(loop); }
  bool VisitWhileStmt(WhileStmt *loop) { return add(loop); }
  bool VisitDoStmt(DoStmt *loop) { return add(loop); }

private:
  const SourceManager &sources;
  std::vector<std::array<unsigned, 4>> &loops;

  bool add(const Stmt *loop) {
    PresumedLoc begin = sources.getPresumedLoc(sources.getExpansionLoc(loop->getBeginLoc())),
                end = sources.getPresumedLoc(sources.getExpansionLoc(loop->getEndLoc()));
    if (begin.isValid() && end.isValid())
      loops.push_back({begin.getLine(), begin.getColumn(), end.getLine(), end.getColumn()});
    return true;
  }
};
} // namespace

void KernelCollector::collectLoops(Decl *decl) {
  const SourceManager &sources = ast->getSourceManager();
  if (sources.isInMainFile(sources.getExpansionLoc(decl->getLocation())))
    LoopVisitor(sources, loops).TraverseDecl(decl);
}

/// The scalar type and width of a position parameter: a 16- or 32-bit unsigned number or a vector
/// of them.
static bool readPositionType(QualType type, const ASTContext &ast, ParameterInfo &info) {
  QualType scalar = type.getCanonicalType().getUnqualifiedType();
  uint32_t width = 1;
  if (const auto *record = scalar->getAsCXXRecordDecl()) {
    const auto *special = dyn_cast<ClassTemplateSpecializationDecl>(record);
    if (!special || special->getName() != "vec" || special->getTemplateArgs().size() != 2)
      return false;
    scalar = special->getTemplateArgs()[0].getAsType();
    width = static_cast<uint32_t>(special->getTemplateArgs()[1].getAsIntegral().getZExtValue());
  }
  if (!scalar->isIntegerType() || scalar->isBooleanType() || width > 3)
    return false;
  uint64_t bits = ast.getTypeSize(scalar);
  if (bits != 16 && bits != 32)
    return false;
  info.scalarKind = scalar->isSignedIntegerType() ? ScalarKind::Signed : ScalarKind::Unsigned;
  info.scalarBits = static_cast<uint32_t>(bits);
  info.vectorWidth = width;
  return true;
}

bool KernelCollector::readParameter(const ParmVarDecl *parameter, ParameterInfo &info,
                                    bool &hasIndex, std::string &existsIf) {
  info.name = parameter->getNameAsString();
  hasIndex = false;
  QualType type = parameter->getType();
  for (const auto *attr : parameter->specific_attrs<AnnotateAttr>()) {
    StringRef name = metalName(attr);
    if (name.empty())
      continue;
    llvm::ArrayRef<PositionAttribute> positions = positionAttributes();
    const auto *position = llvm::find_if(
        positions, [&](const PositionAttribute &known) { return known.name == name; });
    if (position != positions.end()) {
      info.kind = ParameterInfo::Kind::Position;
      info.position = position->position;
      if (!readPositionType(type, *ast, info) || (info.vectorWidth > 1 && !position->mayBeVector)) {
        error(parameter,
              "type '" + spelling(type, *ast) + "' is not valid for attribute '" + name + "'");
        return false;
      }
      return true;
    }
    if (name == "exists_if") {
      existsIf = stringArgument(attr).value_or("");
      continue;
    }
    if (name != "buffer" && name != "threadgroup") {
      error(parameter, "this device has no parameters with attribute '" + name + "'");
      return false;
    }
  }
  QualType pointee = type->getPointeeType();
  if (pointee.isNull()) {
    error(parameter,
          "parameter '" + info.name +
              "' of a kernel must be a pointer or a reference, or have an attribute that says "
              "where its value comes from");
    return false;
  }
  unsigned space = ast->getTargetAddressSpace(pointee.getAddressSpace());
  if (space < 1 || space > 3) {
    error(parameter,
          "pointer or reference parameter '" + info.name +
              "' of a kernel must be in the device, constant or threadgroup address space");
    return false;
  }
  info.addressSpace = static_cast<AddressSpace>(space);
  info.kind = space == 3 ? ParameterInfo::Kind::Threadgroup : ParameterInfo::Kind::Buffer;
  info.isReference = type->isReferenceType();
  info.isConst = pointee.isConstQualified() || space == 2;
  QualType element = ast->getBaseElementType(pointee);
  info.elementType = spelling(element.getUnqualifiedType(), *ast);
  Numbers numbers = numbersOf(pointee, *ast);
  info.scalarKind = numbers.kind;
  info.scalarBits = numbers.bits;
  info.vectorWidth = numbers.count;
  if (!pointee->isVoidType() && !pointee->isIncompleteType()) {
    info.elementSize = static_cast<uint64_t>(ast->getTypeSizeInChars(pointee).getQuantity());
    info.elementAlignment = static_cast<uint64_t>(ast->getTypeAlignInChars(pointee).getQuantity());
  }
  bool isBuffer = info.kind == ParameterInfo::Kind::Buffer;
  const AnnotateAttr *attr = metalAttribute(parameter, isBuffer ? "buffer" : "threadgroup");
  if (attr) {
    auto index = integerArgument(attr, *ast);
    if (!index || *index >= maxBufferBindings) {
      error(parameter, llvm::Twine("attribute '") + (isBuffer ? "buffer" : "threadgroup") +
                           "' needs an index from 0 to " + llvm::Twine(maxBufferBindings - 1));
      return false;
    }
    info.index = static_cast<uint32_t>(*index);
    hasIndex = true;
  }
  return true;
}

void KernelCollector::addKernel(const FunctionDecl *function) {
  DeclaredKernel kernel;
  kernel.decl = function;
  kernel.info.name = function->getNameAsString();
  if (auto name = stringArgument(metalAttribute(function, "host_name")))
    kernel.info.name = *name;
  kernel.info.line = ast->getSourceManager().getExpansionLineNumber(function->getLocation());
  kernel.info.unusable = refusal(function);
  if (!kernel.info.unusable.empty()) {
    kernels.push_back(std::move(kernel));
    return;
  }
  if (!function->getReturnType()->isVoidType())
    error(function, "kernel '" + kernel.info.name + "' must return void");
  for (StringRef name : {"max_total_threads_per_threadgroup"})
    if (const AnnotateAttr *attr = metalAttribute(function, name)) {
      auto limit = integerArgument(attr, *ast);
      if (!limit || *limit == 0)
        error(function, llvm::Twine(name) + " needs a positive number");
      else
        kernel.info.maxTotalThreadsPerThreadgroup =
            static_cast<uint32_t>(std::min<uint64_t>(*limit, maxThreadsPerThreadgroup));
    }

  std::vector<bool> given;
  std::set<uint32_t> buffers, groups;
  for (const ParmVarDecl *parameter : function->parameters()) {
    ParameterInfo info;
    bool hasIndex = false;
    if (!readParameter(parameter, info, hasIndex, kernel.existsIf.emplace_back()))
      return;
    if (hasIndex) {
      auto &used = info.kind == ParameterInfo::Kind::Buffer ? buffers : groups;
      if (!used.insert(info.index).second) {
        error(parameter, "index " + llvm::Twine(info.index) +
                             " is used by two parameters of kernel '" + kernel.info.name + "'");
        return;
      }
    }
    given.push_back(hasIndex);
    kernel.info.parameters.push_back(std::move(info));
  }
  // Parameters without an index get the free indices, in order.
  uint32_t nextBuffer = 0, nextGroup = 0;
  for (size_t i = 0; i < kernel.info.parameters.size(); ++i) {
    ParameterInfo &info = kernel.info.parameters[i];
    if (given[i] || info.kind == ParameterInfo::Kind::Position)
      continue;
    bool isBuffer = info.kind == ParameterInfo::Kind::Buffer;
    auto &used = isBuffer ? buffers : groups;
    uint32_t &next = isBuffer ? nextBuffer : nextGroup;
    while (used.count(next))
      ++next;
    info.index = next;
    used.insert(next);
    if (next >= maxBufferBindings) {
      error(function, "kernel '" + kernel.info.name + "' has more than " +
                          llvm::Twine(maxBufferBindings) +
                          (isBuffer ? " buffers" : " threadgroup arguments"));
      return;
    }
  }
  kernels.push_back(std::move(kernel));
}

} // namespace triton_metal

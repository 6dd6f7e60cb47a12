// Rows 1, 8, 9, 10, 23, 26 and 28: signatures, addresses, local arrays and sizes.
#include "host_device/msl/MetalAttributes.h"
#include "host_device/quirks/Matchers.h"
#include "clang/AST/Attr.h"
#include "clang/AST/DeclCXX.h"
#include "clang/Basic/SourceManager.h"

using namespace clang;
using llvm::StringRef;

namespace triton_metal::quirks {

/// Kernels of fewer statements, after inlining and unrolling, have not been reported for row 9. The
/// report's smallest one has some 90 copies of a function of about 60 statements.
constexpr uint64_t largeKernel = 5000;
/// Compilers unroll loops of so many iterations.
constexpr uint64_t shortLoop = 32;
/// Row 23: what one loop may become by unrolling.
constexpr uint64_t mostUnrolled = 16384;

static std::optional<int64_t> attributeNumber(const AnnotateAttr *attribute, unsigned index,
                                              const ASTContext &ast) {
  if (!attribute || index >= attribute->args_size())
    return std::nullopt;
  const Expr *argument = *(attribute->args_begin() + index);
  Expr::EvalResult result;
  if (!argument || argument->isValueDependent() || !argument->EvaluateAsInt(result, ast))
    return std::nullopt;
  return int64_t(result.Val.getInt().getLimitedValue());
}

void matchSignature(const Scan &scan) {
  if (!scan.walk.isKernel)
    return;
  const FunctionDecl *kernel = scan.walk.root;
  const ASTContext &ast = scan.values.ast;
  for (StringRef name : {"max_total_threads_per_threadgroup", "required_threads_per_threadgroup"}) {
    const AnnotateAttr *attribute = metalAttribute(kernel, name);
    std::optional<int64_t> threads = attributeNumber(attribute, 0, ast);
    for (unsigned i = 1; threads && i < 3; ++i)
      if (std::optional<int64_t> next = attributeNumber(attribute, i, ast))
        *threads *= *next;
    if (!threads || *threads > 32)
      continue;
    SourceLocation place = attribute->getLocation();
    const SourceManager &sources = ast.getSourceManager();
    if (place.isInvalid() || sources.isInSystemHeader(sources.getExpansionLoc(place)))
      place = kernel->getLocation();
    scan.report(1, QuirkClass::Defect, place,
                "kernel '" + kernel->getNameAsString() + "' is bounded to " +
                    llvm::Twine(*threads) +
                    " threads, so that its threadgroup barriers may order nothing; write 64");
  }
  for (const ParmVarDecl *parameter : kernel->parameters()) {
    QualType pointee = parameter->getType()->getPointeeType();
    if (!pointee.isNull() && Values::spaceOf(pointee) == Space::Threadgroup)
      scan.report(10, QuirkClass::Defect, parameter->getLocation(),
                  "threadgroup memory '" + parameter->getNameAsString() +
                      "' is a parameter of the kernel; declare it in the body");
  }
}

void matchByteAccesses(const Scan &scan) {
  for (const Access &access : scan.walk.accesses) {
    Space space = Scan::spaceOf(access);
    if (!access.lvalue || space == Space::Thread || access.type->isIncompleteType() ||
        scan.values.ast.getTypeSizeInChars(access.type).getQuantity() != 1)
      continue;
    Pointer pointer = scan.pointerOf(access);
    unsigned constants = 0, variables = 0;
    for (const Pointer::Step &step :
         ArrayRef(pointer.steps).drop_front(pointer.stepsBeforeChange)) {
      if (step.elementBytes != 1)
        continue;
      std::optional<int64_t> number = scan.values.constant(step.index);
      if (!number)
        ++variables;
      else if (*number != 0)
        constants = 1; // the compiler adds constants
    }
    if (variables + constants < 2)
      continue;
    scan.report(8, space == Space::Threadgroup ? QuirkClass::Unproven : QuirkClass::Defect,
                access.location,
                llvm::Twine("an access of one byte adds ") + llvm::Twine(variables + constants) +
                    " offsets to the pointer one after the other; add the offsets first");
  }
}

bool Scan::isStatic(Value index, const Scope *scope, bool alsoShort) const {
  index = values.resolveNumber(index);
  if (!index.expr)
    return false;
  if (values.constant(index))
    return true;
  if (const VarDecl *variable = variableOf(index.expr)) {
    const ForStmt *loop = values.loopOf(variable);
    for (const Scope *place = scope; loop && place; place = place->outer)
      if (place->statement == loop) {
        if (isUnrolled(place, values))
          return true;
        std::optional<uint64_t> trips = tripCount(loop, place->frame, values);
        return alsoShort && trips && *trips <= shortLoop;
      }
    return false;
  }
  if (isa<ArraySubscriptExpr, CallExpr, MemberExpr>(index.expr))
    return false;
  bool any = false;
  for (const Stmt *child : index.expr->children())
    if (const auto *inner = dyn_cast_or_null<Expr>(child)) {
      any = true;
      if (!isStatic({inner, index.frame}, scope, alsoShort))
        return false;
    }
  return any;
}

/// A local variable of a thread that has no value at first.
static bool isUninitialised(const VarDecl *variable) {
  if (variable->isStaticLocal() || isa<ParmVarDecl>(variable) ||
      Values::spaceOf(variable->getType()) != Space::Thread)
    return false;
  const Expr *init = variable->getInit();
  if (!init)
    return true;
  const auto *construct = dyn_cast<CXXConstructExpr>(init->IgnoreParens());
  return construct && construct->getNumArgs() == 0 && !construct->requiresZeroInitialization() &&
         construct->getConstructor()->isDefaulted();
}

static bool isLocalArray(QualType type) {
  return type->isConstantArrayType() || Values::templateName(type) == "array";
}

void matchLocalArrays(const Scan &scan) {
  llvm::DenseMap<const VarDecl *, const Access *> indexed;
  for (const Access &access : scan.walk.accesses) {
    if (!access.lvalue || Scan::spaceOf(access) != Space::Thread)
      continue;
    Pointer pointer = scan.pointerOf(access);
    const auto *root = dyn_cast_or_null<VarDecl>(pointer.root);
    if (!root || !root->isLocalVarDecl() || root->isStaticLocal() ||
        Values::spaceOf(root->getType()) != Space::Thread)
      continue;
    for (const Pointer::Step &step : pointer.steps)
      if (!scan.isStatic(step.index, access.scope, /*alsoShort=*/true))
        indexed.try_emplace(root, &access);
    if (scan.walk.statements > largeKernel && indexed.lookup(root) == &access &&
        (isLocalArray(root->getType()) || Values::vectorOf(root->getType())))
      scan.report(9, QuirkClass::Defect, access.location,
                  "'" + root->getNameAsString() + "' is indexed at run time in a kernel of " +
                      llvm::Twine(scan.walk.statements) +
                      " statements; use constant indices or selects");
  }
  for (const Variable &event : scan.walk.variables) {
    const VarDecl *variable = event.variable;
    QualType element = scan.values.ast.getBaseElementType(variable->getType());
    if (Values::spaceOf(variable->getType()) == Space::Threadgroup ||
        Values::spaceOf(element) == Space::Threadgroup) {
      if (Values::isMatrix(element))
        scan.report(26, QuirkClass::Defect, variable->getLocation(),
                    "threadgroup variable '" + variable->getNameAsString() +
                        "' is of a matrix type, which has no constructor there; declare numbers "
                        "and cast the pointer");
      continue;
    }
    if (!isLocalArray(variable->getType()) || !isUninitialised(variable) ||
        Values::isSimdgroupMatrix(element))
      continue;
    bool isIndexed = indexed.count(variable);
    scan.report(28, isIndexed ? QuirkClass::Defect : QuirkClass::Costly, variable->getLocation(),
                "local array '" + variable->getNameAsString() + "' has no initial value" +
                    (isIndexed ? ", and is indexed at run time"
                               : "; all its indices are constants after unrolling") +
                    (isIndexed ? "; write ' = {}'" : ""));
  }
}

static bool isWide(QualType type, const ASTContext &ast) {
  const auto *record = type->getAsCXXRecordDecl();
  if (!record || type->isIncompleteType() || Values::vectorOf(type) || Values::isMatrix(type) ||
      Values::isSimdgroupMatrix(type))
    return false;
  return ast.getTypeSizeInChars(type).getQuantity() > 16;
}

/// How deep vector literals of several parts are nested.
static unsigned literalDepth(const Expr *expr) {
  expr = plain(expr);
  while (const auto *cast = dyn_cast<CastExpr>(expr))
    expr = plain(cast->getSubExpr());
  const auto *construct = dyn_cast<CXXConstructExpr>(expr);
  if (!construct || !Values::vectorOf(construct->getType()))
    return 0;
  unsigned inner = 0;
  for (const Expr *argument : construct->arguments())
    inner = std::max(inner, literalDepth(argument));
  return inner + (construct->getNumArgs() > 1);
}

void matchSizes(const Scan &scan) {
  for (const LoopEvent &event : scan.walk.loops)
    if (event.unrolledStatements > mostUnrolled) {
      bool isOutermost = true;
      for (const Scope *outer : loopsAround(event.scope))
        isOutermost &= !outer->unrolled;
      if (isOutermost)
        scan.report(23, QuirkClass::Costly, event.location,
                    "this loop becomes " + llvm::Twine(event.unrolledStatements) +
                        " statements by the unrolling that the text asks for; leave it rolled");
    }
  for (const Access &access : scan.walk.accesses)
    if (access.lvalue && access.use == Use::Load && Scan::spaceOf(access) != Space::Thread &&
        !isa<MemberExpr>(access.lvalue) && isWide(access.type, scan.values.ast) && access.isWhole)
      scan.report(23, QuirkClass::Costly, access.location,
                  "one load of " +
                      llvm::Twine(scan.values.ast.getTypeSizeInChars(access.type).getQuantity()) +
                      " bytes; load it field by field");
  for (const Operator &event : scan.walk.operators)
    if (isa<CXXConstructExpr>(event.expr) && literalDepth(event.expr) > 2)
      scan.report(23, QuirkClass::Costly, event.location,
                  "vector literals are nested three deep; give the parts names");
}

} // namespace triton_metal::quirks

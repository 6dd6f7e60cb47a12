#include "host_device/msl/DefineExpressions.h"
#include "host_device/msl/CodeVisitor.h"
#include "clang/AST/ExprCXX.h"
#include "clang/Basic/SourceManager.h"

using namespace clang;

namespace triton_metal {

namespace {

class Visitor : public CodeVisitor<Visitor> {
public:
  Visitor(ASTContext &context, llvm::DenseSet<const Stmt *> &done, bool keepsAmounts,
          std::vector<DefineExpressions::ThreadgroupVariable> &found)
      : context(context), done(done), keepsAmounts(keepsAmounts), found(found) {}

  /// What was evaluated when the declaration was read came from the tree as it was then.
  bool VisitVarDecl(VarDecl *variable) {
    if (variable->getType().getAddressSpace() == LangAS::opencl_local)
      if (PresumedLoc place = context.getSourceManager().getPresumedLoc(variable->getLocation());
          place.isValid()) {
        auto *function = dyn_cast_or_null<FunctionDecl>(variable->getParentFunctionOrMethod());
        found.push_back({variable->getNameAsString(),
                         function ? function->getNameAsString() : std::string(), place.getLine(),
                         place.getColumn()});
      }
    // Threadgroup memory has no value at first: Metal runs no constructor for it.
    if (variable->getType().getAddressSpace() == LangAS::opencl_local &&
        isa_and_nonnull<CXXConstructExpr>(variable->getInit())) {
      variable->setInit(nullptr);
      return true;
    }
    if (variable->hasInit() && !variable->isConstexpr() &&
        !variable->getInit()->isValueDependent()) {
      bool wasConstant = variable->hasConstantInitialization();
      variable->setInit(variable->getInit());
      // Later constant expressions may use the variable.
      SmallVector<PartialDiagnosticAt, 1> notes;
      if (wasConstant && variable->getType().isConstQualified())
        variable->checkForConstantInitialization(notes);
    }
    return true;
  }

  bool VisitBinaryOperator(BinaryOperator *operation) {
    if (operation->isInstantiationDependent() || operation->getRHS()->isInstantiationDependent() ||
        !done.insert(operation).second)
      return true;
    if (operation->isShiftOp() || operation->isShiftAssignOp())
      defineShift(operation);
    else if (operation->getOpcode() == BO_Div || operation->getOpcode() == BO_Rem)
      defineDivision(operation);
    return true;
  }

  bool VisitCastExpr(CastExpr *cast) {
    if (cast->getCastKind() != CK_FloatingToIntegral || cast->isInstantiationDependent() ||
        !done.insert(cast).second)
      return true;
    Expr *source = cast->getSubExpr();
    if (mayBeConstant(source) && !isSmall(source))
      cast->setSubExpr(throughMemory(source));
    return true;
  }

  /// `*(threadgroup half4 *)(array + i)` is an access of a half4: clang would take the array's
  /// alignment for it, and copy it in pieces of that size.
  bool VisitUnaryOperator(UnaryOperator *operation) {
    if (operation->getOpcode() == UO_Deref && isCastToRecord(operation->getSubExpr()) &&
        done.insert(operation).second)
      operation->setSubExpr(throughMemory(operation->getSubExpr()));
    return true;
  }
  bool VisitArraySubscriptExpr(ArraySubscriptExpr *subscript) {
    if (isCastToRecord(subscript->getLHS()) && done.insert(subscript).second)
      subscript->setLHS(throughMemory(subscript->getLHS()));
    return true;
  }

private:
  ASTContext &context;
  llvm::DenseSet<const Stmt *> &done;
  bool keepsAmounts;
  std::vector<DefineExpressions::ThreadgroupVariable> &found;

  static bool isCastToRecord(const Expr *pointer) {
    auto *cast = dyn_cast<ExplicitCastExpr>(pointer->IgnoreParens());
    return cast && !cast->isInstantiationDependent() && cast->getCastKind() == CK_BitCast &&
           cast->getType()->isPointerType() && cast->getType()->getPointeeType()->isRecordType();
  }

  /// `a << b` -> `a << (b & 31)`: Metal takes the low bits of the amount.
  void defineShift(BinaryOperator *shift) {
    QualType shifted = shift->getLHS()->getType();
    if (auto *assignment = dyn_cast<CompoundAssignOperator>(shift))
      shifted = assignment->getComputationLHSType();
    Expr *amount = shift->getRHS();
    QualType type = amount->getType().getUnqualifiedType();
    if (!shifted->isIntegerType() || !type->isIntegerType())
      return; // vectors: Metal's are classes, whose operators mask
    uint64_t width = context.getIntWidth(shifted);
    Expr::EvalResult value;
    if (amount->EvaluateAsInt(value, context) && !value.Val.getInt().isNegative() &&
        value.Val.getInt().getLimitedValue() < width)
      return;
    if (keepsAmounts) {
      if (mayBeConstant(amount))
        shift->setRHS(throughMemory(amount));
      return;
    }
    SourceLocation place = amount->getExprLoc();
    auto *mask = IntegerLiteral::Create(context, llvm::APInt(context.getIntWidth(type), width - 1),
                                        type, place);
    auto *inner = new (context) ParenExpr(amount->getBeginLoc(), amount->getEndLoc(), amount);
    shift->setRHS(BinaryOperator::Create(context, inner, mask, BO_And, type, VK_PRValue,
                                         OK_Ordinary, place, FPOptionsOverride()));
  }

  void defineDivision(BinaryOperator *division) {
    Expr *divisor = division->getRHS();
    if (!divisor->getType()->isIntegerType() || !mayBeConstant(divisor))
      return;
    Expr::EvalResult value;
    if (divisor->EvaluateAsInt(value, context) && !value.Val.getInt().isZero() &&
        !(value.Val.getInt().isSigned() && value.Val.getInt().isAllOnes()))
      return;
    division->setRHS(throughMemory(divisor));
  }

  /// Whether code generation may make a constant of the expression: all but reads of variables and
  /// calls, which it never folds.
  bool mayBeConstant(const Expr *expr) const {
    expr = expr->IgnoreParens();
    while (auto *cast = dyn_cast<CastExpr>(expr)) {
      if (cast->getCastKind() == CK_LValueToRValue)
        return cast->getSubExpr()->getType().isConstQualified() ||
               !isa<DeclRefExpr, ArraySubscriptExpr, UnaryOperator>(
                   cast->getSubExpr()->IgnoreParens());
      expr = cast->getSubExpr()->IgnoreParens();
    }
    return true;
  }

  /// A float that every integer type of more than a byte can hold.
  bool isSmall(const Expr *source) const {
    llvm::APFloat value(0.0f);
    Expr::EvalResult result;
    if (!source->EvaluateAsRValue(result, context) || !result.Val.isFloat())
      return false;
    value = result.Val.getFloat();
    bool loses = false;
    value.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmTowardZero, &loses);
    return value.isFinite() && value.convertToDouble() >= 0 && value.convertToDouble() < 128;
  }

  /// Reads the value back from a temporary: what is loaded is no constant to code generation.
  Expr *throughMemory(Expr *value) {
    QualType type = value->getType().getUnqualifiedType();
    auto *temporary =
        new (context) MaterializeTemporaryExpr(type, value, /*BoundToLvalueReference=*/false);
    return ImplicitCastExpr::Create(context, type, CK_LValueToRValue, temporary,
                                    /*BasePath=*/nullptr, VK_PRValue, FPOptionsOverride());
  }
};

} // namespace

void DefineExpressions::run(ASTContext &context, Decl *declaration) {
  if (!context.getSourceManager().isInSystemHeader(declaration->getLocation()))
    Visitor(context, done, keepsAmounts, threadgroupVariables).TraverseDecl(declaration);
}

} // namespace triton_metal

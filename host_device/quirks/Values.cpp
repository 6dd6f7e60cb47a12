#include "host_device/quirks/Values.h"
#include "host_device/msl/MetalAttributes.h"
#include "clang/AST/ASTLambda.h"
#include "clang/AST/DeclTemplate.h"
#include "clang/AST/RecursiveASTVisitor.h"
#include "clang/Basic/SourceManager.h"

using namespace clang;
using llvm::StringRef;

namespace triton_metal::quirks {

const Expr *plain(const Expr *expr) {
  while (expr) {
    const Expr *inner = expr->IgnoreParens();
    if (const auto *node = dyn_cast<FullExpr>(inner))
      inner = node->getSubExpr();
    else if (const auto *node = dyn_cast<MaterializeTemporaryExpr>(inner))
      inner = node->getSubExpr();
    else if (const auto *node = dyn_cast<CXXBindTemporaryExpr>(inner))
      inner = node->getSubExpr();
    else if (const auto *node = dyn_cast<SubstNonTypeTemplateParmExpr>(inner))
      inner = node->getReplacement();
    else if (const auto *node = dyn_cast<CXXDefaultArgExpr>(inner))
      inner = node->getExpr();
    else if (const auto *node = dyn_cast<OpaqueValueExpr>(inner); node && node->getSourceExpr())
      inner = node->getSourceExpr();
    else if (const auto *node = dyn_cast<CastExpr>(inner)) {
      switch (node->getCastKind()) {
      case CK_NoOp:
      case CK_LValueToRValue:
      case CK_AddressSpaceConversion:
      case CK_DerivedToBase:
      case CK_UncheckedDerivedToBase:
      case CK_ConstructorConversion:
        inner = node->getSubExpr();
        break;
      default:
        break;
      }
    } else if (const auto *node = dyn_cast<CXXConstructExpr>(inner);
               node && node->getNumArgs() == 1 && node->getConstructor()->isCopyOrMoveConstructor())
      inner = node->getArg(0);
    if (inner == expr)
      return expr;
    expr = inner;
  }
  return expr;
}

const VarDecl *variableOf(const Expr *expr) {
  if (!expr)
    return nullptr;
  const auto *reference = dyn_cast<DeclRefExpr>(plain(expr));
  return reference ? dyn_cast<VarDecl>(reference->getDecl()) : nullptr;
}

//===----------------------------------------------------------------------===//
// What statements change
//===----------------------------------------------------------------------===//

/// The variable of which an lvalue is a part, and whether it is the whole variable.
static std::pair<const VarDecl *, bool> changedVariable(const Expr *expr) {
  bool whole = true;
  while (expr) {
    expr = plain(expr);
    if (const auto *member = dyn_cast<MemberExpr>(expr)) {
      if (member->isArrow())
        return {nullptr, false};
      expr = member->getBase();
      whole = false;
    } else if (const auto *subscript = dyn_cast<ArraySubscriptExpr>(expr)) {
      const auto *cast = dyn_cast<CastExpr>(subscript->getBase()->IgnoreParens());
      if (!cast || cast->getCastKind() != CK_ArrayToPointerDecay)
        return {nullptr, false};
      expr = cast->getSubExpr();
      whole = false;
    } else if (const auto *call = dyn_cast<CXXOperatorCallExpr>(expr);
               call && call->getOperator() == OO_Subscript) {
      expr = call->getArg(0);
      whole = false;
    } else if (const auto *property = dyn_cast<MSPropertyRefExpr>(expr)) {
      expr = property->getBaseExpr();
      whole = false;
    } else if (const auto *pseudo = dyn_cast<PseudoObjectExpr>(expr)) {
      expr = pseudo->getSyntacticForm();
    } else {
      return {variableOf(expr), whole};
    }
  }
  return {nullptr, false};
}

namespace {

class ChangeCollector : public RecursiveASTVisitor<ChangeCollector> {
public:
  std::function<void(const VarDecl *, const Expr *)> assign; // a null value: changed in another way
  std::function<void(const ForStmt *)> loop;

  void change(const Expr *lvalue, const Expr *value) {
    auto [variable, whole] = changedVariable(lvalue);
    if (variable)
      assign(variable, whole ? value : nullptr);
  }
  bool VisitForStmt(ForStmt *statement) {
    if (loop)
      loop(statement);
    return true;
  }
  bool VisitBinaryOperator(BinaryOperator *operation) {
    if (operation->isAssignmentOp())
      change(operation->getLHS(), operation->isCompoundAssignmentOp()
                                      ? static_cast<const Expr *>(operation)
                                      : operation->getRHS());
    return true;
  }
  bool VisitUnaryOperator(UnaryOperator *operation) {
    if (operation->isIncrementDecrementOp() || operation->getOpcode() == UO_AddrOf)
      change(operation->getSubExpr(), nullptr);
    return true;
  }
  bool VisitCallExpr(CallExpr *call) {
    const FunctionDecl *callee = call->getDirectCallee();
    if (!callee)
      return true;
    unsigned first = 0;
    if (isa<CXXOperatorCallExpr>(call) && isa<CXXMethodDecl>(callee)) {
      const auto *node = cast<CXXOperatorCallExpr>(call);
      if (node->getOperator() == OO_Equal)
        change(call->getArg(0), call->getArg(1));
      else if (!cast<CXXMethodDecl>(callee)->isConst() && node->getOperator() != OO_Subscript)
        change(call->getArg(0), nullptr);
      first = 1;
    } else if (const auto *member = dyn_cast<CXXMemberCallExpr>(call)) {
      if (!cast<CXXMethodDecl>(callee)->isConst())
        change(member->getImplicitObjectArgument(), nullptr);
    }
    for (unsigned i = first; i < call->getNumArgs() && i - first < callee->getNumParams(); ++i) {
      QualType type = callee->getParamDecl(i - first)->getType();
      if (type->isLValueReferenceType() && !type.getNonReferenceType().isConstQualified())
        change(call->getArg(i), nullptr);
      // An array that a function may write through a pointer.
      if (type->isPointerType() && !type->getPointeeType().isConstQualified())
        if (const auto *cast = dyn_cast<CastExpr>(plain(call->getArg(i)));
            cast && cast->getCastKind() == CK_ArrayToPointerDecay)
          change(cast->getSubExpr(), nullptr);
    }
    return true;
  }
  bool VisitVarDecl(VarDecl *variable) {
    QualType type = variable->getType();
    if (type->isLValueReferenceType() && !type.getNonReferenceType().isConstQualified() &&
        variable->hasInit())
      change(variable->getInit(), nullptr);
    return true;
  }
};

} // namespace

void Values::collect(const FunctionDecl *function) {
  if (!function || !collected.insert(function).second)
    return;
  auto &variables = known[function];
  ChangeCollector collector;
  collector.assign = [&](const VarDecl *variable, const Expr *value) {
    VariableFacts &facts = variables[variable];
    if (!value)
      facts.escapes = true;
    else if (isa<CompoundAssignOperator>(value))
      facts.updates.push_back(value);
    else
      facts.assigned.push_back(value);
  };
  collector.loop = [&](const ForStmt *loop) {
    if (std::optional<Counter> counter = counterOf(loop))
      counters[counter->variable] = loop;
  };
  if (const Stmt *body = function->getBody())
    collector.TraverseStmt(const_cast<Stmt *>(body));
}

static const FunctionDecl *functionOf(const VarDecl *variable) {
  const DeclContext *context = variable->getDeclContext();
  while (context && !context->isFunctionOrMethod())
    context = context->getParent();
  return dyn_cast_or_null<FunctionDecl>(context);
}

const VariableFacts &Values::facts(const VarDecl *variable, const FunctionDecl *) {
  [[clang::no_destroy]] static const VariableFacts none;
  const FunctionDecl *function = functionOf(variable);
  if (!function)
    return none;
  if (const FunctionDecl *definition = function->getDefinition())
    function = definition;
  collect(function);
  auto &variables = known[function];
  auto found = variables.find(variable);
  return found == variables.end() ? none : found->second;
}

const ForStmt *Values::loopOf(const VarDecl *variable) {
  facts(variable, nullptr);
  return counters.lookup(variable);
}

const VariableSet &Values::changedIn(const Stmt *statement) {
  std::unique_ptr<VariableSet> &set = changes[statement];
  if (!set) {
    auto found = std::make_unique<VariableSet>();
    ChangeCollector collector;
    collector.assign = [&](const VarDecl *variable, const Expr *) { found->insert(variable); };
    collector.TraverseStmt(const_cast<Stmt *>(statement));
    return *(changes[statement] = std::move(found));
  }
  return *set;
}

//===----------------------------------------------------------------------===//
// Types and the standard library
//===----------------------------------------------------------------------===//

Space Values::spaceOf(QualType pointee) {
  switch (pointee.getAddressSpace()) {
  case LangAS::opencl_global:
    return Space::Device;
  case LangAS::opencl_local:
    return Space::Threadgroup;
  case LangAS::opencl_constant:
    return Space::Constant;
  default:
    return Space::Thread;
  }
}

StringRef Values::templateName(QualType type) {
  const auto *record = type.getNonReferenceType()->getAsCXXRecordDecl();
  const auto *special = dyn_cast_or_null<ClassTemplateSpecializationDecl>(record);
  return special && special->getIdentifier() ? special->getName() : StringRef();
}

std::optional<std::pair<QualType, unsigned>> Values::vectorOf(QualType type) {
  StringRef name = templateName(type);
  if (name != "vec" && name != "packed_vec")
    return std::nullopt;
  const auto *special =
      cast<ClassTemplateSpecializationDecl>(type.getNonReferenceType()->getAsCXXRecordDecl());
  if (special->getTemplateArgs().size() != 2)
    return std::nullopt;
  return std::pair(special->getTemplateArgs()[0].getAsType(),
                   unsigned(special->getTemplateArgs()[1].getAsIntegral().getZExtValue()));
}

bool Values::isFloat(QualType type) {
  if (auto vector = vectorOf(type))
    type = vector->first;
  return type->isRealFloatingType();
}

bool Values::inLibrary(const Decl *decl) const {
  const SourceManager &sources = ast.getSourceManager();
  return sources.isInSystemHeader(sources.getExpansionLoc(decl->getLocation()));
}

StringRef Values::libraryName(const CallExpr *call) const {
  const FunctionDecl *callee = call->getDirectCallee();
  if (!callee || !callee->getIdentifier() || !inLibrary(callee))
    return "";
  return callee->getName();
}

StringRef Values::libraryNamespace(const CallExpr *call) {
  const FunctionDecl *callee = call->getDirectCallee();
  const auto *space =
      callee ? dyn_cast<NamespaceDecl>(callee->getDeclContext()->getEnclosingNamespaceContext())
             : nullptr;
  StringRef name = space ? space->getName() : "";
  return name == "fast" || name == "precise" ? name : "";
}

bool Values::isCoherent(SourceLocation begin, SourceLocation end) const {
  const SourceManager &sources = ast.getSourceManager();
  auto [file, from] = sources.getDecomposedLoc(sources.getExpansionLoc(begin));
  auto [sameFile, to] = sources.getDecomposedLoc(sources.getExpansionLoc(end));
  if (file != sameFile)
    return false;
  StringRef text = sources.getBufferData(file);
  for (auto [first, last] : coherentPlaces) {
    auto [place, start] = sources.getDecomposedLoc(first);
    if (place != file || start > to)
      continue;
    if (start >= from)
      return true;
    // Written before the type.
    unsigned stop = sources.getDecomposedLoc(last).second + 1;
    if (stop <= from && text.slice(stop, from).find_first_of(";{}(),=") == StringRef::npos)
      return true;
  }
  return false;
}

//===----------------------------------------------------------------------===//
// Frames and what expressions stand for
//===----------------------------------------------------------------------===//

Frame *Values::makeFrame() {
  frames.push_back(std::make_unique<Frame>());
  return frames.back().get();
}

const Frame *Values::frameOf(const Expr *call, const FunctionDecl *callee,
                             ArrayRef<const Expr *> arguments, const Frame *caller) {
  const Frame *&entry = callFrames[{call, caller}];
  if (entry)
    return entry;
  Frame *frame = makeFrame();
  frame->function = callee;
  frame->caller = caller;
  frame->call = call;
  frame->depth = caller ? caller->depth + 1 : 0;
  for (unsigned i = 0; i < callee->getNumParams() && i < arguments.size(); ++i)
    frame->arguments[callee->getParamDecl(i)] = {arguments[i], caller};
  callFrames[{call, caller}] = frame;
  return frame;
}

const Frame *Values::frameOf(const CallExpr *call, const FunctionDecl *callee,
                             const Frame *caller) {
  SmallVector<const Expr *> arguments(call->arguments());
  if (isa<CXXOperatorCallExpr>(call) && isa<CXXMethodDecl>(callee) && !arguments.empty())
    arguments.erase(arguments.begin());
  return frameOf(call, callee, arguments, caller);
}

Value Values::single(Value value) {
  const VarDecl *variable = variableOf(value.expr);
  if (!variable || variable->getType().getNonReferenceType().isVolatileQualified() ||
      variable->getType()->isArrayType())
    return {};
  if (const auto *parameter = dyn_cast<ParmVarDecl>(variable)) {
    for (const Frame *frame = value.frame; frame; frame = frame->caller) {
      auto found = frame->arguments.find(parameter);
      if (found == frame->arguments.end())
        continue;
      const VariableFacts &changes = facts(parameter, frame->function);
      bool isReference = parameter->getType()->isReferenceType();
      return isReference || (changes.assigned.empty() && !changes.changes()) ? found->second
                                                                             : Value();
    }
    return {};
  }
  if (!variable->isLocalVarDecl())
    return variable->getType().isConstQualified() && variable->getAnyInitializer() &&
                   !variable->getAnyInitializer()->isValueDependent()
               ? Value{variable->getAnyInitializer(), nullptr}
               : Value();
  const VariableFacts &changes = facts(variable, nullptr);
  if (variable->getType()->isReferenceType())
    return {variable->getInit(), value.frame};
  if (changes.changes())
    return {};
  const Expr *init = variable->getInit();
  if (const auto *construct = dyn_cast_or_null<CXXConstructExpr>(init);
      construct && construct->getNumArgs() == 0)
    init = nullptr; // a vector without a value
  if (init && changes.assigned.empty())
    return {init, value.frame};
  if (!init && changes.assigned.size() == 1)
    return {changes.assigned[0], value.frame};
  return {};
}

/// What a function returns, if that is all it does after defining some variables.
Value Values::returned(const CallExpr *call, const Frame *frame) {
  const FunctionDecl *callee = call->getDirectCallee();
  const FunctionDecl *definition = nullptr;
  if (!callee || inLibrary(callee) || !callee->hasBody(definition) || (frame && frame->depth > 30))
    return {};
  const auto *body = dyn_cast_or_null<CompoundStmt>(definition->getBody());
  if (!body || body->body_empty())
    return {};
  const auto *result = dyn_cast<ReturnStmt>(body->body_back());
  if (!result || !result->getRetValue())
    return {};
  for (const Stmt *statement : body->body())
    if (statement != result && !isa<DeclStmt, NullStmt, Expr>(statement))
      return {};
  return {result->getRetValue(), frameOf(call, definition, frame)};
}

Value Values::resolve(Value value) {
  for (unsigned steps = 0; steps < 64 && value.expr; ++steps) {
    value.expr = plain(value.expr);
    Value next = single(value);
    if (!next)
      if (const auto *call = dyn_cast<CallExpr>(value.expr)) {
        next = returned(call, value.frame);
        if (!next && libraryName(call) == "__tm_load" && call->getNumArgs() == 1)
          next = {call->getArg(0), value.frame};
      }
    if (!next)
      return value;
    value = next;
  }
  return value;
}

Value Values::resolveNumber(Value value) {
  for (unsigned steps = 0; steps < 64 && value.expr; ++steps) {
    value = resolve(value);
    if (!value.expr)
      return value;
    const Expr *inner = nullptr;
    if (const auto *cast = dyn_cast<CastExpr>(value.expr)) {
      if (cast->getCastKind() == CK_IntegralCast || cast->getCastKind() == CK_ToVoid)
        inner = cast->getSubExpr();
    } else if (const auto *call = dyn_cast<CallExpr>(value.expr)) {
      if (libraryName(call) == "as_type" && call->getNumArgs() == 1 &&
          call->getType()->isIntegerType() && call->getArg(0)->getType()->isIntegerType())
        inner = call->getArg(0);
    }
    if (!inner)
      return value;
    value.expr = inner;
  }
  return value;
}

SmallVector<Value, 2> Values::alternatives(Value value) {
  value = resolve(value);
  SmallVector<Value, 2> all{value};
  const VarDecl *variable = variableOf(value.expr);
  if (variable && variable->isLocalVarDecl() && !variable->getType()->isArrayType() &&
      !variable->getType().isVolatileQualified()) {
    const VariableFacts &changes = facts(variable, nullptr);
    if (variable->getInit())
      all.push_back(resolve({variable->getInit(), value.frame}));
    for (const Expr *assigned : changes.assigned)
      all.push_back(resolve({assigned, value.frame}));
  } else if (const auto *choice = dyn_cast_or_null<ConditionalOperator>(value.expr)) {
    all.push_back(resolve({choice->getTrueExpr(), value.frame}));
    all.push_back(resolve({choice->getFalseExpr(), value.frame}));
  }
  return all;
}

std::optional<Operation> Values::operation(const Expr *expr, const Frame *frame) {
  if (const auto *binary = dyn_cast<BinaryOperator>(expr)) {
    BinaryOperatorKind code = binary->getOpcode();
    QualType type = binary->getType();
    if (const auto *compound = dyn_cast<CompoundAssignOperator>(binary)) {
      code = BinaryOperator::getOpForCompoundAssignment(code);
      type = compound->getComputationResultType();
    } else if (!binary->isAdditiveOp() && !binary->isMultiplicativeOp() && !binary->isShiftOp() &&
               !binary->isBitwiseOp() && !binary->isComparisonOp())
      return std::nullopt;
    return Operation{code, {binary->getLHS(), frame}, {binary->getRHS(), frame}, type};
  }
  const auto *call = dyn_cast<CXXOperatorCallExpr>(expr);
  if (!call || call->getNumArgs() != 2)
    return std::nullopt;
  auto vector = vectorOf(call->getArg(0)->getType());
  if (!vector)
    vector = vectorOf(call->getArg(1)->getType());
  QualType element = vector ? vector->first : call->getArg(0)->getType();
  if (!vector && !isFloat(element))
    return std::nullopt;
  BinaryOperatorKind code;
  switch (call->getOperator()) {
  case OO_Plus:
  case OO_PlusEqual:
    code = BO_Add;
    break;
  case OO_Minus:
  case OO_MinusEqual:
    code = BO_Sub;
    break;
  case OO_Star:
  case OO_StarEqual:
    code = BO_Mul;
    break;
  case OO_Slash:
  case OO_SlashEqual:
    code = BO_Div;
    break;
  case OO_Percent:
  case OO_PercentEqual:
    code = BO_Rem;
    break;
  case OO_LessLess:
  case OO_LessLessEqual:
    code = BO_Shl;
    break;
  case OO_GreaterGreater:
  case OO_GreaterGreaterEqual:
    code = BO_Shr;
    break;
  case OO_Amp:
  case OO_AmpEqual:
    code = BO_And;
    break;
  case OO_Pipe:
  case OO_PipeEqual:
    code = BO_Or;
    break;
  case OO_Caret:
  case OO_CaretEqual:
    code = BO_Xor;
    break;
  case OO_Less:
    code = BO_LT;
    break;
  case OO_Greater:
    code = BO_GT;
    break;
  case OO_LessEqual:
    code = BO_LE;
    break;
  case OO_GreaterEqual:
    code = BO_GE;
    break;
  case OO_EqualEqual:
    code = BO_EQ;
    break;
  case OO_ExclaimEqual:
    code = BO_NE;
    break;
  default:
    return std::nullopt;
  }
  return Operation{code, {call->getArg(0), frame}, {call->getArg(1), frame}, element};
}

//===----------------------------------------------------------------------===//
// Equal expressions, sums, and what varies
//===----------------------------------------------------------------------===//

std::string Values::key(Value value, unsigned depth) {
  value = resolveNumber(value);
  if (!value.expr)
    return "?";
  if (depth > 24)
    return "#" + std::to_string(reinterpret_cast<uintptr_t>(value.expr));
  if (value.expr->getType()->isIntegerType())
    if (std::optional<int64_t> number = constant(value))
      return std::to_string(*number);
  if (const VarDecl *variable = variableOf(value.expr))
    return "v" + std::to_string(reinterpret_cast<uintptr_t>(variable->getCanonicalDecl()));
  if (auto binary = operation(value)) {
    std::string left = key(binary->left, depth + 1), right = key(binary->right, depth + 1);
    bool commutes = binary->code == BO_Add || binary->code == BO_Mul || binary->code == BO_And ||
                    binary->code == BO_Or || binary->code == BO_Xor;
    if (commutes && right < left)
      std::swap(left, right);
    return "(" + left + BinaryOperator::getOpcodeStr(binary->code).str() + right + ")";
  }
  std::string text = value.expr->getStmtClassName();
  if (const auto *call = dyn_cast<CallExpr>(value.expr); call && call->getDirectCallee())
    text = call->getDirectCallee()->getNameAsString();
  else if (const auto *member = dyn_cast<MemberExpr>(value.expr))
    text = member->getMemberDecl()->getNameAsString();
  else if (const auto *unary = dyn_cast<UnaryOperator>(value.expr))
    text = UnaryOperator::getOpcodeStr(unary->getOpcode()).str();
  else if (const auto *literal = dyn_cast<FloatingLiteral>(value.expr))
    text = std::to_string(literal->getValueAsApproximateDouble());
  text += "(";
  bool any = false;
  for (const Stmt *child : value.expr->children())
    if (const auto *inner = dyn_cast_or_null<Expr>(child)) {
      if (isa<DeclRefExpr>(plain(inner)) && plain(inner)->getType()->isFunctionType())
        continue;
      text += key({inner, value.frame}, depth + 1) + ",";
      any = true;
    }
  if (!any)
    text += std::to_string(reinterpret_cast<uintptr_t>(value.expr));
  return text + ")";
}

Linear Values::linear(Value value, unsigned depth) {
  Linear result;
  value = resolveNumber(value);
  if (!value.expr)
    return result;
  if (std::optional<int64_t> number = constant(value)) {
    result.constant = *number;
    return result;
  }
  auto add = [&](const Linear &other, __int128 factor) {
    result.constant += other.constant * factor;
    for (auto &[name, coefficient] : other.terms)
      if ((result.terms[name] += coefficient * factor) == 0)
        result.terms.erase(name);
  };
  if (depth < 24)
    if (auto binary = operation(value)) {
      if (binary->code == BO_Add || binary->code == BO_Sub) {
        add(linear(binary->left, depth + 1), 1);
        add(linear(binary->right, depth + 1), binary->code == BO_Add ? 1 : -1);
        return result;
      }
      if (binary->code == BO_Mul)
        for (auto [number, other] :
             {std::pair(binary->left, binary->right), std::pair(binary->right, binary->left)})
          if (std::optional<int64_t> factor = constant(number)) {
            add(linear(other, depth + 1), *factor);
            return result;
          }
      if (binary->code == BO_Shl)
        if (std::optional<int64_t> shift = constant(binary->right);
            shift && *shift >= 0 && *shift < 32) {
          add(linear(binary->left, depth + 1), __int128(1) << *shift);
          return result;
        }
    }
  result.terms[key(value)] = 1;
  return result;
}

bool Values::variesIn(Value value, const Stmt *statement, const Frame *frame, unsigned depth) {
  if (!value.expr)
    return false;
  if (depth > 48)
    return true;
  const Expr *expr = plain(value.expr);
  if (const VarDecl *variable = variableOf(expr)) {
    if (const auto *parameter = dyn_cast<ParmVarDecl>(variable))
      for (const Frame *place = value.frame; place; place = place->caller) {
        auto found = place->arguments.find(parameter);
        if (found == place->arguments.end())
          continue;
        const VariableFacts &changes = facts(parameter, nullptr);
        if (!parameter->getType()->isReferenceType() &&
            (changes.changes() || !changes.assigned.empty()) &&
            (place != frame || changedIn(statement).contains(parameter)))
          return true;
        return variesIn(found->second, statement, frame, depth + 1);
      }
    if (changedIn(statement).contains(variable))
      return true;
    if (!variable->isLocalVarDecl())
      return false;
    bool isInner = value.frame != frame;
    const SourceManager &sources = ast.getSourceManager();
    if (!isInner) {
      SourceLocation at = sources.getExpansionLoc(variable->getLocation());
      isInner =
          !sources.isBeforeInTranslationUnit(at,
                                             sources.getExpansionLoc(statement->getBeginLoc())) &&
          sources.isBeforeInTranslationUnit(at, sources.getExpansionLoc(statement->getEndLoc()));
    }
    if (!isInner)
      return false;
    const VariableFacts &changes = facts(variable, nullptr);
    if (changes.changes())
      return true;
    if (variable->getInit() &&
        variesIn({variable->getInit(), value.frame}, statement, frame, depth + 1))
      return true;
    return llvm::any_of(changes.assigned, [&](const Expr *assigned) {
      return variesIn({assigned, value.frame}, statement, frame, depth + 1);
    });
  }
  if (isa<ArraySubscriptExpr>(expr) ||
      (isa<UnaryOperator>(expr) && cast<UnaryOperator>(expr)->getOpcode() == UO_Deref)) {
    QualType type = expr->getType();
    if (type.isVolatileQualified() ||
        (spaceOf(type) != Space::Constant && !type.isConstQualified()))
      return true;
  }
  if (const auto *call = dyn_cast<CallExpr>(expr)) {
    StringRef name = libraryName(call);
    if (name.starts_with("atomic_") || name.starts_with("simd_") || name.starts_with("quad_"))
      return true;
    if (Value next = returned(call, value.frame))
      return variesIn(next, statement, frame, depth + 1);
    if (name.empty() && !isa<CXXOperatorCallExpr>(call))
      return true;
  }
  for (const Stmt *child : expr->children())
    if (const auto *inner = dyn_cast_or_null<Expr>(child))
      if (variesIn({inner, value.frame}, statement, frame, depth + 1))
        return true;
  return false;
}

void Values::visitSources(Value value, llvm::function_ref<void(Value)> function,
                          llvm::DenseSet<std::pair<const Expr *, const Frame *>> &seen) {
  if (!value.expr || seen.size() > 4096)
    return;
  const Expr *expr = plain(value.expr);
  if (!seen.insert({expr, value.frame}).second)
    return;
  function({expr, value.frame});
  if (const VarDecl *variable = variableOf(expr)) {
    if (const auto *parameter = dyn_cast<ParmVarDecl>(variable))
      for (const Frame *place = value.frame; place; place = place->caller) {
        auto found = place->arguments.find(parameter);
        if (found != place->arguments.end())
          return visitSources(found->second, function, seen);
      }
    if (variable->getInit() && !variable->getType()->isArrayType())
      visitSources({variable->getInit(), value.frame}, function, seen);
    if (variable->isLocalVarDecl())
      for (const Expr *assigned : facts(variable, nullptr).assigned)
        visitSources({assigned, value.frame}, function, seen);
    return;
  }
  if (const auto *call = dyn_cast<CallExpr>(expr))
    if (Value next = returned(call, value.frame))
      visitSources(next, function, seen);
  for (const Stmt *child : expr->children())
    if (const auto *inner = dyn_cast_or_null<Expr>(child))
      visitSources({inner, value.frame}, function, seen);
}

void Values::visitSources(Value value, llvm::function_ref<void(Value)> function) {
  llvm::DenseSet<std::pair<const Expr *, const Frame *>> seen;
  visitSources(value, function, seen);
}

} // namespace triton_metal::quirks

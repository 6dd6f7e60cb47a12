#include "host_device/msl/MetalTarget.h"
#include "host_device/KernelInfo.h"
#include "clang/Basic/Builtins.h"
#include "clang/Basic/MacroBuilder.h"
#include "clang/Basic/TargetOptions.h"
#include "clang/Frontend/CompilerInstance.h"
#include "clang/Lex/Preprocessor.h"

using namespace clang;

namespace triton_metal {

namespace {

/// Maps clang's LangAS to the address spaces of LLVM IR.
const LangASMap languageAddressSpaces = {
    unsigned(AddressSpace::Thread),      // Default
    unsigned(AddressSpace::Device),      // opencl_global
    unsigned(AddressSpace::Threadgroup), // opencl_local
    unsigned(AddressSpace::Constant),    // opencl_constant
};
static_assert(unsigned(LangAS::opencl_global) == 1 && unsigned(LangAS::opencl_local) == 2 &&
              unsigned(LangAS::opencl_constant) == 3);

class MetalTargetInfo final : public TargetInfo {
public:
  /// Starts as a copy of clang's target for the triple, because there is no other way to set its
  /// options.
  explicit MetalTargetInfo(const TargetInfo &base) : TargetInfo(base) {
    resetDataLayout(metalDataLayout);
    AddrSpaceMap = &languageAddressSpaces;
    UseAddrSpaceMapMangling = true;
    PointerWidth = PointerAlign = 64;
    LongWidth = LongAlign = 64;
    SizeType = UnsignedLong;
    PtrDiffType = IntPtrType = SignedLong;
    IntMaxType = Int64Type = SignedLong;
    HasFastHalfType = true;
    HasFloat16 = true;
    // Clang's own __bf16 does not convert from and to half. Metal's bfloat is the type that C++
    // calls float, and Metal's float the one that C++ calls double: see enableKeywords.
    HasBFloat16 = false;
    FloatWidth = FloatAlign = 16;
    FloatFormat = &llvm::APFloat::BFloat();
    DoubleWidth = DoubleAlign = 32;
    DoubleFormat = &llvm::APFloat::IEEEsingle();
    HasFloat128 = false;
    LongDoubleWidth = LongDoubleAlign = 64;
    LongDoubleFormat = &llvm::APFloat::IEEEdouble();
    MaxAtomicPromoteWidth = MaxAtomicInlineWidth = 64;
    NoAsmVariants = true;
    TLSSupported = false;
    VLASupported = false;
  }

  /// A pointer to thread memory also accepts addresses of the other spaces, so that a struct in
  /// device or constant memory can be copied and its methods can be called. The opposite direction
  /// requires a cast.
  bool isAddressSpaceSupersetOf(LangAS a, LangAS b) const override {
    return a == b || a == LangAS::Default;
  }

  /// The initial value of a variable in thread memory is in constant memory, where all threads
  /// share it. If the variable never changes, a pass then reads that copy instead.
  std::optional<LangAS> getConstantAddressSpace() const override { return LangAS::opencl_constant; }

  void getTargetDefines(const LangOptions &, MacroBuilder &builder) const override {
    builder.defineMacro("__METAL__");
    builder.defineMacro("__METAL_VERSION__", "320");
    builder.defineMacro("__METAL_MACOS__");
    builder.defineMacro("__HAVE_BFLOAT__");
    builder.defineMacro("__HAVE_SIMDGROUP_MATRIX__");
    builder.defineMacro("__HAVE_ATOMIC_FLOAT__");
  }
  llvm::SmallVector<Builtin::InfosShard> getTargetBuiltins() const override { return {}; }
  BuiltinVaListKind getBuiltinVaListKind() const override { return VoidPtrBuiltinVaList; }
  bool validateAsmConstraint(const char *&, ConstraintInfo &) const override { return false; }
  std::string_view getClobbers() const override { return ""; }
  ArrayRef<const char *> getGCCRegNames() const override { return {}; }
  ArrayRef<GCCRegAlias> getGCCRegAliases() const override { return {}; }
  bool hasInt128Type() const override { return false; }
  /// Constants of type half are represented as half and not as bits.
  bool useFP16ConversionIntrinsics() const override { return false; }
};

} // namespace

llvm::IntrusiveRefCntPtr<TargetInfo> createMetalTarget(DiagnosticsEngine &diagnostics,
                                                       TargetOptions &options) {
  llvm::IntrusiveRefCntPtr<TargetInfo> base(TargetInfo::CreateTargetInfo(diagnostics, options));
  if (!base)
    return nullptr;
  return llvm::IntrusiveRefCntPtr<TargetInfo>(new MetalTargetInfo(*base));
}

void enableKeywords(CompilerInstance &instance) {
  // This option enables method overloads by address space. The preprocessor already has its
  // keywords, so OpenCL's other keywords, such as `local` and `global`, remain identifiers.
  instance.getLangOpts().OpenCLCPlusPlus = true;
  IdentifierTable &identifiers = instance.getPreprocessor().getIdentifierTable();
  identifiers.get("__global", tok::kw___global);
  identifiers.get("__local", tok::kw___local);
  identifiers.get("__constant", tok::kw___constant);
  // The three formats need three types of ascending rank: half is _Float16.
  identifiers.get("__tm_bfloat", tok::kw_float);
  identifiers.get("float", tok::kw_double);
  identifiers.get("double", tok::identifier);
}

void useMetalsLanguage(CompilerInstance &instance) {
  LangOptions &language = instance.getLangOpts();
  language.CPlusPlus20 = language.CPlusPlus23 = language.Char8 = language.Coroutines = false;
  IdentifierTable &identifiers = instance.getPreprocessor().getIdentifierTable();
  for (const char *keyword : {"char8_t", "concept", "consteval", "constinit", "co_await",
                              "co_return", "co_yield", "requires"})
    identifiers.get(keyword, tok::identifier);
}

} // namespace triton_metal

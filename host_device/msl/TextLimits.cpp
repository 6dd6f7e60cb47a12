#include "host_device/msl/TextLimits.h"
#include "host_device/msl/Tokens.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/ErrorHandling.h"

using llvm::StringRef;
namespace tok = clang::tok;

namespace triton_metal {

static constexpr int mostComparisons = 512;

static constexpr tok::TokenKind comparisons[] = {
    tok::equalequal, tok::exclaimequal, tok::less, tok::lessequal, tok::greater, tok::greaterequal};
static constexpr tok::TokenKind ends[] = {tok::semi,     tok::comma, tok::ampamp, tok::pipepipe,
                                          tok::question, tok::colon, tok::equal};

void refuseLongComparisons(StringRef source) {
  std::string terminated = source.str(); // as the lexer needs it
  Tokens tokens(terminated);
  std::vector<int> counts = {0}; // for each open bracket
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens.isOneOf(i, {tok::l_paren, tok::l_square, tok::l_brace})) {
      counts.push_back(0);
    } else if (tokens.isOneOf(i, {tok::r_paren, tok::r_square, tok::r_brace})) {
      if (counts.size() > 1)
        counts.pop_back();
    } else if (tokens.isOneOf(i, ends)) {
      counts.back() = 0;
    } else if (tokens.is(i, tok::greater) && tokens.is(i + 1, tok::l_paren)) {
      counts.back() -= counts.back() > 0; // as_type<int>(x): no comparison, nor was the `<`
    } else if (tokens.isOneOf(i, comparisons) && ++counts.back() > mostComparisons) {
      size_t line = source.take_front(tokens.begin(i)).count('\n') + 1;
      llvm::report_fatal_error("an expression has more than " + llvm::Twine(mostComparisons) +
                                   " comparisons after each other (line " + llvm::Twine(line) + ")",
                               /*gen_crash_diag=*/false);
    }
  }
}

bool endsInLoopHint(StringRef source) {
  if (!source.contains("ragma"))
    return false;
  std::string terminated = source.str();
  Tokens tokens(terminated);
  size_t count = tokens.size();
  if (size_t open = count ? tokens.match(count - 1) : Tokens::npos;
      open != Tokens::npos && open > 0 && tokens.text(open - 1) == "_Pragma")
    return true;
  for (size_t i = count; i-- > 0;) {
    if (source.slice(tokens.begin(i), tokens.end(count - 1)).contains('\n'))
      return false;
    if (tokens.is(i, tok::hash))
      return tokens.text(i + 1) == "pragma" &&
             llvm::is_contained(
                 {"unroll", "nounroll", "unroll_and_jam", "nounroll_and_jam", "clang"},
                 tokens.text(i + 2));
  }
  return false;
}

} // namespace triton_metal

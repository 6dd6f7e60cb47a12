// The error of a program that breaks a rule of the language.
#ifndef TRITON_METAL_LANGUAGE_ERROR_H
#define TRITON_METAL_LANGUAGE_ERROR_H

#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"

#include <string>

namespace triton_metal::language {

/// A violated rule. The front end attaches the source line; the message names what came and what is
/// allowed. `Type` and `Value` become TypeError and ValueError in Python.
class LanguageError : public llvm::ErrorInfo<LanguageError> {
public:
  enum class Kind { Type, Value };
  static char ID;

  LanguageError(Kind kind, std::string message) : kind(kind), message(std::move(message)) {}

  Kind getKind() const { return kind; }
  const std::string &getMessage() const { return message; }
  void log(llvm::raw_ostream &os) const override { os << message; }
  std::error_code convertToErrorCode() const override { return llvm::inconvertibleErrorCode(); }

private:
  Kind kind;
  std::string message;
};

inline llvm::Error typeError(const llvm::Twine &message) {
  return llvm::make_error<LanguageError>(LanguageError::Kind::Type, message.str());
}
inline llvm::Error valueError(const llvm::Twine &message) {
  return llvm::make_error<LanguageError>(LanguageError::Kind::Value, message.str());
}

} // namespace triton_metal::language

#endif // TRITON_METAL_LANGUAGE_ERROR_H

#include "host_device/engine/ContextErrors.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/Support/raw_ostream.h"
#include <utility>

using namespace llvm;

namespace triton_metal::engine {

ContextErrors::ContextErrors(LLVMContext &context) : context(context) {
  context.setDiagnosticHandlerCallBack(handle, this);
}

ContextErrors::~ContextErrors() { context.setDiagnosticHandlerCallBack(nullptr); }

void ContextErrors::handle(const DiagnosticInfo *info, void *self) {
  if (info->getSeverity() != DS_Error)
    return;
  std::string &text = static_cast<ContextErrors *>(self)->text;
  raw_string_ostream stream(text);
  if (!text.empty())
    stream << "; ";
  DiagnosticPrinterRawOStream printer(stream);
  info->print(printer);
}

Error ContextErrors::take() {
  if (text.empty())
    return Error::success();
  return createStringError(inconvertibleErrorCode(),
                           "an error of LLVM's code generator: " + std::exchange(text, ""));
}

} // namespace triton_metal::engine

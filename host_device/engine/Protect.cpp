#include "host_device/engine/Protect.h"
#include "host_device/Compiling.h"
#include "host_device/engine/Guard.h"
#include "host_device/engine/PerProcess.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/thread.h"

namespace triton_metal::engine {

/// This is address space. The system only allocates the pages that are used.
static constexpr unsigned stackBytes = 512u << 20;

/// The message of LLVM's fatal error in this thread's protected code.
struct FatalMessage {
  std::string text;
};
static std::string &fatalMessage() { return perThread<FatalMessage>().text; }

static void onFatalError(void *, const char *reason, bool) {
  Guard &guard = Guard::ofThisThread();
  if (!guard.isInside()) {
    llvm::errs() << "LLVM ERROR: " << reason << "\n"; // as without a handler
    return;
  }
  fatalMessage() = reason;
  guard.abandon();
}

std::optional<std::string> runProtected(llvm::function_ref<void()> code) {
  installFaultHandlers();
  static const bool isWatched = [] {
    llvm::remove_fatal_error_handler();
    llvm::install_fatal_error_handler(onFatalError);
    return true;
  }();
  (void)isWatched;
  std::optional<std::string> problem;
  llvm::thread worker(std::optional<unsigned>(stackBytes), [&] {
    Compiling::join();
    Guard &guard = Guard::ofThisThread();
    fatalMessage().clear();
    if (!guard.call([&] { code(); }))
      problem = guard.signal ? std::string("a crash of the compiler (") + signalName(guard.signal) +
                                   "): the text is nested too deeply, or this is a defect"
                             : fatalMessage();
  });
  worker.join();
  return problem;
}

} // namespace triton_metal::engine

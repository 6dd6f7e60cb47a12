// Work of LLVM's and clang's libraries, and the end of the process.
#pragma once

namespace triton_metal {

/// A scope in which a thread uses LLVM, MLIR or clang. The end of the process destroys their global
/// objects: it waits until no thread is in such a scope, and a thread that wants to begin one
/// afterwards sleeps until the process is gone. Scopes of one thread may be nested. The outermost
/// begins before the thread takes locks that other scopes wait for.
class Compiling {
public:
  Compiling();
  ~Compiling();
  Compiling(const Compiling &) = delete;

  /// The calling thread works for one that is in a scope and waits for it. Where LLVM ends the
  /// process in such a thread, nothing is waited for.
  static void join();

  /// Waits until no thread is in a scope, and lets none begin another one, but for the calling
  /// thread. A program calls it before it ends in a thread that has never been in a scope: objects
  /// that LLVM makes on first use, while the process already ends, are otherwise destroyed first.
  static void finish();
};

} // namespace triton_metal

#include "tools/metal-run/Tool.h"
#include "host_device/Interface.h"
#include "host_device/Scanner.h"
#include "tools/metal-run/Options.h"
#include "tools/metal-run/Session.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"

using namespace llvm;

namespace triton_metal {

/// The folders that a file's `#include`s search: its own one comes first, if it includes by name.
static std::vector<std::string> foldersOf(StringRef file, StringRef text,
                                          std::vector<std::string> folders) {
  if (file != "-" && metal::includesBeside(text)) {
    StringRef parent = sys::path::parent_path(file);
    folders.insert(folders.begin(), parent.empty() ? "." : parent.str());
  }
  return folders;
}

/// Scans the files. Returns the exit status.
static int scanFiles(const ToolOptions &given, raw_ostream &out, raw_ostream &err) {
  int status = 0;
  for (const std::string &file : given.files) {
    auto buffer = MemoryBuffer::getFileOrSTDIN(file);
    if (!buffer) {
      err << "metal-run: cannot read '" << file << "': " << buffer.getError().message() << "\n";
      status = 2;
      continue;
    }
    QuirkOptions options;
    options.safeMath = given.safeMath;
    options.text.fileName = file == "-" ? "<stdin>" : file;
    options.text.macros = given.macros;
    options.text.includeDirectories =
        foldersOf(file, (*buffer)->getBuffer(), given.includeDirectories);
    auto hits = findQuirksIn((*buffer)->getBuffer(), options);
    if (!hits) {
      err << toString(hits.takeError()) << "\n";
      status = 2;
      continue;
    }
    for (const QuirkHit &hit : *hits)
      out << describe(hit) << "\n";
    if (!hits->empty())
      status = std::max(status, 1);
  }
  return status;
}

int runToolOnStreams(ArrayRef<std::string> arguments) {
  raw_fd_ostream &out = outs(), &err = errs();
  int status = runTool(arguments, out, err);
  out.flush();
  if (std::error_code code = out.error()) {
    // LLVM would end the process with a crash of its own.
    out.clear_error();
    if (code == std::errc::broken_pipe)
      return 128 + 13; // as a program that a pipe has stopped
    err << "metal-run: the output cannot be written: " << code.message() << "\n";
    status = 1;
  }
  err.clear_error();
  return status;
}

int runTool(ArrayRef<std::string> arguments, raw_ostream &out, raw_ostream &err) {
  auto fail = [&](Error error) {
    err << "metal-run: " << toString(std::move(error)) << "\n";
    return 1;
  };
  Expected<ToolOptions> options = parseOptions(arguments);
  if (!options)
    return fail(options.takeError());
  if (options->help) {
    printHelp(out);
    return 0;
  }
  if (options->files.empty() && sys::Process::StandardInIsUserInput())
    return fail(failure("name a file of Metal text, or - for the standard input. See --help"));
  if (options->files.empty())
    options->files.push_back("-");
  if (options->quirks)
    return scanFiles(*options, out, err);
  const std::string &file = options->files.front();
  if (options->files.size() > 1)
    return fail(failure("several files are only taken with --quirks; '" + options->files[1] +
                        "' is the second one"));
  if (options->seed && !options->portable)
    return fail(failure("--seed draws the choices of --portable; add that, or use --schedule"));
  if (options->maxSteps && !options->checks.steps)
    return fail(failure("--max-steps is the limit of the check steps; add --check"));
  if (!options->whole.empty() && !options->checks.outputs)
    return fail(failure("--whole names what the check outputs looks at; add --check"));
  auto buffer = MemoryBuffer::getFileOrSTDIN(file);
  if (!buffer)
    return fail(failure("cannot read '" + file + "': " + buffer.getError().message()));
  metal::CompileOptions compile;
  compile.fileName = file == "-" ? std::string("<stdin>") : file;
  compile.preprocessorMacros = options->macros;
  compile.includeDirectories = foldersOf(file, (*buffer)->getBuffer(), options->includeDirectories);
  auto library = metal::Device().newLibrary((*buffer)->getBuffer(), compile);
  if (!library) { // its lines begin with the text's own place
    err << toString(library.takeError()) << "\n";
    return 1;
  }
  if (options->list) {
    printKernels(out, **library);
    return 0;
  }
  hostDeviceTable().stopOnInterrupt();
  Session session(*options, *library, out);
  if (Error error = session.prepare())
    return fail(std::move(error));
  if (Error error = session.run()) { // its text names the kernel
    err << toString(std::move(error)) << "\n";
    return 1;
  }
  if (Error error = session.report())
    return fail(std::move(error));
  return 0;
}

} // namespace triton_metal

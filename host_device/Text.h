// Metal text that libraries are made of.
#pragma once

#include "host_device/msl/Frontend.h"
#include "host_device/msl/SourceFiles.h"
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace triton_metal {

class ParsedText;

/// A text with its options, except for function constants. Libraries that differ in these alone
/// share it. Texts that were used last keep clang's syntax tree.
class Text : public std::enable_shared_from_this<Text> {
public:
  /// What the front end makes of one kernel.
  struct Lowered {
    KernelInfo info;
    std::string bitcode;
  };

  /// `files` are those of the host that are known; they are read only once.
  Text(std::string source, MslOptions options, HostFiles files);
  ~Text();

  /// The kernels as they are declared (ParsedText::kernels).
  llvm::Expected<std::vector<KernelInfo>> kernels(llvm::ArrayRef<FunctionConstantValue> constants);
  /// Lowers a kernel. If clang or LLVM crashes, returns an error.
  llvm::Expected<Lowered> lower(llvm::StringRef name,
                                llvm::ArrayRef<FunctionConstantValue> constants);

  const std::string &source() const { return text; }
  /// The host's files that the text depends on, as they were when it was read. Complete once it has
  /// been parsed.
  HostFiles files();
  /// How often the text was parsed, how many kernels were lowered, and how many functions clang
  /// generated code for.
  struct Work {
    unsigned parsed = 0, lowered = 0, functions = 0;
  };
  Work work();

private:
  const std::string text;
  const MslOptions options;
  std::mutex mutex;
  HostFiles hostFiles;
  std::unique_ptr<ParsedText> parsed;
  Work done;

  llvm::Error parse(llvm::ArrayRef<FunctionConstantValue> constants);
  llvm::Error crashed(const std::string &problem);
  void keep();
};

/// The paths of files, one a line, and back.
std::string listFiles(const HostFiles &files);
/// Reads the files of a list as they are now.
HostFiles readFiles(llvm::StringRef list);
/// A hash of the files' paths and contents.
std::string digest(const HostFiles &files);

} // namespace triton_metal

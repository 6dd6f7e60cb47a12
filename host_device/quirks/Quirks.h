// Finds, in Metal text, what Apple's compilers and GPUs are known to get wrong, and what they do
// not promise. docs/apple-quirks.md explains the rows.
#pragma once

#include "host_device/msl/Frontend.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace triton_metal {

/// What a finding means.
enum class QuirkClass {
  /// The construct gives wrong results, a crash or a refusal on some Mac.
  Defect,
  /// The construct can be affected, and its cure costs time. It may stay for a reason.
  Costly,
  /// Whether the construct is affected depends on values that the text does not show.
  Unproven,
  /// Other programs avoid the construct; nothing is known to fail.
  Advice,
};

/// One row of docs/apple-quirks.md.
struct QuirkRow {
  /// Numbers up to 28 are defects; from 101 on, they are what is not promised.
  int number;
  /// A few words that name the pattern.
  llvm::StringLiteral name;
  /// One sentence that says what happens.
  llvm::StringLiteral explanation;
  /// Where it was reported.
  llvm::StringLiteral source;
};

/// All rows that the scanner knows, by number.
llvm::ArrayRef<QuirkRow> quirkRows();
/// The row of that number.
const QuirkRow &quirkRow(int number);
llvm::StringRef nameOf(QuirkClass kind);

struct QuirkHit {
  int row = 0;
  unsigned line = 0, column = 0;
  std::string file;
  QuirkClass kind = QuirkClass::Defect;
  /// What was found, in terms of the text.
  std::string message;
};

struct QuirkOptions {
  /// The name of the text, macros and folders to include.
  MslOptions text;
  /// Whether the program that compiles the text sets the safe math mode. Otherwise the text has to.
  bool safeMath = false;
};

/// Parses the text and returns the findings by line. An error is a text that does not parse.
llvm::Expected<std::vector<QuirkHit>> scanForQuirks(llvm::StringRef text,
                                                    const QuirkOptions &options = {});

/// `file:line:column: row 3 (64-bit remainder of 32-bit numbers): message`.
std::string describe(const QuirkHit &hit);

/// Identifies everything besides the text and the options that determines the findings.
std::string quirkScannerVersion();

} // namespace triton_metal

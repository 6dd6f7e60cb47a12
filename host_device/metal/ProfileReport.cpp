#include "host_device/metal/ProfileReport.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include <map>

using namespace llvm;

namespace triton_metal::metal {

void ProfileReport::add(const std::shared_ptr<Library> &library, const Profile &profile) {
  for (Part &part : parts)
    if (part.library == library) {
      part.profile += profile;
      return;
    }
  parts.push_back({library, profile});
}

std::optional<ReportForm> reportFormNamed(StringRef name) {
  return StringSwitch<std::optional<ReportForm>>(name)
      .Cases({"text", "listing"}, ReportForm::Listing)
      .Case("table", ReportForm::Table)
      .Case("json", ReportForm::Json)
      .Case("html", ReportForm::Html)
      .Default(std::nullopt);
}

//===----------------------------------------------------------------------===//
// The model
//===----------------------------------------------------------------------===//

double modelledCycles(const Counters &c) {
  constexpr double perLine = 8, perMultiply = 16, perDivision = 8, perCall = 16, perBarrier = 16;
  double lines = double(c[Counters::DeviceLinesRead]) + double(c[Counters::DeviceLinesWritten]) +
                 double(c[Counters::ConstantLinesRead]) / 8;
  double divisions = double(c[Counters::F32Div] + c[Counters::F16Div] + c[Counters::Bf16Div] +
                            c[Counters::IntDiv]);
  double calls = double(c[Counters::MathFast]) / 4 + double(c[Counters::MathPrecise]) +
                 double(c[Counters::MathDefault]);
  return double(c[Counters::SimdgroupInstructions]) + perLine * lines +
         double(c[Counters::ThreadgroupBankConflicts]) +
         perMultiply * double(c[Counters::SimdgroupMatrixMultiplies]) +
         perDivision * divisions / simdWidth + perCall * calls / simdWidth +
         perBarrier * double(c[Counters::ThreadgroupBarriers]);
}

namespace {

/// What is shown of a line, or of all of them.
struct Row {
  double share = 0;
  uint64_t bytesRead = 0, bytesWritten = 0, lines = 0, conflicts = 0, operations = 0, optimized = 0,
           diverged = 0;
  /// In percent: bytes that accesses need of the bytes of their 128-byte lines, and active lanes of
  /// all.
  std::optional<double> use, lanes;
};

uint64_t sum(const Counters &counters, Counters::Index first, Counters::Index last) {
  uint64_t result = 0;
  for (uint32_t i = first; i <= last; ++i)
    result += counters.values[i];
  return result;
}

Row rowOf(const Counters &c, double cycles) {
  Row row;
  row.share = cycles > 0 ? modelledCycles(c) / cycles : 0;
  row.bytesRead = c[Counters::DeviceBytesRead];
  row.bytesWritten = c[Counters::DeviceBytesWritten];
  row.lines = c[Counters::DeviceLinesRead] + c[Counters::DeviceLinesWritten];
  row.conflicts = c[Counters::ThreadgroupBankConflicts];
  row.operations = sum(c, Counters::F32Add, Counters::IntOther);
  row.optimized = sum(c, Counters::OptimizedF32Add, Counters::OptimizedIntOther);
  row.diverged = c[Counters::DivergentBranches];
  if (row.lines)
    row.use =
        100.0 *
        double(c[Counters::DeviceDistinctBytesRead] + c[Counters::DeviceDistinctBytesWritten]) /
        (128.0 * double(row.lines));
  if (uint64_t instructions = c[Counters::SimdgroupInstructions])
    row.lanes = 100.0 * double(c[Counters::LaneInstructions]) / (32.0 * double(instructions));
  return row;
}

double cyclesOf(const ProfileReport &report) {
  double cycles = 0;
  for (const ProfileReport::Part &part : report.parts)
    for (const LineProfile &line : part.profile.lines)
      cycles += modelledCycles(line.counters);
  return cycles;
}

struct Column {
  StringRef title, explanation;
  unsigned width;
  std::string (*text)(const Row &row);
};

std::string numberOf(uint64_t number) { return number ? std::to_string(number) : std::string(); }
std::string percent(std::optional<double> number) {
  return number ? formatv("{0:F0}%", *number).str() : std::string();
}

const Column columns[] = {
    {"share", "Share of the modelled time", 6,
     [](const Row &row) {
       return row.share ? formatv("{0:F1}%", 100 * row.share).str() : std::string();
     }},
    {"read", "Bytes of device memory that lanes read", 10,
     [](const Row &row) { return numberOf(row.bytesRead); }},
    {"written", "Bytes of device memory that lanes write", 10,
     [](const Row &row) { return numberOf(row.bytesWritten); }},
    {"lines", "128-byte lines of device memory that accesses of SIMD-groups touch", 8,
     [](const Row &row) { return numberOf(row.lines); }},
    {"use", "Bytes of these lines that some lane asks for, of all their bytes", 6,
     [](const Row &row) { return percent(row.use); }},
    {"conflicts", "Extra cycles because of the banks of threadgroup memory", 10,
     [](const Row &row) { return numberOf(row.conflicts); }},
    {"lanes", "Active lanes of all lanes of the SIMD-groups that run the line", 6,
     [](const Row &row) { return percent(row.lanes); }},
    {"diverged", "Branches at which the lanes of a SIMD-group part", 9,
     [](const Row &row) { return numberOf(row.diverged); }},
    {"arithmetic", "Arithmetic of lanes, as written", 11,
     [](const Row &row) { return numberOf(row.operations); }},
    {"optimised", "The same after optimisations that no machine has a part in", 10,
     [](const Row &row) { return numberOf(row.optimized); }},
};

void printTitles(raw_ostream &out) {
  for (const Column &column : columns)
    out << ' ' << right_justify(column.title, column.width);
}
void printRow(raw_ostream &out, const Row &row) {
  for (const Column &column : columns)
    out << ' ' << right_justify(column.text(row), column.width);
}

/// The profiled lines of a file, by number.
typedef std::map<uint32_t, const Counters *> FileLines;

/// The files of a part, the text itself first.
std::vector<std::pair<std::string, FileLines>> filesOf(const ProfileReport::Part &part) {
  std::vector<std::pair<std::string, FileLines>> files{{part.library->fileName(), {}}};
  for (const LineProfile &line : part.profile.lines) {
    auto found = find_if(files, [&](auto &file) { return file.first == line.file; });
    if (found == files.end())
      found = files.insert(files.end(), {line.file, {}});
    if (line.line)
      found->second[line.line] = &line.counters;
  }
  return files;
}

/// The lines of a file; of one that cannot be read any more, nothing.
std::vector<std::string> textOf(const ProfileReport::Part &part, const std::string &file) {
  std::string text;
  if (file == part.library->fileName())
    text = part.library->source();
  else if (auto buffer = MemoryBuffer::getFile(file, /*IsText=*/true))
    text = (*buffer)->getBuffer().str();
  SmallVector<StringRef> lines;
  StringRef(text).split(lines, '\n');
  if (!lines.empty() && lines.back().empty())
    lines.pop_back();
  std::vector<std::string> result;
  for (StringRef line : lines)
    result.push_back(line.rtrim('\r').str());
  return result;
}

/// Calls `visit` with each line of a file: its number, its text and its counters or null.
template <typename Visit>
void forEachLine(const ProfileReport::Part &part, const std::string &file, const FileLines &lines,
                 Visit visit) {
  std::vector<std::string> text = textOf(part, file);
  for (uint32_t number = 1; number <= text.size(); ++number) {
    auto found = lines.find(number);
    visit(number, text[number - 1], found == lines.end() ? nullptr : found->second);
  }
  // Lines that the file does not have, as #line may name any.
  for (auto found = lines.upper_bound(static_cast<uint32_t>(text.size())); found != lines.end();
       ++found)
    visit(found->first, std::string(), found->second);
}

//===----------------------------------------------------------------------===//
// The forms
//===----------------------------------------------------------------------===//

void printListing(raw_ostream &out, const ProfileReport &report, double cycles) {
  for (const ProfileReport::Part &part : report.parts)
    for (const auto &[file, lines] : filesOf(part)) {
      out << file << "\n";
      printTitles(out);
      out << "\n";
      forEachLine(part, file, lines,
                  [&](uint32_t number, const std::string &text, const Counters *counters) {
                    printRow(out, counters ? rowOf(*counters, cycles) : Row());
                    out << " | " << right_justify(std::to_string(number), 4) << "  " << text
                        << "\n";
                  });
      out << "\n";
    }
  out << "Shares are modelled, not measured. Everything else is counted.\n";
}

void printTable(raw_ostream &out, const ProfileReport &report, double cycles) {
  std::vector<std::pair<double, std::pair<std::string, const Counters *>>> rows;
  for (const ProfileReport::Part &part : report.parts)
    for (const LineProfile &line : part.profile.lines)
      if (line.line)
        rows.push_back({-modelledCycles(line.counters),
                        {line.file + ":" + std::to_string(line.line), &line.counters}});
  llvm::sort(rows);
  printTitles(out);
  out << "\n";
  for (const auto &[order, row] : rows) {
    printRow(out, rowOf(*row.second, cycles));
    out << "  " << row.first << "\n";
  }
  Counters total;
  for (const ProfileReport::Part &part : report.parts)
    total += part.profile.total;
  Row whole = rowOf(total, cycles);
  whole.share = cycles > 0 ? 1 : 0;
  printRow(out, whole);
  out << "  in all\n";
}

json::Object countersOf(const Counters &counters, bool all) {
  json::Object object;
  for (auto &[name, value] : counters.list())
    if (all || value)
      object[name] = value;
  return object;
}

void printJson(raw_ostream &out, const ProfileReport &report, double cycles) {
  json::Array lines;
  Counters total;
  for (const ProfileReport::Part &part : report.parts) {
    total += part.profile.total;
    for (const LineProfile &line : part.profile.lines) {
      double own = modelledCycles(line.counters);
      lines.push_back(json::Object{{"file", line.file},
                                   {"line", line.line},
                                   {"modelled_share", cycles > 0 ? own / cycles : 0},
                                   {"modelled_cycles", own},
                                   {"counters", countersOf(line.counters, false)}});
    }
  }
  out << formatv("{0:2}", json::Value(json::Object{{"lines", std::move(lines)},
                                                   {"modelled_cycles", cycles},
                                                   {"counters", countersOf(total, true)}}))
      << "\n";
}

void printHtml(raw_ostream &out, const ProfileReport &report, double cycles) {
  out << "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Profile</title>\n"
         "<style>\n"
         "body { font: 14px/1.35 system-ui, sans-serif; margin: 2em; color: #222; background: "
         "#fff; }\n"
         "table { border-collapse: collapse; font: 12px/1.5 ui-monospace, monospace; }\n"
         "td, th { padding: 0 .7em; text-align: right; white-space: pre; }\n"
         "th { position: sticky; top: 0; background: #eee; cursor: help; }\n"
         "td.number { color: #999; } td.text { text-align: left; tab-size: 4; }\n"
         "tr:hover td { outline: 1px solid #ccc; }\n"
         "</style></head><body>\n";
  for (const ProfileReport::Part &part : report.parts)
    for (const auto &[file, lines] : filesOf(part)) {
      out << "<h2>";
      printHTMLEscaped(file, out);
      out << "</h2>\n<table><tr>";
      for (const Column &column : columns)
        out << "<th title=\"" << column.explanation << "\">" << column.title << "</th>";
      out << "<th></th><th></th></tr>\n";
      forEachLine(part, file, lines,
                  [&](uint32_t number, const std::string &text, const Counters *counters) {
                    Row row = counters ? rowOf(*counters, cycles) : Row();
                    double heat = std::min(1.0, 2 * row.share);
                    out << "<tr";
                    if (heat > 0.005)
                      out << formatv(" style=\"background: rgba(255, 120, 40, {0:F2})\"", heat);
                    out << ">";
                    for (const Column &column : columns)
                      out << "<td>" << column.text(row) << "</td>";
                    out << "<td class=\"number\">" << number << "</td><td class=\"text\">";
                    printHTMLEscaped(text, out);
                    out << "</td></tr>\n";
                  });
      out << "</table>\n";
    }
  out << "<p>Shares are modelled, not measured. Everything else is counted.</p>\n</body></html>\n";
}

} // namespace

void print(raw_ostream &out, const ProfileReport &report, ReportForm form) {
  double cycles = cyclesOf(report);
  switch (form) {
  case ReportForm::Listing:
    return printListing(out, report, cycles);
  case ReportForm::Table:
    return printTable(out, report, cycles);
  case ReportForm::Json:
    return printJson(out, report, cycles);
  case ReportForm::Html:
    return printHtml(out, report, cycles);
  }
}

} // namespace triton_metal::metal

#include "tools/metal-run/Options.h"
#include "host_device/metal/Numbers.h"
#include "host_device/metal/ProfileReport.h"
#include "llvm/ADT/StringExtras.h"
#include <functional>

using namespace llvm;
using triton_metal::metal::radixOf;

namespace triton_metal {

Error failure(const Twine &message) { return createStringError(inconvertibleErrorCode(), message); }

namespace {

enum class Takes { Nothing, Value, ValueOrNothing };

struct Option {
  StringRef name;
  Takes takes;
  StringRef value, help;
  std::function<Error(ToolOptions &, StringRef)> read;
};

/// A heading, or an option if its name is not empty.
struct Row {
  StringRef heading;
  Option option;
};

Expected<Assignment> assignment(StringRef option, StringRef text, StringRef form) {
  auto [left, right] = text.split('=');
  if (left.empty() || right.empty())
    return failure("--" + option + "=" + text + ": write --" + option + " " + form);
  return Assignment(left.str(), right.str());
}

Error number(StringRef option, StringRef text, std::optional<uint64_t> &result) {
  uint64_t value;
  if (text.getAsInteger(radixOf(text), value))
    return failure("--" + option + " takes a whole number of at least 0, and '" + text +
                   "' is none");
  result = value;
  return Error::success();
}

const std::vector<Row> &rows() {
  auto bind = [](StringRef name, DispatchOptions::Binding kind, StringRef form) {
    return [=](ToolOptions &options, StringRef text) -> Error {
      auto found = assignment(name, text, form);
      if (!found)
        return found.takeError();
      options.dispatches.back().bindings.push_back({kind, found->first, found->second});
      return Error::success();
    };
  };
  auto list = [](StringRef name, std::vector<Assignment> ToolOptions::*place, StringRef form) {
    return [=](ToolOptions &options, StringRef text) -> Error {
      auto found = assignment(name, text, form);
      if (!found)
        return found.takeError();
      (options.*place).push_back(*found);
      return Error::success();
    };
  };
  auto text = [](std::string DispatchOptions::*place) {
    return [=](ToolOptions &options, StringRef value) {
      options.dispatches.back().*place = value.str();
      return Error::success();
    };
  };
  auto flag = [](bool ToolOptions::*place) {
    return [=](ToolOptions &options, StringRef) {
      options.*place = true;
      return Error::success();
    };
  };
  using Binding = DispatchOptions::Binding;
  static const std::string checkHelp = "Stop at the first mistake of the kernel, with its line: "
                                       "all checks but nans and same-values, or some of " +
                                       Checks::list();
  static const std::vector<Row> all = {
      {"What to run", {}},
      {"",
       {"kernel", Takes::Value, "name", "The kernel to run; needed if the file has several",
        text(&DispatchOptions::kernel)}},
      {"",
       {"constant", Takes::Value, "name=value",
        "Give a function constant a value, by name or index: use_bias=true, 3=0.5, offsets=1,2,3,4",
        list("constant", &ToolOptions::constants, "name=value")}},
      {"",
       {"then", Takes::Nothing, "",
        "Begin another dispatch, which runs after those before it. Its arrays keep their content: "
        "--buffer y=@x binds the array that an earlier dispatch bound to x, and a parameter that "
        "is not given gets the array of an earlier one with its name",
        [](ToolOptions &options, StringRef) {
          options.dispatches.emplace_back();
          return Error::success();
        }}},
      {"Arguments", {}},
      {"",
       {"buffer", Takes::Value, "parameter=array",
        "Bind a buffer to a parameter, by name or index. The array is a file (x=in.npy) or a fresh "
        "one: zeros:float:1024, full:uint:64x2:7 (one value), arange:int:256 (0, 1, 2, ...), "
        "random:half:64x64 or random:half:64x64:5 (floats from 0 to 1, integers of any bits, drawn "
        "from a seed)",
        bind("buffer", Binding::Array, "parameter=array")}},
      {"",
       {"scalar", Takes::Value, "parameter=value",
        "Bind a number to a constant parameter (n=1000), or the numbers of a vector (v=1,2,3). Its "
        "type is the parameter's, or is given: eps=float:1e-5",
        bind("scalar", Binding::Scalar, "parameter=value")}},
      {"",
       {"bytes", Takes::Value, "parameter=hex",
        "Bind bytes to a parameter, as setBytes does: sizes=0a00000000000040, or from a file: "
        "sizes=@sizes.bin",
        bind("bytes", Binding::Bytes, "parameter=hex")}},
      {"",
       {"threadgroup-memory", Takes::Value, "index=bytes",
        "Set the length of a threadgroup argument, by index or name",
        [](ToolOptions &options, StringRef value) -> Error {
          auto found = assignment("threadgroup-memory", value, "index=bytes");
          if (!found)
            return found.takeError();
          options.dispatches.back().threadgroupMemory.push_back(*found);
          return Error::success();
        }}},
      {"Grid", {}},
      {"",
       {"threads", Takes::Value, "x[,y[,z]]",
        "The threads of the grid; threadgroups at its edges are cut (also --grid)",
        text(&DispatchOptions::threads)}},
      {"",
       {"threadgroups", Takes::Value, "x[,y[,z]]", "The threadgroups of the grid, instead",
        text(&DispatchOptions::threadgroups)}},
      {"",
       {"group", Takes::Value, "x[,y[,z]]",
        "The threads of a threadgroup (default: 32, or less for a small grid)",
        text(&DispatchOptions::group)}},
      {"Results", {}},
      {"",
       {"output", Takes::Value, "parameter=file.npy",
        "After the run, write a parameter's array to a file; may be given for several",
        list("output", &ToolOptions::outputs, "parameter=file.npy")}},
      {"",
       {"print", Takes::Value, "parameter", "After the run, print a parameter's array",
        [](ToolOptions &options, StringRef value) {
          options.shown.push_back(value.str());
          return Error::success();
        }}},
      {"",
       {"time", Takes::ValueOrNothing, "runs",
        "Print the median and the best time of this many more runs (default: 20)",
        [](ToolOptions &options, StringRef value) -> Error {
          std::optional<uint64_t> runs = 20;
          if (!value.empty())
            if (Error error = number("time", value, runs))
              return error;
          options.timedRuns = static_cast<unsigned>(std::max<uint64_t>(1, *runs));
          return Error::success();
        }}},
      {"",
       {"counters", Takes::ValueOrNothing, "table|json",
        "Print what the run did: bytes, 128-byte lines, arithmetic, barriers (also --count)",
        [](ToolOptions &options, StringRef value) -> Error {
          if (!value.empty() && value != "table" && value != "json")
            return failure("--counters takes table or json, not '" + value + "'");
          options.counters = true;
          options.json |= value == "json";
          return Error::success();
        }}},
      {"",
       {"profile", Takes::ValueOrNothing, "text|table|json|html",
        "Print the kernel's text with what each line did: bytes, 128-byte lines and their use, "
        "bank "
        "conflicts, active lanes, arithmetic, and its share of a modelled time; or only the lines "
        "that did something, most first (table); or a page of its own (html)",
        [](ToolOptions &options, StringRef value) -> Error {
          options.profile = value.empty() ? "text" : value.str();
          if (!metal::reportFormNamed(*options.profile))
            return failure("--profile takes text, table, json or html, not '" + value + "'");
          return Error::success();
        }}},
      {"",
       {"info", Takes::Nothing, "",
        "Print what is known of the compiled kernel: execution width, most threads, threadgroup "
        "memory, buffers that it writes",
        flag(&ToolOptions::info)}},
      {"Checks", {}},
      {"",
       {"check", Takes::ValueOrNothing, "checks", checkHelp,
        [](ToolOptions &options, StringRef value) -> Error {
          std::string unknown;
          auto checks = Checks::parse(value.empty() ? "all" : value, &unknown);
          if (!checks)
            return failure("--check: there is no check '" + unknown + "'; the checks are " +
                           Checks::list());
          options.checks = *checks;
          return Error::success();
        }}},
      {"",
       {"max-steps", Takes::Value, "count",
        "With --check: how many iterations of loops a SIMD-group may run (default: 2^26)",
        [](ToolOptions &options, StringRef value) -> Error {
          if (Error error = number("max-steps", value, options.maxSteps))
            return error;
          return *options.maxSteps ? Error::success()
                                   : failure("--max-steps takes a whole number of at least 1");
        }}},
      {"",
       {"whole", Takes::Value, "parameter",
        "With --check: the kernel must write each byte of this buffer",
        [](ToolOptions &options, StringRef value) -> Error {
          options.whole.push_back(value.str());
          return Error::success();
        }}},
      {"",
       {"portable", Takes::Nothing, "",
        "Answer what Metal does not promise with the worst that it allows, and stop at a result "
        "that depends on it",
        flag(&ToolOptions::portable)}},
      {"",
       {"seed", Takes::Value, "seed", "Draw the choices of --portable",
        [](ToolOptions &options, StringRef value) { return number("seed", value, options.seed); }}},
      {"",
       {"schedule", Takes::Value, "seed",
        "Run threadgroups and SIMD-groups in an order drawn from this seed",
        [](ToolOptions &options, StringRef value) {
          return number("schedule", value, options.schedule);
        }}},
      {"The text", {}},
      {"",
       {"list", Takes::Nothing, "",
        "Print the file's kernels, their parameters and function constants, and run nothing",
        flag(&ToolOptions::list)}},
      {"",
       {"D", Takes::Value, "name=value", "Define a preprocessor macro",
        [](ToolOptions &options, StringRef value) {
          auto [name, text] = value.split('=');
          options.macros.push_back({name.str(), value.contains('=') ? text.str() : "1"});
          return Error::success();
        }}},
      {"",
       {"std", Takes::Value, "version",
        "The version of Metal that the text sees in __METAL_VERSION__, from metal2.4 to metal4.0 "
        "(otherwise metal3.2)",
        [](ToolOptions &options, StringRef value) {
          StringRef version = value;
          version.consume_front("metal");
          if (!is_contained(metal::languageVersions, version))
            return failure("--std takes metal" +
                           join(ArrayRef(metal::languageVersions), ", metal") + ", not '" + value +
                           "'");
          options.macros.insert(
              options.macros.begin(),
              {"__METAL_VERSION__", (version.take_front(1) + version.drop_front(2) + "0").str()});
          return Error(Error::success());
        }}},
      {"",
       {"I", Takes::Value, "folder", "Search a folder for #include",
        [](ToolOptions &options, StringRef value) {
          options.includeDirectories.push_back(value.str());
          return Error::success();
        }}},
      {"",
       {"quirks", Takes::Nothing, "",
        "Print what Apple's compilers and GPUs are known to get wrong in the files, and run "
        "nothing. The exit status is 1 if there is any",
        flag(&ToolOptions::quirks)}},
      {"",
       {"safe-math", Takes::Nothing, "", "With --quirks: the files are compiled in safe math mode",
        flag(&ToolOptions::safeMath)}},
      {"", {"help", Takes::Nothing, "", "Print this (also -h)", flag(&ToolOptions::help)}},
  };
  return all;
}

const Option *find(StringRef name) {
  if (name == "grid")
    name = "threads";
  else if (name == "count")
    name = "counters";
  else if (name == "h")
    name = "help";
  for (const Row &row : rows())
    if (row.option.name == name && !name.empty())
      return &row.option;
  return nullptr;
}

} // namespace

Expected<ToolOptions> parseOptions(ArrayRef<std::string> arguments) {
  ToolOptions options;
  options.dispatches.emplace_back();
  for (size_t i = 0; i != arguments.size(); ++i) {
    StringRef argument = arguments[i];
    if (argument == "-" || !argument.starts_with("-")) {
      options.files.push_back(argument.str());
      continue;
    }
    StringRef text = argument.drop_front(argument.starts_with("--") ? 2 : 1);
    std::optional<StringRef> value;
    const Option *option = nullptr;
    if (!argument.starts_with("--") && text.size() > 1 && (text[0] == 'D' || text[0] == 'I')) {
      option = find(text.take_front(1));
      value = text.drop_front(1);
    } else {
      auto [name, after] = text.split('=');
      option = find(name);
      if (text.contains('='))
        value = after;
    }
    if (!option) {
      std::vector<std::string> names;
      for (const Row &row : rows())
        if (row.option.name.size() > 1)
          names.push_back("--" + row.option.name.str());
      StringRef name = argument.split('=').first;
      std::string near = metal::suggestion(name, names, "options");
      return failure("there is no option '" + name + "'" + near +
                     (StringRef(near).ends_with("?") ? "" : ".") + " See --help");
    }
    if (option->takes == Takes::Nothing && value)
      return failure("--" + option->name + " takes no value");
    if (option->takes == Takes::Value && !value) {
      if (i + 1 == arguments.size())
        return failure("--" + option->name + " needs a value: " + option->value);
      value = arguments[++i];
    }
    if (option->name == "threads" && text.starts_with("grid"))
      options.dispatches.back().threadsOption = "grid";
    if (Error error = option->read(options, value.value_or("")))
      return std::move(error);
  }
  return options;
}

/// Prints words from a column on, in lines of at most 100 characters. The first line has begun.
static void printWrapped(raw_ostream &out, StringRef text, unsigned column) {
  unsigned at = column;
  SmallVector<StringRef> words;
  text.split(words, ' ');
  for (StringRef word : words) {
    if (at != column && at + 1 + word.size() > 100) {
      out << "\n";
      out.indent(column);
      at = column;
    } else if (at != column) {
      out << ' ';
      ++at;
    }
    out << word;
    at += word.size();
  }
  out << "\n";
}

void printHelp(raw_ostream &out) {
  out << "metal-run: run Metal compute kernels on this machine's CPU\n\n"
         "  Compiles Metal Shading Language text, binds arrays and numbers to a kernel's "
         "parameters, "
         "runs it over a\n"
         "  grid of threads, and writes or prints arrays. No GPU is needed.\n\n"
         "  metal-run saxpy.metal --list\n"
         "  metal-run saxpy.metal --buffer x=x.npy --buffer y=y.npy --scalar a=2.5 \\\n"
         "            --threads 1000 --group 256 --output y=out.npy\n"
         "  metal-run saxpy.metal --buffer x=arange:float:8 --buffer y=zeros:float:8 --scalar a=2 "
         "\\\n"
         "            --threads 8 --check --counters --print y\n\n"
         "Usage: metal-run [options] file.metal   (- reads the standard input)\n";
  constexpr unsigned column = 34;
  for (const Row &row : rows()) {
    if (!row.heading.empty()) {
      out << "\n" << row.heading << ":\n\n";
      continue;
    }
    const Option &option = row.option;
    std::string left = "  " + std::string(option.name.size() == 1 ? "-" : "--") + option.name.str();
    if (option.takes == Takes::Value)
      left += (option.name.size() == 1 ? "" : " ") + option.value.str();
    else if (option.takes == Takes::ValueOrNothing)
      left += "[=" + option.value.str() + "]";
    out << left;
    out.indent(column > left.size() ? column - static_cast<unsigned>(left.size()) : 1);
    printWrapped(out, option.help, column);
  }
}

} // namespace triton_metal

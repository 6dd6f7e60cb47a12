// metal-run: compiles a Metal kernel for the host and runs it on arrays from files.
#include "host_device/Device.h"
#include "host_device/Scanner.h"
#include "tools/metal-run/Npy.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/WithColor.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>
#include <map>

using namespace llvm;
using namespace triton_metal;

static cl::OptionCategory category("Options");

static cl::list<std::string> inputFiles(cl::Positional, cl::desc("K.metal"), cl::cat(category));
static cl::opt<std::string>
    kernelName("kernel", cl::desc("The kernel to run; needed if the file has several"),
               cl::value_desc("name"), cl::cat(category));
static cl::list<std::string> bufferArguments(
    "buffer",
    cl::desc("Bind a buffer to a parameter, named or by index: an array from a file (in=x.npy), or "
             "a fresh "
             "one, filled with zeros or one value (out=zeros:float:1024, acc=full:uint:64x2:7)"),
    cl::value_desc("parameter=array"), cl::cat(category));
static cl::list<std::string>
    scalarArguments("scalar",
                    cl::desc("Bind one number to a constant parameter: n=1000. Its type is the "
                             "parameter's, or is given: "
                             "eps=float:1e-5"),
                    cl::value_desc("parameter=value"), cl::cat(category));
static cl::list<std::string> outputArguments(
    "output",
    cl::desc("After the run, write a parameter's buffer to a .npy file; may be given for several"),
    cl::value_desc("parameter=file.npy"), cl::cat(category));
static cl::opt<std::string> gridText("grid",
                                     cl::desc("Threads in the grid; groups at its edges are cut"),
                                     cl::value_desc("x[,y[,z]]"), cl::cat(category));
static cl::opt<std::string> groupsText("threadgroups",
                                       cl::desc("Threadgroups in the grid, instead of --grid"),
                                       cl::value_desc("x[,y[,z]]"), cl::cat(category));
static cl::opt<std::string>
    threadsText("group",
                cl::desc("Threads in a threadgroup (default: 32, or less for a small grid)"),
                cl::value_desc("x[,y[,z]]"), cl::cat(category));
static cl::list<std::string>
    threadgroupMemory("threadgroup-memory",
                      cl::desc("Length of a threadgroup memory argument, by its index"),
                      cl::value_desc("index=bytes"), cl::cat(category));
static cl::list<std::string>
    constantArguments("constant",
                      cl::desc("Value of a function constant, by index: 3=true, 4=uint:16"),
                      cl::value_desc("index=value"), cl::cat(category));
static cl::list<std::string> macros("D", cl::Prefix, cl::desc("Define a preprocessor macro"),
                                    cl::value_desc("name=value"), cl::cat(category));
static cl::list<std::string> includeFolders("I", cl::Prefix,
                                            cl::desc("Search a folder for #include"),
                                            cl::value_desc("folder"), cl::cat(category));
static cl::opt<bool>
    check("check", cl::desc("Stop at the first access outside its buffer, with the kernel's line"),
          cl::cat(category));
static cl::opt<bool>
    portable("portable",
             cl::desc("Answer what Metal does not promise with the worst that it allows, and stop "
                      "at a result that depends on it"),
             cl::cat(category));
static cl::opt<uint64_t> portableSeed("seed", cl::desc("Draw the choices of --portable"),
                                      cl::value_desc("seed"), cl::init(0), cl::cat(category));
static cl::opt<bool>
    countWork("count", cl::desc("Print what the launch did: bytes, lines, multiplies, barriers"),
              cl::cat(category));
static cl::opt<bool>
    listKernels("list", cl::desc("Print the file's kernels and their parameters, and run nothing"),
                cl::cat(category));
static cl::opt<bool>
    findQuirks("quirks",
               cl::desc("Print what Apple's compilers and GPUs are known to get wrong in the "
                        "files, and run nothing. The exit status is 1 if there is any"),
               cl::cat(category));
static cl::opt<bool> safeMath("safe-math",
                              cl::desc("With --quirks: the files are compiled in safe math mode"),
                              cl::cat(category));
static cl::opt<unsigned> repeatRuns("repeat", cl::desc("Run so many times and print the best time"),
                                    cl::init(0), cl::cat(category));
static cl::opt<uint64_t>
    schedule("schedule",
             cl::desc("Run threadgroups and SIMD-groups in an order drawn from this seed"),
             cl::value_desc("seed"), cl::cat(category));

static ExitOnError exitOnError("metal-run: ");

static Error failure(const Twine &message) {
  return createStringError(inconvertibleErrorCode(), message);
}

/// `x`, `x,y` or `x,y,z`.
static std::array<uint32_t, 3> parseExtent(StringRef text, StringRef option) {
  std::array<uint32_t, 3> extent{1, 1, 1};
  SmallVector<StringRef> parts;
  text.split(parts, ',');
  if (parts.size() > 3)
    exitOnError(failure("--" + option + " takes one to three numbers, as in 1024 or 64,64"));
  for (auto [index, part] : enumerate(parts))
    if (part.trim().getAsInteger(0, extent[index]) || extent[index] == 0)
      exitOnError(failure("--" + option + " takes positive numbers, and '" + part + "' is none"));
  return extent;
}

/// Appends a number of a .npy type, read from text.
static Error appendNumber(StringRef text, StringRef dtype, decltype(NpyArray::bytes) &bytes) {
  auto put = [&](uint64_t bits, unsigned size) {
    for (unsigned i = 0; i < size; ++i)
      bytes.push_back(static_cast<uint8_t>(bits >> (8 * i)));
  };
  unsigned size = dtype.back() - '0';
  if (text == "true" || text == "false") {
    put(text == "true", size);
    return Error::success();
  }
  if (dtype[1] == 'f') {
    APFloat number(size == 2 ? APFloat::IEEEhalf() : APFloat::IEEEsingle());
    auto status = number.convertFromString(text, APFloat::rmNearestTiesToEven);
    if (!status) {
      consumeError(status.takeError());
      return failure("'" + text + "' is no number");
    }
    put(number.bitcastToAPInt().getZExtValue(), size);
    return Error::success();
  }
  int64_t value;
  uint64_t unsignedValue;
  if (!text.getAsInteger(0, value))
    unsignedValue = static_cast<uint64_t>(value);
  else if (text.getAsInteger(0, unsignedValue))
    return failure("'" + text + "' is no whole number");
  unsigned bits = size * 8;
  bool fits = bits == 64 ||
              (dtype[1] == 'i' ? isIntN(bits, value) : isUIntN(bits, unsignedValue)) ||
              (dtype[1] == 'u' && isIntN(bits, value) && value < 0);
  if (!fits)
    return failure("'" + text + "' does not fit in " + Twine(bits) + " bits");
  put(unsignedValue, size);
  return Error::success();
}

/// A parameter by its name or its index.
static Expected<const ParameterInfo *> findBuffer(const KernelInfo &info, StringRef name) {
  uint32_t index;
  bool isIndex = !name.getAsInteger(10, index);
  for (const ParameterInfo &parameter : info.parameters)
    if (parameter.kind == ParameterInfo::Kind::Buffer &&
        (isIndex ? parameter.index == index : parameter.name == name))
      return &parameter;
  return failure("kernel '" + info.name + "' has no buffer parameter '" + name + "'");
}

/// `x.npy`, `zeros:type:shape` or `full:type:shape:value`.
static Expected<NpyArray> makeArray(StringRef text) {
  SmallVector<StringRef> parts;
  text.split(parts, ':');
  bool zeros = parts[0] == "zeros" && parts.size() == 3,
       full = parts[0] == "full" && parts.size() == 4;
  if (!zeros && !full)
    return readNpy(text);
  NpyArray array;
  auto type = npyType(parts[1]);
  if (!type)
    return type.takeError();
  array.dtype = *type;
  SmallVector<StringRef> extents;
  parts[2].split(extents, 'x');
  for (StringRef part : extents) {
    int64_t extent;
    if (part.getAsInteger(10, extent) || extent < 0)
      return failure("'" + parts[2] + "' is no shape: write 1024 or 64x32");
    array.shape.push_back(extent);
  }
  decltype(array.bytes) one;
  if (Error error = appendNumber(full ? parts[3] : "0", array.dtype, one))
    return std::move(error);
  for (uint64_t i = 0, n = array.items(); i < n; ++i)
    array.bytes.insert(array.bytes.end(), one.begin(), one.end());
  return array;
}

/// `value` or `type:value`. Without a type, the type is `elementType`.
static Expected<NpyArray> makeScalar(StringRef text, StringRef elementType) {
  NpyArray array;
  auto [type, value] = text.contains(':') ? text.split(':') : std::pair(elementType, text);
  auto dtype = npyType(type);
  if (!dtype) {
    consumeError(dtype.takeError());
    return failure("give the number's type, as in uint:5: the parameter's is '" + elementType +
                   "'");
  }
  if (type == "bfloat" || type == "bfloat16") {
    decltype(array.bytes) wide;
    if (Error error = appendNumber(value, "<f4", wide))
      return std::move(error);
    array.bytes = {wide[2], wide[3]};
  } else if (Error error = appendNumber(value, *dtype, array.bytes)) {
    return std::move(error);
  }
  array.dtype = *dtype;
  return array;
}

static std::string describe(const ParameterInfo &parameter) {
  std::string text;
  switch (parameter.kind) {
  case ParameterInfo::Kind::Position:
    return "";
  case ParameterInfo::Kind::Threadgroup:
    return ("threadgroup " + parameter.elementType + " *" + parameter.name +
            "  (threadgroup memory " + Twine(parameter.index) + ")")
        .str();
  case ParameterInfo::Kind::Buffer:
    bool isConstant = parameter.addressSpace == AddressSpace::Constant;
    text = (isConstant          ? "constant "
            : parameter.isConst ? "const device "
                                : "device ") +
           parameter.elementType;
    return (text + (parameter.isReference ? " &" : " *") + parameter.name + "  (buffer " +
            Twine(parameter.index) + ")")
        .str();
  }
  return text;
}

static void printKernels(const Library &library) {
  for (const KernelInfo &info : library.kernels()) {
    outs() << info.name << "\n";
    for (const ParameterInfo &parameter : info.parameters)
      if (std::string text = describe(parameter); !text.empty())
        outs() << "  " << text << "\n";
  }
}

static Expected<std::vector<FunctionConstantValue>> parseConstants() {
  std::vector<FunctionConstantValue> values;
  for (StringRef text : constantArguments) {
    auto [index, value] = text.split('=');
    FunctionConstantValue constant;
    if (index.getAsInteger(10, constant.index) || value.empty())
      return failure("--constant=" + text + ": write index=value");
    auto number = makeScalar(value, value.contains('.') ? "float" : "int");
    if (!number)
      return number.takeError();
    for (auto [i, byte] : enumerate(number->bytes))
      constant.bits |= static_cast<uint64_t>(byte) << (8 * i);
    values.push_back(constant);
  }
  return values;
}

/// Scans the files. Returns the exit status.
static int scanFiles(const LibraryOptions &library) {
  int status = 0;
  for (const std::string &file : inputFiles) {
    auto buffer = MemoryBuffer::getFileOrSTDIN(file);
    if (!buffer) {
      errs() << "metal-run: cannot read '" << file << "': " << buffer.getError().message() << "\n";
      status = 2;
      continue;
    }
    QuirkOptions options;
    options.safeMath = safeMath;
    options.text.fileName = file == "-" ? "<stdin>" : file;
    options.text.macros = library.macros;
    options.text.includeDirectories = library.includeDirectories;
    auto hits = findQuirksIn((*buffer)->getBuffer(), options);
    if (!hits) {
      errs() << toString(hits.takeError()) << "\n";
      status = 2;
      continue;
    }
    for (const QuirkHit &hit : *hits)
      outs() << describe(hit) << "\n";
    if (!hits->empty())
      status = std::max(status, 1);
  }
  return status;
}

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv,
                              "metal-run: run a Metal compute kernel on this machine's CPU\n\n"
                              "  Compiles Metal Shading Language text, binds arrays and numbers to "
                              "the kernel's parameters, runs it over a grid of\n"
                              "  threads and writes arrays back. No GPU is needed.\n\n"
                              "  metal-run saxpy.metal --buffer x=x.npy --buffer y=y.npy --scalar "
                              "a=2.5 --grid 1000 --group 256 --output y=out.npy\n"
                              "  metal-run saxpy.metal --list\n"
                              "  metal-run --quirks saxpy.metal softmax.metal\n");
  if (inputFiles.empty())
    inputFiles.push_back("-");
  const std::string &inputFile = inputFiles.front();
  if (inputFiles.size() > 1 && !findQuirks)
    exitOnError(failure("several files are only taken with --quirks; '" + inputFiles[1] +
                        "' is the second one"));

  LibraryOptions options;
  options.checkBounds = check;
  options.portable = portable;
  if (portableSeed.getNumOccurrences() && !portable)
    exitOnError(failure("--seed draws the choices of --portable; add that, or use --schedule"));
  options.count = countWork;
  options.fileName = inputFile == "-" ? std::string("<stdin>") : inputFile;
  options.functionConstants = exitOnError(parseConstants());
  options.includeDirectories.assign(includeFolders.begin(), includeFolders.end());
  for (StringRef macro : macros) {
    auto [name, value] = macro.split('=');
    options.macros.push_back({name.str(), macro.contains('=') ? value.str() : "1"});
  }
  if (findQuirks)
    return scanFiles(options);
  auto buffer = MemoryBuffer::getFileOrSTDIN(inputFile);
  if (!buffer)
    exitOnError(failure("cannot read '" + inputFile + "': " + buffer.getError().message()));
  auto compiled = Device::get().compile((*buffer)->getBuffer(), options);
  if (!compiled) { // its lines begin with the kernel's own place
    errs() << toString(compiled.takeError()) << "\n";
    return 1;
  }
  std::shared_ptr<Library> library = *compiled;
  if (listKernels) {
    printKernels(*library);
    return 0;
  }
  if (library->kernels().empty())
    exitOnError(failure("'" + inputFile + "' has no kernel"));
  if (kernelName.empty() && library->kernels().size() > 1) {
    std::string names;
    for (const KernelInfo &info : library->kernels())
      names += (names.empty() ? "" : ", ") + info.name;
    exitOnError(failure("choose one with --kernel: " + names));
  }
  Kernel *kernel = exitOnError(
      library->kernel(kernelName.empty() ? library->kernels().front().name : kernelName));
  const KernelInfo &info = kernel->info();

  std::map<uint32_t, NpyArray> arrays;
  std::array<BufferBinding, maxBufferBindings> bindings{};
  auto bind = [&](const ParameterInfo &parameter, NpyArray array) {
    if (arrays.count(parameter.index))
      exitOnError(failure("parameter '" + parameter.name + "' is bound twice"));
    NpyArray &kept = arrays[parameter.index] = std::move(array);
    // An empty array still needs an address.
    if (kept.bytes.empty())
      kept.bytes.reserve(1);
    bindings[parameter.index] = {kept.bytes.data(), kept.bytes.size(),
                                 parameter.addressSpace == AddressSpace::Device &&
                                     !parameter.isConst};
  };
  for (StringRef text : bufferArguments) {
    auto [name, array] = text.split('=');
    bind(*exitOnError(findBuffer(info, name)), exitOnError(makeArray(array)));
  }
  for (StringRef text : scalarArguments) {
    auto [name, value] = text.split('=');
    const ParameterInfo *parameter = exitOnError(findBuffer(info, name));
    bind(*parameter, exitOnError(makeScalar(value, parameter->elementType)));
  }

  Dispatch dispatch;
  if (gridText.empty() == groupsText.empty())
    exitOnError(failure("give the grid: --grid=<threads> or --threadgroups=<groups>"));
  if (!gridText.empty())
    dispatch.gridThreads = parseExtent(gridText, "grid");
  else
    dispatch.threadgroups = parseExtent(groupsText, "threadgroups");
  if (!threadsText.empty())
    dispatch.threadsPerThreadgroup = parseExtent(threadsText, "group");
  else
    dispatch.threadsPerThreadgroup = {
        gridText.empty() ? simdWidth : std::min(simdWidth, (*dispatch.gridThreads)[0]), 1, 1};
  for (StringRef text : threadgroupMemory) {
    uint32_t index = 0, bytes = 0;
    auto [left, right] = text.split('=');
    if (left.getAsInteger(10, index) || right.getAsInteger(0, bytes) || index >= maxBufferBindings)
      exitOnError(failure("--threadgroup-memory=" + text + ": write index=bytes"));
    if (dispatch.threadgroupMemoryLengths.size() <= index)
      dispatch.threadgroupMemoryLengths.resize(index + 1);
    dispatch.threadgroupMemoryLengths[index] = bytes;
  }
  if (schedule.getNumOccurrences())
    dispatch.scheduleSeed = schedule;
  dispatch.portableSeed = portableSeed;
  dispatch.buffers = bindings;

  hostDeviceTable().stopOnInterrupt();
  Counters counters;
  if (Error error = kernel->dispatch(dispatch, countWork ? &counters : nullptr)) {
    errs() << toString(std::move(error)) << "\n";
    return 1;
  }
  for (StringRef text : outputArguments) {
    auto [name, path] = text.split('=');
    const ParameterInfo *parameter = exitOnError(findBuffer(info, name));
    auto found = arrays.find(parameter->index);
    if (found == arrays.end() || path.empty())
      exitOnError(
          failure("--output=" + text +
                  ": write parameter=file.npy, for a parameter that a --buffer is bound to"));
    exitOnError(writeNpy(path, found->second));
  }
  if (countWork)
    for (auto &[name, value] : counters.list())
      outs() << left_justify(name, 28) << value << "\n";
  if (repeatRuns) {
    double best = 1e30;
    for (unsigned i = 0; i < repeatRuns; ++i) {
      auto start = std::chrono::steady_clock::now();
      exitOnError(kernel->dispatch(dispatch));
      std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - start;
      best = std::min(best, spent.count());
    }
    outs() << format("%.3f ms\n", best);
  }
  return 0;
}

#include "tools/metal-run/Session.h"
#include "host_device/metal/Numbers.h"
#include "tools/metal-run/Arrays.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace llvm;
using triton_metal::metal::radixOf;

namespace triton_metal {

void printKernels(raw_ostream &out, const metal::Library &library) {
  for (const KernelInfo &info : library.functions()) {
    out << info.name;
    if (info.maxTotalThreadsPerThreadgroup != maxThreadsPerThreadgroup)
      out << "  (at most " << info.maxTotalThreadsPerThreadgroup << " threads per threadgroup)";
    out << "\n";
    for (const ParameterInfo &parameter : info.parameters) {
      if (parameter.kind == ParameterInfo::Kind::Position)
        continue;
      out << "  " << metal::declarationOf(parameter);
      out << (parameter.kind == ParameterInfo::Kind::Buffer ? "  (buffer "
                                                            : "  (threadgroup memory ")
          << parameter.index;
      if (parameter.elementSize)
        out << ", " << parameter.elementSize << " bytes" << (parameter.isReference ? "" : " each");
      out << ")\n";
    }
    for (const FunctionConstantInfo &constant : info.functionConstants)
      out << "  constant " << constant.type << " " << constant.name << "  (function constant "
          << constant.index << (constant.required ? ", required" : "") << ")\n";
  }
}

static Expected<metal::FunctionConstantValues> constantsOf(const ToolOptions &options,
                                                           const KernelInfo &info) {
  metal::FunctionConstantValues values;
  for (const auto &[key, text] : options.constants) {
    // A type in front is allowed; the declared one decides.
    StringRef numbers =
        StringRef(text).contains(':') ? StringRef(text).split(':').second : StringRef(text);
    std::vector<metal::Number> components;
    SmallVector<StringRef> parts;
    numbers.split(parts, ',');
    for (StringRef part : parts) {
      auto number = metal::parseNumber(part.trim());
      if (!number)
        return failure("--constant=" + key + "=" + text + ": " + toString(number.takeError()));
      components.push_back(*number);
    }
    uint32_t index;
    if (!StringRef(key).getAsInteger(10, index))
      values.set(index, std::move(components));
    else
      values.set(key, std::move(components));
  }
  return values;
}

static Expected<const ParameterInfo *> findParameter(const KernelInfo &info, StringRef name,
                                                     ParameterInfo::Kind kind) {
  uint32_t index;
  bool isIndex = !name.getAsInteger(10, index);
  for (const ParameterInfo &parameter : info.parameters)
    if (parameter.kind == kind && (isIndex ? parameter.index == index : parameter.name == name))
      return &parameter;
  return failure(
      "kernel '" + info.name + "' has no " +
      (kind == ParameterInfo::Kind::Buffer ? "buffer parameter" : "threadgroup argument") + " '" +
      name + "'");
}

Error Session::prepare() {
  for (const DispatchOptions &given : options.dispatches)
    if (Error error = plan(given))
      return error;
  return Error::success();
}

Error Session::plan(const DispatchOptions &given) {
  std::vector<std::string> names = library->functionNames();
  if (names.empty())
    return failure("'" + options.files.front() + "' has no kernel");
  if (given.kernel.empty() && names.size() > 1)
    return failure("choose one with --kernel: " + join(names, ", "));
  std::string name = given.kernel.empty() ? names.front() : given.kernel;
  const KernelInfo *info = nullptr;
  for (const KernelInfo &candidate : library->declarations())
    if (candidate.name == name)
      info = &candidate;
  metal::FunctionConstantValues constants;
  if (info)
    if (Error error = constantsOf(options, *info).moveInto(constants))
      return error;
  auto function = library->newFunction(name, constants);
  if (!function)
    return function.takeError();
  metal::PipelineOptions compile;
  compile.checks = options.checks;
  compile.maxSteps = options.maxSteps.value_or(defaultMaxSteps);
  if (info)
    for (const std::string &name : options.whole) {
      auto parameter = findParameter(*info, name, ParameterInfo::Kind::Buffer);
      if (!parameter)
        return parameter.takeError();
      compile.wholeBuffers |= 1u << (*parameter)->index;
    }
  compile.portable = options.portable;
  compile.counters = options.counters || options.profile;
  Planned planned;
  if (Error error =
          metal::Device().newComputePipelineState(*function, compile).moveInto(planned.pipeline))
    return error;
  if (options.info)
    printInfo(*planned.pipeline);
  if (Error error = bind(given, planned))
    return error;
  if (Error error = setGrid(given, planned))
    return error;
  if (options.schedule)
    planned.dispatch.scheduleSeed = options.schedule;
  planned.dispatch.portableSeed = options.seed.value_or(0);
  dispatches.push_back(std::move(planned));
  return Error::success();
}

/// Numbers of another type would be taken as they are in memory, which nobody means. Signs may
/// differ, bytes are of any type, and 16 bits hold a bfloat.
static Error checkType(const NpyArray &array, const ParameterInfo &parameter) {
  if (parameter.scalarKind == ScalarKind::None)
    return Error::success();
  std::string name = metal::nameOf({parameter.scalarKind, parameter.scalarBits});
  std::string wanted = cantFail(npyType(name));
  auto isInteger = [](StringRef type) { return type[1] == 'i' || type[1] == 'u'; };
  StringRef given = array.dtype;
  if (given == wanted || given == "|u1" ||
      (isInteger(given) && isInteger(wanted) &&
       given.drop_front(2) == StringRef(wanted).drop_front(2)))
    return Error::success();
  return failure("parameter '" + parameter.name + "' (" + parameter.elementType +
                 ") takes an array of " + name + " ('" + wanted + "'), and this one has type '" +
                 given + "': convert it, or bind its bytes as an array of uchar");
}

Error Session::bind(const DispatchOptions &given, Planned &planned) {
  const KernelInfo &info = planned.pipeline->info();
  for (const DispatchOptions::Bound &bound : given.bindings) {
    auto parameter = findParameter(info, bound.parameter, ParameterInfo::Kind::Buffer);
    if (!parameter)
      return parameter.takeError();
    if (planned.arrays.count((*parameter)->index))
      return failure("parameter '" + (*parameter)->name + "' is bound twice");
    std::shared_ptr<NpyArray> array;
    StringRef value = bound.value;
    if (bound.kind == DispatchOptions::Binding::Array && value.consume_front("@")) {
      auto found = named.find(value.str());
      if (found == named.end())
        return failure("--buffer=" + bound.parameter + "=@" + value +
                       ": no dispatch before has bound '" + value + "'");
      array = found->second;
    } else {
      auto made = bound.kind == DispatchOptions::Binding::Array    ? makeArray(value)
                  : bound.kind == DispatchOptions::Binding::Scalar ? makeScalar(value, **parameter)
                                                                   : makeBytes(value);
      if (!made)
        return made.takeError();
      array = std::make_shared<NpyArray>(std::move(*made));
      if (bound.kind == DispatchOptions::Binding::Array)
        if (Error error = checkType(*array, **parameter))
          return error;
      if (uint64_t unit = (*parameter)->elementSize;
          unit && array->bytes.size() > unit && array->bytes.size() % unit)
        return failure("parameter '" + (*parameter)->name + "' (" + (*parameter)->elementType +
                       ") takes values of " + Twine(unit) + " bytes each, and '" + value +
                       "' has " + Twine(array->bytes.size()) + " bytes, which is no multiple");
      if (array->bytes.empty()) // an empty array still needs an address
        array->bytes.reserve(1);
    }
    planned.arrays[(*parameter)->index] = std::move(array);
  }
  for (const ParameterInfo &parameter : info.parameters) {
    if (parameter.kind != ParameterInfo::Kind::Buffer)
      continue;
    auto &array = planned.arrays[parameter.index];
    if (!array)
      if (auto found = named.find(parameter.name); found != named.end())
        array = found->second;
    if (!array)
      planned.arrays.erase(parameter.index);
  }
  for (const ParameterInfo &parameter : info.parameters)
    if (auto found = planned.arrays.find(parameter.index);
        parameter.kind == ParameterInfo::Kind::Buffer && found != planned.arrays.end())
      named[parameter.name] = found->second;
  std::vector<uint32_t> &lengths = planned.dispatch.threadgroupMemoryLengths;
  for (const auto &[key, text] : given.threadgroupMemory) {
    uint32_t index = 0, bytes = 0;
    if (StringRef(text).getAsInteger(radixOf(text), bytes))
      return failure("--threadgroup-memory=" + key + "=" + text + ": write index=bytes");
    auto parameter = findParameter(info, key, ParameterInfo::Kind::Threadgroup);
    if (!parameter)
      return parameter.takeError();
    index = (*parameter)->index;
    if (lengths.size() <= index)
      lengths.resize(index + 1, Dispatch::noLength);
    lengths[index] = bytes;
  }
  return Error::success();
}

Error Session::setGrid(const DispatchOptions &given, Planned &planned) {
  Dispatch &dispatch = planned.dispatch;
  if (given.threads.empty() == given.threadgroups.empty())
    return failure("give the grid: --threads=<threads> or --threadgroups=<groups>");
  if (!given.threads.empty()) {
    if (Error error = parseExtent(given.threads, given.threadsOption)
                          .moveInto(dispatch.gridThreads.emplace()))
      return error;
  } else if (Error error =
                 parseExtent(given.threadgroups, "threadgroups").moveInto(dispatch.threadgroups)) {
    return error;
  }
  if (!given.group.empty())
    return parseExtent(given.group, "group").moveInto(dispatch.threadsPerThreadgroup);
  dispatch.threadsPerThreadgroup = {
      dispatch.gridThreads ? std::min(simdWidth, (*dispatch.gridThreads)[0]) : simdWidth, 1, 1};
  return Error::success();
}

Expected<std::shared_ptr<metal::CommandBuffer>> Session::execute() {
  auto commands = queue->commandBuffer();
  for (const Planned &planned : dispatches) {
    metal::EncodedDispatch encoded;
    encoded.pipeline = planned.pipeline;
    encoded.dispatch = planned.dispatch;
    for (const auto &[index, array] : planned.arrays) {
      const ParameterInfo *parameter = nullptr;
      for (const ParameterInfo &candidate : planned.pipeline->info().parameters)
        if (candidate.kind == ParameterInfo::Kind::Buffer && candidate.index == index)
          parameter = &candidate;
      if (encoded.bindings.size() <= index)
        encoded.bindings.resize(index + 1);
      encoded.bindings[index] = {array->bytes.data(), array->bytes.size(),
                                 parameter && parameter->addressSpace == AddressSpace::Device &&
                                     !parameter->isConst};
    }
    commands->add(std::move(encoded));
  }
  commands->commit();
  if (Error error = commands->waitUntilCompleted())
    return std::move(error);
  return commands;
}

Error Session::run() { return execute().moveInto(first); }

Expected<std::shared_ptr<NpyArray>> Session::arrayOf(StringRef option, StringRef name) {
  for (const Planned &planned : reverse(dispatches)) {
    auto parameter = findParameter(planned.pipeline->info(), name, ParameterInfo::Kind::Buffer);
    if (!parameter) {
      if (&planned == &dispatches.front())
        return parameter.takeError();
      consumeError(parameter.takeError());
      continue;
    }
    if (auto found = planned.arrays.find((*parameter)->index); found != planned.arrays.end())
      return found->second;
  }
  return failure("--" + option + " " + name + ": nothing is bound to that parameter");
}

void Session::printInfo(const metal::ComputePipelineState &pipeline) {
  out << pipeline.info().name << "\n"
      << "  threads of a SIMD-group             " << pipeline.threadExecutionWidth() << "\n"
      << "  most threads of a threadgroup       " << pipeline.maxTotalThreadsPerThreadgroup()
      << "\n"
      << "  static threadgroup memory, bytes    " << pipeline.staticThreadgroupMemoryLength()
      << "\n";
  if (pipeline.registersPerThread())
    out << "  registers of a thread (estimate)    " << pipeline.registersPerThread() << "\n";
  out << "  buffers that it may write          ";
  bool any = false;
  for (const ParameterInfo &parameter : pipeline.info().parameters)
    if (parameter.kind == ParameterInfo::Kind::Buffer &&
        pipeline.writtenBuffers() >> parameter.index & 1) {
      out << (any ? ", " : " ") << parameter.name;
      any = true;
    }
  out << (any ? "\n" : " none\n");
}

Error Session::report() {
  for (const auto &[name, path] : options.outputs) {
    auto array = arrayOf("output", name);
    if (!array)
      return array.takeError();
    if (Error error = writeNpy(path, **array))
      return error;
  }
  for (const std::string &name : options.shown) {
    auto array = arrayOf("print", name);
    if (!array)
      return array.takeError();
    printArray(out, name, **array);
  }
  if (options.profile)
    metal::print(out, first->profile(), *metal::reportFormNamed(*options.profile));
  json::Object result;
  if (options.counters) {
    json::Object counters;
    for (auto &[name, value] : first->counters().list()) {
      if (!options.json)
        out << left_justify(name, 32) << value << "\n";
      counters[name] = value;
    }
    result["counters"] = std::move(counters);
  }
  if (options.timedRuns) {
    std::vector<double> seconds;
    for (unsigned i = 0; i != *options.timedRuns; ++i) {
      auto commands = execute();
      if (!commands)
        return commands.takeError();
      seconds.push_back((*commands)->GPUEndTime() - (*commands)->GPUStartTime());
    }
    sort(seconds);
    double median = seconds[seconds.size() / 2];
    if (!options.json)
      out << format("median %.3f ms, best %.3f ms of %u runs\n", median * 1e3,
                    seconds.front() * 1e3, *options.timedRuns);
    result["seconds"] = median;
    result["best_seconds"] = seconds.front();
    result["runs"] = static_cast<int64_t>(*options.timedRuns);
  }
  if (options.json)
    out << formatv("{0:2}", json::Value(std::move(result))) << "\n";
  return Error::success();
}

} // namespace triton_metal

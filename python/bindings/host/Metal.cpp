// Libraries, functions, pipelines, queues and command buffers for Python.
#include "Arguments.h"

#include "host_device/engine/Guard.h"
#include "tools/metal-run/Tool.h"
#include "llvm/ADT/StringExtras.h"
#include <chrono>

namespace triton_metal {

namespace {

using metal::CommandBuffer;
using metal::CommandQueue;

PyObject *compileError = nullptr, *launchError = nullptr;

constexpr const char *libraryName = "triton_metal_host.library",
                     *functionName = "triton_metal_host.function",
                     *pipelineName = "triton_metal_host.pipeline",
                     *queueName = "triton_metal_host.queue",
                     *commandsName = "triton_metal_host.commands",
                     *profileName = "triton_metal_host.profile";

typedef std::shared_ptr<metal::Library> HeldLibrary;
typedef std::shared_ptr<metal::Function> HeldFunction;
typedef std::shared_ptr<CommandQueue> HeldQueue;

PyObject *fail(PyObject *type, const std::string &text) {
  Ref message(toPython(text));
  if (message)
    PyErr_SetObject(type, message.get());
  return nullptr;
}

/// Raises what went wrong with a launch: an interrupt is what its handler raises.
PyObject *failLaunch(const std::string &text) {
  if (!llvm::StringRef(text).starts_with(launchInterrupted))
    return fail(launchError, text);
  if (!PyErr_CheckSignals())
    PyErr_SetNone(PyExc_KeyboardInterrupt);
  return nullptr;
}

bool readStrings(PyObject *list, std::vector<std::string> &strings) {
  Py_ssize_t count = PySequence_Size(list);
  for (Py_ssize_t i = 0; i < count; ++i) {
    Ref item(PySequence_GetItem(list, i));
    Py_ssize_t size = 0;
    const char *text = item ? PyUnicode_AsUTF8AndSize(item.get(), &size) : nullptr;
    if (!text)
      return false;
    strings.emplace_back(text, static_cast<size_t>(size));
  }
  return count >= 0;
}

//===----------------------------------------------------------------------===//
// Libraries, functions, pipelines
//===----------------------------------------------------------------------===//

PyObject *newLibrary(PyObject *, PyObject *arguments) {
  const char *source = nullptr, *file = nullptr;
  Py_ssize_t size = 0;
  PyObject *macroList = nullptr, *folderList = nullptr;
  if (!PyArg_ParseTuple(arguments, "s#sOO", &source, &size, &file, &macroList, &folderList))
    return nullptr;
  metal::CompileOptions options;
  options.fileName = file;
  std::vector<std::string> macros;
  if (!readStrings(macroList, macros) || !readStrings(folderList, options.includeDirectories))
    return nullptr;
  for (size_t i = 0; i + 1 < macros.size(); i += 2)
    options.preprocessorMacros.emplace_back(macros[i], macros[i + 1]);
  HeldLibrary library;
  std::string problem;
  {
    WithoutLock unlocked;
    auto made =
        metal::Device().newLibrary(llvm::StringRef(source, static_cast<size_t>(size)), options);
    if (made)
      library = std::move(*made);
    else
      problem = llvm::toString(made.takeError());
  }
  if (!library)
    return fail(compileError, problem);
  Ref description(toPython(metal::describeAsJson(library->functions())));
  Ref held(wrapped(new HeldLibrary(std::move(library)), libraryName));
  return held && description ? PyTuple_Pack(2, held.get(), description.get()) : nullptr;
}

/// Reads a number for a function constant. Returns false with an error set.
bool readNumber(PyObject *object, metal::Number &number) {
  if (PyBool_Check(object)) {
    number = object == Py_True;
    return true;
  }
  if (PyFloat_Check(object)) {
    number = PyFloat_AsDouble(object);
    return true;
  }
  int overflow = 0;
  int64_t value = PyLong_AsLongLongAndOverflow(object, &overflow);
  if (overflow > 0) {
    uint64_t large = PyLong_AsUnsignedLongLong(object);
    number = large;
    return !(large == UINT64_MAX && PyErr_Occurred());
  }
  if (overflow < 0)
    PyErr_SetString(PyExc_OverflowError, "the number does not fit into 64 bits");
  number = value;
  return !PyErr_Occurred();
}

/// function(library, name, [(name or index, (components)), ...]) -> (function, JSON)
PyObject *newFunction(PyObject *, PyObject *arguments) {
  PyObject *capsule = nullptr, *list = nullptr;
  const char *name = nullptr;
  if (!PyArg_ParseTuple(arguments, "OsO", &capsule, &name, &list))
    return nullptr;
  auto *library = unwrapped<HeldLibrary>(capsule, libraryName);
  if (!library)
    return nullptr;
  metal::FunctionConstantValues constants;
  for (Py_ssize_t i = 0, count = PySequence_Size(list); i < count; ++i) {
    Ref entry(PySequence_GetItem(list, i));
    PyObject *key = nullptr, *components = nullptr;
    if (!entry || !PyArg_ParseTuple(entry.get(), "OO", &key, &components))
      return nullptr;
    std::vector<metal::Number> numbers;
    for (Py_ssize_t j = 0, length = PySequence_Size(components); j < length; ++j) {
      Ref component(PySequence_GetItem(components, j));
      if (!component || !readNumber(component.get(), numbers.emplace_back()))
        return nullptr;
    }
    if (PyUnicode_Check(key)) {
      const char *text = PyUnicode_AsUTF8AndSize(key, nullptr);
      if (!text)
        return nullptr;
      constants.set(std::string(text), std::move(numbers));
    } else {
      unsigned long index = PyLong_AsUnsignedLong(key);
      if (PyErr_Occurred())
        return nullptr;
      constants.set(static_cast<uint32_t>(std::min<unsigned long>(index, UINT32_MAX)),
                    std::move(numbers));
    }
  }
  HeldFunction function;
  std::string problem;
  {
    WithoutLock unlocked;
    auto made = (*library)->newFunction(name, constants);
    if (made)
      function = std::move(*made);
    else
      problem = llvm::toString(made.takeError());
  }
  if (!function)
    return fail(llvm::StringRef(problem).contains("error: ") ? compileError : PyExc_ValueError,
                problem);
  Ref description(toPython(metal::describeAsJson(function->info())));
  Ref held(wrapped(new HeldFunction(std::move(function)), functionName));
  return held && description ? PyTuple_Pack(2, held.get(), description.get()) : nullptr;
}

char letterOf(metal::ScalarType type) {
  switch (type.kind) {
  case ScalarKind::Bool:
    return 'b';
  case ScalarKind::Signed:
    return 'i';
  case ScalarKind::Unsigned:
    return 'u';
  case ScalarKind::Float:
    return 'f';
  case ScalarKind::BFloat:
  case ScalarKind::None:
    break;
  }
  return 0;
}

/// pipeline(function, checks, max_steps, whole_buffers, portable, counters, parameters, convert)
///   -> (pipeline, static threadgroup memory, written buffers)
PyObject *newPipeline(PyObject *, PyObject *arguments) {
  PyObject *capsule = nullptr, *parameters = nullptr, *convert = nullptr;
  const char *checks = nullptr;
  unsigned long long maxSteps = 0;
  unsigned wholeBuffers = 0;
  int portable = 0, counters = 0;
  if (!PyArg_ParseTuple(arguments, "OsKIppOO", &capsule, &checks, &maxSteps, &wholeBuffers,
                        &portable, &counters, &parameters, &convert))
    return nullptr;
  std::string unknown;
  std::optional<Checks> wanted = Checks::parse(checks, &unknown);
  if (!wanted) {
    PyErr_Format(PyExc_ValueError, "there is no check '%s'", unknown.c_str());
    return nullptr;
  }
  auto *function = unwrapped<HeldFunction>(capsule, functionName);
  if (!function)
    return nullptr;
  auto pipeline = std::make_unique<HeldPipeline>();
  std::string problem;
  {
    WithoutLock unlocked;
    auto made = metal::Device().newComputePipelineState(
        *function, {*wanted, portable != 0, counters != 0, maxSteps, wholeBuffers});
    if (made)
      pipeline->state = std::move(*made);
    else
      problem = llvm::toString(made.takeError());
  }
  if (!pipeline->state)
    return fail(compileError, problem);
  for (const ParameterInfo &info : pipeline->state->info().parameters) {
    if (info.kind != ParameterInfo::Kind::Buffer)
      continue;
    HeldPipeline::Parameter parameter{};
    parameter.index = info.index;
    parameter.exists = info.exists;
    parameter.isReference = info.isReference;
    parameter.scalar = {info.scalarKind, info.scalarBits};
    parameter.isNumber = info.isReference && info.isConst && info.vectorWidth == 1 &&
                         info.scalarKind != ScalarKind::None &&
                         info.elementSize == parameter.scalar.bytes();
    parameter.isWritten = pipeline->state->writtenBuffers() >> info.index & 1;
    parameter.letter = letterOf(parameter.scalar);
    parameter.size = std::max<uint64_t>(1, info.elementSize);
    parameter.alignment = std::max<uint64_t>(1, info.elementAlignment);
    pipeline->plan.push_back(parameter);
  }
  pipeline->parameters = Ref::borrow(parameters);
  pipeline->convert = Ref::borrow(convert);
  unsigned long long memory = pipeline->state->staticThreadgroupMemoryLength();
  unsigned written = pipeline->state->writtenBuffers();
  Ref held(wrapped(pipeline.release(), pipelineName));
  return held ? Py_BuildValue("(OKI)", held.get(), memory, written) : nullptr;
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

/// Reads one to three extents. Returns false with an error set.
bool readExtent(PyObject *object, std::array<uint32_t, 3> &extent) {
  extent = {1, 1, 1};
  auto one = [](PyObject *number, uint32_t &result) {
    Ref index(PyNumber_Index(number));
    if (!index)
      return false;
    long long value = PyLong_AsLongLong(index.get());
    if (value == -1 && PyErr_Occurred())
      PyErr_Clear();
    if (value < 0 || value > UINT32_MAX) {
      PyErr_Format(PyExc_ValueError, "%S is out of range: 0 to 4294967295 is allowed", index.get());
      return false;
    }
    result = static_cast<uint32_t>(value);
    return true;
  };
  if (!PyTuple_Check(object) && !PyList_Check(object))
    return one(object, extent[0]);
  Py_ssize_t count = PySequence_Size(object);
  if (count < 1 || count > 3) {
    PyErr_Format(PyExc_ValueError, "%R has %zd extents: one to three are allowed", object, count);
    return false;
  }
  for (Py_ssize_t i = 0; i != count; ++i) {
    Ref item(PySequence_GetItem(object, i));
    if (!item || !one(item.get(), extent[static_cast<size_t>(i)]))
      return false;
  }
  return true;
}

/// What a launch needs besides its pipeline: (arguments, grid, whether it is in threads, group,
/// threadgroup memory lengths or None, seed or None).
struct Launch {
  BoundArguments bound;
  Dispatch dispatch;

  bool read(const HeldPipeline &pipeline, PyObject *const *given) {
    if (!bound.bind(pipeline, given[0]))
      return false;
    if (given[2] == Py_True) {
      if (!readExtent(given[1], dispatch.gridThreads.emplace()))
        return false;
    } else if (!readExtent(given[1], dispatch.threadgroups)) {
      return false;
    }
    if (!readExtent(given[3], dispatch.threadsPerThreadgroup))
      return false;
    if (given[4] != Py_None)
      for (Py_ssize_t i = 0, count = PySequence_Size(given[4]); i < count; ++i) {
        Ref item(PySequence_GetItem(given[4], i));
        unsigned long bytes = item ? PyLong_AsUnsignedLong(item.get()) : 0;
        if (PyErr_Occurred())
          return false;
        dispatch.threadgroupMemoryLengths.push_back(
            static_cast<uint32_t>(std::min<unsigned long>(bytes, UINT32_MAX)));
      }
    if (given[5] != Py_None) {
      uint64_t seed = PyLong_AsUnsignedLongLong(given[5]);
      if (PyErr_Occurred())
        return false;
      if (pipeline.state->options().portable)
        dispatch.portableSeed = seed;
      else
        dispatch.scheduleSeed = seed;
    }
    dispatch.buffers = bound.buffers();
    return true;
  }
};

PyObject *countersTuple(const Counters &counters) {
  Ref tuple(PyTuple_New(Counters::Count));
  for (uint32_t i = 0; tuple && i != Counters::Count; ++i)
    if (PyTuple_SetItem(tuple.get(), i, PyLong_FromUnsignedLongLong(counters.values[i])))
      return nullptr;
  return tuple.release();
}

/// launch(queue, pipeline, arguments, grid, in_threads, group, lengths, seed)
///   -> (seconds, counters or None, profile or None)
PyObject *launch(PyObject *, PyObject *const *given, Py_ssize_t count) {
  if (count != 8) {
    PyErr_SetString(PyExc_TypeError, "launch takes 8 arguments");
    return nullptr;
  }
  auto *queue = unwrapped<HeldQueue>(given[0], queueName);
  auto *pipeline = queue ? unwrapped<HeldPipeline>(given[1], pipelineName) : nullptr;
  if (!pipeline)
    return nullptr;
  Launch launch;
  if (!launch.read(*pipeline, given + 2))
    return nullptr;
  // What was submitted before must have run. An interrupt ends the wait.
  for (;;) {
    bool isIdle = (*queue)->waitUntilIdle(std::chrono::nanoseconds(0));
    if (!isIdle) {
      WithoutLock unlocked;
      isIdle = (*queue)->waitUntilIdle(std::chrono::milliseconds(20));
    }
    if (isIdle)
      break;
    if (PyErr_CheckSignals())
      return nullptr;
  }
  bool counting = pipeline->state->options().counters;
  Counters counters;
  Profile profile;
  double seconds = 0;
  std::string problem;
  {
    WithoutLock unlocked;
    if (llvm::Error error =
            (*queue)->run(*pipeline->state, launch.dispatch, counting ? &counters : nullptr,
                          &seconds, counting ? &profile : nullptr))
      problem = llvm::toString(std::move(error));
  }
  if (!problem.empty())
    return failLaunch(problem);
  Ref time(PyFloat_FromDouble(seconds));
  if (!counting)
    return time ? PyTuple_Pack(3, time.get(), Py_None, Py_None) : nullptr;
  auto report = std::make_unique<metal::ProfileReport>();
  report->add(pipeline->state->function()->library(), profile);
  Ref counted(countersTuple(counters)), held(wrapped(report.release(), profileName));
  return time && counted && held ? PyTuple_Pack(3, time.get(), counted.get(), held.get()) : nullptr;
}

/// profile_text(profile, form) -> str
PyObject *profileText(PyObject *, PyObject *arguments) {
  PyObject *capsule = nullptr;
  const char *form = nullptr;
  if (!PyArg_ParseTuple(arguments, "Os", &capsule, &form))
    return nullptr;
  auto *report = unwrapped<metal::ProfileReport>(capsule, profileName);
  if (!report)
    return nullptr;
  auto known = metal::reportFormNamed(form);
  if (!known)
    return fail(PyExc_ValueError, std::string("there is no form '") + form + "' of profiles");
  std::string text;
  llvm::raw_string_ostream stream(text);
  metal::print(stream, *report, *known);
  return toPython(text);
}

//===----------------------------------------------------------------------===//
// Command buffers
//===----------------------------------------------------------------------===//

/// A command buffer as Python holds it, with the objects that its launches need.
struct HeldCommands {
  std::shared_ptr<CommandBuffer> commands;
  std::vector<Ref> kept;

  HeldCommands() = default;
  HeldCommands(HeldCommands &&) = default;
  HeldCommands &operator=(HeldCommands &&) = default;
  ~HeldCommands();
};

/// Command buffers that were dropped while they ran. Guarded by Python's lock.
std::vector<HeldCommands> &dropped() {
  static auto *list = new std::vector<HeldCommands>;
  return *list;
}

bool isRunning(const CommandBuffer &commands) {
  metal::CommandBufferStatus status = commands.status();
  return status == metal::CommandBufferStatus::Committed ||
         status == metal::CommandBufferStatus::Scheduled;
}

HeldCommands::~HeldCommands() {
  if (commands && !kept.empty() && isRunning(*commands))
    dropped().push_back(std::move(*this));
}

void sweep() {
  std::vector<HeldCommands> ended;
  std::vector<HeldCommands> &list = dropped();
  for (size_t i = 0; i != list.size();) {
    if (isRunning(*list[i].commands)) {
      ++i;
      continue;
    }
    ended.push_back(std::move(list[i]));
    list[i] = std::move(list.back());
    list.pop_back();
  }
}

PyObject *newQueue(PyObject *, PyObject *) {
  return wrapped(new HeldQueue(metal::Device().newCommandQueue()), queueName);
}

/// wait_idle(queue, seconds) -> whether everything that was submitted has run
PyObject *waitIdle(PyObject *, PyObject *arguments) {
  PyObject *capsule = nullptr;
  double seconds = 0;
  if (!PyArg_ParseTuple(arguments, "Od", &capsule, &seconds))
    return nullptr;
  auto *queue = unwrapped<HeldQueue>(capsule, queueName);
  if (!queue)
    return nullptr;
  bool done;
  {
    WithoutLock unlocked;
    done = (*queue)->waitUntilIdle(std::chrono::nanoseconds(static_cast<int64_t>(seconds * 1e9)));
  }
  sweep();
  return PyBool_FromLong(done);
}

PyObject *newCommands(PyObject *, PyObject *capsule) {
  auto *queue = unwrapped<HeldQueue>(capsule, queueName);
  if (!queue)
    return nullptr;
  sweep();
  auto held = std::make_unique<HeldCommands>();
  held->commands = (*queue)->commandBuffer();
  return wrapped(held.release(), commandsName);
}

/// add(commands, pipeline, arguments, grid, in_threads, group, lengths, seed)
PyObject *addLaunch(PyObject *, PyObject *const *given, Py_ssize_t count) {
  if (count != 8) {
    PyErr_SetString(PyExc_TypeError, "add takes 8 arguments");
    return nullptr;
  }
  auto *held = unwrapped<HeldCommands>(given[0], commandsName);
  auto *pipeline = held ? unwrapped<HeldPipeline>(given[1], pipelineName) : nullptr;
  if (!pipeline)
    return nullptr;
  Launch launch;
  if (!launch.read(*pipeline, given + 2))
    return nullptr;
  metal::EncodedDispatch encoded;
  encoded.pipeline = pipeline->state;
  encoded.bindings.assign(launch.bound.buffers().begin(), launch.bound.buffers().end());
  if (launch.bound.scalarMemory())
    encoded.keepAlive.push_back(launch.bound.scalarMemory());
  encoded.dispatch = std::move(launch.dispatch);
  for (Ref &object : launch.bound.kept)
    held->kept.push_back(std::move(object));
  held->commands->add(std::move(encoded));
  Py_IncRef(Py_None);
  return Py_None;
}

/// commit(commands, handler or None)
PyObject *commit(PyObject *, PyObject *arguments) {
  PyObject *capsule = nullptr, *handler = nullptr;
  if (!PyArg_ParseTuple(arguments, "OO", &capsule, &handler))
    return nullptr;
  auto *held = unwrapped<HeldCommands>(capsule, commandsName);
  if (!held)
    return nullptr;
  if (handler != Py_None) {
    held->kept.push_back(Ref::borrow(handler));
    held->commands->addCompletedHandler([handler](CommandBuffer &) {
      PyGILState_STATE state = PyGILState_Ensure();
      Ref result(PyObject_CallObject(handler, nullptr));
      if (!result)
        PyErr_WriteUnraisable(handler);
      {
        Ref now = std::move(result);
      }
      PyGILState_Release(state);
    });
  }
  held->commands->commit();
  Py_IncRef(Py_None);
  return Py_None;
}

/// wait(commands, seconds) -> whether it has completed
PyObject *wait(PyObject *, PyObject *arguments) {
  PyObject *capsule = nullptr;
  double seconds = 0;
  if (!PyArg_ParseTuple(arguments, "Od", &capsule, &seconds))
    return nullptr;
  auto *held = unwrapped<HeldCommands>(capsule, commandsName);
  if (!held)
    return nullptr;
  std::shared_ptr<CommandBuffer> commands = held->commands;
  using Clock = std::chrono::steady_clock;
  constexpr auto slice = std::chrono::milliseconds(20); // then signals are looked at
  bool isForever = !(seconds < 1e9);
  auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                std::chrono::duration<double>(isForever ? 0 : seconds));
  for (;;) {
    bool done;
    {
      WithoutLock unlocked;
      auto left = isForever ? Clock::duration(slice) : end - Clock::now();
      done = commands->waitFor(std::clamp<Clock::duration>(left, Clock::duration(0), slice));
    }
    if (PyErr_CheckSignals())
      return nullptr;
    if (done || (!isForever && Clock::now() >= end))
      return PyBool_FromLong(done);
  }
}

/// result(commands) -> (status, start, end, error or None, counters)
PyObject *resultOf(PyObject *, PyObject *capsule) {
  auto *held = unwrapped<HeldCommands>(capsule, commandsName);
  if (!held)
    return nullptr;
  const CommandBuffer &commands = *held->commands;
  if (!isRunning(commands))
    std::vector<Ref> released = std::move(held->kept);
  std::optional<std::string> error = commands.error();
  Ref text(error ? toPython(*error) : Ref::borrow(Py_None).release());
  Ref counters(countersTuple(commands.counters()));
  if (!text || !counters)
    return nullptr;
  return Py_BuildValue("(iddOO)", static_cast<int>(commands.status()), commands.GPUStartTime(),
                       commands.GPUEndTime(), text.get(), counters.get());
}

/// profile(commands) -> the profile of a command buffer
PyObject *profileOf(PyObject *, PyObject *capsule) {
  auto *held = unwrapped<HeldCommands>(capsule, commandsName);
  if (!held)
    return nullptr;
  return wrapped(new metal::ProfileReport(held->commands->profile()), profileName);
}

/// raise_error(text): raises what a failed launch raises
PyObject *raiseError(PyObject *, PyObject *text) {
  Py_ssize_t size = 0;
  const char *data = PyUnicode_AsUTF8AndSize(text, &size);
  return data ? failLaunch(std::string(data, static_cast<size_t>(size))) : nullptr;
}

//===----------------------------------------------------------------------===//
// The device
//===----------------------------------------------------------------------===//

PyObject *configure(PyObject *, PyObject *arguments) {
  const char *directory = nullptr;
  unsigned threads = 0;
  if (!PyArg_ParseTuple(arguments, "sI", &directory, &threads))
    return nullptr;
  DeviceOptions options;
  options.cacheDirectory = directory;
  options.numThreads = threads;
  if (llvm::Error error = Device::configure(options))
    return fail(PyExc_OSError, llvm::toString(std::move(error)));
  Py_IncRef(Py_None);
  return Py_None;
}

PyObject *stopOnInterrupt(PyObject *, PyObject *) {
  engine::installInterruptHandler();
  Py_IncRef(Py_None);
  return Py_None;
}

/// metal_run(arguments) -> exit status
PyObject *metalRun(PyObject *, PyObject *list) {
  std::vector<std::string> arguments;
  if (!readStrings(list, arguments))
    return nullptr;
  int status;
  {
    WithoutLock unlocked;
    status = runTool(arguments, llvm::outs(), llvm::errs());
    llvm::outs().flush();
  }
  if (PyErr_CheckSignals())
    return nullptr;
  return PyLong_FromLong(status);
}

PyObject *counterNames(PyObject *, PyObject *) {
  Ref tuple(PyTuple_New(Counters::Count));
  for (uint32_t i = 0; tuple && i != Counters::Count; ++i)
    if (PyTuple_SetItem(tuple.get(), i,
                        PyUnicode_FromString(Counters::name(static_cast<Counters::Index>(i)))))
      return nullptr;
  return tuple.release();
}

PyCFunction fast(PyObject *(*function)(PyObject *, PyObject *const *, Py_ssize_t)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

} // namespace

int addExceptions(PyObject *module) {
  compileError = PyErr_NewExceptionWithDoc(
      "triton_metal_host.CompileError",
      "Metal text that cannot be compiled. The text is clang's diagnostics: file:line:column.",
      nullptr, nullptr);
  launchError = PyErr_NewExceptionWithDoc(
      "triton_metal_host.LaunchError",
      "A launch that was refused or that failed: what it exceeded, or what a check found.", nullptr,
      nullptr);
  if (!compileError || !launchError ||
      PyModule_AddObjectRef(module, "CompileError", compileError) ||
      PyModule_AddObjectRef(module, "LaunchError", launchError))
    return -1;
  return 0;
}

PyMethodDef metalMethods[] = {{"library", newLibrary, METH_VARARGS, nullptr},
                              {"function", newFunction, METH_VARARGS, nullptr},
                              {"pipeline", newPipeline, METH_VARARGS, nullptr},
                              {"queue", newQueue, METH_NOARGS, nullptr},
                              {"wait_idle", waitIdle, METH_VARARGS, nullptr},
                              {"launch", fast(launch), METH_FASTCALL, nullptr},
                              {"commands", newCommands, METH_O, nullptr},
                              {"add", fast(addLaunch), METH_FASTCALL, nullptr},
                              {"commit", commit, METH_VARARGS, nullptr},
                              {"wait", wait, METH_VARARGS, nullptr},
                              {"result", resultOf, METH_O, nullptr},
                              {"profile", profileOf, METH_O, nullptr},
                              {"profile_text", profileText, METH_VARARGS, nullptr},
                              {"raise_error", raiseError, METH_O, nullptr},
                              {"configure", configure, METH_VARARGS, nullptr},
                              {"stop_on_interrupt", stopOnInterrupt, METH_NOARGS, nullptr},
                              {"metal_run", metalRun, METH_O, nullptr},
                              {"counter_names", counterNames, METH_NOARGS, nullptr},
                              {nullptr, nullptr, 0, nullptr}};

} // namespace triton_metal

// Libraries, functions and pipelines for Python.
#include "Arguments.h"
#include "Handles.h"

#include "host_device/engine/Guard.h"
#include "tools/metal-run/Tool.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

namespace triton_metal {

static PyObject *compileError = nullptr, *launchError = nullptr;

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

namespace {

bool readStrings(PyObject *list, std::vector<std::string> &strings) {
  Py_ssize_t count = PySequence_Size(list);
  for (Py_ssize_t i = 0; i < count; ++i) {
    Ref item(PySequence_GetItem(list, i));
    // A path may have bytes that are no text. Python keeps them as the file system's encoding
    // tells.
    Ref bytes(item ? PyUnicode_EncodeFSDefault(item.get()) : nullptr);
    char *text = nullptr;
    Py_ssize_t size = 0;
    if (!bytes || PyBytes_AsStringAndSize(bytes.get(), &text, &size))
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
  llvm::json::Array listed;
  for (std::string &name : library->functionNames())
    listed.push_back(std::move(name));
  Ref names(toPython(llvm::formatv("{0}", llvm::json::Value(std::move(listed))).str()));
  Ref held(wrapped(new HeldLibrary(std::move(library)), libraryName));
  return held && names ? PyTuple_Pack(2, held.get(), names.get()) : nullptr;
}

/// describe(library, name) -> JSON
PyObject *describeFunction(PyObject *, PyObject *arguments) {
  PyObject *capsule = nullptr;
  const char *name = nullptr;
  if (!PyArg_ParseTuple(arguments, "Os", &capsule, &name))
    return nullptr;
  auto *library = unwrapped<HeldLibrary>(capsule, libraryName);
  if (!library)
    return nullptr;
  KernelInfo info;
  std::string problem;
  {
    WithoutLock unlocked;
    problem = llvm::toString((*library)->info(name).moveInto(info));
  }
  return problem.empty() ? toPython(metal::describeAsJson(info)) : fail(compileError, problem);
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
    status = runToolOnStreams(arguments);
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
                              {"describe", describeFunction, METH_VARARGS, nullptr},
                              {"pipeline", newPipeline, METH_VARARGS, nullptr},
                              {"configure", configure, METH_VARARGS, nullptr},
                              {"stop_on_interrupt", stopOnInterrupt, METH_NOARGS, nullptr},
                              {"metal_run", metalRun, METH_O, nullptr},
                              {"counter_names", counterNames, METH_NOARGS, nullptr},
                              {nullptr, nullptr, 0, nullptr}};

} // namespace triton_metal

// Launching: from Python arguments to a dispatch, in a few microseconds.
#include "Launcher.h"
#include "Profile.h"
#include "WithoutLock.h"

#include "llvm/ADT/SmallString.h"

#include <nanobind/stl/filesystem.h>

#include <cstdlib>
#include <cstring>
#include <utility>

namespace triton_metal {

namespace {

/// What `knobs.runtime` has for launches: functions around each, and whether kernels have
/// assertions. Lists of functions are looked at and never replaced, so that one that gets its first
/// function is noticed.
struct LaunchHooks {
  PyObject *enter = nullptr, *exit = nullptr;
  int8_t debug = -1;
  bool any() const { return (enter && PyList_GET_SIZE(enter)) || (exit && PyList_GET_SIZE(exit)); }
};
LaunchHooks launchHooks;

/// `kernel[grid]`.
struct GridLaunch {
  Launcher *launcher;
  nb::object keepsLauncher;
  nb::object grid;
};

} // namespace

Launcher::Launcher(std::string name, nb::object owner, nb::object function)
    : name(std::move(name)), owner(std::move(owner)), function(std::move(function)) {
  before = this->owner.attr("before");
  readParams();
}

/// The objects of a function's code and defaults.
static void stateOf(PyObject *function, llvm::SmallVectorImpl<PyObject *> &state) {
  state.push_back(PyFunction_GET_CODE(function));
  state.push_back(PyFunction_GET_DEFAULTS(function));
  if (PyObject *keywords = PyFunction_GET_KW_DEFAULTS(function)) {
    PyObject *key, *value;
    Py_ssize_t position = 0;
    while (PyDict_Next(keywords, &position, &key, &value)) {
      state.push_back(key);
      state.push_back(value);
    }
  }
}

/// Whether the function's code or defaults have changed.
bool Launcher::hasChanged() const {
  llvm::SmallVector<PyObject *, 8> now;
  stateOf(function.ptr(), now);
  return !llvm::equal(now, state, [](PyObject *a, const nb::object &b) { return a == b.ptr(); });
}

void Launcher::readParams() {
  llvm::SmallVector<PyObject *, 8> now;
  stateOf(function.ptr(), now);
  state.clear();
  for (PyObject *object : now)
    state.push_back(nb::borrow(object));
  params.clear();
  index.clear();
  apart.clear();
  ++generation;
  nb::list list = nb::cast<nb::list>(owner.attr("parameters")());
  for (nb::handle entry : list) {
    nb::tuple fields = nb::cast<nb::tuple>(entry);
    Param param;
    param.name = nb::cast<std::string>(fields[0]);
    param.pythonName = fields[0];
    if (nb::cast<bool>(fields[1]))
      param.defaultValue = fields[2];
    param.isConstexpr = nb::cast<bool>(fields[3]);
    param.isConst = nb::cast<bool>(fields[4]);
    param.specialize = nb::cast<bool>(fields[5]);
    param.specializeAlignment = nb::cast<bool>(fields[6]);
    param.annotation = nb::cast<std::string>(fields[7]);
    param.isVariadic = nb::cast<bool>(fields[8]);
    index[fields[0]] = params.size();
    params.push_back(std::move(param));
  }
}

/// The number that a launch names; 0 for None, which names none.
static int64_t readOption(const std::string &kernel, const char *option, nb::handle value) {
  if (value.is_none())
    return 0;
  bool isInteger = PyLong_Check(value.ptr()) && !PyBool_Check(value.ptr());
  int64_t number = isInteger ? PyLong_AsLongLong(value.ptr()) : 0;
  PyErr_Clear();
  bool isWarps = std::strcmp(option, "num_warps") == 0;
  bool fits = isWarps ? number >= 1 && number <= 32 && (number & (number - 1)) == 0
                      : number >= 1 && number <= 16;
  if (!fits)
    raiseAs(isInteger ? "LaunchValueError" : "LaunchTypeError",
            kernel + ": " + option + " must be " +
                (isWarps ? "1, 2, 4, 8, 16 or 32" : "an integer from 1 to 16") + ", not " +
                shown(value.ptr()));
  return number;
}

static int8_t readChoice(const std::string &kernel, const std::string &option, PyObject *value) {
  if (value == Py_None)
    return -1;
  if (!PyBool_Check(value))
    raiseAs("LaunchTypeError",
            kernel + ": " + option + " must be True, False or None, not " + shown(value));
  return value == Py_True;
}

/// Whether `knobs.runtime.debug` turns assertions on: what a program has set, or TRITON_DEBUG.
static bool isDebugging() {
  if (launchHooks.debug >= 0)
    return launchHooks.debug;
  const char *text = std::getenv("TRITON_DEBUG");
  if (!text)
    return false;
  std::string lower = llvm::StringRef(text).lower();
  return lower == "1" || lower == "true" || lower == "on" || lower == "yes" || lower == "y";
}

void Launcher::bind(nb::args args, nb::kwargs kwargs, std::vector<Bound> &bound,
                    LaunchKeywords &options) {
  auto listParams = [&] {
    std::string text;
    for (const Param &param : params)
      text += (text.empty() ? "" : ", ") + param.name;
    return "its parameters are " + text;
  };
  if (args.size() > params.size())
    raiseAs("LaunchTypeError", name + " takes " + std::to_string(params.size()) +
                                   " arguments, but " + std::to_string(args.size()) +
                                   " were given; " + listParams());
  for (size_t i = 0; i < args.size(); ++i)
    bound[i].object = PyTuple_GET_ITEM(args.ptr(), static_cast<Py_ssize_t>(i));
  PyObject *key, *value;
  Py_ssize_t position = 0;
  while (PyDict_Next(kwargs.ptr(), &position, &key, &value)) {
    PyObject *found = PyDict_GetItem(index.ptr(), key);
    if (found) {
      Bound &target = bound[PyLong_AsSize_t(found)];
      if (target.object)
        raiseAs("LaunchTypeError", name + ": argument " +
                                       std::string(nb::str(nb::handle(key)).c_str()) +
                                       " is given twice");
      target.object = value;
      continue;
    }
    std::string option = nb::str(nb::handle(key)).c_str();
    if (option == "num_warps")
      options.numWarps = readOption(name, option.c_str(), value);
    else if (option == "num_stages")
      options.numStages = readOption(name, option.c_str(), value);
    else if (option == "debug")
      options.debug = readChoice(name, option, value);
    else if (option == "sanitize_overflow")
      options.sanitizeOverflow = readChoice(name, option, value);
    else if (nb::cast<bool>(owner.attr("takes_option")(nb::handle(key), nb::handle(value)))) {
      if (!options.others.is_valid())
        options.others = nb::dict();
      options.others[nb::handle(key)] = nb::handle(value);
    } else
      raiseAs("LaunchTypeError", name + " has no parameter " + option + "; " + listParams() +
                                     ", and num_warps, num_stages, debug and sanitize_overflow are "
                                     "launch options");
  }
  if (isDebugging())
    options.debug = true;
  for (size_t i = 0; i < params.size(); ++i)
    if (!bound[i].object) {
      if (!params[i].defaultValue.is_valid())
        raiseAs("LaunchTypeError",
                name + ": argument " + params[i].name + " is missing; " + listParams());
      bound[i].object = params[i].defaultValue.ptr();
    }
}

/// What a kernel is told of an integer: that it is a multiple of 16, as Triton has it, or of 8 or
/// of 4; 0 if of none. Rows of 8 numbers of 2 bytes, or of 4 of 4 bytes, begin at 16 bytes.
static int8_t knownDivisor(uint64_t bits) {
  return (bits & 15) == 0 ? 16 : (bits & 7) == 0 ? 8 : (bits & 3) == 0 ? 4 : 0;
}

/// Whether an integer fits a type such as "i32" or "u8".
static bool fitsInteger(const std::string &type, const Integer &integer) {
  unsigned width = static_cast<unsigned>(std::atoi(type.c_str() + 1));
  if (type[0] == 'u')
    return integer.value >= 0 && (width == 64 || integer.bits >> width == 0);
  if (integer.needsUnsigned)
    return false;
  if (width == 1)
    return integer.value == 0 || integer.value == 1;
  int64_t limit = width == 64 ? INT64_MAX : (INT64_C(1) << (width - 1)) - 1;
  return integer.value <= limit && integer.value >= -limit - 1;
}

void Launcher::examine(unsigned i, Bound &bound, bool doRun, llvm::SmallVectorImpl<char> &key,
                       std::vector<PyObject *> &objects) {
  const Param &param = params[i];
  PyObject *plain = unwrapped(bound.object);
  bool wasConstexpr = plain != bound.object;
  bound.object = plain;
  bound.kind = classify(bound.object);
  if (param.isConstexpr || wasConstexpr) {
    if (bound.kind == ArgumentKind::Array || bound.kind == ArgumentKind::Tensor ||
        bound.kind == ArgumentKind::Mlx || bound.kind == ArgumentKind::Foreign ||
        bound.kind == ArgumentKind::Pointer || bound.kind == ArgumentKind::Exported)
      typeProblem(i, "is a constexpr: it takes a number, a string, a dtype or a function that is "
                     "known before the launch, not an array");
    bound.isConstant = true;
    bool isNumber = bound.kind == ArgumentKind::Bool || bound.kind == ArgumentKind::Integer ||
                    bound.kind == ArgumentKind::Float;
    if (isNumber && !PyBool_Check(bound.object) && !PyLong_Check(bound.object) &&
        !PyFloat_CheckExact(bound.object) && PyObject_HasAttrString(bound.object, "item")) {
      // A NumPy scalar is the number that it holds.
      bound.owned = nb::handle(bound.object).attr("item")();
      bound.object = bound.owned.ptr();
    }
    key.push_back('C');
    appendConstant(bound.object, key, objects);
    return;
  }
  const std::string &annotation = param.annotation;
  bool wantsPointer = !annotation.empty() && annotation[0] == '*';
  bool wantsFloat = !annotation.empty() && (annotation[0] == 'f' || annotation[0] == 'b');
  bool wantsInteger = !annotation.empty() && !wantsPointer && !wantsFloat;
  bool isNumber = bound.kind == ArgumentKind::Bool || bound.kind == ArgumentKind::Integer ||
                  bound.kind == ArgumentKind::Float;
  if (isNumber && wantsPointer)
    typeProblem(i, "is annotated as a pointer (" + annotation + "), so it takes an array, not " +
                       shown(bound.object));
  switch (bound.kind) {
  case ArgumentKind::None:
  case ArgumentKind::Static:
    bound.isConstant = true;
    key.push_back('C');
    appendConstant(bound.object, key, objects);
    return;
  case ArgumentKind::Bool:
  case ArgumentKind::Integer: {
    std::optional<Integer> integer = readInteger(bound.object);
    if (!integer)
      raiseAs("LaunchOverflowError",
              name + ": argument " + param.name + " is " + shown(bound.object) +
                  ", which does not fit in any type: the largest are int64 and uint64");
    bound.integer = *integer;
    if (wantsFloat) {
      bound.kind = ArgumentKind::Float;
      bound.real = integer->needsUnsigned ? static_cast<double>(integer->bits)
                                          : static_cast<double>(integer->value);
      bound.type = annotation.c_str();
      key.push_back('F');
      return;
    }
    if (wantsInteger) {
      bound.type = annotation.c_str();
      if (!fitsInteger(annotation, *integer))
        valueProblem(i,
                     "is " + shown(bound.object) + ", which does not fit its type " + annotation);
    } else if (bound.kind == ArgumentKind::Bool) {
      bound.type = "i1";
      key.push_back('b');
      return;
    } else {
      bound.type = integer->needsUnsigned                                       ? "u64"
                   : integer->value >= INT32_MIN && integer->value <= INT32_MAX ? "i32"
                                                                                : "i64";
      if (param.specialize && integer->value == 1) {
        static PyObject *one = PyLong_FromLong(1);
        bound.object = one;
        bound.isConstant = true;
        key.push_back('1');
        return;
      }
    }
    if (param.specializeAlignment && annotation != "i1")
      bound.divisibility = knownDivisor(integer->bits);
    key.push_back(bound.type[0]);
    key.push_back(bound.type[1]);
    key.push_back(static_cast<char>(bound.divisibility));
    return;
  }
  case ArgumentKind::Float: {
    bound.real = PyFloat_AsDouble(bound.object);
    if (bound.real == -1.0 && PyErr_Occurred())
      throw nb::python_error();
    if (wantsInteger)
      typeProblem(i, "is annotated as " + annotation + ", so it takes an integer, not " +
                         shown(bound.object));
    bound.type = wantsFloat ? annotation.c_str() : "fp32";
    key.push_back('F');
    return;
  }
  case ArgumentKind::Mock: {
    // Optimistically aligned; nothing will read it.
    bound.array = std::make_unique<ArrayInfo>();
    bound.array->dtype = knownDtype(nb::cast<MockArray &>(nb::handle(bound.object)).dtype.c_str());
    if (!bound.array->dtype)
      typeProblem(i, "is not a dtype that a kernel's arrays can have");
    bound.type = bound.array->dtype;
    bound.divisibility = param.specializeAlignment ? 16 : 0;
    key.push_back('p');
    key.append(reinterpret_cast<const char *>(&bound.type),
               reinterpret_cast<const char *>(&bound.type) + sizeof bound.type);
    key.push_back(bound.divisibility ? 'D' : ' ');
    return;
  }
  case ArgumentKind::Pointer:
  case ArgumentKind::Exported:
  case ArgumentKind::Array:
  case ArgumentKind::Tensor:
  case ArgumentKind::Mlx:
  case ArgumentKind::Foreign: {
    if (bound.kind == ArgumentKind::Exported) {
      bound.owned =
          nb::module_::import_("triton_metal.arguments").attr("as_array")(nb::handle(bound.object));
      bound.object = bound.owned.ptr();
      bound.kind = ArgumentKind::Array;
    }
    if (wantsInteger || wantsFloat)
      typeProblem(i, "is annotated as " + annotation + ", so it takes a number, not an array");
    bound.array = std::make_unique<ArrayInfo>();
    ArrayProblem problem;
    if (!readArray(bound.object, bound.kind, *bound.array, problem)) {
      if (problem.isType)
        typeProblem(i, problem.message);
      valueProblem(i, problem.message);
    }
    // A wrapper is the tensor in it, with another dtype.
    if (bound.kind == ArgumentKind::Pointer)
      if (nb::object inner = wrappedTensor(bound.object); inner.is_valid()) {
        bound.owned = std::move(inner);
        bound.object = bound.owned.ptr();
        bound.kind = ArgumentKind::Tensor;
      }
    // No framework implements launch_options.
    if (bound.array->device == DeviceId::Host && settingsStack().empty())
      bound.array->device = standInFor();
    const char *dtype = bound.array->dtype;
    // An MLX array has no address yet, so its alignment is unknown. Launches on MLX's GPU streams
    // copy the few unaligned arrays to an aligned address.
    bool isPlaced = bound.array->data && bound.array->device != DeviceId::Mlx;
    bool aligned = param.specializeAlignment &&
                   (isPlaced ? (reinterpret_cast<uintptr_t>(bound.array->data) & 15) == 0
                    : bound.kind == ArgumentKind::Mlx ? doRun && mlxAlignment()
                                                      : bound.array->beginsAt16);
    // MLX's own kernels test it, because only they see the address.
    bool isTested = !aligned && param.specializeAlignment && bound.array->device == DeviceId::Mlx &&
                    (bound.kind != ArgumentKind::Mlx || !doRun);
    bound.divisibility = aligned ? 16 : isTested ? -16 : 0;
    bound.type = dtype;
    key.push_back('p');
    key.append(reinterpret_cast<const char *>(&dtype),
               reinterpret_cast<const char *>(&dtype) + sizeof dtype);
    key.push_back(aligned ? 'D' : isTested ? 'T' : ' ');
    return;
  }
  case ArgumentKind::Other:
    // What consists of several arguments is launched in another way.
    if (hasParts(bound.object))
      return;
    typeProblem(i, "is " + shown(bound.object) + " (" + Py_TYPE(bound.object)->tp_name +
                       "), which is not an array; a kernel takes arrays, numbers and None, and any "
                       "value for a constexpr" +
                       (PyList_Check(bound.object) ? ": make the list an array, or a tuple" : ""));
  }
}

std::shared_ptr<Plan> Launcher::plan(llvm::StringRef key, const std::vector<PyObject *> &objects,
                                     const std::vector<Bound> &bound, const LaunchKeywords &options,
                                     const std::vector<Sharing> &sharing, DeviceId device,
                                     bool doRun) {
  Plans &candidates = plans[key];
  // Reading again may run Python, which may launch this kernel.
  for (size_t i = 0; i < candidates.size(); ++i) {
    std::shared_ptr<Plan> candidate = candidates[i];
    if (candidate->reads.hold(objects, candidate->objects))
      return candidate;
  }

  nb::list arguments;
  for (const Bound &argument : bound) {
    if (argument.isConstant)
      arguments.append(nb::make_tuple("constexpr", nb::handle(argument.object), 0));
    else
      arguments.append(nb::make_tuple(argument.array ? "array" : "scalar", argument.type,
                                      static_cast<int>(argument.divisibility)));
  }
  nb::list shared;
  for (const Sharing &array : sharing)
    shared.append(nb::make_tuple(int(array.number), int(array.sameAs)));
  nb::list constants;
  for (PyObject *object : objects)
    constants.append(nb::handle(object));
  nb::list reads;
  auto fresh = std::make_shared<Plan>();
  auto choice = [](int8_t given) {
    return given < 0 ? nb::none() : nb::object(nb::bool_(given != 0));
  };
  try {
    RunsPython runsPython; // within those that hold objects
    fresh->compiled = owner.attr("compile")(
        arguments, options.numWarps, options.numStages, deviceEntry(device).name, shared, constants,
        reads, choice(options.debug), choice(options.sanitizeOverflow),
        options.others.is_valid() ? options.others : nb::dict(), !doRun);
  } catch (nb::python_error &error) {
    if (nb::cast<bool>(owner.attr("shows_frames_of")(error.value())))
      throw;
    // The traceback begins anew, at the launch.
    nb::object value = nb::borrow(error.value());
    PyException_SetTraceback(value.ptr(), Py_None);
    PyErr_SetObject(reinterpret_cast<PyObject *>(Py_TYPE(value.ptr())), value.ptr());
    throw nb::python_error();
  }
  // A hook may have declined.
  if (fresh->compiled.is_none())
    return nullptr;
  fresh->reads = Reads(reads[0], reads[1], nb::cast<unsigned>(reads[2]), nb::cast<bool>(reads[3]));
  fresh->kernel = nb::cast<NativeKernel &>(fresh->compiled.attr("native")).kernel;
  for (PyObject *object : objects)
    fresh->objects.push_back(nb::borrow(object));
  for (const runtime::Argument &argument : fresh->kernel->getMetadata().arguments) {
    if (!argument.messageRole.empty())
      continue;
    PyObject *found = PyDict_GetItemString(index.ptr(), argument.name.c_str());
    if (!found)
      raiseAs("LaunchTypeError", name + ": the compiled kernel has an argument " + argument.name +
                                     " that the function does not have");
    fresh->steps.push_back({static_cast<unsigned>(PyLong_AsSize_t(found)), argument.slot,
                            argument.words, argument.isBuffer, argument.reads || argument.atomic,
                            argument.writes || argument.atomic, argument.kind});
  }
  // Compiling may have launched other kernels, or this one: look the place up again.
  Plans &place = plans[key];
  if (!fresh->reads.isVolatile) {
    if (place.size() == maxPlans)
      place.pop_back();
    place.insert(place.begin(), fresh);
  }
  return fresh;
}

nb::object Launcher::launch(nb::handle grid, nb::args args, nb::kwargs kwargs, bool doRun) {
  RunsPython runsPython;
  if (hasChanged())
    readParams();
  if (PyList_GET_SIZE(before.ptr()))
    owner.attr("call_before")(args, kwargs);
  if (llvm::any_of(params, [](const Param &param) { return param.isVariadic; }))
    return owner.attr("launch_parts")(grid, args, kwargs, doRun);
  std::vector<Bound> bound(params.size());
  LaunchKeywords options;
  bind(args, kwargs, bound, options);
  for (auto [param, argument] : llvm::zip_equal(params, bound))
    if (!param.isConstexpr && PyTuple_Check(argument.object))
      return launchApart(grid, args, kwargs, bound, doRun);
  llvm::SmallString<256> key;
  std::vector<PyObject *> objects;
  std::vector<const ArrayInfo *> arrays(params.size());
  for (unsigned i = 0; i < params.size(); ++i) {
    examine(i, bound[i], doRun, key, objects);
    arrays[i] = bound[i].array.get();
  }
  if (llvm::any_of(bound, [](const Bound &argument) {
        return argument.kind == ArgumentKind::Other && !argument.isConstant;
      }))
    return owner.attr("launch_parts")(grid, args, kwargs, doRun);
  key.push_back(static_cast<char>(options.numWarps));
  key.push_back(static_cast<char>(options.numStages));
  key.push_back(static_cast<char>(3 * options.debug + options.sanitizeOverflow));
  if (options.others.is_valid())
    key += nb::repr(options.others).c_str();
  const DeviceId *arraysOn = deviceOfArrays(bound, doRun);
  DeviceId own = arraysOn ? *arraysOn : DeviceId::Host;
  DeviceId device = asksForDevice() ? chooseDevice(name, arraysOn) : own;
  // A kernel depends on the device and the configuration.
  key.push_back(static_cast<char>(device));
  uint32_t configuration = configurationNumber();
  for (uint32_t number : {configuration, generation})
    key.append(reinterpret_cast<const char *>(&number),
               reinterpret_cast<const char *>(&number) + sizeof number);
  // Kernels on arrays that overlap keep the order of what they read and write.
  std::vector<Sharing> sharing = findSharing(arrays);
  for (const Sharing &array : sharing) {
    key.push_back(static_cast<char>(array.number));
    key.push_back(array.sameAs);
  }
  // The launcher may drop the plan while the kernel runs.
  std::array<uint32_t, 3> sizes{};
  if (doRun)
    sizes = readGrid(grid, bound);
  std::shared_ptr<Plan> found = plan(key, objects, bound, options, sharing, device, doRun);
  if (!found)
    return nb::none();
  if (!doRun)
    return found->compiled;
  checkSizes(bound, deviceEntry(device));
  checkGrid(found->kernel->getMetadata(), sizes);
  bool isFirst = !found->isLoaded;
  if (isFirst) {
    found->compiled.attr("_init_handles")();
    found->isLoaded = true;
  }
  bool isHooked = launchHooks.any();
  nb::object entered;
  if (isHooked) {
    nb::list values;
    for (const Bound &argument : bound)
      values.append(nb::handle(argument.object));
    entered = owner.attr("enter_launch")(found->compiled,
                                         nb::make_tuple(sizes[0], sizes[1], sizes[2]), values);
  }
  // Without programs there is nothing to do.
  if (!llvm::is_contained(sizes, 0u)) {
    int64_t begin = isProfiling ? profileClock() : 0;
    if (own == DeviceId::Host && device == own)
      run(*found, sizes, bound);
    else
      runOn(device, own, *found, sizes, bound);
    if (begin && isProfiling)
      recordRun(*found, sizes, bound, device, begin, isFirst);
  }
  if (isHooked)
    owner.attr("exit_launch")(entered);
  return found->compiled;
}

void Launcher::clear() {
  // What is destroyed may ask for the launcher again, so it has let go of it before.
  auto oldPlans = std::exchange(plans, {});
  auto oldApart = std::exchange(apart, {});
  auto oldState = std::exchange(state, {});
  auto oldParams = std::exchange(params, {});
  nb::object objects[] = {std::move(owner), std::move(function), std::move(before),
                          nb::object(std::exchange(index, nb::dict()))};
}

static int traverseLauncher(PyObject *self, visitproc visit, void *arg) {
  // From Python 3.9 on, objects hold their type.
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self))
    return 0;
  int result = 0;
  nb::inst_ptr<Launcher>(self)->forEachObject([&](const nb::object &object) {
    if (!result && object.is_valid())
      result = visit(object.ptr(), arg);
  });
  return result;
}

static int clearLauncher(PyObject *self) {
  if (nb::inst_ready(self))
    nb::inst_ptr<Launcher>(self)->clear();
  return 0;
}

static PyType_Slot launcherSlots[] = {
    {Py_tp_traverse, reinterpret_cast<void *>(traverseLauncher)},
    {Py_tp_clear, reinterpret_cast<void *>(clearLauncher)},
    {0, nullptr},
};

void bindLauncher(nb::module_ &module) {
  bindKernel(module);
  nb::class_<Launcher>(module, "Launcher", nb::type_slots(launcherSlots))
      .def(nb::init<std::string, nb::object, nb::object>())
      .def(
          "at",
          [](nb::handle self, nb::object grid) {
            return GridLaunch{&nb::cast<Launcher &>(self), nb::borrow(self), std::move(grid)};
          },
          nb::arg("grid").none())
      .def("forget", &Launcher::forget, "Compiles all kernels again when they are needed.")
      .def("warmup", [](Launcher &self, nb::args args, nb::kwargs kwargs) {
        return self.launch(nb::none(), args, kwargs, false);
      });
  nb::class_<GridLaunch>(module, "GridLaunch")
      .def("__call__", [](GridLaunch &self, nb::args args, nb::kwargs kwargs) {
        return self.launcher->launch(self.grid, args, kwargs, true);
      });

  module.def(
      "push_launch_options",
      [](uint32_t checks, uint64_t maxSteps, std::optional<uint64_t> portable, bool count,
         std::optional<uint64_t> schedule, nb::object sink) {
        runtime::LaunchOptions options;
        options.checks = checks;
        options.maxSteps = maxSteps;
        options.portable = portable.has_value();
        options.portableSeed = portable.value_or(0);
        options.count = count;
        options.scheduleSeed = schedule;
        settingsStack().push_back({options, std::move(sink)});
      },
      nb::arg("checks"), nb::arg("max_steps"), nb::arg("portable").none(), nb::arg("count"),
      nb::arg("schedule").none(), nb::arg("sink"));
  nb::class_<MockArray>(module, "MockArray", "Stands for an array while a kernel is compiled only.")
      .def(nb::init<std::string>());
  module.def("configure_device", [](const std::filesystem::path &cacheDirectory) {
    if (llvm::Error error = runtime::configureHostDevice(cacheDirectory.string()))
      raiseAs("CacheError", llvm::toString(std::move(error)));
  });
  module.def(
      "set_launch_hooks",
      [](nb::list enter, nb::list exit, nb::object debug) {
        launchHooks.debug = debug.is_none() ? -1 : PyObject_IsTrue(debug.ptr()) == 1;
        // The old lists may be in use in another thread's launch; they stay.
        launchHooks.enter = enter.release().ptr();
        launchHooks.exit = exit.release().ptr();
      },
      nb::arg("enter"), nb::arg("exit"), nb::arg("debug").none(),
      "The lists of functions that are called before and after launches, and whether kernels have "
      "assertions (None: as TRITON_DEBUG says).");
  module.def("pop_launch_options", [] { settingsStack().pop_back(); });
}

} // namespace triton_metal

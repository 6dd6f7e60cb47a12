// Launches for Python: at once, and by command buffers on queues.
#include "Arguments.h"
#include "Handles.h"

#include "host_device/Trace.h"
#include "llvm/Support/JSON.h"

#include <chrono>

namespace triton_metal {

namespace {

using metal::CommandBuffer;
using metal::CommandQueue;

constexpr const char *queueName = "triton_metal_host.queue",
                     *commandsName = "triton_metal_host.commands",
                     *profileName = "triton_metal_host.profile";

typedef std::shared_ptr<CommandQueue> HeldQueue;

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

/// Reads one to three extents. Returns false with an error set, which begins with the option's
/// name.
bool readExtent(const char *option, PyObject *object, std::array<uint32_t, 3> &extent) {
  extent = {1, 1, 1};
  auto one = [&](PyObject *number, uint32_t &result) {
    Ref index(PyNumber_Index(number));
    if (!index) {
      PyErr_Clear();
      PyErr_Format(PyExc_TypeError, "%s takes one to three whole numbers, not %R", option, object);
      return false;
    }
    long long value = PyLong_AsLongLong(index.get());
    if (value == -1 && PyErr_Occurred())
      PyErr_Clear();
    if (value < 0 || value > UINT32_MAX) {
      PyErr_Format(PyExc_ValueError, "%s: %S is out of range; 0 to 4294967295 is allowed", option,
                   index.get());
      return false;
    }
    result = static_cast<uint32_t>(value);
    return true;
  };
  if (!PyTuple_Check(object) && !PyList_Check(object))
    return one(object, extent[0]);
  Py_ssize_t count = PySequence_Size(object);
  if (count < 1 || count > 3) {
    PyErr_Format(PyExc_ValueError, "%s: %R has %zd extents; one to three are allowed", option,
                 object, count);
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
      if (!readExtent("threads", given[1], dispatch.gridThreads.emplace()))
        return false;
    } else if (!readExtent("threadgroups", given[1], dispatch.threadgroups)) {
      return false;
    }
    if (!readExtent("threads_per_threadgroup", given[3], dispatch.threadsPerThreadgroup))
      return false;
    if (given[4] != Py_None)
      for (Py_ssize_t i = 0, count = PySequence_Size(given[4]); i < count; ++i) {
        Ref item(PySequence_GetItem(given[4], i));
        bool isSet = item && item.get() != Py_None;
        unsigned long bytes = isSet ? PyLong_AsUnsignedLong(item.get()) : Dispatch::noLength;
        if (PyErr_Occurred())
          return false;
        dispatch.threadgroupMemoryLengths.push_back(
            static_cast<uint32_t>(std::min<unsigned long>(bytes, UINT32_MAX)));
      }
    if (given[5] != Py_None) {
      Ref number(PyNumber_Index(given[5]));
      uint64_t seed = number ? PyLong_AsUnsignedLongLong(number.get()) : 0;
      if (PyErr_Occurred()) {
        PyErr_Clear();
        PyErr_Format(number ? PyExc_ValueError : PyExc_TypeError,
                     "seed takes a whole number from 0 to 2^64 - 1, not %R", given[5]);
        return false;
      }
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

/// Reads the positions of the threadgroups to trace, and how many executions of each access to
/// keep. Returns false with an error set.
bool readTrace(PyObject *positions, PyObject *kept, Trace &trace) {
  for (Py_ssize_t i = 0, count = PySequence_Size(positions); i < count; ++i) {
    Ref item(PySequence_GetItem(positions, i));
    TracedThreadgroup group;
    if (!item || !readExtent("trace", item.get(), group.position))
      return false;
    trace.threadgroups.push_back(std::move(group));
  }
  trace.executionsPerSite = PyLong_AsUnsignedLongLong(kept);
  return !PyErr_Occurred();
}

/// The trace as JSON: {"sites": [...], "threadgroups": [...]}.
std::string jsonOf(const Trace &trace) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::json::OStream json(stream);
  // Sites are numbered anew: most of a kernel's have no part in a trace.
  std::map<uint32_t, int64_t> numbers;
  json.object([&] {
    json.attributeArray("sites", [&] {
      for (auto &[site, where] : trace.sites) {
        numbers[site] = static_cast<int64_t>(numbers.size());
        json.object([&] {
          json.attribute("line", where.line);
          json.attribute("column", where.column);
          json.attribute("file", where.file);
          json.attribute("call_line", where.callLine);
          json.attribute("call_column", where.callColumn);
          json.attribute("reads", where.reads);
          json.attribute("is_constant", where.isConstant);
          json.attribute("bytes", where.bytes);
        });
      }
    });
    json.attributeArray("threadgroups", [&] {
      for (const TracedThreadgroup &group : trace.threadgroups)
        json.object([&] {
          json.attributeArray("position", [&] {
            for (uint32_t number : group.position)
              json.value(number);
          });
          json.attributeArray("executions", [&] {
            for (auto &[key, times] : group.executions)
              json.array([&] {
                json.value(numbers[key.first]);
                json.value(key.second);
                json.value(times);
              });
          });
          json.attributeArray("accesses", [&] {
            for (const TracedAccess &access : group.accesses)
              json.array([&] {
                json.value(numbers[access.site]);
                json.value(access.simdgroup);
                json.value(access.buffer);
                json.array([&] {
                  for (unsigned lane = 0; lane != access.offsets.size(); ++lane) {
                    if (access.lanes >> lane & 1)
                      json.value(access.offsets[lane]);
                    else
                      json.value(nullptr);
                  }
                });
              });
          });
        });
    });
  });
  return text;
}

/// launch(queue, pipeline, arguments, grid, in_threads, group, lengths, seed[, trace, kept])
///   -> (seconds, counters or None, profile or None, trace as JSON or None)
PyObject *launch(PyObject *, PyObject *const *given, Py_ssize_t count) {
  if (count != 8 && count != 10) {
    PyErr_SetString(PyExc_TypeError, "launch takes 8 or 10 arguments");
    return nullptr;
  }
  auto *queue = unwrapped<HeldQueue>(given[0], queueName);
  auto *pipeline = queue ? unwrapped<HeldPipeline>(given[1], pipelineName) : nullptr;
  if (!pipeline)
    return nullptr;
  Launch launch;
  if (!launch.read(*pipeline, given + 2))
    return nullptr;
  Trace trace;
  if (count == 10) {
    if (!pipeline->state->options().counters || pipeline->state->options().portable)
      return fail(PyExc_ValueError,
                  "a trace needs a pipeline that counts and is not portable: make "
                  "it with counters=True and without portable=True");
    if (!readTrace(given[8], given[9], trace))
      return nullptr;
    launch.dispatch.trace = &trace;
  }
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
    return time ? PyTuple_Pack(4, time.get(), Py_None, Py_None, Py_None) : nullptr;
  auto report = std::make_unique<metal::ProfileReport>();
  report->add(pipeline->state->function()->library(), profile);
  Ref counted(countersTuple(counters)), held(wrapped(report.release(), profileName));
  Ref traced(count == 10 ? toPython(jsonOf(trace)) : Ref::borrow(Py_None).release());
  return time && counted && held && traced
             ? PyTuple_Pack(4, time.get(), counted.get(), held.get(), traced.get())
             : nullptr;
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
      withLock([&] {
        Ref result(PyObject_CallObject(handler, nullptr));
        if (!result)
          PyErr_WriteUnraisable(handler);
        return bool(result);
      });
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

PyCFunction fast(PyObject *(*function)(PyObject *, PyObject *const *, Py_ssize_t)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

} // namespace

PyMethodDef launchMethods[] = {{"queue", newQueue, METH_NOARGS, nullptr},
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
                               {nullptr, nullptr, 0, nullptr}};

} // namespace triton_metal

// Compiled kernels: as Python holds them, and as a table for other extension modules.
#include "Bindings.h"
#include "Launching.h"
#include "Packing.h"
#include "WithoutLock.h"

#include "llvm/ADT/STLExtras.h"

#include <atomic>
#include <cstring>

namespace triton_metal {

std::vector<Settings> &settingsStack() {
  static thread_local std::vector<Settings> stack;
  return stack;
}

void raiseInterrupt() {
  if (!PyErr_CheckSignals())
    PyErr_SetNone(PyExc_KeyboardInterrupt);
  throw nb::python_error();
}

void raiseLaunchError(const std::string &name, nb::handle compiled, const std::string &message) {
  if (llvm::StringRef(message).starts_with(launchInterrupted))
    raiseInterrupt();
  nb::object error =
      nb::module_::import_("triton_metal.errors").attr("launch_error")(name, compiled, message);
  PyErr_SetObject(error.type().ptr(), error.ptr());
  throw nb::python_error();
}

void watchInterrupts(const HostDeviceTable &table) {
  // A handler of the program's own decides what an interrupt does.
  nb::module_ signals = nb::module_::import_("signal");
  if (signals.attr("getsignal")(signals.attr("SIGINT")).is(signals.attr("default_int_handler")))
    table.stopOnInterrupt();
}

void launchAsSet(const std::string &name, nb::handle compiled,
                 const std::shared_ptr<runtime::Kernel> &kernel, std::array<uint32_t, 3> grid,
                 llvm::MutableArrayRef<BufferBinding> buffers,
                 llvm::MutableArrayRef<uint32_t> scalars) {
  std::vector<Settings> &stack = settingsStack();
  runtime::LaunchOptions options = stack.empty() ? runtime::LaunchOptions() : stack.back().options;
  nb::object sink = stack.empty() ? nb::object() : stack.back().sink;
  Counters counters;
  llvm::Error error = llvm::Error::success();
  // Another thread may drop its owner meanwhile.
  std::shared_ptr<runtime::Kernel> held = kernel;
  {
    WithoutLock unlocked;
    error = held->launch(grid, buffers, scalars, options, options.count ? &counters : nullptr);
  }
  if (error)
    raiseLaunchError(name, compiled, llvm::toString(std::move(error)));
  if (options.count && sink.is_valid()) {
    nb::dict result;
    for (auto &[counter, value] : counters.list())
      result[counter.c_str()] = value;
    sink(compiled, result);
  }
}

namespace {

/// A table with the owner of its texts, and a count of its users.
struct OwnedTable : runtime::KernelTable {
  std::shared_ptr<runtime::Kernel> kernel;
  std::vector<runtime::KernelTableArgument> list;
  mutable std::atomic<size_t> uses{1};
};

const OwnedTable &owned(const runtime::KernelTable *table) {
  return *static_cast<const OwnedTable *>(table);
}

char *textOf(llvm::Error error) {
  if (!error)
    return nullptr;
  return strdup(llvm::toString(std::move(error)).c_str());
}

llvm::Error launchPlainly(const runtime::KernelTable *table, const runtime::KernelLaunch &launch) {
  return owned(table).kernel->launch(
      {launch.grid[0], launch.grid[1], launch.grid[2]}, {launch.buffers, launch.numBuffers},
      {launch.scalars, launch.numScalars}, runtime::LaunchOptions(), nullptr);
}

const runtime::KernelTable *makeTable(const std::shared_ptr<runtime::Kernel> &kernel,
                                      const std::vector<std::string> &aligned) {
  auto result = std::make_unique<OwnedTable>();
  const runtime::Metadata &metadata = kernel->getMetadata();
  result->kernel = kernel;
  for (const runtime::Argument &argument : metadata.arguments)
    result->list.push_back({argument.name.c_str(), argument.slot, argument.isBuffer,
                            argument.isBuffer && (argument.writes || argument.atomic),
                            llvm::is_contained(aligned, argument.name)});
  result->interface = runtime::kernelTableInterface;
  result->retain = [](const runtime::KernelTable *table) {
    owned(table).uses.fetch_add(1, std::memory_order_relaxed);
  };
  result->release = [](const runtime::KernelTable *table) {
    if (owned(table).uses.fetch_sub(1, std::memory_order_acq_rel) == 1)
      delete &owned(table);
  };
  result->name = metadata.name.c_str();
  result->metal = kernel->getMetal().c_str();
  result->metalBytes = kernel->getMetal().size();
  result->threads = metadata.threads;
  result->numBuffers = metadata.numBuffers;
  result->scalarBuffer = metadata.scalarBuffer;
  result->scalarWords = metadata.scalarWords;
  result->arguments = result->list.data();
  result->numArguments = result->list.size();
  result->prepare = [](const runtime::KernelTable *table) {
    return textOf(owned(table).kernel->prepare({}));
  };
  result->launch = [](const runtime::KernelTable *table, const runtime::KernelLaunch *launch) {
    return textOf(launchPlainly(table, *launch));
  };
  result->freeText = [](char *text) { std::free(text); };
  result->hasOptions = [] { return !settingsStack().empty(); };
  result->launchWithOptions = [](const runtime::KernelTable *table, PyObject *compiled,
                                 const runtime::KernelLaunch *launch) {
    try {
      launchAsSet(table->name, compiled, owned(table).kernel,
                  {launch->grid[0], launch->grid[1], launch->grid[2]},
                  {launch->buffers, launch->numBuffers}, {launch->scalars, launch->numScalars});
      return true;
    } catch (nb::python_error &error) {
      error.restore();
      return false;
    }
  };
  return result.release();
}

} // namespace

void bindKernel(nb::module_ &module) {
  module.def(
      "pack_float",
      [](const std::string &type, double value) {
        runtime::Argument argument = runtime::Argument::scalar(type);
        uint32_t words[2] = {};
        runtime::packFloat({words, argument.words}, argument.kind, value);
        return nb::bytes(words, argument.words * sizeof(uint32_t));
      },
      nb::arg("type"), nb::arg("value"),
      "The words of a number in a type of the launch contract, such as \"bf16\".");
  nb::class_<NativeKernel>(module, "Kernel", "A compiled kernel, ready for a device.")
      .def(
          "__init__",
          [](NativeKernel *self, const std::string &metal, const std::string &metadata,
             std::vector<std::string> aligned) {
            llvm::Expected<std::shared_ptr<runtime::Kernel>> kernel =
                runtime::Kernel::create(metal, metadata);
            if (!kernel)
              raiseAs("DeviceError", llvm::toString(kernel.takeError()));
            if (const HostDeviceTable *table = runtime::registeredHostDevice())
              watchInterrupts(*table); // again: another handler may have come
            new (self) NativeKernel(std::move(*kernel));
            self->aligned = std::move(aligned);
          },
          nb::arg("metal"), nb::arg("metadata"), nb::arg("aligned") = std::vector<std::string>())
      .def("prepare",
           [](NativeKernel &self) {
             llvm::Error error = llvm::Error::success();
             {
               WithoutLock unlocked;
               error = self.kernel->prepare({});
             }
             if (error)
               raiseAs("DeviceError", llvm::toString(std::move(error)));
           })
      .def(
          "grid",
          [](NativeKernel &self, nb::handle grid) {
            const runtime::Metadata &metadata = self.kernel->getMetadata();
            std::array<uint32_t, 3> sizes = readGrid(metadata.name, grid);
            checkGrid(metadata, sizes);
            return nb::make_tuple(sizes[0], sizes[1], sizes[2]);
          },
          nb::arg("grid"),
          "The three sizes of a grid that the kernel can be launched over; raises for any other.")
      .def(
          "pack",
          [](NativeKernel &self, nb::sequence arguments) {
            std::vector<uint32_t> words =
                packScalars(self.kernel->getMetadata(), std::move(arguments));
            return nb::bytes(words.data(), words.size() * sizeof(uint32_t));
          },
          nb::arg("arguments"),
          "The words of the scalar buffer, for arguments in the order of the kernel's.")
      .def(
          "launch",
          [](NativeKernel &self, nb::tuple grid, nb::list arguments, nb::bytes words,
             nb::object compiled) {
            const runtime::Metadata &metadata = self.kernel->getMetadata();
            PackedLaunch launch(metadata.name, metadata.arguments.size(), metadata.scalarWords,
                                std::move(grid), arguments, std::move(words));
            checkGrid(metadata, launch.grid);
            BoundArrays bound(metadata, arguments);
            if (!compiled.is_none())
              return launchAsSet(metadata.name, compiled, self.kernel, launch.grid, bound.buffers,
                                 launch.scalars);
            llvm::Error error = llvm::Error::success();
            {
              WithoutLock unlocked;
              error = self.kernel->launch(launch.grid, bound.buffers, launch.scalars, {}, nullptr);
            }
            if (error)
              raiseLaunchError(metadata.name, nb::none(), llvm::toString(std::move(error)));
          },
          nb::arg("grid"), nb::arg("arguments"), nb::arg("scalar_words"),
          nb::arg("compiled") = nb::none(),
          "Runs the kernel on the host device, on arrays that it can read. With `compiled`, the "
          "object that has the kernel's metadata, the launch follows launch_options.")
      .def_prop_ro(
          "table",
          [](NativeKernel &self) {
            if (!self.table)
              self.table = makeTable(self.kernel, self.aligned);
            return nb::capsule(self.table, runtime::kernelTableCapsule);
          },
          "What an extension module launches the kernel through; to be used while the kernel "
          "lives.");
}

} // namespace triton_metal

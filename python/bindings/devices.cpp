// The table of devices that launches look into.
#include "Devices.h"
#include "Arrays.h"
#include "Bindings.h"
#include "Launching.h"

#include <atomic>
#include <cstdlib>
#include <deque>
#include <utility>

namespace triton_metal {

namespace {

/// Python's lock protects it. Entries never move.
std::deque<DeviceEntry> &table() {
  static std::deque<DeviceEntry> entries = [] {
    std::deque<DeviceEntry> result(3);
    for (auto [id, name] : {std::pair(DeviceId::Host, "host"), std::pair(DeviceId::Mlx, "mlx"),
                            std::pair(DeviceId::Mps, "mps")})
      result[static_cast<size_t>(id)].name = name;
    return result;
  }();
  return entries;
}

DeviceEntry *findEntry(const std::string &name) {
  for (DeviceEntry &entry : table())
    if (entry.name == name)
      return &entry;
  return nullptr;
}

/// Replaces an object; None leaves nothing. Returns the previous one.
nb::object exchange(PyObject *&place, nb::object value) {
  nb::object previous = nb::steal(place);
  place = value.is_none() ? nullptr : value.release().ptr();
  return previous.is_valid() ? previous : nb::none();
}

PyObject *choose = nullptr, *elsewhere = nullptr;
thread_local bool threadAsks = false;
thread_local DeviceId standIn = DeviceId::Host;
std::atomic<uint32_t> configuration = 0;
bool alignMlx = false;

} // namespace

DeviceEntry &deviceEntry(DeviceId id) { return table()[static_cast<size_t>(id)]; }

DeviceId deviceNamed(const std::string &name) {
  std::string known;
  for (size_t i = 0; i < table().size(); ++i) {
    if (table()[i].name == name)
      return static_cast<DeviceId>(i);
    known += (i ? ", " : "") + table()[i].name;
  }
  raiseAs("DeviceError", "there is no device '" + name + "'; the devices are " + known);
}

bool isArrayType(PyTypeObject *type, DeviceId &id) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type->tp_mro); ++i) {
    nb::handle base = PyTuple_GET_ITEM(type->tp_mro, i);
    nb::object name = nb::getattr(base, "__qualname__", nb::none());
    nb::object module = nb::getattr(base, "__module__", nb::none());
    if (!PyUnicode_Check(name.ptr()) || !PyUnicode_Check(module.ptr()))
      continue;
    std::string text = nb::cast<std::string>(module) + "." + nb::cast<std::string>(name);
    for (size_t device = 0; device < table().size(); ++device)
      for (const std::string &known : table()[device].arrayTypes)
        if (known == text) {
          id = static_cast<DeviceId>(device);
          return true;
        }
  }
  return false;
}

bool asksForDevice() {
  if (threadAsks)
    return true;
  const char *named = std::getenv("TRITON_METAL_DEVICE");
  return named && *named;
}

DeviceId chooseDevice(const std::string &kernel, const DeviceId *own) {
  nb::object name = own ? nb::cast(deviceEntry(*own).name) : nb::none();
  return deviceNamed(nb::cast<std::string>(nb::handle(choose)(kernel, name)));
}

nb::object runElsewhere(DeviceId device, DeviceId own, nb::handle kernel, nb::handle grid,
                        nb::handle arguments, nb::handle words) {
  return nb::handle(elsewhere)(deviceEntry(device).name, deviceEntry(own).name, kernel, grid,
                               arguments, words);
}

uint32_t configurationNumber() { return configuration.load(std::memory_order_relaxed); }

DeviceId standInFor() { return standIn; }

bool mlxAlignment() { return alignMlx; }

void bindDevices(nb::module_ &module) {
  module.def(
      "register_device",
      [](const std::string &name, const std::string &array, std::vector<std::string> arrayTypes,
         nb::object route, nb::object describe) {
        DeviceEntry *entry = findEntry(name);
        if (!entry) {
          if (table().size() > UINT8_MAX)
            raiseAs("DeviceError", "there are too many devices");
          entry = &table().emplace_back();
          entry->name = name;
        }
        entry->array = array;
        entry->arrayTypes = std::move(arrayTypes);
        exchange(entry->route, std::move(route));
        exchange(entry->describe, std::move(describe));
        forgetKinds();
      },
      nb::arg("name"), nb::arg("array"), nb::arg("array_types"), nb::arg("route").none(),
      nb::arg("describe").none(), "Adds a device to the table of launches, or changes its entry.");
  module.def(
      "set_route",
      [](const std::string &name, nb::object callable) {
        return exchange(deviceEntry(deviceNamed(name)).route, std::move(callable));
      },
      nb::arg("device"), nb::arg("callable").none(),
      "Has launches on a device's arrays go to callable(kernel, grid, arguments, scalar_words), "
      "and "
      "returns what they\nwent to before. `kernel` is the CompiledKernel, `grid` three integers, "
      "`arguments` what was passed, in the order\nof the kernel's arguments, and `scalar_words` "
      "the "
      "scalar buffer's bytes. None takes the route away.");
  module.def(
      "set_device_hooks",
      [](nb::object chooseHook, nb::object elsewhereHook) {
        exchange(choose, std::move(chooseHook));
        exchange(elsewhere, std::move(elsewhereHook));
      },
      nb::arg("choose"), nb::arg("elsewhere"),
      "Says what launches call where a device is asked for: choose(kernel, own) gives its name, "
      "and\n"
      "elsewhere(device, own, kernel, grid, arguments, scalar_words) runs a launch on another "
      "device's arrays.");
  module.def(
      "ask_for_device", [](bool asks) { threadAsks = asks; },
      "Sets whether this thread chose a device by name.");
  module.def(
      "set_stand_in", [](const std::string &name) { standIn = deviceNamed(name); },
      nb::arg("device"),
      "Has this thread's NumPy arrays and CPU tensors stand for those of a device, so that their "
      "launches\ngo to its route; \"host\" ends that.");
  module.def(
      "set_largest_array",
      [](const std::string &name, std::optional<uint64_t> bytes) {
        deviceEntry(deviceNamed(name)).largestArray = bytes.value_or(UINT64_MAX);
      },
      nb::arg("device"), nb::arg("bytes").none(),
      "Sets how many bytes one array of a device may have; None if this is unknown.");
  module.def(
      "align_mlx_arrays", [](bool align) { return std::exchange(alignMlx, align); },
      nb::arg("align"),
      "Whether launches on MLX arrays are compiled for addresses that are multiples of 16; their "
      "route then\nbrings every array to one. Returns what was.");
  module.def(
      "configuration_changed", [] { ++configuration; },
      "Makes launches compile kernels again after a change of their configuration.");
}

} // namespace triton_metal

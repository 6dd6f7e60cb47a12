// Launches of kernels that print or assert: `triton_metal.messages` reads what they wrote.
#include "Bindings.h"
#include "Launching.h"

#include "llvm/ADT/STLExtras.h"

namespace triton_metal {

static nb::object messagesModule() { return nb::module_::import_("triton_metal.messages"); }

void launchWithMessages(const std::string &name, nb::handle compiled,
                        const std::shared_ptr<runtime::Kernel> &kernel,
                        std::array<uint32_t, 3> grid, llvm::MutableArrayRef<BufferBinding> buffers,
                        llvm::MutableArrayRef<uint32_t> scalars) {
  nb::object module = messagesModule();
  nb::dict sizes = nb::cast<nb::dict>(module.attr("sizes")(compiled));
  // By role; all words are 0 before the launch.
  std::vector<std::pair<std::string, std::vector<uint32_t>>> memory;
  memory.reserve(sizes.size());
  for (const runtime::Argument &argument : kernel->getMetadata().arguments) {
    const std::string &role = argument.messageRole;
    if (role.empty())
      continue;
    if (!argument.isBuffer) {
      scalars[argument.slot] = role == "size" ? nb::cast<uint32_t>(sizes["size"]) : 0;
      continue;
    }
    auto &words = memory.emplace_back(role, nb::cast<size_t>(sizes[role.c_str()])).second;
    buffers[argument.slot] = {words.data(), words.size() * sizeof(uint32_t), /*writable=*/true};
  }
  auto contents = [&] {
    nb::dict result;
    for (auto &[role, words] : memory)
      result[role.c_str()] = nb::bytes(words.data(), words.size() * sizeof(uint32_t));
    return result;
  };
  try {
    launchAsSet(name, compiled, kernel, grid, buffers, scalars);
  } catch (nb::python_error &error) {
    // What failed may be an access that an assertion was to prevent.
    module.attr("report_after")(error.value(), compiled, contents());
    throw;
  }
  module.attr("report")(compiled, contents());
}

void launchWithMessages(nb::handle route, nb::handle compiled, nb::handle grid,
                        nb::handle arguments, nb::handle words) {
  messagesModule().attr("launch")(route, compiled, grid, arguments, words);
}

} // namespace triton_metal

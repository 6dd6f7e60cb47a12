// Launches with tuples among their arguments.
#include "Launcher.h"

#include "llvm/ADT/SmallString.h"

namespace triton_metal {

bool hasParts(PyObject *object) {
  return PyTuple_Check(object) ||
         PyObject_HasAttrString(reinterpret_cast<PyObject *>(Py_TYPE(object)), "__triton_parts__");
}

/// The elements of tuples, at any depth, and their structure. Returns whether nothing else is taken
/// apart.
static bool flatten(PyObject *object, bool isWhole, llvm::SmallVectorImpl<char> &structure,
                    llvm::SmallVectorImpl<PyObject *> &flat) {
  if (isWhole || !PyTuple_Check(object)) {
    if (!isWhole && classify(object) == ArgumentKind::Other && hasParts(object))
      return false;
    structure.push_back('.');
    flat.push_back(object);
    return true;
  }
  PyTypeObject *type = Py_TYPE(object);
  structure.push_back('(');
  structure.append(reinterpret_cast<const char *>(&type),
                   reinterpret_cast<const char *>(&type) + sizeof type);
  for (Py_ssize_t i = 0, size = PyTuple_GET_SIZE(object); i < size; ++i)
    if (!flatten(PyTuple_GET_ITEM(object, i), false, structure, flat))
      return false;
  structure.push_back(')');
  return true;
}

/// A launch with tuples among its arguments. `bound` are the arguments as they are given.
nb::object Launcher::launchApart(nb::handle grid, nb::args args, nb::kwargs kwargs,
                                 const std::vector<Bound> &bound, bool doRun) {
  llvm::SmallString<128> structure;
  llvm::SmallVector<PyObject *, 16> flat;
  for (auto [param, argument] : llvm::zip_equal(params, bound))
    if (!flatten(argument.object, param.isConstexpr, structure, flat))
      return owner.attr("launch_parts")(grid, args, kwargs, doRun);
  auto known = apart.find(structure);
  if (known == apart.end()) {
    nb::list values;
    for (const Bound &argument : bound)
      values.append(nb::handle(argument.object));
    nb::object parts = owner.attr("parts_launcher")(values);
    Launcher &launcher = nb::cast<Launcher &>(parts.attr("native"));
    known = apart.try_emplace(structure, Apart{parts, &launcher}).first;
  }
  // The grid, or the launch, may have the parameters read again.
  Apart elements = known->second;
  nb::object given = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(flat.size())));
  for (auto [i, object] : llvm::enumerate(flat))
    PyTuple_SET_ITEM(given.ptr(), static_cast<Py_ssize_t>(i), Py_NewRef(object));
  nb::dict keywords;
  for (auto [key, value] : kwargs)
    if (!index.contains(key))
      keywords[key] = value;
  nb::object sizes = nb::none();
  if (doRun) {
    std::array<uint32_t, 3> read = readGrid(grid, bound);
    sizes = nb::make_tuple(read[0], read[1], read[2]);
  }
  return elements.launcher->launch(sizes, nb::borrow<nb::args>(given),
                                   nb::borrow<nb::kwargs>(keywords), doRun);
}

} // namespace triton_metal

// Triton IR to read: operations with their operands, results, blocks and regions.
#include "Bindings.h"
#include "LentModule.h"

#include "dialect/tt/TT.h"

#include <mlir/IR/BuiltinAttributes.h>
#include <mlir/IR/Operation.h>

namespace triton_metal {

namespace {

using Owner = std::shared_ptr<LentModule>;

/// A part of a module, which it keeps.
template <typename T> struct Part {
  Owner owner;
  T *part;

  /// What two handles of one part have in common.
  uint64_t id() const { return reinterpret_cast<uint64_t>(part); }
  template <typename U> Part<U> other(U *found) const { return {owner, found}; }
  template <typename U> std::optional<Part<U>> optional(U *found) const {
    if (!found)
      return std::nullopt;
    return other(found);
  }
};

using OperationPart = Part<mlir::Operation>;
using BlockPart = Part<mlir::Block>;
using RegionPart = Part<mlir::Region>;

struct ValuePart {
  Owner owner;
  mlir::Value value;

  uint64_t id() const { return reinterpret_cast<uint64_t>(value.getAsOpaquePointer()); }
  bool isPointer() const {
    return mlir::isa<tt::PtrType, tt::TensorDescType>(mlir::getElementTypeOrSelf(value));
  }
};

/// The element of a range of the module's. Raises IndexError if there is none.
template <typename Range> decltype(auto) at(Range &&range, size_t index) {
  if (index >= range.size())
    throw nb::index_error(
        ("there are " + std::to_string(range.size()) + ", not " + std::to_string(index + 1))
            .c_str());
  return range[index];
}

std::optional<std::string> stringOf(const OperationPart &self, const std::string &name) {
  if (auto found = self.part->getAttrOfType<mlir::StringAttr>(name))
    return found.str();
  return std::nullopt;
}

std::optional<std::string> symbolOf(const OperationPart &self, const std::string &name) {
  if (auto found = self.part->getAttrOfType<mlir::FlatSymbolRefAttr>(name))
    return found.getValue().str();
  return std::nullopt;
}

std::optional<bool> boolOf(const OperationPart &self, const std::string &name) {
  if (auto found = self.part->getAttrOfType<mlir::BoolAttr>(name))
    return found.getValue();
  return std::nullopt;
}

std::optional<int64_t> integerOf(const OperationPart &self, const std::string &name) {
  if (auto found = self.part->getAttrOfType<mlir::IntegerAttr>(name))
    return found.getInt();
  return std::nullopt;
}

void bindOperation(nb::module_ &module) {
  nb::class_<OperationPart>(module, "operation", "An operation of a module.")
      .def("get_name",
           [](const OperationPart &self) { return self.part->getName().getStringRef().str(); })
      .def("get_num_operands",
           [](const OperationPart &self) { return self.part->getNumOperands(); })
      .def("get_operand",
           [](const OperationPart &self, size_t index) {
             return ValuePart{self.owner, at(self.part->getOperands(), index)};
           })
      .def("get_num_results", [](const OperationPart &self) { return self.part->getNumResults(); })
      .def("get_result",
           [](const OperationPart &self, size_t index) {
             return ValuePart{self.owner, at(self.part->getResults(), index)};
           })
      .def("get_num_regions", [](const OperationPart &self) { return self.part->getNumRegions(); })
      .def("get_region",
           [](const OperationPart &self, size_t index) {
             return self.other(&at(self.part->getRegions(), index));
           })
      .def(
          "get_block",
          [](const OperationPart &self) { return self.optional(self.part->getBlock()); },
          "The block that it stands in; None for the module.")
      .def("get_str_attr", stringOf, "A text among its attributes, or None.")
      .def("get_flat_symbol_ref_attr", symbolOf, "A symbol among its attributes, or None.")
      .def("get_bool_attr", boolOf, "A bool among its attributes, or None.")
      .def("get_int_attr", integerOf, "An integer among its attributes, or None.");
}

/// Calls a function with each operation, those of its regions before itself.
void walk(const Owner &self, const nb::callable &visit) {
  std::vector<mlir::Operation *> found;
  self->getOp()->walk([&](mlir::Operation *op) { found.push_back(op); });
  // MLIR's walk cannot pass on an exception of the function's.
  for (mlir::Operation *op : found)
    visit(OperationPart{self, op});
}

} // namespace

void bindOperations(nb::module_ &parent, nb::class_<LentModule> &modules) {
  nb::module_ module = parent.def_submodule("ir", "Triton IR to read.");
  module.attr("module") = modules;
  nb::class_<ValuePart>(module, "value", "An operation's result or a block's argument.")
      .def("id", &ValuePart::id)
      .def("is_pointer", &ValuePart::isPointer,
           "Whether it is a pointer, a tile of pointers or a tensor descriptor.");
  nb::class_<BlockPart>(module, "block", "A block of operations.")
      .def("id", &BlockPart::id)
      .def("get_num_arguments", [](const BlockPart &self) { return self.part->getNumArguments(); })
      .def("get_argument",
           [](const BlockPart &self, size_t index) {
             return ValuePart{self.owner, at(self.part->getArguments(), index)};
           })
      .def("get_parent",
           [](const BlockPart &self) { return self.optional(self.part->getParent()); });
  nb::class_<RegionPart>(module, "region", "The blocks of an operation.")
      .def("id", &RegionPart::id)
      .def("size", [](const RegionPart &self) { return self.part->getBlocks().size(); })
      .def("empty", [](const RegionPart &self) { return self.part->empty(); })
      .def("get_parent_region",
           [](const RegionPart &self) { return self.optional(self.part->getParentRegion()); });
  bindOperation(module);
  modules.def("walk", walk, nb::arg("visit"),
              "Calls a function with each operation, those of its regions before itself.");
}

} // namespace triton_metal

// Accesses to blocks of tensors in memory.
#include "Bindings.h"

#include "language/Blocks.h"

namespace triton_metal {

using namespace language;

namespace {

/// (base, shape, strides, block, padding)
BlockedTensor tensorOf(const nb::tuple &parts) {
  return {nb::cast<Value>(parts[0]), nb::cast<std::vector<Operand>>(parts[1]),
          nb::cast<std::vector<Operand>>(parts[2]), nb::cast<std::vector<int64_t>>(parts[3]),
          nb::cast<std::string>(parts[4])};
}

using Operands = std::vector<Operand>;
using Dims = std::vector<int64_t>;

} // namespace

void bindBlocks(nb::module_ &module) {
  module.def("check_block_pointer", [](const nb::tuple &tensor, size_t offsets, const Dims &order) {
    unwrap(checkBlockPointer(tensorOf(tensor), offsets, order));
  });
  module.def("block_offset", [](Builder &builder, const Operand &offset) {
    return unwrap(blockOffset(builder, offset));
  });
  module.def("make_descriptor", [](Builder &builder, const nb::tuple &tensor, bool roundsToTF32) {
    Descriptor made = unwrap(makeDescriptor(builder, tensorOf(tensor), roundsToTF32));
    return nb::make_tuple(made.handle, made.shape, made.strides);
  });
  module.def("load_descriptor", [](Builder &builder, const Value &desc, const Operands &offsets) {
    return unwrap(loadDescriptor(builder, desc, offsets));
  });
  module.def("store_descriptor",
             [](Builder &builder, const Value &desc, const Operands &offsets,
                const Operand &value) { unwrap(storeDescriptor(builder, desc, offsets, value)); });
  module.def("reduce_descriptor", [](Builder &builder, AtomicOp op, const Value &desc,
                                     const Operands &offsets, const Operand &value) {
    unwrap(reduceDescriptor(builder, op, desc, offsets, value));
  });
  module.def("gather_rows",
             [](Builder &builder, const Value &desc, const Value &rows, const Operand &column) {
               return unwrap(gatherRows(builder, desc, rows, column));
             });
  module.def("scatter_rows",
             [](Builder &builder, const Value &desc, const Value &rows, const Operand &column,
                const Operand &value) { unwrap(scatterRows(builder, desc, rows, column, value)); });
  module.def("load_block", [](Builder &builder, const nb::tuple &tensor, const Operands &offsets,
                              const Dims &checked, const std::string &cache,
                              const std::string &eviction, bool isVolatile) {
    return unwrap(
        loadBlock(builder, tensorOf(tensor), offsets, checked, cache, eviction, isVolatile));
  });
  module.def("store_block", [](Builder &builder, const nb::tuple &tensor, const Operands &offsets,
                               const Dims &checked, const Operand &value, const std::string &cache,
                               const std::string &eviction) {
    unwrap(storeBlock(builder, tensorOf(tensor), offsets, checked, value, cache, eviction));
  });
}

} // namespace triton_metal

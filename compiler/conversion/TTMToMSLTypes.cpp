#include "conversion/TTMToMSL.h"

using namespace mlir;

namespace triton_metal {

/// Address spaces are numbered as in Triton's other targets: 0 is any memory, 1 is device memory,
/// and 4 is memory that a launch only reads. All of them are device memory in Metal. A kernel has
/// no pointers to threadgroup memory.
bool isDeviceSpace(int space) { return space == 0 || space == 1 || space == 4; }

static bool isNumber(Type type) { return msl::ScalarType::get(type); }

TTMToMSLTypes::TTMToMSLTypes(unsigned numSimdgroups) : numSimdgroups(numSimdgroups) {
  // Types that are legal already.
  addConversion([](Type type) -> std::optional<Type> {
    if (isNumber(type) || isa<VectorType, msl::PtrType>(type))
      return type;
    return Type();
  });
  addConversion([](IndexType type) -> std::optional<Type> {
    return IntegerType::get(type.getContext(), 32);
  });
  addConversion([](tt::PtrType type) -> std::optional<Type> {
    if (!isDeviceSpace(type.getAddressSpace()))
      return Type();
    // A pointer in memory is an address.
    Type pointee = type.getPointeeType();
    if (auto inner = dyn_cast<tt::PtrType>(pointee);
        inner && isDeviceSpace(inner.getAddressSpace()))
      pointee = IntegerType::get(type.getContext(), 64);
    return isNumber(pointee) ? msl::PtrType::get(pointee, msl::AddressSpace::Device) : Type();
  });
  addConversion([](ttm::TileType type) -> std::optional<Type> {
    return msl::PtrType::get(type.getElementType(), msl::AddressSpace::Threadgroup);
  });
  addConversion([](RankedTensorType type) -> std::optional<Type> {
    std::optional<LinearLayout> layout = ttm::getLayout(type);
    if (!layout || !isNumber(type.getElementType()))
      return Type();
    return VectorType::get(layout->getNumRegisters(), type.getElementType());
  });
}

} // namespace triton_metal

// Writes a kernel for the runtime that makes an MLX graph of it. The text holds what the IR holds
// and decides nothing: each operation is written by its name, with its attributes.

#include "conversion/GraphProgram.h"

#include "dialect/tt/TT.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace triton_metal {

namespace {

/// The innermost place in a source file that a location names.
FileLineColLoc placeOf(Location loc) {
  if (auto call = dyn_cast<CallSiteLoc>(loc))
    return placeOf(call.getCallee());
  if (auto name = dyn_cast<NameLoc>(loc))
    return placeOf(name.getChildLoc());
  if (auto fused = dyn_cast<FusedLoc>(loc)) {
    for (Location part : fused.getLocations())
      if (FileLineColLoc place = placeOf(part))
        return place;
    return {};
  }
  if (auto opaque = dyn_cast<OpaqueLoc>(loc))
    return placeOf(opaque.getFallbackLocation());
  return dyn_cast<FileLineColLoc>(loc);
}

class Writer {
public:
  explicit Writer(llvm::raw_ostream &os) : json(os) {}

  LogicalResult write(tt::FuncOp func) {
    json.object([&] {
      json.attribute("name", func.getName());
      json.attributeArray("arguments", [&] {
        for (Type type : func.getArgumentTypes())
          writeType(type, func.getLoc());
      });
      json.attributeBegin("body");
      writeBlock(func.getBody().front());
      json.attributeEnd();
      json.attributeArray("files", [&] {
        for (StringAttr file : files)
          json.value(file.getValue());
      });
    });
    return failure(isRefused);
  }

private:
  int numberOf(Value value) {
    return numbers.try_emplace(value, static_cast<int>(numbers.size())).first->second;
  }

  std::string nameOf(Type type, Location loc) {
    if (auto pointer = dyn_cast<tt::PtrType>(type))
      return "*" + nameOf(pointer.getPointeeType(), loc);
    if (type.isIndex())
      return "i64";
    if (auto integer = dyn_cast<IntegerType>(type))
      if (llvm::is_contained({1u, 8u, 16u, 32u, 64u}, integer.getWidth()))
        return "i" + std::to_string(integer.getWidth());
    if (isa<Float16Type, BFloat16Type, Float32Type, Float64Type>(type)) {
      std::string name;
      llvm::raw_string_ostream(name) << type;
      return name;
    }
    if (!isRefused)
      emitError(loc) << "a value of type " << type << " cannot be an MLX array";
    isRefused = true;
    return "";
  }

  /// ["f32", 128, 64]: the element and the sizes of a tile.
  void writeType(Type type, Location loc) {
    json.array([&] {
      auto shaped = dyn_cast<RankedTensorType>(type);
      json.value(nameOf(shaped ? shaped.getElementType() : type, loc));
      if (shaped)
        for (int64_t size : shaped.getShape())
          json.value(size);
    });
  }

  void writeBits(const APInt &bits) { json.value(static_cast<int64_t>(bits.getSExtValue())); }

  /// Numbers are written as the integers that their bits are, so that each float is exact.
  void writeAttribute(Attribute attr) {
    if (auto integer = dyn_cast<IntegerAttr>(attr))
      return writeBits(integer.getValue());
    if (auto number = dyn_cast<FloatAttr>(attr))
      return writeBits(number.getValue().bitcastToAPInt());
    if (auto text = dyn_cast<StringAttr>(attr))
      return json.value(text.getValue());
    if (auto list = dyn_cast<DenseI32ArrayAttr>(attr)) {
      json.array([&] {
        for (int32_t number : list.asArrayRef())
          json.value(number);
      });
      return;
    }
    if (auto dense = dyn_cast<DenseElementsAttr>(attr)) {
      bool isFloat = isa<FloatType>(dense.getElementType());
      json.array([&] {
        auto each = [&](auto &&write) {
          if (dense.isSplat())
            return write(0);
          for (int64_t i = 0; i < dense.getNumElements(); ++i)
            write(i);
        };
        if (isFloat) {
          auto values = dense.getValues<APFloat>();
          each([&](int64_t i) { writeBits(values[i].bitcastToAPInt()); });
        } else {
          auto values = dense.getValues<APInt>();
          each([&](int64_t i) { writeBits(values[i]); });
        }
      });
      return;
    }
    if (isa<UnitAttr>(attr))
      return json.value(true);
    std::string text;
    llvm::raw_string_ostream(text) << attr;
    json.value(text);
  }

  void writeValues(StringRef key, ValueRange values) {
    json.attributeArray(key, [&] {
      for (Value value : values)
        json.value(numberOf(value));
    });
  }

  void writeTypes(StringRef key, ValueRange values, Location loc) {
    json.attributeArray(key, [&] {
      for (Value value : values)
        writeType(value.getType(), loc);
    });
  }

  void writeBlock(Block &block) {
    json.object([&] {
      writeValues("arguments", block.getArguments());
      writeTypes("types", block.getArguments(), block.getParentOp()->getLoc());
      json.attributeArray("operations", [&] {
        for (Operation &op : block)
          writeOperation(op);
      });
    });
  }

  void writeOperation(Operation &op) {
    json.object([&] {
      json.attribute("name", op.getName().getStringRef());
      writeValues("operands", op.getOperands());
      writeValues("results", op.getResults());
      writeTypes("types", op.getResults(), op.getLoc());
      json.attributeObject("attributes", [&] {
        for (NamedAttribute attr : op.getAttrDictionary()) {
          json.attributeBegin(attr.getName().getValue());
          writeAttribute(attr.getValue());
          json.attributeEnd();
        }
      });
      if (FileLineColLoc place = placeOf(op.getLoc()))
        json.attributeArray("place", [&] {
          auto found = llvm::find(files, place.getFilename());
          json.value(static_cast<int64_t>(found - files.begin()));
          if (found == files.end())
            files.push_back(place.getFilename());
          json.value(place.getLine());
          json.value(place.getColumn());
        });
      if (op.getNumRegions() > 0)
        json.attributeArray("regions", [&] {
          for (Region &region : op.getRegions()) {
            if (region.hasOneBlock())
              writeBlock(region.front());
            else
              json.value(nullptr);
          }
        });
    });
  }

  llvm::json::OStream json;
  llvm::DenseMap<Value, int> numbers;
  SmallVector<StringAttr> files;
  bool isRefused = false;
};

} // namespace

FailureOr<std::string> writeGraphProgram(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (tt::FuncOp func : module.getOps<tt::FuncOp>()) {
    if (!func.isPublic())
      continue;
    if (!func.getBody().hasOneBlock()) {
      func.emitError("control flow that is not structured cannot become an MLX graph");
      return failure();
    }
    if (failed(Writer(os).write(func)))
      return failure();
    return text;
  }
  module.emitError("has no public function");
  return failure();
}

} // namespace triton_metal

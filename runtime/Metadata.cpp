#include "runtime/Metadata.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/JSON.h"

#include <algorithm>
#include <cstring>

namespace triton_metal::runtime {

static ScalarKind scalarKind(llvm::StringRef type) {
  return llvm::StringSwitch<ScalarKind>(type)
      .Cases({"f16", "fp16"}, ScalarKind::Float16)
      .Case("bf16", ScalarKind::BFloat16)
      .Cases({"f32", "fp32"}, ScalarKind::Float32)
      .Cases({"f64", "fp64"}, ScalarKind::Float64)
      .Default(ScalarKind::Integer);
}

Argument Argument::scalar(llvm::StringRef type) {
  Argument argument;
  argument.type = type.str();
  argument.kind = scalarKind(type);
  argument.words = type.ends_with("64") ? 2 : 1;
  return argument;
}

llvm::Expected<Metadata> Metadata::parse(llvm::StringRef json) {
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(json);
  if (!value)
    return value.takeError();
  const llvm::json::Object *object = value->getAsObject();
  const llvm::json::Array *arguments = object ? object->getArray("args") : nullptr;
  if (!arguments || !object->getString("name") || !object->getInteger("threads"))
    return llvm::createStringError(
        "launch metadata lacks a name, a number of threads, or arguments");
  Metadata result;
  result.name = object->getString("name")->str();
  result.threads = static_cast<uint32_t>(*object->getInteger("threads"));
  result.threadgroupBytes =
      static_cast<uint32_t>(object->getInteger("threadgroup_bytes").value_or(0));
  result.numWarps = static_cast<uint32_t>(object->getInteger("num_warps").value_or(0));
  result.scalarBuffer = static_cast<int>(object->getInteger("scalar_buffer").value_or(-1));
  for (const llvm::json::Value &entry : *arguments) {
    const llvm::json::Object *fields = entry.getAsObject();
    if (!fields || !fields->getString("name") || !fields->getString("kind") ||
        !fields->getInteger("slot"))
      return llvm::createStringError("launch metadata has an argument without name, kind or slot");
    Argument argument;
    argument.name = fields->getString("name")->str();
    argument.isBuffer = *fields->getString("kind") == "buffer";
    argument.type = fields->getString("type").value_or("").str();
    argument.kind = scalarKind(argument.type);
    argument.slot = static_cast<unsigned>(*fields->getInteger("slot"));
    argument.words = static_cast<unsigned>(fields->getInteger("words").value_or(1));
    argument.reads = fields->getBoolean("reads").value_or(argument.isBuffer);
    argument.writes = fields->getBoolean("writes").value_or(false);
    argument.whollyWritten = fields->getBoolean("wholly_written").value_or(false);
    argument.atomic = fields->getBoolean("atomic").value_or(false);
    argument.messageRole = fields->getString("messages").value_or("").str();
    result.hasMessages |= !argument.messageRole.empty();
    if (argument.isBuffer)
      result.numBuffers = std::max(result.numBuffers, argument.slot + 1);
    else
      result.scalarWords = std::max(result.scalarWords, argument.slot + argument.words);
    result.arguments.push_back(std::move(argument));
  }
  if (const llvm::json::Array *limits = object->getArray("grid_limits"))
    for (const llvm::json::Value &limit : *limits) {
      const llvm::json::Array *numbers = limit.getAsArray();
      if (!numbers || numbers->size() != 4)
        return llvm::createStringError(
            "launch metadata has a limit of the grid that is not four numbers");
      std::array<int64_t, 4> sum;
      for (auto [number, value] : llvm::zip_equal(sum, *numbers))
        number = value.getAsInteger().value_or(0);
      result.gridLimits.push_back(sum);
    }
  if (result.scalarBuffer >= 0)
    result.numBuffers = std::max(result.numBuffers, static_cast<unsigned>(result.scalarBuffer) + 1);
  return result;
}

std::string Metadata::problemOfGrid(std::array<uint32_t, 3> grid) const {
  for (const std::array<int64_t, 4> &limit : gridLimits) {
    __int128 sum = limit[0];
    for (unsigned axis = 0; axis < 3; ++axis)
      sum += static_cast<__int128>(limit[axis + 1]) * (std::max(grid[axis], 1u) - 1);
    if (sum <= std::numeric_limits<int32_t>::max())
      continue;
    std::string text;
    for (unsigned axis = 0; axis < 3; ++axis)
      if (limit[axis + 1]) {
        text += "program_id(" + std::to_string(axis) + ")";
        text += limit[axis + 1] > 1 ? " * " + std::to_string(limit[axis + 1]) + " + " : " + ";
      }
    return "the grid (" + std::to_string(grid[0]) + ", " + std::to_string(grid[1]) + ", " +
           std::to_string(grid[2]) + ") is too large for the kernel's 32-bit indices: " + text +
           std::to_string(limit[0]) +
           " must stay below 2147483648. Compute indices in 64 bits, as " +
           "with tl.program_id(0).to(tl.int64)";
  }
  return "";
}

void packInteger(llvm::MutableArrayRef<uint32_t> words, uint64_t value) {
  words[0] = static_cast<uint32_t>(value);
  if (words.size() > 1)
    words[1] = static_cast<uint32_t>(value >> 32);
}

void packFloat(llvm::MutableArrayRef<uint32_t> words, ScalarKind kind, double value) {
  switch (kind) {
  case ScalarKind::Integer:
    packInteger(words, static_cast<uint64_t>(static_cast<int64_t>(value)));
    return;
  case ScalarKind::Float32: {
    float narrow = static_cast<float>(value);
    std::memcpy(words.data(), &narrow, sizeof narrow);
    return;
  }
  case ScalarKind::Float64: {
    uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    packInteger(words, bits);
    return;
  }
  case ScalarKind::Float16:
  case ScalarKind::BFloat16: {
    llvm::APFloat number(value);
    bool loses = false;
    number.convert(kind == ScalarKind::Float16 ? llvm::APFloat::IEEEhalf()
                                               : llvm::APFloat::BFloat(),
                   llvm::APFloat::rmNearestTiesToEven, &loses);
    words[0] = static_cast<uint32_t>(number.bitcastToAPInt().getZExtValue());
    return;
  }
  }
}

} // namespace triton_metal::runtime

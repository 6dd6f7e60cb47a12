#include "tools/metal-run/Arrays.h"
#include "host_device/metal/Numbers.h"
#include "tools/metal-run/Options.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace llvm;
using triton_metal::metal::Number;
using triton_metal::metal::radixOf;
using triton_metal::metal::ScalarType;

namespace triton_metal {

Expected<std::array<uint32_t, 3>> parseExtent(StringRef text, StringRef option) {
  std::array<uint32_t, 3> extent{1, 1, 1};
  SmallVector<StringRef> parts;
  text.split(parts, ',');
  if (parts.size() > 3)
    return failure("--" + option + " takes one to three numbers, as in 1024 or 64,64");
  for (auto [index, part] : enumerate(parts))
    if (part.trim().getAsInteger(radixOf(part.trim()), extent[index]) || extent[index] == 0)
      return failure("--" + option + " takes positive numbers, and '" + part + "' is none");
  return extent;
}

static Error append(StringRef text, ScalarType type, SmallVectorImpl<char> &bytes) {
  Expected<Number> number = metal::parseNumber(text);
  if (!number)
    return number.takeError();
  return metal::appendNumber(*number, type, bytes);
}

/// The next number of splitmix64.
static uint64_t drawn(uint64_t &state) {
  uint64_t x = state += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

static Error fillRandom(NpyArray &array, ScalarType type, uint64_t seed) {
  SmallVector<char> one;
  for (uint64_t i = 0, n = array.items(); i != n; ++i) {
    uint64_t bits = drawn(seed);
    Number number = double(bits >> 11) * 0x1p-53;
    if (type.kind == ScalarKind::Bool)
      number = bool(bits & 1);
    else if (type.kind == ScalarKind::Unsigned)
      number = type.bits == 64 ? bits : bits >> (64 - type.bits);
    else if (type.kind == ScalarKind::Signed)
      number = static_cast<int64_t>(bits) >> (64 - type.bits);
    one.clear();
    if (Error error = metal::appendNumber(number, type, one))
      return error;
    array.bytes.insert(array.bytes.end(), one.begin(), one.end());
  }
  return Error::success();
}

Expected<NpyArray> makeArray(StringRef text) {
  SmallVector<StringRef> parts;
  text.split(parts, ':');
  StringRef kind = parts[0];
  bool isFresh = parts.size() > 2 &&
                 (kind == "zeros" || kind == "full" || kind == "arange" || kind == "random");
  if (!isFresh)
    return readNpy(text);
  if (parts.size() > (kind == "full" || kind == "random" ? 4u : 3u) ||
      (kind == "full" && parts.size() != 4))
    return failure("'" + text +
                   "' is no array: write zeros:type:shape, full:type:shape:value, "
                   "arange:type:shape or random:type:shape:seed");
  NpyArray array;
  Expected<std::string> dtype = npyType(parts[1]);
  std::optional<ScalarType> type = metal::scalarTypeNamed(parts[1]);
  if (!dtype)
    return dtype.takeError();
  if (!type)
    return failure("'" + parts[1] + "' is no type");
  array.dtype = *dtype;
  SmallVector<StringRef> extents;
  parts[2].split(extents, 'x');
  uint64_t items = 1;
  for (StringRef part : extents) {
    int64_t extent;
    if (part.getAsInteger(10, extent) || extent < 0)
      return failure("'" + parts[2] + "' is no shape: write 1024 or 64x32");
    array.shape.push_back(extent);
    if (extent && items > (uint64_t(1) << 40) / static_cast<uint64_t>(extent))
      return failure("'" + parts[2] + "' is too large a shape");
    items *= static_cast<uint64_t>(extent);
  }
  if (kind == "random") {
    uint64_t seed = 0;
    if (parts.size() == 4 && parts[3].getAsInteger(radixOf(parts[3]), seed))
      return failure("'" + parts[3] + "' is no seed");
    if (Error error = fillRandom(array, *type, seed))
      return std::move(error);
    return array;
  }
  SmallVector<char> one;
  if (Error error = append(kind == "full" ? parts[3] : "0", *type, one))
    return std::move(error);
  for (uint64_t i = 0; i != items; ++i) {
    if (kind == "arange") {
      one.clear();
      if (Error error = metal::appendNumber(i, *type, one))
        return std::move(error);
    }
    array.bytes.insert(array.bytes.end(), one.begin(), one.end());
  }
  return array;
}

Expected<NpyArray> makeScalar(StringRef text, const ParameterInfo &parameter) {
  ScalarType type{parameter.scalarKind, parameter.scalarBits};
  bool isTyped = text.contains(':');
  if (isTyped) {
    StringRef name;
    std::tie(name, text) = text.split(':');
    std::optional<ScalarType> named = metal::scalarTypeNamed(name);
    if (!named)
      return npyType(name).takeError();
    if (type.kind != ScalarKind::None &&
        ((type.kind == ScalarKind::Float) != (named->kind == ScalarKind::Float) ||
         (type.kind == ScalarKind::BFloat) != (named->kind == ScalarKind::BFloat) ||
         type.bits != named->bits))
      return failure("parameter '" + parameter.name + "' is of type " + metal::nameOf(type) +
                     ", and the number is given as " + name +
                     ": leave the type out, or bind bytes with --bytes");
    type = *named;
  }
  if (type.kind == ScalarKind::None)
    return failure("give the number's type, as in uint:5, or use --bytes: the parameter's is '" +
                   parameter.elementType + "'");
  SmallVector<StringRef> parts;
  text.split(parts, ',');
  uint64_t count = isTyped ? parts.size() : parameter.vectorWidth;
  if (!isTyped && count == 1 && parameter.elementSize > type.bytes())
    count = parameter.elementSize / type.bytes();
  if (parts.size() != count)
    return failure("'" + parameter.name + "' takes " + Twine(count) + " number" +
                   (count == 1 ? "" : "s") + " of type " + metal::nameOf(type) + ", and '" + text +
                   "' has " + Twine(parts.size()));
  SmallVector<char> bytes;
  for (StringRef part : parts)
    if (Error error = append(part.trim(), type, bytes))
      return std::move(error);
  if (bytes.size() < parameter.elementSize)
    bytes.resize(parameter.elementSize);
  NpyArray array;
  array.dtype = cantFail(npyType(metal::nameOf(type)));
  array.bytes.assign(bytes.begin(), bytes.end());
  if (array.bytes.size() != array.itemSize())
    array.shape.push_back(static_cast<int64_t>(array.bytes.size() / array.itemSize()));
  return array;
}

Expected<NpyArray> makeBytes(StringRef text) {
  NpyArray array;
  array.dtype = "|u1";
  if (text.consume_front("@")) {
    auto file = MemoryBuffer::getFile(text, /*IsText=*/false, /*RequiresNullTerminator=*/false);
    if (!file)
      return failure("cannot read '" + text + "': " + file.getError().message());
    array.bytes.assign((*file)->getBuffer().bytes_begin(), (*file)->getBuffer().bytes_end());
  } else {
    std::string bytes;
    if (text.size() % 2 || !tryGetFromHex(text, bytes))
      return failure("'" + text + "' is no sequence of bytes: write pairs of hexadecimal digits");
    array.bytes.assign(bytes.begin(), bytes.end());
  }
  array.shape.push_back(static_cast<int64_t>(array.bytes.size()));
  return array;
}

static void printNumber(raw_ostream &out, const NpyArray &array, uint64_t position) {
  uint64_t size = array.itemSize(), bits = 0;
  std::memcpy(&bits, array.bytes.data() + position * size, std::min<uint64_t>(size, 8));
  if (array.dtype[1] == 'f' && size <= 4) {
    APFloat number(size == 2 ? APFloat::IEEEhalf() : APFloat::IEEEsingle(),
                   APInt(static_cast<unsigned>(8 * size), bits));
    SmallString<24> text;
    number.toString(text, size == 2 ? 5 : 8, 5);
    out << text;
  } else if (array.dtype[1] == 'f' && size == 8) {
    double number;
    std::memcpy(&number, &bits, 8);
    out << format("%.17g", number);
  } else if (array.dtype[1] == 'i') {
    out << (static_cast<int64_t>(bits << (64 - 8 * size)) >> (64 - 8 * size));
  } else if (array.dtype[1] == 'b') {
    out << (bits ? "true" : "false");
  } else {
    out << bits;
  }
}

void printArray(raw_ostream &out, StringRef name, const NpyArray &array) {
  uint64_t items = array.bytes.size() / array.itemSize();
  uint64_t row = array.shape.empty() ? 1 : static_cast<uint64_t>(array.shape.back());
  out << name << " =";
  for (uint64_t i = 0; i != items; ++i) {
    out << (row && i && i % row == 0 ? "\n" + std::string(name.size() + 3, ' ') : " ");
    printNumber(out, array, i);
  }
  out << "\n";
}

} // namespace triton_metal

#include "tools/metal-run/Npy.h"
#include "host_device/engine/ReplaceFile.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <filesystem>

using namespace llvm;

namespace triton_metal {

static Error failure(const Twine &message) {
  return createStringError(inconvertibleErrorCode(), message);
}

uint64_t NpyArray::itemSize() const {
  uint64_t size = 0;
  StringRef(dtype).drop_front(2).getAsInteger(10, size);
  return size;
}

uint64_t NpyArray::items() const {
  uint64_t count = 1;
  for (int64_t extent : shape)
    count *= static_cast<uint64_t>(extent);
  return count;
}

/// The text after `'key':` in a header, which is a Python dictionary.
static StringRef headerValue(StringRef header, StringRef key) {
  size_t at = header.find(("'" + key + "':").str());
  return at == StringRef::npos ? StringRef() : header.substr(at + key.size() + 3).ltrim();
}

Expected<NpyArray> readNpy(StringRef path) {
  auto buffer = MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer)
    return failure("cannot read '" + path + "': " + buffer.getError().message());
  StringRef data = (*buffer)->getBuffer();
  if (!data.starts_with("\x93NUMPY") || data.size() < 12)
    return failure("'" + path + "' is no .npy file");
  bool isLong = static_cast<uint8_t>(data[6]) >= 2;
  size_t start = isLong ? 12 : 10;
  size_t length = isLong ? support::endian::read32le(data.data() + 8)
                         : support::endian::read16le(data.data() + 8);
  if (data.size() < start + length)
    return failure("'" + path + "' ends within its header");
  StringRef header = data.substr(start, length);
  StringRef descr = headerValue(header, "descr");
  if (!descr.consume_front("'"))
    return failure("'" + path + "' holds records, of which no buffer can be made");
  NpyArray array;
  array.dtype = descr.take_until([](char c) { return c == '\''; }).str();
  if (array.dtype.starts_with(">"))
    return failure("'" + path + "' is of type '" + array.dtype +
                   "', whose bytes are in another order than Metal's");
  if (array.dtype.size() < 3 || !StringRef("fiubV").contains(array.dtype[1]) || !array.itemSize())
    return failure("'" + path + "' is of type '" + array.dtype +
                   "', which is no type of numbers that Metal has");
  if (headerValue(header, "fortran_order").starts_with("True"))
    return failure("'" + path + "' is in Fortran order; save numpy.ascontiguousarray(a)");
  StringRef shape = headerValue(header, "shape");
  shape.consume_front("(");
  SmallVector<StringRef> extents;
  shape.take_until([](char c) { return c == ')'; }).split(extents, ',', -1, /*KeepEmpty=*/false);
  for (StringRef text : extents) {
    int64_t extent;
    if (text.trim().empty())
      continue;
    if (text.trim().getAsInteger(10, extent) || extent < 0)
      return failure("'" + path + "' has a shape that cannot be read");
    array.shape.push_back(extent);
  }
  StringRef body = data.substr(start + length);
  // A shape of more bytes than 64 bits can count needs the most that they can.
  uint64_t bytes = array.itemSize();
  for (int64_t extent : array.shape)
    bytes = SaturatingMultiply(bytes, static_cast<uint64_t>(extent));
  if (body.size() < bytes)
    return failure("'" + path + "' has " + Twine(body.size()) +
                   " bytes of numbers where its shape needs " + Twine(bytes));
  array.bytes.assign(body.bytes_begin(), body.bytes_begin() + bytes);
  return array;
}

/// Writes a file in one step: what was there stays if the new content cannot be written. A symbolic
/// link stays, and pipes and devices are written to.
static std::error_code writeFile(StringRef path, function_ref<void(raw_ostream &)> write) {
  sys::fs::file_status status;
  std::error_code missing = sys::fs::status(path, status);
  if (!missing && !sys::fs::is_regular_file(status)) {
    std::error_code code;
    raw_fd_ostream out(path, code, sys::fs::OF_None);
    return code ? code : engine::writeTo(out, write);
  }
  SmallString<128> target;
  if (sys::fs::real_path(path, target)) { // there is no file yet
    std::error_code none;
    std::filesystem::path named(path.str());
    std::filesystem::path linked = std::filesystem::read_symlink(named, none);
    target = none ? path.str() : (named.parent_path() / linked).string();
  }
  return engine::replaceFile(target, write);
}

Error writeNpy(StringRef path, const NpyArray &array) {
  std::string header = "{'descr': '" + array.dtype + "', 'fortran_order': False, 'shape': (";
  for (int64_t extent : array.shape)
    header += std::to_string(extent) + (array.shape.size() == 1 ? "," : ", ");
  if (array.shape.size() > 1)
    header.resize(header.size() - 2);
  header += "), }";
  header.append((64 - (10 + header.size() + 1) % 64) % 64, ' ');
  header += '\n';
  char length[2];
  support::endian::write16le(length, static_cast<uint16_t>(header.size()));
  std::error_code code = writeFile(path, [&](raw_ostream &out) {
    out << StringRef("\x93NUMPY\x01\x00", 8) << StringRef(length, 2) << header;
    out.write(reinterpret_cast<const char *>(array.bytes.data()), array.bytes.size());
  });
  return code ? failure("cannot write '" + path + "': " + code.message()) : Error::success();
}

Expected<std::string> npyType(StringRef name) {
  std::string type = StringSwitch<std::string>(name)
                         .Cases({"bool", "b1"}, "|b1")
                         .Cases({"char", "int8", "i1"}, "|i1")
                         .Cases({"uchar", "uint8", "u1"}, "|u1")
                         .Cases({"short", "int16", "i2"}, "<i2")
                         .Cases({"ushort", "uint16", "u2", "bfloat", "bfloat16"}, "<u2")
                         .Cases({"int", "int32", "i4"}, "<i4")
                         .Cases({"uint", "uint32", "u4"}, "<u4")
                         .Cases({"long", "int64", "i8"}, "<i8")
                         .Cases({"ulong", "uint64", "u8"}, "<u8")
                         .Cases({"half", "float16", "f2"}, "<f2")
                         .Cases({"float", "float32", "f4"}, "<f4")
                         .Default("");
  if (type.empty())
    return failure(
        "'" + name +
        "' is no type: give one of bool, char, uchar, short, ushort, int, uint, long, ulong, half, "
        "bfloat, float");
  return type;
}

} // namespace triton_metal

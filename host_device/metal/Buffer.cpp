#include "host_device/metal/Buffer.h"
#include "host_device/Metal.h"
#include <cstring>
#include <sys/mman.h>

using namespace llvm;

namespace triton_metal::metal {

Expected<std::shared_ptr<Buffer>> Buffer::allocate(uint64_t length) {
  if (!length)
    return createStringError("a buffer needs a length of at least 1 byte");
  void *memory = length > PTRDIFF_MAX ? MAP_FAILED
                                      : mmap(nullptr, length, PROT_READ | PROT_WRITE,
                                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return createStringError("there is no memory for a buffer of " + std::to_string(length) +
                             " bytes");
  return wrap(memory, length, /*writable=*/true, [=] { munmap(memory, length); });
}

std::shared_ptr<Buffer> Buffer::wrap(void *contents, uint64_t length, bool writable,
                                     std::function<void()> deallocator) {
  std::shared_ptr<Buffer> buffer(new Buffer);
  buffer->memory = contents;
  buffer->bytes = length;
  buffer->writable = writable;
  buffer->deallocator = std::move(deallocator);
  return buffer;
}

Expected<std::shared_ptr<Buffer>> Device::newBuffer(const void *bytes, uint64_t length) const {
  Expected<std::shared_ptr<Buffer>> buffer = Buffer::allocate(length);
  if (buffer)
    std::memcpy((*buffer)->contents(), bytes, length);
  return buffer;
}

Buffer::~Buffer() {
  if (deallocator)
    deallocator();
}

} // namespace triton_metal::metal

// What a kernel that prints or asserts writes for its launcher: the buffers of messages.
#ifndef TRITON_METAL_DIALECT_TT_MESSAGES_H
#define TRITON_METAL_DIALECT_TT_MESSAGES_H

#include "llvm/ADT/StringRef.h"

#include <cstdint>

namespace triton_metal::tt {

/// An attribute of the module: an array with one dictionary for each print and assertion of the
/// kernel. A record names its site by its place in the array.
inline constexpr llvm::StringLiteral messagesAttrName = "tt.messages";

/// An attribute of an argument that the launcher adds to those of the kernel's function, behind
/// them. It says what the argument is: "failures" and "prints" are buffers of 32-bit words,
/// "origin" is the number that all of their words hold before a launch, and "size" is the number of
/// words that records of prints may take. Counters count from the origin.
inline constexpr llvm::StringLiteral messageRoleAttrName = "tt.message_role";

/// The words of the buffer of failures.
namespace failures {
/// The largest complement of the number of a program whose assertion failed.
inline constexpr int32_t kFailed = 0;
/// The number of records.
inline constexpr int32_t kCount = 1;
/// The records: site, program id (x, y, z), index of the element.
inline constexpr int32_t kFirst = 4;
inline constexpr int32_t kWords = 5;
inline constexpr int32_t kMaxRecords = 64;
} // namespace failures

/// The words of the buffer of prints.
namespace prints {
/// The words that records asked for.
inline constexpr int32_t kUsed = 0;
/// The number of prints that found no room.
inline constexpr int32_t kLost = 1;
/// The records: site, program id (x, y, z), and the words of each operand. Of an operand, the low
/// words of all elements come first, in row-major order, and then the high words.
inline constexpr int32_t kFirst = 4;
inline constexpr int32_t kHeader = 4;
} // namespace prints

} // namespace triton_metal::tt

#endif // TRITON_METAL_DIALECT_TT_MESSAGES_H

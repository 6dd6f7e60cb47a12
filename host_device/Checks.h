// What a launch is checked for at run time, on request. docs/checks.md describes each check.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace triton_metal {

/// The checks of a library. Those that are off leave nothing in the code.
struct Checks {
  /// Accesses outside of their buffer, variable or array, and addresses that are not aligned.
  bool bounds = false;
  /// Accesses of two threads to one place of device or threadgroup memory that nothing orders.
  bool races = false;
  /// Reads of threadgroup memory and of variables that have no value yet.
  bool initialized = false;
  /// Barriers, operations on simdgroup matrices and shuffles that threads reach apart.
  bool divergence = false;
  /// Integer division by zero, shifts by the width or more, conversions that do not fit.
  bool arithmetic = false;
  /// A NaN that comes of numbers.
  bool nans = false;
  /// Buffers of the launch (Dispatch::wholeBuffers) of which a byte has not been written.
  bool outputs = false;
  /// Kernels that do not end (Dispatch::maxSteps).
  bool steps = false;
  /// As `races`, which it implies; two threads that store the same value race, too.
  bool sameValues = false;

  bool operator==(const Checks &) const = default;

  static constexpr uint32_t count = 9;
  /// The names in options, in the order of the bits.
  static constexpr std::string_view names[count] = {"bounds",     "races",      "initialized",
                                                    "divergence", "arithmetic", "nans",
                                                    "outputs",    "steps",      "same-values"};

  constexpr bool Checks::*member(uint32_t bit) const {
    constexpr bool Checks::*members[count] = {
        &Checks::bounds,     &Checks::races,      &Checks::initialized,
        &Checks::divergence, &Checks::arithmetic, &Checks::nans,
        &Checks::outputs,    &Checks::steps,      &Checks::sameValues};
    return members[bit];
  }
  constexpr uint32_t bits() const {
    uint32_t result = 0;
    for (uint32_t bit = 0; bit != count; ++bit)
      result |= uint32_t(this->*member(bit)) << bit;
    return result;
  }
  static constexpr Checks fromBits(uint32_t bits) {
    Checks result;
    for (uint32_t bit = 0; bit != count; ++bit)
      result.*result.member(bit) = bits >> bit & 1;
    return result;
  }
  constexpr bool any() const { return bits(); }
  /// All but those that stop right kernels, too: `nans` where one is meant, and `sameValues`.
  static constexpr Checks all() {
    Checks result = fromBits((1u << count) - 1);
    result.nans = result.sameValues = false;
    return result;
  }

  /// The names, for messages.
  static std::string list() {
    std::string text;
    for (std::string_view name : names)
      text += (text.empty() ? "" : ", ") + std::string(name);
    return text;
  }

  /// Reads "all" or names that commas separate. Returns nothing for another word, which `unknown`
  /// receives.
  static std::optional<Checks> parse(std::string_view text, std::string *unknown = nullptr) {
    Checks result;
    while (!text.empty()) {
      size_t end = text.find(',');
      std::string_view word = text.substr(0, end);
      text = end == text.npos ? std::string_view() : text.substr(end + 1);
      uint32_t found = 0;
      if (word == "all")
        found = all().bits();
      for (uint32_t bit = 0; bit != count; ++bit)
        if (word == names[bit])
          found = 1u << bit;
      if (!found) {
        if (unknown)
          *unknown = word;
        return std::nullopt;
      }
      result = fromBits(result.bits() | found);
    }
    return result;
  }
};

/// The iterations of loops that a SIMD-group may run in a launch with the check `steps`, if the
/// launch does not say.
inline constexpr uint64_t defaultMaxSteps = uint64_t(1) << 26;

} // namespace triton_metal

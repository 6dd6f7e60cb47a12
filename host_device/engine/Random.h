// A small random number generator that gives the same numbers everywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace triton_metal::engine {

class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}
  uint64_t next() {
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
  template <typename Range> void shuffle(Range &range) {
    for (size_t i = range.size(); i > 1; --i)
      std::swap(range[i - 1], range[size_t((unsigned __int128)(next()) * i >> 64)]);
  }

private:
  uint64_t state;
};

} // namespace triton_metal::engine

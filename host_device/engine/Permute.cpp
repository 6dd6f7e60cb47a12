#include "host_device/engine/Permute.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/Constants.h"

using namespace llvm;

namespace triton_metal::engine {

namespace {

/// A vector, and the place that each of its elements comes from; -1 for none.
struct Source {
  Value *value;
  SmallVector<int> content;
};

/// A vector to make, of at most as many elements as a source.
struct Target {
  ArrayRef<int> places;
  Value **result;
};

bool uses(const Target &target, const Source &source) {
  return any_of(target.places,
                [&](int place) { return place >= 0 && is_contained(source.content, place); });
}

unsigned numUsed(const Target &target, ArrayRef<Source> sources) {
  return count_if(sources, [&](const Source &source) { return uses(target, source); });
}

class Permutation {
public:
  Permutation(IRBuilderBase &b, unsigned size) : b(b), size(size) {}

  void make(ArrayRef<Source> all, ArrayRef<Target> targets) {
    SmallVector<Source> sources;
    for (const Source &source : all)
      if (any_of(targets, [&](const Target &target) { return uses(target, source); }))
        sources.push_back(source);
    if (targets.size() == 1)
      makeOne(std::move(sources), targets.front());
    else if (shares(sources, targets)) {
      for (ArrayRef<Target> half : halves(targets))
        make(merged(sources, half), half);
    } else {
      for (const Target &target : targets)
        make(sources, target);
    }
  }

private:
  IRBuilderBase &b;
  unsigned size;

  static std::array<ArrayRef<Target>, 2> halves(ArrayRef<Target> targets) {
    size_t middle = (targets.size() + 1) / 2;
    return {targets.take_front(middle), targets.drop_front(middle)};
  }

  /// The places among two sources that some targets need, in the order of the targets.
  SmallVector<int> needed(const Source &first, const Source *second,
                          ArrayRef<Target> targets) const {
    SmallVector<int> result;
    for (const Target &target : targets)
      for (int place : target.places)
        if (place >= 0 && !is_contained(result, place) &&
            (is_contained(first.content, place) ||
             (second && is_contained(second->content, place))))
          result.push_back(place);
    return result;
  }

  /// Whether it takes fewer shuffles to merge pairs of sources for each half of the targets.
  bool shares(ArrayRef<Source> sources, ArrayRef<Target> targets) const {
    if (sources.size() < 3)
      return false;
    size_t apart = 0, together = 0;
    for (const Target &target : targets)
      apart += std::max(1u, numUsed(target, sources) - 1);
    for (ArrayRef<Target> half : halves(targets)) {
      for (size_t i = 0; i + 1 < sources.size(); i += 2) {
        size_t count = needed(sources[i], &sources[i + 1], half).size();
        if (count > size)
          return false;
        together += count != 0;
      }
      for (const Target &target : half)
        together += std::max(1u, (numUsed(target, sources) + 1) / 2 - 1);
    }
    return together < apart;
  }

  /// One source for each pair of sources, with what some targets need.
  SmallVector<Source> merged(ArrayRef<Source> sources, ArrayRef<Target> targets) {
    SmallVector<Source> result;
    for (size_t i = 0; i + 1 < sources.size(); i += 2) {
      SmallVector<int> content = needed(sources[i], &sources[i + 1], targets);
      content.resize(size, -1);
      Value *value = merge(sources[i], &sources[i + 1], content);
      result.push_back({value, std::move(content)});
    }
    if (sources.size() % 2)
      result.push_back(sources.back());
    return result;
  }

  /// A vector with these places, as far as the sources have them.
  Value *merge(const Source &first, const Source *second, ArrayRef<int> content) {
    SmallVector<int> mask;
    for (int place : content) {
      const int *left = find(first.content, place);
      int from = -1;
      if (place >= 0 && left != first.content.end())
        from = left - first.content.begin();
      else if (place >= 0 && second)
        if (const int *right = find(second->content, place); right != second->content.end())
          from = size + (right - second->content.begin());
      mask.push_back(from);
    }
    return second ? b.CreateShuffleVector(first.value, second->value, mask)
                  : b.CreateShuffleVector(first.value, mask);
  }

  /// Merges pairs until two are left. Elements are in their final places from the first merge on.
  void makeOne(SmallVector<Source> sources, const Target &target) {
    while (sources.size() > 2) {
      SmallVector<Source> next;
      for (size_t i = 0; i + 1 < sources.size(); i += 2) {
        SmallVector<int> content(size, -1);
        for (auto [at, place] : enumerate(target.places))
          if (place >= 0 && (is_contained(sources[i].content, place) ||
                             is_contained(sources[i + 1].content, place)))
            content[at] = place;
        Value *value = merge(sources[i], &sources[i + 1], content);
        next.push_back({value, std::move(content)});
      }
      if (sources.size() % 2)
        next.push_back(std::move(sources.back()));
      sources = std::move(next);
    }
    if (!sources.empty())
      *target.result = merge(sources[0], sources.size() > 1 ? &sources[1] : nullptr, target.places);
  }
};

/// Joins vectors; each but the last has the same length.
Value *join(IRBuilderBase &b, SmallVector<Value *> parts) {
  auto length = [](Value *part) {
    return cast<FixedVectorType>(part->getType())->getNumElements();
  };
  while (parts.size() > 1) {
    SmallVector<Value *> joined;
    for (size_t i = 0; i + 1 < parts.size(); i += 2) {
      unsigned left = length(parts[i]), right = length(parts[i + 1]);
      Value *second = parts[i + 1];
      if (left != right) {
        SmallVector<int> widen(left, -1);
        for (unsigned k = 0; k != right; ++k)
          widen[k] = k;
        second = b.CreateShuffleVector(second, widen);
      }
      SmallVector<int> mask;
      for (unsigned k = 0; k != left + right; ++k)
        mask.push_back(k);
      joined.push_back(b.CreateShuffleVector(parts[i], second, mask));
    }
    if (parts.size() % 2)
      joined.push_back(parts.back());
    parts = std::move(joined);
  }
  return parts.front();
}

} // namespace

SmallVector<Value *> permute(IRBuilderBase &b, ArrayRef<Value *> pieces, unsigned size,
                             ArrayRef<SmallVector<int>> places) {
  SmallVector<Source> sources;
  for (auto [number, piece] : enumerate(pieces)) {
    Source &source = sources.emplace_back(Source{piece, {}});
    for (unsigned i = 0; i != size; ++i)
      source.content.push_back(number * size + i);
  }
  Type *element = pieces[0]->getType()->getScalarType();
  SmallVector<SmallVector<Value *>> parts(places.size());
  SmallVector<Target> targets;
  for (auto [list, made] : zip(places, parts)) {
    made.resize((list.size() + size - 1) / size);
    for (auto [number, part] : enumerate(made)) {
      ArrayRef<int> wanted = ArrayRef(list).drop_front(number * size).take_front(size);
      part = PoisonValue::get(FixedVectorType::get(element, wanted.size()));
      if (any_of(wanted, [](int place) { return place >= 0; }))
        targets.push_back({wanted, &part});
    }
  }
  if (!targets.empty())
    Permutation(b, size).make(sources, targets);
  SmallVector<Value *> results;
  for (SmallVector<Value *> &made : parts)
    results.push_back(join(b, std::move(made)));
  return results;
}

} // namespace triton_metal::engine

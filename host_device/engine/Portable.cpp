#include "host_device/engine/Portable.h"
#include "host_device/engine/BufferContents.h"
#include "host_device/engine/Guard.h"
#include "host_device/engine/Runtime.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <bit>
#include <cstring>

namespace triton_metal::engine {

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

static uint64_t mix(uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}
static uint64_t mix(uint64_t x, uint64_t y) { return mix(x * 0x9e3779b97f4a7c15 + mix(y) + 1); }

/// A site of a vector takes its elements from one word.
static uint64_t repeat(uint64_t bits, unsigned width) {
  for (; width < 64; width *= 2)
    bits |= bits << width;
  return bits;
}

/// A value of one of four kinds: zero; negative or NaN; huge; small.
uint64_t PortableRun::value(const Site &site, unsigned kind, uint64_t hash) const {
  unsigned width = site.bits;
  if (width < 8) // a truth value
    return kind == 0 ? 0 : kind == 1 ? ~uint64_t(0) : hash;
  uint64_t ones = ~uint64_t(0) >> (64 - width), sign = uint64_t(1) << (width - 1);
  unsigned choice = hash >> 60;
  uint64_t bits = 0;
  if (site.isFloat) {
    // The exponent's bits, of a half, a bfloat or a float.
    bool half = width == 16;
    uint64_t exponent = half ? uint64_t(0x7c00) : ones & ~(sign | (ones >> 9));
    uint64_t quiet = exponent | (exponent >> 1 & ~exponent);
    uint64_t one = half ? 0x3c00 : uint64_t(0x3f800000) >> (32 - width);
    switch (kind) {
    case 0:
      break;
    case 1:
      bits = choice < 10 ? quiet | (hash & (quiet & ~exponent) - 1) : sign | exponent;
      break;
    case 2:
      bits = choice < 4 ? exponent : exponent - (one & ~(one - 1)) - (hash % 97);
      break;
    default:
      bits = one + (hash % 1021) + (choice & 1) * sign;
      break;
    }
  } else {
    switch (kind) {
    case 0:
      break;
    case 1:
      bits = choice < 6 ? ones : choice < 8 ? sign : sign | hash;
      break;
    case 2:
      bits = choice < 4 ? ones >> 1 : (hash & ones >> 1) | sign >> 2;
      break;
    default:
      bits = choice < 6 ? 1 : hash % 61;
      break;
    }
  }
  return repeat(bits & ones, width);
}

std::optional<uint64_t> PortableRun::constantFor(const Site &site, uint64_t number) const {
  const std::vector<uint64_t> &constants =
      site.isFloat ? facts.comparedFloats : facts.comparedIntegers;
  if (constants.empty() || site.bits < 8 || (site.isFloat && site.bits != 32))
    return std::nullopt;
  uint64_t ones = ~uint64_t(0) >> (64 - site.bits);
  return repeat(constants[number % constants.size()] & ones, site.bits);
}

void PortableRun::draw(std::array<uint32_t, 3> threadgroup, uint32_t simdgroup, uint32_t number,
                       uint32_t mask, bool perLane, const uint64_t *salts, uint64_t *bits) {
  std::fill_n(bits, simdWidth, 0);
  if (number >= sites.size() || !mask)
    return;
  const Site &site = sites[number];
  Firing &firing = firings[number];
  if (!firing.fired)
    firing = {true, threadgroup, simdgroup, uint32_t(std::countr_zero(mask))};
  if (firedIn.empty() || firedIn.back() != threadgroup)
    firedIn.push_back(threadgroup);
  uint64_t place = mix(mix(seed, number), streamOf[number]);
  // Each stream gives the site another kind of value. Which comes first is the seed's choice.
  unsigned kind = (mix(seed, number) + streamOf[number]) % numKinds;
  uint64_t group =
      mix(place, mix(mix(threadgroup[0], threadgroup[1]), mix(threadgroup[2], simdgroup)));
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    uint32_t lane = std::countr_zero(rest);
    // Odd factors keep different salts and lanes apart.
    uint64_t hash = mix(group + salts[lane] * 0x9e3779b97f4a7c15 +
                        (perLane ? lane : simdWidth) * 0xc2b2ae3d27d4eb4f);
    std::optional<uint64_t> constant;
    if (streamOf[number] >= numKinds)
      constant = constantFor(site, seed * mostConstantStreams + streamOf[number] - numKinds +
                                       (perLane ? lane * mostConstantStreams : 0));
    bits[lane] = constant ? *constant : value(site, kind, hash);
  }
}

void PortableRun::add(const PortableRun &other) {
  auto isEarlier = [](const Firing &a, const Firing &b) {
    auto place = [](const Firing &firing) {
      const auto &[x, y, z] = firing.threadgroup;
      return std::array{z, y, x};
    };
    return a.fired && (!b.fired || place(a) < place(b));
  };
  for (size_t i = 0; i != firings.size(); ++i)
    if (isEarlier(other.firings[i], firings[i]))
      firings[i] = other.firings[i];
  firedIn.insert(firedIn.end(), other.firedIn.begin(), other.firedIn.end());
  chunks.insert(chunks.end(), other.chunks.begin(), other.chunks.end());
}

void PortableRun::clear() {
  firings.assign(firings.size(), {});
  firedIn.clear();
  chunks.clear();
}

//===----------------------------------------------------------------------===//
// Judgement
//===----------------------------------------------------------------------===//

std::string describeReason(const Site &site, const KernelInfo &info) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  switch (site.reason) {
  case Unpromised::DivisionByZero:
    return "an integer is divided by zero, or the least integer by -1";
  case Unpromised::NegativeRemainder:
    return "the remainder (%) of a negative integer";
  case Unpromised::WideShift:
    return "an integer is shifted by its width or more";
  case Unpromised::SignedOverflow:
    return "signed arithmetic overflows";
  case Unpromised::Variable:
    stream << "variable '" << site.note << "' is read before it has a value";
    break;
  case Unpromised::OutsideVariable:
    stream << "an element outside of the variable '" << site.note << "' is read";
    break;
  case Unpromised::VectorIndex:
    return "a vector is indexed beyond its last component";
  case Unpromised::NoReturn:
    return "a function ends without returning a value";
  case Unpromised::ThreadgroupRead:
  case Unpromised::UnorderedThreadgroupRead:
    stream << "threadgroup memory '" << site.note << "'";
    for (const ThreadgroupVariableInfo &variable : info.threadgroupVariables)
      if (variable.name == site.note && variable.line) {
        stream << " (declared in line " << variable.line << ":" << variable.column << ")";
        break;
      }
    stream << (site.reason == Unpromised::ThreadgroupRead
                   ? " is read before any thread of the threadgroup has written it"
                   : " is read after another SIMD-group has stored it, with no "
                     "threadgroup_barrier(mem_flags::mem_threadgroup) between the two");
    break;
  case Unpromised::Shuffle:
    return "a shuffle reads a lane that is inactive or outside of the SIMD-group";
  case Unpromised::ReductionOfNaN:
    return "the minimum or maximum across a SIMD-group of values with a NaN among them";
  case Unpromised::UndefinedResult:
    stream << site.note << " gets arguments for which Metal does not define its result";
    break;
  case Unpromised::FastFunction:
    stream << site.note
           << " gets or gives a number outside of the range for which Metal states its error";
    break;
  }
  return text;
}

namespace {

/// How a run ended, and what it left in the buffers.
struct Outcome {
  std::optional<FailureRecord> failure;
  std::optional<BufferContents> contents;
  std::vector<PortableRun::Firing> firings;
  /// As those of PortableRun.
  std::vector<std::array<uint32_t, 3>> firedIn;
  std::vector<uint64_t> chunks;

  bool operator==(const Outcome &other) const {
    if (failure.has_value() != other.failure.has_value())
      return false;
    if (failure)
      return failure->failure == other.failure->failure && failure->site == other.failure->site &&
             failure->threadgroup == other.failure->threadgroup;
    return contents == other.contents;
  }
};

/// Runs a plan several times and compares the results.
class Judge {
public:
  Judge(LaunchPlan &plan, const KernelInfo &info,
        llvm::function_ref<std::string(const FailureRecord &)> describe)
      : plan(plan), info(info), describe(describe), sites(plan.facts->sites), before(plan) {
    plan.restoreBuffers = [this] { before.restore(this->plan.only ? &chunks : nullptr); };
  }

  std::string judge();

private:
  LaunchPlan &plan;
  const KernelInfo &info;
  llvm::function_ref<std::string(const FailureRecord &)> describe;
  const std::vector<Site> &sites;
  BufferContents before;
  std::vector<uint64_t> counts;
  /// What the threadgroups have written in which a site gave a value, while only these run.
  std::vector<uint64_t> chunks;

  /// Runs the plan on what the buffers hold.
  Outcome run(const std::vector<uint8_t> &streams);
  /// Runs the plan from the content before the launch.
  Outcome runAgain(const std::vector<uint8_t> &streams) {
    before.restore();
    return run(streams);
  }
  bool wasInterrupted(const Outcome &outcome) const {
    return outcome.failure && outcome.failure->failure == Failure::Interrupted;
  }
  std::string fail(const Outcome &outcome) {
    before.restore();
    return describe(*outcome.failure);
  }
  bool isIndependent(Outcome &usual);
  std::string report(const Outcome &usual, const Outcome &other, uint8_t stream);
};

Outcome Judge::run(const std::vector<uint8_t> &streams) {
  PortableRun run(*plan.facts, plan.portableSeed);
  run.streamOf = streams;
  plan.portableRun = &run;
  plan.state.fastDirection = PortableRun::fastDirection(plan.portableSeed);
  plan.failure.reset();
  plan.ranApart = false;
  std::fill(plan.counts.begin(), plan.counts.end(), 0);
  runLaunch(plan);
  plan.portableRun = nullptr;
  Outcome outcome;
  outcome.failure = std::exchange(plan.failure, std::nullopt);
  outcome.firings = std::move(run.firings);
  outcome.firedIn = std::move(run.firedIn);
  outcome.chunks = std::move(run.chunks);
  return outcome;
}

/// Whether another stream changes nothing. Only runs the threadgroups in which a site gave a value,
/// as the others do not share memory with them. False where that cannot be said without all of
/// them; the buffers then have any content.
bool Judge::isIndependent(Outcome &usual) {
  std::vector<uint32_t> groups;
  const uint32_t *size = plan.state.threadgroups;
  for (const auto &[x, y, z] : usual.firedIn)
    groups.push_back(x + size[0] * (y + size[1] * z));
  llvm::sort(groups);
  groups.erase(llvm::unique(groups), groups.end());
  llvm::sort(usual.chunks);
  usual.chunks.erase(llvm::unique(usual.chunks), usual.chunks.end());
  chunks = usual.chunks;
  BufferContents result(plan, &chunks);
  plan.only = &groups;
  std::optional<Outcome> first;
  bool isSame = true;
  for (unsigned stream = 0; isSame && stream != PortableRun::countStreams(*plan.facts); ++stream) {
    before.restore(&chunks);
    Outcome outcome = run(std::vector<uint8_t>(sites.size(), stream));
    auto isKnown = [&](uint64_t chunk) { return llvm::binary_search(chunks, chunk); };
    if (outcome.failure || !plan.ranApart || !llvm::all_of(plan.written, isKnown)) {
      isSame = false;
      break;
    }
    outcome.contents.emplace(plan, &chunks);
    if (first)
      isSame = outcome == *first;
    else
      first = std::move(outcome);
  }
  plan.only = nullptr;
  if (isSame)
    result.restore();
  return isSame;
}

std::string Judge::judge() {
  auto firedIn = [](const Outcome &outcome) {
    return std::any_of(outcome.firings.begin(), outcome.firings.end(),
                       [](const PortableRun::Firing &firing) { return firing.fired; });
  };
  std::vector<uint8_t> streams(sites.size(), 0);
  using Clock = std::chrono::steady_clock;
  auto start = Clock::now();
  // A value may decide whether a loop ends.
  if (!sites.empty())
    plan.timeLimit = std::chrono::seconds(10);
  Outcome usual = run(streams);
  bool isEndless = usual.failure && usual.failure->failure == Failure::Endless;
  if (isEndless) {
    if (!firedIn(usual)) {
      plan.timeLimit.reset();
      usual = runAgain(streams);
    }
  } else if (plan.timeLimit) {
    plan.timeLimit =
        std::max<std::chrono::nanoseconds>(std::chrono::seconds(1), 20 * (Clock::now() - start));
  }
  auto finish = [&] { return usual.failure ? fail(usual) : std::string(); };
  if (wasInterrupted(usual) || !firedIn(usual))
    return finish();
  counts = plan.counts;
  const uint32_t *size = plan.state.threadgroups;
  if (plan.ranApart && usual.firedIn.size() < uint64_t(size[0]) * size[1] * size[2] / 2) {
    if (isIndependent(usual)) {
      plan.counts = counts;
      return {};
    }
    usual = runAgain(streams);
    if (wasInterrupted(usual))
      return fail(usual);
    counts = plan.counts;
  }
  auto keep = [&](Outcome &outcome) { outcome.contents.emplace(plan); };
  keep(usual);
  for (uint8_t stream = 1; stream != PortableRun::countStreams(*plan.facts); ++stream) {
    std::fill(streams.begin(), streams.end(), stream);
    Outcome other = runAgain(streams);
    if (wasInterrupted(other))
      return fail(other);
    keep(other);
    if (other == usual)
      continue;
    // A kernel that gives another result each time is not to be judged.
    std::fill(streams.begin(), streams.end(), 0);
    Outcome again = runAgain(streams);
    if (wasInterrupted(again))
      return fail(again);
    keep(again);
    if (!(again == usual))
      break;
    return report(usual, other, stream);
  }
  if (isEndless && usual.failure) {
    // With every stream: perhaps it takes its time.
    plan.timeLimit = std::chrono::seconds(60);
    std::fill(streams.begin(), streams.end(), 0);
    usual = runAgain(streams);
    return finish();
  }
  usual.contents->restore();
  plan.counts = counts;
  return finish();
}

/// Finds a site whose value decides, and describes it.
std::string Judge::report(const Outcome &usual, const Outcome &other, uint8_t stream) {
  std::vector<uint32_t> suspects;
  for (uint32_t site = 0; site != sites.size(); ++site)
    if (usual.firings[site].fired || other.firings[site].fired)
      suspects.push_back(site);
  // With the other stream for the first `some` suspects, does the result differ?
  Outcome last = other;
  auto differs = [&](size_t first, size_t some) {
    std::vector<uint8_t> streams(sites.size(), 0);
    for (size_t i = first; i != some; ++i)
      streams[suspects[i]] = stream;
    Outcome outcome = runAgain(streams);
    outcome.contents.emplace(plan);
    bool result = !(outcome == usual);
    if (result)
      last = std::move(outcome);
    return result;
  };
  size_t low = 0, high = suspects.size(); // it differs with `high`, and not with `low`
  while (high - low > 1) {
    size_t middle = (low + high) / 2;
    (differs(0, middle) ? high : low) = middle;
  }
  if (suspects.size() > 1)
    differs(high - 1, high); // alone, if that suffices
  uint32_t number = suspects[high - 1];
  const Site &site = sites[number];
  const PortableRun::Firing &firing =
      last.firings[number].fired ? last.firings[number] : usual.firings[number];
  before.restore();

  std::string text;
  llvm::raw_string_ostream stream_(text);
  stream_ << "kernel '" << info.name << "'" << site.place() << ": ";
  const std::optional<FailureRecord> &failure = last.failure ? last.failure : usual.failure;
  std::string tail;
  if (failure) {
    stream_ << "whether the launch fails depends on a value that Metal does not promise: ";
    std::string symptom = describe(*failure);
    std::string front = "kernel '" + info.name + "'";
    if (symptom.starts_with(front))
      symptom.erase(0, front.size());
    size_t begin = symptom.find_first_not_of(",: ");
    tail = "; with one such value, " + symptom.substr(std::min(begin, symptom.size()));
  } else {
    for (size_t i = 0; i != usual.contents->buffers.size(); ++i) {
      const auto &[index, start, bytes] = usual.contents->buffers[i];
      auto mine =
          std::mismatch(bytes.begin(), bytes.end(), last.contents->buffers[i].bytes.begin()).first;
      if (mine == bytes.end())
        continue;
      int64_t offset =
          (mine - bytes.begin()) - (static_cast<char *>(plan.state.buffers[index]) - start);
      std::string name = "buffer " + std::to_string(index);
      for (const ParameterInfo &parameter : info.parameters)
        if (parameter.kind == ParameterInfo::Kind::Buffer && parameter.index == index)
          name = "'" + parameter.name + "' (" + name + ")";
      stream_ << "byte " << offset << " of " << name
              << " depends on a value that Metal does not promise: ";
      break;
    }
  }
  stream_ << describeReason(site, info) << " (threadgroup " << firing.threadgroup[0] << ","
          << firing.threadgroup[1] << "," << firing.threadgroup[2] << ", SIMD-group "
          << firing.simdgroup << ", lane " << firing.lane << ")" << tail;
  return text;
}

} // namespace

std::string runPortably(LaunchPlan &plan, const KernelInfo &info,
                        llvm::function_ref<std::string(const FailureRecord &)> describe) {
  return Judge(plan, info, describe).judge();
}

} // namespace triton_metal::engine

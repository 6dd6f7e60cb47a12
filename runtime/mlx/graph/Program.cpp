#include "runtime/mlx/graph/Program.h"

#include <algorithm>
#include <stdexcept>
#include <unordered_map>

namespace triton_metal::graph {

namespace {

using Json = nlohmann::json;

Type readType(const Json &json) {
  Type type{json.at(0).get<std::string>(), {}};
  for (size_t i = 1; i < json.size(); ++i)
    type.shape.push_back(json[i].get<int>());
  return type;
}

std::vector<Type> readTypes(const Json &json) {
  std::vector<Type> types;
  for (const Json &type : json)
    types.push_back(readType(type));
  return types;
}

class Reader {
public:
  explicit Reader(Program &program) : program(program) {}

  /// Notes which operations have results that others take, and where values come from.
  void markUsed(Block &block) const {
    for (const auto &[value, count] : uses)
      program.useCounts[static_cast<size_t>(value)] = count;
    markOperations(block);
  }
  void markOperations(Block &block) const {
    for (Operation &operation : block.operations) {
      for (int value : operation.results)
        program.producers[static_cast<size_t>(value)] = &operation;
      operation.isUsed = std::any_of(operation.results.begin(), operation.results.end(),
                                     [&](int value) { return uses.contains(value); });
      for (std::optional<Block> &region : operation.regions)
        if (region)
          markOperations(*region);
    }
  }

  Block readBlock(const Json &json) {
    Block block{readValues(json.at("arguments")), readTypes(json.at("types")), {}};
    for (const Json &operation : json.at("operations"))
      block.operations.push_back(readOperation(operation));
    return block;
  }

private:
  std::vector<int> readValues(const Json &json) {
    auto values = json.get<std::vector<int>>();
    for (int value : values)
      program.numValues = std::max(program.numValues, value + 1);
    return values;
  }

  Operation readOperation(const Json &json) {
    Operation operation;
    operation.name = json.at("name").get<std::string>();
    operation.operands = readValues(json.at("operands"));
    for (int value : operation.operands)
      ++uses[value];
    operation.results = readValues(json.at("results"));
    operation.types = readTypes(json.at("types"));
    operation.attributes = json.at("attributes");
    if (auto place = json.find("place"); place != json.end())
      operation.place = {place->at(0).get<int>(), place->at(1).get<int>(), place->at(2).get<int>()};
    if (auto regions = json.find("regions"); regions != json.end())
      for (const Json &region : *regions)
        operation.regions.push_back(region.is_null() ? std::nullopt
                                                     : std::optional(readBlock(region)));
    return operation;
  }

  Program &program;
  std::unordered_map<int, int> uses;
};

} // namespace

int Type::width() const {
  if (isPointer())
    return 64;
  size_t digits = element.find_first_of("0123456789");
  return std::stoi(element.substr(digits));
}

mx::Dtype Type::dtype() const {
  if (isPointer() || element == "i64")
    return mx::int64;
  if (element == "i1")
    return mx::bool_;
  if (element == "i8")
    return mx::int8;
  if (element == "i16")
    return mx::int16;
  if (element == "i32")
    return mx::int32;
  if (element == "f16")
    return mx::float16;
  if (element == "bf16")
    return mx::bfloat16;
  if (element == "f32")
    return mx::float32;
  if (element == "f64")
    return mx::float64;
  throw std::invalid_argument("no array holds numbers of type " + element);
}

Program Program::read(const std::string &text) {
  Json json = Json::parse(text);
  Program program;
  program.name = json.at("name").get<std::string>();
  program.arguments = readTypes(json.at("arguments"));
  program.files = json.at("files").get<std::vector<std::string>>();
  Reader reader(program);
  program.body = reader.readBlock(json.at("body"));
  program.useCounts.resize(static_cast<size_t>(program.numValues));
  program.producers.resize(program.useCounts.size());
  reader.markUsed(program.body);
  return program;
}

std::string Program::describe(Place place) const {
  if (place.file < 0)
    return "";
  return files[static_cast<size_t>(place.file)] + ":" + std::to_string(place.line) + ":" +
         std::to_string(place.column);
}

} // namespace triton_metal::graph

// What is known about kernels, as text and as JSON.
#include "host_device/metal/Library.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace llvm;

namespace triton_metal::metal {

static const char *nameOf(AddressSpace space) {
  switch (space) {
  case AddressSpace::Thread:
    return "thread";
  case AddressSpace::Device:
    return "device";
  case AddressSpace::Constant:
    return "constant";
  case AddressSpace::Threadgroup:
    return "threadgroup";
  }
  return "";
}

static const char *nameOf(ParameterInfo::Kind kind) {
  switch (kind) {
  case ParameterInfo::Kind::Buffer:
    return "buffer";
  case ParameterInfo::Kind::Threadgroup:
    return "threadgroup";
  case ParameterInfo::Kind::Position:
    return "position";
  }
  return "";
}

/// The scalar type's name, or nothing for structures.
static json::Value scalarName(ScalarKind kind, uint32_t bits) {
  if (kind == ScalarKind::None)
    return nullptr;
  return nameOf(ScalarType{kind, bits});
}

static json::Object describe(const ParameterInfo &parameter) {
  json::Object object{{"name", parameter.name},
                      {"kind", nameOf(parameter.kind)},
                      {"scalar", scalarName(parameter.scalarKind, parameter.scalarBits)},
                      {"components", parameter.vectorWidth}};
  if (parameter.kind == ParameterInfo::Kind::Position)
    return object;
  object["index"] = parameter.index;
  object["space"] = nameOf(parameter.addressSpace);
  object["const"] = parameter.isConst;
  object["reference"] = parameter.isReference;
  object["type"] = parameter.elementType;
  object["size"] = parameter.elementSize;
  object["alignment"] = parameter.elementAlignment;
  object["exists"] = parameter.exists;
  object["declaration"] = declarationOf(parameter);
  return object;
}

std::string describeAsJson(ArrayRef<KernelInfo> kernels) {
  json::Array result;
  for (const KernelInfo &info : kernels) {
    json::Array parameters, constants, variables;
    for (const ParameterInfo &parameter : info.parameters)
      parameters.push_back(describe(parameter));
    for (const FunctionConstantInfo &constant : info.functionConstants)
      constants.push_back(
          json::Object{{"name", constant.name},
                       {"index", constant.index},
                       {"type", constant.type},
                       {"scalar", scalarName(constant.scalarKind, constant.scalarBits)},
                       {"components", constant.vectorWidth},
                       {"required", constant.required}});
    for (const ThreadgroupVariableInfo &variable : info.threadgroupVariables)
      variables.push_back(json::Object{{"name", variable.name},
                                       {"size", variable.size},
                                       {"alignment", variable.alignment},
                                       {"line", variable.line}});
    result.push_back(json::Object{{"name", info.name},
                                  {"line", info.line},
                                  {"max_threads", info.maxTotalThreadsPerThreadgroup},
                                  {"parameters", std::move(parameters)},
                                  {"constants", std::move(constants)},
                                  {"variables", std::move(variables)}});
  }
  return formatv("{0}", json::Value(std::move(result))).str();
}

std::string declarationOf(const ParameterInfo &parameter) {
  if (parameter.kind == ParameterInfo::Kind::Position)
    return parameter.name;
  std::string space = nameOf(parameter.addressSpace);
  bool showConst = parameter.isConst && parameter.addressSpace == AddressSpace::Device;
  return space + (showConst ? " const " : " ") + parameter.elementType +
         (parameter.isReference ? " &" : " *") + parameter.name;
}

std::string suggestion(StringRef name, ArrayRef<std::string> names, StringRef kind) {
  std::vector<std::pair<unsigned, StringRef>> near;
  unsigned limit = std::max<unsigned>(2, static_cast<unsigned>(name.size()) / 3);
  for (const std::string &candidate : names) {
    unsigned distance = StringRef(candidate).edit_distance(name, true, limit + 1);
    if (distance <= limit || (name.size() > 2 && StringRef(candidate).contains(name)))
      near.push_back({distance, candidate});
  }
  llvm::sort(near);
  std::string text;
  if (!near.empty()) {
    near.resize(std::min<size_t>(near.size(), 3));
    for (auto [position, entry] : enumerate(near))
      text += (position == 0                 ? "; did you mean '"
               : position + 1 == near.size() ? " or '"
                                             : ", '") +
              entry.second.str() + "'";
    return text + "?";
  }
  for (const std::string &candidate : names.take_front(8))
    text += (text.empty() ? "" : ", ") + candidate;
  if (names.size() > 8)
    text += " and " + std::to_string(names.size() - 8) + " more";
  return "; its " + kind.str() + " are " + text;
}

} // namespace triton_metal::metal

#include "runtime/mlx/graph/Producers.h"

#include "runtime/mlx/graph/Reductions.h"

#include <algorithm>
#include <unordered_map>

namespace triton_metal::graph {

const std::string &nameOf(const Operation &op) {
  static const std::unordered_map<std::string, std::string> names = {
      {"acos", "math.acos"},
      {"acosh", "math.acosh"},
      {"asin", "math.asin"},
      {"asinh", "math.asinh"},
      {"atan", "math.atan"},
      {"atan2", "math.atan2"},
      {"atanh", "math.atanh"},
      {"ceil", "math.ceil"},
      {"copysign", "math.copysign"},
      {"cos", "math.cos"},
      {"cosh", "math.cosh"},
      {"erf", "math.erf"},
      {"exp", "math.exp"},
      {"exp2", "math.exp2"},
      {"expm1", "math.expm1"},
      {"fabs", "math.absf"},
      {"floor", "math.floor"},
      {"fma", "math.fma"},
      {"log", "math.log"},
      {"log10", "math.log10"},
      {"log1p", "math.log1p"},
      {"log2", "math.log2"},
      {"pow", "math.powf"},
      {"rint", "math.roundeven"},
      {"nearbyint", "math.roundeven"},
      {"round", "math.round"},
      {"rsqrt", "math.rsqrt"},
      {"sin", "math.sin"},
      {"sinh", "math.sinh"},
      {"sqrt", "math.sqrt"},
      {"tan", "math.tan"},
      {"tanh", "math.tanh"},
      {"trunc", "math.trunc"},
      {"fmod", "arith.remf"},
      {"fmax", "arith.maxnumf"},
      {"fmin", "arith.minnumf"},
      {"abs", "math.absi"},
      {"fdiv_rn", "arith.divf"},
      {"ddiv_rn", "arith.divf"},
      {"fsqrt_rn", "math.sqrt"},
      {"dsqrt_rn", "math.sqrt"},
      {"fadd_rn", "arith.addf"},
      {"dadd_rn", "arith.addf"},
      {"fmul_rn", "arith.mulf"},
      {"dmul_rn", "arith.mulf"},
      {"clz", "math.ctlz"},
      {"popc", "math.ctpop"},
      {"fast_expf", "math.exp"},
      {"fast_logf", "math.log"},
      {"fast_sinf", "math.sin"},
      {"fast_cosf", "math.cos"},
      {"fast_log2f", "math.log2"},
      {"fast_powf", "math.powf"},
      {"umulhi", "tt.mulhiui"},
  };
  if (op.name != "tt.extern_elementwise")
    return op.name;
  std::string name = op.attributes.at("symbol").get<std::string>();
  if (name.starts_with("__nv_"))
    name = name.substr(5);
  auto found = names.find(name);
  if (found == names.end() && name.ends_with("f"))
    found = names.find(name.substr(0, name.size() - 1));
  return found == names.end() ? op.name : found->second;
}

const Operation *Producers::made(int number, std::initializer_list<std::string_view> names) {
  const Operation *op = program->producer(number);
  if (!op || std::find(names.begin(), names.end(), nameOf(*op)) == names.end())
    return nullptr;
  operations.insert(op);
  return op;
}

int Producers::repeated(int number) {
  // A reduction has one axis less than its tile: only these bring the last one back.
  while (const Operation *op = program->producer(number)) {
    if (op->name != "tt.broadcast" && op->name != "tt.splat" &&
        (op->name != "tt.expand_dims" || op->integer("axis") != last))
      break;
    operations.insert(op);
    number = op->operands[0];
  }
  return number;
}

int Producers::reduced(int number, std::initializer_list<std::string_view> combiners) {
  const Operation *op = made(repeated(number), {"tt.reduce"});
  if (!op || op->operands.size() != 1 || op->integer("axis") != last ||
      std::find(combiners.begin(), combiners.end(), combinerOf(*op)) == combiners.end())
    return -1;
  return op->operands[0];
}

static void addTakers(const Block &block, int number, std::set<const Operation *> &takers) {
  for (const Operation &op : block.operations) {
    if (std::find(op.operands.begin(), op.operands.end(), number) != op.operands.end())
      takers.insert(&op);
    for (const std::optional<Block> &region : op.regions)
      if (region)
        addTakers(*region, number, takers);
  }
}

std::set<const Operation *> takersOf(const Program &program, int number) {
  std::set<const Operation *> takers;
  addTakers(program.body, number, takers);
  return takers;
}

} // namespace triton_metal::graph

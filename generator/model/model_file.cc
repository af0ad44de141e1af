#include "generator/model/model_file.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/file.h"
#include "base/text.h"
#include "base/yaml_problem.h"
#include "generator/model/yaml_fields.h"
#include "generator/model/zoo.h"

namespace lockstep {
namespace {

constexpr std::int64_t kMaxText = std::int64_t{1} << 20;

constexpr std::array<std::string_view, 4> kCollectives{"all_reduce", "all_gather", "reduce_scatter",
                                                       "all_to_all"};
constexpr std::array<CommType, 4> kCollectiveTypes{CommType::kAllReduce, CommType::kAllGather,
                                                   CommType::kReduceScatter, CommType::kAllToAll};

constexpr std::array<std::string_view, 4> kModuleGroups{"tp", "cp", "ep", "tp.expert"};

struct Kind {
  std::string_view name;
  ModuleKind kind;
  std::vector<std::string_view> keys;
};

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> table{
      {"embedding", ModuleKind::kEmbedding, {"in", "out", "shared", "whole"}},
      {"column_linear", ModuleKind::kColumnLinear, {"in", "out", "bias", "shared", "cross"}},
      {"row_linear", ModuleKind::kRowLinear, {"in", "out", "bias", "shared", "parallel"}},
      {"plain_linear", ModuleKind::kPlainLinear, {"in", "out", "bias", "shared"}},
      {"norm", ModuleKind::kNorm, {"width", "weights", "rms", "shared"}},
      {"attention",
       ModuleKind::kAttention,
       {"heads", "kv_heads", "head_dim", "value_dim", "window", "causal"}},
      {"activation", ModuleKind::kActivation, {"in", "out"}},
      {"moe",
       ModuleKind::kMoe,
       {"width", "experts", "topk", "expert_ffn", "shared_ffn", "gated", "bias", "router_bias",
        "shared"}},
      {"head", ModuleKind::kHead, {"in", "out", "bias", "shared"}},
      {"custom",
       ModuleKind::kCustom,
       {"parameters", "flops", "bytes", "shared", "forward", "backward"}},
  };
  return table;
}

class Reader {
 public:
  Reader(std::string file, const Variables& given, const ModelFileLimits& limits)
      : file_(std::move(file)), given_(given), limits_(limits) {}

  Model read(const YAML::Node& root) {
    const YamlFields fields(root, file_, "");
    constexpr std::array<std::string_view, 8> kKeys{
        "name",   "variables", "before", "blocks", "after", "source", "published_parameters",
        "process"};  // generator/process reads the last
    if (fields.has("model_type") || fields.has("architectures")) {
      throw Error("a Hugging Face config, not a model file").at(file_).hint("--hf-config reads it");
    }
    fields.allow(kKeys);
    model_.name = fields.text("name");
    Variables variables;
    if (fields.has("variables")) {
      variables = read_variables(fields.at("variables"), {}, "variables", true);
    }
    check_given(variables);
    model_.variables = variables;
    if (fields.has("source")) {
      model_.source = fields.text("source");
    }
    if (fields.has("published_parameters")) {
      model_.published_parameters = fields.number("published_parameters", variables);
    }
    if (fields.has("before")) {
      model_.before = read_modules(fields.at("before"), variables, "before");
    }
    read_blocks(fields.at("blocks"), variables, "blocks", true);
    if (model_.blocks.empty() && !limits_.no_layers) {
      throw fields.error("no layer at all", "blocks").expected("a block with layers above 0");
    }
    if (fields.has("after")) {
      model_.after = read_modules(fields.at("after"), variables, "after");
    }
    return std::move(model_);
  }

 private:
  /// Each may use those above it (and `outer`).
  Variables read_variables(const YAML::Node& node, Variables outer, const std::string& field,
                           bool overridable) {
    const YamlFields fields(node, file_, field);
    for (const auto& entry : node) {
      const std::string& name = entry.first.Scalar();
      if (!is_variable_name(name)) {
        throw yaml_error(fmt::format("'{}' cannot name a variable", printable(name)), entry.first,
                         file_, field)
            .expected("letters, digits and _, no digit first, no function's name");
      }
      const auto given = given_.find(name);
      const bool replaced = overridable && given != given_.end();
      outer[name] = replaced ? given->second : fields.number(name, outer);
    }
    return outer;
  }

  void check_given(const Variables& variables) const {
    std::vector<std::string_view> known;
    for (const auto& [name, value] : variables) {
      known.push_back(name);
    }
    for (const auto& [name, value] : given_) {
      if (variables.count(name) == 0) {
        Error error = Error(fmt::format("the model has no variable '{}'", printable(name)))
                          .at(file_)
                          .expected(join(known, ", "));
        const std::string_view near = closest(name, known);
        throw near.empty() ? error : std::move(error).hint(fmt::format("did you mean {}?", near));
      }
    }
  }

  void check_list(const YAML::Node& node, const std::string& field) const {
    if (!node.IsSequence()) {
      throw yaml_error("not a list", node, file_, field).expected("- …");
    }
  }

  void read_blocks(const YAML::Node& list, const Variables& variables, const std::string& field,
                   bool may_repeat) {
    check_list(list, field);
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (++blocks_ > limits_.layers) {  // those without layers, too
        throw yaml_error("too many blocks", list[i], file_, field)
            .expected(fmt::format("at most {}, after repetition", limits_.layers));
      }
      const std::string name = fmt::format("{}[{}]", field, i);
      const YamlFields block(list[i], file_, name);
      if (may_repeat && block.has("repeat")) {
        constexpr std::array<std::string_view, 2> kKeys{"repeat", "blocks"};
        block.allow(kKeys);
        const std::int64_t times = block.whole("repeat", variables, 0, limits_.layers);
        for (std::int64_t turn = 0; turn < times; ++turn) {
          const std::size_t blocks = model_.blocks.size();
          read_blocks(block.at("blocks"), variables, name, false);
          if (model_.blocks.size() == blocks) {
            break;  // nothing in it: the other turns are as empty
          }
        }
        continue;
      }
      constexpr std::array<std::string_view, 4> kKeys{"name", "layers", "with", "modules"};
      block.allow(kKeys);
      LayerBlock read;
      read.name = block.text("name");
      const Variables inner =
          block.has("with") ? read_variables(block.at("with"), variables, name + ".with", false)
                            : variables;
      read.layers = block.whole("layers", inner, 0, limits_.layers);
      if (read.layers == 0) {
        continue;
      }
      read.modules = read_modules(block.at("modules"), inner, name);
      if (read.modules.empty()) {
        throw block.error("a layer without modules", "modules");
      }
      model_.blocks.push_back(std::move(read));
    }
  }

  std::vector<Module> read_modules(const YAML::Node& list, const Variables& variables,
                                   const std::string& field) {
    check_list(list, field);
    std::vector<Module> modules;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const YamlFields fields(list[i], file_, fmt::format("{}[{}]", field, i));
      const std::int64_t times = fields.whole_or("times", variables, 0, limits_.modules, 1);
      modules_ += std::max<std::int64_t>(times, 1);
      if (modules_ > limits_.modules) {
        throw yaml_error("too many modules", list[i], file_, field)
            .expected(fmt::format("at most {}, after repetition", limits_.modules));
      }
      if (times > 0 && fields.flag_or("when", variables, true)) {
        modules.insert(modules.end(), static_cast<std::size_t>(times),
                       read_module(fields, variables));
      }
    }
    check_parallel(modules, list, field);
    return modules;
  }

  /// What is reduced with the next row linear needs one, as wide as itself.
  void check_parallel(const std::vector<Module>& modules, const YAML::Node& list,
                      const std::string& field) const {
    const auto last = std::find_if(modules.rbegin(), modules.rend(), [](const Module& module) {
      return module.kind == ModuleKind::kRowLinear;
    });
    if (last != modules.rend() && last->parallel) {
      throw yaml_error(fmt::format("no row_linear behind {}, which is parallel", last->name), list,
                       file_, field)
          .expected("the one whose output is added to its own before both are reduced");
    }
    const Module* first = nullptr;  // the parallel one that waits for the next
    for (const Module& module : modules) {
      if (module.kind != ModuleKind::kRowLinear) {
        continue;
      }
      if (first != nullptr && module.out != first->out) {
        throw yaml_error(fmt::format("{} is {} wide, and so is not added to {}, which is {}",
                                     first->name, first->out, module.name, module.out),
                         list, file_, field)
            .expected("row linears of one width: the first is parallel");
      }
      first = module.parallel ? &module : nullptr;
    }
  }

  static const Kind& kind_of(const YamlFields& fields) {
    std::vector<std::string_view> names;
    for (const Kind& kind : kinds()) {
      names.push_back(kind.name);
    }
    return kinds()[fields.choice("kind", names)];
  }

  Module read_module(const YamlFields& fields, const Variables& variables) const {
    const Kind& kind = kind_of(fields);
    std::vector<std::string_view> keys{"kind", "name", "when", "times"};
    keys.insert(keys.end(), kind.keys.begin(), kind.keys.end());
    fields.allow(keys);
    const auto size = [&](std::string_view key) {
      return fields.whole(key, variables, limits_.smallest, limits_.largest);
    };
    Module module;
    module.kind = kind.kind;
    module.name = fields.text("name");
    module.bias = fields.flag_or("bias", variables, false);
    module.shared = fields.flag_or("shared", variables, false);
    module.whole = fields.flag_or("whole", variables, false);
    module.cross = fields.flag_or("cross", variables, false);
    module.parallel = fields.flag_or("parallel", variables, false);
    switch (kind.kind) {
      case ModuleKind::kNorm:
        module.out = size("width");
        module.in = fields.whole_or("weights", variables, limits_.smallest, module.out, module.out);
        module.rms = fields.flag_or("rms", variables, true);
        break;
      case ModuleKind::kAttention:
        read_attention(fields, variables, module);
        break;
      case ModuleKind::kMoe:
        module.in = module.out = size("width");
        module.experts = size("experts");
        module.topk = fields.whole("topk", variables, 1, std::max<std::int64_t>(module.experts, 1));
        module.expert_ffn = size("expert_ffn");
        module.shared_ffn = fields.whole_or("shared_ffn", variables, 0, limits_.largest, 0);
        module.gated = fields.flag_or("gated", variables, true);
        module.router_bias = fields.flag_or("router_bias", variables, module.bias);
        break;
      case ModuleKind::kCustom:
        module.custom_parameters =
            fields.whole_or("parameters", variables, 0, std::int64_t{1} << 53, 0);
        module.custom_flops = amount(fields, "flops", variables);
        module.custom_bytes = amount(fields, "bytes", variables);
        module.custom_forward = read_comms(fields, "forward", variables);
        module.custom_backward = read_comms(fields, "backward", variables);
        break;
      default:
        module.in = size("in");
        module.out = size("out");
        module.in_text = fields.text("in");
        module.out_text = fields.text("out");
        break;
    }
    return module;
  }

  void read_attention(const YamlFields& fields, const Variables& variables, Module& module) const {
    module.heads = fields.whole("heads", variables, 1, limits_.largest);
    module.kv_heads = fields.whole_or("kv_heads", variables, 1, module.heads, module.heads);
    if (module.heads % module.kv_heads != 0) {
      throw fields.error(
          fmt::format("{} does not divide the {} heads", module.kv_heads, module.heads),
          "kv_heads");
    }
    module.head_dim = fields.whole("head_dim", variables, 1, limits_.largest);
    module.value_dim = fields.whole_or("value_dim", variables, 1, limits_.largest, module.head_dim);
    module.window = fields.whole_or("window", variables, 0, limits_.largest, 0);
    module.causal = fields.flag_or("causal", variables, true);
  }

  std::vector<ModuleComm> read_comms(const YamlFields& fields, std::string_view key,
                                     const Variables& variables) const {
    std::vector<ModuleComm> comms;
    if (!fields.has(key)) {
      return comms;
    }
    const YAML::Node list = fields.at(key);
    const std::string field = fields.place(key).field;
    check_list(list, field);
    for (std::size_t i = 0; i < list.size(); ++i) {
      const YamlFields item(list[i], file_, fmt::format("{}[{}]", field, i));
      constexpr std::array<std::string_view, 4> kKeys{"comm", "group", "bytes", "when"};
      item.allow(kKeys);
      ModuleComm comm;
      comm.comm = kCollectiveTypes[item.choice("comm", kCollectives)];
      comm.group = static_cast<ModuleGroup>(item.choice("group", kModuleGroups));
      item.at("bytes");
      comm.bytes = amount(item, "bytes", variables);
      if (item.flag_or("when", variables, true)) {
        comms.push_back(comm);
      }
    }
    return comms;
  }

  static double amount(const YamlFields& fields, std::string_view key, const Variables& variables) {
    const double value = fields.has(key) ? fields.number(key, variables) : 0;
    if (value < 0) {
      throw fields.error(fmt::format("{} is below 0", value), key);
    }
    return value;
  }

  std::string file_;
  const Variables& given_;
  const ModelFileLimits& limits_;
  Model model_;
  std::int64_t modules_ = 0, blocks_ = 0;
};

}  // namespace

Model parse_model(std::string_view text, const std::string& file, const Variables& given,
                  const ModelFileLimits& limits) {
  if (text.size() > static_cast<std::size_t>(kMaxText)) {
    throw Error(fmt::format("a model file of {} bytes", text.size()))
        .at(file)
        .expected(fmt::format("at most {}", kMaxText));
  }
  try {
    return Reader(file, given, limits).read(YAML::Load(std::string(text)));
  } catch (const YAML::Exception& problem) {
    throw yaml_problem(problem, file);
  }
}

Model read_model(const std::string& path, const Variables& given) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    throw Error("cannot read the file: there is none").at(path).hint(known_model_hint(path));
  }
  const FileText text(path, Bytes(kMaxText));
  return parse_model(text.view(), path, given);
}

}  // namespace lockstep

#include "generator/process/process.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "base/yaml_problem.h"
#include "generator/model/yaml_fields.h"
#include "generator/process/built_in_processes.h"

namespace lockstep {
namespace {

using Kind = ProcessItem::Kind;

constexpr std::int64_t kMaxText = std::int64_t{1} << 20;
constexpr int kMaxDepth = 8;
constexpr std::size_t kMaxItems = 10'000;

constexpr std::array<ProcessGroup, 13> kGroups{{{"tp", RankGroup::kTp},
                                                {"cp", RankGroup::kCp},
                                                {"dp", RankGroup::kDpCp},
                                                {"dp.plain", RankGroup::kDp},
                                                {"pp", RankGroup::kPp},
                                                {"pp.embedding", std::nullopt},
                                                {"tp.model", RankGroup::kModel},
                                                {"ep", RankGroup::kEp},
                                                {"tp.expert", RankGroup::kExpertTp},
                                                {"dp_ep", RankGroup::kExpertDp},
                                                {"world.expert", RankGroup::kExpertModel},
                                                {"tp.dp", RankGroup::kTpDpCp},
                                                {"world", RankGroup::kWorld}}};

constexpr std::array<std::string_view, 7> kCollectives{
    "all_gather", "all_reduce", "all_to_all", "barrier", "broadcast", "reduce", "reduce_scatter"};

/// An item's kind is the key it has of these; the other keys are those it may have besides.
struct KindKeys {
  std::string_view word;
  Kind kind;
  std::vector<std::string_view> keys;
};

const std::vector<KindKeys>& kinds() {
  static const std::vector<KindKeys> table{
      {"comm", Kind::kComm, {"group", "bytes", "overlap", "type"}},
      {"send", Kind::kSend, {"bytes"}},
      {"recv", Kind::kReceive, {"bytes"}},
      {"compute", Kind::kCompute, {"flops", "bytes", "work", "type"}},
      {"run", Kind::kRun, {}},
      {"each", Kind::kEach, {"items", "experts"}},
      {"repeat", Kind::kRepeat, {"items"}},
      {"wait", Kind::kWait, {}},
  };
  return table;
}

class Reader {
 public:
  explicit Reader(std::string file) : file_(std::move(file)) {}

  Process read(const YAML::Node& root) {
    const YamlFields whole(root, file_, "");
    const bool inside = whole.has("process");
    const YamlFields fields(inside ? whole.at("process") : root, file_, inside ? "process" : "");
    constexpr std::array<std::string_view, 7> kKeys{"name",    "variables", "source", "init",
                                                    "forward", "backward",  "step"};
    fields.allow(kKeys);
    Process process;
    process.name = fields.has("name")  ? fields.text("name")
                   : whole.has("name") ? whole.text("name")
                                       : file_;
    if (fields.has("variables")) {
      process.variables = read_variables(fields, "variables");
    }
    for (const auto& [key, section] : {std::pair{"init", &process.init},
                                       {"forward", &process.forward},
                                       {"backward", &process.backward},
                                       {"step", &process.step}}) {
      if (fields.has(key)) {
        *section = read_items(fields.at(key), fields.place(key).field, 0, false);
      }
    }
    if (items_ == 0) {
      throw fields.error("a process without items")
          .expected("a list of items under init, forward, backward or step");
    }
    return process;
  }

 private:
  static ProcessExpression expression(const YamlFields& fields, std::string_view key) {
    return {fields.text(key), fields.place(key)};
  }

  std::vector<std::pair<std::string, ProcessExpression>> read_variables(const YamlFields& fields,
                                                                        std::string_view key) {
    const YAML::Node node = fields.at(key);
    const YamlFields values(node, file_, fields.place(key).field);
    std::vector<std::pair<std::string, ProcessExpression>> variables;
    for (const auto& entry : node) {
      const std::string& name = entry.first.Scalar();
      if (!is_variable_name(name)) {
        throw values.error(fmt::format("'{}' cannot name a variable", printable(name)), name)
            .expected("letters, digits and _, no digit first, no function's name");
      }
      variables.emplace_back(name, expression(values, name));
    }
    return variables;
  }

  std::vector<ProcessItem> read_items(const YAML::Node& list, const std::string& field, int depth,
                                      bool in_unit) {
    if (!list.IsSequence()) {
      throw yaml_error("not a list", list, file_, field).expected("- …");
    }
    if (depth > kMaxDepth) {
      throw yaml_error(fmt::format("items nested deeper than {}", kMaxDepth), list, file_, field);
    }
    std::vector<ProcessItem> items;
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (++items_ > kMaxItems) {
        throw yaml_error("too many items", list[i], file_, field)
            .expected(fmt::format("at most {}", kMaxItems));
      }
      const YamlFields fields(list[i], file_, fmt::format("{}[{}]", field, i));
      items.push_back(read_item(fields, depth, in_unit));
    }
    return items;
  }

  static const KindKeys& kind_of(const YamlFields& fields) {
    const KindKeys* found = nullptr;
    std::vector<std::string_view> words;
    for (const KindKeys& kind : kinds()) {
      words.push_back(kind.word);
      if (!fields.has(kind.word)) {
        continue;
      }
      if (found != nullptr) {
        throw fields.error(fmt::format("an item that is both {} and {}", found->word, kind.word),
                           kind.word);
      }
      found = &kind;
    }
    if (found == nullptr) {
      throw fields.error("what the item does is missing")
          .expected(fmt::format("one of the keys {}", join(words, ", ")));
    }
    return *found;
  }

  ProcessItem read_item(const YamlFields& fields, int depth, bool in_unit) {
    const KindKeys& kind = kind_of(fields);
    std::vector<std::string_view> keys{kind.word, "name", "when", "with"};
    keys.insert(keys.end(), kind.keys.begin(), kind.keys.end());
    fields.allow(keys);
    ProcessItem item;
    item.kind = kind.kind;
    item.place = fields.place(kind.word);
    if (fields.has("when")) {
      item.when = expression(fields, "when");
    }
    if (fields.has("with")) {
      item.with = read_variables(fields, "with");
    }
    item.overlap = fields.flag_or("overlap", {}, false);
    item.experts = fields.flag_or("experts", {}, false);
    if (fields.has("type")) {
      std::vector<std::string_view> types;
      types.reserve(kOpTypes);
      for (int i = 0; i < kOpTypes; ++i) {
        types.push_back(name_of(static_cast<OpType>(i)));
      }
      item.type = static_cast<OpType>(fields.choice("type", types));
    }
    read_kind(fields, item, in_unit);
    if (fields.has("name")) {
      item.name = fields.text("name");
    }
    if (item.kind == Kind::kEach || item.kind == Kind::kRepeat) {
      const bool unit = in_unit || (item.kind == Kind::kEach && !item.buckets);
      item.items = read_items(fields.at("items"), fields.place("items").field, depth + 1, unit);
    }
    return item;
  }

  static void read_kind(const YamlFields& fields, ProcessItem& item, bool in_unit) {
    constexpr std::array<std::string_view, 2> kSides{"next", "previous"};
    constexpr std::array<std::string_view, 2> kEach{"unit", "bucket"};
    constexpr std::array<std::string_view, 2> kRuns{"pass", "unit"};
    switch (item.kind) {
      case Kind::kComm:
        read_collective(fields, item);
        return;
      case Kind::kSend:
      case Kind::kReceive: {
        const bool send = item.kind == Kind::kSend;
        item.next = fields.choice(send ? "send" : "recv", kSides) == 0;
        item.bytes = expression(fields, "bytes");
        item.name = fmt::format("{} {}", send ? "send" : "recv", item.next ? "next" : "previous");
        return;
      }
      case Kind::kCompute:
        item.name = fields.text("compute");
        if (!fields.has("flops") && !fields.has("bytes")) {
          throw fields.error("'flops' or 'bytes' is missing");
        }
        item.flops = fields.has("flops") ? expression(fields, "flops") : ProcessExpression{"0", {}};
        item.bytes = fields.has("bytes") ? expression(fields, "bytes") : ProcessExpression{"0", {}};
        if (fields.has("work")) {
          item.work = static_cast<MemoryWork>(fields.choice("work", kMemoryWorkNames));
        }
        return;
      case Kind::kRun:
        if ((fields.choice("run", kRuns) == 1) != in_unit) {
          throw fields
              .error(in_unit ? "the whole pass for each of its units"
                             : "no unit is at hand outside 'each: unit'",
                     "run")
              .expected(in_unit ? "unit" : "pass");
        }
        return;
      case Kind::kEach:
        item.buckets = fields.choice("each", kEach) == 1;
        if (fields.has("experts") && !item.buckets) {
          throw fields.error("units have no such choice", "experts").expected("each: bucket");
        }
        if (in_unit) {
          throw fields.error("'each' inside 'each: unit'", "each");
        }
        return;
      case Kind::kRepeat:
        item.times = expression(fields, "repeat");
        return;
      case Kind::kWait:
        fields.text("wait");
        return;
    }
  }

  static void read_collective(const YamlFields& fields, ProcessItem& item) {
    const std::string word(kCollectives[fields.choice("comm", kCollectives)]);
    std::string plain = word;
    std::erase(plain, '_');
    item.comm = comm_type_named(plain).value();
    std::vector<std::string_view> groups;
    groups.reserve(std::size(kGroups));
    for (const ProcessGroup& each : kGroups) {
      groups.push_back(each.name);
    }
    item.group = kGroups[fields.choice("group", groups)];
    const bool barrier = item.comm == CommType::kBarrier && !fields.has("bytes");
    item.bytes = barrier ? ProcessExpression{"0", {}} : expression(fields, "bytes");
    item.name = fmt::format("{} {}", word, item.group.name);
  }

  std::string file_;
  std::size_t items_ = 0;
};

template <class Use>
auto with_yaml(std::string_view text, const std::string& file, Use use) {
  if (text.size() > static_cast<std::size_t>(kMaxText)) {
    throw Error(fmt::format("a file of {} bytes", text.size()))
        .at(file)
        .expected(fmt::format("at most {}", kMaxText));
  }
  try {
    return use(YAML::Load(std::string(text)));
  } catch (const YAML::Exception& problem) {
    throw yaml_problem(problem, file);
  }
}

}  // namespace

Process parse_process(std::string_view text, const std::string& file) {
  return with_yaml(text, file, [&](const YAML::Node& root) { return Reader(file).read(root); });
}

bool has_process(std::string_view model_text, const std::string& file) {
  return with_yaml(model_text, file, [](const YAML::Node& root) {
    return root.IsMap() && static_cast<bool>(root["process"]);
  });
}

Process find_process(const std::string& name_or_path) {
  const std::vector<std::string_view> names = list_processes();
  if (std::ranges::find(names, name_or_path) != names.end()) {
    return parse_process(process_text(name_or_path), name_or_path + ".yaml");
  }
  std::error_code ignored;
  const bool looks_like_file = name_or_path.find_first_of("./") != std::string::npos;
  if (!looks_like_file && !std::filesystem::exists(name_or_path, ignored)) {
    Error error = Error(fmt::format("unknown process '{}'", printable(name_or_path)))
                      .field("--process")
                      .expected(fmt::format("a process file, or one of {}", join(names, ", ")));
    const std::string_view near = closest(name_or_path, names);
    throw near.empty() ? error : std::move(error).hint(fmt::format("did you mean {}?", near));
  }
  const FileText text(name_or_path, Bytes(kMaxText));
  return parse_process(text.view(), name_or_path);
}

std::vector<std::string_view> list_processes() {
  std::vector<std::string_view> names;
  for (const BuiltInFile& file : built_in_processes()) {
    names.push_back(file.name.substr(0, file.name.rfind('.')));
  }
  return names;
}

std::string_view process_text(std::string_view name) {
  for (const BuiltInFile& file : built_in_processes()) {
    if (file.name.substr(0, file.name.rfind('.')) == name) {
      return file.text;
    }
  }
  throw Error(fmt::format("unknown process '{}'", printable(name)))
      .expected(join(list_processes(), ", "));
}

}  // namespace lockstep

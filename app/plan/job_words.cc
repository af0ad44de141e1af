#include "app/plan/job_words.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "app/generate_exact.h"
#include "base/error.h"
#include "base/text.h"
#include "generator/exact/job_flags.h"

namespace lockstep {
namespace {

constexpr auto kForbidden = std::to_array<std::string_view>(
    {"tp", "cp", "pp", "vpp", "ep", "zero", "recompute", "sp", "uneven"});
constexpr auto kAxes = std::to_array<std::string_view>(
    {"gpus", "tp", "cp", "pp", "vpp", "ep", "etp", "sequence_parallel", "first_stage_layers",
     "last_stage_layers", "stage_layers", "rank_order", "schedule", "mbs", "recompute",
     "context_comm", "zero", "use_distributed_optimizer", "hsdp_replicas"});

/// The axis that a flag names, in one of its spellings.
const ArgSpec* axis_of(std::string_view flag) {
  const std::string name = with_underscores(flag);
  for (const ArgSpec& spec : job_flags()) {
    if (std::ranges::find(kAxes, spec.name) == kAxes.end()) {
      continue;
    }
    const std::vector<std::string_view> aliases = split_blanks(spec.aliases);
    if (spec.name == name || std::ranges::find(aliases, name) != aliases.end()) {
      return &spec;
    }
  }
  return nullptr;
}

/// A flag's values, each checked as the flag of a single job would be.
using Given = std::map<std::string, std::vector<std::string>, std::less<>>;

void check_value(const ArgSpec& spec, std::string_view value) {
  const std::array<ArgSpec, 1> table = {spec};
  ArgValues(ArgTable{table}).set(spec.name, value);
}

std::vector<std::int64_t> numbers(const Given& given, std::string_view name) {
  std::vector<std::int64_t> result;
  if (const auto found = given.find(name); found != given.end()) {
    for (const std::string& value : found->second) {
      result.push_back(to_int(value).value_or(0));
    }
  }
  std::ranges::sort(result);
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

std::vector<std::string> texts(const Given& given, std::string_view name) {
  const auto found = given.find(name);
  return found == given.end() ? std::vector<std::string>() : found->second;
}

std::int64_t one_number(const Given& given, std::string_view name) {
  const std::vector<std::int64_t> values = numbers(given, name);
  if (values.size() > 1) {
    throw Error("several values").field(fmt::format("--{}", name)).expected("one");
  }
  return values.empty() ? 0 : values.front();
}

Recompute recompute_of(std::string_view text) {
  return text == "full"        ? Recompute::kFull
         : text == "selective" ? Recompute::kSelective
                               : Recompute::kNone;
}

ContextComm context_of(std::string_view text) {
  return text == "allgather" || text == "all_gather" ? ContextComm::kAllGather
         : text == "alltoall" || text == "a2a"       ? ContextComm::kAllToAll
                                                     : ContextComm::kRing;
}

/// Splits a command line into the values of axes and all other words.
std::pair<Given, std::vector<std::string>> sort_words(std::span<const std::string> words) {
  Given given;
  std::map<std::string_view, std::pair<std::string, std::string>>
      named;  // as last called, and text
  std::vector<std::string> rest;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const std::size_t equals = word.find('=');
    const ArgSpec* axis =
        word.starts_with("--") ? axis_of(std::string_view(word).substr(2, equals - 2)) : nullptr;
    if (axis == nullptr) {
      rest.push_back(word);
      continue;
    }
    if (axis->kind == ArgKind::kSwitch) {
      given[std::string(axis->name)] = {"on"};
      continue;
    }
    std::string text;
    if (equals != std::string::npos) {
      text = word.substr(equals + 1);
    } else if (i + 1 < words.size()) {
      text = words[++i];
    } else {
      throw Error("a value is missing").field(word).expected("a value, or several with commas");
    }
    std::vector<std::string> values;
    for (const std::string_view value : split(text, ',')) {
      check_value(*axis, trim(value));
      values.emplace_back(trim(value));
    }
    const std::string name = word.substr(0, equals);
    const auto [earlier, fresh] = named.emplace(axis->name, std::pair(name, text));
    if (!fresh) {
      check_names(axis->name, name, text, earlier->second.first, earlier->second.second);
      earlier->second = {name, text};
    }
    given[std::string(axis->name)] = std::move(values);
  }
  return {std::move(given), std::move(rest)};
}

}  // namespace

bool is_axis(std::string_view flag) { return axis_of(flag) != nullptr; }

void check_axis(std::string_view flag, std::string_view value) {
  const ArgSpec* axis = axis_of(flag);
  if (axis != nullptr && axis->kind != ArgKind::kSwitch) {
    check_value(*axis, value);
  }
}

std::span<const std::string_view> forbidden_axes() { return kForbidden; }

JobWords take_axes(std::span<const std::string> words, std::span<const std::string> forbidden) {
  auto [given, rest] = sort_words(words);
  JobWords result;
  result.rest = std::move(rest);
  check_job_words(result.rest);  // a mistyped flag is told before one that is missing for it
  PlanAxes& axes = result.axes;
  if (given.contains("use_distributed_optimizer")) {
    given["zero"] = {"1"};
  }
  for (const std::string& name : forbidden) {
    const std::string axis = name == "sp" ? "sequence_parallel" : name;
    if (name == "uneven") {
      axes.even_stages = true;
      for (const std::string_view split :
           {"first_stage_layers", "last_stage_layers", "stage_layers"}) {
        if (given.contains(split)) {
          throw Error("this gives stages their layers, and --no-uneven forbids it")
              .field(fmt::format("--{}", split));
        }
      }
      continue;
    }
    const std::string off = name == "zero" ? "0" : name == "recompute" ? "none" : "1";
    const auto found = given.find(axis);
    if (found != given.end() && (name == "sp" || found->second != std::vector{off})) {
      throw Error(fmt::format("{} is asked for, and --no-{} forbids it",
                              fmt::format("--{}", name == "sp" ? "sp" : axis), name))
          .field(fmt::format("--no-{}", name))
          .expected("one of the two");
    }
    if (name == "sp") {
      axes.sequence_parallel = {false};
    } else {
      given[axis] = {off};
    }
  }
  axes.gpus = numbers(given, "gpus");
  if (axes.gpus.empty()) {
    throw Error("the number of GPUs is missing")
        .field("--gpus")
        .expected("a whole number, or several to choose from: --gpus 256,512");
  }
  result.rest.insert(result.rest.end(), {"--gpus", std::to_string(axes.gpus.back())});
  axes.tp = numbers(given, "tp");
  axes.cp = numbers(given, "cp");
  axes.pp = numbers(given, "pp");
  axes.vpp = numbers(given, "vpp");
  axes.ep = numbers(given, "ep");
  axes.expert_tp = numbers(given, "etp");
  axes.micro_batch = numbers(given, "mbs");
  axes.hsdp_replicas = numbers(given, "hsdp_replicas");
  for (const std::int64_t stage : numbers(given, "zero")) {
    axes.sharding.push_back(static_cast<Sharding>(stage));
  }
  for (const std::string& word : texts(given, "recompute")) {
    axes.recompute.push_back(recompute_of(word));
  }
  for (const std::string& word : texts(given, "context_comm")) {
    axes.context_comm.push_back(context_of(word));
  }
  if (given.contains("sequence_parallel")) {
    axes.sequence_parallel = {true};
  }
  axes.rank_order = texts(given, "rank_order");
  axes.schedule = texts(given, "schedule");
  axes.first_stage_layers = one_number(given, "first_stage_layers");
  axes.last_stage_layers = one_number(given, "last_stage_layers");
  for (const std::string& count : texts(given, "stage_layers")) {
    axes.stage_layers.push_back(to_int(count).value_or(0));
  }
  return result;
}

}  // namespace lockstep

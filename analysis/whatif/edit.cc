#include "analysis/whatif/edit.h"

#include <algorithm>
#include <array>
#include <atomic>

#include <fmt/format.h>

#include "analysis/whatif/values.h"
#include "base/error.h"
#include "base/text.h"

namespace lockstep::whatif {
namespace {

constexpr std::array<std::string_view, 9> kKeys = {"stage", "dp_rank", "tp_rank", "cp_rank", "rank",
                                                   "step",  "mc",      "mb_id",   "seq_id"};
constexpr std::array<std::string_view, 5> kKinds = {"compute", "pp-comm", "tp-comm", "dp-comm",
                                                    "all"};

bool of_kind(TraceOp type, std::string_view kind) {
  const bool dp = type == TraceOp::kParamsAllGather || type == TraceOp::kGradsReduceScatter ||
                  type == TraceOp::kSeparateGradsAllReduce;
  return kind == "all" || (kind == "compute" && is_compute(type)) ||
         (kind == "pp-comm" && is_p2p(type)) || (kind == "tp-comm" && is_peer_comm(type)) ||
         (kind == "dp-comm" && dp);
}

std::vector<TraceOp> types_named(std::string_view name) {
  if (const auto type = trace_op_named(name)) {
    return {*type};
  }
  std::vector<TraceOp> out;
  if (std::find(kKinds.begin(), kKinds.end(), name) != kKinds.end()) {
    for (std::size_t t = 0; t < kTraceOpCount; ++t) {
      if (of_kind(static_cast<TraceOp>(t), name)) {
        out.push_back(static_cast<TraceOp>(t));
      }
    }
    return out;
  }
  std::vector<std::string_view> known(trace_op_names().begin(), trace_op_names().end());
  known.insert(known.end(), kKinds.begin(), kKinds.end());
  const std::string_view near = closest(name, known);
  throw Error(fmt::format("unknown operations '{}'", printable(name)))
      .expected(join(known, ", "))
      .hint(near.empty() ? "" : fmt::format("did you mean {}?", near));
}

EditRule::Condition condition_of(std::string_view text) {
  const std::size_t equals = text.find('=');
  const std::string_view key = trim(text.substr(0, equals));
  if (equals == std::string_view::npos ||
      std::find(kKeys.begin(), kKeys.end(), key) == kKeys.end()) {
    throw Error(fmt::format("'{}' is no condition", printable(text)))
        .expected(fmt::format("{} = a number or a range such as 2-5", join(kKeys, ", ")));
  }
  const std::string_view value = trim(text.substr(equals + 1));
  const std::size_t dash = value.find('-', 1);
  const auto first = to_int(value.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : to_int(value.substr(dash + 1));
  if (!first || !last || *first > *last) {
    throw Error(fmt::format("'{}' is no number and no range", printable(value)))
        .expected("such as 3 or 2-5");
  }
  return {std::string(key), *first, *last};
}

std::int64_t value_of(const EditRule::Condition& c, const OpTable& table, const OpNode& node,
                      std::size_t lane) {
  const std::size_t width = table.width();
  const Place place = place_of(table, lane % width);
  if (c.key == "dp_rank") {
    return place.dp_rank;
  }
  if (c.key == "tp_rank") {
    return place.tp_rank;
  }
  if (c.key == "cp_rank") {
    return place.cp_rank;
  }
  if (c.key == "rank") {
    return table.rank(node.stage, lane % width);
  }
  if (c.key == "step") {
    return table.steps[lane / width];
  }
  return c.key == "stage"   ? node.stage
         : c.key == "mc"    ? node.chunk
         : c.key == "mb_id" ? node.microbatch
                            : node.seq;
}

}  // namespace

EditRule parse_edit(std::string_view text) {
  EditRule rule{.text = std::string(trim(text))};
  const std::size_t bracket = text.find('[');
  const std::size_t close = bracket == std::string_view::npos ? 0 : text.find(']', bracket);
  const std::size_t equals = close == std::string_view::npos ? close : text.find('=', close);
  if (close == std::string_view::npos || equals == std::string_view::npos) {
    throw Error(fmt::format("'{}' is no edit", printable(text)))
        .expected("such as 'forward-compute[stage=3] *= 0.8' or 'pp-comm = 0'");
  }
  rule.scale = equals > 0 && text[equals - 1] == '*';
  const std::size_t end = rule.scale ? equals - 1 : equals;
  rule.types = types_named(trim(text.substr(0, std::min(bracket, end))));
  if (bracket != std::string_view::npos) {
    if (!trim(text.substr(close + 1, end - close - 1)).empty()) {
      throw Error(fmt::format("'{}' is no edit", printable(text)))
          .expected("nothing between ']' and '='");
    }
    for (const std::string_view part : split(text.substr(bracket + 1, close - bracket - 1), ',')) {
      EditRule::Condition condition = condition_of(part);
      if (std::ranges::any_of(rule.conditions, [&](const EditRule::Condition& other) {
            return other.key == condition.key;
          })) {
        throw Error(fmt::format("'{}' is given twice", condition.key))
            .expected("each key once; a range such as 2-5 takes several in a row");
      }
      rule.conditions.push_back(std::move(condition));
    }
  }
  const std::string_view number = trim(text.substr(equals + 1));
  rule.ideal = number == "ideal" && !rule.scale;
  if (rule.ideal) {
    return rule;
  }
  const auto value = to_double(number);
  if (!value || *value < 0) {
    throw Error(fmt::format("'{}' is no such number", printable(number)))
        .expected(rule.scale ? "a factor, 0 or more" : "seconds, 0 or more, or 'ideal'");
  }
  rule.value = *value;
  return rule;
}

StepTimes simulate_edits(const Scene& scene, const std::vector<EditRule>& rules,
                         std::vector<std::int64_t>* matched) {
  std::vector<std::atomic<std::int64_t>> counts(rules.size());
  const Values values(scene);
  const std::size_t width = scene.table.width();
  StepTimes times =
      simulate_edited(scene, [&](std::uint32_t n, std::size_t first, std::span<double> out) {
        const OpNode& node = scene.table.nodes[n];
        for (std::size_t r = 0; r < rules.size(); ++r) {
          const EditRule& rule = rules[r];
          if (std::find(rule.types.begin(), rule.types.end(), node.type) == rule.types.end()) {
            continue;
          }
          for (std::size_t i = 0; i < out.size(); ++i) {
            const bool meant =
                std::all_of(rule.conditions.begin(), rule.conditions.end(), [&](const auto& c) {
                  const std::int64_t value = value_of(c, scene.table, node, first + i);
                  return c.first <= value && value <= c.last;
                });
            if (meant) {
              out[i] = rule.ideal   ? values.ideal(n, (first + i) / width)
                       : rule.scale ? out[i] * rule.value
                                    : rule.value;
              ++counts[r];
            }
          }
        }
      });
  if (matched != nullptr) {
    matched->assign(counts.begin(), counts.end());
  }
  return times;
}

}  // namespace lockstep::whatif

#include "analysis/compare/steps.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/json.h"
#include "base/text.h"

namespace lockstep::compare {
namespace {

using Sequence = std::vector<double>;  // of one operation on one rank, in time
struct Ops {
  OpKind kind = OpKind::kCompute;
  std::map<std::int32_t, Sequence> begin_s, duration_s;  // by rank
};

struct Run {
  std::map<std::string, Ops> ops;
  std::set<std::int32_t> ranks;
};

Run run_of(const std::vector<PhysicalLog>& logs) {
  Run run;
  double origin = INFINITY;
  std::vector<double> begins;
  for (const PhysicalLog& log : logs) {
    const auto begin = log.facts.find("begin_s");
    begins.push_back(begin == log.facts.end() ? 0 : to_double(begin->second).value_or(0));
    origin = std::min(origin, begins.back());
  }
  for (std::size_t i = 0; i < logs.size(); ++i) {
    for (const OpRow& row : logs[i].ops) {
      if (row.kind == OpKind::kHost) {
        continue;
      }
      Ops& ops = run.ops[logs[i].names[static_cast<std::size_t>(row.name)]];
      ops.kind = row.kind;
      ops.begin_s[row.rank].push_back(begins[i] - origin + row.begin_s);
      ops.duration_s[row.rank].push_back(row.duration_s);
      run.ranks.insert(row.rank);
    }
  }
  return run;
}

double sum(const Sequence& values) {
  double total = 0;
  for (const double value : values) {
    total += value;
  }
  return total;
}

double total_of(const Ops& ops) {
  double total = 0;
  for (const auto& [rank, durations] : ops.duration_s) {
    total += sum(durations);
  }
  return total;
}

/// Seconds that the ranks wait for the last of them to begin.
double waiting(const Ops& ops) {
  const std::size_t count = ops.begin_s.begin()->second.size();
  for (const auto& [rank, begins] : ops.begin_s) {
    if (begins.size() != count) {
      return 0;  // not the same collective on every rank
    }
  }
  double total = 0;
  for (std::size_t k = 0; k < count; ++k) {
    double last = -INFINITY;
    for (const auto& [rank, begins] : ops.begin_s) {
      last = std::max(last, begins[k]);
    }
    for (const auto& [rank, begins] : ops.begin_s) {
      total += std::clamp(last - begins[k], 0.0, ops.duration_s.at(rank)[k]);
    }
  }
  return total;
}

StepSplit split_of(const Run& run) {
  StepSplit split;
  const double ranks = std::max<double>(1, static_cast<double>(run.ranks.size()));
  for (const auto& [name, ops] : run.ops) {
    const double total = total_of(ops) / ranks;
    if (ops.kind == OpKind::kCommunication) {
      const double wait = waiting(ops) / ranks;
      split.wait_s += wait;
      split.transfer_s += total - wait;
    } else {
      (ops.kind == OpKind::kCopy ? split.copy_s : split.compute_s) += total;
    }
  }
  return split;
}

std::size_t count_of(const Ops& ops) {
  std::size_t count = 0;
  for (const auto& [rank, durations] : ops.duration_s) {
    count += durations.size();
  }
  return count;
}

}  // namespace

StepComparison compare_steps(const std::vector<PhysicalLog>& first,
                             const std::vector<PhysicalLog>& second) {
  const Run a = run_of(first), b = run_of(second);
  StepComparison result;
  result.first_ranks = a.ranks.size();
  result.second_ranks = b.ranks.size();
  result.first = split_of(a);
  result.second = split_of(b);
  std::set<std::string> names;
  for (const Run* run : {&a, &b}) {
    for (const auto& [name, ops] : run->ops) {
      names.insert(name);
    }
  }
  for (const std::string& name : names) {
    OpDifference difference;
    difference.name = name;
    const auto in_a = a.ops.find(name), in_b = b.ops.find(name);
    if (in_a != a.ops.end()) {
      difference.first_count = count_of(in_a->second);
      difference.first_s =
          total_of(in_a->second) / static_cast<double>(std::max<std::size_t>(1, a.ranks.size()));
    }
    if (in_b != b.ops.end()) {
      difference.second_count = count_of(in_b->second);
      difference.second_s =
          total_of(in_b->second) / static_cast<double>(std::max<std::size_t>(1, b.ranks.size()));
    }
    std::size_t both = 0;
    if (in_a != a.ops.end() && in_b != b.ops.end()) {
      for (const auto& [rank, durations] : in_a->second.duration_s) {
        const auto other = in_b->second.duration_s.find(rank);
        both += other == in_b->second.duration_s.end()
                    ? 0
                    : std::min(durations.size(), other->second.size());
      }
    }
    result.aligned += both;
    result.left += difference.first_count + difference.second_count - 2 * both;
    result.ops.push_back(std::move(difference));
  }
  std::ranges::stable_sort(result.ops, [](const OpDifference& x, const OpDifference& y) {
    return std::abs(x.second_s - x.first_s) > std::abs(y.second_s - y.first_s);
  });
  return result;
}

std::string steps_table(const StepComparison& c) {
  std::string text = fmt::format(
      "{} and {} ranks; {} operations have a counterpart, {} have none; seconds a rank\n"
      "{:<12} {:>12} {:>12} {:>12}\n",
      c.first_ranks, c.second_ranks, c.aligned, c.left, "", "first", "second", "difference");
  const auto line = [&](const char* what, double first, double second) {
    text +=
        fmt::format("{:<12} {:>12.6f} {:>12.6f} {:>+12.6f}\n", what, first, second, second - first);
  };
  line("compute", c.first.compute_s, c.second.compute_s);
  line("wait", c.first.wait_s, c.second.wait_s);
  line("transfer", c.first.transfer_s, c.second.transfer_s);
  line("copy", c.first.copy_s, c.second.copy_s);
  text += "largest differences:\n";
  for (std::size_t i = 0; i < std::min<std::size_t>(12, c.ops.size()); ++i) {
    const OpDifference& op = c.ops[i];
    text += fmt::format("{:>+12.6f}  {} -> {} times  {}\n", op.second_s - op.first_s,
                        op.first_count, op.second_count, printable(op.name, 60));
  }
  return text;
}

std::string steps_json(const StepComparison& c) {
  const auto split = [](const StepSplit& s) {
    return Json{{"compute_s", s.compute_s},
                {"wait_s", s.wait_s},
                {"transfer_s", s.transfer_s},
                {"copy_s", s.copy_s}};
  };
  Json json;
  json["schema"] = "lockstep-compare-steps/1";
  json["ranks"] = {c.first_ranks, c.second_ranks};
  json["first"] = split(c.first);
  json["second"] = split(c.second);
  json["aligned"] = c.aligned;
  json["left"] = c.left;
  json["ops"] = Json::array();
  for (const OpDifference& op : c.ops) {
    json["ops"].push_back({{"name", printable(op.name, 200)},
                           {"first_count", op.first_count},
                           {"second_count", op.second_count},
                           {"first_s", op.first_s},
                           {"second_s", op.second_s}});
  }
  return to_text(json);
}

}  // namespace lockstep::compare

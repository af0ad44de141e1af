#include "analysis/compare/steps.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "analysis/compare/errors.h"
#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

namespace lockstep::compare {
namespace {

struct Occurrence {
  OpPlace place;
  std::int32_t rank = 0;
  double duration_s = 0, wait_s = 0;
};
using Ops = std::vector<Occurrence>;  // in time

/// What is compared with the same of the other run. A table of layers calls the computation and the
/// collective of a phase alike.
struct OpKey {
  std::string name;
  OpKind kind = OpKind::kCompute;

  auto operator<=>(const OpKey&) const = default;
};

struct Run {
  const std::vector<PhysicalLog>* logs = nullptr;
  std::map<OpKey, Ops> ops;
  std::set<std::int32_t> ranks;
  double rank_steps = 1;  ///< that sums are divided by
  StepTimes times;
  std::vector<std::string> notes;
};

/// The steps that the logs count, and what one takes: of the ranks' times of a step the longest.
/// Logs of steps alone, such as MLPerf's, are a run each.
StepTimes times_of(const std::vector<PhysicalLog>& logs, const JoinedRun& joined) {
  std::map<std::tuple<std::size_t, std::int32_t, std::int64_t>, double> times;
  for (std::size_t i = 0; i < logs.size(); ++i) {
    for (const StepRow& step : logs[i].steps) {
      double& time = times[{logs[i].ops.empty() ? i + 1 : 0, step.run, step.step}];
      time = std::max(time, step.time_s);
    }
  }
  StepTimes result;
  result.steps = std::max<std::size_t>(1, times.size());
  std::vector<double> known;
  for (const auto& [step, time] : times) {
    if (time > 0) {
      known.push_back(time);
    }
  }
  result.step_s = median(std::move(known));
  if (result.step_s == 0) {
    double begin = INFINITY, end = -INFINITY;
    for (std::size_t i = 0; i < logs.size(); ++i) {
      for (const OpRow& op : logs[i].ops) {
        begin = std::min(begin, joined.zero_s[i] + op.begin_s);
        end = std::max(end, joined.zero_s[i] + op.begin_s + op.duration_s);
      }
    }
    result.step_s = std::max(0.0, end - begin) / static_cast<double>(result.steps);
  }
  return result;
}

/// What of an operation's ranks each one waits for the last. Of what none leaves before all have
/// come, that is how much longer than the last one it took, whatever clocks of several logs say.
void wait_together(const std::vector<PhysicalLog>& logs, const JoinedRun& run,
                   const JoinedOp& joined, std::vector<std::vector<double>>& waits) {
  const auto op = [&](const OpPlace& place) -> const OpRow& {
    return logs[place.log].ops[place.op];
  };
  const bool one_clock = std::ranges::all_of(joined.members, [&](const OpPlace& place) {
    return place.log == joined.members.front().log;
  });
  double last = -INFINITY, shortest = INFINITY;
  for (const OpPlace& place : joined.members) {
    last = std::max(last, run.zero_s[place.log] + op(place).begin_s);
    shortest = std::min(shortest, op(place).duration_s);
  }
  for (const OpPlace& place : joined.members) {
    const double late = last - (run.zero_s[place.log] + op(place).begin_s);
    const double longer = op(place).duration_s - shortest;
    waits[place.log][place.op] = std::clamp(joined.everyone_waits && !one_clock ? longer : late,
                                            0.0, std::max(0.0, op(place).duration_s));
  }
}

/// Seconds that each operation waits for the last of its ranks to begin, by log and operation: as
/// the log itself tells, else as its ranks do together.
std::vector<std::vector<double>> waits_of(const std::vector<PhysicalLog>& logs,
                                          const JoinedRun& run) {
  std::vector<std::vector<double>> waits;
  waits.reserve(logs.size());
  for (const PhysicalLog& log : logs) {
    waits.emplace_back(log.ops.size());
  }
  for (const JoinedOp& joined : run.joined) {
    wait_together(logs, run, joined, waits);
  }
  for (std::size_t i = 0; i < logs.size(); ++i) {
    for (std::size_t k = 0; k < logs[i].ops.size(); ++k) {
      const double told = logs[i].ops[k].waited_s;
      waits[i][k] = told >= 0 ? told : waits[i][k];
    }
  }
  return waits;
}

Run run_of(const std::vector<PhysicalLog>& logs) {
  Run run;
  run.logs = &logs;
  JoinedRun joined = join_ranks(logs);
  const auto waits = waits_of(logs, joined);
  std::size_t outside = 0;
  for (std::size_t i = 0; i < logs.size(); ++i) {
    const bool placed =
        std::ranges::any_of(logs[i].ops, [](const OpRow& row) { return row.step >= 0; });
    for (std::size_t k = 0; k < logs[i].ops.size(); ++k) {
      const OpRow& row = logs[i].ops[k];
      if (row.kind == OpKind::kHost) {
        continue;
      }
      if (placed && row.step < 0) {
        ++outside;
        continue;
      }
      Ops& ops = run.ops[{logs[i].names[static_cast<std::size_t>(row.name)], row.kind}];
      ops.push_back({{i, k}, row.rank, row.duration_s, waits[i][k]});
      run.ranks.insert(row.rank);
    }
  }
  run.times = times_of(logs, joined);
  run.rank_steps = static_cast<double>(std::max<std::size_t>(1, joined.rank_steps));
  run.notes = std::move(joined.notes);
  std::int64_t world = 0;
  for (const PhysicalLog& log : logs) {
    const auto told = log.facts.find("world_size");
    world = std::max(world, told == log.facts.end() ? 0 : to_int(told->second).value_or(0));
  }
  if (std::cmp_greater(world, run.ranks.size())) {
    run.notes.push_back(
        fmt::format("its logs show {} of {} ranks: what these wait for the others "
                    "counts as transfer, and the step is theirs",
                    run.ranks.size(), world));
  }
  if (outside > 0) {
    run.notes.push_back(fmt::format(
        "{} operations outside of the steps that the logs mark were left out", outside));
  }
  if (joined.alone > 0 && run.ranks.size() > 1) {
    run.notes.push_back(
        fmt::format("{} communications are not known to be of several ranks; all of their time "
                    "counts as transfer",
                    joined.alone));
  }
  return run;
}

const char* word_of(OpKind kind) {
  switch (kind) {
    case OpKind::kCompute:
      return "compute";
    case OpKind::kCommunication:
      return "communication";
    case OpKind::kCopy:
      return "copy";
    case OpKind::kWait:
      return "wait";
    case OpKind::kHost:
      return "host";
    case OpKind::kWhole:
      break;
  }
  return "whole";
}

double seconds_of(const Ops& ops) {
  double total = 0;
  for (const Occurrence& occurrence : ops) {
    total += occurrence.duration_s;
  }
  return total;
}

StepSplit split_of(const Run& run) {
  StepSplit split;
  const double parts = run.rank_steps;
  for (const auto& [key, ops] : run.ops) {
    for (const Occurrence& one : ops) {
      switch (key.kind) {
        case OpKind::kCompute:
          split.compute_s += one.duration_s / parts;
          break;
        case OpKind::kCommunication:
          split.wait_s += one.wait_s / parts;
          split.transfer_s += (one.duration_s - one.wait_s) / parts;
          break;
        case OpKind::kCopy:
          split.copy_s += one.duration_s / parts;
          break;
        case OpKind::kWait:
          split.wait_s += one.duration_s / parts;
          break;
        case OpKind::kHost:
        case OpKind::kWhole:
          break;
      }
    }
  }
  return split;
}

/// "allreduce of 33554432 bytes": what a collective is called that has no common name.
std::string plain_name(const OpRow& op) {
  return op.bytes > 0 ? fmt::format("{} of {} bytes", name_of(op.op), op.bytes)
                      : std::string(name_of(op.op));
}

/// The plain names of communications whose own name the other run does not have.
std::set<std::string> plain_names(const Run& run, const Run& other) {
  std::set<std::string> names;
  for (const auto& [key, ops] : run.ops) {
    if (key.kind == OpKind::kCommunication && !other.ops.contains(key)) {
      for (const Occurrence& one : ops) {
        const OpRow& row = (*run.logs)[one.place.log].ops[one.place.op];
        if (row.op != CommType::kNone) {
          names.insert(plain_name(row));
        }
      }
    }
  }
  return names;
}

/// Calls communications whose name the other run does not have by plain names that both have.
void rename(Run& run, const std::set<std::string>& missing, const std::set<std::string>& common) {
  for (const std::string& name : missing) {
    const auto found = run.ops.find({name, OpKind::kCommunication});
    const Ops ops = std::move(found->second);
    run.ops.erase(found);
    for (const Occurrence& one : ops) {
      const OpRow& row = (*run.logs)[one.place.log].ops[one.place.op];
      const std::string plain = row.op == CommType::kNone ? name : plain_name(row);
      run.ops[{common.contains(plain) ? plain : name, OpKind::kCommunication}].push_back(one);
    }
  }
}

void name_alike(Run& a, Run& b) {
  const std::set<std::string> in_a = plain_names(a, b), in_b = plain_names(b, a);
  std::set<std::string> common;
  std::ranges::set_intersection(in_a, in_b, std::inserter(common, common.end()));
  const auto missing = [](const Run& run, const Run& other) {
    std::set<std::string> names;
    for (const auto& [key, ops] : run.ops) {
      if (key.kind == OpKind::kCommunication && !other.ops.contains(key)) {
        names.insert(key.name);
      }
    }
    return names;
  };
  const std::set<std::string> only_a = missing(a, b), only_b = missing(b, a);
  rename(a, only_a, common);
  rename(b, only_b, common);
}

std::map<std::int32_t, std::size_t> counts_of(const Ops& ops) {
  std::map<std::int32_t, std::size_t> counts;
  for (const Occurrence& one : ops) {
    ++counts[one.rank];
  }
  return counts;
}

void add_notes(const char* which, const Run& run, const Run& other,
               std::vector<std::string>& notes) {
  for (const std::string& note : run.notes) {
    notes.push_back(fmt::format("{} run: {}", which, note));
  }
  const bool marked =
      std::ranges::any_of(*run.logs, [](const auto& l) { return !l.steps.empty(); });
  if (!marked && other.times.steps > 1) {
    notes.push_back(fmt::format("{} run: its logs mark no steps: taken to be one step", which));
  }
}

}  // namespace

StepComparison compare_steps(const std::vector<PhysicalLog>& first,
                             const std::vector<PhysicalLog>& second) {
  Run a = run_of(first), b = run_of(second);
  for (const Run* run : {&a, &b}) {
    if (run->ops.empty() && !(run->times.step_s > 0)) {
      throw Error("the logs of a run hold neither operations nor times of steps")
          .at(run->logs->empty() ? "" : run->logs->front().file)
          .expected("traces of a step, or logs of steps' times");
    }
  }
  StepComparison result;
  result.first_ranks = a.ranks.size();
  result.second_ranks = b.ranks.size();
  result.first_times = a.times;
  result.second_times = b.times;
  result.first = split_of(a);
  result.second = split_of(b);
  add_notes("first", a, b, result.notes);
  add_notes("second", b, a, result.notes);
  name_alike(a, b);
  std::set<OpKey> keys;
  std::map<std::string, std::set<OpKind>> kinds;
  for (const Run* run : {&a, &b}) {
    for (const auto& [key, ops] : run->ops) {
      keys.insert(key);
      kinds[key.name].insert(key.kind);
    }
  }
  const auto share = [](const Run& run, const Ops& ops) {
    return seconds_of(ops) / run.rank_steps;
  };
  for (const OpKey& key : keys) {
    OpDifference difference;
    difference.name = kinds[key.name].size() == 1
                          ? key.name
                          : fmt::format("{} ({})", key.name, word_of(key.kind));
    const auto in_a = a.ops.find(key), in_b = b.ops.find(key);
    std::map<std::int32_t, std::size_t> counts;
    if (in_a != a.ops.end()) {
      difference.first_count = in_a->second.size();
      difference.first_s = share(a, in_a->second);
      counts = counts_of(in_a->second);
    }
    std::size_t both = 0;
    if (in_b != b.ops.end()) {
      difference.second_count = in_b->second.size();
      difference.second_s = share(b, in_b->second);
      for (const auto& [rank, count] : counts_of(in_b->second)) {
        const auto other = counts.find(rank);
        both += other == counts.end() ? 0 : std::min(count, other->second);
      }
    }
    result.aligned += both;
    result.left += difference.first_count + difference.second_count - 2 * both;
    result.ops.push_back(std::move(difference));
  }
  if (result.aligned == 0 && !result.ops.empty()) {
    result.notes.push_back("no operation of one run has a counterpart in the other");
  }
  std::ranges::stable_sort(result.ops, [](const OpDifference& x, const OpDifference& y) {
    return std::abs(x.second_s - x.first_s) > std::abs(y.second_s - y.first_s);
  });
  return result;
}

std::string steps_table(const StepComparison& c) {
  const bool several = c.first_times.steps > 1 || c.second_times.steps > 1;
  std::string text;
  if (!c.ops.empty()) {
    text += fmt::format("{} and {} ranks; {} operations have a counterpart, {} have none; ",
                        c.first_ranks, c.second_ranks, c.aligned, c.left);
  }
  if (several) {
    text += fmt::format("{} and {} steps; ", c.first_times.steps, c.second_times.steps);
  }
  text += fmt::format("seconds {}\n{:<12} {:>12} {:>12} {:>12}\n",
                      c.ops.empty() ? "a step"
                      : several     ? "a rank and step"
                                    : "a rank",
                      "", "first", "second", "difference");
  std::string notes;
  const auto line = [&](const char* what, double first, double second) {
    text +=
        fmt::format("{:<12} {:>12.6f} {:>12.6f} {:>+12.6f}\n", what, first, second, second - first);
  };
  line("step", c.first_times.step_s, c.second_times.step_s);
  for (const std::string& note : c.notes) {
    notes += "note: " + note + "\n";
  }
  if (c.ops.empty()) {
    return text + notes;
  }
  line("compute", c.first.compute_s, c.second.compute_s);
  line("wait", c.first.wait_s, c.second.wait_s);
  line("transfer", c.first.transfer_s, c.second.transfer_s);
  line("copy", c.first.copy_s, c.second.copy_s);
  text += notes + "largest differences:\n";
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
  json["steps"] = {c.first_times.steps, c.second_times.steps};
  json["step_s"] = {c.first_times.step_s, c.second_times.step_s};
  const std::optional<double> difference = c.difference();
  json["difference"] = difference ? Json(*difference) : Json();
  json["notes"] = c.notes;
  json["warnings"] = Json::array();
  for (const Warnings::Entry& entry : c.warnings.entries()) {
    json["warnings"].push_back(entry.text);
  }
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

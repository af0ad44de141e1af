#include "analysis/compare/join_ranks.h"

#include <algorithm>
#include <cmath>
#include <compare>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "analysis/compare/common_ends.h"
#include "analysis/compare/errors.h"
#include "base/error.h"
#include "base/text.h"

namespace lockstep::compare {
namespace {

constexpr double kClocksAgree = 20e-6;

using Ranks = std::map<std::int32_t, std::vector<OpPlace>>;  // each rank's, in time

/// Like communications, which follow each other on each rank.
struct Sequence {
  std::string group;
  std::int32_t size = 0;  ///< of the group; 0: not known
  std::int64_t step = -1;
  CommType op = CommType::kNone;
  std::string name;  ///< where the operation does not tell

  auto operator<=>(const Sequence&) const = default;
};
using Parts = std::vector<std::pair<const Sequence*, const Ranks*>>;

const OpRow& row_of(const std::vector<PhysicalLog>& logs, const OpPlace& place) {
  return logs[place.log].ops[place.op];
}

/// Where the logs' own zeros lie by their own clocks, since the earliest. A log that was cut off
/// has lost its base, which stands at the end: it is that of the others.
std::vector<double> zeros_of(const std::vector<PhysicalLog>& logs) {
  const auto number = [](const PhysicalLog& log, const char* key) {
    const auto fact = log.facts.find(key);
    return fact == log.facts.end() ? std::nullopt : to_double(fact->second);
  };
  double first = INFINITY, first_base = INFINITY;
  for (const PhysicalLog& log : logs) {
    first_base = std::min(first_base, number(log, "baseTimeNanoseconds").value_or(INFINITY));
  }
  std::vector<double> zeros;
  for (const PhysicalLog& log : logs) {
    const std::optional<double> base = number(log, "baseTimeNanoseconds");
    zeros.push_back((base ? *base - first_base : 0) * 1e-9 + number(log, "begin_s").value_or(0));
    first = std::min(first, zeros.back());
  }
  for (double& zero : zeros) {
    zero -= first;
  }
  return zeros;
}

/// The pairs of a rank and a step that a log holds operations of: by these where they are placed in
/// steps, else of all steps that it marks, or of one, -1.
std::set<std::pair<std::int32_t, std::int64_t>> rank_steps_of(const PhysicalLog& log) {
  std::set<std::pair<std::int32_t, std::int64_t>> placed, ranks, all;
  for (const OpRow& op : log.ops) {
    (op.step >= 0 ? placed : ranks).emplace(op.rank, op.step);
  }
  for (const auto& [rank, none] : ranks) {
    for (const StepRow& step : log.steps) {
      all.emplace(rank, step.step);
    }
  }
  return !placed.empty() ? placed : !all.empty() ? all : ranks;
}

/// How many there are in all logs. ERRORS: two logs have one in common, or one of them does not
/// tell the steps of a rank of the other's.
std::size_t rank_steps_of(const std::vector<PhysicalLog>& logs) {
  std::map<std::int32_t, std::map<std::int64_t, const PhysicalLog*>> known;
  std::size_t count = 0;
  for (const PhysicalLog& log : logs) {
    for (const auto& [rank, step] : rank_steps_of(log)) {
      std::map<std::int64_t, const PhysicalLog*>& steps = known[rank];
      const auto same = step < 0 ? steps.begin() : steps.find(step);
      const auto untold = steps.find(-1);
      if (const auto other = same != steps.end() ? same : untold; other != steps.end()) {
        throw Error(
            fmt::format("this log is of rank {}{}, as {} is", rank,
                        other->first < 0 || step < 0 ? "" : fmt::format(" in step {}", step),
                        printable(other->second->file)))
            .at(log.file)
            .expected("logs of different ranks of one run")
            .hint("a trace that does not tell its rank has that of its name, such as rank_3.json");
      }
      steps.emplace(step, &log);
      ++count;
    }
  }
  return count;
}

/// Whether no rank leaves such a collective before all have come.
bool everyone_waits(CommType op) {
  return op == CommType::kAllReduce || op == CommType::kAllGather ||
         op == CommType::kReduceScatter || op == CommType::kAllToAll || op == CommType::kBarrier;
}

class Joiner {
 public:
  explicit Joiner(const std::vector<PhysicalLog>& logs) : logs_(logs) {}

  JoinedRun run() {
    result_.rank_steps = rank_steps_of(logs_);
    result_.zero_s = zeros_of(logs_);
    collect();
    // Those of all steps together that the same ranks have.
    std::map<std::pair<Sequence, std::vector<std::int32_t>>, Parts> unclear;
    for (const auto& [sequence, ranks] : sequences_) {
      const std::int32_t size = sequence.size;
      const bool of_all = size > 0 && size >= std::max(world_, std::ssize(ranks_));
      const bool told = !sequence.group.empty() && size > 0;
      if (of_all || (told && std::ssize(ranks) <= size)) {
        join(sequence, ranks);
      } else {
        Sequence of_all_steps = sequence;
        of_all_steps.step = -1;
        std::vector<std::int32_t> whose;
        whose.reserve(ranks.size());
        for (const auto& [rank, places] : ranks) {
          whose.push_back(rank);
        }
        const std::pair like(of_all_steps, whose);
        unclear[like].emplace_back(&sequence, &ranks);
      }
    }
    align();
    for (const auto& [like, parts] : unclear) {
      join_by_ends(like.first.size, parts);
    }
    if (uneven_ > 0) {
      result_.notes.push_back(fmt::format(
          "{} communications were left out of the split into waiting and transfer: their ranks do "
          "not have equally many",
          uneven_));
    }
    if (partial_ > 0) {
      result_.notes.push_back(fmt::format(
          "{} communications are of groups of which no log shows all ranks: what they wait for the "
          "others counts as transfer",
          partial_));
    }
    return std::move(result_);
  }

 private:
  void collect() {
    std::map<std::pair<std::size_t, std::int64_t>, std::vector<OpPlace>> told;
    for (std::size_t i = 0; i < logs_.size(); ++i) {
      const PhysicalLog& log = logs_[i];
      const auto world = log.facts.find("world_size");
      world_ = std::max<std::int64_t>(
          world_, world == log.facts.end() ? 0 : to_int(world->second).value_or(0));
      for (std::size_t k = 0; k < log.ops.size(); ++k) {
        const OpRow& op = log.ops[k];
        ranks_.insert(op.rank);
        if (op.kind != OpKind::kCommunication || op.waited_s >= 0) {
          continue;
        }
        if (op.occurrence >= 0) {
          told[{i, op.occurrence}].push_back({i, k});
          continue;
        }
        const auto& members = members_of(log, op.group);
        const std::int32_t size =
            op.group_size > 0 ? op.group_size : static_cast<std::int32_t>(members.size());
        Sequence sequence;
        if (op.group >= 0) {
          const std::string name =
              op.op == CommType::kNone ? log.names[static_cast<std::size_t>(op.name)] : "";
          sequence = {log.groups[static_cast<std::size_t>(op.group)], size, op.step, op.op, name};
        } else {  // a communicator has a stream of its own
          sequence = {"", op.group_size, op.step, CommType::kNone,
                      fmt::format("stream {}", op.stream)};
        }
        sequences_[sequence][op.rank].push_back({i, k});
      }
    }
    for (auto& [key, places] : told) {
      add(std::move(places));
    }
    for (auto& [key, ranks] : sequences_) {
      for (auto& [rank, places] : ranks) {
        std::ranges::stable_sort(places, {}, [&](const OpPlace& place) {
          return result_.zero_s[place.log] + row_of(logs_, place).begin_s;
        });
      }
    }
  }

  void add(std::vector<OpPlace> places) {
    if (places.size() < 2) {
      result_.alone += places.size();
      return;
    }
    const bool waits = everyone_waits(row_of(logs_, places.front()).op);
    result_.joined.push_back({std::move(places), waits});
  }

  void join(const Sequence& sequence, const Ranks& ranks) {
    std::size_t all = 0;
    bool even = true;
    for (const auto& [rank, places] : ranks) {
      all += places.size();
      even = even && places.size() == ranks.begin()->second.size();
    }
    if (!even || ranks.size() < 2) {
      result_.alone += all;
      uneven_ += even ? 0 : all;
      return;
    }
    for (std::size_t k = 0; k < ranks.begin()->second.size(); ++k) {
      std::vector<OpPlace> places;
      for (const auto& [rank, list] : ranks) {
        places.push_back(list[k]);
      }
      // Between more than two ranks a send/receive may be with any of them.
      const bool message = row_of(logs_, ranks.begin()->second[k]).op == CommType::kSendRecv;
      if (message && sequence.size != 2) {
        result_.alone += places.size();
      } else {
        partial_ += std::cmp_less(places.size(), sequence.size) ? places.size() : 0;
        add(std::move(places));
      }
    }
  }

  double end_of(const OpPlace& place) const {
    const OpRow& op = row_of(logs_, place);
    return result_.zero_s[place.log] + op.begin_s + op.duration_s;
  }

  /// `parts`: what is like in each step; who is of one group in one is so in all.
  void join_by_ends(std::int32_t size, const Parts& parts) {
    std::map<std::int32_t, EndsOfRank> ends;
    for (const auto& [sequence, ranks] : parts) {
      for (const auto& [rank, places] : *ranks) {
        EndsOfRank& each = ends[rank];
        each.rank = rank;
        for (const OpPlace& place : places) {
          const OpRow& op = row_of(logs_, place);
          each.ops.push_back({op.op, op.op == CommType::kAllToAll ? -1 : op.bytes, end_of(place),
                              everyone_waits(op.op) ? op.duration_s : -1});
        }
      }
    }
    std::vector<EndsOfRank> all;
    all.reserve(ends.size());
    for (auto& [rank, each] : ends) {
      all.push_back(std::move(each));
    }
    for (const std::vector<std::int32_t>& members : ranks_that_end_together(all, size)) {
      for (const auto& [sequence, ranks] : parts) {
        Ranks group;
        for (const std::int32_t rank : members) {
          if (const auto found = ranks->find(rank); found != ranks->end()) {
            group.emplace(*found);
          }
        }
        Sequence part = *sequence;
        part.size = std::max(size, static_cast<std::int32_t>(group.size()));
        if (!group.empty()) {
          join(part, group);
        }
      }
    }
  }

  /// Sets the clocks of logs over each other, from the first on, by what they have in common.
  void align() {
    std::vector<std::vector<std::size_t>> of_log(logs_.size());
    for (std::size_t i = 0; i < result_.joined.size(); ++i) {
      if (result_.joined[i].everyone_waits) {
        for (const OpPlace& place : result_.joined[i].members) {
          of_log[place.log].push_back(i);
        }
      }
    }
    std::vector<bool> set(logs_.size());
    std::size_t shifted = 0;
    double most = 0;
    for (std::size_t root = 0; root < logs_.size(); ++root) {
      std::deque<std::size_t> next;
      if (!set[root]) {
        set[root] = true;
        next.push_back(root);
      }
      for (; !next.empty(); next.pop_front()) {
        const std::size_t log = next.front();
        for (auto& [other, apart] : apart_from(log, of_log[log], set)) {
          const double shift = median(std::move(apart));
          set[other] = true;
          next.push_back(other);
          if (std::abs(shift) > kClocksAgree) {
            result_.zero_s[other] += shift;
            ++shifted;
            most = std::max(most, std::abs(shift));
          }
        }
      }
    }
    if (shifted > 0) {
      result_.notes.push_back(fmt::format(
          "the clocks of {} of {} logs were set over the others', by up to {:.6f} s, so that "
          "collectives end on all of their ranks together",
          shifted, logs_.size(), most));
    }
  }

  /// How far the ends of collectives lie before this log's, by log that is not yet set.
  std::map<std::size_t, std::vector<double>> apart_from(std::size_t log,
                                                        const std::vector<std::size_t>& common,
                                                        const std::vector<bool>& set) const {
    std::map<std::size_t, std::vector<double>> apart;
    for (const std::size_t i : common) {
      const auto& members = result_.joined[i].members;
      const auto own = std::ranges::find(members, log, &OpPlace::log);
      for (const OpPlace& place : members) {
        if (!set[place.log]) {
          apart[place.log].push_back(end_of(*own) - end_of(place));
        }
      }
    }
    return apart;
  }

  const std::vector<PhysicalLog>& logs_;
  std::map<Sequence, Ranks> sequences_;
  std::int64_t world_ = 0;        // ranks of the run, as far as told
  std::set<std::int32_t> ranks_;  // of the logs
  JoinedRun result_;
  std::size_t uneven_ = 0;
  std::size_t partial_ = 0;  // of groups of which ranks are missing
};

}  // namespace

JoinedRun join_ranks(const std::vector<PhysicalLog>& logs) { return Joiner(logs).run(); }

namespace {

/// take_last_arrivals() of logs of one run.
std::size_t take_last_arrivals_of(std::vector<PhysicalLog>& logs) {
  const JoinedRun run = join_ranks(logs);
  // Of each log, which of its operations another member of the same collective speaks for, and the
  // times of those that speak for all.
  std::vector<std::map<std::size_t, std::pair<double, std::size_t>>> kept(logs.size());
  std::vector<std::set<std::size_t>> dropped(logs.size());
  std::size_t count = 0;
  for (const JoinedOp& joined : run.joined) {
    const auto& members = joined.members;
    double shortest = INFINITY, longest = 0, last_begin = -INFINITY, last_end = -INFINITY;
    for (const OpPlace& place : members) {
      const OpRow& op = row_of(logs, place);
      const double begin = run.zero_s[place.log] + op.begin_s;
      shortest = std::min(shortest, op.duration_s);
      longest = std::max(longest, op.duration_s);
      last_begin = std::max(last_begin, begin);
      last_end = std::max(last_end, begin + op.duration_s);
    }
    // Who need not wait for all may be gone before the last one comes.
    const double time =
        joined.everyone_waits ? shortest : std::clamp(last_end - last_begin, shortest, longest);
    const OpPlace& first = *std::ranges::min_element(
        members, {}, [&](const OpPlace& p) { return row_of(logs, p).rank; });
    ++count;
    for (const OpPlace& place : members) {
      if (place.log == first.log && place.op == first.op) {
        kept[place.log][place.op] = {time, members.size()};
      } else {
        dropped[place.log].insert(place.op);
      }
    }
  }
  for (std::size_t i = 0; i < logs.size(); ++i) {
    std::vector<CommRow> rows;
    for (CommRow& row : logs[i].comms) {
      const auto op = static_cast<std::size_t>(row.op_row);
      if (row.waits && row.op_row >= 0) {
        if (dropped[i].contains(op)) {
          continue;
        }
        if (const auto time = kept[i].find(op); time != kept[i].end()) {
          row.time_s = time->second.first;
          row.waits = std::cmp_less(time->second.second, row.ranks);
        }
      }
      rows.push_back(row);
    }
    logs[i].comms = std::move(rows);
  }
  return count;
}

}  // namespace

std::size_t take_last_arrivals(std::vector<PhysicalLog>& logs) {
  std::vector<PhysicalLog> run;
  std::vector<PhysicalLog*> places;
  for (PhysicalLog& log : logs) {
    if (std::ranges::any_of(log.comms, &CommRow::waits)) {
      places.push_back(&log);
      run.push_back(std::move(log));
    }
  }
  const std::size_t count = run.empty() ? 0 : take_last_arrivals_of(run);
  for (std::size_t i = 0; i < run.size(); ++i) {
    *places[i] = std::move(run[i]);
  }
  return count;
}

}  // namespace lockstep::compare

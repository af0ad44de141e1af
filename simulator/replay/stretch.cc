#include "simulator/replay/stretch.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

#include "base/index.h"
#include "simulator/replay/program_facts.h"

namespace lockstep {
namespace {

/// Whether no rank is done with it before all have entered.
bool waits_for_all(const ProgramOp& op) {
  return op.family >= 0 && op.peer < 0 &&
         (op.comm == CommType::kAllReduce || op.comm == CommType::kAllGather ||
          op.comm == CommType::kReduceScatter || op.comm == CommType::kAllToAll ||
          op.comm == CommType::kBarrier);
}

bool looks_alike(const Program& a, std::int32_t i, std::int32_t first_a, const Program& b,
                 std::int32_t j, std::int32_t first_b, bool last) {
  const ProgramOp &x = a.ops()[at(i)], &y = b.ops()[at(j)];
  if (x.lead != y.lead || x.compute != y.compute || x.comm != y.comm || x.bytes != y.bytes ||
      x.family != y.family || x.stream != y.stream || x.returns != y.returns) {
    return false;
  }
  return last || std::ranges::equal(
                     a.successors(i), b.successors(j), {},
                     [&](std::int32_t next) { return next - first_a; },
                     [&](std::int32_t next) { return next - first_b; });
}

/// Finds the stretches of one program.
class Search {
 public:
  explicit Search(const Program& program) : program_(program), place_(program.ops().size()) {
    for (std::size_t s = 0; s < program.streams().size(); ++s) {
      const auto ops = program.stream_ops(static_cast<std::int32_t>(s));
      for (std::size_t i = 0; i < ops.size(); ++i) {
        place_[at(ops[i])] = static_cast<std::int32_t>(i);
      }
    }
    stream_of_family_.clear();
    std::vector<std::int32_t> times;  // of each family
    for (const ProgramOp& op : program.ops()) {
      if (op.comm != CommType::kNone && op.family >= 0) {
        times.resize(std::max(times.size(), at(op.family) + 1));
        ++times[at(op.family)];
        stream_of_family_.resize(std::max(stream_of_family_.size(), at(op.family) + 1), kNone);
        std::int32_t& stream = stream_of_family_[at(op.family)];
        stream = stream == kNone || stream == op.stream ? op.stream : kSeveral;
      }
    }
    const auto main = std::ranges::max_element(times) - times.begin();
    for (const ProgramOp& op : program.ops()) {
      const bool may_be =
          op.comm != CommType::kNone && op.family >= 0 && op.peer < 0 && op.family != main;
      may_be_exit_.push_back(may_be ? 1 : 0);
    }
  }

  bool possible() const { return !launches(program_); }

  /// The longest that begins with `first`. False where there is none.
  bool from(std::int32_t first, Stretch& result) {
    meets_exits_ = false;
    const bool found = from(first, false, result);
    Stretch longer;
    if (meets_exits_ && from(first, true, longer) && (!found || longer.last > result.last)) {
      result = std::move(longer);
      return true;
    }
    return found;
  }

 private:
  static constexpr std::int32_t kNone = -1, kSeveral = -2;

  /// The same, with exits or without.
  bool from(std::int32_t first, bool exits_too, Stretch& result) {
    std::array<std::int32_t, Stretches::kMost> inside{};  // predecessors in it
    const auto count = static_cast<std::int32_t>(program_.ops().size());
    std::int32_t reach = first, family = -1, first_collective = -1;
    bool found = false;
    std::vector<std::int32_t> exits;
    for (std::int32_t op = first; op < count && op - first < Stretches::kMost; ++op) {
      const ProgramOp& what = program_.ops()[at(op)];
      if (program_.streams()[at(what.stream)] != StreamOrder::kProgram) {
        break;
      }
      if (op > first && (inside[at(op - first)] == 0 ||
                         inside[at(op - first)] != program_.dependency_counts()[at(op)])) {
        break;
      }
      if (exits_too && op > first && may_be_exit_[at(op)] != 0) {
        exits.push_back(op);
        continue;
      }
      if (what.comm != CommType::kNone) {
        if (!waits_for_all(what) || (family >= 0 && family != what.family) ||
            stream_of_family_[at(what.family)] == kSeveral) {
          break;
        }
        family = what.family;
        first_collective = first_collective < 0 ? op : first_collective;
      }
      if (reach <= op && family >= 0 && op - first + 1 >= Stretches::kFewest) {
        Stretch stretch{first, op, first_collective, family, -1, {}, exits};
        if (has_its_streams(stretch)) {
          result = std::move(stretch);
          found = true;
        }
      }
      const auto next = program_.successors(op);
      if (std::ranges::all_of(
              next, [&](std::int32_t each) { return exits_too && may_be_exit_[at(each)] != 0; })) {
        break;  // the last would not come after it
      }
      for (const std::int32_t each : next) {
        reach = std::max(reach, each);
        meets_exits_ = meets_exits_ || may_be_exit_[at(each)] != 0;
        if (each - first < Stretches::kMost) {
          ++inside[at(each - first)];
        }
      }
      if (reach - first >= Stretches::kMost) {
        break;
      }
    }
    return found;
  }

  /// Whether all that its streams carry before it ends before it begins, and what they carry after
  /// it begins when it has ended.
  bool has_its_streams(Stretch& stretch) const {
    stretch.streams.clear();
    for (std::int32_t op = stretch.first; op <= stretch.last; ++op) {
      const std::int32_t stream = program_.ops()[at(op)].stream;
      if (stretch.is_exit(op)) {
        continue;
      }
      auto use = std::ranges::find(stretch.streams, stream, &Stretch::Use::stream);
      if (use == stretch.streams.end()) {
        stretch.streams.push_back({stream, place_[at(op)], place_[at(op)]});
        use = stretch.streams.end() - 1;
      }
      use->end = place_[at(op)] + 1;
    }
    if (std::ranges::any_of(stretch.exits, [&](std::int32_t op) {
          return std::ranges::find(stretch.streams, program_.ops()[at(op)].stream,
                                   &Stretch::Use::stream) != stretch.streams.end();
        })) {
      return false;
    }
    const std::int32_t first_stream = program_.ops()[at(stretch.first)].stream;
    const std::int32_t last_stream = program_.ops()[at(stretch.last)].stream;
    for (const Stretch::Use& use : stretch.streams) {
      const auto ops = program_.stream_ops(use.stream);
      if (use.stream != first_stream && use.begin > 0) {
        const std::int32_t before = ops[at(use.begin - 1)];
        if (std::ranges::none_of(program_.successors(before), [&](std::int32_t next) {
              return next <= stretch.first && program_.ops()[at(next)].stream == first_stream;
            })) {
          return false;
        }
      }
      if (use.stream != last_stream && at(use.end) < ops.size() &&
          !comes_after(ops[at(use.end)], stretch.last)) {
        return false;
      }
    }
    return true;
  }

  /// Whether `op` waits for `last`, or for one of those that follow it on its stream.
  bool comes_after(std::int32_t op, std::int32_t last) const {
    constexpr std::int32_t kTries = 16;
    const auto ops = program_.stream_ops(program_.ops()[at(last)].stream);
    for (std::int32_t i = 0; i < kTries && at(place_[at(last)] + i) < ops.size(); ++i) {
      if (std::ranges::find(program_.successors(ops[at(place_[at(last)] + i)]), op) !=
          program_.successors(ops[at(place_[at(last)] + i)]).end()) {
        return true;
      }
    }
    return false;
  }

  const Program& program_;
  std::vector<std::int32_t> place_;             // of each operation on its stream
  std::vector<std::int32_t> stream_of_family_;  // of its communications
  /// Per operation: a collective, but not of the family that has the most, which every layer uses.
  std::vector<char> may_be_exit_;
  bool meets_exits_ = false;
};

}  // namespace

Stretches::Stretches(const RankPrograms& work) {
  struct Seen {
    const Program* program;
    std::int32_t stretch;
  };
  std::unordered_map<std::uint64_t, std::vector<Seen>> seen;  // by a hash; never iterated
  std::int32_t contents = 0;
  at_op_.resize(work.programs.size());
  for (std::size_t p = 0; p < work.programs.size(); ++p) {
    const Program& program = work.programs[p];
    Search search(program);
    if (!search.possible()) {
      continue;
    }
    const auto count = static_cast<std::int32_t>(program.ops().size());
    Stretch stretch;
    for (std::int32_t op = 0; op < count;) {
      if (!search.from(op, stretch)) {
        ++op;
        continue;
      }
      std::uint64_t hash = 0;
      for (std::int32_t i = stretch.first; i <= stretch.last; ++i) {
        const ProgramOp& what = program.ops()[at(i)];
        for (const std::int64_t part : {what.compute.count_ps(), what.bytes.count()}) {
          hash = (hash ^ static_cast<std::uint64_t>(part)) * 0x9E3779B97F4A7C15U;
          hash ^= hash >> 29;
        }
      }
      std::vector<Seen>& candidates = seen[hash];
      for (const Seen& each : candidates) {
        const Stretch& other = stretches_[at(each.stretch)];
        bool same = other.last - other.first == stretch.last - stretch.first;
        for (std::int32_t i = stretch.first, j = other.first; same && i <= stretch.last; ++i, ++j) {
          same = looks_alike(program, i, stretch.first, *each.program, j, other.first,
                             i == stretch.last);
        }
        if (same) {
          stretch.content = other.content;
          break;
        }
      }
      if (stretch.content < 0) {
        stretch.content = contents++;
        candidates.push_back({&program, static_cast<std::int32_t>(stretches_.size())});
      }
      if (at_op_[p].empty()) {
        at_op_[p].assign(program.ops().size(), -1);
      }
      at_op_[p][at(op)] = static_cast<std::int32_t>(stretches_.size());
      op = stretch.last + 1;
      stretches_.push_back(std::move(stretch));
      stretch = {};
    }
  }
}

}  // namespace lockstep

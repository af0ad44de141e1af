#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "workloads/rank_programs.h"
#include "workloads/validate.h"

namespace lockstep {
namespace {

constexpr std::int32_t kNobody = -1;

std::string op_path(const std::string& path, std::size_t program, std::size_t op) {
  return fmt::format("{}.programs[{}].ops[{}]", path, program, op);
}

template <class Name, class Get>
void check_names(std::span<const Name> items, const std::string& path, Get name_of_item) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string_view name = name_of_item(items[i]);
    if (name.empty() || !names.insert(name).second) {
      throw Error(name.empty() ? "the name is empty"
                               : fmt::format("the name \"{}\" stands twice", printable(name)))
          .field(fmt::format("{}[{}]", path, i))
          .expected("a name of its own");
    }
  }
}

/// `place` makes the operation's path; only called for a message.
template <class Place>
void check_kind(const Op& op, const Place& place) {
  const bool negative = op.compute < Time() || op.host < Time() || op.bytes < Bytes();
  const bool computes = op.comm == CommType::kNone;
  const bool sends = op.comm == CommType::kSendRecv;
  const bool mixed = (!computes && (op.compute != Time() || op.host != Time())) ||
                     (computes && op.bytes != Bytes()) || (computes && op.group != -1) ||
                     (!sends && op.peer != -1) || (!sends && op.send);
  if (negative || mixed) {
    throw Error(negative ? "a time or a size is negative"
                         : "the operation is of more than one kind")
        .field(place())
        .expected("a computation, a collective over a group, or a send or receive with a peer");
  }
}

template <class Place>
void check_op(const OpTable& table, const OpProgram& program, std::size_t index, std::int64_t gpus,
              const Place& place) {
  const Op& op = program.ops[index];
  check_kind(op, place);
  if (op.stream < 0 || static_cast<std::size_t>(op.stream) >= program.streams.size()) {
    throw Error("there is no such stream").field(place() + ".stream");
  }
  const bool sends = op.comm == CommType::kSendRecv;
  const bool in_group = op.comm != CommType::kNone && (!sends || op.group != -1);
  if (in_group && (op.group < 0 || static_cast<std::size_t>(op.group) >= table.groups.size())) {
    throw Error("there is no such family of groups").field(place() + ".group");
  }
  if (sends && op.group == -1 && (op.peer < 0 || op.peer >= gpus)) {
    throw Error(fmt::format("there is no rank {}", op.peer))
        .field(place() + (op.send ? ".send_to" : ".recv_from"))
        .expected(fmt::format("a rank from 0 to {}", gpus - 1));
  }
  for (std::size_t i = 0; i < op.after.size(); ++i) {
    if (op.after[i] < 0 || static_cast<std::size_t>(op.after[i]) >= index) {
      throw Error(fmt::format("operation {} is not an earlier one", op.after[i]))
          .field(fmt::format("{}.after[{}]", place(), i))
          .expected(index == 0 ? "nothing: this is the first operation of the program"
                               : fmt::format("an operation from 0 to {}", index - 1));
    }
  }
}

std::vector<std::int32_t> programs_by_rank(const OpTable& table, std::int64_t gpus,
                                           const std::string& path) {
  std::vector<std::int32_t> owner(static_cast<std::size_t>(gpus), kNobody);
  for (std::size_t p = 0; p < table.programs.size(); ++p) {
    const auto& ranges = table.programs[p].ranks;
    if (ranges.empty()) {
      throw Error("no rank runs this program").field(fmt::format("{}.programs[{}].ranks", path, p));
    }
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      const std::string place = fmt::format("{}.programs[{}].ranks[{}]", path, p, i);
      const RankRange& range = ranges[i];
      if (range.first < 0 || range.end <= range.first || range.end > gpus || range.stride < 1) {
        throw Error("not a range of ranks")
            .field(place)
            .expected(fmt::format("0 <= first < end <= {}, stride >= 1", gpus));
      }
      for_each_rank(range, [&](std::int32_t rank) {
        std::int32_t& program = owner[static_cast<std::size_t>(rank)];
        if (program != kNobody) {
          throw Error(fmt::format("rank {} has a program already: number {}", rank, program))
              .field(place);
        }
        program = static_cast<std::int32_t>(p);
      });
    }
  }
  return owner;
}

/// The operations of a program on one family, in program order.
using FamilyOps = std::vector<std::int32_t>;

/// Checks one family after another, so that memory does not grow with families x gpus.
class FamilyChecker {
 public:
  FamilyChecker(const OpTable& table, const std::vector<std::int32_t>& owner,
                const std::string& path)
      : table_(table),
        owner_(owner),
        path_(path),
        ops_(table.groups.size()),
        group_(owner.size(), kNobody) {
    for (std::size_t p = 0; p < table.programs.size(); ++p) {
      const std::vector<Op>& ops = table.programs[p].ops;
      for (std::size_t i = 0; i < ops.size(); ++i) {
        if (ops[i].group >= 0) {
          ops_[static_cast<std::size_t>(ops[i].group)][static_cast<std::int32_t>(p)].push_back(
              static_cast<std::int32_t>(i));
        }
      }
    }
  }

  void check() {
    for (std::size_t f = 0; f < table_.groups.size(); ++f) {
      fill_groups(f);
      check_membership(f);
      check_order(f);
      for (const auto& members : table_.groups[f].members) {
        for (const std::int32_t rank : members) {
          group_[static_cast<std::size_t>(rank)] = kNobody;
        }
      }
    }
  }

 private:
  std::string members_path(std::size_t family, std::size_t group) const {
    return fmt::format("{}.groups[{}].members[{}]", path_, family, group);
  }

  void fill_groups(std::size_t family) {
    const auto& lists = table_.groups[family].members;
    for (std::size_t g = 0; g < lists.size(); ++g) {
      if (lists[g].empty()) {
        throw Error("the group is empty").field(members_path(family, g));
      }
      for (const std::int32_t rank : lists[g]) {
        if (rank < 0 || static_cast<std::size_t>(rank) >= group_.size()) {
          throw Error(fmt::format("there is no rank {}", rank))
              .field(members_path(family, g))
              .expected(fmt::format("ranks from 0 to {}", group_.size() - 1));
        }
        std::int32_t& group = group_[static_cast<std::size_t>(rank)];
        if (group != kNobody) {
          throw Error(
              fmt::format("rank {} is in a group of this family already: number {}", rank, group))
              .field(members_path(family, g))
              .expected("groups of one family that do not overlap");
        }
        group = static_cast<std::int32_t>(g);
      }
    }
  }

  void check_membership(std::size_t family) const {
    for (const auto& [program, ops] : ops_[family]) {
      const auto p = static_cast<std::size_t>(program);
      for (const RankRange& range : table_.programs[p].ranks) {
        for_each_rank(range, [&, &list = ops](std::int32_t rank) {
          if (group_[static_cast<std::size_t>(rank)] == kNobody) {
            throw Error(fmt::format("rank {} is in no group of the family \"{}\"", rank,
                                    printable(table_.groups[family].name)))
                .field(op_path(path_, p, static_cast<std::size_t>(list.front())) + ".group");
          }
        });
      }
    }
  }

  /// All ranks of a group enter the same collectives in the same order. (Sends and receives are
  /// check_peers' part.)
  void check_order(std::size_t family) const {
    std::set<std::pair<std::int32_t, std::int32_t>> agreed;
    const auto& lists = table_.groups[family].members;
    for (std::size_t g = 0; g < lists.size(); ++g) {
      const std::int32_t first = lists[g][0];
      for (const std::int32_t rank : lists[g]) {
        const std::int32_t a = owner_[static_cast<std::size_t>(first)];
        const std::int32_t b = owner_[static_cast<std::size_t>(rank)];
        if (a != b && agreed.emplace(a, b).second) {
          compare(family, g, first, rank);
        }
      }
    }
  }

  void compare(std::size_t family, std::size_t group, std::int32_t a, std::int32_t b) const {
    const FamilyOps ops_a = collectives_of(family, a);
    const FamilyOps ops_b = collectives_of(family, b);
    for (std::size_t i = 0; i < std::max(ops_a.size(), ops_b.size()); ++i) {
      const Op* in_a = i < ops_a.size() ? &op(a, ops_a[i]) : nullptr;
      const Op* in_b = i < ops_b.size() ? &op(b, ops_b[i]) : nullptr;
      if (in_a == nullptr || in_b == nullptr || in_a->comm != in_b->comm ||
          in_a->bytes != in_b->bytes) {
        throw Error(fmt::format("the ranks of a group disagree: its collective number {} is {} on "
                                "rank {} and {} on rank {}",
                                i, text_of(in_a), a, text_of(in_b), b))
            .field(members_path(family, group))
            .expected("the same collectives in the same order on all ranks of a group");
      }
    }
  }

  FamilyOps collectives_of(std::size_t family, std::int32_t rank) const {
    const auto found = ops_[family].find(owner_[static_cast<std::size_t>(rank)]);
    FamilyOps collectives;
    if (found != ops_[family].end()) {
      std::ranges::copy_if(found->second, std::back_inserter(collectives), [&](std::int32_t index) {
        return op(rank, index).comm != CommType::kSendRecv;
      });
    }
    return collectives;
  }

  const Op& op(std::int32_t rank, std::int32_t index) const {
    const auto program = static_cast<std::size_t>(owner_[static_cast<std::size_t>(rank)]);
    return table_.programs[program].ops[static_cast<std::size_t>(index)];
  }

  static std::string text_of(const Op* op) {
    return op == nullptr ? "nothing"
                         : fmt::format("{} of {} bytes", name_of(op->comm), op->bytes.count());
  }

  const OpTable& table_;
  const std::vector<std::int32_t>& owner_;
  const std::string& path_;
  std::vector<std::map<std::int32_t, FamilyOps>> ops_;  // by family, then by program
  std::vector<std::int32_t> group_;                     // of a rank in the family at hand
};

}  // namespace

void validate_op_table(const OpTable& table, std::int64_t gpus, const std::string& path) {
  if (table.programs.empty()) {
    throw Error("the job has no programs")
        .field(path + ".programs")
        .expected("at least one program");
  }
  check_names(std::span(table.groups), path + ".groups",
              [](const GroupFamily& family) { return std::string_view(family.name); });
  for (std::size_t p = 0; p < table.programs.size(); ++p) {
    const OpProgram& program = table.programs[p];
    check_names(std::span(program.streams), fmt::format("{}.programs[{}].streams", path, p),
                [](const std::string& name) { return std::string_view(name); });
    for (std::size_t i = 0; i < program.ops.size(); ++i) {
      check_op(table, program, i, gpus, [&] { return op_path(path, p, i); });
    }
  }
  const std::vector<std::int32_t> owner = programs_by_rank(table, gpus, path);
  FamilyChecker(table, owner, path).check();
  check_peers(table, owner, path);
}

}  // namespace lockstep

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "workloads/rank_programs.h"

namespace lockstep {
namespace {

/// What a program sends to (or receives from) one rank.
struct Traffic {
  std::int64_t messages = 0;
  Bytes bytes;
  friend bool operator==(const Traffic&, const Traffic&) = default;
};

/// By peer, ascending.
using Peers = std::map<std::int32_t, Traffic>;

Traffic traffic_with(const Peers& peers, std::int32_t rank) {
  const auto found = peers.find(rank);
  return found == peers.end() ? Traffic() : found->second;
}

class PeerChecker {
 public:
  PeerChecker(const OpTable& table, const std::vector<std::int32_t>& owner, const std::string& path)
      : table_(table), owner_(owner), path_(path) {}

  void check() {
    check_places();
    for (std::size_t p = 0; p < table_.programs.size(); ++p) {
      const std::vector<Op>& ops = table_.programs[p].ops;
      for (std::size_t i = 0; i < ops.size(); ++i) {
        if (ops[i].comm == CommType::kSendRecv && ops[i].group < 0) {
          add(static_cast<std::int32_t>(p), i);
        }
      }
    }
    // Each pair (sending program, receiving program) of which either side knows.
    std::set<std::pair<std::int32_t, std::int32_t>> pairs;
    for (const auto& [key, peers] : peers_) {
      const auto [program, other, sends] = key;
      pairs.emplace(sends ? program : other, sends ? other : program);
    }
    for (const auto& [sender, receiver] : pairs) {
      compare(sender, receiver);
    }
  }

 private:
  /// Peers within groups: whatever a rank sends k places on, the rank there must receive from k
  /// places back, and the other way round. O(ranks x different places).
  void check_places() {
    std::map<std::int32_t, std::vector<PlaceTraffic>> families;  // by program in each
    for (std::size_t p = 0; p < table_.programs.size(); ++p) {
      const std::vector<Op>& ops = table_.programs[p].ops;
      for (std::size_t i = 0; i < ops.size(); ++i) {
        if (ops[i].comm == CommType::kSendRecv && ops[i].group >= 0) {
          add_place(families, p, i);
        }
      }
    }
    for (const auto& [family, traffic] : families) {
      for (const std::vector<std::int32_t>& members :
           table_.groups[static_cast<std::size_t>(family)].members) {
        compare_places(traffic, members);
      }
    }
  }

  /// By places on (1 … size - 1) and whether it is sent.
  using PlaceTraffic = std::map<std::pair<std::int32_t, bool>, Traffic>;

  void add_place(std::map<std::int32_t, std::vector<PlaceTraffic>>& families, std::size_t program,
                 std::size_t index) const {
    const Op& op = table_.programs[program].ops[index];
    const auto& lists = table_.groups[static_cast<std::size_t>(op.group)].members;
    const std::string place = fmt::format("{}.programs[{}].ops[{}]", path_, program, index);
    const auto size = static_cast<std::int32_t>(lists.front().size());
    if (!std::ranges::all_of(lists, [&](const auto& members) {
          return static_cast<std::int32_t>(members.size()) == size;
        })) {
      throw Error("peers are counted in places, but the groups of the family differ in size")
          .field(place + ".group");
    }
    if (op.peer % size == 0) {
      throw Error(fmt::format("{} places on in a group of {} is the rank itself", op.peer, size))
          .field(place + (op.send ? ".send_to" : ".recv_from"))
          .expected("another rank of the group");
    }
    std::vector<PlaceTraffic>& traffic = families[op.group];
    traffic.resize(table_.programs.size());
    Traffic& sum = traffic[program][{(op.peer % size + size) % size, op.send}];
    ++sum.messages;
    sum.bytes += op.bytes;
  }

  void compare_places(const std::vector<PlaceTraffic>& traffic,
                      const std::vector<std::int32_t>& members) const {
    const std::size_t size = members.size();
    for (std::size_t i = 0; i < size; ++i) {
      const std::int32_t program = owner_[static_cast<std::size_t>(members[i])];
      if (program < 0) {
        continue;
      }
      for (const auto& [key, mine] : traffic[static_cast<std::size_t>(program)]) {
        const auto [places, sends] = key;
        const std::int32_t other = members[(i + static_cast<std::size_t>(places)) % size];
        const std::int32_t other_program = owner_[static_cast<std::size_t>(other)];
        const auto back = static_cast<std::int32_t>(size) - places;
        Traffic its;
        if (other_program >= 0) {
          const PlaceTraffic& all = traffic[static_cast<std::size_t>(other_program)];
          const auto found = all.find({back, !sends});
          its = found == all.end() ? Traffic() : found->second;
        }
        if (!(mine == its)) {
          disagree(sends ? members[i] : other, sends ? mine : its, sends ? other : members[i],
                   sends ? its : mine);
        }
      }
    }
  }

  [[noreturn]] void disagree(std::int32_t from, const Traffic& out, std::int32_t to,
                             const Traffic& in) const {
    throw Error(fmt::format("rank {} sends {} messages ({} bytes) to rank {}, which receives "
                            "{} ({} bytes) from it",
                            from, out.messages, out.bytes.count(), to, in.messages,
                            in.bytes.count()))
        .field(path_ + ".programs")
        .expected("sends and receives that agree for each pair of ranks");
  }

  void add(std::int32_t program, std::size_t index) {
    const Op& op = table_.programs[static_cast<std::size_t>(program)].ops[index];
    const std::int32_t other = owner_[static_cast<std::size_t>(op.peer)];
    if (other < 0 || other == program) {
      throw Error(
          other < 0 ? fmt::format("rank {} has no program: it neither sends nor receives", op.peer)
                    : fmt::format("rank {} runs this program itself", op.peer))
          .field(fmt::format("{}.programs[{}].ops[{}].{}", path_, program, index,
                             op.send ? "send_to" : "recv_from"))
          .expected("a rank with another program");
    }
    Traffic& traffic = peers_[{program, other, op.send}][op.peer];
    ++traffic.messages;
    traffic.bytes += op.bytes;
  }

  /// What a rank q of the receiver gets from the sender's ranks depends on q alone, and what a rank
  /// r of the sender is expected to give depends on r alone. So they agree for all r and q exactly
  /// if they agree for two of each: any one, and one that differs from it if there is such a one.
  void compare(std::int32_t sender, std::int32_t receiver) const {
    const Peers& sent = peers_of(sender, receiver, true);
    const Peers& received = peers_of(receiver, sender, false);
    for (const std::int32_t to : two_extremes(sent, receiver)) {
      for (const std::int32_t from : two_extremes(received, sender)) {
        const Traffic out = traffic_with(sent, to);
        const Traffic in = traffic_with(received, from);
        if (!(out == in)) {
          disagree(from, out, to, in);
        }
      }
    }
  }

  const Peers& peers_of(std::int32_t program, std::int32_t other, bool sends) const {
    static const Peers none;
    const auto found = peers_.find({program, other, sends});
    return found == peers_.end() ? none : found->second;
  }

  /// The first rank of a program, and one with which `peers` has different traffic, if any.
  std::vector<std::int32_t> two_extremes(const Peers& peers, std::int32_t program) const {
    const auto& ranges = table_.programs[static_cast<std::size_t>(program)].ranks;
    const std::int32_t first = ranges.front().first;
    const Traffic usual = traffic_with(peers, first);
    for (const auto& [rank, traffic] : peers) {
      if (!(traffic == usual)) {
        return {first, rank};
      }
    }
    // All known peers are alike, and `first` is one of them or there are none. So after
    // peers.size() + 1 ranks one without traffic has turned up, or there is none.
    for (const RankRange& range : ranges) {
      for (std::int64_t rank = range.first; !peers.empty() && rank < range.end;
           rank += range.stride) {
        if (!peers.contains(static_cast<std::int32_t>(rank))) {
          return {first, static_cast<std::int32_t>(rank)};
        }
      }
    }
    return {first};
  }

  const OpTable& table_;
  const std::vector<std::int32_t>& owner_;
  const std::string& path_;
  std::map<std::tuple<std::int32_t, std::int32_t, bool>, Peers> peers_;  // program, other, sends
};

}  // namespace

void check_peers(const OpTable& table, const std::vector<std::int32_t>& owner,
                 const std::string& path) {
  PeerChecker(table, owner, path).check();
}

}  // namespace lockstep

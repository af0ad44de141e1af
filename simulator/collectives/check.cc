#include "simulator/collectives/check.h"

#include <algorithm>
#include <optional>
#include <vector>

#include <fmt/format.h>

namespace lockstep {
namespace {

std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

/// Sets of ranks, one for each of many places, in one array of words.
class RankSets {
 public:
  RankSets(std::size_t places, std::int32_t ranks)
      : words_((at(ranks) + 63) / 64), bits_(places * words_) {}

  void insert(std::size_t place, std::int32_t rank) {
    bits_[place * words_ + at(rank) / 64] |= std::uint64_t{1} << (rank % 64);
  }
  void unite(std::size_t into, std::size_t from, const RankSets& other) {
    for (std::size_t w = 0; w < words_; ++w) {
      bits_[into * words_ + w] |= other.bits_[from * words_ + w];
    }
  }
  void copy(std::size_t into, std::size_t from) {
    std::copy_n(bits_.begin() + static_cast<std::ptrdiff_t>(from * words_), words_,
                bits_.begin() + static_cast<std::ptrdiff_t>(into * words_));
  }
  bool intersects(std::size_t a, std::size_t b) const {
    for (std::size_t w = 0; w < words_; ++w) {
      if ((bits_[a * words_ + w] & bits_[b * words_ + w]) != 0) {
        return true;
      }
    }
    return false;
  }
  std::int32_t count(std::size_t place) const {
    std::int32_t total = 0;
    for (std::size_t w = 0; w < words_; ++w) {
      total += __builtin_popcountll(bits_[place * words_ + w]);
    }
    return total;
  }
  bool contains(std::size_t place, std::int32_t rank) const {
    return (bits_[place * words_ + at(rank) / 64] >> (rank % 64) & 1) != 0;
  }

 private:
  std::size_t words_;
  std::vector<std::uint64_t> bits_;
};

/// Answers whether one transfer is an ancestor of another.
class Ancestry {
 public:
  explicit Ancestry(const Schedule& schedule)
      : schedule_(schedule), seen_(schedule.transfers.size(), 0) {}

  bool precedes(std::int32_t ancestor, std::int32_t transfer) {
    while (schedule_.dependencies(at(transfer)).size() == 1) {  // a chain needs no search
      transfer = schedule_.dependencies(at(transfer)).front();
      if (transfer <= ancestor) {
        return transfer == ancestor;
      }
    }
    ++stamp_;
    stack_.assign(1, transfer);
    while (!stack_.empty()) {
      const std::int32_t here = stack_.back();
      stack_.pop_back();
      for (const std::int32_t before : schedule_.dependencies(at(here))) {
        if (before == ancestor) {
          return true;
        }
        if (before > ancestor && seen_[at(before)] != stamp_) {
          seen_[at(before)] = stamp_;
          stack_.push_back(before);
        }
      }
    }
    return false;
  }

 private:
  const Schedule& schedule_;
  std::vector<std::uint32_t> seen_;
  std::uint32_t stamp_ = 0;
  std::vector<std::int32_t> stack_;
};

std::string form_problem(const Schedule& s) {
  const std::size_t count = s.transfers.size();
  if (count > 0 && (s.dependency_begin.size() != count + 1 || s.dependency_begin.front() != 0 ||
                    at(s.dependency_begin.back()) != s.dependency.size())) {
    return "the dependency table does not fit the transfers";
  }
  std::vector<std::optional<Bytes>> size(at(s.chunks));
  for (std::size_t i = 0; i < count; ++i) {
    const Transfer& t = s.transfers[i];
    const auto is_rank = [&](std::int32_t rank) { return rank >= 0 && rank < s.ranks; };
    if (!is_rank(t.source) || !is_rank(t.destination) || t.source == t.destination) {
      return fmt::format("transfer {} goes from rank {} to rank {} of {}", i, t.source,
                         t.destination, s.ranks);
    }
    if (t.chunk < 0 || t.chunk >= s.chunks || t.channel < 0 || t.bytes < Bytes(0)) {
      return fmt::format("transfer {} has chunk {} of {}, channel {}, {} bytes", i, t.chunk,
                         s.chunks, t.channel, t.bytes.count());
    }
    if (size[at(t.chunk)].value_or(t.bytes) != t.bytes) {
      return fmt::format("transfer {} has another size than chunk {} had before", i, t.chunk);
    }
    size[at(t.chunk)] = t.bytes;
    for (const std::int32_t d : s.dependencies(i)) {
      if (d < 0 || at(d) >= i) {
        return fmt::format("transfer {} waits for transfer {}, which does not come before it", i,
                           d);
      }
      if (s.transfers[at(d)].source != t.source && s.transfers[at(d)].destination != t.source) {
        return fmt::format("transfer {} waits for transfer {}, which its source cannot see", i, d);
      }
    }
  }
  return {};
}

/// Symbolic execution: copy (rank, chunk) is place rank * chunks + chunk.
class Execution {
 public:
  explicit Execution(const Schedule& schedule)
      : schedule_(schedule), copies_(at(schedule.ranks) * at(schedule.chunks), schedule.ranks) {
    for (std::int32_t rank = 0; rank < schedule.ranks; ++rank) {
      for (std::int32_t chunk = 0; chunk < schedule.chunks; ++chunk) {
        if (provides(rank, chunk)) {
          copies_.insert(place(rank, chunk), rank);
        }
      }
    }
  }

  std::string problem() {
    for (std::size_t i = 0; i < schedule_.transfers.size(); ++i) {
      const Transfer& t = schedule_.transfers[i];
      const std::size_t from = place(t.source, t.chunk), to = place(t.destination, t.chunk);
      if (copies_.count(from) == 0) {
        return fmt::format("transfer {} sends chunk {}, which rank {} does not have", i, t.chunk,
                           t.source);
      }
      if (!t.reduce) {
        copies_.copy(to, from);
      } else if (copies_.intersects(to, from)) {
        return fmt::format("transfer {} adds a contribution to chunk {} that rank {} already has",
                           i, t.chunk, t.destination);
      } else {
        copies_.unite(to, from, copies_);
      }
    }
    for (std::int32_t rank = 0; rank < schedule_.ranks; ++rank) {
      for (std::int32_t chunk = 0; chunk < schedule_.chunks; ++chunk) {
        if (!complete(rank, chunk)) {
          return fmt::format("rank {} ends without the right content of chunk {}", rank, chunk);
        }
      }
    }
    return {};
  }

 private:
  std::size_t place(std::int32_t rank, std::int32_t chunk) const {
    return at(rank) * at(schedule_.chunks) + at(chunk);
  }
  std::int32_t shard_owner(std::int32_t chunk) const {
    return chunk / (schedule_.chunks / schedule_.ranks);
  }
  bool provides(std::int32_t rank, std::int32_t chunk) const {
    switch (schedule_.op) {
      case CommType::kAllGather:
        return rank == shard_owner(chunk);
      case CommType::kAllToAll:
        return rank == chunk / schedule_.ranks;
      case CommType::kBroadcast:
        return rank == schedule_.root;
      case CommType::kSendRecv:
        return rank == chunk;
      default:
        return true;
    }
  }
  /// Whether the rank's copy is what the operation promises it, if it promises anything.
  bool complete(std::int32_t rank, std::int32_t chunk) const {
    const std::size_t copy = place(rank, chunk);
    const auto only = [&](std::int32_t from) {
      return copies_.count(copy) == 1 && copies_.contains(copy, from);
    };
    const bool all = copies_.count(copy) == schedule_.ranks;
    switch (schedule_.op) {
      case CommType::kAllReduce:
        return all;
      case CommType::kReduceScatter:
        return rank != shard_owner(chunk) || all;
      case CommType::kReduce:
        return rank != schedule_.root || all;
      case CommType::kAllGather:
        return only(shard_owner(chunk));
      case CommType::kAllToAll:
        return rank != chunk % schedule_.ranks || only(chunk / schedule_.ranks);
      case CommType::kBroadcast:
        return only(schedule_.root);
      case CommType::kSendRecv:
        return rank != (chunk + 1) % schedule_.ranks || only(chunk);
      default:
        return true;
    }
  }

  const Schedule& schedule_;
  RankSets copies_;
};

/// What touched one copy so far: `last` are its latest writers (one, or reductions that commute),
/// `readers` came after those, and `before` must precede every member of `last`.
struct CopyHistory {
  std::vector<std::int32_t> before, last, readers;
  bool reducing = false;
};

class Hazards {
 public:
  explicit Hazards(const Schedule& schedule)
      : schedule_(schedule),
        ancestry_(schedule),
        histories_(at(schedule.ranks) * at(schedule.chunks)) {}

  std::string problem() {
    for (std::size_t i = 0; i < schedule_.transfers.size(); ++i) {
      const Transfer& t = schedule_.transfers[i];
      const auto self = static_cast<std::int32_t>(i);
      if (!read(history(t.source, t.chunk), self) ||
          !write(history(t.destination, t.chunk), self, t.reduce)) {
        return fmt::format("transfers {} and {} may touch chunk {} in either order", culprit_, i,
                           t.chunk);
      }
    }
    return {};
  }

 private:
  CopyHistory& history(std::int32_t rank, std::int32_t chunk) {
    return histories_[at(rank) * at(schedule_.chunks) + at(chunk)];
  }
  bool follows(std::int32_t transfer, const std::vector<std::int32_t>& others) {
    const auto loose = std::find_if(others.begin(), others.end(), [&](std::int32_t other) {
      return !ancestry_.precedes(other, transfer);
    });
    culprit_ = loose == others.end() ? -1 : *loose;
    return loose == others.end();
  }
  bool read(CopyHistory& copy, std::int32_t transfer) {
    copy.readers.push_back(transfer);
    return follows(transfer, copy.last);
  }
  bool write(CopyHistory& copy, std::int32_t transfer, bool reduce) {
    if (reduce && copy.reducing && copy.readers.empty()) {
      copy.last.push_back(transfer);
      return follows(transfer, copy.before);
    }
    copy.before = copy.last;
    copy.before.insert(copy.before.end(), copy.readers.begin(), copy.readers.end());
    copy.last.assign(1, transfer);
    copy.readers.clear();
    copy.reducing = reduce;
    return follows(transfer, copy.before);
  }

  const Schedule& schedule_;
  Ancestry ancestry_;
  std::vector<CopyHistory> histories_;
  std::int32_t culprit_ = -1;
};

std::string barrier_problem(const Schedule& s) {
  RankSets heard(s.transfers.size(), s.ranks);  // entries that precede the end of each transfer
  RankSets exits(at(s.ranks), s.ranks);
  for (std::size_t i = 0; i < s.transfers.size(); ++i) {
    heard.insert(i, s.transfers[i].source);
    for (const std::int32_t d : s.dependencies(i)) {
      heard.unite(i, at(d), heard);
    }
    exits.unite(at(s.transfers[i].destination), i, heard);
  }
  for (std::int32_t rank = 0; rank < s.ranks; ++rank) {
    exits.insert(at(rank), rank);
    if (exits.count(at(rank)) != s.ranks) {
      return fmt::format("rank {} may leave the barrier before all have entered", rank);
    }
  }
  return {};
}

}  // namespace

std::string check_schedule(const Schedule& schedule) {
  std::string problem = form_problem(schedule);
  if (problem.empty() && schedule.op == CommType::kBarrier) {
    return barrier_problem(schedule);
  }
  if (problem.empty()) {
    problem = Execution(schedule).problem();
  }
  return problem.empty() ? Hazards(schedule).problem() : problem;
}

}  // namespace lockstep

#include "simulator/collectives/check.h"

#include <algorithm>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/index.h"
#include "simulator/collectives/transfer_list.h"

namespace lockstep {
namespace {

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
  explicit Ancestry(const TransferList& list) : list_(list), seen_(list.transfers.size(), 0) {}

  bool precedes(std::int32_t ancestor, std::int32_t transfer) {
    while (list_.dependencies(at(transfer)).size() == 1) {  // a chain needs no search
      transfer = list_.dependencies(at(transfer)).front();
      if (transfer <= ancestor) {
        return transfer == ancestor;
      }
    }
    ++stamp_;
    stack_.assign(1, transfer);
    while (!stack_.empty()) {
      const std::int32_t here = stack_.back();
      stack_.pop_back();
      for (const std::int32_t before : list_.dependencies(at(here))) {
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
  const TransferList& list_;
  std::vector<std::uint32_t> seen_;
  std::uint32_t stamp_ = 0;
  std::vector<std::int32_t> stack_;
};

std::string form_problem(const Schedule& s) {
  if (!s.chunk_sizes.empty() && s.chunk_sizes.size() != at(s.chunks)) {
    return fmt::format("{} chunks have {} sizes", s.chunks, s.chunk_sizes.size());
  }
  for (std::size_t i = 0; i < s.slots.size(); ++i) {
    const Slot& slot = s.slots[i];
    const auto is_place = [&](std::int32_t place) { return place >= 0 && place < s.places(); };
    if (!is_place(slot.source) || !is_place(slot.destination) || slot.source == slot.destination) {
      return fmt::format("slot {} goes from place {} to place {} of {}", i, slot.source,
                         slot.destination, s.places());
    }
    if (slot.count < 1 || slot.run < 1 || slot.run > s.chunks || slot.channel < 0 ||
        slot.reduces < 0 || slot.cycle < -1 || at(slot.cycle + 1) >= s.cycle_begin.size()) {
      return fmt::format("slot {} has count {}, run {}, channel {}, cycle {}", i, slot.count,
                         slot.run, slot.channel, slot.cycle);
    }
    if (s.separate_flows && slot.count != s.slots.front().count) {
      return fmt::format("slot {} has {} flows, slot 0 {}", i, slot.count, s.slots.front().count);
    }
    for (const SlotWait& wait : s.waits(i)) {
      if (wait.slot < 0 || at(wait.slot) >= s.slots.size()) {
        return fmt::format("slot {} waits for slot {} of {}", i, wait.slot, s.slots.size());
      }
      const Slot& other = s.slots[at(wait.slot)];
      const auto seen_by = [&](std::int32_t place) {
        return other.source == place || other.destination == place;
      };
      if (!seen_by(slot.source) && !seen_by(slot.destination)) {
        return fmt::format("slot {} waits for slot {}, which its source cannot see", i, wait.slot);
      }
    }
  }
  for (const std::int32_t i : s.relays) {
    if (i < 0 || at(i) >= s.slots.size() || s.waits(at(i)).empty() ||
        s.waits(at(i)).front().lag != 0) {
      return fmt::format("relay {} is not a slot that waits for another", i);
    }
    const Slot& first = s.slots[at(s.waits(at(i)).front().slot)];
    if (first.destination != s.slots[at(i)].source || first.count != s.slots[at(i)].count ||
        first.reduces != 0) {
      return fmt::format("relay {} hands on what comes to another place, or what is added", i);
    }
  }
  for (const std::int32_t chunk : s.cycle_chunks) {
    if (chunk < 0 || chunk >= s.chunks) {
      return fmt::format("a cycle has chunk {} of {}", chunk, s.chunks);
    }
  }
  return {};
}

/// Copies of what the places have themselves, then of what they hand on as relays.
class Copies {
 public:
  explicit Copies(const Schedule& schedule)
      : places_(at(schedule.places())), chunks_(at(schedule.chunks)) {}
  std::size_t count() const { return 2 * places_ * chunks_; }
  std::size_t own(std::int32_t place, std::int32_t chunk) const {
    return at(place) * chunks_ + at(chunk);
  }
  std::size_t read(const Transfer& t, std::int32_t chunk) const {
    return own(t.source, chunk) + (t.from_relay ? places_ * chunks_ : 0);
  }
  std::size_t written(const Transfer& t, std::int32_t chunk) const {
    return own(t.destination, chunk) + (t.to_relay ? places_ * chunks_ : 0);
  }

 private:
  std::size_t places_, chunks_;
};

/// Symbolic execution. A switch starts with empty copies.
class Execution {
 public:
  Execution(const Schedule& schedule, const TransferList& list)
      : schedule_(schedule),
        list_(list),
        index_(schedule),
        copies_(index_.count(), schedule.ranks) {
    for (std::int32_t rank = 0; rank < schedule.ranks; ++rank) {
      for (std::int32_t chunk = 0; chunk < schedule.chunks; ++chunk) {
        if (provides(rank, chunk)) {
          copies_.insert(index_.own(rank, chunk), rank);
        }
      }
    }
  }

  std::string problem() {
    for (std::size_t i = 0; i < list_.transfers.size(); ++i) {
      const Transfer& t = list_.transfers[i];
      for (const std::int32_t chunk : list_.chunks(i)) {
        const std::size_t from = index_.read(t, chunk), to = index_.written(t, chunk);
        if (copies_.count(from) == 0) {
          return fmt::format("transfer {} sends chunk {}, which place {} does not have", i, chunk,
                             t.source);
        }
        if (!t.reduce) {
          copies_.copy(to, from);
        } else if (copies_.intersects(to, from)) {
          return fmt::format(
              "transfer {} adds a contribution to chunk {} that place {} already has", i, chunk,
              t.destination);
        } else {
          copies_.unite(to, from, copies_);
        }
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
    if (!schedule_.chunk_sizes.empty() && schedule_.chunk_size(chunk) == Bytes(0)) {
      return true;
    }
    const std::size_t own = index_.own(rank, chunk);
    const auto only = [&](std::int32_t from) {
      return copies_.count(own) == 1 && copies_.contains(own, from);
    };
    const bool all = copies_.count(own) == schedule_.ranks;
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
  const TransferList& list_;
  Copies index_;
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
  Hazards(const Schedule& schedule, const TransferList& list)
      : list_(list), ancestry_(list), index_(schedule), histories_(index_.count()) {}

  std::string problem() {
    for (std::size_t i = 0; i < list_.transfers.size(); ++i) {
      const Transfer& t = list_.transfers[i];
      const auto self = static_cast<std::int32_t>(i);
      for (const std::int32_t chunk : list_.chunks(i)) {
        if (!read(histories_[index_.read(t, chunk)], self) ||
            !write(histories_[index_.written(t, chunk)], self, t.reduce)) {
          return fmt::format("transfers {} and {} may touch chunk {} in either order", culprit_, i,
                             chunk);
        }
      }
    }
    return {};
  }

 private:
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

  const TransferList& list_;
  Ancestry ancestry_;
  Copies index_;
  std::vector<CopyHistory> histories_;
  std::int32_t culprit_ = -1;
};

std::string barrier_problem(const Schedule& s, const TransferList& list) {
  RankSets heard(list.transfers.size(), s.ranks);  // entries that precede the end of each transfer
  RankSets exits(at(s.places()), s.ranks);
  for (std::size_t i = 0; i < list.transfers.size(); ++i) {
    if (list.transfers[i].source < s.ranks) {
      heard.insert(i, list.transfers[i].source);
    }
    for (const std::int32_t d : list.dependencies(i)) {
      heard.unite(i, at(d), heard);
    }
    exits.unite(at(list.transfers[i].destination), i, heard);
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
  if (!problem.empty()) {
    return problem;
  }
  TransferList list;
  try {
    list = write_out(schedule);
  } catch (const Error& error) {
    return error.what();
  }
  if (schedule.op == CommType::kBarrier) {
    return barrier_problem(schedule, list);
  }
  problem = Execution(schedule, list).problem();
  return problem.empty() ? Hazards(schedule, list).problem() : problem;
}

}  // namespace lockstep

#include "simulator/replay/critical_path.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/error.h"

namespace lockstep {
namespace {

/// What finding causes needs of a program.
struct Indexed {
  std::vector<std::vector<std::int32_t>> before;  // of each operation: what it comes after
  std::map<std::tuple<std::int32_t, std::int32_t, bool, std::int32_t>, std::int32_t>
      on_communicator;  // family, peer, send, sequence: the operation
};

Indexed index_of(const Program& program) {
  Indexed index;
  index.before.resize(program.ops().size());
  for (std::size_t i = 0; i < program.ops().size(); ++i) {
    const auto op = static_cast<std::int32_t>(i);
    for (const std::int32_t next : program.successors(op)) {
      index.before[static_cast<std::size_t>(next)].push_back(op);
    }
    const ProgramOp& what = program.ops()[i];
    if (what.comm != CommType::kNone) {
      index.on_communicator[{what.family, what.peer, what.send, what.sequence}] = op;
    }
  }
  for (std::size_t stream = 0; stream < program.streams().size(); ++stream) {
    const auto ops = program.stream_ops(static_cast<std::int32_t>(stream));
    if (program.streams()[stream] == StreamOrder::kProgram) {
      for (std::size_t i = 1; i < ops.size(); ++i) {
        index.before[static_cast<std::size_t>(ops[i])].push_back(ops[i - 1]);
      }
    }
  }
  return index;
}

struct Place {
  std::int32_t rank = 0, op = 0;
};

class Walker {
 public:
  Walker(const RankPrograms& work, const std::vector<std::vector<OpTiming>>& timing,
         const std::vector<std::int32_t>& slot_of_rank)
      : work_(work), timing_(timing), slot_of_rank_(slot_of_rank) {
    for (const Program& program : work.programs) {
      indexed_.push_back(index_of(program));
    }
  }

  CriticalPath walk() {
    CriticalPath path;
    path.by_rank.resize(slot_of_rank_.size());
    Place at = last();
    Time mark = timing_.empty() ? Time() : of(at).end;
    path.total = mark;
    while (at.op >= 0) {
      const ProgramOp& what = op(at);
      Place from = at;
      if (what.comm != CommType::kNone) {
        from = last_to_enter(at);
      }
      // Some operations end with their last transfer's start at the sender: never go forward.
      const Time begin = std::min(of(from).begin, mark);
      const Time end = std::min(of(at).end, mark);
      path.gap += mark - end;
      if (end > begin) {
        add(path, {at.rank, at.op, begin, end});
      }
      mark = std::min(begin, end);
      at = cause(from);
    }
    path.gap += mark;
    std::ranges::reverse(path.pieces);
    return path;
  }

 private:
  const std::vector<OpTiming>& of_rank(std::int32_t rank) const {
    return timing_[static_cast<std::size_t>(slot_of_rank_[static_cast<std::size_t>(rank)])];
  }
  const OpTiming& of(Place at) const { return of_rank(at.rank)[static_cast<std::size_t>(at.op)]; }
  const ProgramOp& op(Place at) const {
    return work_.program(at.rank).ops()[static_cast<std::size_t>(at.op)];
  }
  const Indexed& index(std::int32_t rank) const {
    return indexed_[static_cast<std::size_t>(
        work_.program_of_rank[static_cast<std::size_t>(rank)])];
  }

  Place last() const {
    Place found{0, -1};
    std::vector<char> looked_at(timing_.size(), 0);
    for (std::int32_t rank = 0; rank < std::ssize(slot_of_rank_); ++rank) {
      char& seen =
          looked_at[static_cast<std::size_t>(slot_of_rank_[static_cast<std::size_t>(rank)])];
      if (std::exchange(seen, 1) != 0) {
        continue;
      }
      for (std::size_t i = 0; i < of_rank(rank).size(); ++i) {
        const Place here{rank, static_cast<std::int32_t>(i)};
        if (found.op < 0 || of(here).end > of(found).end) {
          found = here;
        }
      }
    }
    return found;
  }

  /// The operation that it waited for: the last to end of those before it.
  Place cause(Place at) const {
    Place found{at.rank, -1};
    for (const std::int32_t before : index(at.rank).before[static_cast<std::size_t>(at.op)]) {
      if (found.op < 0 || of({at.rank, before}).end > of(found).end) {
        found.op = before;
      }
    }
    return found;
  }

  /// The member of a communication that came last. A sender does not wait for its receiver.
  Place last_to_enter(Place at) const {
    const ProgramOp& what = op(at);
    if (what.comm == CommType::kSendRecv && what.peer >= 0) {
      if (what.send) {
        return at;
      }
      return later(at, sender_of(at));
    }
    const CommFamily& family = work_.families[static_cast<std::size_t>(what.family)];
    Place found = at;
    for (const std::int32_t rank :
         family.groups()[static_cast<std::size_t>(family.group_of(at.rank))]) {
      const auto& known = index(rank).on_communicator;
      const auto other = known.find({what.family, what.peer, what.send, what.sequence});
      if (other != known.end()) {
        found = later(found, {rank, other->second});
      }
    }
    return found;
  }

  Place sender_of(Place at) const {
    const ProgramOp& what = op(at);
    std::int32_t rank = what.peer, peer = at.rank;
    if (what.family >= 0) {
      const CommFamily& family = work_.families[static_cast<std::size_t>(what.family)];
      const auto& group = family.groups()[static_cast<std::size_t>(family.group_of(at.rank))];
      const auto size = static_cast<std::int32_t>(group.size());
      rank = group[static_cast<std::size_t>((family.place_of(at.rank) + what.peer) % size)];
      peer = size - what.peer;
    }
    const auto& known = index(rank).on_communicator;
    const auto found = known.find({what.family, peer, true, what.sequence});
    return found == known.end() ? at : Place{rank, found->second};
  }

  Place later(Place a, Place b) const { return of(b).begin > of(a).begin ? b : a; }

  void add(CriticalPath& path, const CriticalPiece& piece) const {
    const ProgramOp& what = op({piece.rank, piece.op});
    const Time length = piece.end - piece.begin;
    if (what.comm == CommType::kNone) {
      path.compute += length;
    } else {
      const GroupKind group = what.family < 0
                                  ? GroupKind::kPp
                                  : work_.families[static_cast<std::size_t>(what.family)].kind();
      path.comm_by_group[static_cast<std::size_t>(group)] += length;
    }
    path.by_type[static_cast<std::size_t>(what.type)] += length;
    path.by_rank[static_cast<std::size_t>(piece.rank)] += length;
    path.pieces.push_back(piece);
  }

  const RankPrograms& work_;
  const std::vector<std::vector<OpTiming>>& timing_;
  const std::vector<std::int32_t>& slot_of_rank_;
  std::vector<Indexed> indexed_;
};

}  // namespace

CriticalPath critical_path(const RankPrograms& work,
                           const std::vector<std::vector<OpTiming>>& timing,
                           const std::vector<std::int32_t>& slot_of_rank) {
  return Walker(work, timing, slot_of_rank).walk();
}

}  // namespace lockstep

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <queue>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "simulator/replay/communication.h"
#include "simulator/replay/program.h"

namespace lockstep {

/// How long communication takes that meets nothing else.
struct CommFormula {
  /// Of a collective among `members`, from when the last of them enters.
  std::function<Time(const ProgramOp& op, GroupKind kind, std::span<const std::int32_t> members)>
      collective;
  /// Of a message, from when its sender enters.
  std::function<Time(const ProgramOp& op, std::int32_t source, std::int32_t destination)> message;
};

/// The collectives under way in a replay without a network: each takes what a formula says, from
/// when all are there that it needs. Not every rank has to come: `stands_for[r]` is the one that
/// does what rank r does, at the same time, and a collective waits for those that stand for its
/// members. All of a collective end at once. O(log of what is under way) an entry and end.
class FormulaRuns final : public Communication {
 public:
  /// `moved`: see OpTiming.
  using Finished = std::function<void(std::int32_t rank, std::int32_t op, Time moved)>;

  FormulaRuns(const RankPrograms& work, std::span<const std::int32_t> stands_for,
              const CommFormula& formula, Finished finished);

  void enter(std::int32_t rank, std::int32_t op, Time now) override;
  Time advance(Time limit) override;
  bool happened() const override { return happened_; }
  void dispatch(Time now) override;
  /// No ports are looked at.
  void scale_capacity(PortId /*port*/, double /*share*/) override {}
  std::int64_t transfers() const override { return 0; }
  std::vector<std::int32_t> missing(std::int32_t rank, std::int32_t op) const override;

 private:
  /// Family, -1 for messages that name ranks, and -2 - family for those within one; the group or
  /// the sender; the receiver; how many places on that is in its group; the how-manieth.
  using Key = std::tuple<std::int32_t, std::int32_t, std::int32_t, std::int32_t, std::int32_t>;
  struct Run {
    std::vector<std::pair<std::int32_t, std::int32_t>> entered;  // rank, op; not yet finished
    std::size_t to_come = 0;
    CommType comm = CommType::kNone;
    Time moved, end = Time::max();
  };
  using Open = std::map<Key, Run>;
  struct End {
    Time when;
    std::int64_t order;
    Key key;
    bool operator>(const End& other) const {
      return std::tie(when, order) > std::tie(other.when, other.order);
    }
  };

  Key key_of(std::int32_t rank, const ProgramOp& op) const;
  std::span<const std::int32_t> members(std::int32_t rank, const ProgramOp& op) const;
  std::int32_t number_of(std::int32_t rank, const ProgramOp& op) const;
  /// At the other end of a message.
  std::int32_t peer_of(std::int32_t rank, const ProgramOp& op) const;

  const RankPrograms& work_;
  std::span<const std::int32_t> stands_for_;
  const CommFormula& formula_;
  Finished finished_;
  Open open_;
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
  std::int64_t order_ = 0;
  Time now_;
  bool happened_ = false;
  /// By family and group. Groups of a family for whose members the same ranks stand have one
  /// number.
  std::vector<std::vector<std::int32_t>> number_;
  std::vector<std::vector<std::int32_t>> waits_for_;  // by number: those ranks, each once
};

}  // namespace lockstep

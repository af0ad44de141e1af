#include <bit>

#include "simulator/collectives/building.h"
#include "simulator/collectives/rings.h"

namespace lockstep {
namespace {

constexpr CommType kOps[] = {CommType::kAllReduce, CommType::kAllGather, CommType::kReduceScatter};

/// Thakur, Rabenseifner, Gropp: Optimization of collective communication operations in MPICH, 2005,
/// sections 4.2, 4.4 and 4.5. Of n ranks p = 2^floor(log2 n) are active. Recursive halving: with
/// distances p/2 … 1, an active rank sends its partner the half of its range in which the partner
/// lies, which adds it. Recursive doubling: with distances 1 … p/2 partners give each other all
/// that they have. An all-reduce does both.
///
/// Where n is no power of two, the first 2(n-p) ranks pair up: the even one gives what it has to
/// the odd one before, and gets what it needs after. The odd one is active for both, so its range
/// are the shards of both. Ranks without a pair, which would be ahead of the others, exchange only
/// once both partners have done what they had to before, as MPI's rendezvous makes them: what comes
/// early would only keep that back.
class Build {
 public:
  Build(Schedule& schedule, std::int32_t ranks)
      : schedule_(schedule),
        rounds_(schedule, !std::has_single_bit(static_cast<std::uint32_t>(ranks))),
        active_(static_cast<std::int32_t>(std::bit_floor(static_cast<std::uint32_t>(ranks)))),
        paired_(ranks - active_) {}

  std::int32_t active() const { return active_; }

  /// The even rank of each pair gives its own shard, or with `reduce` the whole tensor.
  void before(bool reduce) {
    for (std::int32_t pair = 0; pair < paired_; ++pair) {
      rounds_.send(2 * pair, 2 * pair + 1, reduce ? 0 : 2 * pair, reduce ? schedule_.chunks : 1,
                   reduce);
    }
    rounds_.next_round();
  }
  void halve() {
    for (std::int32_t distance = active_ / 2; distance > 0; distance /= 2) {
      exchange(distance, true);
    }
  }
  void double_up() {
    for (std::int32_t distance = 1; distance < active_; distance *= 2) {
      exchange(distance, false);
    }
  }
  /// The even rank of each pair gets its own shard, or with `all` the whole tensor.
  void after(bool all) {
    for (std::int32_t pair = 0; pair < paired_; ++pair) {
      rounds_.send(2 * pair + 1, 2 * pair, all ? 0 : 2 * pair, all ? schedule_.chunks : 1, false);
    }
    rounds_.next_round();
  }

 private:
  std::int32_t rank(std::int32_t i) const { return i < paired_ ? 2 * i + 1 : i + paired_; }
  /// The first chunk of active rank i's range: an all-reduce has one chunk an active rank, the
  /// others one a rank.
  std::int32_t begin(std::int32_t i) const {
    return schedule_.chunks == active_ ? i : i < paired_ ? 2 * i : i + paired_;
  }
  /// Everyone sends the aligned range of `distance` active ranks in which the partner lies
  /// (halving), or in which it lies itself (doubling).
  void exchange(std::int32_t distance, bool halving) {
    for (std::int32_t i = 0; i < active_; ++i) {
      const std::int32_t partner = i ^ distance;
      const std::int32_t first = (halving ? partner : i) / distance * distance;
      rounds_.send(rank(i), rank(partner), begin(first), begin(first + distance) - begin(first),
                   halving);
    }
    rounds_.next_round();
  }

  Schedule& schedule_;
  Rounds rounds_;
  std::int32_t active_, paired_;
};

Schedule build(const CollectiveRequest& request, const GroupShape& shape) {
  require_even(request, "recursive-halving-doubling");
  Schedule schedule = empty_schedule(request, shape);
  if (request.bytes == Bytes(0)) {
    return schedule;
  }
  const bool whole = request.op == CommType::kAllReduce;
  Build steps(schedule, shape.ranks);
  schedule.chunks = whole ? steps.active() : shape.ranks;
  schedule.chunk_bytes = part_size(request.bytes, schedule.chunks, request.flavour);
  steps.before(request.op != CommType::kAllGather);
  if (request.op != CommType::kAllGather) {
    steps.halve();
  }
  if (request.op != CommType::kReduceScatter) {
    steps.double_up();
  }
  steps.after(request.op != CommType::kReduceScatter);
  return schedule;
}

}  // namespace

extern const CollectiveAlgorithm kRecursiveHalvingDoublingCollectiveAlgorithm = {
    "recursive-halving-doubling", "partners at distances that halve, then double", kOps, build};

}  // namespace lockstep

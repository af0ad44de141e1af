#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "simulator/collectives/algorithm.h"

namespace lockstep {

/// What algorithms share when they build a schedule.

/// A schedule with the request's operation, ranks and root, and nothing in it yet.
Schedule empty_schedule(const CollectiveRequest& request, const GroupShape& shape);

/// The ranks of each server, in ascending order.
std::vector<std::vector<std::int32_t>> ranks_by_server(const GroupShape& shape);
/// How many ranks the server with the fewest has.
std::int32_t fewest_a_server(const GroupShape& shape);

/// A part is cut into so many pieces at most, larger ones then: 512 GiB at NCCL's largest. Beyond,
/// pieces do not matter to the time (a pipeline fills in a millionth of it), but memory does.
inline constexpr std::int64_t kMostPieces = std::int64_t{1} << 20;

/// Into how many pieces of at most `limit` a part of `bytes` is cut; at least one, at most
/// kMostPieces.
std::int32_t piece_count(Bytes bytes, Bytes limit);

/// Sets the chunks of an operation whose chunk q belongs to rank q (all-gather, reduce-scatter), or
/// to the pair (q / n, q mod n) (all-to-all): the request's sizes where it has any, else equal
/// parts. PRECONDITION: op is one of the three. ERRORS: an all-to-all of more than 46,340 ranks.
void set_shards(Schedule& schedule, const CollectiveRequest& request);

/// ERRORS: the request has sizes of its own for each rank, which `algorithm` cannot do.
void require_even(const CollectiveRequest& request, std::string_view algorithm);

/// Builds an algorithm that goes by rounds: what a rank sends in a round waits for all that reached
/// it in earlier rounds.
class Rounds {
 public:
  /// With a rendezvous both ends of a send wait until all that they sent and got in earlier rounds
  /// has arrived, as MPI_Sendrecv makes them.
  explicit Rounds(Schedule& schedule, bool rendezvous = false);

  /// One transfer of `run` chunks from `start` on (of cycle `cycle`).
  void send(std::int32_t from, std::int32_t to, std::int32_t start, std::int32_t run, bool reduce,
            std::int32_t cycle = -1);
  /// One transfer of these chunks, in a cycle of their own.
  void send(std::int32_t from, std::int32_t to, std::span<const std::int32_t> chunks, bool reduce);
  void next_round();
  /// Makes what `place` sends from the next round on wait for all of `slot`.
  void arrived(std::int32_t place, std::int32_t slot);
  /// Drops all that `place` waits for but the last `count` arrivals: where these cannot have come
  /// before the others did.
  void keep_last(std::int32_t place, std::size_t count);
  /// What a transfer from `place` would wait for.
  std::span<const SlotWait> waits(std::int32_t place) const {
    return before_[static_cast<std::size_t>(place)];
  }

 private:
  Schedule& schedule_;
  bool rendezvous_;
  std::vector<std::vector<SlotWait>> before_;
  std::vector<std::pair<std::int32_t, std::int32_t>> now_;  // place, slot
};

}  // namespace lockstep

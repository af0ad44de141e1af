#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "base/units.h"
#include "simulator/collectives/protocol.h"
#include "workloads/comm.h"

namespace lockstep {

/// The transfers of one connection in a collective, in order: transfer k = 0 … count-1 leaves
/// `source` for `destination` once transfer k-1 has left (a connection is first in, first out), the
/// source has entered the collective, and all that the slot waits for has arrived (SlotWait).
///
/// Ends are places: the group's ranks 0 … n-1, then the switches that take part (SwitchPlace).
///
/// Transfer k carries the chunks at positions start + k·step … + run - 1 of a cycle: with
/// cycle = -1 the cycle of all chunks 0, 1, …, else cycle `cycle` of the schedule; positions wrap
/// around. The first `reduces` transfers are added to what the destination has instead of
/// overwriting it.
struct Slot {
  std::int32_t source = 0, destination = 0;
  std::int32_t channel = 0;
  std::int32_t count = 1;
  std::int32_t reduces = 0;
  std::int32_t cycle = -1;
  std::int32_t start = 0, step = 0, run = 1;
  friend bool operator==(const Slot&, const Slot&) = default;
};

/// Transfer k of the slot that waits needs transfer k - lag of slot `slot` to be delivered: nothing
/// where k - lag is negative, the last one where the slot has no such transfer (so kAll is all of
/// it). A negative lag waits for a later transfer.
struct SlotWait {
  static constexpr std::int32_t kAll = std::numeric_limits<std::int32_t>::min() / 2;
  std::int32_t slot = 0;
  std::int32_t lag = 0;
  friend bool operator==(const SlotWait&, const SlotWait&) = default;

  /// How many transfers of `slot`, which has `count`, transfer k needs.
  std::int32_t needed(std::int32_t k, std::int32_t count) const {
    const std::int64_t last = std::int64_t{k} - lag;
    return last < 0 ? 0 : static_cast<std::int32_t>(last < count ? last + 1 : count);
  }
};

/// A switch that reduces or multicasts: the one that rank `near` reaches `level` switches away on
/// its way out of the server (1: its leaf, 2: a spine, `index` telling equal ones apart), or the
/// NVSwitch of its server (level 0).
struct SwitchPlace {
  std::int32_t near = 0, level = 0, index = 0;
  friend bool operator==(const SwitchPlace&, const SwitchPlace&) = default;
};

/// A collective as what each connection carries and what that waits for: its DAG of transfers,
/// folded along the repetition that every collective algorithm has. A ring all-reduce of n ranks
/// over C channels is n·C slots of 2(n-1) transfers each, so that memory grows with the ranks and
/// not with their square. A rank has finished when every transfer to it was delivered and every
/// transfer from it was sent. transfer_list.h writes the DAG out.
///
/// What chunk q is, with n = ranks:
///   all-gather, reduce-scatter   part of the shard of rank q / (chunks / n)
///   all-to-all                   what rank q / n sends to rank q mod n
///   send/receive                 what rank q sends
///   others                       part of the tensor
///
/// All chunks have `chunk_bytes`, rounded up where the tensor does not divide (NCCL pads so too),
/// or each its own size where `chunk_sizes` is not empty.
///
/// Memory: 36 B a slot, 8 B a wait, 4 B an entry of a cycle.
struct Schedule {
  CommType op = CommType::kNone;
  std::int32_t ranks = 0;
  std::int32_t chunks = 0;
  std::int32_t root = 0;  ///< of broadcast and reduce
  Bytes chunk_bytes;
  std::vector<Bytes> chunk_sizes;
  Protocol protocol = Protocol::kSimple;
  /// What an NVSwitch's own reduction and multicast reach of the links' bandwidth, in percent.
  std::int32_t nvswitch_percent = 100;
  std::optional<HopLatency> hop_latency;  ///< see start_latency()
  std::vector<std::int32_t> server;       ///< of each rank; empty where hop_latency is unset
  std::vector<SwitchPlace> switches;
  /// Each transfer of a slot is a flow of its own, a connection that carries nothing else: it
  /// starts after the one before, but whether or not that has left. All slots have equally many.
  /// SimAI's rings: a rank posts the receive of a step when it sets off its own transfer of that
  /// step, so what overtakes another waits for it, where the network has queues
  /// (NetworkEngine::has_queues()).
  bool separate_flows = false;
  /// Slots whose source hands on what the first slot that they wait for has brought, transfer by
  /// transfer, and keeps nothing of it: the second legs of relays. Ascending.
  std::vector<std::int32_t> relays;
  std::vector<Slot> slots;
  std::vector<std::int32_t> wait_begin = {0};  ///< CSR, slots.size() + 1
  std::vector<SlotWait> wait;
  std::vector<std::int32_t> cycle_begin = {0};  ///< CSR, number of cycles + 1
  std::vector<std::int32_t> cycle_chunks;
  friend bool operator==(const Schedule&, const Schedule&) = default;

  std::int32_t places() const { return ranks + static_cast<std::int32_t>(switches.size()); }
  std::span<const SlotWait> waits(std::size_t slot) const {
    return std::span(wait).subspan(
        static_cast<std::size_t>(wait_begin[slot]),
        static_cast<std::size_t>(wait_begin[slot + 1] - wait_begin[slot]));
  }
  /// The i-th chunk (0 … run-1) that transfer k of a slot carries.
  std::int32_t chunk(const Slot& slot, std::int32_t k, std::int32_t i = 0) const;
  Bytes chunk_size(std::int32_t chunk) const {
    return chunk_sizes.empty() ? chunk_bytes : chunk_sizes[static_cast<std::size_t>(chunk)];
  }
  /// The data that transfer k of a slot carries. O(1), or O(run) with chunk_sizes.
  Bytes data_bytes(const Slot& slot, std::int32_t k) const;
  /// What it puts on the wire for that, with the protocol's flags, before packet headers.
  Bytes bytes(const Slot& slot, std::int32_t k) const;
  /// From the moment a transfer of this slot may start to its first bit, by the protocol and what
  /// it crosses; `otherwise` where the schedule has no latencies of its own.
  Time start_latency(const Slot& slot, Time otherwise) const;
  /// What a transfer that waits for nothing takes besides: the start of the collective's kernel.
  Time launch_latency() const { return hop_latency ? hop_latency->launch : Time(); }
  /// Connections of a slot: one, or one for each transfer. That of slot i and transfer k is number
  /// k * slots.size() + i where there are several.
  std::int32_t connections_of_slot() const {
    return separate_flows && !slots.empty() ? slots.front().count : 1;
  }
  /// Transfers of all slots.
  std::int64_t transfer_count() const;

  /// Makes room for so many slots with one wait and so many connections each (doubles, so that no
  /// product overflows on its way here). ERRORS: more than kMaxSlots connections.
  void reserve(double slot_count, double connections_of_slot = 1);
  /// Appends a slot and returns its index; waits may name slots that come later.
  std::int32_t add(const Slot& slot, std::span<const SlotWait> waits_for);
  /// Appends a cycle of chunks and returns its index.
  std::int32_t add_cycle(std::span<const std::int32_t> chunks);
  std::size_t memory_bytes() const;
};

/// A schedule may not have more connections: 64 Mi slots take 2.9 GB.
inline constexpr std::int64_t kMaxSlots = std::int64_t{1} << 26;

}  // namespace lockstep

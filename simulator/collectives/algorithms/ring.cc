#include <algorithm>

#include "simulator/collectives/building.h"
#include "simulator/collectives/rings.h"

namespace lockstep {
namespace {

constexpr CommType kOps[] = {CommType::kAllReduce, CommType::kAllGather, CommType::kReduceScatter};

/// Patarasuk and Yuan: Bandwidth optimal all-reduce algorithms for clusters of workstations, 2009.
///
/// In n-1 steps place j of a ring passes on, and the next place adds, the chunk that ends at place
/// j - 1 - step (reduce-scatter); in n-1 more steps place j passes on the finished chunk of place
/// j - step (all-gather), which is the same walk backwards over the ring carried on. Each step
/// waits for the one that brought its chunk: the previous step from the previous place. With
/// slices, each step is as many transfers, each of which waits for its own slice only. Slice s of
/// rank r's chunk on channel c is chunk (r * channels + c) * slices + s.
///
/// SimAI starts a new flow for every step, whether or not the one before has left. With relays a
/// step from one server to the next is two of them, the second of which waits for the first.
class Build {
 public:
  Build(const CollectiveRequest& request, const GroupShape& shape)
      : request_(request),
        n_(shape.ranks),
        channels_(channel_count(request, shape)),
        separate_(request.flavour == CollectiveFlavour::kSimai),
        slices_(separate_ ? 1 : request.slices),
        reducing_(request.op == CommType::kAllGather ? 0 : n_ - 1),
        steps_(reducing_ + (request.op == CommType::kReduceScatter ? 0 : n_ - 1)),
        schedule_(empty_schedule(request, shape)) {
    schedule_.separate_flows = separate_;
    const double flows = separate_ ? steps_ : 1;
    schedule_.reserve(static_cast<double>(n_) * channels_, flows);
    set_chunks();
    rings_ = make_rings(request, shape);
    lay_out(shape);
    schedule_.reserve(slots_, flows);
    std::vector<std::int32_t> cycle;
    for (std::int32_t c = 0; c < channels_; ++c) {
      cycle.clear();
      const auto& ring = rings_[static_cast<std::size_t>(c)];
      for (auto rank = ring.rbegin(); rank != ring.rend(); ++rank) {
        for (std::int32_t slice = 0; slice < slices_; ++slice) {
          cycle.push_back((*rank * channels_ + c) * slices_ + slice);
        }
      }
      schedule_.add_cycle(cycle);
    }
  }

  Schedule build() {
    for (std::int32_t c = 0; c < channels_; ++c) {
      for (std::int32_t place = 0; place < n_; ++place) {
        add(c, place);
      }
    }
    return std::move(schedule_);
  }

 private:
  void set_chunks() {
    const std::int32_t parts = channels_ * slices_;
    schedule_.chunks = n_ * parts;
    schedule_.chunk_bytes = part_size(request_.bytes, schedule_.chunks, request_.flavour);
    if (request_.sizes.empty()) {
      return;
    }
    if (request_.op == CommType::kAllReduce) {
      require_even(request_, "ring all-reduce");
    }
    Schedule whole;  // one chunk a rank
    whole.ranks = n_;
    set_shards(whole, request_);
    for (const Bytes size : whole.chunk_sizes) {
      schedule_.chunk_sizes.insert(schedule_.chunk_sizes.end(), static_cast<std::size_t>(parts),
                                   part_size(size, parts, request_.flavour));
    }
  }

  /// Who relays what a place sends, if anybody does, and which slot brings it to the next place.
  void lay_out(const GroupShape& shape) {
    const bool relays = separate_ && request_.relays && request_.op != CommType::kAllGather;
    for (const std::vector<std::int32_t>& ring : rings_) {
      const auto server_of = [&](std::int32_t place) {
        return shape.server[static_cast<std::size_t>(ring[static_cast<std::size_t>(place)])];
      };
      std::int32_t entry = ring.front();
      for (std::int32_t place = 0; place < n_; ++place) {
        const std::int32_t rank = ring[static_cast<std::size_t>(place)];
        entry = place > 0 && server_of(place) != server_of(place - 1) ? rank : entry;
        const bool leaves = server_of(place) != server_of((place + 1) % n_);
        relay_.push_back(relays && leaves && rank != entry ? entry : -1);
        slots_ += relay_.back() < 0 ? 1 : 2;
        brings_.push_back(slots_ - 1);
      }
    }
  }

  void add(std::int32_t c, std::int32_t place) {
    const std::vector<std::int32_t>& ring = rings_[static_cast<std::size_t>(c)];
    const std::int32_t first = place - (reducing_ > 0 ? 1 : 0);  // whose chunk goes first
    Slot slot;
    slot.source = ring[static_cast<std::size_t>(place)];
    slot.destination = ring[static_cast<std::size_t>((place + 1) % n_)];
    slot.channel = c;
    slot.cycle = c;
    slot.start = (n_ - 1 - first) * slices_;
    slot.step = 1;
    slot.count = steps_ * slices_;
    slot.reduces = reducing_ * slices_;
    const std::int32_t before = c * n_ + (place + n_ - 1) % n_;
    const std::int32_t relay =
        relay_[static_cast<std::size_t>(c) * ring.size() + static_cast<std::size_t>(place)];
    Slot leg = slot;
    if (relay >= 0) {
      leg.destination = relay;
      leg.reduces = 0;
    }
    const SlotWait arrival{brings_[static_cast<std::size_t>(before)], slices_};
    const std::int32_t added = schedule_.add(leg, {&arrival, 1});
    if (relay >= 0) {
      slot.source = relay;
      schedule_.relays.push_back(schedule_.add(slot, {{{added, 0}}}));
    }
  }

  const CollectiveRequest& request_;
  std::int32_t n_, channels_;
  bool separate_;
  std::int32_t slices_, reducing_, steps_;
  Schedule schedule_;
  std::vector<std::vector<std::int32_t>> rings_;
  std::vector<std::int32_t> relay_, brings_;  // by channel and place
  std::int32_t slots_ = 0;
};

Schedule build(const CollectiveRequest& request, const GroupShape& shape) {
  if (request.bytes == Bytes(0)) {
    return empty_schedule(request, shape);
  }
  return Build(request, shape).build();
}

}  // namespace

extern const CollectiveAlgorithm kRingCollectiveAlgorithm = {
    "ring", "pieces travel round a ring per channel, one step after the other", kOps, build};

}  // namespace lockstep

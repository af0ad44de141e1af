#include "simulator/replay/refinement.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/index.h"

namespace lockstep {
namespace {

using Hash = std::uint64_t;

/// Rounds over everything go on as long as each brings so many times the colours,
constexpr double kGrowth = 1.5;
/// and for so many more: where they bring no further colour there is nothing left to tell apart.
constexpr int kLastRounds = 8;

/// SplitMix64's finaliser: a bijection that spreads every bit.
constexpr Hash mix(Hash x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

constexpr Hash mix(Hash a, Hash b) { return mix(a + 0x9E3779B97F4A7C15U * (b + 1)); }

/// What kind of thing looks at what kind of thing.
enum Look : Hash { kTerm = 1, kWait, kLeaves, kReaches };

/// What the copies of a slot are: one of its numbers, or how often it is there.
enum class Copies : std::uint8_t { kNumber, kTimes };

Hash own_hash(const FlowGraph& graph, std::size_t i, Copies copies) {
  const FlowGraph::Slot& slot = graph.slots[i];
  Hash hash = std::bit_cast<Hash>(slot.bits);
  for (const std::int64_t number :
       {slot.latency.count_ps(), slot.start_latency.count_ps(), slot.forward_latency.count_ps(),
        slot.entry.count_ps(), std::int64_t{slot.count}, std::int64_t{slot.kind},
        copies == Copies::kNumber ? slot.copies : 1}) {
    hash = mix(hash, static_cast<Hash>(number));
  }
  if (!graph.limits.empty()) {
    hash = mix(hash, std::bit_cast<Hash>(graph.limits[i].fresh));
    hash = mix(hash, std::bit_cast<Hash>(graph.limits[i].steady));
  }
  return hash;
}

std::vector<Hash> own_hashes(const FlowGraph& graph, Copies copies) {
  std::vector<Hash> hashes(graph.slots.size());
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    hashes[i] = own_hash(graph, i, copies);
  }
  return hashes;
}

/// Which slots look at something, CSR over the things looked at.
struct Lookers {
  std::vector<std::int32_t> begin, slot;
  std::vector<Hash> label;

  /// each(f) calls f(thing, slot, label) for every look, the same ones each time.
  template <class Each>
  void fill(std::size_t things, const Each& each) {
    begin.resize(things + 1);
    each([&](std::size_t thing, std::size_t, Hash) { ++begin[thing + 1]; });
    for (std::size_t i = 1; i < begin.size(); ++i) {
      begin[i] += begin[i - 1];
    }
    slot.resize(at(begin.back()));
    label.resize(slot.size());
    std::vector<std::int32_t> next(begin.begin(), begin.end() - 1);
    each([&](std::size_t thing, std::size_t looker, Hash of) {
      const std::size_t place = at(next[thing]++);
      slot[place] = static_cast<std::int32_t>(looker);
      label[place] = of;
    });
  }
};

/// Vertices are the slots, then the constraints, then the places.
class Refinement {
 public:
  /// `own` are the own_hashes() of the slots; `known_places` tells apart places that are known to
  /// differ; empty: none.
  Refinement(const FlowGraph& graph, std::int32_t most, Copies copies, std::vector<Hash> own,
             std::vector<std::int32_t> known_places)
      : graph_(graph),
        most_(most),
        slots_(graph.slots.size()),
        constraints_(graph.capacity.size()),
        vertices_(slots_ + constraints_ + graph.place_colour.size()),
        copies_(copies),
        known_places_(std::move(known_places)),
        hash_(std::move(own)) {
    for (std::size_t i = 0; i < slots_; ++i) {
      for (const SlotWait& wait : graph.waits(i)) {
        waits_for_earlier_ = waits_for_earlier_ && at(wait.slot) < i;
      }
    }
  }

  std::optional<Partition> run() {
    colour();
    int last = kLastRounds;
    for (std::int32_t before = 0, now = slot_colours();
         now > kGrowth * before || (now > before && last-- > 0);) {
      look_around();
      before = std::exchange(now, slot_colours());
      if (now > most_) {
        return std::nullopt;
      }
    }
    make_classes();
    if (classes_are_stable()) {
      return partition();
    }
    list_members();
    find_lookers();
    for (std::size_t next = 0; next < queue_.size(); ++next) {
      const std::int32_t splitter = queue_[next];
      if (splitter < 0) {
        continue;
      }
      queued_[at(splitter)] = false;
      split_by(splitter);
      if (slot_classes_ > most_) {
        return std::nullopt;
      }
    }
    return partition();
  }

 private:
  void colour() {
    hash_.resize(vertices_);
    for (std::size_t c = 0; c < constraints_; ++c) {
      hash_[slots_ + c] = mix(std::bit_cast<Hash>(graph_.capacity[c]), 11);
      if (!graph_.constraint_colour.empty()) {
        hash_[slots_ + c] = mix(hash_[slots_ + c], graph_.constraint_colour[c]);
      }
    }
    for (std::size_t p = 0; p < graph_.place_colour.size(); ++p) {
      hash_[slots_ + constraints_ + p] = mix(graph_.place_colour[p], 12);
      if (!known_places_.empty()) {
        Hash& hash = hash_[slots_ + constraints_ + p];
        hash = mix(hash, static_cast<Hash>(known_places_[p]));
      }
    }
  }

  Hash times(std::size_t slot) const {
    return copies_ == Copies::kNumber ? 1 : static_cast<Hash>(graph_.slots[slot].copies);
  }

  /// Calls f(vertex, label) for the vertices that a slot looks at and is looked at by.
  template <class F>
  void each_neighbour(std::size_t slot, F f) const {
    constexpr Hash kWhole = mix(std::bit_cast<Hash>(1.0), kTerm);
    for (const MaxMin::Term& term : graph_.terms(slot)) {
      f(slots_ + term.constraint.index(),
        term.coefficient == 1 ? kWhole : mix(std::bit_cast<Hash>(term.coefficient), kTerm));
    }
    const FlowGraph::Slot& s = graph_.slots[slot];
    if (s.source >= 0) {
      f(slots_ + constraints_ + at(s.source), mix(kLeaves));
    }
    if (s.destination >= 0) {
      f(slots_ + constraints_ + at(s.destination), mix(kReaches));
    }
  }

  /// One round: constraints and places take in the colours of slots, then slots theirs and each
  /// other's. Where slots wait for earlier ones alone, those have their new colours by then: slots
  /// that are alike wait for slots that are, so these are equal, and one round tells what else
  /// would take as many as there are steps.
  void look_around() {
    sum_.assign(vertices_, 0);
    for (std::size_t i = 0; i < slots_; ++i) {
      each_neighbour(i, [&](std::size_t other, Hash label) {
        sum_[other] += times(i) * mix(hash_[i] ^ label);
      });
    }
    for (std::size_t v = slots_; v < vertices_; ++v) {
      hash_[v] = mix(hash_[v], sum_[v]);
    }
    for (std::size_t i = 0; i < slots_; ++i) {
      each_neighbour(i,
                     [&](std::size_t other, Hash label) { sum_[i] += mix(hash_[other] ^ label); });
      for (const SlotWait& wait : graph_.waits(i)) {
        sum_[i] += mix(hash_[at(wait.slot)], mix(static_cast<Hash>(wait.lag), kWait));
      }
      if (waits_for_earlier_) {
        hash_[i] = mix(hash_[i], sum_[i]);
      }
    }
    if (waits_for_earlier_) {
      return;
    }
    for (std::size_t i = 0; i < slots_; ++i) {
      hash_[i] = mix(hash_[i], sum_[i]);
    }
  }

  /// At least so many colours do slots have: those that differ in some of their bits.
  std::int32_t slot_colours() const {
    const std::size_t bits = std::bit_ceil(8 * slots_ + 64);
    std::vector<Hash> seen(bits / 64);
    std::int32_t count = 0;
    for (std::size_t i = 0; i < slots_; ++i) {
      const Hash bit = hash_[i] & (bits - 1);
      const Hash mask = Hash{1} << (bit % 64);
      count += (seen[bit / 64] & mask) == 0 ? 1 : 0;
      seen[bit / 64] |= mask;
    }
    return count;
  }

  /// Classes of equal colours, in the order of their first members. Their numbers of members are in
  /// end_.
  void make_classes() {
    std::unordered_map<Hash, std::int32_t> slots, others;
    class_.resize(vertices_);
    for (std::size_t v = 0; v < vertices_; ++v) {
      const auto [known, fresh] =
          (v < slots_ ? slots : others)
              .try_emplace(hash_[v], static_cast<std::int32_t>(end_.size()));
      if (fresh) {
        end_.push_back(0);
      }
      class_[v] = known->second;
      ++end_[at(known->second)];
    }
    slot_classes_ = static_cast<std::int32_t>(slots.size());
  }

  /// Whether a further round tells apart no members of a class: then nothing does.
  bool classes_are_stable() {
    look_around();
    std::vector<std::int32_t> first(end_.size(), -1);
    for (std::size_t v = 0; v < vertices_; ++v) {
      std::int32_t& one = first[at(class_[v])];
      one = one < 0 ? static_cast<std::int32_t>(v) : one;
      if (hash_[v] != hash_[at(one)]) {
        return false;
      }
    }
    return true;
  }

  /// Lists the members of classes, and queues all of them to be looked at.
  void list_members() {
    hash_ = {};
    begin_.resize(end_.size());
    std::exclusive_scan(end_.begin(), end_.end(), begin_.begin(), 0);
    end_ = begin_;
    order_.resize(vertices_);
    place_.resize(vertices_);
    for (std::size_t v = 0; v < vertices_; ++v) {
      place_[v] = end_[at(class_[v])]++;
      order_[at(place_[v])] = static_cast<std::int32_t>(v);
    }
    queue_.resize(end_.size());
    std::iota(queue_.begin(), queue_.end(), 0);
    queued_.assign(end_.size(), true);
    met_of_.assign(end_.size(), 0);
    sum_.assign(vertices_, 0);
    met_.assign(vertices_, false);
  }

  void find_lookers() {
    waiters_.fill(slots_, [&](const auto& f) {
      for (std::size_t i = 0; i < slots_; ++i) {
        for (const SlotWait& wait : graph_.waits(i)) {
          f(at(wait.slot), i, mix(static_cast<Hash>(wait.lag), kWait));
        }
      }
    });
    crossings_.fill(vertices_ - slots_, [&](const auto& f) {
      for (std::size_t i = 0; i < slots_; ++i) {
        each_neighbour(i, [&](std::size_t other, Hash label) { f(other - slots_, i, label); });
      }
    });
  }

  void add_class(std::size_t begin) {
    begin_.push_back(static_cast<std::int32_t>(begin));
    end_.push_back(static_cast<std::int32_t>(begin));
    slot_classes_ += at(order_[begin]) < slots_ ? 1 : 0;
    queued_.push_back(true);
    queue_.push_back(static_cast<std::int32_t>(begin_.size()) - 1);
    met_of_.push_back(0);
  }

  void meet(std::size_t vertex, Hash label) {
    if (!met_[vertex]) {
      met_[vertex] = true;
      touched_.push_back(static_cast<std::int32_t>(vertex));
    }
    sum_[vertex] += label;
  }

  /// Tells apart what sees different numbers of a class's members.
  void split_by(std::int32_t splitter) {
    touched_.clear();
    for (std::int32_t i = begin_[at(splitter)]; i < end_[at(splitter)]; ++i) {
      const std::size_t member = at(order_[at(i)]);
      const Lookers& lookers = member < slots_ ? waiters_ : crossings_;
      const std::size_t thing = member < slots_ ? member : member - slots_;
      if (member < slots_) {
        each_neighbour(member,
                       [&](std::size_t other, Hash label) { meet(other, times(member) * label); });
      }
      for (std::int32_t k = lookers.begin[thing]; k < lookers.begin[thing + 1]; ++k) {
        meet(at(lookers.slot[at(k)]), lookers.label[at(k)]);
      }
    }
    // Classes of which all members saw the same stay; most do.
    met_classes_.clear();
    for (const std::int32_t v : touched_) {
      Met& met = met_of_class(class_[at(v)]);
      met.sum = met.count == 0 ? sum_[at(v)] : met.sum;
      met.same = met.same && met.sum == sum_[at(v)];
      ++met.count;
    }
    std::erase_if(touched_, [&](std::int32_t v) {
      const std::int32_t c = class_[at(v)];
      const Met& met = met_classes_[at(met_of_[at(c)]) - 1];
      const bool stays = met.same && met.count == end_[at(c)] - begin_[at(c)];
      met_[at(v)] = false;
      sum_[at(v)] = stays ? 0 : sum_[at(v)];
      return stays;
    });
    for (const Met& met : met_classes_) {
      met_of_[at(met.of)] = 0;
    }
    std::ranges::sort(touched_, {},
                      [&](std::int32_t v) { return std::tuple(class_[at(v)], sum_[at(v)], v); });
    for (std::size_t i = 0; i < touched_.size();) {
      i = split_class(i);
    }
    for (const std::int32_t v : touched_) {
      sum_[at(v)] = 0;
    }
  }

  struct Met {
    std::int32_t of, count = 0;
    Hash sum = 0;
    bool same = true;
  };
  Met& met_of_class(std::int32_t c) {
    if (met_of_[at(c)] == 0) {
      met_classes_.push_back({c});
      met_of_[at(c)] = static_cast<std::int32_t>(met_classes_.size());
    }
    return met_classes_[at(met_of_[at(c)]) - 1];
  }

  /// Splits the class of the touched vertex `first`, whose touched members stand from there on,
  /// those with equal sums together; returns where the next class begins.
  std::size_t split_class(std::size_t first) {
    const std::int32_t old = class_[at(touched_[first])];
    const bool was_queued = queued_[at(old)];
    std::int32_t largest = old;
    std::size_t i = first;
    while (i < touched_.size() && class_[at(touched_[i])] == old) {
      std::size_t end = i;
      while (end < touched_.size() && class_[at(touched_[end])] == old &&
             sum_[at(touched_[end])] == sum_[at(touched_[i])]) {
        ++end;
      }
      if (at(end_[at(old)] - begin_[at(old)]) == end - i) {
        i = end;  // the last part keeps the number
        break;
      }
      for (std::size_t k = i; k < end; ++k) {  // to the end of the old class, which shrinks
        swap_places(place_[at(touched_[k])], --end_[at(old)]);
      }
      add_class(at(end_[at(old)]));
      const auto part = static_cast<std::int32_t>(begin_.size()) - 1;
      end_[at(part)] = begin_[at(part)] + static_cast<std::int32_t>(end - i);
      for (std::size_t k = i; k < end; ++k) {
        class_[at(touched_[k])] = part;
      }
      largest = size(part) > size(largest) ? part : largest;
      i = end;
    }
    largest = size(old) >= size(largest) ? old : largest;
    if (!was_queued && largest != old) {  // all parts are queued but the largest
      queued_[at(old)] = true;
      queue_.push_back(old);
      queued_[at(largest)] = false;
      *std::ranges::find(queue_.rbegin(), queue_.rend(), largest) = -1;
    }
    return i;
  }

  std::int32_t size(std::int32_t c) const { return end_[at(c)] - begin_[at(c)]; }

  void swap_places(std::int32_t a, std::int32_t b) {
    std::swap(order_[at(a)], order_[at(b)]);
    place_[at(order_[at(a)])] = a;
    place_[at(order_[at(b)])] = b;
  }

  /// Numbers classes in the order of their first members.
  std::int32_t number(std::size_t begin, std::size_t end, std::vector<std::int32_t>& classes) {
    std::vector<std::int32_t> known(end_.size(), -1);
    std::int32_t count = 0;
    classes.resize(end - begin);
    for (std::size_t v = begin; v < end; ++v) {
      std::int32_t& number = known[at(class_[v])];
      number = number < 0 ? count++ : number;
      classes[v - begin] = number;
    }
    return count;
  }

  Partition partition() {
    Partition result;
    result.slot_classes = number(0, slots_, result.slot_class);
    result.constraint_classes = number(slots_, slots_ + constraints_, result.constraint_class);
    result.place_classes = number(slots_ + constraints_, vertices_, result.place_class);
    return result;
  }

  const FlowGraph& graph_;
  std::int32_t most_;
  std::size_t slots_, constraints_, vertices_;
  Copies copies_;
  bool waits_for_earlier_ = true;
  std::vector<std::int32_t> known_places_;  // classes of places that differ, or nothing
  std::vector<Hash> hash_, sum_;
  // Members of class c are order_[begin_[c] … end_[c] - 1].
  std::vector<std::int32_t> order_, place_, class_, begin_, end_, queue_, touched_;
  std::vector<bool> queued_, met_;
  std::vector<std::int32_t> met_of_;  ///< of each class: its index into met_classes_ + 1, or 0
  std::vector<Met> met_classes_;
  std::int32_t slot_classes_ = 0;
  Lookers waiters_, crossings_;
};

/// Who sends what to whom, and nothing else: slots from one place to another with equal numbers are
/// one, with as many `copies`; what tells them from others is their `entry`. Places that are alike
/// in the whole graph are alike here, too.
FlowGraph between_places(const FlowGraph& graph, const std::vector<Hash>& own,
                         std::span<const std::uint64_t> colours) {
  struct Sent {
    std::int32_t to;
    Hash what;
    auto operator<=>(const Sent&) const = default;
  };
  std::vector<std::vector<Sent>> sent(graph.place_colour.size());
  for (std::size_t i = 0; i < graph.slots.size(); ++i) {
    if (const FlowGraph::Slot& slot = graph.slots[i]; slot.source >= 0 && slot.destination >= 0) {
      sent[at(slot.source)].push_back({slot.destination, own[i]});
    }
  }
  FlowGraph between;
  between.place_colour = graph.place_colour;
  for (std::size_t place = 0; place < colours.size(); ++place) {
    between.place_colour[place] = mix(between.place_colour[place], colours[place]);
  }
  for (std::size_t from = 0; from < sent.size(); ++from) {
    std::vector<Sent>& all = sent[from];
    std::ranges::sort(all);
    for (std::size_t i = 0, end = 0; i < all.size(); i = end) {
      while (end < all.size() && all[end] == all[i]) {
        ++end;
      }
      FlowGraph::Slot& slot = between.slots.emplace_back();
      slot.source = static_cast<std::int32_t>(from);
      slot.destination = all[i].to;
      slot.entry = Time::ps(static_cast<std::int64_t>(all[i].what));
      slot.copies = static_cast<std::int64_t>(end - i);
      between.term_begin.push_back(0);
      between.wait_begin.push_back(0);
    }
    all = {};
  }
  return between;
}

}  // namespace

std::optional<Partition> refine(const FlowGraph& graph, std::int32_t most_slot_classes,
                                std::span<const std::uint64_t> colours) {
  std::vector<Hash> own = own_hashes(graph, Copies::kNumber);
  std::vector<std::int32_t> places;
  if (!graph.place_colour.empty()) {
    const FlowGraph between = between_places(graph, own, colours);
    if (std::optional<Partition> coarse =
            Refinement(between, INT32_MAX, Copies::kTimes, own_hashes(between, Copies::kTimes), {})
                .run()) {
      places = std::move(coarse->place_class);
    }
  }
  return Refinement(graph, most_slot_classes, Copies::kNumber, std::move(own), std::move(places))
      .run();
}

}  // namespace lockstep

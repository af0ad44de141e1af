#include "planner/aceso/network.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/error.h"

namespace lockstep::aceso {
namespace {

constexpr double kUnmeasuredMs = 100'000;

double strict_bandwidth(const PeerTable& table, double size_mb) {
  // Python's int() truncates towards zero and its negative indices count from the end.
  auto index = static_cast<std::ptrdiff_t>(std::trunc(std::log2(size_mb)));
  const auto count = static_cast<std::ptrdiff_t>(table.size());
  if (index >= 1) {
    index -= 1;
  }
  if (index < 0) {
    index += count;
  }
  index = std::clamp<std::ptrdiff_t>(index, 0, count - 1);
  return table[static_cast<std::size_t>(index)];
}

double smooth_bandwidth(const PeerTable& table, double size_mb) {
  const double place = std::clamp(std::log2(size_mb), 0.0, static_cast<double>(table.size() - 1));
  const auto below = std::min(static_cast<std::size_t>(place), table.size() - 2);
  const double part = place - static_cast<double>(below);
  return table[below] * (1 - part) + table[below + 1] * part;
}

/// A layout as Aceso compares it: replicas, then the split of batch, sequence and hidden size.
struct Spec {
  int replicas = 1;
  int split[3] = {1, 1, 1};
};

Spec spec_of(Layout layout, OpPlace place) {
  switch (layout) {
    case Layout::kColumn:
      return {1, {1, place.dp, place.tp}};
    case Layout::kHeads:
      return {1, {place.dp, place.tp, 1}};
    case Layout::kBatchFirst:
      return {place.tp, {place.dp, 1, 1}};
    case Layout::kReplicated:
    case Layout::kAny:
      break;
  }
  return {place.tp, {1, place.dp, 1}};
}

/// The first dimension that `wanted` accepts, or -1.
template <class F>
int first_dimension(const Spec& from, const Spec& to, F&& wanted) {
  for (int d = 0; d < 3; ++d) {
    if (wanted(from.split[d], to.split[d])) {
      return d;
    }
  }
  return -1;
}

}  // namespace

double peer_us(const Database& database, double size_mb, bool inter_node, Flavour flavour) {
  const PeerTable& table = inter_node ? database.inter : database.intra;
  if (flavour == Flavour::kStrict) {
    const double bandwidth = size_mb == 0 ? 1 : strict_bandwidth(table, size_mb);
    return size_mb / (bandwidth * 0.001);
  }
  return size_mb == 0 ? 0 : size_mb / (smooth_bandwidth(table, size_mb) * 0.001024);
}

double collective_ms(const Database& database, Primitive primitive, int gpus, double size_mb,
                     Flavour flavour) {
  const auto count = static_cast<unsigned>(gpus);
  if (!std::has_single_bit(count)) {
    return kUnmeasuredMs;
  }
  const auto power = static_cast<std::size_t>(std::bit_width(count) - 1);
  const auto& by_power = database.collectives[static_cast<std::size_t>(primitive)];
  if (power >= by_power.size() || by_power[power].empty()) {
    return kUnmeasuredMs;
  }
  const CollectiveTable& table = by_power[power];
  if (flavour == Flavour::kStrict) {
    if (!(size_mb < 1e15)) {
      return kUnmeasuredMs;
    }
    for (const double size : {size_mb, size_mb - 1}) {
      if (size < 0) {  // "-0", which is no key
        break;
      }
      // "%.0f" rounds halves to even, as nearbyint does.
      const auto found = table.find(static_cast<std::int64_t>(std::nearbyint(size)));
      if (found != table.end()) {
        return found->second;
      }
    }
    return kUnmeasuredMs;
  }
  const auto above = table.lower_bound(static_cast<std::int64_t>(std::ceil(size_mb)));
  if (above == table.end()) {
    const auto& [size, time] = *table.rbegin();
    return size == 0 ? time : time * size_mb / static_cast<double>(size);
  }
  if (above == table.begin() || static_cast<double>(above->first) == size_mb) {
    return above->second;
  }
  const auto below = std::prev(above);
  const double part = (size_mb - static_cast<double>(below->first)) /
                      static_cast<double>(above->first - below->first);
  return below->second * (1 - part) + above->second * part;
}

Reshard reshard(const Database& database, const OpTraits& producer, OpPlace from,
                const OpTraits& consumer, OpPlace to, double consumer_mb, Flavour flavour) {
  const Layout out = producer.output[from.algorithm];
  const Layout in = consumer.input[to.algorithm];
  if (out == Layout::kAny || in == Layout::kAny) {
    return {};
  }
  Spec have = spec_of(out, from);
  const Spec want = spec_of(in, to);
  const auto price = [&](Primitive primitive, int gpus) {
    return collective_ms(database, primitive, gpus, consumer_mb, flavour);
  };
  const auto grows = [](int before, int after) { return after > before; };
  const auto shrinks = [](int before, int after) { return after < before; };
  Reshard total;
  int steps = 0;
  while (true) {
    if (have.replicas > want.replicas) {
      const int grown = first_dimension(have, want, grows);
      if (grown < 0) {
        break;
      }
      const int ratio =
          flavour == Flavour::kStrict
              ? have.replicas / want.replicas
              : std::min(have.replicas / want.replicas, want.split[grown] / have.split[grown]);
      total.backward_ms += price(Primitive::kAllGather, ratio);
      have.replicas /= ratio;
      have.split[grown] *= ratio;
    } else {
      const int shrunk = first_dimension(have, want, shrinks);
      if (shrunk < 0) {
        break;
      }
      const int ratio = have.split[shrunk] / want.split[shrunk];
      if (have.replicas < want.replicas) {
        total.forward_ms += price(Primitive::kAllGather, ratio);
        have.replicas *= ratio;
      } else {
        const int grown = first_dimension(have, want, grows);
        if (grown < 0) {
          break;
        }
        const double time = price(Primitive::kAllToAll, ratio);
        total.forward_ms += time;
        total.backward_ms += time;
        have.split[grown] *= ratio;
      }
      have.split[shrunk] = want.split[shrunk];
    }
    if (flavour == Flavour::kStrict || ++steps == 3) {  // no two layouts are further apart
      break;
    }
  }
  return total;
}

}  // namespace lockstep::aceso

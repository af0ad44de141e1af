#include "generator/compute/between_measured.h"

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

namespace lockstep {
namespace {

/// Places in OperatorKey::sizes that change together.
using Axis = std::vector<std::size_t>;

std::span<const Axis> axes_of(OperatorKind kind) {
  static const std::vector<Axis> product{{0}, {1}, {2}}, grouped{{0}, {1}, {2}, {3}},
      attention{{0}, {1, 2}, {3, 4}}, memory{{0}};
  switch (kind) {
    case OperatorKind::kGemm:
      return product;
    case OperatorKind::kGroupedGemm:
      return grouped;
    case OperatorKind::kAttention:
      return attention;
    case OperatorKind::kMemory:
      break;
  }
  return memory;
}

/// Whether `other` is `key` with the sizes of this axis in the same proportion to each other.
bool lies_along(const Axis& axis, const OperatorKey& key, const OperatorKey& other) {
  OperatorKey moved = other;
  for (const std::size_t place : axis) {
    if (static_cast<double>(other.sizes[place]) * static_cast<double>(key.sizes[axis[0]]) !=
        static_cast<double>(key.sizes[place]) * static_cast<double>(other.sizes[axis[0]])) {
      return false;
    }
    moved.sizes[place] = key.sizes[place];
  }
  return moved == key;
}

double traffic(const Operator& op) {
  const auto m = static_cast<double>(op.m), n = static_cast<double>(op.n),
             k = static_cast<double>(op.k);
  return static_cast<double>(op.groups) * (m * k + k * n + m * n);
}

/// The operator with the sizes of `key`, its work and traffic in proportion.
Operator resized(const Operator& op, const OperatorKey& key) {
  Operator result = op;
  const auto over = [](std::int64_t now, std::int64_t before) {
    return static_cast<double>(now) / static_cast<double>(before);
  };
  switch (op.kind) {
    case OperatorKind::kGemm:
    case OperatorKind::kGroupedGemm: {
      const std::size_t first = op.kind == OperatorKind::kGroupedGemm ? 1 : 0;
      result.groups = first == 1 ? key.sizes[0] : op.groups;
      result.m = key.sizes[first];
      result.n = key.sizes[first + 1];
      result.k = key.sizes[first + 2];
      result.flops *= over(result.groups, op.groups) * over(result.m, op.m) * over(result.n, op.n) *
                      over(result.k, op.k);
      result.bytes *= traffic(result) / traffic(op);
      break;
    }
    case OperatorKind::kAttention: {
      result.batch = key.sizes[0];
      result.heads = key.sizes[1];
      result.kv_heads = key.sizes[2];
      result.queries = key.sizes[3];
      result.keys = key.sizes[4];
      const double rows = over(result.batch, op.batch) * over(result.heads, op.heads) *
                          over(result.queries, op.queries);
      result.flops *= rows * over(result.keys, op.keys);
      result.bytes *= rows * (op.fused ? 1 : over(result.keys, op.keys));
      break;
    }
    case OperatorKind::kMemory:
      result.flops *= static_cast<double>(key.sizes[0]) / op.bytes;
      result.bytes = static_cast<double>(key.sizes[0]);
      break;
  }
  return result;
}

struct Side {
  const OperatorKey* key = nullptr;
  Time time;
};

/// between_measured() among the operators that differ from `key` in sizes alone.
std::optional<Time> between(const OperatorProfile& profile, const Operator& op,
                            const OperatorKey& key,
                            const std::function<Time(const Operator&)>& model) {
  double narrowest = kWidestBracket;
  const Axis* along = nullptr;
  Side low, high;
  for (const Axis& axis : axes_of(op.kind)) {
    const auto size = [&](const OperatorKey& of) { return of.sizes[axis[0]]; };
    Side below, above;
    for (const auto& [other, times] : profile.times) {
      if (times.median <= Time() || !lies_along(axis, key, other)) {
        continue;
      }
      if (size(other) < size(key) && (below.key == nullptr || size(other) > size(*below.key))) {
        below = {&other, times.median};
      } else if (size(other) > size(key) &&
                 (above.key == nullptr || size(other) < size(*above.key))) {
        above = {&other, times.median};
      }
    }
    if (below.key == nullptr || above.key == nullptr) {
      continue;
    }
    const double width =
        static_cast<double>(size(*above.key)) / static_cast<double>(size(*below.key));
    if (along == nullptr ? width <= narrowest : width < narrowest) {
      narrowest = width;
      along = &axis;
      low = below;
      high = above;
    }
  }
  if (along == nullptr) {
    return std::nullopt;
  }
  const auto log_ratio = [&](const Side& side) {
    return std::log(side.time.seconds() / model(resized(op, *side.key)).seconds());
  };
  const std::size_t place = along->front();
  const double weight =
      std::log(static_cast<double>(key.sizes[place]) / static_cast<double>(low.key->sizes[place])) /
      std::log(narrowest);
  return Time::seconds(model(op).seconds() *
                       std::exp((1 - weight) * log_ratio(low) + weight * log_ratio(high)));
}

}  // namespace

std::optional<Time> between_measured(const OperatorProfile& profile, const Operator& op,
                                     Precision precision,
                                     const std::function<Time(const Operator&)>& model) {
  const OperatorKey key = key_of(op, precision);
  const std::optional<Time> time = between(profile, op, key, model);
  return time || !key.work ? time : between(profile, op, of_any_work(key), model);
}

}  // namespace lockstep

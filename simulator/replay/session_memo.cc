#include "simulator/replay/session_memo.h"

#include <algorithm>

namespace lockstep {

std::size_t SessionMemo::KeyHash::operator()(const Key& key) const noexcept {
  std::uint64_t hash = 0x9E3779B97F4A7C15U;
  for (const std::int64_t part : {key.when, key.code, std::int64_t{key.node}}) {
    hash = (hash ^ static_cast<std::uint64_t>(part)) * 0xFF51AFD7ED558CCDU;
    hash ^= hash >> 32;
  }
  return hash;
}

std::int32_t SessionMemo::find(std::int32_t from, Time when, std::int64_t code) {
  Node& node = at(from);
  if (node.last_child >= 0 && node.last_time == when && node.last_code == code) {
    return node.last_child;
  }
  const auto found = children_.find({when.count_ps(), code, from});
  if (found == children_.end()) {
    return -1;
  }
  node.last_time = when;
  node.last_code = code;
  return node.last_child = found->second;
}

std::int32_t SessionMemo::enter(std::int32_t from, Time when, std::int64_t code) {
  const auto [place, is_new] = children_.try_emplace({when.count_ps(), code, from}, -1);
  if (is_new) {
    place->second = add(when);
  }
  return place->second;
}

void SessionMemo::stay_quiet(std::int32_t node, Time until) {
  at(node).quiet = std::max(at(node).quiet, until);
}

void SessionMemo::rest(std::int32_t node) { at(node).known = at(node).rests = true; }

std::int32_t SessionMemo::finish(std::int32_t index, Time when,
                                 std::span<const std::int64_t> codes) {
  if (!at(index).known) {
    const std::int32_t after = add(when);
    Node& node = at(index);
    node.known = true;
    node.when = when;
    node.after = after;
    node.first = static_cast<std::int32_t>(finishes_.size());
    node.count = static_cast<std::int32_t>(codes.size());
    finishes_.insert(finishes_.end(), codes.begin(), codes.end());
  }
  return at(index).after;
}

/// A node that is reached at `when`.
std::int32_t SessionMemo::add(Time when) {
  nodes_.emplace_back().quiet = when - Time::ps(1);
  return static_cast<std::int32_t>(nodes_.size()) - 1;
}

}  // namespace lockstep

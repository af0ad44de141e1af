#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/units.h"

namespace lockstep {

/// What communicators of one shape have done so far in sessions (from the first entry until nothing
/// is under way), to be told again: a tree, in which a node is what has been entered and what has
/// finished, each with its moment relative to the session's begin. A session that is entered in a
/// way that was met before need not be simulated. Nothing is rounded, so it is exact.
///
/// Times count from the node's base: the session's begin, or the last entry at which nothing was
/// under way. What follows from such rest does not depend on how long it lasted.
///
/// Memory: 64 B a node, 24 B an entry, 8 B a finish.
class SessionMemo {
 public:
  struct Node {
    Time quiet =
        Time::ps(-1);  ///< where `known` is false: nothing finishes until then, this included
    Time when = Time::max();            ///< where it is true: the next finishes, or rest
    std::int32_t after = -1;            ///< the node after them
    std::int32_t first = 0, count = 0;  ///< of finishes()
    bool known = false;
    bool rests = false;  ///< nothing is under way
    // The entry that was followed last.
    Time last_time = Time::ps(-1);
    std::int64_t last_code = -1;
    std::int32_t last_child = -1;
  };
  static constexpr std::int32_t kRoot = 0;

  SessionMemo() {
    nodes_.emplace_back();
    rest(kRoot);
  }
  const Node& node(std::int32_t index) const { return nodes_[static_cast<std::size_t>(index)]; }
  std::span<const std::int64_t> finishes(const Node& node) const {
    return std::span(finishes_).subspan(static_cast<std::size_t>(node.first),
                                        static_cast<std::size_t>(node.count));
  }
  /// The node after an entry; -1 where it is new.
  std::int32_t find(std::int32_t from, Time when, std::int64_t code);
  /// That, new where it is.
  std::int32_t enter(std::int32_t from, Time when, std::int64_t code);
  /// Nothing has finished up to then.
  void stay_quiet(std::int32_t node, Time until);
  /// Nothing finishes before something is entered.
  void rest(std::int32_t node);
  /// What finishes next, or nothing where rest comes; returns the node after it.
  std::int32_t finish(std::int32_t node, Time when, std::span<const std::int64_t> codes);
  std::size_t size() const { return nodes_.size(); }

 private:
  struct Key {
    std::int64_t when, code;
    std::int32_t node;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const noexcept;
  };
  Node& at(std::int32_t index) { return nodes_[static_cast<std::size_t>(index)]; }
  std::int32_t add(Time when);

  std::vector<Node> nodes_;
  std::vector<std::int64_t> finishes_;
  std::unordered_map<Key, std::int32_t, KeyHash> children_;  // never iterated
};

}  // namespace lockstep

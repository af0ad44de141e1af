#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lockstep::whatif {

struct OpTable;

/// Whose instances of an operation end together. A lane is one worker of a stage in one step:
/// lane of a step = (dp_rank * cp + cp_rank) * tp + tp_rank.
enum class Scope : std::uint8_t {
  kLane,    ///< its own: the two ends of a transfer between stages
  kTensor,  ///< the tensor-parallel ranks of a (dp_rank, cp_rank)
  kPeers,   ///< the workers of a dp_rank, and those of other dp_ranks with whom they share experts
            ///< or parameters that are gathered within passes
  kReplicas,  ///< all with the same tp_rank
  kStep,      ///< all
};
inline constexpr std::size_t kScopes = 5;

/// How the lanes of a step fall into groups, scope by scope.
struct LaneScopes {
  using Groups = std::vector<std::vector<std::uint32_t>>;

  std::size_t lanes = 1;
  /// Groups of two and more lanes; a lane that is in none is alone.
  std::array<Groups, kScopes> groups;

  const Groups& of(Scope scope) const { return groups[static_cast<std::size_t>(scope)]; }
  /// Every group gets its largest value. `values`: the lanes of whole steps.
  template <class T>
  void take_largest(Scope scope, std::span<T> values) const;
  /// All lanes: the groups, then those that are alone.
  Groups with_lone(Scope scope) const;
};

/// Those of a table. O(lanes of a step).
/// `gathers_in_passes`: see JobMeta.
/// ERRORS (named with `file`): groups of experts that fit no layout, see expert_groups.
LaneScopes lane_scopes(const OpTable& table, const std::string& file,
                       std::int64_t gathers_in_passes = 0);

/// The same groups with as few lanes as behave differently when the lanes `special` do something of
/// their own and all others do the same: first the special ones in their order, then one for each
/// kind of other. By colour refinement: two lanes are of a kind if their groups hold the same
/// kinds. O(lanes log lanes) for each of a few rounds.
LaneScopes reduced(const LaneScopes& scopes, std::span<const std::uint32_t> special);

template <class T>
void LaneScopes::take_largest(Scope scope, std::span<T> values) const {
  for (const std::vector<std::uint32_t>& group : of(scope)) {
    if (group.size() == lanes) {
      for (std::size_t first = 0; first < values.size(); first += lanes) {
        T most = values[first];
        for (std::size_t lane = 1; lane < lanes; ++lane) {
          most = most < values[first + lane] ? values[first + lane] : most;
        }
        for (std::size_t lane = 0; lane < lanes; ++lane) {
          values[first + lane] = most;
        }
      }
      continue;
    }
    for (std::size_t first = 0; first < values.size(); first += lanes) {
      T most = values[first + group.front()];
      for (const std::uint32_t lane : group) {
        most = most < values[first + lane] ? values[first + lane] : most;
      }
      for (const std::uint32_t lane : group) {
        values[first + lane] = most;
      }
    }
  }
}

}  // namespace lockstep::whatif

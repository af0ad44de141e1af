#pragma once

#include <cstdint>
#include <vector>

#include "simulator/replay/program.h"

namespace lockstep {

/// In which order the ranks of each group begin its collectives, where their streams take the
/// newest first and one at a time. Ranks that run at different speeds have other newest ones; but a
/// rank that waits in one for its peers leaves none of theirs behind, so all have to follow the
/// first that begins each.
///
/// Ranks at one speed do so anyway. Across groups ranks may wait for each other in a circle still.
/// O(1) a question; memory 4 B a collective of a group.
class BegunOrder {
 public:
  /// How many collectives of its group of each family a rank has begun.
  using Begun = std::vector<std::int32_t>;

  /// `work` must outlive this.
  explicit BegunOrder(const RankPrograms& work) : work_(work) {}
  /// Whether none of those that its peers have begun comes first.
  bool may_begin(const Begun& begun, std::int32_t rank, const ProgramOp& op) const;
  /// PRECONDITION: may_begin().
  void begin(Begun& begun, std::int32_t rank, const ProgramOp& op);

 private:
  const RankPrograms& work_;
  /// By family and group: sequences. Empty until the first begins.
  std::vector<std::vector<std::vector<std::int32_t>>> order_;
};

}  // namespace lockstep

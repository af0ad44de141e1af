#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "generator/exact/groups.h"
#include "profiler/run/run_plan.h"

namespace lockstep {

/// A product that takes about so long at that rate.
ComputeCall product_lasting(Time time, double flops);

/// AICB's word for a kind of communicator: "tp_group", "ep_dp_group", "all".
std::string_view aicb_group_name(RankGroup group);
/// Its word for an operation: "all_reduce", "isend" …
std::string_view aicb_comm_name(const RunItem& item);
/// Whether one of the ranks gives to, or takes from, all others.
constexpr bool has_root(CommType comm) {
  return comm == CommType::kBroadcast || comm == CommType::kReduce;
}
/// The rank that is the item's root. PRECONDITION: has_root().
std::int32_t root_rank(const RunPlan& plan, const RunItem& item);
/// The communicator of an item as AICB names it; "" for computations.
std::string group_name(const RunPlan& plan, const RunItem& item);
/// Members of the item's group; messages and computations are of one, as AICB has them.
std::int64_t group_size(const RunPlan& plan, const RunItem& item);

/// The communicators of a cut, added to a plan kind by kind as they are asked for. All ranks ask in
/// the same order, since they read the same workload.
class GroupTable {
 public:
  struct Cut {
    std::int64_t world = 1, tp = 1, ep = 1, pp = 1;
  };
  /// ERRORS: degrees that do not divide the world.
  GroupTable(RunPlan& plan, const Cut& cut);
  /// Index of this rank's communicator of that kind in RunPlan::groups. EP groups stride over
  /// tensor-parallel groups where ep divides the data-parallel ranks, and are blocks of consecutive
  /// ranks where it only divides tp times as many; kExpertTp is AICB's: the ranks of both.
  int own(RankGroup kind);
  /// Likewise of the pair that a message to (from) the next or previous stage passes through; -1 if
  /// the pipeline ends here.
  int pair(bool send, bool next);

 private:
  std::vector<std::vector<std::int32_t>> members_of(RankGroup kind) const;

  RunPlan& plan_;
  RankLayout layout_;
  std::map<RankGroup, int> own_;
  /// By whether messages run forwards: the pairs of which this rank is the receiver, the sender.
  std::map<bool, std::array<int, 2>> pairs_;
};

}  // namespace lockstep

#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "workloads/comm.h"

namespace lockstep {

/// Which traffic class the transfers of an operation are in: rules by kind of group, by operation
/// and by job, of which the last that fits holds. Class 0 goes first on every port.
class TrafficClasses {
 public:
  /// "WHAT=CLASS,…": WHAT a kind of group (tp, dp, ep, dp_ep, pp, cp, world), an operation
  /// (allreduce, alltoall, …) or a job (job1, job2, … in the order of the workloads).
  /// ERRORS: Error naming the part that is none of these, or has no class 0 to 7.
  static TrafficClasses parse(std::string_view text);

  bool empty() const { return rules_.empty(); }
  /// The class; -1 where no rule fits. `job` counts from 0.
  std::int32_t of(GroupKind kind, CommType op, std::int32_t job) const;
  /// How many classes there must be: one more than the largest named, and one for all others.
  std::int32_t needed() const;

 private:
  struct Rule {
    std::optional<GroupKind> kind;
    std::optional<CommType> op;
    std::optional<std::int32_t> job;
    std::int32_t traffic_class = 0;
  };
  std::vector<Rule> rules_;
};

}  // namespace lockstep

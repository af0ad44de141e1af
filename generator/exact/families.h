#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "generator/exact/groups.h"
#include "workloads/workload.h"

namespace lockstep {

/// The group families of an OpTable, each made when first asked for.
class Families {
 public:
  using Groups = std::vector<std::vector<std::int32_t>>;
  using GroupsOf = std::function<Groups(RankGroup)>;

  /// PRECONDITION: check_layout(layout); `replicas` divides dp x cp and
  /// expert_dp().
  Families(RankLayout layout, std::int64_t replicas);
  /// Of a job without a layout: the groups of each kind as they are given.
  explicit Families(GroupsOf groups);
  /// From here on pipelines, and what is one of them, are those of a part of the job: families of
  /// their own, under its name.
  void enter_part(std::string name, GroupsOf groups);

  std::int32_t of(RankGroup kind);
  /// First and last stage of each pipeline.
  std::int32_t embedding();
  /// The pipelines once more, for messages that go backward where forward ones go between the same
  /// ranks in the same direction: two stages with several chunks.
  std::int32_t pipeline_back();
  /// The two stages of each pipeline that hold the same layers under a bidirectional schedule.
  std::int32_t copies();
  /// Among the ranks with the same dense (expert) parameters: those that cut them among each other,
  /// and those that hold the same part. Replicas are consecutive blocks of these ranks.
  std::int32_t shard(bool expert);
  std::int32_t replica(bool expert);

  /// A family of its own name.
  std::int32_t add(std::string name, Groups groups);

  std::vector<GroupFamily> take() { return std::move(families_); }

 private:
  template <class Make>
  std::int32_t get(std::string name, Make make);
  Groups split_replicas(RankGroup kind, bool across) const;

  GroupsOf groups_of_;
  std::int64_t replicas_ = 1;
  std::string part_;  ///< what the names of pipelines end in: "" or ".NAME"
  std::map<std::string, std::int32_t> index_;
  std::vector<GroupFamily> families_;
};

}  // namespace lockstep

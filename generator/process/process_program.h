#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "generator/exact/families.h"
#include "generator/exact/schedule.h"
#include "generator/exact/stage_plan.h"
#include "generator/process/process.h"
#include "generator/process/process_variables.h"
#include "workloads/workload.h"

namespace lockstep {

/// Runs a process's items for one pipeline stage and writes down what they do.
class ProcessProgram {
 public:
  struct Limits {
    std::int64_t ops = 0;    ///< of the program
    std::int64_t items = 0;  ///< that run, whether they make an operation or not
  };

  /// All references must outlive it. PRECONDITION: check_job(job).
  ProcessProgram(const Job& job, const StagePlan& plan, const OperatorTime& time,
                 Families& families, const Process& process, std::int64_t stage, Limits limits);

  /// The program but its ranks: the items of `init`, if wanted; those of `forward` and `backward`
  /// in the order of the slots; those of `step`.
  OpProgram build(const std::vector<PipelineSlot>& slots, bool with_init);
  /// How many operations at the front of the program are those of `init`.
  std::size_t init_ops() const { return init_ops_; }

 private:
  using Ops = std::vector<std::int32_t>;

  /// Where items run: in a pass or not, at a unit or not.
  struct Place {
    const PipelineSlot* slot = nullptr;
    const PlacedUnit* unit = nullptr;
  };

  void run(const std::vector<ProcessItem>& items, const Place& place);
  void run(const ProcessItem& item, const Place& place);
  void run_chosen(const ProcessItem& item, const Place& place);
  void collective(const ProcessItem& item);
  void message(const ProcessItem& item);
  void compute(const ProcessItem& item);
  void pass(const PlacedUnit& unit, bool backward);
  void each_unit(const ProcessItem& item, const Place& place);
  void each_bucket(const ProcessItem& item, const Place& place);
  std::vector<std::size_t> unit_order(const Place& place) const;
  const std::vector<PlacedUnit>& units_at(const Place& place) const;

  std::int64_t members(const ProcessGroup& group) const;
  std::int32_t family(const ProcessGroup& group);
  std::int64_t bytes(const ProcessExpression& expression) const;
  std::int32_t add(Op op);
  void follow(std::int32_t op, bool overlap);

  const Job& job_;
  const StagePlan& plan_;
  const OperatorTime& time_;
  Families& families_;
  const Process& process_;
  std::int64_t stage_;
  Limits limits_;
  RankLayout layout_;
  Variables variables_;
  std::vector<std::vector<PlacedUnit>> units_;     ///< by chunk
  std::vector<std::vector<UnitBuckets>> buckets_;  ///< by chunk
  std::vector<PlacedUnit> all_units_;
  std::string prefix_;            ///< of the operations' names: "forward 0 "
  OpType type_ = OpType::kOther;  ///< of the operations added, unless they have their own
  std::int32_t microbatch_ = -1, chunk_ = -1;
  OpProgram program_;
  Ops tail_;        ///< what the next item waits for
  Ops overlapped_;  ///< what nothing waits for yet
  std::size_t init_ops_ = 0;
};

}  // namespace lockstep

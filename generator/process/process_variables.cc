#include "generator/process/process_variables.h"

#include <string>

#include <fmt/format.h>

#include "base/error.h"
#include "generator/exact/buckets.h"

namespace lockstep {
namespace {

double real(std::int64_t value) { return static_cast<double>(value); }

/// -1 for what is before the first layer or after the last.
double layer_of(const PlacedUnit& unit) {
  const std::size_t digits = unit.name.find_first_of("0123456789");
  return digits == std::string::npos ? -1 : std::stod(unit.name.substr(digits));
}

}  // namespace

Variables stage_variables(const Job& job, const StagePlan& plan, std::int64_t stage) {
  const RankLayout layout = layout_of(job);
  const RankSizes& sizes = plan.sizes();
  const ParameterCount parameters = plan.parameters(stage);
  const Variables own{
      {"gpus", real(job.gpus)},
      {"tp", real(job.tp)},
      {"cp", real(job.cp)},
      {"dp", real(job.dp() * job.cp)},
      {"pp", real(job.pp)},
      {"vpp", real(job.vpp)},
      {"ep", real(layout.ep)},
      {"expert_tp", real(layout.etp)},
      {"expert_dp", real(layout.expert_dp())},
      {"seq", real(job.seq)},
      {"micro_batch", real(job.micro_batch)},
      {"global_batch", real(job.global_batch)},
      {"microbatches", real(job.microbatches())},
      {"sequence_parallel", sizes.sequence_parallel ? 1. : 0.},
      {"tokens", real(sizes.tokens)},
      {"local_tokens", real(sizes.local_tokens)},
      {"stage", real(stage)},
      {"first_stage", stage == 0 ? 1. : 0.},
      {"last_stage", stage == job.pp - 1 ? 1. : 0.},
      {"parameters", real(parameters.dense) + real(parameters.expert)},
      {"dense_parameters", real(parameters.dense)},
      {"expert_parameters", real(parameters.expert)},
      {"replicated_parameters", real(parameters.replicated)},
      {"summed_parameters", real(plan.summed_parameters(stage))},
      {"tied_parameters", real(plan.tied_parameters())},
      {"parameter_width", real(sizes.parameter)},
      {"gradient_width", real(sizes.gradient)},
      {"activation_width", real(sizes.activation)},
  };
  Variables variables = job.model.variables;
  for (const auto& [name, value] : own) {
    if (!variables.emplace(name, value).second) {
      throw Error(fmt::format("the model's variable '{}' has the name of one of the job", name))
          .field("variables." + name)
          .hint("rename it in the model file, or run without --process");
    }
  }
  return variables;
}

void add_slot_variables(Variables& variables, const Job& job, const StagePlan& plan,
                        std::int64_t stage, const PipelineSlot& slot) {
  const bool first = stage == 0 && slot.chunk == 0;
  const bool last = stage == job.pp - 1 && slot.chunk == job.vpp - 1;
  variables["microbatch"] = slot.microbatch;
  variables["chunk"] = slot.chunk;
  variables["first_microbatch"] = slot.microbatch == 0 ? 1 : 0;
  variables["last_microbatch"] = slot.microbatch == job.microbatches() - 1 ? 1 : 0;
  variables["has_previous"] = first ? 0 : 1;
  variables["has_next"] = last ? 0 : 1;
  const Bytes input = first       ? Bytes()
                      : stage > 0 ? plan.output_bytes(stage - 1, slot.chunk)
                                  : plan.output_bytes(job.pp - 1, slot.chunk - 1);
  variables["input_bytes"] = real(input.count());
  variables["output_bytes"] = last ? 0 : real(plan.output_bytes(stage, slot.chunk).count());
}

void add_unit_variables(Variables& variables, const PlacedUnit& unit, const UnitBuckets& buckets) {
  const ParameterCount& parameters = unit.unit->parameters;
  variables["layer"] = layer_of(unit);
  variables["unit_parameters"] = real(parameters.dense) + real(parameters.expert);
  variables["unit_dense_parameters"] = real(parameters.dense);
  variables["unit_expert_parameters"] = real(parameters.expert);
  variables["bucket_parameters"] = real(buckets.dense);
  variables["expert_bucket_parameters"] = real(buckets.expert);
}

std::vector<UnitBuckets> buckets_of(const std::vector<PlacedUnit>& units, const Job& job,
                                    bool first) {
  std::vector<UnitBuckets> completed(units.size());
  for (const bool expert : {false, true}) {
    std::vector<std::int64_t> parameters;
    for (auto unit = units.rbegin(); unit != units.rend(); ++unit) {
      parameters.push_back(expert ? unit->unit->parameters.expert : unit->unit->parameters.dense);
    }
    for (const GradientBucket& bucket : make_buckets(parameters, bucket_limit(job, first))) {
      UnitBuckets& last = completed[units.size() - 1 - bucket.last];
      (expert ? last.expert : last.dense) += bucket.parameters;
    }
  }
  return completed;
}

}  // namespace lockstep

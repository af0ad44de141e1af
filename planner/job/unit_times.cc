#include "planner/job/unit_times.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "generator/exact/pass_ops.h"
#include "generator/exact/rank_sizes.h"
#include "generator/exact/stage_streams.h"

namespace lockstep {

std::vector<const UnitTimes*> ModelTimes::units(const ModelChunk& chunk) const {
  std::vector<const UnitTimes*> list;
  if (chunk.embedding && before.unit != nullptr) {
    list.push_back(&before);
  }
  for (std::int64_t layer = chunk.first; layer < chunk.first + chunk.layers; ++layer) {
    const auto block = std::ranges::upper_bound(block_end, layer) - block_end.begin();
    list.push_back(&blocks[static_cast<std::size_t>(block)]);
  }
  if (chunk.head && after.unit != nullptr) {
    list.push_back(&after);
  }
  return list;
}

UnitTimesCache::UnitTimesCache(OperatorTime time, CollectiveBound& bounds, double compute)
    : time_(std::move(time)), bounds_(bounds), compute_(compute) {}

double UnitTimesCache::path_s(const FoldedPass& pass, const RankLayout& layout) {
  std::vector<double> end(pass.steps.size());
  std::array<double, kStageStreamNames.size()> stream{};
  std::vector<double> sent;  // end of each send of the ring; receives match them in order
  std::size_t received = 0;
  for (std::size_t i = 0; i < pass.steps.size(); ++i) {
    const FoldedStep& step = pass.steps[i];
    const PassComm& transfer = step.transfer;
    double ready = 0;
    for (const std::int32_t earlier : step.after) {
      ready = std::max(ready, end[static_cast<std::size_t>(earlier)]);
    }
    if (transfer.comm == CommType::kNone) {
      end[i] = std::max(ready, stream[kComputeStream]) + step.compute.seconds() / compute_;
      stream[kComputeStream] = end[i];
      continue;
    }
    double& line = stream[static_cast<std::size_t>(stream_of(transfer))];
    end[i] = std::max(ready, line);
    if (transfer.comm != CommType::kSendRecv || transfer.send) {
      end[i] += bounds_.least_s(layout, transfer.group, transfer.comm, transfer.bytes);
    } else if (received < sent.size()) {
      end[i] = std::max(end[i], sent[received]);
    }
    if (transfer.comm == CommType::kSendRecv) {
      if (transfer.send) {
        sent.push_back(end[i]);
      } else {
        ++received;
      }
    }
    line = end[i];
  }
  double last = 0;
  for (const std::int32_t exit : pass.exits) {
    last = std::max(last, end[static_cast<std::size_t>(exit)]);
  }
  return last;
}

UnitTimes UnitTimesCache::unit_times(const ModelUnit* unit, const RankLayout& layout) {
  UnitTimes times;
  times.unit = unit;
  times.forward = path_s(unit->forward, layout);
  times.backward = path_s(unit->backward, layout);
  times.input = path_s(unit->input_backward, layout);
  times.weights = path_s(unit->weight_backward, layout);
  for (const FoldedStep& step : unit->forward.steps) {
    times.compute_forward += step.compute.seconds() / compute_;
  }
  for (const FoldedStep& step : unit->backward.steps) {
    times.compute_backward += step.compute.seconds() / compute_;
  }
  return times;
}

const ModelTimes& UnitTimesCache::of(const Job& job) { return of(job, layout_of(job)); }

const ModelTimes& UnitTimesCache::of(const Job& job, const RankLayout& layout) {
  const std::string units =
      fmt::format("{} {} {} {} {} {} {} {} {}", job.tp, job.cp, job.ep, layout.etp, job.micro_batch,
                  job.sequence_parallel, static_cast<int>(job.recompute),
                  static_cast<int>(job.context_comm), job.pp > 1);
  const auto [found, is_new] =
      known_.try_emplace(fmt::format("{} {} {} {}", units, layout.gpus, layout.pp, layout.order));
  ModelTimes& model = found->second;
  if (!is_new) {
    return model;
  }
  std::unique_ptr<StagePlan>& plan = plans_[units];
  Job plain = job;  // the units do not depend on how many stages there are, if several
  plain.pp = std::min<std::int64_t>(job.pp, 2);
  plain.vpp = 1;
  plain.first_stage_layers = plain.last_stage_layers = 0;
  plain.stage_layers.clear();
  plain.schedule = "1f1b";
  if (!plan) {
    plan = std::make_unique<StagePlan>(plain, time_);
  }
  model.plan = plan.get();
  std::vector<PlacedUnit> all;
  for (std::int64_t stage = 0; stage < plain.pp; ++stage) {
    const std::vector<PlacedUnit> some = plan->units(stage, 0);
    all.insert(all.end(), some.begin(), some.end());
  }
  const std::size_t first = job.model.before.empty() ? 0 : 1;
  if (first > 0) {
    model.before = unit_times(all.front().unit, layout);
  }
  if (!job.model.after.empty()) {
    model.after = unit_times(all.back().unit, layout);
  }
  std::int64_t layers = 0;
  for (const LayerBlock& block : job.model.blocks) {
    model.blocks.push_back(unit_times(all[first + static_cast<std::size_t>(layers)].unit, layout));
    layers += block.layers;
    model.block_end.push_back(layers);
  }
  return model;
}

}  // namespace lockstep

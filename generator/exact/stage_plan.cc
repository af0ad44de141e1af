#include "generator/exact/stage_plan.h"

#include <algorithm>

#include "generator/exact/split_pass.h"

namespace lockstep {
namespace {

std::int64_t residual_width(const std::vector<Module>& modules) {
  std::int64_t width = 0;
  for (const Module& module : modules) {
    if (module.kind == ModuleKind::kMoe) {
      width = module.in;
    } else if (module.kind == ModuleKind::kRowLinear || module.kind == ModuleKind::kEmbedding) {
      width = module.out;
    }
  }
  return width;
}

std::int64_t products_of(const std::vector<Module>& modules, const RankSizes& sizes) {
  std::int64_t products = 0;
  for (const Module& module : modules) {
    switch (module.kind) {
      case ModuleKind::kColumnLinear:
      case ModuleKind::kRowLinear:
      case ModuleKind::kPlainLinear:
        ++products;
        break;
      case ModuleKind::kMoe:
        products += 2 * (module.experts / sizes.ep) + (module.shared_ffn > 0 ? 2 : 0);
        break;
      default:
        break;
    }
  }
  return products;
}

std::int64_t summed_parameters(const std::vector<Module>& modules, const RankSizes& sizes) {
  const std::vector<Region> regions = regions_of(modules);
  std::int64_t summed = 0;
  for (std::size_t i = 0; i < modules.size(); ++i) {
    const bool of_heads = modules[i].kind == ModuleKind::kNorm && regions[i] == Region::kTensor;
    if (sizes.sequence_parallel || (sizes.tp > 1 && of_heads)) {
      summed += parameters_of(modules[i], sizes).replicated;
    }
  }
  return summed;
}

ModelUnit make_unit(const std::vector<Module>& modules, const PassOptions& options,
                    const OperatorTime& time, Time launch) {
  ModelUnit unit;
  unit.forward = fold(forward_pass(modules, options), time, launch);
  const Pass backward = backward_pass(modules, options);
  const SplitPass parts = split_weights(backward);
  unit.backward = fold(backward, time, launch);
  unit.input_backward = fold(parts.input, time, launch);
  unit.weight_backward = fold(parts.weights, time, launch);
  unit.parameters = parameters_of(modules, options);
  unit.summed_parameters = summed_parameters(modules, options.sizes);
  unit.residual_width = residual_width(modules);
  unit.products = products_of(modules, options.sizes);
  return unit;
}

}  // namespace

std::int64_t layer_count(const Model& model) {
  std::int64_t layers = 0;
  for (const LayerBlock& block : model.blocks) {
    layers += block.layers;
  }
  return layers;
}

const FoldedPass& ModelUnit::pass(const PipelineSlot& slot) const {
  if (!slot.backward) {
    return forward;
  }
  switch (slot.part) {
    case BackwardPart::kInput:
      return input_backward;
    case BackwardPart::kWeights:
      return weight_backward;
    default:
      return backward;
  }
}

std::vector<std::vector<ModelChunk>> stages_of(const Job& job) {
  std::vector<std::vector<ModelChunk>> stages =
      cut_into_stages({.layers = layer_count(job.model),
                       .pp = job.pp,
                       .vpp = job.vpp,
                       .first_layers = job.first_stage_layers,
                       .last_layers = job.last_stage_layers,
                       .counts = job.stage_layers});
  if (pipeline_schedule_named(job.schedule).bidirectional) {
    const std::vector<std::vector<ModelChunk>> one_way = stages;
    for (std::size_t s = 0; s < stages.size(); ++s) {
      stages[s].push_back(one_way[stages.size() - 1 - s].front());
    }
  }
  return stages;
}

bool is_first_chunk(const Job& job, std::int64_t stage, std::int64_t chunk) {
  if (pipeline_schedule_named(job.schedule).bidirectional) {
    return stage == (chunk == 0 ? 0 : job.pp - 1);
  }
  return stage == 0 && chunk == 0;
}

StagePlan::StagePlan(const Job& job, const OperatorTime& time)
    : sizes_(rank_sizes(job)), chunks_(stages_of(job)) {
  PassOptions options;
  options.sizes = sizes_;
  options.context_comm = job.context_comm;
  options.recompute = job.recompute;
  options.product_overlap = job.product_overlap;
  options.tied_copy = job.pp > 1;
  has_before_ = !job.model.before.empty();
  has_after_ = !job.model.after.empty();
  before_ = make_unit(job.model.before, options, time, job.host_launch);
  after_ = make_unit(job.model.after, options, time, job.host_launch);
  std::int64_t end = 0;
  for (const LayerBlock& block : job.model.blocks) {
    blocks_.push_back(make_unit(block.modules, options, time, job.host_launch));
    end += block.layers;
    block_end_.push_back(end);
  }
  for (const Module& module : job.model.after) {
    if (module.shared) {
      Module table = module;
      table.shared = false;
      table.bias = false;  // the head's own
      tied_parameters_ += lockstep::parameters_of(table, sizes_).dense;
    }
  }
}

std::vector<PlacedUnit> StagePlan::units(std::int64_t stage, std::int64_t chunk) const {
  const ModelChunk& what =
      chunks_[static_cast<std::size_t>(stage)][static_cast<std::size_t>(chunk)];
  std::vector<PlacedUnit> units;
  if (what.embedding && has_before_) {
    units.push_back({"embedding", &before_});
  }
  for (std::int64_t layer = what.first; layer < what.first + what.layers; ++layer) {
    const auto block = std::ranges::upper_bound(block_end_, layer) - block_end_.begin();
    units.push_back({"layer " + std::to_string(layer), &blocks_[static_cast<std::size_t>(block)]});
  }
  if (what.head && has_after_) {
    units.push_back({"head", &after_});
  }
  return units;
}

ParameterCount StagePlan::parameters(std::int64_t stage) const {
  ParameterCount sum;
  const auto chunks = static_cast<std::int64_t>(chunks_[static_cast<std::size_t>(stage)].size());
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    for (const PlacedUnit& placed : units(stage, chunk)) {
      sum += placed.unit->parameters;
    }
  }
  return sum;
}

std::int64_t StagePlan::summed_parameters(std::int64_t stage) const {
  std::int64_t sum = 0;
  for (std::int64_t chunk = 0; chunk < chunks(); ++chunk) {
    for (const PlacedUnit& placed : units(stage, chunk)) {
      sum += placed.unit->summed_parameters;
    }
  }
  return sum;
}

Bytes StagePlan::output_bytes(std::int64_t stage, std::int64_t chunk) const {
  std::int64_t width = 0;
  for (const PlacedUnit& placed : units(stage, chunk)) {
    width = placed.unit->residual_width > 0 ? placed.unit->residual_width : width;
  }
  return Bytes(sizes_.local_tokens) * width * sizes_.activation;
}

}  // namespace lockstep

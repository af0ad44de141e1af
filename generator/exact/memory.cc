#include "generator/exact/memory.h"

#include <algorithm>

#include <fmt/format.h>

#include "generator/count.h"
#include "generator/exact/operator_parts.h"
#include "generator/exact/pass.h"
#include "generator/exact/schedule.h"
#include "generator/exact/shared_input.h"
#include "generator/exact/stage_plan.h"

namespace lockstep {
namespace {

Bytes size_of(std::int64_t rows, std::int64_t width, std::int64_t element) {
  return Bytes(rows) * width * element;
}

Bytes attention_bytes(const Module& module, const Job& job, const RankSizes& sizes) {
  const std::int64_t heads = module.heads / sizes.tp;
  const std::int64_t kv_heads = std::max<std::int64_t>(1, module.kv_heads / sizes.tp);
  const std::int64_t width =
      heads * module.head_dim + kv_heads * (module.head_dim + module.value_dim);
  Bytes kept = size_of(sizes.tokens, width, sizes.activation);
  if (job.recompute == Recompute::kSelective) {
    return kept;
  }
  if (job.flash_attention) {
    return kept + size_of(sizes.tokens, heads, 4);
  }
  const std::int64_t score = sizes.activation + (job.dropout ? 1 + sizes.activation : 0);
  return kept + size_of(sizes.tokens, heads * sizes.seq, score);
}

Bytes moe_bytes(const Module& module, const RankSizes& sizes) {
  const std::int64_t rows = dispatched_rows(module, sizes);
  const std::int64_t expert_rows = rows * sizes.etp, ffn = module.expert_ffn / sizes.etp;
  const std::int64_t halves = module.gated ? 2 : 1;
  Bytes kept = size_of(sizes.local_tokens, module.in, sizes.activation) +
               size_of(sizes.local_tokens, module.experts, 4) +
               operand_bytes(expert_rows, module.in, sizes) +
               size_of(expert_rows, halves * ffn, sizes.activation) +
               operand_bytes(expert_rows, ffn, sizes) + size_of(rows, module.in, sizes.activation);
  const std::int64_t shared = module.shared_ffn / sizes.tp;
  kept += size_of(sizes.tokens, halves * shared, sizes.activation) +
          operand_bytes(sizes.tokens, shared, sizes);
  return kept;
}

Bytes module_bytes(const Module& module, Region region, bool own_input, const Job& job,
                   const RankSizes& sizes) {
  const std::int64_t rows = rows_in(region, sizes);
  switch (module.kind) {
    case ModuleKind::kEmbedding:
      return {};
    case ModuleKind::kNorm:
      return size_of(rows, norm_width_in(region, module, sizes), sizes.activation);
    case ModuleKind::kActivation:
      return size_of(rows, width_in(region, module.in, sizes), sizes.activation);
    case ModuleKind::kColumnLinear:
    case ModuleKind::kPlainLinear:
      return own_input ? operand_bytes(rows, module.in, sizes) : Bytes();
    case ModuleKind::kRowLinear:
      return operand_bytes(rows, width_in(region, module.in, sizes), sizes) +
             size_of(sizes.local_tokens, module.out, job.dropout && !module.parallel ? 1 : 0);
    case ModuleKind::kHead:
      return size_of(rows, module.in, sizes.activation) +
             size_of(sizes.tokens, width_in(Region::kTensor, module.out, sizes), 4);
    case ModuleKind::kAttention:
      return attention_bytes(module, job, sizes);
    case ModuleKind::kMoe:
      return moe_bytes(module, sizes);
    case ModuleKind::kCustom:
      return size_of(rows, width_in(region, module.in, sizes), sizes.activation);
  }
  return {};
}

/// A plain linear behind a column linear, whose output is cut over tp, reads what a linear before
/// has read and kept (DeepSeek's compressed keys and values, beside its queries).
bool reads_what_is_kept(std::span<const Module> modules, std::size_t i) {
  const auto is_linear = [](const Module& module) {
    return module.kind == ModuleKind::kColumnLinear || module.kind == ModuleKind::kPlainLinear;
  };
  return i > 0 && modules[i].kind == ModuleKind::kPlainLinear &&
         modules[i - 1].kind == ModuleKind::kColumnLinear &&
         std::ranges::any_of(modules.first(i), [&](const Module& module) {
           return is_linear(module) && module.in == modules[i].in;
         });
}

Bytes kept_without_recompute(std::span<const Module> modules, const Job& job) {
  const RankSizes sizes = rank_sizes(job);
  const std::vector<Region> regions = regions_of(modules);
  const std::vector<SharedInput> inputs = shared_inputs(modules);
  Bytes kept;
  for (std::size_t i = 0; i < modules.size(); ++i) {
    // The encoder's output is one tensor for all layers of the decoder, and left out.
    const bool own_input = inputs[i].first && !modules[i].cross && !reads_what_is_kept(modules, i);
    kept += module_bytes(modules[i], regions[i], own_input, job, sizes);
  }
  if (!modules.empty() && modules.front().kind == ModuleKind::kEmbedding && job.dropout) {
    kept += size_of(sizes.local_tokens, modules.front().out, 1);
  }
  return kept;
}

bool at_an_edge(std::span<const Module> modules) {
  return !modules.empty() && (modules.front().kind == ModuleKind::kEmbedding ||
                              modules.back().kind == ModuleKind::kHead);
}

std::int64_t input_width(std::span<const Module> modules) {
  const Module& first = modules.front();
  return first.in > 0 ? first.in : first.out;
}

/// What the layers of one chunk keep, and what its units hold.
struct ChunkMemory {
  Bytes kept;
  Bytes recomputed;  ///< of the layer that recomputes most
  Bytes all_recomputed;
  ParameterCount parameters;
  std::int64_t largest_dense = 0, largest_expert = 0;  ///< parameters of a unit
};

void add(ChunkMemory& memory, const UnitMemory& unit, std::int64_t times) {
  memory.kept += unit.kept * times;
  memory.recomputed = std::max(memory.recomputed, unit.recomputed);
  memory.all_recomputed += unit.recomputed * times;
  memory.parameters +=
      {(Count(unit.parameters.dense) * times).value, (Count(unit.parameters.expert) * times).value,
       (Count(unit.parameters.replicated) * times).value};
  memory.largest_dense = std::max(memory.largest_dense, unit.parameters.dense);
  memory.largest_expert = std::max(memory.largest_expert, unit.parameters.expert);
}

ChunkMemory chunk_memory(const Job& job, const ModelMemory& model, const ModelChunk& what) {
  ChunkMemory memory;
  if (what.embedding) {
    add(memory, model.before, 1);
  }
  std::int64_t first = 0;
  for (std::size_t b = 0; b < model.blocks.size(); ++b) {
    const std::int64_t next = first + job.model.blocks[b].layers;
    const std::int64_t begin = std::max(first, what.first);
    const std::int64_t end = std::min(next, what.first + what.layers);
    if (begin < end) {
      add(memory, model.blocks[b], end - begin);
    }
    first = next;
  }
  if (what.head) {
    add(memory, model.after, 1);
  }
  return memory;
}

}  // namespace

void fill_states(const Job& job, StageMemory& memory) {
  const RankSizes sizes = rank_sizes(job);
  const auto held = [&](Sharding from) {
    const bool cut = job.sharding >= from;
    return ceil_div(memory.parameters.dense, cut ? dense_shards(job) : 1) +
           ceil_div(memory.parameters.expert, cut ? expert_shards(job) : 1);
  };
  const std::int64_t state = job.precision == Precision::kFp32 ? 8 : sizes.gradient == 2 ? 16 : 12;
  memory.optimizer = Bytes(held(Sharding::kZero1)) * state;
  memory.gradients = Bytes(held(Sharding::kZero2)) * sizes.gradient;
  memory.weights = Bytes(held(Sharding::kZero3)) * sizes.parameter;
}

Bytes kept_activations(std::span<const Module> modules, const Job& job) {
  if (job.recompute == Recompute::kFull && !modules.empty() && !at_an_edge(modules)) {
    const RankSizes sizes = rank_sizes(job);
    return size_of(sizes.local_tokens, input_width(modules), sizes.activation);
  }
  return kept_without_recompute(modules, job);
}

ModelMemory model_memory(const Job& job) {
  PassOptions options;
  options.sizes = rank_sizes(job);
  options.tied_copy = job.pp > 1;
  Job keeps_all = job;
  keeps_all.recompute = Recompute::kNone;
  const auto unit = [&](const std::vector<Module>& modules) {
    UnitMemory memory;
    memory.kept = kept_activations(modules, job);
    memory.recomputed = kept_activations(modules, keeps_all) - memory.kept;
    memory.parameters = parameters_of(modules, options);
    return memory;
  };
  ModelMemory memory{unit(job.model.before), unit(job.model.after), {}};
  for (const LayerBlock& block : job.model.blocks) {
    memory.blocks.push_back(unit(block.modules));
  }
  return memory;
}

std::vector<StageMemory> memory_by_stage(const Job& job) {
  check_job(job);
  return memory_by_stage(job, model_memory(job));
}

Bytes peak_memory(std::span<const StageMemory> stages) {
  return std::ranges::max(stages, {}, &StageMemory::total).total();
}

std::vector<StageMemory> memory_by_stage(const Job& job, const ModelMemory& model) {
  const PipelineSchedule& schedule = pipeline_schedule_named(job.schedule);
  const std::vector<std::vector<ModelChunk>> cut = stages_of(job);
  std::vector<StageMemory> stages;
  for (std::size_t s = 0; s < cut.size(); ++s) {
    StageMemory& memory = stages.emplace_back();
    std::vector<KeptByChunk> kept;
    std::int64_t dense = 0, expert = 0;
    for (const ModelChunk& what : cut[s]) {
      const ChunkMemory chunk = chunk_memory(job, model, what);
      kept.push_back(
          {chunk.kept, job.recompute == Recompute::kFull ? chunk.all_recomputed : Bytes()});
      memory.parameters += chunk.parameters;
      memory.working = std::max(memory.working, chunk.recomputed);
      dense = std::max(dense, chunk.largest_dense);
      expert = std::max(expert, chunk.largest_expert);
    }
    fill_states(job, memory);
    memory.activations = peak_kept(schedule, {job.pp, job.vpp, job.microbatches()},
                                   static_cast<std::int64_t>(s), kept);
    if (job.sharding == Sharding::kZero3) {
      // What no other rank has a part of is not gathered (StageProgram::gather).
      memory.gathered = 2 * rank_sizes(job).parameter *
                        ((dense_shards(job) > 1 ? Bytes(dense) : Bytes()) +
                         (expert_shards(job) > 1 ? Bytes(expert) : Bytes()));
      memory.working += memory.gathered;
    }
    memory.kept = std::move(kept);
  }
  return stages;
}

std::string memory_table(std::span<const StageMemory> stages) {
  std::string text =
      fmt::format("{:>9} {:>12} {:>10} {:>10} {:>10} {:>12} {:>10} {:>10}\n", "stage", "parameters",
                  "weights", "gradients", "optimizer", "activations", "working", "total");
  const auto same = [](const StageMemory& a, const StageMemory& b) {
    return a.parameters == b.parameters && a.activations == b.activations && a.working == b.working;
  };
  for (std::size_t first = 0; first < stages.size();) {
    std::size_t last = first;
    while (last + 1 < stages.size() && same(stages[first], stages[last + 1])) {
      ++last;
    }
    const StageMemory& memory = stages[first];
    text +=
        fmt::format("{:>9} {:>12} {:>10} {:>10} {:>10} {:>12} {:>10} {:>10}\n",
                    first == last ? std::to_string(first) : fmt::format("{}-{}", first, last),
                    memory.parameters.dense + memory.parameters.expert, to_text(memory.weights),
                    to_text(memory.gradients), to_text(memory.optimizer),
                    to_text(memory.activations), to_text(memory.working), to_text(memory.total()));
    first = last + 1;
  }
  return text;
}

}  // namespace lockstep

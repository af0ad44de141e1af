#include "generator/megatron_rows.h"

#include <fmt/format.h>

#include "generator/csv_row.h"
#include "generator/python_text.h"

namespace lockstep {
namespace {

/// AICB gives a computation the first time whose name up to '_' occurs in its stage.
std::optional<Count> time_of_stage(const ComputeProfile& times, const std::string& stage) {
  for (const ComputeProfile::Entry& entry : times.entries()) {
    if (stage.find(entry.name.substr(0, entry.name.find('_'))) != std::string::npos) {
      return Count(entry.ns);
    }
  }
  return std::nullopt;
}

}  // namespace

void MegatronRows::computation(std::string& text, const std::string& shapes,
                               const std::string& stage) const {
  if (args_.computation) {
    CsvRow row{"computation", "", std::nullopt, shapes, stage};
    row.elapsed_ns = times_ == nullptr ? std::nullopt : time_of_stage(*times_, stage);
    append(text, row);
  }
}

void MegatronRows::tp_comm(std::string& text, std::string_view type, Count bytes,
                           std::string_view stage) const {
  if (args_.tp > 1) {
    append_comm(text, type, "tp_group", args_.tp, bytes, stage);
  }
}

void MegatronRows::column_forward(std::string& text, const Linear& linear) const {
  const std::string stage = "forward.MegatronColumnLinear";
  const bool gathered = args_.sequence_parallel;
  const Count seq = args_.seq * (gathered ? args_.tp : 1);
  if (gathered) {
    tp_comm(text, "all_gather", 2 * args_.seq * args_.micro_batch * linear.in, stage);
  }
  computation(text, shapes(seq, args_.micro_batch, linear.in, linear.in, linear.out / args_.tp),
              fmt::format("{}.{}", stage, linear.name));
}

void MegatronRows::column_backward(std::string& text, const Linear& linear) const {
  const std::string stage = "backward.MegatronColumnLinear";
  const std::string own = fmt::format("{}.{}", stage, linear.name);
  const bool gathered = args_.sequence_parallel;
  const Count seq = args_.seq * (gathered ? args_.tp : 1);
  const Count share = linear.out / args_.tp;
  const Count bytes = 2 * args_.seq * args_.micro_batch * linear.in;
  if (gathered) {
    tp_comm(text, "all_gather", bytes, stage);
  }
  computation(text, shapes(seq, args_.micro_batch, share, share, linear.in), own);
  if (gathered) {
    tp_comm(text, "reduce_scatter", bytes, stage);
  }
  const Count tokens = seq * args_.micro_batch;
  computation(text, shapes(share, tokens, tokens, linear.in), own);
  if (!gathered) {
    tp_comm(text, "all_reduce", bytes, stage);
  }
}

void MegatronRows::row_forward(std::string& text, const Linear& linear) const {
  const std::string stage = "forward.MegatronRowLinear";
  const Count share = linear.in / args_.tp;
  computation(text, shapes(args_.seq, args_.micro_batch, share, share, linear.out),
              fmt::format("{}.{}", stage, linear.name));
  tp_comm(text, args_.sequence_parallel ? "reduce_scatter" : "all_reduce",
          2 * args_.seq * args_.micro_batch * linear.out, stage);
}

void MegatronRows::row_backward(std::string& text, const Linear& linear) const {
  const std::string stage = "backward.MegatronRowLinear";
  const std::string own = fmt::format("{}{}", stage, linear.name);  // AICB has no dot here
  const Count share = linear.in / args_.tp;
  const Count tokens = args_.seq * args_.micro_batch;
  if (args_.sequence_parallel) {
    tp_comm(text, "all_gather", 2 * tokens * linear.out, stage);
  }
  computation(text, shapes(args_.seq, args_.micro_batch, linear.out, linear.out, share), own);
  computation(text, shapes(linear.out, tokens, tokens, share), own);
}

void MegatronRows::plain(std::string& text, const Linear& linear, bool forward) const {
  if (forward) {
    computation(text, shapes(args_.seq, args_.micro_batch, linear.in, linear.in, linear.out),
                fmt::format("forward.Linear.{}", linear.name));
    return;
  }
  const Count tokens = args_.seq * args_.micro_batch;
  computation(text, shapes(linear.out, tokens, tokens, linear.in),
              fmt::format("backward.Linear.{}", linear.name));
}

void MegatronRows::linear(std::string& text, const Linear& linear, bool forward) const {
  switch (linear.kind) {
    case LinearKind::kColumn:
      return forward ? column_forward(text, linear) : column_backward(text, linear);
    case LinearKind::kRow:
      return forward ? row_forward(text, linear) : row_backward(text, linear);
    case LinearKind::kPlain:
      return plain(text, linear, forward);
  }
}

void MegatronRows::experts(std::string& text) const {
  const bool deepseek = args_.frame == "DeepSeek";
  const Count tokens = args_.seq * args_.hidden * args_.micro_batch * args_.topk;  // x h
  const Count bytes = 2 * (tokens / args_.tp);
  const std::string whole = fmt::format("{}", bytes.value);
  // DeepSeek dispatches FP8 with scales: (1 + 4/128) / 2 of two bytes, in floating point.
  const std::string dispatch =
      deepseek ? python_repr(static_cast<double>(bytes.value) * 0.515625) : whole;
  const auto comm = [&](std::string_view type, std::string_view group, const std::string& size,
                        std::string_view stage) {
    append(text, {type, group, std::nullopt, size, stage});
  };
  if (!deepseek && (args_.tp > 1 || args_.ep > 1)) {
    comm("all_gather", "ep_group",
         fmt::format("{}", (2 * args_.ep * args_.experts * args_.tp).value),
         "forward.MoE.preprocess");
  }
  if (args_.ep > 1) {
    comm("all_to_all", "ep_group", dispatch, "forward.MoE.dispatch");
  }
  if (args_.tp > 1) {
    const std::string all = fmt::format("{}", (2 * tokens).value);
    comm("all_gather", "tp_group", all, "forward.MoE.permutation");
    comm("reduce_scatter", "tp_group", all, "forward.MoE.unpermutation");
  }
  if (args_.ep > 1) {
    comm("all_to_all", "ep_group", whole, "forward.MoE.combine");
  }
}

std::string MegatronRows::embedding(bool forward) const {
  std::string text;
  tp_comm(text, "all_reduce", activation_bytes(args_),
          forward ? "forward.MegatronEmbedding" : "backward.MegatronEmbedding");
  return text;
}

std::string MegatronRows::layer_forward(const LayerShape& shape) const {
  std::string text;
  for (const Linear& each : shape.attention) {
    linear(text, each, true);
  }
  if (shape.moe) {
    experts(text);
  }
  for (const Linear& each : shape.mlp) {
    linear(text, each, true);
  }
  return text;
}

std::string MegatronRows::layer_backward(const LayerShape& shape) const {
  std::string text;
  for (const Linear& each : shape.attention) {
    linear(text, each, false);
  }
  for (const Linear& each : shape.mlp) {
    linear(text, each, false);
  }
  return text;
}

}  // namespace lockstep

#include "generator/training_flags.h"

#include <array>

#include <fmt/format.h>

#include "base/error.h"
#include "generator/rules.h"

namespace lockstep {
namespace {

constexpr ArgKind kSwitch = ArgKind::kSwitch;
constexpr ArgKind kInteger = ArgKind::kInteger;
constexpr ArgKind kText = ArgKind::kText;

// Degrees up to a thousand million, everything else up to 2^53: far above any machine or model, and
// low enough that a slip of the keyboard is told by its flag.
constexpr std::int64_t kDegree = 1'000'000'000;
constexpr std::int64_t kLayers = 1'000'000;
constexpr std::int64_t kSize = std::int64_t{1} << 53;

constexpr auto kFlags = std::to_array<ArgSpec>({
    {"frame", "comm_frame", kText, "Megatron", "framework to imitate",
     "Megatron DeepSpeed collective_test DeepSeek"},
    {"gpu_type", "", kText, "None", "name of the GPU; only part of the file name"},
    {"world_size", "gpus", kInteger, "1", "number of GPUs", "", 1, kDegree},
    {"tensor_model_parallel_size", "tp tp_num", kInteger, "1", "tensor parallel degree", "", 1,
     kDegree},
    {"pipeline_model_parallel", "pp pp_num pipeline_model_parallel_size", kInteger, "1",
     "pipeline stages", "", 1, kDegree},
    {"context_parallel_size", "cp", kInteger, "1", "context parallel degree; AICB ignores it", "",
     1, kDegree},
    {"pp_rank", "", kInteger, "-1",
     "pipeline stage to write, unless workload_only; the last adds embedding reductions", "", -1,
     kDegree},
    {"global_batch", "gbs", kInteger, "4", "sequences per step", "", 0, kSize},
    {"micro_batch", "mbs", kInteger, "1", "sequences per microbatch", "", 1, kSize},
    {"epoch_num", "", kInteger, "1", "steps to write", "", 0, kDegree},
    {"computation_enable", "", kSwitch, "", "write computation rows"},
    {"dtype", "", kText, "bfloat16", "element type; sizes are of 2 bytes whatever it is"},
    {"ffn_hidden_size", "", kInteger, "", "MLP width; default 4 h, or 8/3 h with swiglu", "", 0,
     kSize},
    {"enable_visual", "", kSwitch, "", "accepted; charts come from 'lockstep report'"},
    {"workload_only", "", kSwitch, "", "pipeline rows of stage 0"},
    {"model_name", "", kText, "None", "name for the file"},
    {"hidden_size", "", kInteger, "1024", "width of the model", "", 0, kSize},
    {"num_layers", "", kInteger, "24", "layers of the whole model", "", 0, kLayers},
    {"seq_length", "seq_len", kInteger, "2048", "tokens per sequence", "", 0, kSize},
    {"num_attention_heads", "", kInteger, "", "default: num_layers", "", 1, kSize},
    {"vocab_size", "", kInteger, "32000", "vocabulary before padding", "", 0, kSize},
    {"max_position_embeddings", "", kInteger, "4096", "accepted; no effect", "", 0, kSize},
    {"add_bias_linear", "", kSwitch, "", "linear layers have biases"},
    {"use_flash_attn", "flash_attn", kSwitch, "", "only part of the file name"},
    {"swiglu", "", kSwitch, "", "narrower default MLP"},
    {"stage", "zero_stage", kInteger, "3", "ZeRO stage", "1 2 3", 1, 3},
    {"amp_enabled", "", kSwitch, "", "no initial broadcast (DeepSpeed)"},
    {"reduce_bucket_size", "", kInteger, "500000000", "elements per gradient bucket", "", 0, kSize},
    {"allgather_bucket_size", "", kInteger, "500000000", "elements per all-gather of ZeRO 1/2", "",
     1, kSize},
    {"contiguous_gradients", "", kSwitch, "", "ZeRO 2 reduces to the owner of each piece"},
    {"param_persistence_threshold", "", kInteger, "100000",
     "ZeRO 3 keeps parameters up to this size"},
    {"model_persistence_threshold", "", kInteger, "9223372036854775807",
     "ZeRO 3 keeps at most so many elements"},
    {"max_live_parameters", "", kInteger, "1000000000", "ZeRO 3 limit of gathered elements"},
    {"prefetch_bucket_size", "", kInteger, "1000000000", "ZeRO 3 elements gathered ahead"},
    {"enable_sequence_parallel", "sp sp_enable", kSwitch, "", "sequence parallelism"},
    {"use_distributed_optimizer", "", kSwitch, "", "reduce-scatter and all-gather at the step"},
    {"make_vocab_size_divisible_by", "", kInteger, "128", "vocabulary padding, times tp", "", 1,
     kDegree},
    {"overlap_grad_reduce", "", kSwitch, "", "accepted; no effect"},
    {"begin_size", "", kInteger, "1048576", "first message size of a test, bytes", "", 0, kSize},
    {"end_size", "", kInteger, "1048576", "last message size of a test, bytes", "", 0, kSize},
    {"test_comm", "", kText, "all_reduce", "collective to test"},
    {"iter_num", "", kInteger, "500", "repetitions of a test", "", 0, kDegree},
    {"multi_all_reduce_enable", "", kInteger, "0", "1: the test runs in the pipeline groups", "", 0,
     kDegree},
    {"moe_enable", "moe_enabled moe", kSwitch, "", "every layer (DeepSeek: the later ones) is MoE"},
    {"expert_model_parallel_size", "ep expert_parallel_size", kInteger, "1",
     "expert parallel degree", "", 1, kDegree},
    {"num_experts", "experts num_moe_experts", kInteger, "1", "routed experts", "", 0, kSize},
    {"moe_router_topk", "topk", kInteger, "1", "experts per token", "", 0, kDegree},
    {"moe_grouped_gemm", "grouped_gemm", kSwitch, "", "only part of the file name"},
    {"activation_func", "", kText, "", "accepted; no effect"},
    {"overlap_version", "", kSwitch, "", "accepted; no effect"},
    {"aiob_enable", "aiob", kSwitch, "", "compute times from --comp_filepath"},
    {"comp_filepath", "", kText, "", "AIOB compute-time file"},
    {"gated_linear_unit", "", kText, "", "accepted; no effect"},
    {"bias_gelu_fusion", "", kSwitch, "", "accepted; no effect"},
    {"openai_gelu", "", kSwitch, "", "accepted; no effect"},
    {"onnx_safe", "", kSwitch, "", "accepted; no effect"},
    {"squared_relu", "", kSwitch, "", "accepted; no effect"},
    {"recompute_activations", "recompute", kSwitch, "", "recompute attention in the backward pass"},
    {"n_dense_layers", "", kInteger, "3", "DeepSeek: first layers without MoE", "", 0, kSize},
    {"n_shared_expert", "", kInteger, "2", "DeepSeek: shared experts; 0 or not", "", 0, kSize},
    {"qk_rope_dim", "", kInteger, "64", "DeepSeek: rotary part of a head", "", 0, kSize},
    {"qk_nope_dim", "", kInteger, "128", "DeepSeek: other part of a head", "", 0, kSize},
    {"q_lora_rank", "", kInteger, "1536", "DeepSeek: rank of the query", "", 0, kSize},
    {"kv_lora_rank", "", kInteger, "512", "DeepSeek: rank of key and value", "", 0, kSize},
    {"v_head_dim", "", kInteger, "128", "DeepSeek: value size of a head", "", 0, kSize},
    {"fill_times", "", kSwitch, "", "megatron: write the times of --comp_filepath into the rows"},
    {"model", "m model_size", kText, "", "preset of AICB's scripts; other flags go before it"},
});
constexpr ArgTable kTable{kFlags};

/// 8/3 of the hidden size, down to a multiple of 64, in AICB's double arithmetic.
Count swiglu_width(Count hidden) {
  const double width = static_cast<double>((hidden * 4 * 2).value) / 3 / 64;
  return Count(static_cast<std::int64_t>(width)) * 64;
}

void read_sizes(TrainingArgs& args, const ArgValues& flags) {
  args.frame = flags.text("frame");
  args.gpu_type = flags.text("gpu_type");
  args.model_name = flags.text("model_name");
  args.dtype = flags.text("dtype");
  args.test_comm = flags.text("test_comm");
  args.comp_filepath = flags.text_if("comp_filepath").value_or("");
  args.world_size = flags.integer("world_size");
  args.tp = flags.integer("tensor_model_parallel_size");
  args.pp = flags.integer("pipeline_model_parallel");
  args.ep = flags.integer("expert_model_parallel_size");
  args.pp_rank = flags.integer("pp_rank");
  args.global_batch = flags.integer("global_batch");
  args.micro_batch = flags.integer("micro_batch");
  args.epochs = flags.integer("epoch_num");
  args.layers = flags.integer("num_layers");
  args.hidden = flags.integer("hidden_size");
  args.seq = flags.integer("seq_length");
  args.vocab = flags.integer("vocab_size");
  args.experts = flags.integer("num_experts");
  args.topk = flags.integer("moe_router_topk");
  args.dense_layers = flags.integer("n_dense_layers");
  args.shared_experts = flags.integer("n_shared_expert");
  args.rope_dim = flags.integer("qk_rope_dim");
  args.nope_dim = flags.integer("qk_nope_dim");
  args.q_lora = flags.integer("q_lora_rank");
  args.kv_lora = flags.integer("kv_lora_rank");
  args.v_dim = flags.integer("v_head_dim");
  args.stage = flags.integer("stage");
  args.reduce_bucket = flags.integer("reduce_bucket_size");
  args.allgather_bucket = flags.integer("allgather_bucket_size");
  args.param_persistence = flags.integer("param_persistence_threshold");
  args.model_persistence = flags.integer("model_persistence_threshold");
  args.max_live = flags.integer("max_live_parameters");
  args.prefetch_bucket = flags.integer("prefetch_bucket_size");
  args.begin_size = flags.integer("begin_size");
  args.end_size = flags.integer("end_size");
  args.iterations = flags.integer("iter_num");
  args.multi_all_reduce = flags.integer("multi_all_reduce_enable") != 0;
}

void read_switches(TrainingArgs& args, const ArgValues& flags) {
  args.bias = flags.on("add_bias_linear");
  args.flash = flags.on("use_flash_attn");
  args.swiglu = flags.on("swiglu");
  args.sequence_parallel = flags.on("enable_sequence_parallel");
  args.distributed_optimizer = flags.on("use_distributed_optimizer");
  args.recompute = flags.on("recompute_activations");
  args.workload_only = flags.on("workload_only");
  args.aiob = flags.on("aiob_enable");
  args.computation = flags.on("computation_enable") || args.aiob;
  args.moe = flags.on("moe_enable");
  args.grouped_gemm = flags.on("moe_grouped_gemm");
  args.amp = flags.on("amp_enabled");
  args.contiguous_gradients = flags.on("contiguous_gradients");
}

/// Nearest tensor-parallel degree, else number of stages, that would fit the GPUs.
std::string nearest_cut(const TrainingArgs& args) {
  const auto text = [&](std::string_view flag, Count others, Count degree) {
    const NearDivisors near = nearest_divisors(args.world_size / others, degree);
    return fmt::format("or --{} {}{}", flag, near.below.value,
                       near.above > 0 ? fmt::format(" or {}", near.above.value) : "");
  };
  if (args.pp <= args.world_size && args.world_size % args.pp == 0) {
    return text("tp", args.pp, args.tp);
  }
  if (args.tp <= args.world_size && args.world_size % args.tp == 0) {
    return text("pp", args.tp, args.pp);
  }
  return "";
}

void check_world(const TrainingArgs& args) {
  const Count cut = args.tp * args.pp;
  if (args.world_size % cut == 0) {
    return;
  }
  const Count low = args.world_size / cut * cut;
  throw Error(fmt::format("{} GPUs cannot be cut into tp x pp = {} x {}", args.world_size.value,
                          args.tp.value, args.pp.value))
      .field("--world_size")
      .expected(low > 0 ? fmt::format("a multiple of {}: {} or {}", cut.value, low.value,
                                      (low + cut).value)
                        : fmt::format("a multiple of {}", cut.value))
      .hint(nearest_cut(args));
}

void check_experts(const TrainingArgs& args) {
  if (args.ep > 1) {
    if (args.experts % args.ep != 0) {
      require_divides("num_experts", args.experts, "expert_model_parallel_size", args.ep);
    }
    if (args.dtype == "float16") {
      throw Error("expert parallelism is not supported with float16")
          .field("--dtype")
          .expected("bfloat16 or float32");
    }
  }
  if (args.grouped_gemm && args.dtype != "bfloat16") {
    throw Error("grouped GEMM of experts supports bfloat16 only")
        .field("--dtype")
        .expected("bfloat16");
  }
}

}  // namespace

const ArgTable& training_flag_table() { return kTable; }

TrainingArgs training_args(const ArgValues& flags) {
  TrainingArgs args;
  read_sizes(args, flags);
  read_switches(args, flags);
  check_world(args);
  if (args.moe && !args.sequence_parallel) {
    throw Error("mixture of experts requires sequence parallelism")
        .field("--moe_enable")
        .hint("add --enable_sequence_parallel (or --sp)");
  }
  args.dp = args.world_size / (args.tp * args.pp);
  args.microbatches = args.global_batch / (args.dp * args.micro_batch);
  // Without layers nothing is cut into heads.
  args.heads = flags.integer_if("num_attention_heads")
                   .value_or(std::max(args.layers.value, std::int64_t{1}));
  args.padded_vocab =
      round_up(args.vocab, Count(flags.integer("make_vocab_size_divisible_by")) * args.tp);
  const std::optional<std::int64_t> ffn = flags.integer_if("ffn_hidden_size");
  args.ffn = ffn.has_value() ? Count(*ffn)
             : args.swiglu   ? swiglu_width(args.hidden)
                             : args.hidden * 4;
  check_experts(args);
  args.lost_layers = args.layers % args.pp;
  args.layers = args.layers / args.pp;
  return args;
}

void warn_of_losses(const TrainingArgs& args, Warnings& warnings) {
  const Count group = args.dp * args.micro_batch;
  if (args.tp > 1 && args.layers > 0 && args.heads % args.tp != 0 && args.frame != "DeepSpeed") {
    const NearDivisors near = nearest_divisors(args.heads, args.tp);
    warnings.add(
        fmt::format("tp {} does not divide the {} attention heads: AICB writes it all the same, "
                    "but Megatron-LM "
                    "refuses it; tp {}{} would do",
                    args.tp.value, args.heads.value, near.below.value,
                    near.above > 0 ? fmt::format(" or {}", near.above.value) : ""));
  }
  if (args.lost_layers > 0) {
    warnings.add(fmt::format(
        "pipeline_model_parallel {} does not divide num_layers: {} layers of "
        "{} are left out, as in AICB",
        args.pp.value, args.lost_layers.value, (args.layers * args.pp + args.lost_layers).value));
  }
  if (args.microbatches == 0) {
    warnings.add(
        fmt::format("global_batch {} is smaller than dp x micro_batch = {}: the workload has no "
                    "layers",
                    args.global_batch.value, group.value));
  } else if (args.global_batch % group != 0) {
    warnings.add(
        fmt::format("global_batch {} is no multiple of dp x micro_batch = {}: {} sequences "
                    "are left out, as in AICB",
                    args.global_batch.value, group.value, (args.global_batch % group).value));
  }
}

Count activation_bytes(const TrainingArgs& args) {
  return 2 * args.micro_batch * args.seq * args.hidden;
}

}  // namespace lockstep

#include "generator/exact/job_flags.h"

#include <array>
#include <string>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "generator/exact/rank_sizes.h"
#include "workloads/workload.h"

namespace lockstep {
namespace {

constexpr std::int64_t kMaxCount = std::int64_t{1} << 40;

constexpr auto kFlags = std::to_array<ArgSpec>({
    {"gpus", "world_size", ArgKind::kInteger, "", "GPUs", {}, 1, kMaxGpus},
    {"tp",
     "tp_num tensor_model_parallel_size tensor_model_parallel",
     ArgKind::kInteger,
     "1",
     "tensor-parallel ranks",
     {},
     1,
     kMaxGpus},
    {"cp",
     "context_parallel_size",
     ArgKind::kInteger,
     "1",
     "context-parallel ranks",
     {},
     1,
     kMaxGpus},
    {"pp",
     "pp_num pipeline_model_parallel_size pipeline_model_parallel",
     ArgKind::kInteger,
     "1",
     "pipeline stages",
     {},
     1,
     kMaxGpus},
    {"vpp",
     "virtual_pipeline_model_parallel_size",
     ArgKind::kInteger,
     "1",
     "model chunks a stage",
     {},
     1,
     kMaxCount},
    {"ep",
     "ep_num expert_model_parallel_size expert_model_parallel",
     ArgKind::kInteger,
     "1",
     "expert-parallel ranks",
     {},
     1,
     kMaxGpus},
    {"etp",
     "expert_tp expert_tensor_parallel_size",
     ArgKind::kInteger,
     "0",
     "tensor-parallel ranks inside experts; 0: tp",
     {},
     0,
     kMaxGpus},
    {"sequence_parallel", "sp enable_sequence_parallel", ArgKind::kSwitch, "",
     "cut what is between tensor-parallel parts along the sequence"},
    {"tp_comm_overlap", "", ArgKind::kSwitch, "",
     "tensor-parallel transfers run beside pieces of their product; with sequence parallelism"},
    {"disable_tp_comm_overlap_ag", "", ArgKind::kSwitch, "", "but not all-gathers"},
    {"disable_tp_comm_overlap_rs", "", ArgKind::kSwitch, "", "but not forward reduce-scatters"},
    {"tp_comm_overlap_rs_dgrad", "", ArgKind::kSwitch, "",
     "and the input gradients' reduce-scatters beside the products that they come from"},
    {"first_stage_layers",
     "decoder_first_pipeline_num_layers",
     ArgKind::kInteger,
     "0",
     "layers of the first stage; 0: as the others",
     {},
     0,
     kMaxCount},
    {"last_stage_layers",
     "decoder_last_pipeline_num_layers",
     ArgKind::kInteger,
     "0",
     "layers of the last stage; 0: as the others",
     {},
     0,
     kMaxCount},
    {"stage_layers", "", ArgKind::kText, "",
     "layers of each virtual stage, in the model's order: 10,12,12,8"},
    {"rank_order", "", ArgKind::kText, "tp-cp-ep-dp-pp", "dimensions of the ranks, fastest first"},
    {"schedule", "", ArgKind::kText, "1f1b", "order of a stage's passes: 1f1b, gpipe, …"},
    {"seq",
     "seq_length",
     ArgKind::kInteger,
     "4096",
     "tokens a sequence; at most the positions of a model that has a table of them, unless given",
     {},
     1,
     kMaxCount},
    {"mbs",
     "micro_batch micro_batch_size",
     ArgKind::kInteger,
     "1",
     "sequences a microbatch and data-parallel rank",
     {},
     1,
     kMaxCount},
    {"gbs",
     "global_batch global_batch_size",
     ArgKind::kInteger,
     "",
     "sequences a step; mbs x dp x pp unless given",
     {},
     1,
     kMaxCount},
    {"precision", "", ArgKind::kText, "bf16", "of matrix products", "bf16 fp16 fp32 fp8"},
    {"fp8_recipe", "", ArgKind::kText, "delayed", "how fp8's operands are scaled",
     "delayed tensorwise blockwise mxfp8"},
    {"grad_reduce_in_bf16", "", ArgKind::kSwitch, "",
     "gradients are added up and reduced in 16 bits; in fp32 unless given, but those of fp16"},
    {"accumulate_allreduce_grads_in_fp32", "", ArgKind::kSwitch, "", "those of fp16 in fp32, too"},
    {"make_vocab_size_divisible_by",
     "",
     ArgKind::kInteger,
     "128",
     "the vocabulary is padded to a multiple of this x tp",
     {},
     1,
     kMaxCount},
    {"recompute", "recompute_granularity", ArgKind::kText, "none",
     "what is computed again for the backward pass", "none selective full"},
    {"no_flash_attention", "", ArgKind::kSwitch, "", "attention keeps its scores in memory"},
    {"dropout", "", ArgKind::kSwitch, "", "masks are kept for the backward pass"},
    {"context_comm", "cp_comm_type", ArgKind::kText, "ring",
     "how context-parallel ranks exchange keys and values",
     "ring p2p allgather all_gather alltoall a2a"},
    {"zero",
     "zero_stage",
     ArgKind::kInteger,
     "0",
     "1: optimizer state cut over data-parallel ranks; 2: gradients too; 3: parameters too (FSDP)",
     {},
     0,
     3},
    {"use_distributed_optimizer", "", ArgKind::kSwitch, "", "the same as --zero 1"},
    {"hsdp_replicas",
     "",
     ArgKind::kInteger,
     "1",
     "copies of a fully sharded model",
     {},
     1,
     kMaxGpus},
    {"gradient_bucket",
     "ddp_bucket_size",
     ArgKind::kInteger,
     "0",
     "parameters of the first stage reduced together; 0: Megatron's max(40e6, 1e6 dp cp)",
     {},
     0,
     kMaxCount},
    {"no_overlap_gradients", "", ArgKind::kSwitch, "", "gradients are reduced after the last pass"},
    {"no_overlap_parameters", "", ArgKind::kSwitch, "",
     "parameters are gathered after the optimizer, not ahead of the next step's passes"},
    {"moe_capacity", "moe_expert_capacity_factor", ArgKind::kText, "0",
     "capacity factor that experts' inputs are cut and padded to; 0: no token is dropped"},
    {"moe_imbalance", "", ArgKind::kText, "1", "tokens of the fullest expert rank over the mean"},
    {"gpu_type", "", ArgKind::kText, "H100",
     "whose times are used; on a topology with GPUs of one type theirs unless given"},
    {"host_launch", "", ArgKind::kText, "0us",
     "host time to launch one operator; about 125us in PyTorch's eager mode, 0 with CUDA graphs"},
});

double number_of(const ArgValues& args, std::string_view name) {
  const std::string text = args.text(name);
  const std::optional<double> value = to_double(text);
  if (!value) {
    throw Error(fmt::format("'{}' is not a number", printable(text)))
        .field(fmt::format("--{}", name))
        .expected("a number such as 1.25");
  }
  return *value;
}

std::vector<std::int64_t> counts_of(const ArgValues& args, std::string_view name) {
  std::vector<std::int64_t> counts;
  const std::string text = args.text_if(name).value_or("");
  for (const std::string_view part :
       text.empty() ? std::vector<std::string_view>{} : split(text, ',')) {
    const std::optional<std::int64_t> count = to_int(trim(part));
    if (!count) {
      throw Error(fmt::format("'{}' is not a whole number", printable(part)))
          .field(fmt::format("--{}", name))
          .expected("counts with commas between them, such as 10,12,12,8");
    }
    counts.push_back(*count);
  }
  return counts;
}

Time time_of(const ArgValues& args, std::string_view name) {
  try {
    const Time time = parse_time(args.text(name));
    if (time < Time()) {
      throw Error("a time below 0").expected("a time such as 20us");
    }
    return time;
  } catch (Error& error) {
    throw std::move(error).field(fmt::format("--{}", name));
  }
}

Precision precision_of(std::string_view text) {
  return text == "fp16"   ? Precision::kFp16
         : text == "fp32" ? Precision::kFp32
         : text == "fp8"  ? Precision::kFp8
                          : Precision::kBf16;
}

Recompute recompute_of(std::string_view text) {
  return text == "selective" ? Recompute::kSelective
         : text == "full"    ? Recompute::kFull
                             : Recompute::kNone;
}

Fp8Recipe fp8_recipe_of(std::string_view text) {
  return text == "tensorwise"  ? Fp8Recipe::kTensorwise
         : text == "blockwise" ? Fp8Recipe::kBlockwise
         : text == "mxfp8"     ? Fp8Recipe::kMxfp8
                               : Fp8Recipe::kDelayed;
}

ContextComm context_comm_of(std::string_view text) {
  return text == "allgather" || text == "all_gather" ? ContextComm::kAllGather
         : text == "alltoall" || text == "a2a"       ? ContextComm::kAllToAll
                                                     : ContextComm::kRing;
}

Sharding sharding_of(const ArgValues& args) {
  const std::int64_t stage = args.integer("zero");
  if (args.on("use_distributed_optimizer")) {
    if (args.given("zero") && stage != 1) {
      throw Error(fmt::format("the distributed optimizer is ZeRO-1, not ZeRO-{}", stage))
          .field("--zero")
          .expected("1, or no --use_distributed_optimizer");
    }
    return Sharding::kZero1;
  }
  return static_cast<Sharding>(stage);
}

/// By Megatron-LM's flags; what it has for the transfers that always run beside a whole product
/// ("bulk") changes nothing here.
ProductOverlap product_overlap_of(const ArgValues& args) {
  if (!args.on("tp_comm_overlap")) {
    for (const char* flag :
         {"disable_tp_comm_overlap_ag", "disable_tp_comm_overlap_rs", "tp_comm_overlap_rs_dgrad"}) {
      if (args.on(flag)) {
        throw Error("says how transfers overlap, which they do not")
            .field(fmt::format("--{}", flag))
            .expected("--tp_comm_overlap beside it");
      }
    }
    return {};
  }
  return {!args.on("disable_tp_comm_overlap_ag"), !args.on("disable_tp_comm_overlap_rs"),
          args.on("tp_comm_overlap_rs_dgrad")};
}

}  // namespace

std::span<const ArgSpec> job_flags() { return kFlags; }

Job job_from_flags(const ArgValues& args) {
  Job job;
  const std::optional<std::int64_t> gpus = args.integer_if("gpus");
  if (!gpus) {
    throw Error("the number of GPUs is missing").field("--gpus").expected("a whole number from 1");
  }
  job.gpus = *gpus;
  job.tp = args.integer("tp");
  job.cp = args.integer("cp");
  job.pp = args.integer("pp");
  job.vpp = args.integer("vpp");
  job.ep = args.integer("ep");
  job.expert_tp = args.integer("etp");
  job.sequence_parallel = args.on("sequence_parallel");
  job.product_overlap = product_overlap_of(args);
  job.first_stage_layers = args.integer("first_stage_layers");
  job.last_stage_layers = args.integer("last_stage_layers");
  job.stage_layers = counts_of(args, "stage_layers");
  job.rank_order = args.text("rank_order");
  job.schedule = args.text("schedule");
  job.seq = args.integer("seq");
  job.micro_batch = args.integer("mbs");
  job.precision = precision_of(args.text("precision"));
  job.fp8_recipe = fp8_recipe_of(args.text("fp8_recipe"));
  const bool in_fp32 = args.on("accumulate_allreduce_grads_in_fp32");
  // Megatron-LM heeds the first beside bf16 alone.
  job.gradient_bytes =
      args.on("grad_reduce_in_bf16") && !(job.precision == Precision::kFp16 && in_fp32) ? 2
      : in_fp32                                                                         ? 4
                                                                                        : 0;
  job.vocab_multiple = args.integer("make_vocab_size_divisible_by");
  job.recompute = recompute_of(args.text("recompute"));
  job.flash_attention = !args.on("no_flash_attention");
  job.dropout = args.on("dropout");
  job.context_comm = context_comm_of(args.text("context_comm"));
  job.sharding = sharding_of(args);
  job.hsdp_replicas = args.integer("hsdp_replicas");
  job.gradient_bucket = args.integer("gradient_bucket");
  job.overlap_gradients = !args.on("no_overlap_gradients");
  job.overlap_parameters = !args.on("no_overlap_parameters");
  job.moe_capacity = number_of(args, "moe_capacity");
  job.moe_imbalance = number_of(args, "moe_imbalance");
  job.gpu_type = args.text("gpu_type");
  job.host_launch = time_of(args, "host_launch");
  check_layout(layout_of(job));
  job.global_batch = args.integer_if("gbs").value_or(0);
  if (job.global_batch == 0 &&
      __builtin_mul_overflow(job.micro_batch, job.dp() * job.pp, &job.global_batch)) {
    throw Error(fmt::format("{} is out of range", job.micro_batch)).field("--mbs");
  }
  return job;
}

}  // namespace lockstep

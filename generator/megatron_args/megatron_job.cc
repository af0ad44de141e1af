#include "generator/megatron_args/megatron_job.h"

#include <array>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {
namespace {

/// A flag of Megatron-LM whose value ours takes as it is.
struct SameFlag {
  std::string_view theirs, ours;
};
constexpr auto kSame = std::to_array<SameFlag>({
    {"tensor-model-parallel-size", "tp"},
    {"model-parallel-size", "tp"},
    {"context-parallel-size", "cp"},
    {"pipeline-model-parallel-size", "pp"},
    {"num-virtual-stages-per-pipeline-rank", "vpp"},
    {"expert-model-parallel-size", "ep"},
    {"expert-tensor-parallel-size", "etp"},
    {"decoder-first-pipeline-num-layers", "first_stage_layers"},
    {"decoder-last-pipeline-num-layers", "last_stage_layers"},
    {"seq-length", "seq"},
    {"encoder-seq-length", "seq"},
    {"micro-batch-size", "mbs"},
    {"batch-size", "mbs"},
    {"global-batch-size", "gbs"},
    {"ddp-bucket-size", "gradient_bucket"},
    {"make-vocab-size-divisible-by", "make_vocab_size_divisible_by"},
});

/// Flags that change the step in a way that we do not follow, and what we do in their place.
/// `otherwise` is a default, which changes nothing.
struct Unmodelled {
  std::string_view flag, instead, otherwise = {};
};
constexpr auto kUnmodelled = std::to_array<Unmodelled>({
    {"tp-comm-overlap-cfg", "its pieces are those of Transformer Engine's defaults"},
    {"rampup-batch-size", "the batch is taken at its full size"},
    {"pipeline-model-parallel-layout", "layers are spread evenly"},
    {"account-for-embedding-in-pipeline-split", "the embedding counts as no layer"},
    {"account-for-loss-in-pipeline-split", "the head counts as no layer"},
    {"mtp-num-layers", "layers for multi-token prediction are left out"},
    {"moe-shared-expert-overlap", "shared experts run after the routed ones"},
    {"delay-wgrad-compute", "weight gradients follow their input's"},
    {"defer-embedding-wgrad-compute", "the head's weight gradient is not put off"},
    {"num-distributed-optimizer-instances", "the optimizer is cut over all data-parallel ranks",
     "1"},
    {"fp8-param-gather", "parameters are gathered in bf16"},
    {"optimizer-cpu-offload", "the optimizer's state stays on the GPU"},
    {"cpu-offloading", "activations stay on the GPU"},
    {"fine-grained-activation-offloading", "activations stay on the GPU"},
    {"use-precision-aware-optimizer", "the optimizer's state is fp32"},
    {"fp4-format", "products are in the precision of the other flags"},
    {"first-last-layers-bf16", "all layers are in fp8"},
    {"hierarchical-context-parallel-sizes", "context-parallel ranks are one group"},
    {"linear-attention-freq", "all layers have full attention"},
    {"heterogeneous-layers-config-path", "all layers are alike"},
    {"spec", "layers are those of a GPT"},
    {"yaml-cfg", "the YAML file is not read"},
    {"window-size", "all layers have full attention"},
    {"window-attn-skip-freq", "all layers have full attention"},
    {"attention-output-gate", "attention's output has no gate"},
    {"fp32-residual-connection", "residuals are in the precision of the other flags"},
    {"main-grads-dtype", "gradients are as --grad-reduce-in-bf16 says", "fp32"},
    {"main-params-dtype", "the optimizer's parameters are in fp32", "fp32"},
    {"exp-avg-dtype", "the optimizer's moments are in fp32", "fp32"},
    {"exp-avg-sq-dtype", "the optimizer's moments are in fp32", "fp32"},
    {"no-fp8-wgrad", "weight gradients are in fp8 as the other products"},
    {"standalone-embedding-stage", "the embedding is on the stage of the first layers"},
    {"distribute-saved-activations", "each tensor-parallel rank keeps the whole input of a layer"},
    {"ddp-num-buckets", "buckets are as large as --ddp-bucket-size says"},
    {"torch-fsdp2-no-reshard-after-forward", "parameters are gathered again for the backward pass"},
    {"moe-latent-size", "experts read what the layers do"},
    {"hybrid-override-pattern", "layers are those of a GPT"},
    {"is-hybrid-model", "layers are those of a GPT"},
    {"moe-extended-tp", "experts are cut as --expert-tensor-parallel-size says"},
});

/// What every job of ours does anyway.
constexpr auto kImplied = std::to_array<std::string_view>(
    {"moe-grouped-gemm", "use-mcore-models", "disable-tp-comm-bulk-dgrad",
     "disable-tp-comm-bulk-wgrad", "tp-comm-bootstrap-backend"});

class JobReader {
 public:
  JobReader(const MegatronLaunch& launch, ArgValues& args, Warnings& warnings)
      : launch_(launch), args_(args), warnings_(warnings) {}

  void run() {
    for (const SameFlag& flag : kSame) {
      if (args_.given(flag.ours)) {
        launch_.pass_over(flag.theirs);
      } else if (const auto value = launch_.text(flag.theirs, flag.ours)) {
        set(flag.ours, *value, flag.theirs);
      }
    }
    if (!args_.given("gpus")) {
      if (const auto processes = launch_.processes()) {
        args_.set("gpus", std::to_string(*processes));
      }
    }
    turn_on("sequence_parallel", launch_.has("sequence-parallel"));
    read_overlap();
    read_schedule();
    read_virtual_stages();
    warn_of_interleaving();
    read_order();
    read_recompute();
    read_precision();
    read_sharding();
    read_attention();
    read_experts();
    for (const std::string_view flag : kImplied) {
      launch_.has(flag);
    }
    for (const Unmodelled& flag : kUnmodelled) {
      if (launch_.has(flag.flag) &&
          (flag.otherwise.empty() || launch_.text(flag.flag) != flag.otherwise)) {
        warn(flag.flag, "is not modelled", flag.instead);
      }
    }
    const std::string optimizer = launch_.text("optimizer").value_or("adam");
    if (optimizer != "adam") {
      warn("optimizer", printable(optimizer) + " is not modelled", "Adam is taken");
    }
  }

 private:
  /// An error of the flag's own gets the place in the script.
  void set(std::string_view ours, std::string_view value, std::string_view theirs) {
    try {
      args_.set_default(ours, value);
    } catch (Error& error) {
      error.locate(launch_.file(), launch_.line_of(theirs));
      throw;
    }
  }
  void turn_on(std::string_view ours, bool on) {
    if (on) {
      args_.set_default(ours, "");
    }
  }
  void warn(std::string_view flag, std::string_view what, std::string_view instead) {
    const std::size_t line = launch_.line_of(flag);
    warnings_.add(fmt::format("{}:{}: --{} {}: {}", launch_.file(),
                              line > 0 ? line : launch_.line(), flag, what, instead));
  }

  /// Megatron-LM ignores the others without the first.
  void read_overlap() {
    const bool overlaps = launch_.has("tp-comm-overlap");
    turn_on("tp_comm_overlap", overlaps);
    for (const auto& [theirs, ours] : {
             std::pair("disable-tp-comm-overlap-ag", "disable_tp_comm_overlap_ag"),
             std::pair("disable-tp-comm-overlap-rs", "disable_tp_comm_overlap_rs"),
             std::pair("tp-comm-overlap-rs-dgrad", "tp_comm_overlap_rs_dgrad"),
         }) {
      turn_on(ours, launch_.has(theirs) && (overlaps || args_.given("tp_comm_overlap")));
    }
  }

  /// Batch by batch: the passes of two microbatches side by side.
  void read_schedule() {
    if (launch_.has("overlap-moe-expert-parallel-comm")) {
      args_.set_default("schedule", "1f1b-overlap");
    }
  }

  void read_virtual_stages() {
    const std::string_view name = "num-layers-per-virtual-pipeline-stage";
    if (args_.given("vpp")) {
      launch_.pass_over(name);
      return;
    }
    const auto each = launch_.whole(name, 1, "vpp");
    if (!each) {
      return;
    }
    const auto layers = args_.given("num_layers") ? args_.integer_if("num_layers")
                                                  : launch_.whole("num-layers", 1, "num-layers");
    const std::int64_t pp = args_.integer("pp");
    const std::int64_t stage = layers.value_or(0) / pp;
    if (stage == 0 || *layers % pp != 0 || stage % *each != 0) {
      throw Error(fmt::format("{} layers on {} stages do not divide into chunks of {}",
                              layers.value_or(0), pp, *each))
          .at(launch_.file(), launch_.line_of(name))
          .field(fmt::format("--{}", name))
          .hint("--vpp N in its place: N chunks a stage");
    }
    args_.set("vpp", std::to_string(stage / *each));
  }

  /// Flags of chunks that are interleaved, without effect elsewhere. A group of as many
  /// microbatches as stages is Megatron-LM's default.
  void warn_of_interleaving() {
    const std::string_view group = "microbatch-group-size-per-virtual-pipeline-stage";
    const std::string_view apart = "no-overlap-p2p-communication";
    const auto size = launch_.whole(group, 1, "schedule");
    const bool without = launch_.has(apart);
    if (args_.integer("vpp") < 2) {
      return;
    }
    const std::int64_t pp = args_.integer("pp");
    if (size && *size != pp) {
      warn(group, fmt::format("{} is not modelled", *size),
           fmt::format("groups are of as many microbatches as stages, {}", pp));
    }
    if (without) {
      warn(apart, "is not modelled", "messages between stages run beside computation");
    }
  }

  void read_order() {
    if (launch_.has("use-tp-pp-dp-mapping")) {
      args_.set_default("rank_order", "tp-cp-ep-pp-dp");
    }
    if (args_.given("context_comm")) {
      launch_.pass_over("cp-comm-type");
      return;
    }
    const auto list = launch_.joined("cp-comm-type");
    if (!list) {
      return;
    }
    const std::vector<std::string_view> kinds = split_blanks(*list);
    if (kinds.size() != 1) {
      warn("cp-comm-type", "that differs by layer is not modelled", "the first kind is taken");
    }
    std::string_view kind = kinds.empty() ? std::string_view() : kinds.front();
    if (kind == "a2a+p2p") {
      warn("cp-comm-type", "a2a+p2p is not modelled", "a ring is taken");
      kind = "p2p";
    }
    set("context_comm", kind, "cp-comm-type");
  }

  /// --checkpoint-activations, of Megatron-LM until 2022 and Megatron-DeepSpeed, and
  /// --activations-checkpoint-method, between the two, compute whole layers again.
  void read_recompute() {
    if (args_.given("recompute")) {
      pass_over({"recompute-activations", "checkpoint-activations", "activations-checkpoint-method",
                 "recompute-granularity", "recompute-method", "recompute-num-layers",
                 "recompute-modules"});
      return;
    }
    const std::optional<std::string> old_method =
        launch_.choice("activations-checkpoint-method", {"uniform", "block"}, "recompute");
    const bool whole_layers = launch_.has("checkpoint-activations") || old_method.has_value();
    const bool short_form = launch_.has("recompute-activations");
    const std::string granularity =
        launch_.choice("recompute-granularity", {"full", "selective"}, "recompute")
            .value_or(whole_layers ? "full"
                      : short_form ? "selective"
                                   : "");
    const std::string method = launch_.choice("recompute-method", {"uniform", "block"})
                                   .value_or(old_method.value_or("uniform"));
    const std::int64_t count = launch_.whole("recompute-num-layers", 0).value_or(1);
    const std::string modules = launch_.joined("recompute-modules").value_or("core_attn");
    if (granularity.empty()) {
      return;
    }
    set("recompute", granularity, "recompute-granularity");
    if (granularity == "full" && method == "block") {
      warn("recompute-method", "block is not modelled", "all layers are computed again");
    } else if (granularity == "full" && count != 1) {
      warn("recompute-num-layers", fmt::format("{} is not modelled", count),
           "the input of every layer is kept");
    }
    if (granularity == "selective" && modules != "core_attn") {
      warn("recompute-modules", printable(modules) + " is not modelled",
           "attention's core alone is computed again");
    }
  }

  void read_precision() {
    const bool bf16 = launch_.has("bf16"), fp16 = launch_.has("fp16");
    if (args_.given("precision")) {
      pass_over({"fp8-format", "fp8-hybrid", "fp8-e4m3"});
    } else {
      const bool fp8 = launch_.choice("fp8-format", {"e4m3", "hybrid"}, "precision").has_value() ||
                       launch_.has("fp8-hybrid") || launch_.has("fp8-e4m3");
      args_.set_default("precision", fp8 ? "fp8" : bf16 ? "bf16" : fp16 ? "fp16" : "fp32");
    }
    if (args_.given("fp8_recipe")) {
      launch_.pass_over("fp8-recipe");
    } else if (const auto recipe = launch_.text("fp8-recipe", "fp8_recipe")) {
      set("fp8_recipe", *recipe, "fp8-recipe");
    }
    turn_on("grad_reduce_in_bf16", launch_.has("grad-reduce-in-bf16"));
    turn_on("accumulate_allreduce_grads_in_fp32",
            launch_.has("accumulate-allreduce-grads-in-fp32"));
  }

  void read_sharding() {
    const bool fsdp2 = launch_.has("use-torch-fsdp2");
    const bool fsdp = launch_.has("use-megatron-fsdp") || launch_.has("use-custom-fsdp");
    const bool distributed = launch_.has("use-distributed-optimizer");
    if (args_.given("zero") || args_.given("use_distributed_optimizer")) {
      pass_over({"data-parallel-sharding-strategy", "zero-stage"});
    } else if (const auto deepspeed = deepspeed_stage()) {
      args_.set_default("zero", std::to_string(*deepspeed));
    } else {
      const std::string strategy =
          launch_
              .choice("data-parallel-sharding-strategy",
                      {"no_shard", "optim", "optim_grads", "optim_grads_params"}, "zero")
              .value_or("no_shard");
      std::string_view stage = distributed ? "1" : "0";
      if (fsdp2) {
        stage = "3";
      } else if (fsdp) {
        stage = strategy == "optim_grads_params" ? "3"
                : strategy == "optim_grads"      ? "2"
                : strategy == "optim"            ? "1"
                                                 : "0";
      }
      args_.set_default("zero", stage);
    }
    const bool sharded = fsdp || fsdp2;  // always overlapped
    turn_on("no_overlap_gradients", !launch_.has("overlap-grad-reduce") && !sharded);
    turn_on("no_overlap_parameters", !launch_.has("overlap-param-gather") && !sharded);
  }

  /// Megatron-DeepSpeed's, which its log prints as "1.0" where it is the default.
  std::optional<std::int64_t> deepspeed_stage() const {
    const auto stage = launch_.has("deepspeed") ? launch_.number("zero-stage") : std::nullopt;
    if (!stage) {
      return std::nullopt;
    }
    if (*stage != 0 && *stage != 1 && *stage != 2 && *stage != 3) {
      throw Error(fmt::format("'{}' is no stage of ZeRO", printable(*launch_.text("zero-stage"))))
          .at(launch_.file(), launch_.line_of("zero-stage"))
          .field("--zero-stage")
          .expected("0, 1, 2 or 3");
    }
    return static_cast<std::int64_t>(*stage);
  }

  void read_attention() {
    const bool flash = launch_.has("use-flash-attn");
    if (args_.given("no_flash_attention")) {
      pass_over({"attention-backend", "transformer-impl"});
    } else {
      const std::string backend =
          launch_.choice("attention-backend", {"flash", "fused", "unfused", "local", "auto"})
              .value_or("auto");
      const bool local = launch_.choice("transformer-impl", {"local", "transformer_engine",
                                                             "inference_optimized"}) == "local";
      turn_on("no_flash_attention",
              backend == "unfused" || backend == "local" || (local && !flash));
    }
    if (args_.given("dropout")) {
      pass_over({"attention-dropout", "hidden-dropout"});
      return;
    }
    const double attention = launch_.number("attention-dropout").value_or(0.1);
    const double hidden = launch_.number("hidden-dropout").value_or(0.1);
    turn_on("dropout", attention > 0 || hidden > 0);
  }

  void read_experts() {
    if (args_.given("moe_capacity")) {
      pass_over({"moe-pad-expert-input-to-capacity", "moe-expert-capacity-factor"});
    } else {
      read_capacity();
    }
    const std::string dispatcher =
        launch_
            .choice("moe-token-dispatcher-type", {"allgather", "alltoall", "alltoall_seq", "flex"})
            .value_or("allgather");
    if (launch_.line_of("num-experts") > 0 && dispatcher == "allgather" &&
        args_.integer("ep") > 1) {
      warn("moe-token-dispatcher-type", "allgather (Megatron's default) is not modelled",
           "tokens are dispatched by all-to-all");
    }
  }

  /// Without padding an expert has the tokens that are sent to it, up to its capacity.
  void read_capacity() {
    const std::string_view flag = "moe-expert-capacity-factor";
    const bool padded = launch_.has("moe-pad-expert-input-to-capacity");
    const double fullest = to_double(args_.text("moe_imbalance")).value_or(1);
    if (const auto capacity = launch_.number(flag);
        capacity && *capacity > 0 && (padded || *capacity < fullest)) {
      set("moe_capacity", *launch_.text(flag), flag);
    }
  }

  void pass_over(std::initializer_list<std::string_view> flags) {
    for (const std::string_view flag : flags) {
      launch_.pass_over(flag);
    }
  }

  const MegatronLaunch& launch_;
  ArgValues& args_;
  Warnings& warnings_;
};

}  // namespace

void apply_megatron_job(const MegatronLaunch& launch, ArgValues& args, Warnings& warnings) {
  for (const Warnings::Entry& entry : launch.warnings().entries()) {
    warnings.add(entry.text);
  }
  JobReader(launch, args, warnings).run();
}

std::string unread_flags(const MegatronLaunch& launch) {
  std::string text;
  for (const std::string& name : launch.unread()) {
    text += fmt::format("{}--{}", text.empty() ? "" : ", ", printable(name));
  }
  return text;
}

}  // namespace lockstep

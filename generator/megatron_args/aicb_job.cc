#include "generator/megatron_args/aicb_job.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "generator/scripts.h"
#include "generator/training_flags.h"

namespace lockstep {
namespace {

bool is_deepspeed(const Generator& generator) { return generator.name.starts_with("deepspeed"); }

PresetFamily family_of(const Generator& generator) {
  return is_deepspeed(generator)              ? PresetFamily::kDeepSpeed
         : generator.name == "simai-training" ? PresetFamily::kSimai
                                              : PresetFamily::kMegatron;
}

void check_trains(const Generator& generator) {
  if (!trains(generator)) {
    throw Error(fmt::format("{} writes no training step, which is all the exact flavour has",
                            generator.name))
        .field("--flavour")
        .expected("aicb, or --generator simai-training, megatron, deepspeed12 or deepspeed3");
  }
}

/// Whether AICB has a flag of this name, however wrong its value.
bool knows(const ArgTable& table, const std::string& word) {
  try {
    parse_args(table, {&word, 1});
  } catch (const UnknownFlag&) {
    return false;
  } catch (const Error&) {  // it will be told with all words
  }
  return true;
}

/// Takes the flags that AICB does not know, with their values, out of a command line.
std::vector<std::string> take_other_flags(const ArgTable& table, std::vector<std::string>& words) {
  std::vector<std::string> theirs, others;
  std::vector<std::string>* to = &theirs;
  for (const std::string& word : words) {
    if (word.starts_with("--")) {
      to = knows(table, word) ? &theirs : &others;
    }
    to->push_back(word);
  }
  words = std::move(theirs);
  return others;
}

/// Megatron-LM's flags, all on one line.
class MegatronLine {
 public:
  MegatronLine(const ArgValues& flags, const TrainingArgs& args, bool deepspeed)
      : flags_(flags), args_(args), deepspeed_(deepspeed || args.frame == "DeepSpeed") {}

  std::string write() {
    sizes();
    cut();
    precision();
    if (args_.frame == "DeepSeek") {
      latent_attention();
    }
    if (args_.moe || args_.frame == "DeepSeek") {
      experts();
    }
    if (deepspeed_) {
      zero();
    }
    return std::move(text_);
  }

 private:
  void put(std::string_view flag) { text_ += fmt::format("--{} ", flag); }
  void put(std::string_view flag, Count value) {
    text_ += fmt::format("--{} {} ", flag, value.value);
  }
  void put_if(bool on, std::string_view flag) {
    if (on) {
      put(flag);
    }
  }
  Count layers() const { return flags_.integer("num_layers"); }

  void sizes() {
    const bool llama = args_.swiglu || deepspeed_ || args_.frame == "DeepSeek";
    put("num-layers", layers());
    put("hidden-size", args_.hidden);
    put("num-attention-heads", args_.heads);
    put("ffn-hidden-size", args_.ffn);
    put("seq-length", args_.seq);
    put("vocab-size", args_.vocab);
    put("make-vocab-size-divisible-by", flags_.integer("make_vocab_size_divisible_by"));
    put_if(!args_.bias, "disable-bias-linear");
    if (llama) {
      put("swiglu");
      put("untie-embeddings-and-output-weights");
      text_ += "--normalization RMSNorm --position-embedding-type rope ";
    } else {
      put("max-position-embeddings",
          std::max(args_.seq, Count(flags_.integer("max_position_embeddings"))));
    }
    text_ += "--attention-dropout 0 --hidden-dropout 0 ";
  }

  void cut() {
    put("tensor-model-parallel-size", args_.tp);
    put("pipeline-model-parallel-size", args_.pp);
    put("context-parallel-size", flags_.integer("context_parallel_size"));
    put("micro-batch-size", args_.micro_batch);
    put("global-batch-size", args_.global_batch);
    put_if(args_.sequence_parallel, "sequence-parallel");
    put_if(args_.distributed_optimizer && !deepspeed_, "use-distributed-optimizer");
    put_if(deepspeed_ || flags_.on("overlap_grad_reduce"), "overlap-grad-reduce");
    put_if(args_.recompute, "recompute-activations");
  }

  void precision() {
    const auto is_one_of = [&](std::initializer_list<std::string_view> names) {
      return std::ranges::find(names, args_.dtype) != names.end();
    };
    const bool bf16 = is_one_of({"bfloat16", "bf16"});
    const bool fp16 = is_one_of({"float16", "fp16", "half"});
    if (!bf16 && !fp16 && !is_one_of({"float32", "fp32", "float"})) {
      throw Error(fmt::format("unknown element type '{}'", printable(args_.dtype)))
          .field("--dtype")
          .expected("bfloat16, float16 or float32")
          .hint("--model NAME --gpus N --precision fp8 is for fp8");
    }
    put_if(bf16, "bf16");
    put_if(fp16, "fp16");
    text_ += fmt::format("--attention-backend {} ", args_.flash ? "flash" : "unfused");
  }

  void latent_attention() {
    put("multi-latent-attention");
    put("qk-layernorm");
    if (args_.q_lora > 0) {
      put("q-lora-rank", args_.q_lora);
    }
    put("kv-lora-rank", args_.kv_lora);
    put("qk-head-dim", args_.nope_dim);
    put("qk-pos-emb-head-dim", args_.rope_dim);
    put("v-head-dim", args_.v_dim);
  }

  void experts() {
    put("num-experts", args_.experts);
    put("moe-router-topk", args_.topk);
    put("moe-ffn-hidden-size", args_.ffn);
    put("expert-model-parallel-size", args_.ep);
    text_ += "--moe-token-dispatcher-type alltoall ";
    if (args_.frame == "DeepSeek") {
      const Count dense = std::min(args_.dense_layers, layers());
      text_ +=
          fmt::format("--moe-layer-freq '([0]*{}+[1]*{})' ", dense.value, (layers() - dense).value);
      if (args_.shared_experts > 0) {
        put("moe-shared-expert-intermediate-size", args_.shared_experts * args_.ffn);
      }
    }
  }

  void zero() {
    put_if(args_.stage == 1, "use-distributed-optimizer");
    if (args_.stage > 1) {
      text_ += fmt::format("--use-megatron-fsdp --data-parallel-sharding-strategy {} ",
                           args_.stage == 2 ? "optim_grads" : "optim_grads_params");
    }
    if (args_.stage < 3 && args_.reduce_bucket > 0) {
      put("ddp-bucket-size", args_.reduce_bucket);
    }
  }

  const ArgValues& flags_;
  const TrainingArgs& args_;
  bool deepspeed_;
  std::string text_;
};

/// What AICB's flags ask for and one step of all ranks, timed by operators, does not have.
Warnings unheeded(const TrainingArgs& args) {
  Warnings warnings;
  if (args.epochs != 1) {
    warnings.add("--epoch_num: one step is written");
  }
  if (args.pp_rank >= 0 && !args.workload_only) {
    warnings.add("--pp_rank: all stages are written");
  }
  if (!args.comp_filepath.empty()) {
    warnings.add(
        "--comp_filepath: AICB's times are of its own modules, so that they are not used; "
        "--profile "
        "takes measured operators");
  }
  return warnings;
}

}  // namespace

bool trains(const Generator& generator) {
  return generator.name == "simai-training" || generator.name == "megatron" ||
         is_deepspeed(generator);
}

AicbJob aicb_job(const Generator& generator, const GenerateRequest& request) {
  check_trains(generator);
  AicbJob job;
  GenerateRequest theirs = request;
  if (!request.script_compat) {
    job.words = take_other_flags(generator.flags(), theirs.words);
  }
  const ArgValues flags = training_flags(theirs, family_of(generator));
  const TrainingArgs args = training_args(flags);
  if (args.frame == "collective_test") {
    throw Error("collective_test is no training step")
        .field("--frame")
        .expected("Megatron, DeepSpeed or DeepSeek");
  }
  job.warnings = unheeded(args);
  job.launch = MegatronLaunch::parse(MegatronLine(flags, args, is_deepspeed(generator)).write(),
                                     fmt::format("flags of {}", generator.name));
  std::vector<std::string> ours = {"--gpus", std::to_string(args.world_size.value)};
  if (args.gpu_type != "None") {
    ours.insert(ours.end(), {"--gpu-type", args.gpu_type});
  }
  job.words.insert(job.words.begin(), ours.begin(), ours.end());
  job.name = args.model_name == "None" ? std::string() : args.model_name;
  return job;
}

}  // namespace lockstep

#include "app/generate_exact.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "base/gunzip.h"
#include "base/text.h"
#include "generator/compute/profile_files.h"
#include "generator/exact/job_flags.h"
#include "generator/exact/memory_advice.h"
#include "generator/exact/operators.h"
#include "generator/exact/vocabulary.h"
#include "generator/megatron_args/megatron_job.h"
#include "generator/megatron_args/model_flags.h"
#include "generator/megatron_args/shell_lexer.h"
#include "generator/model/hf_config.h"
#include "generator/model/model_file.h"
#include "generator/model/zoo.h"
#include "generator/presets.h"

namespace lockstep {
namespace {

/// What a job is described by besides job_flags() and the model's sizes.
std::span<const ArgSpec> source_flags() {
  static constexpr auto kFlags = std::to_array<ArgSpec>({
      {"model", "model_name", ArgKind::kText, "", "a model of --list-models"},
      {"model_file", "", ArgKind::kText, "", "a model file, YAML or JSON"},
      {"hf_config", "", ArgKind::kText, "", "a Hugging Face config.json"},
      {"process", "", ArgKind::kText, "",
       "the training process: a file, or data-parallel, distributed-optimizer, fully-sharded; "
       "else that of the model file, else the built-in step"},
      {"with_init", "", ArgKind::kSwitch, "", "the process's init items too, ahead of the step"},
      {"from_megatron_args", "", ArgKind::kText, "",
       "a Megatron-LM script, argument file or training log; your own flags go before it"},
      {"set", "", ArgKind::kText, "",
       "NAME=VALUE: a variable of that script, set before it begins; may be repeated"},
      {"profile", "", ArgKind::kText, "",
       "measured times of operators (docs/formats/profile.md): files or folders of them, with "
       "commas"},
  });
  return kFlags;
}

/// Takes the variables of a script out of a command line: the one flag that may be repeated.
ShellVariables take_variables(std::vector<std::string>& words) {
  ShellVariables variables;
  std::vector<std::string> rest;
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string setting;
    if (words[i].starts_with("--set=")) {
      setting = words[i].substr(6);
    } else if (words[i] == "--set" && i + 1 < words.size()) {
      setting = words[++i];
    } else {
      rest.push_back(words[i]);
      continue;
    }
    const std::size_t equals = setting.find('=');
    const std::string name = setting.substr(0, equals);
    const bool argument =
        !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
    if ((!is_shell_name(name) && !argument) || equals == std::string::npos) {
      throw Error(fmt::format("'{}' sets no variable", printable(setting)))
          .field("--set")
          .expected("NAME=VALUE, or NUMBER=VALUE for an argument of the script");
    }
    variables.set(name, setting.substr(equals + 1), 0);
  }
  words = std::move(rest);
  return variables;
}

Model model_of(const ArgValues& args, const MegatronLaunch* launch) {
  const int named =
      int{args.given("model")} + int{args.given("model_file")} + int{args.given("hf_config")};
  if (named > 1 || (named == 0 && launch == nullptr)) {
    throw Error(named == 0 ? "no model is named" : "more than one model is named")
        .field("--model")
        .expected("one of --model NAME, --model-file F, --hf-config F, --from-megatron-args SCRIPT")
        .hint("'lockstep generate --list-models' shows the names");
  }
  const Variables sizes = model_sizes(args);
  std::string given;
  for (const auto& [name, value] : sizes) {
    given += fmt::format("{}{} = {}", given.empty() ? "" : ", ", name, value);
  }
  try {
    return args.given("model")        ? find_model(args.text("model"), sizes)
           : args.given("model_file") ? read_model(args.text("model_file"), sizes)
           : args.given("hf_config")  ? read_hf_config(args.text("hf_config"), sizes)
                                      : megatron_model(*launch, sizes);
  } catch (Error& error) {
    if (const std::string name = args.text_if("model").value_or("");
        find_preset(presets(), name) != nullptr && !has_model(name)) {
      error.add_context(fmt::format(
          "{} is a preset of AICB's: --generator simai-training or megatron knows it", name));
    }
    if (!given.empty()) {
      error.add_context(fmt::format("with the sizes on the command line: {}", given));
    }
    throw;
  }
}

std::optional<MegatronLaunch> launch_of(const ArgValues& args, const ShellVariables& variables) {
  if (!args.given("from_megatron_args")) {
    if (!variables.values.empty()) {
      throw Error("there is no script whose variables could be set")
          .field("--set")
          .expected("--from-megatron-args SCRIPT beside it");
    }
    return std::nullopt;
  }
  const std::string path = args.text("from_megatron_args");
  const UnpackedText text(path);
  return MegatronLaunch::parse(text.view(), path, variables);
}

/// Megatron-LM's own: one microbatch for each data-parallel rank, not one for each stage too.
void take_megatron_batch(const ArgValues& args, Job& job) {
  if (!args.given("gbs")) {
    job.global_batch = job.micro_batch * job.dp();
  }
}

/// A table of positions has a row for each token of a sequence: where no length is given none is
/// longer, and one that is gets a warning.
void fit_positions(const ArgValues& args, Job& job, Warnings& warnings) {
  for (const Module& module : job.model.before) {
    if (module.kind != ModuleKind::kEmbedding || module.name != "embedding.positions" ||
        job.seq <= module.in) {
      continue;
    }
    if (args.given("seq")) {
      warnings.add(fmt::format("sequences of {} tokens, but {} has a table of {} positions (--seq)",
                               job.seq, printable(job.model.name), module.in));
    } else {
      job.seq = module.in;
    }
  }
}

/// A norm over all heads needs a sum over those that share them, which is not modelled.
void warn_of_cut_norms(const Job& job, Warnings& warnings) {
  for (const LayerBlock& block : job.model.blocks) {
    const std::vector<Region> regions = regions_of(block.modules);
    for (std::size_t i = 0; i < block.modules.size() && job.tp > 1; ++i) {
      const Module& module = block.modules[i];
      if (module.kind == ModuleKind::kNorm && regions[i] == Region::kTensor &&
          module.in == module.out) {
        warnings.add(fmt::format(
            "{} is over all heads: each of tp {} norms its own, without the sum over them",
            printable(module.name), job.tp));
      }
    }
  }
}

/// Stages behind the encoder pass its output on beside their own (Megatron-LM, schedules.py,
/// get_tensor_shapes), which is not modelled.
void warn_of_cut_cross_attention(const Job& job, Warnings& warnings) {
  for (const LayerBlock& block : job.model.blocks) {
    const auto cross = std::ranges::find(block.modules, true, &Module::cross);
    if (job.pp > 1 && cross != block.modules.end()) {
      warnings.add(fmt::format(
          "{} reads the encoder's output, which the messages between pp {} stages leave out",
          printable(cross->name), job.pp));
      return;
    }
  }
}

/// Says so of what the user gave (`given`) and nothing of the job heeds.
void warn_of_idle_flags(const std::vector<std::string_view>& given, const Job& job,
                        Warnings& warnings) {
  const std::string no_experts = printable(job.model.name) + " has no experts";
  const bool dense = !has_experts(job.model);
  const std::tuple<std::string_view, bool, std::string> kinds[] = {
      {"etp", dense, no_experts},
      {"moe_capacity", dense, no_experts},
      {"moe_imbalance", dense, no_experts},
      {"context_comm", job.cp == 1, "sequences are whole (--cp)"},
      {"no_overlap_parameters", job.sharding == Sharding::kNone,
       "no parameters are gathered (--zero)"},
      {"fp8_recipe", job.precision != Precision::kFp8,
       fmt::format("products are in {} (--precision)", to_text(job.precision))},
  };
  for (const auto& [flag, is_idle, why] : kinds) {
    if (is_idle && std::ranges::find(given, flag) != given.end()) {
      warnings.add(fmt::format("--{} changes nothing: {}", flag, why));
    }
  }
}

/// How a built-in process holds states.
std::optional<Sharding> sharding_of(std::string_view process) {
  return process == "data-parallel"           ? std::optional(Sharding::kNone)
         : process == "distributed-optimizer" ? std::optional(Sharding::kZero1)
         : process == "fully-sharded"         ? std::optional(Sharding::kZero3)
                                              : std::nullopt;
}

/// The process that is named, or the model file's own.
std::optional<Process> process_of(const ArgValues& args) {
  if (args.given("process")) {
    return find_process(args.text("process"));
  }
  if (args.given("model_file")) {
    const std::string path = args.text("model_file");
    const FileText file(path);
    if (has_process(file.view(), path)) {
      return parse_process(file.view(), path);
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<ArgSpec> described_job_flags() {
  std::vector<ArgSpec> flags(source_flags().begin(), source_flags().end());
  flags.insert(flags.end(), model_size_flags().begin(), model_size_flags().end());
  flags.insert(flags.end(), job_flags().begin(), job_flags().end());
  return flags;
}

void check_job_words(std::span<const std::string> words) {
  std::vector<std::string> rest(words.begin(), words.end());
  take_variables(rest);
  parse_args({described_job_flags()}, rest, Names::kOneAtATime);
}

namespace {

/// Whether no flag of the user's changes how many parameters a rank of the launch has.
bool keeps_parameters(const ArgValues& args) {
  constexpr std::string_view kChanging[] = {"model",
                                            "model_file",
                                            "hf_config",
                                            "tp",
                                            "pp",
                                            "vpp",
                                            "ep",
                                            "etp",
                                            "make_vocab_size_divisible_by",
                                            "gpus",
                                            "process",
                                            "first_stage_layers",
                                            "last_stage_layers"};
  return model_sizes(args).empty() &&
         std::ranges::none_of(kChanging, [&](std::string_view flag) { return args.given(flag); });
}

/// The job of `args`, where `launch` says what they leave open.
ExactJob described_by(ArgValues& args, const std::optional<MegatronLaunch>& launch) {
  ExactJob exact;
  Warnings warnings;
  const bool as_launched = keeps_parameters(args);
  std::vector<std::string_view> given;
  for (const ArgSpec& flag : job_flags()) {
    const bool is_switch = flag.kind == ArgKind::kSwitch;
    if (args.given(flag.name) && (is_switch || args.text(flag.name) != flag.fallback)) {
      given.push_back(flag.name);
    }
  }
  if (launch) {
    apply_megatron_job(*launch, args, warnings);
  }
  exact.job = job_from_flags(args);
  exact.job.model = model_of(args, launch ? &*launch : nullptr);
  fit_positions(args, exact.job, warnings);
  warn_of_cut_norms(exact.job, warnings);
  warn_of_cut_cross_attention(exact.job, warnings);
  warn_of_idle_flags(given, exact.job, warnings);
  if (launch) {
    take_megatron_batch(args, exact.job);
    if (as_launched) {
      exact.logged_parameters = launch->logged_parameters();
    }
    const Warnings hidden = launch->hidden_words();
    for (const Warnings::Entry& entry : hidden.entries()) {
      warnings.add(entry.text);
    }
    if (const std::string unread = unread_flags(*launch); !unread.empty()) {
      exact.notes.push_back(fmt::format("{}: not used: {}", launch->file(), unread));
    }
  }
  exact.gpu_type_given = args.given("gpu_type");
  exact.process = process_of(args);
  exact.with_init = args.on("with_init");
  exact.held = args.given("process") ? sharding_of(args.text("process")) : std::nullopt;
  if (exact.process && args.given("zero") && exact.job.sharding != exact.held) {
    exact.warnings.emplace_back(
        exact.held ? "--zero changes nothing beside --process, whose states are held as it says"
                   : "--zero changes memory alone: what is sent is the process's");
  }
  if (exact.with_init && !exact.process) {
    throw Error("the built-in step has no init items")
        .field("--with-init")
        .expected("--process F, or a model file with a process");
  }
  exact.profile = args.text_if("profile").value_or("");
  if (!exact.profile.empty()) {
    exact.measured = std::make_shared<OperatorProfile>(read_profile_files(exact.profile));
  }
  for (const Warnings::Entry& entry : warnings.entries()) {
    exact.warnings.push_back(entry.text);
  }
  return exact;
}

/// Where the log of the job counts other parameters than its model has: something of it is not
/// known here.
void warn_of_parameters(ExactJob& exact) {
  for (const auto& [stage, logged] : exact.logged_parameters) {
    if (std::cmp_greater_equal(stage, exact.memory.size()) || stage < 0) {
      continue;
    }
    const ParameterCount& ours = exact.memory[static_cast<std::size_t>(stage)].parameters;
    const std::int64_t count = ours.dense + ours.expert;
    if (logged > 0 && count != logged) {
      exact.warnings.push_back(fmt::format(
          "the log counts {} parameters on a rank of stage {}, the model here has {} ({:+.2f} %)",
          logged, stage, count,
          100 * (static_cast<double>(count) / static_cast<double>(logged) - 1)));
      return;
    }
  }
}

}  // namespace

ExactJob worked_out(ExactJob exact) {
  exact.parameters = model_parameters(exact.job.model);
  exact.job = with_padded_vocabulary(std::move(exact.job));
  Job holder = exact.job;
  holder.sharding = exact.held.value_or(holder.sharding);
  exact.memory = memory_by_stage(holder);
  warn_of_parameters(exact);
  if (const std::string advice = memory_advice(holder, exact.memory); !advice.empty()) {
    exact.warnings.push_back(advice);
  }
  return exact;
}

ExactJob described_job(std::span<const std::string> words) {
  std::vector<std::string> rest(words.begin(), words.end());
  for (const std::string& word : rest) {
    if (word == "--dp" || word.starts_with("--dp=")) {
      throw Error("there is no such flag: data-parallel ranks are what the others leave")
          .field("--dp")
          .expected("--gpus, --tp, --cp and --pp, with dp = gpus / (tp x cp x pp)");
    }
  }
  const ShellVariables variables = take_variables(rest);
  const std::vector<ArgSpec> flags = described_job_flags();
  ArgValues args = parse_args({flags}, rest, Names::kOneAtATime);
  return described_by(args, launch_of(args, variables));
}

ExactJob exact_job(std::span<const std::string> words) { return worked_out(described_job(words)); }

ExactJob exact_job(const AicbJob& aicb) {
  const std::vector<ArgSpec> flags = described_job_flags();
  ArgValues args = parse_args({flags}, aicb.words);
  for (const char* source : {"model", "model_file", "hf_config", "from_megatron_args"}) {
    if (args.given(source)) {
      throw Error("the generator's flags describe the model")
          .field(fmt::format("--{}", source))
          .expected("no --generator beside it");
    }
  }
  ExactJob exact = described_by(args, aicb.launch);
  if (!aicb.name.empty()) {
    exact.job.model.name = aicb.name;
  }
  for (const Warnings::Entry& entry : aicb.warnings.entries()) {
    exact.warnings.push_back(entry.text);
  }
  return worked_out(std::move(exact));
}

namespace {

/// What tells operators apart: layers of one name may differ, as those with a window do from those
/// without.
auto what_it_does(const Operator& op) {
  return std::tuple(op.name, op.kind, op.m, op.n, op.k, op.groups, op.heads, op.queries, op.keys,
                    op.flops, op.bytes);
}

}  // namespace

ComputeTimes compute_times_of(const ExactJob& exact) {
  try {
    return ComputeTimes(gpu_spec(exact.job.gpu_type), exact.job.precision, exact.measured);
  } catch (Error& error) {
    error.locate(exact.profile);
    throw;
  }
}

ProcessWorkload exact_workload_of(ExactJob& exact) {
  ComputeTimes times = compute_times_of(exact);
  std::set<decltype(what_it_does(Operator()))> known;
  const auto timed = [&](const Operator& op) {
    const Time time = times(op);
    if (known.insert(what_it_does(op)).second) {
      exact.operators.push_back({op, time});
    }
    return time;
  };
  ProcessWorkload result = exact.process
                               ? process_workload(exact.job, timed, *exact.process, exact.with_init)
                               : ProcessWorkload{exact_workload(exact.job, timed), {}};
  const ComputeTimes::Counts& counts = exact.counts = times.counts();
  const std::int64_t all = counts.measured + counts.between + counts.modelled;
  if (!exact.profile.empty() && counts.modelled == all) {
    exact.warnings.push_back(fmt::format(
        "{}: none of the {} operators of this job is in the profile: all times are the roofline's",
        exact.profile, all));
  } else if (!exact.profile.empty()) {
    exact.notes.push_back(fmt::format(
        "{}: {} of {} operators measured, {} between two measured sizes, {} by the roofline",
        exact.profile, counts.measured, all, counts.between, counts.modelled));
  }
  return result;
}

std::string memory_text(const ExactJob& exact) {
  const GpuSpec& gpu = gpu_spec(exact.job.gpu_type);
  return fmt::format("memory of a rank of each stage (one {} has {})\n{}", gpu.name,
                     to_text(gpu.memory), memory_table(exact.memory));
}

Json memory_json(const ExactJob& exact) {
  const GpuSpec& gpu = gpu_spec(exact.job.gpu_type);
  Json stages = Json::array();
  for (const StageMemory& stage : exact.memory) {
    stages.push_back({{"parameters", stage.parameters.dense + stage.parameters.expert},
                      {"weights_bytes", stage.weights.count()},
                      {"gradients_bytes", stage.gradients.count()},
                      {"optimizer_bytes", stage.optimizer.count()},
                      {"activations_bytes", stage.activations.count()},
                      {"working_bytes", stage.working.count()},
                      {"total_bytes", stage.total().count()}});
  }
  return {{"gpu", gpu.name}, {"capacity_bytes", gpu.memory.count()}, {"stages", stages}};
}

std::string exact_flags_help() {
  return "Where the job comes from:\n" + args_help({source_flags()}) +
         "\nSizes in place of the model's:\n" + args_help({model_size_flags()}) +
         "\nThe job and how it is cut:\n" + args_help({job_flags()});
}

}  // namespace lockstep

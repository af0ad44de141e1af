#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "app/command.h"
#include "app/plan/aceso_flags.h"
#include "app/plan/job_plan_options.h"
#include "app/plan/plan_options.h"
#include "app/usage.h"

namespace lockstep {
namespace {

constexpr std::string_view kExamples =
    R"(Examples:
  lockstep plan --model llama3-8b --gpus 16 --gbs 64 --seq 4096 --topology Spectrum-X:g=16
  lockstep plan --model llama3-8b --gpus 8 --num_layers 4 --gbs 16 --topology Spectrum-X:g=8 --price tests/data/plan/llama3-8b-given.json
  lockstep plan --metis-hostfile tests/data/plan/metis/hostfile --metis-clusterfile tests/data/plan/metis/cluster.json --profiles tests/data/plan/metis --layers 4 --gbs 8 --max-tp 2 --max-batch 2
  lockstep plan --aceso-model scale-layer --aceso-size 4layers --profiles tests/data/plan/scale-layer --gpus-per-node 2 --nodes 2 --memory-limit 1200 --global-batch 16 --micro-batch 1 2
  lockstep plan --aceso-model scale-layer --aceso-size 2layers --profiles tests/data/plan/scale-layer --gpus-per-node 2 --nodes 2 --memory-limit 4000 --price tests/data/plan/scale-layer/two-stages.json
)";

/// What a search of our own spends on replays unless told otherwise (ReplayResult::work).
constexpr std::int64_t kJobEffort = 48'000'000, kAcesoEffort = 20'000'000;

constexpr double kMostMegabytes = 1e9;

/// Flags of the other problems that describe a job, too, and what a job calls them.
constexpr std::pair<const char*, const char*> kShared[] = {{"--gbs", "--gbs"},
                                                           {"--sequence-length", "--seq"},
                                                           {"--global-batch", "--gbs"},
                                                           {"--micro-batch", "--mbs"},
                                                           {"--num-layers", "--num_layers"},
                                                           {"--hidden-size", "--hidden_size"},
                                                           {"--vocab-size", "--vocab_size"},
                                                           {"--layers", "--num_layers"}};

/// Whose flags they are that not every problem heeds: Aceso's (a), Metis's (m), a job's (j).
constexpr std::pair<const char*, std::string_view> kHeeded[] = {{"--aceso-model", "a"},
                                                                {"--aceso-size", "a"},
                                                                {"--num-layers", "aj"},
                                                                {"--gpus-per-node", "a"},
                                                                {"--nodes", "a"},
                                                                {"--memory-limit", "a"},
                                                                {"--strategy", "a"},
                                                                {"--global-batch", "aj"},
                                                                {"--micro-batch", "aj"},
                                                                {"--max-stages", "a"},
                                                                {"--spare-memory", "a"},
                                                                {"--effort", "amj"},
                                                                {"--actual", "a"},
                                                                {"--scaling", "a"},
                                                                {"--metis-hostfile", "m"},
                                                                {"--metis-clusterfile", "m"},
                                                                {"--layers", "mj"},
                                                                {"--gbs", "mj"},
                                                                {"--hidden-size", "mj"},
                                                                {"--sequence-length", "mj"},
                                                                {"--vocab-size", "mj"},
                                                                {"--max-batch", "m"},
                                                                {"--model-profile", "m"},
                                                                {"--profiles", "am"},
                                                                {"--max-tp", "am"},
                                                                {"--cost", "am"},
                                                                {"--top", "am"}};

/// Refuses flags that change nothing about `problem`.
void refuse_unheeded(const CLI::App& app, char problem, std::string_view whose) {
  for (const auto& [flag, owners] : kHeeded) {
    if (app.count(flag) > 0 && owners.find(problem) == std::string_view::npos) {
      throw Error(fmt::format("{} does not heed this", whose))
          .field(flag)
          .hint("'lockstep plan --help' says whose each flag is");
    }
  }
}

/// Flags that a search alone heeds.
constexpr const char* kSearchOnly[] = {"--output",     "--resume",      "--effort",   "--deadline",
                                       "--max-replay", "--top",         "--strategy", "--max-tp",
                                       "--max-stages", "--spare-memory"};

/// Refuses flags that change nothing beside --price and --actual, and both together. --actual has
/// a folder, too, and the warnings of Metis's plans heed --max-tp.
void refuse_beside_price(const CLI::App& app, bool metis) {
  const char* const modes[] = {"--scaling", "--actual", "--price"};
  const char* mode = nullptr;
  for (const char* each : modes) {
    if (app.count(each) > 0 && mode != nullptr) {
      throw Error("this does something else")
          .field(each)
          .expected(fmt::format("not beside {}", mode));
    }
    mode = app.count(each) > 0 ? each : mode;
  }
  if (mode == nullptr || mode == modes[0]) {
    return;
  }
  for (const std::string_view flag : kSearchOnly) {
    if (app.count(std::string(flag)) > 0 && !(flag == "--output" && mode == modes[1]) &&
        !(flag == "--max-tp" && metis)) {
      throw Error("only a search heeds this")
          .field(flag)
          .expected(fmt::format("not beside {}", mode));
    }
  }
}

/// Whether a model of ours is meant: then all that describes it goes to `job`. Words that are no
/// flags of ours describe a job.
bool take_job(CLI::App& app, const AcesoOptions& aceso, JobPlanOptions& job) {
  job.words = app.remaining();
  if (job.words.empty()) {
    return false;
  }
  const bool described = std::ranges::any_of(job.words, [](const std::string& word) {
    return word == "--model" || word.starts_with("--model=") || word.starts_with("--hf") ||
           word.starts_with("--from-megatron") || word.starts_with("--from_megatron");
  });
  if (!described) {
    refuse_flags_of_aceso(job.words);
  }
  if (!described && app.count("--aceso-model") + app.count("--metis-hostfile") > 0) {
    app.allow_extras(false);
    throw usage_error(*app.get_parent(), CLI::ExtrasError(app.get_name(), job.words));
  }
  for (const auto& [flag, ours] : kShared) {
    if (app.count(flag) > 0) {
      const std::string name = ours;
      const auto said = std::ranges::find_if(job.words, [&](const std::string& word) {
        return word == name || word.starts_with(name + "=");
      });
      if (said != job.words.end()) {
        throw Error(fmt::format("{} says it, too", ours)).field(flag).expected("one of the two");
      }
      std::string values;
      for (const std::string& value : app.get_option(flag)->results()) {
        values += (values.empty() ? "" : ",") + value;
      }
      job.words.insert(job.words.end(), {ours, values});
    }
  }
  refuse_unheeded(app, 'j', "the search of --model");
  refuse_beside_price(app, false);
  job.effort = app.count("--effort") > 0 ? aceso.max_work : kJobEffort;
  job.output = aceso.output;
  job.json = aceso.json;
  job.report = aceso.report;
  job.price = aceso.price;
  return true;
}

CommandBody define(CLI::App& app) {
  auto aceso = std::make_shared<AcesoOptions>();
  auto metis = std::make_shared<MetisOptions>();
  auto job = std::make_shared<JobPlanOptions>();
  app.allow_extras();
  define_job_plan_options(app, *job);
  app.add_option("--aceso-model", aceso->model, "Aceso's problem: gpt, t5, resnet or scale-layer");
  app.add_option("--metis-hostfile", metis->hostfile, "Metis's problem: ADDRESS slots=N a line");
  app.add_option("--metis-clusterfile", metis->clusterfile,
                 "GPU type, bandwidths and memory of each address (JSON)");
  app.add_option("--layers", metis->layers, "Layers of Metis's model, embedding and head included");
  app.add_option("--gbs", metis->global_batch, "Samples of an iteration, for Metis");
  app.add_option("--hidden-size", metis->hidden, "For Metis")->capture_default_str();
  app.add_option("--sequence-length", metis->sequence, "For Metis")->capture_default_str();
  app.add_option("--vocab-size", metis->vocabulary, "For Metis")->capture_default_str();
  app.add_option("--max-batch", metis->max_batch, "Most samples a rank, for Metis")
      ->capture_default_str();
  app.add_option("--model-profile", metis->model_profile,
                 "Metis's file in --profiles that optimizer and parameters come from; the smallest "
                 "of the first type unless given");
  app.add_option("--aceso-size", aceso->size, "The model's size: 1_3B, 770M, 16layers …");
  app.add_option("--num-layers", aceso->layers, "Layers of scale-layer");
  app.add_option("--profiles", aceso->profiles, "Folder with the profiles");
  app.add_option("--gpus-per-node", aceso->gpus_per_node, "GPUs of a server")
      ->check(CLI::Range(1, 1 << 10))
      ->capture_default_str();
  app.add_option("--nodes", aceso->nodes, "Servers")
      ->check(CLI::Range(1, 1 << 16))
      ->capture_default_str();
  app.add_option("--memory-limit", aceso->memory_limit_mb, "Memory of a GPU in MB of 2^20 bytes")
      ->check(CLI::Range(1.0, kMostMegabytes))
      ->capture_default_str();
  app.add_option("--cost", aceso->cost,
                 "strict: the system's own cost model, defects included; fixed: them mended")
      ->check(CLI::IsMember({"strict", "fixed"}))
      ->capture_default_str();
  app.add_option("--price", aceso->price,
                 "Price this plan instead of a search: Aceso's or Metis's as their files have it; "
                 "--model's as plan.json, or {\"tp\": 4, \"pp\": 2, …} of its flags");
  app.add_option("--strategy", aceso->strategy,
                 "search, or megatron: the best of Megatron's regular plans, as a baseline")
      ->check(CLI::IsMember({"search", "megatron"}))
      ->capture_default_str();
  app.add_option("--global-batch", aceso->global_batch, "Samples of an iteration")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
  app.add_option("--micro-batch", aceso->microbatches,
                 "Microbatches to try: of the pipeline, and of a rank")
      ->expected(1, -1)
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
  app.add_option("--max-tp", aceso->max_tp, "Largest tensor-parallel degree; a server's GPUs")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--max-stages", aceso->max_stages, "Most pipeline stages")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--spare-memory", aceso->spare_mb, "MB of a GPU to keep free")
      ->check(CLI::Range(0.0, kMostMegabytes))
      ->capture_default_str();
  app.add_option("--effort", aceso->max_work,
                 "End the search after so much work, proven or not; the same on every machine "
                 "(default: 48 million events of --model, 20 million labels of Aceso's, none of "
                 "Metis's; 0: until proven)")
      ->check(CLI::NonNegativeNumber);
  app.add_option(
      "--actual", aceso->actual,
      "Measured times and memory of plans (CSV: plan,time_ms,memory_mb; or run, a file with what "
      "'lockstep run --json' printed, for time_ms): predicted against actual, for "
      "Aceso's plans");
  app.add_option("--scaling", aceso->scaling,
                 "Layers of scale-layer to search for one after the other: what the search costs")
      ->expected(1, -1)
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 16));
  app.add_option("--top", aceso->top,
                 "So many best plans: all of Metis's space; of Aceso's the best of each number of "
                 "stages and microbatch")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20));
  app.add_option("-o,--output", aceso->output, "Folder for the plans and tables; made if absent");
  define_report_flags(app, aceso->report);
  app.add_flag("--json", aceso->json, "Print one JSON document");
  app.add_option("--resume", job->resume,
                 "file that keeps what a search works out: one that was ended, at whatever moment, "
                 "or gets more --effort, goes on from it");
  app.add_option("--threads", job->threads,
                 "threads (default: one a core); the result does not depend on it")
      ->check(CLI::Range(1, 1024));
  return [aceso, metis, job, &app] {
    if (take_job(app, *aceso, *job)) {
      return run_job_plan(*job);
    }
    if (metis->hostfile.empty() == aceso->model.empty()) {
      throw Error("no problem is given, or two")
          .expected(
              "--model NAME --gpus N --topology T, --aceso-model NAME, or "
              "--metis-hostfile FILE --metis-clusterfile FILE");
    }
    for (const CLI::Option* option : app.get_options()) {
      if (option->count() > 0 && option->get_group().starts_with("A model of ours")) {
        throw Error("only plans of --model take this").field(option->get_name());
      }
    }
    if (metis->hostfile.empty()) {
      refuse_unheeded(app, 'a', "Aceso's problem");
    } else {
      refuse_unheeded(app, 'm', "Metis's problem");
    }
    refuse_beside_price(app, aceso->model.empty());
    if (aceso->profiles.empty()) {
      throw Error("the folder with the profiles is missing").field("--profiles");
    }
    check_report_flags(aceso->report);
    aceso->threads = metis->threads = job->threads;
    if (!job->resume.empty() && (!aceso->scaling.empty() || aceso->strategy == "megatron")) {
      throw Error("only a search is resumed")
          .field("--resume")
          .expected("no --scaling or --strategy megatron beside it");
    }
    aceso->resume = metis->resume = job->resume;
    for (const char* flag : {"--effort", "--deadline"}) {
      if (aceso->strategy == "megatron" && app.count(flag) > 0) {
        throw Error("only a search heeds this")
            .field(flag)
            .expected("not beside --strategy megatron");
      }
    }
    aceso->deadline = metis->deadline = job->deadline;
    if (!aceso->model.empty()) {
      aceso->max_work = app.count("--effort") > 0 ? aceso->max_work : kAcesoEffort;
      aceso->microbatches_given = app.count("--micro-batch") > 0;
      return run_aceso(*aceso);
    }
    metis->profiles = aceso->profiles;
    metis->cost = aceso->cost;
    metis->price = aceso->price;
    metis->output = aceso->output;
    metis->top = aceso->top;
    metis->max_work = aceso->max_work;
    metis->json = aceso->json;
    metis->report = aceso->report;
    metis->max_tp = aceso->max_tp > 0 ? aceso->max_tp : metis->max_tp;
    return run_metis(*metis);
  };
}

}  // namespace

extern const Command kPlanCommand;
const Command kPlanCommand{"plan", "The best way to train a model on a cluster, and what it costs",
                           kExamples, define};

}  // namespace lockstep

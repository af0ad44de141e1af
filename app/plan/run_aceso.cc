#include <algorithm>
#include <ctime>
#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "app/plan/aceso_report.h"
#include "app/plan/aceso_studies.h"
#include "app/plan/plan_options.h"
#include "app/plan/search_journals.h"
#include "app/plan/search_stop.h"
#include "app/terminal.h"
#include "base/atomic_file.h"
#include "base/file.h"
#include "base/output_capture.h"
#include "base/warnings.h"
#include "planner/aceso/cost.h"
#include "planner/aceso/megatron_grid.h"
#include "planner/aceso/search/search.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using namespace aceso;

Cluster cluster_of(const AcesoOptions& options) {
  return {.nodes = options.nodes,
          .gpus_per_node = options.gpus_per_node,
          .memory_limit_mb = options.memory_limit_mb};
}

Flavour flavour_of(const AcesoOptions& options) {
  return options.cost == "fixed" ? Flavour::kFixed : Flavour::kStrict;
}

/// Adds what the price of a given plan leaves out or takes at face value.
void add_oddities(const Plan& plan, const Database& database, const Cluster& cluster,
                  Warnings& warnings) {
  if (plan.global_batch % plan.microbatch != 0) {
    warnings.add(fmt::format("{} samples are no whole number of microbatches of {}: {} are dropped",
                             plan.global_batch, plan.microbatch,
                             plan.global_batch % plan.microbatch));
  }
  int gpus = 0;
  std::size_t op = 0;
  for (const Stage& stage : plan.stages) {
    gpus += stage.gpus;
    for (const OpPlace& place : stage.places) {
      if (plan.microbatch % place.dp != 0) {
        warnings.add(fmt::format("a microbatch of {} over {} ranks drops samples", plan.microbatch,
                                 place.dp));
      }
      const std::int64_t share = plan.microbatch / place.dp;
      if (!database.has(share, place.tp, place.algorithm)) {
        warnings.add(
            fmt::format("no profile of {} samples a rank at tp {}, algorithm {}: such ops count as "
                        "1 s forward, 1 s backward and 10^6 MB a size",
                        share, place.tp, place.algorithm));
      }
      ++op;
    }
  }
  if (gpus != cluster.gpus()) {
    warnings.add(fmt::format("the plan uses {} GPUs; the cluster has {}", gpus, cluster.gpus()));
  }
}

void print(const Warnings& warnings) {
  for (const Warnings::Entry& entry : warnings.entries()) {
    fmt::print(standard_error(), "lockstep: warning: {}{}\n", entry.text,
               entry.count == 1 ? "" : fmt::format(" ({} times)", entry.count));
  }
}

/// The microbatches a rank may run in the plan, and the whole one.
std::vector<std::int64_t> microbatches_of(const Plan& plan) {
  std::vector<std::int64_t> all = {plan.microbatch};
  for (const Stage& stage : plan.stages) {
    for (const OpPlace& place : stage.places) {
      all.push_back(plan.microbatch / place.dp);
    }
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  all.erase(std::remove(all.begin(), all.end(), 0), all.end());
  return all;
}

/// Where the flags say otherwise than the plan. ERRORS: of its global batch.
void check_batches(const AcesoOptions& options, const Plan& plan, const std::string& file,
                   Warnings& warnings) {
  if (options.global_batch > 0 && options.global_batch != plan.global_batch) {
    throw Error(fmt::format("the plan's global batch is {}", plan.global_batch))
        .at(file)
        .field("--global-batch")
        .expected("the plan's, or none");
  }
  if (options.microbatches_given &&
      std::ranges::find(options.microbatches, plan.microbatch) == options.microbatches.end()) {
    warnings.add(
        fmt::format("{}: --micro-batch: the plan's microbatch is {}, which a search would "
                    "not try",
                    file, plan.microbatch));
  }
}

/// Reads and prices a plan's file; `warnings` gets what is odd about it.
PricedFile price_of(const AcesoOptions& options, const Model& model, const std::string& file,
                    Warnings& warnings) {
  const Cluster cluster = cluster_of(options);
  const FileText text(file, Bytes(1 << 28));
  Plan plan = parse_plan(text.view(), file, model);
  check_batches(options, plan, file, warnings);
  int tp = cluster.gpus_per_node;
  for (const Stage& stage : plan.stages) {
    tp = std::max(tp, stage.gpus);
  }
  const Database database = read_database(options.profiles, model, microbatches_of(plan), tp);
  check_ops(plan, file, model, static_cast<std::int64_t>(database.ops.size()));
  add_oddities(plan, database, cluster, warnings);
  PlanPrice cost = price_plan(plan, database, model, cluster, flavour_of(options));
  return {std::move(plan), std::move(cost)};
}

ExitCode price(const AcesoOptions& options, const Model& model) {
  const Cluster cluster = cluster_of(options);
  Warnings warnings;
  const auto [plan, cost] = price_of(options, model, options.price, warnings);
  if (options.json || options.report.wanted()) {
    Json json = {{"schema", "lockstep-plan-price/1"},
                 {"model", model.name},
                 {"size", model.size},
                 {"cost", options.cost},
                 {"plan", options.price}};
    json.update(aceso_plan_json(plan, cost, cluster));
    Json list = Json::array();
    for (const Warnings::Entry& entry : warnings.entries()) {
      list.push_back(entry.text);
    }
    json["warnings"] = std::move(list);
    const std::string document = with_command(to_text(json));
    write_reports(options.report, "plan", document);
    if (options.json) {
      write_file("-", document);
    }
  }
  if (!options.json) {
    print(warnings);
    write_file("-", for_terminal(fmt::format("{} {}: ", model.name, model.size) +
                                 aceso_plan_table(plan, cost, cluster)));
  }
  return ExitCode::kDone;
}

Problem problem_of(const AcesoOptions& options, const Model& model, const Database& database,
                   const std::vector<std::int64_t>& microbatches, int max_tp) {
  return {.database = &database,
          .model = &model,
          .cluster = cluster_of(options),
          .flavour = flavour_of(options),
          .global_batch = options.global_batch,
          .microbatches = microbatches,
          .max_tp = max_tp,
          .max_stages = options.max_stages,
          .spare_mb = options.spare_mb};
}

/// Plans as files of Aceso's, best first, and the table of stages, times and memory.
void write_plans(const std::string& folder, const SearchResult& result, const Model& model) {
  make_folder(folder);
  std::string table = "stages,microbatch,time_ms,samples_per_s,memory_mb,file\n";
  for (const RankedPlan& ranked : result.plans) {
    const std::string name = fmt::format("{}_{}_{}stages_{:.0f}.json", model.name, model.size,
                                         ranked.plan.stages.size(), ranked.price.time_ms);
    write_file((fs::path(folder) / name).string(), plan_json(ranked.plan, model));
    table += fmt::format("{},{},{},{},{},{}\n", ranked.plan.stages.size(), ranked.plan.microbatch,
                         ranked.price.time_ms, samples_per_s(ranked.plan, ranked.price),
                         ranked.price.memory_mb, name);
  }
  write_file((fs::path(folder) / "plans.csv").string(), table);
}

std::string search_text(const SearchResult& result, const Model& model, const Cluster& cluster,
                        double cpu_s) {
  const RankedPlan& best = result.plans.front();
  std::string text = fmt::format("{} {} on {} GPUs: ", model.name, model.size, cluster.gpus()) +
                     aceso_plan_table(best.plan, best.price, cluster);
  if (result.bound_ms == 0) {
    text += fmt::format("the best of {} regular plans that fit\n", result.work);
  } else if (result.exact) {
    text += "proven: no plan of the space is faster\n";
  } else {
    text += fmt::format("no plan is faster than {:.2f} ms: the gap is {:.2f} %\n", result.bound_ms,
                        100 * (best.price.time_ms / result.bound_ms - 1));
  }
  for (std::size_t p = 1; p < std::min<std::size_t>(result.plans.size(), 16); ++p) {
    text += fmt::format("also: {} stages, microbatch {}: {:.2f} ms, {:.2f} MB\n",
                        result.plans[p].plan.stages.size(), result.plans[p].plan.microbatch,
                        result.plans[p].price.time_ms, result.plans[p].price.memory_mb);
  }
  return result.bound_ms == 0
             ? text + fmt::format("priced in {:.2f} s of CPU\n", cpu_s)
             : text + fmt::format("searched {} labels in {:.2f} s of CPU\n", result.work, cpu_s);
}

Json search_json(const AcesoOptions& options, const SearchResult& result, const Model& model,
                 const Cluster& cluster, double cpu_s) {
  Json plans = Json::array();
  for (const RankedPlan& ranked : result.plans) {
    Json one = aceso_plan_json(ranked.plan, ranked.price, cluster);
    one["plan"] = Json::parse(plan_json(ranked.plan, model));
    plans.push_back(std::move(one));
  }
  return {{"schema", "lockstep-plan/1"},
          {"model", model.name},
          {"size", model.size},
          {"cost", options.cost},
          {"time_s", result.plans.front().price.time_ms / 1000},
          {"memory_bytes", result.plans.front().price.memory_mb * (1 << 20)},
          {"strategy", options.strategy},
          {"bound_s", result.bound_ms == 0 ? Json() : Json(result.bound_ms / 1000)},
          {"gap", result.bound_ms == 0
                      ? Json()
                      : Json(result.plans.front().price.time_ms / result.bound_ms - 1)},
          {"exact", result.exact},
          {"search_work", result.work},
          {"search_cpu_s", cpu_s},
          {"plans", std::move(plans)},
          {"left_out", result.removed}};
}

/// What a search found, and its CPU seconds.
struct Found {
  SearchResult result;
  double cpu_s = 0;
  std::int64_t ops = 0;
};

Found run_search(const AcesoOptions& options, const Model& model, const SearchStop& stop) {
  if (options.global_batch < 1) {
    throw Error("the samples of an iteration are missing")
        .field("--global-batch")
        .expected("--global-batch N for a search, or --price PLAN.json");
  }
  std::vector<std::int64_t> microbatches = options.microbatches;
  std::sort(microbatches.begin(), microbatches.end());
  microbatches.erase(std::unique(microbatches.begin(), microbatches.end()), microbatches.end());
  const Cluster cluster = cluster_of(options);
  const int max_tp = options.max_tp > 0 ? options.max_tp : cluster.gpus_per_node;
  const Database database =
      read_database(options.profiles, model, microbatches, std::min(max_tp, 8));
  const std::clock_t begin = std::clock();
  const Problem problem = problem_of(options, model, database, microbatches, max_tp);
  SearchResult result;
  if (options.strategy == "megatron") {
    result = megatron_grid(problem);
  } else {
    std::optional<AcesoJournal> journal;
    if (!options.resume.empty()) {
      journal.emplace(options.resume, problem);
    }
    result =
        search(problem, {.max_work = options.max_work,
                         .most = static_cast<std::size_t>(std::max<std::int64_t>(1, options.top)),
                         .threads = options.threads,
                         .memo = journal ? &*journal : nullptr,
                         .stop = stop.asked()});
  }
  const double cpu_s = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  result.removed.insert(result.removed.end(), database.missing.begin(), database.missing.end());
  if (options.top > 0) {
    result.plans.resize(std::min(result.plans.size(), static_cast<std::size_t>(options.top)));
  }
  return {std::move(result), cpu_s, static_cast<std::int64_t>(database.ops.size())};
}

ExitCode find(const AcesoOptions& options, const Model& model) {
  const Cluster cluster = cluster_of(options);
  const SearchStop stop(options.deadline);
  const auto [result, cpu_s, ops] = run_search(options, model, stop);
  const auto end = [&] {
    return stop.ended("the best plans found by now",
                      !options.output.empty() || options.report.wanted());
  };
  if (!options.output.empty() && !stop.interrupted()) {
    write_plans(options.output, result, model);
    write_search_tables(options.output,
                        fmt::format("{} {} on {} GPUs", model.name, model.size, cluster.gpus()),
                        result, cpu_s);
  }
  if (options.json || options.report.wanted()) {
    const std::string text =
        with_command(to_text(search_json(options, result, model, cluster, cpu_s)));
    if (!stop.interrupted()) {
      write_reports(options.report, "plan", text);
    }
    if (options.json) {
      write_file("-", text);
      return end();
    }
  }
  for (const std::string& text : result.removed) {
    fmt::print(standard_error(), "lockstep: note: {}\n", text);
  }
  write_file("-", for_terminal(search_text(result, model, cluster, cpu_s)));
  return end();
}

}  // namespace

ExitCode run_aceso(const AcesoOptions& options) {
  if (!options.scaling.empty()) {
    if (options.model != "scale-layer") {
      throw Error(fmt::format("{} has one number of layers", options.model))
          .field("--scaling")
          .expected("--aceso-model scale-layer");
    }
    const SearchStop stop(options.deadline);
    return run_scaling_study(options, stop, [&](std::int64_t layers) {
      Found found =
          run_search(options, find_model(options.model, fmt::format("{}layers", layers), 0), stop);
      return ScalingPoint{layers, found.ops, std::move(found.result), found.cpu_s};
    });
  }
  const Model model = find_model(options.model, options.size, options.layers);
  if (!options.actual.empty()) {
    return run_accuracy_study(options, [&](const std::string& file) {
      Warnings warnings;
      PricedFile priced = price_of(options, model, file, warnings);
      print(warnings);
      return priced;
    });
  }
  return options.price.empty() ? find(options, model) : price(options, model);
}

}  // namespace lockstep

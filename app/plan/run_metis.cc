#include <algorithm>
#include <ctime>
#include <filesystem>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/plan/plan_options.h"
#include "app/plan/search_journals.h"
#include "app/terminal.h"
#include "base/atomic_file.h"
#include "base/file.h"
#include "base/json.h"
#include "base/output_capture.h"
#include "planner/metis/search.h"
#include "planner/metis/space.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using namespace metis;

Problem read_problem(const MetisOptions& options) {
  if (options.clusterfile.empty() || options.layers < 3 || options.global_batch < 1 ||
      options.layers > 4096 || options.global_batch > std::int64_t{1} << 30) {
    throw Error("Metis's problem needs a clusterfile, layers and samples")
        .expected("--metis-clusterfile FILE --layers N (3 … 4096) --gbs N");
  }
  if (options.hidden < 1 || options.sequence < 1 || options.vocabulary < 1 || options.max_tp < 1 ||
      options.max_batch < 1) {
    throw Error("sizes below 1")
        .expected(
            "--hidden-size, --sequence-length, --vocab-size, "
            "--max-tp and --max-batch from 1 on");
  }
  Problem problem;
  problem.nodes =
      parse_cluster(FileText(options.hostfile, Bytes(1 << 24)).view(), options.hostfile,
                    FileText(options.clusterfile, Bytes(1 << 24)).view(), options.clusterfile);
  problem.layers = options.layers;
  problem.global_batch = options.global_batch;
  problem.hidden = options.hidden;
  problem.sequence = options.sequence;
  problem.vocabulary = options.vocabulary;
  problem.max_tp = options.max_tp;
  problem.max_batch = options.max_batch;
  problem.flavour = options.cost == "fixed" ? Flavour::kFixed : Flavour::kStrict;
  try {
    ranks_of(problem, problem.types());
  } catch (Error& error) {
    error.locate(options.hostfile);
    throw;
  }
  problem.profiles =
      read_profiles(options.profiles, problem.types(), options.layers, options.model_profile);
  return problem;
}

Plan read_plan(const std::string& path) {
  const FileText text(path, Bytes(1 << 24));
  const Json json = parse_json(text.view(), path);
  const JsonView document(json, path);
  Plan plan;
  plan.batches = document["batches"].integer(1, std::int64_t{1} << 40);
  document["node_sequence"].each(
      [&](const JsonView& type) { plan.node_sequence.push_back(type.string()); });
  document["device_groups"].each([&](const JsonView& group) {
    plan.device_groups.push_back(static_cast<int>(group.integer(1, 1 << 20)));
  });
  document["strategies"].each([&](const JsonView& pair) {
    plan.strategies.push_back({static_cast<int>(pair[0].integer(1, 1 << 20)),
                               static_cast<int>(pair[1].integer(1, 1 << 20))});
  });
  document["layer_partition"].each(
      [&](const JsonView& layer) { plan.partition.push_back(layer.integer(0, 1 << 20)); });
  return plan;
}

Json to_json(const Plan& plan, const Price& price) {
  Json strategies = Json::array();
  for (const Strategy& strategy : plan.strategies) {
    strategies.push_back({strategy.dp, strategy.tp});
  }
  return {{"time_s", price.total() / 1000},
          {"execution_s", price.execution / 1000},
          {"synchronisation_s", price.synchronisation / 1000},
          {"update_s", price.update / 1000},
          {"data_parallel_s", price.data_parallel / 1000},
          {"pipeline_s", price.pipeline / 1000},
          {"batch_s", price.batch / 1000},
          {"node_sequence", plan.node_sequence},
          {"device_groups", plan.device_groups},
          {"strategies", std::move(strategies)},
          {"batches", plan.batches},
          {"layer_partition", plan.partition}};
}

/// A line of Metis's ranking.
std::string line(std::size_t rank, const Plan& plan, const Price& price) {
  std::string strategies;
  for (const Strategy& strategy : plan.strategies) {
    strategies +=
        fmt::format("{}({}, {})", strategies.empty() ? "" : ", ", strategy.dp, strategy.tp);
  }
  return fmt::format("{}, {}, ({}), [{}], [{}], {}, [{}]\n", rank, price.total(),
                     fmt::join(plan.node_sequence, ", "), fmt::join(plan.device_groups, ", "),
                     strategies, plan.batches, fmt::join(plan.partition, ", "));
}

std::string ranking(const std::vector<Ranked>& found) {
  std::string text =
      "rank, cost, node_sequence, device_groups, strategies(dp_deg, tp_deg), batches(number of "
      "batch), layer_partition\n";
  for (std::size_t r = 0; r < found.size(); ++r) {
    text += line(r + 1, found[r].plan, found[r].price);
  }
  return text;
}

}  // namespace

ExitCode run_metis(const MetisOptions& options) {
  const Problem problem = read_problem(options);
  if (!options.price.empty()) {
    const Plan plan = read_plan(options.price);
    const Price price =
        with_context("while pricing " + options.price, [&] { return price_plan(problem, plan); });
    const Soundness sound = soundness(problem, plan);
    for (const std::string& warning : sound.warnings) {
      fmt::print(standard_error(), "lockstep: warning: {}\n", warning);
    }
    Json json = {{"schema", "lockstep-plan-price/1"}, {"cost", options.cost}};
    json.update(to_json(plan, price));
    json["fits"] = sound.fits;
    json["warnings"] = sound.warnings;
    const std::string text = with_command(to_text(json));
    write_reports(options.report, "plan", text);
    write_file("-", options.json ? text : line(1, plan, price));
    return ExitCode::kDone;
  }
  const std::clock_t begin = std::clock();
  std::optional<MetisJournal> journal;
  if (!options.resume.empty()) {
    journal.emplace(options.resume, problem);
  }
  const std::vector<Ranked> found = search(problem, static_cast<std::size_t>(options.top),
                                           options.threads, journal ? &*journal : nullptr);
  const std::vector<std::string> missing = left_out(problem);
  const double cpu_s = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  if (!options.output.empty()) {
    make_folder(options.output);
    write_file((fs::path(options.output) / "ranking.txt").string(), ranking(found));
  }
  if (options.json || options.report.wanted()) {
    Json plans = Json::array();
    for (const Ranked& ranked : found) {
      plans.push_back(to_json(ranked.plan, ranked.price));
    }
    const std::string text = with_command(to_text({{"schema", "lockstep-plan/1"},
                                                   {"cost", options.cost},
                                                   {"time_s", found.front().price.total() / 1000},
                                                   {"bound_s", found.front().price.total() / 1000},
                                                   {"gap", 0.0},
                                                   {"exact", true},
                                                   {"search_cpu_s", cpu_s},
                                                   {"left_out", missing},
                                                   {"plans", std::move(plans)}}));
    write_reports(options.report, "plan", text);
    if (options.json) {
      write_file("-", text);
    }
  }
  if (!options.json) {
    for (const std::string& part : missing) {
      fmt::print(standard_error(), "lockstep: note: {}\n", part);
    }
    write_file("-", for_terminal(ranking(found)));
    fmt::print(standard_error(),
               "lockstep: note: proven: no sound plan is below {:.2f} ms, bound and gap are {:.2f} "
               "ms and 0 %; searched in {:.3f} s of CPU\n",
               found.front().price.total(), found.front().price.total(), cpu_s);
  }
  return ExitCode::kDone;
}

}  // namespace lockstep

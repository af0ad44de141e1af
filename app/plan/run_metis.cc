#include <algorithm>
#include <ctime>
#include <filesystem>
#include <map>
#include <optional>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/plan/plan_options.h"
#include "app/plan/search_journals.h"
#include "app/plan/search_stop.h"
#include "app/terminal.h"
#include "base/atomic_file.h"
#include "base/file.h"
#include "base/json.h"
#include "base/output_capture.h"
#include "base/text.h"
#include "planner/metis/search.h"
#include "planner/metis/uniform.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using namespace metis;

Problem read_problem(const MetisOptions& options) {
  if (options.clusterfile.empty()) {
    throw Error("Metis's problem needs this").field("--metis-clusterfile").expected("a file");
  }
  for (const auto& [flag, value, least, most] :
       {std::tuple("--layers", std::int64_t{options.layers}, 3, 4096),
        std::tuple("--gbs", std::int64_t{options.global_batch}, 1, 1 << 30)}) {
    if (value < least || value > most) {
      throw Error(value == 0 ? "Metis's problem needs this"
                             : fmt::format("{} is too {}", value, value < least ? "few" : "many"))
          .field(flag)
          .expected(fmt::format("{} to {}", least, most));
    }
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
  std::map<std::string, int> lines;
  for (const Node& node : problem.nodes) {
    if (++lines[node.address] == 2) {
      problem.profiles.warnings.push_back(
          fmt::format("{}: the host {} stands twice: as many servers", options.hostfile,
                      printable(node.address)));
    }
  }
  for (const std::string& warning : problem.profiles.warnings) {
    fmt::print(standard_error(), "lockstep: warning: {}\n", warning);
  }
  return problem;
}

constexpr std::int64_t kMostGpus = 1 << 20;

UniformPlan read_uniform(const JsonView& document, const Problem& problem) {
  const auto degree = [&](const char* key) {
    return static_cast<int>(document[key].integer(1, kMostGpus));
  };
  if (document.has("gbs") &&
      document["gbs"].integer(1, std::int64_t{1} << 40) != problem.global_batch) {
    throw document["gbs"].error(fmt::format("expected the {} of --gbs", problem.global_batch));
  }
  return {.dp = degree("dp"),
          .pp = degree("pp"),
          .tp = degree("tp"),
          .mbs = document["mbs"].integer(1, std::int64_t{1} << 40)};
}

Plan read_plan(const JsonView& document) {
  Plan plan;
  plan.batches = document["batches"].integer(1, std::int64_t{1} << 40);
  document["node_sequence"].each(
      [&](const JsonView& type) { plan.node_sequence.push_back(type.string()); });
  document["device_groups"].each([&](const JsonView& group) {
    plan.device_groups.push_back(static_cast<int>(group.integer(1, kMostGpus)));
  });
  document["strategies"].each([&](const JsonView& pair) {
    if (pair.size() != 2) {
      throw pair.error("expected [dp, tp]");
    }
    plan.strategies.push_back({static_cast<int>(pair[0].integer(1, kMostGpus)),
                               static_cast<int>(pair[1].integer(1, kMostGpus))});
  });
  document["layer_partition"].each(
      [&](const JsonView& layer) { plan.partition.push_back(layer.integer(0, 1 << 20)); });
  return plan;
}

Json parts(const Price& price) {
  return {{"time_s", price.total() / 1000},
          {"execution_s", price.execution / 1000},
          {"synchronisation_s", price.synchronisation / 1000},
          {"update_s", price.update / 1000},
          {"data_parallel_s", price.data_parallel / 1000},
          {"pipeline_s", price.pipeline / 1000},
          {"batch_s", price.batch / 1000}};
}

Json to_json(const Plan& plan, const Price& price) {
  Json strategies = Json::array();
  for (const Strategy& strategy : plan.strategies) {
    strategies.push_back({strategy.dp, strategy.tp});
  }
  Json json = parts(price);
  json.update({{"node_sequence", plan.node_sequence},
               {"device_groups", plan.device_groups},
               {"strategies", std::move(strategies)},
               {"batches", plan.batches},
               {"layer_partition", plan.partition}});
  return json;
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

ExitCode price_given(const MetisOptions& options, const Problem& problem) {
  const FileText text(options.price, Bytes(1 << 24));
  const Json file = parse_json(text.view(), options.price);
  const JsonView document(file, options.price);
  Json json = {{"schema", "lockstep-plan-price/1"}, {"cost", options.cost}};
  std::string row;
  Soundness sound;
  with_context("while pricing " + options.price, [&] {
    if (document.has("pp")) {
      const UniformPlan plan = read_uniform(document, problem);
      const Price price = price_plan(problem, plan);
      sound = soundness(problem, plan);
      row = fmt::format("1, {}, UniformPlan(dp={}, pp={}, tp={}, mbs={}, gbs={})\n", price.total(),
                        plan.dp, plan.pp, plan.tp, plan.mbs, problem.global_batch);
      json.update(parts(price));
      json.update({{"dp", plan.dp},
                   {"pp", plan.pp},
                   {"tp", plan.tp},
                   {"mbs", plan.mbs},
                   {"gbs", problem.global_batch},
                   {"layer_partition", plan_of(problem, plan).partition}});
      return;
    }
    const Plan plan = read_plan(document);
    const Price price = price_plan(problem, plan);
    sound = soundness(problem, plan);
    row = line(1, plan, price);
    json.update(to_json(plan, price));
  });
  for (const std::string& warning : sound.warnings) {
    fmt::print(standard_error(), "lockstep: warning: {}\n", warning);
  }
  json["fits"] = sound.fits;
  std::vector<std::string> warnings = problem.profiles.warnings;
  warnings.insert(warnings.end(), sound.warnings.begin(), sound.warnings.end());
  json["warnings"] = std::move(warnings);
  const std::string whole = with_command(to_text(json));
  write_reports(options.report, "plan", whole);
  write_file("-", options.json ? whole : row);
  return ExitCode::kDone;
}

}  // namespace

ExitCode run_metis(const MetisOptions& options) {
  const Problem problem = read_problem(options);
  if (!options.price.empty()) {
    return price_given(options, problem);
  }
  const std::clock_t begin = std::clock();
  std::optional<MetisJournal> journal;
  if (!options.resume.empty()) {
    journal.emplace(options.resume, problem);
  }
  const SearchStop stop(options.deadline);
  const SearchResult result = search(problem, {.most = static_cast<std::size_t>(options.top),
                                               .threads = options.threads,
                                               .memo = journal ? &*journal : nullptr,
                                               .max_work = options.max_work,
                                               .stop = stop.asked()});
  const std::vector<Ranked>& found = result.plans;
  std::vector<std::string> warnings = problem.profiles.warnings;
  if (found.front().price.total() < 0) {
    warnings.emplace_back(
        "the first plan takes less than no time: a profile's forward_backward_time_ms is less than "
        "its layers take, and Metis adds the difference once a microbatch; --cost fixed leaves it "
        "out");
    fmt::print(standard_error(), "lockstep: warning: {}\n", warnings.back());
  }
  const std::vector<std::string> missing = left_out(problem);
  const double cpu_s = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  const double best_ms = found.front().price.total();
  std::optional<double> gap;  // none beside a bound below no time (strict)
  if (best_ms == result.bound_ms || result.bound_ms > 0) {
    gap = best_ms == result.bound_ms ? 0 : best_ms / result.bound_ms - 1;
  }
  if (!options.output.empty() && !stop.interrupted()) {
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
                                                   {"time_s", best_ms / 1000},
                                                   {"bound_s", result.bound_ms / 1000},
                                                   {"gap", gap ? Json(*gap) : Json()},
                                                   {"exact", result.exact},
                                                   {"search_cpu_s", cpu_s},
                                                   {"left_out", missing},
                                                   {"warnings", warnings},
                                                   {"plans", std::move(plans)}}));
    if (!stop.interrupted()) {
      write_reports(options.report, "plan", text);
    }
    if (options.json) {
      write_file("-", text);
    }
  }
  if (!options.json) {
    for (const std::string& part : missing) {
      fmt::print(standard_error(), "lockstep: note: {}\n", part);
    }
    write_file("-", for_terminal(ranking(found)));
    fmt::print(
        standard_error(),
        "lockstep: note: {}no sound plan is below {:.2f} ms, bound and gap are {:.2f} ms and "
        "{}; searched in {:.3f} s of CPU\n",
        result.exact ? "proven: " : "", result.bound_ms, result.bound_ms,
        gap ? fmt::format("{:.2g} %", 100 * *gap) : "not to be told", cpu_s);
  }
  return stop.ended("the best plans found by now",
                    !options.output.empty() || options.report.wanted());
}

}  // namespace lockstep

#include "app/run/run_workload.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "app/run/local_ranks.h"
#include "app/terminal.h"
#include "base/atomic_file.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/input_limit.h"
#include "base/progress.h"
#include "base/text.h"
#include "profiler/gpu_module.h"
#include "profiler/run/control_transport.h"
#include "profiler/run/join.h"
#include "profiler/run/run_summary.h"
#include "profiler/run/runner.h"
#include "workloads/read_workload.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

RankPlace place_of(const RunOptionsCli& options) {
  RankPlace place;
  const bool launched =
      place_from_environment([](const char* name) { return std::getenv(name); }, place);
  if (options.world > 0) {
    place.world = static_cast<int>(options.world);
  }
  if (options.rank >= 0) {
    take_rank(place, launched, static_cast<int>(options.rank));
  }
  if (options.local_rank >= 0) {
    place.local_rank = static_cast<int>(options.local_rank);
  }
  if (options.local_ranks > 0) {
    place.world = static_cast<int>(options.local_ranks);
    place.rank = 0;
  }
  if (place.rank >= place.world) {
    throw Error(fmt::format("there is no rank {} of {}", place.rank, place.world))
        .field("--rank")
        .expected(fmt::format("0 to {}", place.world - 1));
  }
  if (!options.master.empty()) {
    const std::size_t colon = options.master.rfind(':');
    const auto port =
        colon == std::string::npos ? std::nullopt : to_int(options.master.substr(colon + 1));
    if (!port || *port < 1 || *port > 65535 || colon == 0) {
      throw Error(fmt::format("'{}' is no address", printable(options.master)))
          .field("--master")
          .expected("HOST:PORT");
    }
    place.host = options.master.substr(0, colon);
    place.port = static_cast<int>(*port);
  }
  return place;
}

/// Flags that say nothing of such a workload are not passed over.
void check_for_kind(const RunOptionsCli& options, bool csv) {
  if (csv && options.layers > 0) {
    throw Error("AICB's CSV has no layers").field("--layers").expected("SimAI's text");
  }
  for (const auto& [flag, value] : {std::pair("--tp", options.tp), std::pair("--ep", options.ep),
                                    std::pair("--pp", options.pp)}) {
    if (!csv && value > 0) {
      throw Error("the workload itself says how it was cut")
          .field(flag)
          .expected("AICB's CSV, which does not");
    }
  }
}

struct Planned {
  RunPlan plan;
  std::string digest;  ///< of the workload's text
};

/// What each rank of the world would do is sound. `plan_for`: the plan of a rank.
void check_ranks(const RankPlace& place, const std::function<RunPlan(int)>& plan_for) {
  Progress progress("ranks", place.world);
  for (int rank = 0; rank < place.world; ++rank) {
    progress.update(rank);
    if (rank != place.rank) {
      with_context(fmt::format("in what rank {} of {} would do", rank, place.world),
                   [&] { (void)plan_for(rank); });
    }
  }
}

/// `all_ranks`: the others' plans are made, too, for what may be wrong with them (with our JSON and
/// SimAI's text it is wrong for all).
Planned plan_of(const RunOptionsCli& options, const RankPlace& place, bool all_ranks) {
  RunChoice choice;
  choice.world = place.world;
  choice.rank = place.rank;
  choice.compute = options.compute == "gemm" ? RunCompute::kGemm : RunCompute::kIdle;
  choice.flops = options.tflops * 1e12;
  choice.layers = options.layers;
  Warnings warnings;
  Planned planned;
  RunPlan& plan = planned.plan;
  bool csv = false;
  {
    const FileText text(options.workload);
    planned.digest = digest_of(text.view());
    csv = text.view().starts_with("comm_type,");
    check_for_kind(options, csv);
    if (csv) {
      const CsvCut cut = {std::max<std::int64_t>(1, options.tp),
                          std::max<std::int64_t>(1, options.ep),
                          std::max<std::int64_t>(1, options.pp)};
      plan = read_aicb_workload(text.view(), options.workload, cut, choice, warnings);
      if (all_ranks) {
        check_ranks(place, [&](int rank) {
          RunChoice of_rank = choice;
          of_rank.rank = rank;
          Warnings told;  // once, of our own
          return read_aicb_workload(text.view(), options.workload, cut, of_rank, told);
        });
      }
    }
  }
  if (!csv) {
    plan = run_plan(read_workload(options.workload, &warnings), choice);
  }
  if (place.rank == 0) {
    for (const Warnings::Entry& entry : warnings.entries()) {
      fmt::print(stderr, "lockstep: warning: {}: {}\n", options.workload, entry.text);
    }
  }
  return planned;
}

/// Where a rank's own files go.
fs::path own_folder(const RunOptionsCli& options, std::int64_t rank) {
  return fs::path(options.output) / "byteps" / std::to_string(rank);
}

/// What sets a job apart from others, but for its workload: equal on all its ranks.
std::string job_of(const RunOptionsCli& options) {
  return fmt::format("{} {} {} {} {} {} {} ", options.transport, options.layers, options.tp,
                     options.ep, options.pp, options.iterations, options.warmups);
}

/// All that a rank can fail at by itself, before it meets the others.
Planned prepare(const RunOptionsCli& options, const RankPlace& place) {
  Planned planned = plan_of(options, place, false);
  if (!options.output.empty()) {
    make_folder(own_folder(options, planned.plan.rank).string());
  }
  if (options.transport == "nccl") {
    (void)gpu_module();  // a missing part is told at once, without waiting for the others
  }
  return planned;
}

/// The arguments of each rank of --local-ranks.
std::vector<std::string> arguments_of_ranks(const RunOptionsCli& options) {
  std::vector<std::string> words;
  const auto add = [&](const char* flag, const std::string& value) {
    words.insert(words.end(), {flag, value});
  };
  add("--workload", options.workload);
  add("--iterations", std::to_string(options.iterations));
  add("--warmups", std::to_string(options.warmups));
  add("--transport", options.transport);
  add("--compute", options.compute);
  add("--tflops", fmt::format("{}", options.tflops));
  add("--timeout", fmt::format("{}", options.timeout_s));
  add("--byteps-start", std::to_string(options.byteps_first));
  add("--byteps-end", std::to_string(options.byteps_last));
  add("--world", std::to_string(options.local_ranks));
  add("--max-input", std::to_string(input_limit().count()));
  for (const auto& [flag, value] :
       {std::pair("--layers", options.layers), std::pair("--tp", options.tp),
        std::pair("--ep", options.ep), std::pair("--pp", options.pp)}) {
    if (value > 0) {
      add(flag, std::to_string(value));
    }
  }
  if (!options.output.empty()) {
    add("--output", options.output);
  }
  if (!options.master.empty()) {
    add("--master", options.master);
  }
  if (options.json) {
    words.emplace_back("--json");
  }
  return words;
}

void write_outputs(const RunOptionsCli& options, const RunPlan& plan, const RunLog& log,
                   const std::string& transport) {
  const fs::path folder(options.output);
  if (plan.rank == 0) {
    const RunSummary summary = summarize(plan, log);
    write_file("-", options.json ? to_json_text(summary, plan, transport) : to_text(summary));
  }
  if (options.output.empty()) {
    return;
  }
  write_file((own_folder(options, plan.rank) / "comm.json").string(),
             byteps_json(plan, log, options.byteps_first, options.byteps_last));
  write_run_timeline(plan, log, (folder / fmt::format("timeline-rank{}.json", plan.rank)).string());
  if (plan.rank != 0) {
    return;
  }
  const std::string name = fs::path(options.workload).stem().string();
  write_file((folder / (name + "_log.csv")).string(), comm_log_csv(plan, log));
  write_file((folder / (name + "_nccl_tests.txt")).string(),
             nccl_tests_tables(plan, log, transport));
  fmt::print(stderr, "{}: logs, tables and timelines\n", options.output);
}

void check_flags(const RunOptionsCli& options) {
  if (options.local_ranks > 0 &&
      (options.world > 0 || options.rank >= 0 || options.local_rank >= 0)) {
    throw Error("ranks of this machine are the whole world")
        .field("--local-ranks")
        .expected("no --world, --rank and --local-rank beside it");
  }
  if (options.dry_run && !options.output.empty()) {
    throw Error("nothing is run that could be written").field("--output").expected("no --dry-run");
  }
  if (options.byteps_last < options.byteps_first) {
    throw Error(fmt::format("the last iteration, {}, is before the first, {}", options.byteps_last,
                            options.byteps_first))
        .field("--byteps-end");
  }
}

}  // namespace

ExitCode run_workload(const RunOptionsCli& options) {
  check_flags(options);
  const RankPlace place = place_of(options);
  if (options.dry_run) {
    const RunPlan plan = plan_of(options, place, true).plan;
    write_file("-", options.json ? to_json_text(plan) : for_terminal(describe(plan)));
    return ExitCode::kDone;
  }
  if (options.local_ranks > 0) {
    (void)plan_of(options, place, true);
    if (!options.output.empty()) {
      make_folder(own_folder(options, place.rank).string());
    }
    return start_local_ranks(arguments_of_ranks(options), options.local_ranks);
  }
  // Whoever runs something else is told apart before anything hangs.
  const std::string job = job_of(options);
  Planned planned;
  try {
    planned = prepare(options, place);
  } catch (const Error& error) {
    tell_early_failure(place, job, error.what(), options.timeout_s);
    throw;
  }
  const auto& [plan, digest] = planned;
  Bootstrap bootstrap(place, job + digest, options.timeout_s);
  std::unique_ptr<Transport> transport;
  try {
    transport = options.transport == "nccl" ? gpu_module().open_transport(place.local_rank)
                                            : make_control_transport(bootstrap);
  } catch (const Error& error) {
    bootstrap.fail(error.what());
    throw;
  }
  const RunLog log = execute(plan, *transport, bootstrap,
                             {options.iterations, options.warmups, options.timeout_s});
  write_outputs(options, plan, log, transport->name());
  return ExitCode::kDone;
}

}  // namespace lockstep

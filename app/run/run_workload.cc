#include "app/run/run_workload.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <spawn.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>

#include "base/atomic_file.h"
#include "base/file.h"
#include "base/own_program.h"
#include "base/text.h"
#include "profiler/gpu_module.h"
#include "profiler/run/run_summary.h"
#include "profiler/run/runner.h"
#include "workloads/read_workload.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

RankPlace place_of(const RunOptionsCli& options) {
  RankPlace place;
  (void)place_from_environment([](const char* name) { return std::getenv(name); }, place);
  if (options.world > 0) {
    place.world = static_cast<int>(options.world);
  }
  if (options.rank >= 0) {
    place.rank = place.local_rank = static_cast<int>(options.rank);
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

RunPlan plan_of(const RunOptionsCli& options, const RankPlace& place) {
  RunChoice choice;
  choice.world = place.world;
  choice.rank = place.rank;
  choice.compute = options.compute == "gemm" ? RunCompute::kGemm : RunCompute::kIdle;
  choice.flops = options.tflops * 1e12;
  choice.layers = options.layers;
  Warnings warnings;
  RunPlan plan;
  bool csv = false;
  {
    const FileText text(options.workload);
    csv = text.view().starts_with("comm_type,");
    if (csv) {
      plan = read_aicb_workload(text.view(), options.workload, {options.tp, options.ep, options.pp},
                                choice, warnings);
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
  return plan;
}

/// Waits for all, the first that ends first; other children of this process, which may be of a
/// program that we are part of, are left alone. The first that fails gives the code.
int wait_for_ranks(std::vector<pid_t> children) {
  int code = 0;
  while (!children.empty()) {
    const std::size_t before = children.size();
    std::erase_if(children, [&](pid_t child) {
      int status = 0;
      const pid_t ended = ::waitpid(child, &status, WNOHANG);
      if (ended > 0 && code == 0) {
        code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      }
      return ended != 0;
    });
    if (children.size() == before) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  return code;
}

/// Starts lockstep once for each rank and waits for all.
ExitCode start_ranks(const RunOptionsCli& options) {
  const std::string program = lockstep_to_start().string();
  std::vector<std::string> words = {"lockstep", "run"};
  const auto add = [&](const char* flag, const std::string& value) {
    words.insert(words.end(), {flag, value});
  };
  add("--workload", options.workload);
  add("--iterations", std::to_string(options.iterations));
  add("--warmups", std::to_string(options.warmups));
  add("--layers", std::to_string(options.layers));
  add("--transport", options.transport);
  add("--compute", options.compute);
  add("--tflops", fmt::format("{}", options.tflops));
  add("--timeout", fmt::format("{}", options.timeout_s));
  add("--tp", std::to_string(options.tp));
  add("--ep", std::to_string(options.ep));
  add("--pp", std::to_string(options.pp));
  add("--byteps-start", std::to_string(options.byteps_first));
  add("--byteps-end", std::to_string(options.byteps_last));
  add("--world", std::to_string(options.local_ranks));
  if (!options.output.empty()) {
    add("--output", options.output);
  }
  if (!options.master.empty()) {
    add("--master", options.master);
  }
  if (options.json) {
    words.emplace_back("--json");
  }
  std::vector<pid_t> children;
  for (std::int64_t rank = 0; rank < options.local_ranks; ++rank) {
    std::vector<std::string> own = words;
    own.insert(own.end(), {"--rank", std::to_string(rank)});
    std::vector<char*> arguments;
    arguments.reserve(own.size() + 1);
    for (std::string& word : own) {
      arguments.push_back(word.data());
    }
    arguments.push_back(nullptr);
    pid_t child = -1;
    if (const int problem =
            ::posix_spawn(&child, program.c_str(), nullptr, nullptr, arguments.data(), environ);
        problem != 0) {
      throw Error(fmt::format("cannot start rank {}: {}", rank, std::strerror(problem)));
    }
    children.push_back(child);
  }
  return static_cast<ExitCode>(wait_for_ranks(children));
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
  const fs::path own = folder / "byteps" / std::to_string(plan.rank);
  make_folder(own.string());
  write_file((own / "comm.json").string(),
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

}  // namespace

ExitCode run_workload(const RunOptionsCli& options) {
  if (options.local_ranks > 0 && !options.dry_run) {
    if (options.world > 0 || options.rank >= 0) {
      throw Error("ranks of this machine are the whole world")
          .field("--local-ranks")
          .expected("no --world and no --rank beside it");
    }
    return start_ranks(options);
  }
  RankPlace place = place_of(options);
  if (options.local_ranks > 0) {
    place.world = static_cast<int>(options.local_ranks);
  }
  const RunPlan plan = plan_of(options, place);
  if (options.dry_run) {
    write_file("-", options.json ? to_json_text(plan) : describe(plan));
    return ExitCode::kDone;
  }
  // Whoever runs something else is told apart before anything hangs.
  const std::string key = fmt::format("{} {} {}", options.transport, plan.largest_bytes,
                                      options.iterations + options.warmups);
  const bool nccl = options.transport == "nccl";
  if (nccl) {
    (void)gpu_module();  // a missing part is told at once, without waiting for the others
  }
  Bootstrap bootstrap(place, key, options.timeout_s);
  std::unique_ptr<Transport> transport;
  try {
    transport =
        nccl ? gpu_module().open_transport(place.local_rank) : make_control_transport(bootstrap);
  } catch (const Error& error) {
    bootstrap.fail(error.what());
    throw;
  }
  const RunLog log = execute(plan, *transport, bootstrap, {options.iterations, options.warmups});
  write_outputs(options, plan, log, transport->name());
  return ExitCode::kDone;
}

}  // namespace lockstep

#include "app/run/run_options.h"

#include <CLI/CLI.hpp>

namespace lockstep {

void add_run_options(CLI::App& app, RunOptionsCli& options) {
  const auto count = [](std::int64_t least, std::int64_t most) { return CLI::Range(least, most); };
  constexpr std::int64_t kMany = std::int64_t{1} << 24;
  app.add_option("--workload", options.workload,
                 "SimAI's text, AICB's workload CSV, or our JSON of a step")
      ->required();
  app.add_option("-o,--output", options.output, "Folder for logs, tables and timelines");
  app.add_flag("--dry-run", options.dry_run,
               "Print what this rank would run, check what every rank would, and end");
  app.add_flag("--json", options.json,
               "The summary, or with --dry-run the plan, as one JSON document");
  app.add_option("--iterations", options.iterations, "Runs of the whole workload")
      ->check(count(1, kMany))
      ->capture_default_str();
  app.add_option("--warmups", options.warmups, "Runs before them, not logged")
      ->check(count(0, kMany))
      ->capture_default_str();
  app.add_option("--layers", options.layers, "Of SimAI's text only so many lines; 0: all")
      ->check(count(0, kMany))
      ->capture_default_str();
  app.add_option("--transport", options.transport,
                 "nccl, or control: moves nothing, needs no GPU, tries plan and launcher; finds "
                 "ranks that wait for each other")
      ->check(CLI::IsMember({"nccl", "control"}))
      ->capture_default_str();
  app.add_option("--compute", options.compute,
                 "idle: computations are waited for; gemm: they are products on the GPU")
      ->check(CLI::IsMember({"idle", "gemm"}))
      ->capture_default_str();
  app.add_option("--tflops", options.tflops,
                 "Rate that sizes products for computations that are given as times")
      ->check(CLI::Range(0.001, 1e6))
      ->capture_default_str();
  app.add_option("--local-ranks", options.local_ranks,
                 "Start so many ranks on this machine, one for each GPU")
      ->check(count(1, 1 << 10))
      ->group("Ranks");
  app.add_option("--world", options.world, "Ranks; default: the launcher's, else 1")
      ->check(count(1, kMany))
      ->group("Ranks");
  app.add_option("--rank", options.rank, "This one; default: the launcher's, else 0")
      ->check(count(0, kMany))
      ->group("Ranks");
  app.add_option("--master", options.master,
                 "HOST:PORT of rank 0; default: MASTER_ADDR and MASTER_PORT, else 127.0.0.1:29400")
      ->group("Ranks");
  app.add_option(
         "--local-rank", options.local_rank,
         "The GPU of this rank on its machine; default: the launcher's, else --rank's number")
      ->check(count(0, kMany))
      ->group("Ranks");
  app.add_option("--timeout", options.timeout_s,
                 "Seconds to wait for all ranks to come; a run in which nothing ends on a rank "
                 "for so long, the computations of the busiest rank added, fails")
      ->check(CLI::Range(0.1, 1e5))
      ->capture_default_str()
      ->group("Ranks");
  app.add_option("--tp", options.tp, "How AICB's CSV was cut; default 1")
      ->check(count(1, kMany))
      ->group("Cut");
  app.add_option("--ep", options.ep, "Likewise")->check(count(1, kMany))->group("Cut");
  app.add_option("--pp", options.pp, "Likewise")->check(count(1, kMany))->group("Cut");
  app.add_option("--byteps-start", options.byteps_first,
                 "First iteration of BytePS's comm.json, from 0")
      ->check(count(0, kMany))
      ->capture_default_str();
  app.add_option("--byteps-end", options.byteps_last, "Last iteration of it")
      ->check(count(0, kMany))
      ->capture_default_str();
}

}  // namespace lockstep

#include "app/collective/collective_options.h"

#include <CLI/CLI.hpp>

namespace lockstep {

void define_collective_options(CLI::App& app, CollectiveOptions& options) {
  app.add_option("--op", options.op,
                 "allreduce, allgather, reducescatter, alltoall, broadcast, reduce, sendrecv or\n"
                 "barrier; nccl-tests' spellings (all_reduce) do as well")
      ->required()
      ->group("What");
  CLI::Option* size =
      app.add_option(
             "--size", options.size,
             "bytes of the whole tensor as nccl-tests counts them, or FROM:TO by factors of 2")
          ->capture_default_str()
          ->group("What");
  CLI::Option* sweep =
      app.add_option("--sweep", options.sweep, "FROM:TO such as 8B:16GiB, in place of --size")
          ->group("What");
  app.add_option("--root", options.root, "rank that a broadcast starts and a reduce ends at")
      ->check(CLI::Range(0, 1 << 24))
      ->group("What");
  app.add_option("--split", options.split,
                 "file with the bytes that each rank sends to each (all-to-all), or gives or gets\n"
                 "(all-gather, reduce-scatter), in place of --size (docs/formats/split.md)")
      ->excludes(size)
      ->excludes(sweep)
      ->group("What");

  app.add_option("-n,--topology", options.topology,
                 "topology file, or TEMPLATE[:flags] such as Spectrum-X:g=128")
      ->required()
      ->group("Where");
  app.add_option("--gpus", options.gpus, "ranks (default: all GPUs of the topology)")
      ->check(CLI::Range(std::int64_t{2}, std::int64_t{1} << 24))
      ->group("Where");
  app.add_option("--placement", options.placement,
                 "first; spread (one GPU a server in turn); stride:K; random (by --seed); or the\n"
                 "GPUs of rank 0, 1, … as 0-3,8-11")
      ->capture_default_str()
      ->group("Where");

  app.add_option("-e,--engine", options.engines,
                 "analytic, flow, packet; several side by side, or all")
      ->delimiter(',')
      ->check(CLI::IsMember({"analytic", "flow", "packet", "all"}))
      ->capture_default_str()
      ->group("How");
  app.add_option("--flavour", options.flavour,
                 "default, or simai for SimAI's rules to the letter (docs/models.md)")
      ->check(CLI::IsMember({"default", "simai"}))
      ->capture_default_str()
      ->group("How");
  define_choice_flags(app, options, "How");
  app.add_option("--algorithm-file", options.algorithm_file,
                 "an algorithm of your own: MSCCL's XML or our JSON (docs/formats/algorithm.md)")
      ->group("How");

  define_network_flags(app, options, "Network");
  define_sample_flags(app, options, "Network");
  define_transport_flags(app, options,
                         "Fabric (packet engine; flow engine where given; docs/models.md)");
  app.add_option("--jitter", options.jitter,
                 "ranks enter at random moments from 0 to this long after")
      ->group("Network");
  app.add_option("--straggler", options.stragglers,
                 "links that are slow or fail, such as link:12-40:0.5 or down:12-40:1ms@50us-2ms;\n"
                 "may be given several times ('lockstep simulate --list-stragglers')")
      ->take_all()
      ->group("Network");
  app.add_option("--seed", options.seed,
                 "of --jitter, --placement random, and in flavour simai\nof what packets wait for "
                 "each other")
      ->capture_default_str()
      ->group("Network");
  app.add_option("--nvlink", options.nvlink,
                 "analytic engine: NVLink bandwidth of a GPU (default: the topology's)")
      ->group("Network");
  app.add_option("--nic", options.nic, "analytic engine: bandwidth of one NIC")->group("Network");
  app.add_option(
         "--threads", options.threads,
         "sizes and engines at once (default: one a core); the result does not depend on it")
      ->check(CLI::Range(1, 1024))
      ->group("Speed");
  app.add_flag("--no-symmetry", options.no_symmetry,
               "flow engine: simulate every connection, not one of each kind")
      ->group("Speed");
  app.add_flag("--no-fast-forward", options.no_fast_forward,
               "flow and packet engine: simulate every transfer, skip no repetition")
      ->group("Speed");
  app.add_option(
         "--error-budget", options.error_budget,
         "flow engine: part of the time, such as 0.1%, by which it may be off where a long\n"
         "pipeline never repeats exactly and is taken at its steady pace; the error is told\n"
         "(default: exact)")
      ->group("Speed");
  app.add_flag("--verify-symmetry", options.verify_symmetry,
               "flow engine: run it in full as well and compare every connection to the picosecond")
      ->group("Speed");
  app.add_flag(
         "--paranoid", options.paranoid,
         "flow and packet engine: check every transfer, byte count, clock and solve of rates\n"
         "in a run of every connection, and (flow) that it ends as the quick way says; slow")
      ->group("Speed");

  app.add_flag("--json", options.json, "machine-readable result (docs/formats)")->group("Output");
}

}  // namespace lockstep

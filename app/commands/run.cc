#include <memory>

#include <CLI/CLI.hpp>

#include "app/command.h"
#include "app/run/run_workload.h"

namespace lockstep {
namespace {

CommandBody define(CLI::App& app) {
  auto options = std::make_shared<RunOptionsCli>();
  add_run_options(app, *options);
  return [options] { return run_workload(*options); };
}

}  // namespace

extern const Command kRunCommand;
const Command kRunCommand{"run", "Runs a workload's communication on real GPUs with NCCL",
                          R"(Examples:
  lockstep run --workload workloads/samples/gpt13b-128gpu-tp8.txt --world 128 --dry-run
  lockstep run --workload step.txt --local-ranks 8 --iterations 10 --warmups 2 -o logs
  mpirun -n 16 lockstep run --workload step.json --master node0:29400 -o logs
  lockstep run --workload step.txt --local-ranks 4 --transport control

Ranks come from --rank and --world, or from torchrun, MPI or Slurm. -o gets AICB's comm log (which
'compare' reads), tables as nccl-tests prints them, a timeline for Perfetto and BytePS's comm.json
of each rank. If one rank fails, or nothing ends for --timeout seconds, all end with the reason and
the items that ranks are at.
)",
                          define};

}  // namespace lockstep

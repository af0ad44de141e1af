#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace lockstep {

/// How many processes a command line starts, and how many GPUs each of them takes; 0 where it does
/// not tell.
struct LaunchLine {
  std::int32_t processes = 0, servers = 0;
  std::int32_t processes_per_server = 0;
  std::int32_t process_gpus = 0;
};

/// What "mpirun -np 16 -N 8 …", "mpirun -np 16 --map-by ppr:8:node", "mpirun -H h1:8,h2:8",
/// "mpiexec -ppn 8", "srun -N2 --ntasks-per-node=8", "torchrun --nnodes 2 --nproc-per-node 8" tell.
/// -N is the processes of a server to mpirun, the servers to srun. Processes that mpirun maps by
/// node take the listed hosts in turn; a rankfile places them where no list tells. Behind the
/// program: its GPUs a thread and threads (-g, -t). Lines that start none: nothing else. O(length).
LaunchLine launch_line(std::string_view line);

/// The program of nccl-tests that a line starts: the only one that it names ("all_reduce_perf",
/// "all_reduce_perf_mpi", with or without a folder), where it stands first, behind settings, a
/// shell's prompt or a program that starts others ("mpirun", "numactl", …), or before options of
/// nccl-tests. Empty: none, as in lists of files and a linker's lines. O(words).
std::string_view started_program(const std::vector<std::string_view>& words);

}  // namespace lockstep

#pragma once

#include <functional>
#include <string>

namespace lockstep {

/// Which rank this process is, and where rank 0 is found.
struct RankPlace {
  int rank = 0, world = 1;
  int local_rank = 0;  ///< number on its server: which GPU
  std::string host = "127.0.0.1";
  int port = 29400;
};

/// Rank, world and local rank from the environment as launchers set them: torchrun (RANK,
/// WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT), Open MPI (OMPI_COMM_WORLD_…), MPICH and
/// Intel MPI (PMI_…), Slurm (SLURM_PROCID, SLURM_NTASKS, SLURM_LOCALID), in that order.
/// `variable`: getenv. Returns false if no launcher has set any.
/// ERRORS: Error naming the variable: no number, out of range, rank without world.
bool place_from_environment(const std::function<const char*(const char*)>& variable,
                            RankPlace& place);

/// Makes it that rank's place. Which GPU it has is the launcher's to say, where one has set it
/// (`launched`), and else the rank's number.
void take_rank(RankPlace& place, bool launched, int rank);

}  // namespace lockstep

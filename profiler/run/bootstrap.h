#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

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

/// All ranks of a world, joined over TCP: rank 0 listens, the others connect. It hands out the
/// id that names the world, holds barriers, gathers texts, and when one rank fails tells all others
/// why. Frames are a length, a kind and bytes; nothing secret passes and nobody is authenticated,
/// so the port belongs on a private network.
class Bootstrap {
 public:
  /// `id` makes the world's id on rank 0. `key` must be equal on all ranks: it keeps apart jobs
  /// that meet on one port.
  /// ERRORS: Error: nobody at the address within `timeout_s`, another key, a rank twice, a world of
  /// another size.
  Bootstrap(const RankPlace& place, const std::string& key, double timeout_s);
  ~Bootstrap();
  Bootstrap(const Bootstrap&) = delete;
  Bootstrap& operator=(const Bootstrap&) = delete;

  /// Rank 0's text, on all ranks. Collective.
  std::string share(const std::string& text);
  /// All ranks' texts on rank 0, by rank; elsewhere none. Collective.
  std::vector<std::string> gather(const std::string& text);
  /// Collective. ERRORS: as failure().
  void barrier();

  /// Tells all ranks that this one failed, and why. At most once; never throws.
  void fail(const std::string& reason) noexcept;
  /// Called once, from a thread of its own (or from here, if it has happened already), when another
  /// rank has failed or gone, with the reason. Must not throw. Returns once no earlier `call` is
  /// under way: after on_failure({}) what it worked on may go.
  void on_failure(const std::function<void(const std::string&)>& call);
  /// Why another rank has ended, or empty.
  std::string failure() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep

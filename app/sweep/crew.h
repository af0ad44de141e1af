#pragma once

#include <memory>
#include <optional>
#include <string>

namespace lockstep {

struct CrewMessage {
  int from = 0;
  std::string text;
};

/// The ranks of a sweep that run at once, and their letters. Rank 0 coordinates.
class Crew {
 public:
  virtual ~Crew() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Does not wait.
  virtual void send(int to, std::string text) = 0;
  /// A letter that has come, from any rank; does not wait.
  virtual std::optional<CrewMessage> receive() = 0;
};

/// The rank and number of ranks that a launcher of MPI (mpirun, srun) has told this process; 0 of 1
/// without one.
struct LaunchedRank {
  int rank = 0;
  int size = 1;
  const char* variables = "";  ///< of the environment, that said so
};
LaunchedRank launched_rank();

/// Joins the other ranks through MPI; waits for them to do the same.
/// ERRORS: Error with ExitCode::kMissingPart where the module liblockstep-mpi.so is missing; Error
/// where MPI knows another rank or number of ranks than the launcher said: it is another MPI's.
std::unique_ptr<Crew> join_crew(const LaunchedRank& launched);
/// ERRORS: the second of those.
void check_crew(const Crew& crew, const LaunchedRank& launched);

/// What the loadable module liblockstep-mpi.so offers. MPI is linked with nothing else, so that
/// programs start as fast, and run as well, without it.
struct MpiModule {
  std::unique_ptr<Crew> (*join)();
};
/// The name of the one object that the module exports, with C linkage.
inline constexpr const char* kMpiModuleSymbol = "lockstep_mpi_module";

}  // namespace lockstep

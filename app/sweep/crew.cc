#include "app/sweep/crew.h"

#include <cstdlib>
#include <dlfcn.h>

#include "base/error.h"
#include "base/module_path.h"
#include "base/text.h"

namespace lockstep {
namespace {

std::optional<int> from_environment(const char* name) {
  const char* text = std::getenv(name);
  const auto number = text == nullptr ? std::nullopt : to_int(text);
  return number ? std::optional<int>(static_cast<int>(*number)) : std::nullopt;
}

}  // namespace

LaunchedRank launched_rank() {
  // Open MPI; MPICH, Intel MPI and Slurm's pmi2; Slurm's pmix.
  constexpr struct {
    const char *rank, *size;
  } kLaunchers[] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                    {"PMI_RANK", "PMI_SIZE"},
                    {"PMIX_RANK", "SLURM_NTASKS"}};
  for (const auto& launcher : kLaunchers) {
    const auto rank = from_environment(launcher.rank);
    const auto size = from_environment(launcher.size);
    if (rank && size) {
      return {*rank, *size};
    }
  }
  return {};
}

std::unique_ptr<Crew> join_crew() {
  std::string why = "this build was configured without it";
#ifdef LOCKSTEP_MPI_MODULE
  for (const std::string& place : module_places("liblockstep-mpi.so", LOCKSTEP_MPI_MODULE)) {
    // Open MPI's own plug-ins look for its symbols among those of the whole program.
    if (void* handle = ::dlopen(place.c_str(), RTLD_NOW | RTLD_GLOBAL); handle != nullptr) {
      if (const auto* module = static_cast<const MpiModule*>(::dlsym(handle, kMpiModuleSymbol))) {
        return module->join();
      }
    }
    const char* problem = ::dlerror();
    why = problem != nullptr ? problem : "the module is empty";
  }
#endif
  throw Error("several ranks were started, but MPI is missing: " + why, ExitCode::kMissingPart)
      .hint(
          "./setup installs Open MPI and Boost.MPI; then configure and build again. Or start one "
          "process without mpirun");
}

}  // namespace lockstep

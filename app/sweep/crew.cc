#include "app/sweep/crew.h"

#include <cstdlib>
#include <dlfcn.h>

#include <fmt/format.h>

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
    const char *rank, *size, *names;
  } kLaunchers[] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
                    {"PMI_RANK", "PMI_SIZE", "PMI_RANK and PMI_SIZE"},
                    {"PMIX_RANK", "SLURM_NTASKS", "PMIX_RANK"}};
  for (const auto& launcher : kLaunchers) {
    const auto rank = from_environment(launcher.rank);
    const auto size = from_environment(launcher.size);
    if (rank && size) {
      return {*rank, *size, launcher.names};
    }
  }
  return {};
}

void check_crew(const Crew& crew, const LaunchedRank& launched) {
  if (crew.rank() == launched.rank && crew.size() == launched.size) {
    return;
  }
  throw Error(fmt::format("the launcher started rank {} of {}, but the MPI of this program knows "
                          "rank {} of {}: the launcher belongs to another MPI",
                          launched.rank, launched.size, crew.rank(), crew.size()))
      .expected(
          "the mpirun of the MPI that this program was built with ('lockstep doctor' names "
          "it), or srun --mpi=pmix")
      .hint("one process needs no launcher; set by mistake, unset " +
            std::string(launched.variables));
}

std::unique_ptr<Crew> join_crew([[maybe_unused]] const LaunchedRank& launched) {
  std::string why = "this build was configured without it";
#ifdef LOCKSTEP_MPI_MODULE
  for (const std::string& place : module_places("liblockstep-mpi.so", LOCKSTEP_MPI_MODULE)) {
    // Open MPI's own plug-ins look for its symbols among those of the whole program.
    if (void* handle = ::dlopen(place.c_str(), RTLD_NOW | RTLD_GLOBAL); handle != nullptr) {
      if (const auto* module = static_cast<const MpiModule*>(::dlsym(handle, kMpiModuleSymbol))) {
        std::unique_ptr<Crew> crew = module->join();
        check_crew(*crew, launched);
        return crew;
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

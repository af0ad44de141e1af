#include "profiler/run/rank_place.h"

#include <array>
#include <cstdint>
#include <optional>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {

bool place_from_environment(const std::function<const char*(const char*)>& variable,
                            RankPlace& place) {
  struct Names {
    const char *rank, *world, *local;
  };
  constexpr std::array<Names, 4> kLaunchers{
      {{"RANK", "WORLD_SIZE", "LOCAL_RANK"},
       {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
       {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
       {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"}}};
  const auto number = [&](const char* name, std::int64_t most) -> std::optional<int> {
    const char* text = variable(name);
    if (text == nullptr) {
      return std::nullopt;
    }
    const auto value = to_int(text);
    if (!value || *value < 0 || *value > most) {
      throw Error(fmt::format("'{}' is no number from 0 to {}", printable(text), most))
          .field(fmt::format("environment variable {}", name));
    }
    return static_cast<int>(*value);
  };
  for (const Names& names : kLaunchers) {
    const auto rank = number(names.rank, 1 << 24), world = number(names.world, 1 << 24);
    if (!rank && !world) {
      continue;
    }
    if (!rank || !world || *rank >= *world) {
      throw Error("rank and world do not fit")
          .field(fmt::format("environment variables {} and {}", names.rank, names.world))
          .expected("both, and a rank below the world's size");
    }
    place.rank = *rank;
    place.world = *world;
    place.local_rank = number(names.local, 1 << 16).value_or(0);
    if (const char* host = variable("MASTER_ADDR")) {
      place.host = host;
    }
    place.port = number("MASTER_PORT", 65535).value_or(place.port);
    return true;
  }
  return false;
}

void take_rank(RankPlace& place, bool launched, int rank) {
  place.rank = rank;
  if (!launched) {
    place.local_rank = rank;
  }
}

}  // namespace lockstep

#pragma once

#include <cstdint>
#include <vector>

#include "simulator/collectives/algorithm.h"

namespace lockstep::testing {

/// `ranks` ranks in order, `per_server` on each server (the last one may have fewer).
inline GroupShape in_servers_of(std::int32_t per_server, std::int32_t ranks) {
  std::vector<std::int32_t> servers;
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    servers.push_back(rank / per_server);
  }
  return group_shape(servers);
}

}  // namespace lockstep::testing

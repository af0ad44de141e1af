#include "simulator/collectives/rings.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>

#include "base/error.h"
#include "simulator/collectives/building.h"

namespace lockstep {
namespace {

using Ranks = std::vector<std::int32_t>;

/// Appends all of `ranks`, from local rank `enter` to `leave`, those between in cyclic order after
/// `leave`. enter == leave only where there is one rank.
void pass_through(const Ranks& ranks, std::size_t enter, std::size_t leave, Ranks& ring) {
  const std::size_t count = ranks.size();
  ring.push_back(ranks[enter]);
  for (std::size_t i = 1; i < count; ++i) {
    const std::size_t next = (leave + i) % count;
    if (next != enter) {
      ring.push_back(ranks[next]);
    }
  }
  if (leave != enter) {
    ring.push_back(ranks[leave]);
  }
}

/// How much further on than its entry channel c leaves server k of `servers`, modulo the number of
/// ranks L of each, in the rail-aligned order.
std::size_t rail_step(std::size_t k, std::size_t servers, std::size_t per_server) {
  const std::size_t back = per_server - 1;
  if (servers % 2 == 1 && per_server > 2 && servers > 1 && k + 3 >= servers) {
    return k + 1 == servers ? 2 : back;
  }
  return k % 2 == 0 ? back : 1;
}

Ranks make_ring(std::size_t channel, const std::vector<Ranks>& servers, bool rail_aligned) {
  Ranks ring;
  std::size_t enter = channel;
  for (std::size_t k = 0; k < servers.size(); ++k) {
    const std::size_t count = servers[k].size();
    if (!rail_aligned) {
      enter = channel % count;
    }
    const std::size_t step = rail_aligned ? rail_step(k, servers.size(), count) : count - 1;
    const std::size_t leave = (enter + step) % count;
    pass_through(servers[k], enter, leave, ring);
    enter = leave;
  }
  return ring;
}

bool one_mesh(const CollectiveRequest& request, const GroupShape& shape) {
  return request.mesh && std::ranges::all_of(shape.server, [](auto server) { return server == 0; });
}

std::vector<Ranks> mesh_rings(std::int32_t n) {
  if (n == 4) {
    return {{0, 1, 2, 3}, {0, 1, 3, 2}, {0, 2, 1, 3}, {0, 3, 2, 1}, {0, 2, 3, 1}, {0, 3, 1, 2}};
  }
  std::vector<Ranks> rings;
  for (std::int32_t step = 1; step < n; ++step) {
    if (std::gcd(step, n) == 1) {
      Ranks& ring = rings.emplace_back();
      for (std::int64_t i = 0; i < n; ++i) {
        ring.push_back(static_cast<std::int32_t>(i * step % n));
      }
    }
  }
  return rings;
}

}  // namespace

GroupShape group_shape(std::span<const std::int32_t> servers) {
  GroupShape shape;
  shape.ranks = static_cast<std::int32_t>(servers.size());
  if (servers.size() == 2) {  // most groups of a step are pairs
    shape.server = {0, servers[0] == servers[1] ? 0 : 1};
    return shape;
  }
  shape.server.reserve(servers.size());
  std::map<std::int32_t, std::int32_t> number;
  for (const std::int32_t server : servers) {
    const auto next = static_cast<std::int32_t>(number.size());
    shape.server.push_back(number.try_emplace(server, next).first->second);
  }
  return shape;
}

std::int32_t channel_count(const CollectiveRequest& request, const GroupShape& shape) {
  if (request.channels < 0 || request.channels > kMaxChannels) {
    throw Error("a collective cannot have " + std::to_string(request.channels) + " channels")
        .expected("0 (as many as suit the group) to " + std::to_string(kMaxChannels));
  }
  if (request.channels > 0) {
    return request.channels;
  }
  return one_mesh(request, shape) ? static_cast<std::int32_t>(mesh_rings(shape.ranks).size())
                                  : fewest_a_server(shape);
}

std::vector<std::vector<std::int32_t>> make_rings(const CollectiveRequest& request,
                                                  const GroupShape& shape) {
  const std::vector<Ranks> servers = ranks_by_server(shape);
  const auto own = static_cast<std::size_t>(fewest_a_server(shape));
  const bool even = servers.size() * own == static_cast<std::size_t>(shape.ranks);
  const bool rail_aligned = even && request.flavour == CollectiveFlavour::kDefault;
  const auto channels = static_cast<std::size_t>(channel_count(request, shape));
  std::vector<Ranks> rings;
  if (one_mesh(request, shape)) {
    const std::vector<Ranks> orders = mesh_rings(shape.ranks);
    for (std::size_t c = 0; c < channels; ++c) {
      rings.push_back(orders[c % orders.size()]);
    }
    return rings;
  }
  for (std::size_t c = 0; c < channels; ++c) {
    rings.push_back(c < own ? make_ring(c, servers, rail_aligned) : rings[c - own]);
  }
  return rings;
}

GroupShape simai_tensor_shape(GroupShape shape, std::int32_t gpus_per_server) {
  const std::int32_t servers = (shape.ranks - 1) / gpus_per_server + 1;
  if (shape.ranks % servers == 0) {
    for (std::int32_t rank = 0; rank < shape.ranks; ++rank) {
      shape.server[static_cast<std::size_t>(rank)] = rank / (shape.ranks / servers);
    }
  }
  return shape;
}

Bytes part_size(Bytes total, std::int64_t parts, CollectiveFlavour flavour) {
  const bool round_up = flavour == CollectiveFlavour::kDefault && total.count() % parts != 0;
  return Bytes(total.count() / parts + (round_up ? 1 : 0));
}

}  // namespace lockstep

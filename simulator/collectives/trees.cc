#include "simulator/collectives/trees.h"

#include <algorithm>

#include "base/index.h"
#include "simulator/collectives/building.h"
#include "simulator/collectives/rings.h"

namespace lockstep {
namespace {

/// A server's chain: all its ranks in cyclic order from local rank `first` on.
std::vector<std::int32_t> chain_from(const std::vector<std::int32_t>& ranks, std::int32_t first) {
  std::vector<std::int32_t> chain = ranks;
  const auto shift = static_cast<std::ptrdiff_t>(at(first) % ranks.size());
  std::rotate(chain.begin(), chain.begin() + shift, chain.end());
  return chain;
}

/// Servers in an order in which parents come first.
std::vector<std::int32_t> top_down(std::span<const std::int32_t> parents, std::int32_t root) {
  const auto children = children_of(parents);
  std::vector<std::int32_t> order = {root};
  for (std::size_t i = 0; i < order.size(); ++i) {
    order.insert(order.end(), children[at(order[i])].begin(), children[at(order[i])].end());
  }
  return order;
}

/// Parents of the servers, where server `root` (if not negative) is put above a tree of the others.
std::vector<std::int32_t> server_tree(std::int32_t servers, bool second, std::int32_t root) {
  if (root < 0) {
    return second ? complementary_tree(servers) : binary_tree(servers);
  }
  const auto below = second ? complementary_tree(servers - 1) : binary_tree(servers - 1);
  const auto number = [&](std::int32_t i) { return i < root ? i : i + 1; };
  std::vector<std::int32_t> parents(at(servers), -1);
  for (std::int32_t i = 0; i < servers - 1; ++i) {
    parents[at(number(i))] = below[at(i)] < 0 ? root : number(below[at(i)]);
  }
  return parents;
}

}  // namespace

std::vector<std::int32_t> binary_tree(std::int32_t count) {
  std::vector<std::int32_t> parents(at(count), -1);
  for (std::int32_t node = 1; node < count; ++node) {
    const std::int32_t bit = node & -node;
    const std::int64_t up = (std::int64_t{node} ^ bit) | (std::int64_t{bit} << 1);
    parents[at(node)] = up < count ? static_cast<std::int32_t>(up) : node ^ bit;
  }
  return parents;
}

std::vector<std::int32_t> complementary_tree(std::int32_t count) {
  const std::vector<std::int32_t> first = binary_tree(count);
  std::vector<std::int32_t> parents(at(count), -1);
  for (std::int32_t node = 0; node < count; ++node) {
    if (count % 2 == 0) {
      const std::int32_t up = first[at(count - 1 - node)];
      parents[at(node)] = up < 0 ? -1 : count - 1 - up;
    } else {
      const std::int32_t up = first[at((node + count - 1) % count)];
      parents[at(node)] = up < 0 ? -1 : (up + 1) % count;
    }
  }
  return parents;
}

std::vector<std::vector<std::int32_t>> children_of(std::span<const std::int32_t> parents) {
  std::vector<std::vector<std::int32_t>> children(parents.size());
  for (std::size_t node = 0; node < parents.size(); ++node) {
    if (parents[node] >= 0) {
      children[at(parents[node])].push_back(static_cast<std::int32_t>(node));
    }
  }
  return children;
}

std::int32_t tree_channels(const CollectiveRequest& request, const GroupShape& shape) {
  const std::int32_t nics = channel_count(request, shape);
  return request.channels > 0 || nics == shape.ranks ? nics : 2 * nics;
}

std::vector<std::int32_t> tree_parents(const GroupShape& shape, std::int32_t channel,
                                       std::int32_t channels, std::int32_t root) {
  const auto servers = ranks_by_server(shape);
  const std::int32_t half = (channels + 1) / 2;
  const std::int32_t root_server = root < 0 ? -1 : shape.server[at(root)];
  const auto above =
      server_tree(static_cast<std::int32_t>(servers.size()), channel >= half, root_server);
  const auto top = static_cast<std::int32_t>(std::ranges::find(above, -1) - above.begin());
  std::vector<std::int32_t> parents(at(shape.ranks), -1);
  std::vector<std::int32_t> first(servers.size()), link(servers.size());
  for (const std::int32_t server : top_down(above, top)) {
    const std::vector<std::int32_t>& ranks = servers[at(server)];
    const std::int32_t up = above[at(server)];
    const auto place_of_root = std::ranges::find(ranks, root) - ranks.begin();
    first[at(server)] = up >= 0     ? first[at(up)] + (servers[at(up)].size() > 1 ? 1 : 0)
                        : root >= 0 ? static_cast<std::int32_t>(place_of_root)
                                    : channel % half;
    std::vector<std::int32_t> chain = chain_from(ranks, first[at(server)]);
    if (up < 0 && root >= 0 && chain.size() > 2) {  // the root stays first, the others take turns
      const auto turn = channel % static_cast<std::int32_t>(chain.size() - 1);
      std::rotate(chain.begin() + 1, chain.begin() + 1 + turn, chain.end());
      first[at(server)] += turn;
    }
    link[at(server)] = chain[chain.size() > 1 ? 1 : 0];
    parents[at(chain[0])] = up < 0 ? -1 : link[at(up)];
    for (std::size_t i = 1; i < chain.size(); ++i) {
      parents[at(chain[i])] = chain[i - 1];
    }
  }
  return parents;
}

TreeSlots add_tree(Schedule& schedule, std::span<const std::int32_t> parents,
                   std::span<const std::int32_t> places, const Slot& pieces, bool up, bool down,
                   std::span<const std::vector<SlotWait>> before_up) {
  const auto children = children_of(parents);
  TreeSlots slots;
  slots.up.assign(parents.size(), -1);
  slots.down.assign(parents.size(), -1);
  auto next = static_cast<std::int32_t>(schedule.slots.size());
  for (std::size_t node = 0; node < parents.size(); ++node) {
    if (parents[node] >= 0) {
      slots.up[node] = up ? next++ : -1;
      slots.down[node] = down ? next++ : -1;
    }
  }
  std::vector<SlotWait> waits;
  const auto wait_for = [&](std::int32_t slot, std::int32_t lag) {
    if (slot >= 0) {
      waits.push_back({slot, lag});
    }
  };
  const auto gathered = [&](std::size_t node) {  // what a node adds up before it passes it on
    for (const std::int32_t child : children[node]) {
      wait_for(slots.up[at(child)], 0);
    }
    if (!before_up.empty()) {
      waits.insert(waits.end(), before_up[node].begin(), before_up[node].end());
    }
  };
  for (std::size_t node = 0; node < parents.size(); ++node) {
    if (parents[node] < 0) {
      continue;
    }
    const auto parent = at(parents[node]);
    Slot slot = pieces;
    if (up) {
      slot.source = places[node];
      slot.destination = places[parent];
      slot.reduces = slot.count;
      waits.clear();
      gathered(node);
      wait_for(slots.up[parent], kBufferSlots);
      if (!before_up.empty()) {
        waits.insert(waits.end(), before_up[parent].begin(), before_up[parent].end());
      }
      schedule.add(slot, waits);
    }
    if (down) {
      slot.source = places[parent];
      slot.destination = places[node];
      slot.reduces = 0;
      waits.clear();
      if (parents[parent] >= 0) {
        wait_for(slots.down[parent], 0);
      } else {
        gathered(parent);
      }
      for (const std::int32_t child : children[node]) {
        wait_for(slots.down[at(child)], kBufferSlots);
      }
      schedule.add(slot, waits);
    }
  }
  return slots;
}

}  // namespace lockstep

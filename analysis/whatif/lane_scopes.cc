#include "analysis/whatif/lane_scopes.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "analysis/whatif/op_table.h"
#include "base/error.h"

namespace lockstep::whatif {
namespace {

using Groups = LaneScopes::Groups;

/// Lanes by the key that `key_of` gives them; those that are alone are left out.
template <class KeyOf>
Groups groups_by(std::size_t lanes, KeyOf&& key_of) {
  std::map<std::size_t, std::vector<std::uint32_t>> by_key;
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    by_key[key_of(lane)].push_back(static_cast<std::uint32_t>(lane));
  }
  Groups out;
  for (auto& [key, group] : by_key) {
    if (group.size() > 1) {
      out.push_back(std::move(group));
    }
  }
  return out;
}

/// dp_ranks whose workers share experts, as the smallest of them; all the same number.
std::vector<std::size_t> blocks_of(const OpTable& table, const std::string& file) {
  const auto peers = static_cast<std::size_t>(table.peers());
  std::vector<std::size_t> block(static_cast<std::size_t>(table.dp));
  std::iota(block.begin(), block.end(), std::size_t{0});
  std::map<std::int32_t, std::size_t> first_of;  // expert group -> block
  for (std::size_t lane = 0; lane < table.expert_group.size(); ++lane) {
    const auto [at, is_new] = first_of.try_emplace(table.expert_group[lane], block[lane / peers]);
    const std::size_t from = std::max(at->second, block[lane / peers]);
    const std::size_t to = std::min(at->second, block[lane / peers]);
    if (from != to) {
      std::replace(block.begin(), block.end(), from, to);
      for (auto& [group, first] : first_of) {
        first = first == from ? to : first;
      }
    }
  }
  std::map<std::size_t, std::size_t> sizes;
  for (const std::size_t b : block) {
    ++sizes[b];
  }
  for (const auto& [b, size] : sizes) {
    if (size != sizes.begin()->second) {
      throw Error(fmt::format("{} dp_ranks share experts with dp_rank 0, but {} with dp_rank {}",
                              sizes.begin()->second, size, b))
          .at(file)
          .field("ep_rank")
          .expected("expert-parallel groups of one size");
    }
  }
  return block;
}

}  // namespace

Groups LaneScopes::with_lone(Scope scope) const {
  Groups out = of(scope);
  std::vector<bool> seen(lanes);
  for (const std::vector<std::uint32_t>& group : out) {
    for (const std::uint32_t lane : group) {
      seen[lane] = true;
    }
  }
  for (std::uint32_t lane = 0; lane < lanes; ++lane) {
    if (!seen[lane]) {
      out.push_back({lane});
    }
  }
  return out;
}

LaneScopes lane_scopes(const OpTable& table, const std::string& file,
                       std::int64_t gathers_in_passes) {
  const auto tp = static_cast<std::size_t>(table.tp);
  const auto peers = static_cast<std::size_t>(table.peers());
  LaneScopes out;
  out.lanes = table.width();
  const auto set = [&](Scope scope, auto&& key_of) {
    out.groups[static_cast<std::size_t>(scope)] = groups_by(out.lanes, key_of);
  };
  std::vector<std::size_t> block = blocks_of(table, file);
  for (std::size_t dp_rank = 0; dp_rank < block.size() && gathers_in_passes > 1; ++dp_rank) {
    block[dp_rank] = dp_rank / static_cast<std::size_t>(gathers_in_passes);
  }
  set(Scope::kTensor, [&](std::size_t lane) { return lane / tp; });
  set(Scope::kPeers, [&](std::size_t lane) { return block[lane / peers]; });
  set(Scope::kReplicas, [&](std::size_t lane) { return lane % tp; });
  set(Scope::kStep, [](std::size_t) { return std::size_t{0}; });
  return out;
}

LaneScopes reduced(const LaneScopes& scopes, std::span<const std::uint32_t> special) {
  std::vector<std::size_t> colour(scopes.lanes, special.size());
  for (std::size_t i = 0; i < special.size(); ++i) {
    colour[special[i]] = i;
  }
  std::size_t colours = special.size() + (special.size() < scopes.lanes ? 1 : 0);
  for (;;) {
    // What a lane sees: its own colour, and those in its group of each scope.
    std::vector<std::vector<std::size_t>> sees(scopes.lanes);
    std::map<std::set<std::size_t>, std::size_t> kinds;
    for (std::size_t lane = 0; lane < scopes.lanes; ++lane) {
      sees[lane].assign(1 + kScopes, 0);
      sees[lane][0] = colour[lane];
    }
    for (std::size_t scope = 0; scope < kScopes; ++scope) {
      for (const auto& group : scopes.groups[scope]) {
        std::set<std::size_t> in_group;
        for (const std::uint32_t lane : group) {
          in_group.insert(colour[lane]);
        }
        const std::size_t kind = kinds.try_emplace(in_group, kinds.size() + 1).first->second;
        for (const std::uint32_t lane : group) {
          sees[lane][1 + scope] = kind;
        }
      }
    }
    // The colour comes first, so that the special ones keep theirs.
    std::map<std::vector<std::size_t>, std::size_t> number;
    for (const auto& view : sees) {
      number.try_emplace(view, 0);
    }
    std::size_t next = 0;
    for (auto& [view, value] : number) {
      value = next++;
    }
    for (std::size_t lane = 0; lane < scopes.lanes; ++lane) {
      colour[lane] = number[sees[lane]];
    }
    if (number.size() == colours) {
      break;
    }
    colours = number.size();
  }
  LaneScopes out;
  out.lanes = colours;
  for (std::size_t scope = 0; scope < kScopes; ++scope) {
    std::set<std::vector<std::uint32_t>> groups;
    for (const auto& group : scopes.groups[scope]) {
      std::set<std::uint32_t> own;
      for (const std::uint32_t lane : group) {
        own.insert(static_cast<std::uint32_t>(colour[lane]));
      }
      if (own.size() > 1) {
        groups.emplace(own.begin(), own.end());
      }
    }
    out.groups[scope].assign(groups.begin(), groups.end());
  }
  return out;
}

}  // namespace lockstep::whatif

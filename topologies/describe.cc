#include "topologies/describe.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "base/json.h"

namespace lockstep {
namespace {

std::string label_of(const Node& node) {
  switch (node.kind) {
    case NodeKind::kGpu:
      return "GPU";
    case NodeKind::kNvSwitch:
      return "NVSwitch";
    case NodeKind::kSwitch:
      break;
  }
  return fmt::format("tier {}", node.tier);
}

/// GPUs below NVSwitches below tiers.
int height_of(const Node& node) {
  return node.kind == NodeKind::kGpu ? -2 : node.kind == NodeKind::kNvSwitch ? -1 : node.tier;
}

std::vector<ServerKind> server_kinds(const Topology& topology) {
  struct Server {
    std::set<std::int16_t> types;
    std::int64_t gpus = 0, nvswitches = 0;
  };
  std::map<std::int32_t, Server> servers;
  for (const Node& node : topology.nodes) {
    if (node.kind == NodeKind::kGpu) {
      servers[node.server].types.insert(node.gpu_type);
      ++servers[node.server].gpus;
    } else if (node.kind == NodeKind::kNvSwitch) {
      ++servers[node.server].nvswitches;
    }
  }
  std::map<std::tuple<std::set<std::int16_t>, std::int64_t, std::int64_t>, std::int64_t> kinds;
  for (const auto& [number, server] : servers) {
    ++kinds[{server.types, server.gpus, server.nvswitches}];
  }
  std::vector<ServerKind> list;
  for (const auto& [kind, count] : kinds) {
    ServerKind made;
    for (const std::int16_t type : std::get<0>(kind)) {
      made.gpu_type +=
          (made.gpu_type.empty() ? "" : "+") + topology.gpu_types[static_cast<std::size_t>(type)];
    }
    made.gpus = std::get<1>(kind);
    made.nvswitches = std::get<2>(kind);
    made.count = count;
    list.push_back(made);
  }
  return list;
}

}  // namespace

std::vector<LinkGroup> link_groups(const Topology& topology) {
  std::map<std::tuple<int, int, std::int32_t>, LinkGroup> groups;
  for (const Link& link : topology.links) {
    const Node* low = &topology.nodes[link.a.index()];
    const Node* high = &topology.nodes[link.b.index()];
    if (height_of(*low) > height_of(*high)) {
      std::swap(low, high);
    }
    LinkGroup& group = groups[{height_of(*low), height_of(*high), link.link_class}];
    if (group.count++ == 0) {
      group.from = label_of(*low);
      group.to = label_of(*high);
      group.link_class = topology.link_classes[static_cast<std::size_t>(link.link_class)];
    }
  }
  std::vector<LinkGroup> list;
  list.reserve(groups.size());
  for (auto& [key, group] : groups) {
    list.push_back(std::move(group));
  }
  return list;
}

namespace {

std::vector<TierSummary> tier_summaries(const Topology& topology) {
  struct Rates {
    double down = 0, up = 0, side = 0;
  };
  std::vector<Rates> rates(topology.nodes.size());
  for (const Link& link : topology.links) {
    const double rate =
        topology.link_classes[static_cast<std::size_t>(link.link_class)].rate.bytes_per_second();
    for (const auto& [self, other] : {std::pair(link.a, link.b), std::pair(link.b, link.a)}) {
      const int mine = height_of(topology.nodes[self.index()]);
      const int theirs = height_of(topology.nodes[other.index()]);
      Rates& sum = rates[self.index()];
      (theirs < mine ? sum.down : theirs > mine ? sum.up : sum.side) += rate;
    }
  }
  std::map<std::int32_t, TierSummary> tiers;
  for (std::size_t i = 0; i < topology.nodes.size(); ++i) {
    if (topology.nodes[i].kind != NodeKind::kSwitch) {
      continue;
    }
    TierSummary& tier = tiers[topology.nodes[i].tier];
    tier.tier = topology.nodes[i].tier;
    ++tier.switches;
    tier.down_Bps += rates[i].down;
    tier.up_Bps += rates[i].up;
    tier.side_Bps += rates[i].side;
    if (rates[i].up > 0) {
      const double ratio = rates[i].down / rates[i].up;
      tier.least_oversubscription = std::min(tier.least_oversubscription.value_or(ratio), ratio);
      tier.most_oversubscription = std::max(tier.most_oversubscription.value_or(ratio), ratio);
    }
  }
  std::vector<TierSummary> list;
  list.reserve(tiers.size());
  for (const auto& [number, tier] : tiers) {
    list.push_back(tier);
  }
  return list;
}

std::string rate_text(double bytes_per_second) {
  return to_text(Bandwidth::bytes_per_second(bytes_per_second));
}

std::string tier_text(const TierSummary& tier) {
  std::string text = fmt::format("{} switch{}, {} down", tier.switches,
                                 tier.switches == 1 ? "" : "es", rate_text(tier.down_Bps));
  if (tier.up_Bps > 0) {
    text += fmt::format(", {} up", rate_text(tier.up_Bps));
  }
  if (tier.side_Bps > 0) {
    text += fmt::format(", {} sideways", rate_text(tier.side_Bps));
  }
  if (tier.least_oversubscription) {
    const double least = *tier.least_oversubscription, most = *tier.most_oversubscription;
    text += least == most ? fmt::format(", oversubscription {:.4g} : 1", most)
                          : fmt::format(", oversubscription {:.4g} : 1 to {:.4g} : 1", least, most);
  }
  return text;
}

}  // namespace

TopologyDescription describe(const Topology& topology) {
  TopologyDescription d;
  d.name = topology.name;
  d.gpus = topology.count(NodeKind::kGpu);
  d.nvswitches = topology.count(NodeKind::kNvSwitch);
  d.switches = topology.count(NodeKind::kSwitch);
  d.links = static_cast<std::int64_t>(topology.links.size());
  d.servers = server_kinds(topology);
  d.link_groups = link_groups(topology);
  d.tiers = tier_summaries(topology);
  if (d.gpus > 1) {
    d.bisection = bisect(topology);
  }
  d.hops = count_hops(topology);
  return d;
}

std::string to_text(const TopologyDescription& d) {
  std::string text = fmt::format("{}\n\n", d.name);
  const auto line = [&](std::string_view title, std::string_view value) {
    text += fmt::format("  {:<14} {}\n", title, value);
  };
  line("nodes",
       fmt::format("{} GPUs, {} NVSwitches, {} switches", d.gpus, d.nvswitches, d.switches));
  for (const ServerKind& s : d.servers) {
    line(&s == d.servers.data() ? "servers" : "",
         fmt::format("{} of {} {} GPUs and {} NVSwitch{}", s.count, s.gpus, s.gpu_type,
                     s.nvswitches, s.nvswitches == 1 ? "" : "es"));
  }
  for (const TierSummary& tier : d.tiers) {
    line(fmt::format("tier {}", tier.tier), tier_text(tier));
  }
  for (const LinkGroup& g : d.link_groups) {
    line(&g == d.link_groups.data() ? "links" : "",
         fmt::format("{:>8}  {:<8} - {:<8}  {} each way, delay {}{}", g.count, g.from, g.to,
                     to_text(g.link_class.rate), to_text(g.link_class.delay),
                     g.link_class.error_rate > 0
                         ? fmt::format(", loses {} of the packets", g.link_class.error_text)
                         : ""));
  }
  line("connected", "yes, every GPU reaches every other");
  if (d.bisection) {
    const double rate = d.bisection->bandwidth.bytes_per_second();
    line(
        "bisection",
        fmt::format("{}{} each way, {} for each GPU of {}", d.bisection->exact ? "" : "at most ",
                    to_text(d.bisection->bandwidth),
                    rate_text(rate / static_cast<double>(d.bisection->smaller)),
                    2 * d.bisection->smaller == d.gpus
                        ? std::string("a half")
                        : fmt::format("the smaller side, {} of {}", d.bisection->smaller, d.gpus)));
    line("", fmt::format("({} of {})",
                         d.bisection->exact ? "exact: the minimum cut" : "the minimum cut",
                         d.bisection->split));
  }
  double total = 0;
  for (const double pairs : d.hops.pairs) {
    total += pairs;
  }
  std::string_view title = "hops";
  for (std::size_t h = 0; h < d.hops.pairs.size(); ++h) {
    if (d.hops.pairs[h] > 0) {
      line(title, fmt::format("{:>8}  {:.0f} GPU pairs ({:.4g} %)", h, d.hops.pairs[h],
                              100 * d.hops.pairs[h] / total));
      title = "";
    }
  }
  line("", fmt::format("    mean  {:.4g}, diameter {}{}", d.hops.mean, d.hops.diameter,
                       d.hops.sampled ? " (of a sample)" : ""));
  return text;
}

std::string to_json_text(const TopologyDescription& d) {
  Json json;
  json["schema"] = "lockstep-topology-description/1";
  json["name"] = d.name;
  json["gpus"] = d.gpus;
  json["nvswitches"] = d.nvswitches;
  json["switches"] = d.switches;
  json["links"] = d.links;
  json["servers"] = Json::array();
  for (const ServerKind& s : d.servers) {
    json["servers"].push_back({{"gpu_type", s.gpu_type},
                               {"gpus", s.gpus},
                               {"nvswitches", s.nvswitches},
                               {"count", s.count}});
  }
  json["tiers"] = Json::array();
  for (const TierSummary& tier : d.tiers) {
    Json item{{"tier", tier.tier},
              {"switches", tier.switches},
              {"down_Bps", tier.down_Bps},
              {"up_Bps", tier.up_Bps},
              {"side_Bps", tier.side_Bps}};
    item["oversubscription"] = Json();
    if (tier.least_oversubscription) {
      item["oversubscription"] = {{"least", *tier.least_oversubscription},
                                  {"most", *tier.most_oversubscription}};
    }
    json["tiers"].push_back(std::move(item));
  }
  json["link_groups"] = Json::array();
  for (const LinkGroup& g : d.link_groups) {
    json["link_groups"].push_back({{"from", g.from},
                                   {"to", g.to},
                                   {"count", g.count},
                                   {"rate_Bps", g.link_class.rate.bytes_per_second()},
                                   {"delay_s", g.link_class.delay.seconds()},
                                   {"error_rate", g.link_class.error_rate}});
  }
  json["connected"] = true;
  json["bisection"] = Json();
  if (d.bisection) {
    json["bisection"] = {{"bandwidth_Bps", d.bisection->bandwidth.bytes_per_second()},
                         {"exact", d.bisection->exact},
                         {"split", d.bisection->split}};
  }
  json["hops"] = Json{{"mean", d.hops.mean},
                      {"diameter", d.hops.diameter},
                      {"sampled", d.hops.sampled},
                      {"pairs", Json::array()}};
  for (std::size_t h = 0; h < d.hops.pairs.size(); ++h) {
    if (d.hops.pairs[h] > 0) {
      json["hops"]["pairs"].push_back({{"hops", h}, {"pairs", d.hops.pairs[h]}});
    }
  }
  return to_text(json);
}

}  // namespace lockstep

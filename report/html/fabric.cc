#include "report/html/fabric.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"

namespace lockstep {
namespace {

constexpr std::size_t kGroups = 16;
constexpr std::size_t kBusiest = 20;
/// From below upwards; other kinds come after them by name.
constexpr std::array<std::string_view, 6> kTiers = {"nvswitch", "gpu",   "nic",
                                                    "leaf",     "spine", "core"};

struct Node {
  std::string kind;
  std::int64_t number = 0;
};

/// "leaf 144".
std::optional<Node> node_of(const Json& link, const char* end) {
  const auto found = link.find(end);
  if (found == link.end() || !found->is_string()) {
    return std::nullopt;
  }
  const auto& text = found->get_ref<const std::string&>();
  const std::size_t blank = text.rfind(' ');
  if (blank == std::string::npos) {
    return std::nullopt;
  }
  const auto number = to_int(std::string_view(text).substr(blank + 1));
  return number ? std::optional(Node{text.substr(0, blank), *number}) : std::nullopt;
}

double number_of(const Json& link, const char* key) {
  const auto found = link.find(key);
  return found != link.end() && found->is_number() ? found->get<double>() : 0;
}

std::size_t rank_of(std::string_view kind) {
  return static_cast<std::size_t>(std::ranges::find(kTiers, kind) - kTiers.begin());
}

struct ByTier {
  bool operator()(const std::string& a, const std::string& b) const {
    return std::pair(rank_of(a), std::string_view(a)) < std::pair(rank_of(b), std::string_view(b));
  }
};

struct Load {
  std::int64_t links = 0;
  double sum = 0, max = 0, bytes = 0;
  std::vector<double> all;

  void add(const Json& link, bool keep) {
    const double utilisation = number_of(link, "utilisation");
    ++links;
    sum += utilisation;
    max = std::max(max, utilisation);
    bytes += number_of(link, "carried_bytes");
    if (keep) {
      all.push_back(utilisation);
    }
  }
  Json json() {
    Json json = {{"links", links},
                 {"mean", sum / static_cast<double>(links)},
                 {"max", max},
                 {"carried_bytes", bytes}};
    if (!all.empty()) {
      std::ranges::sort(all);
      Json percentiles = Json::array();
      for (std::size_t tenth = 0; tenth <= 10; ++tenth) {
        // Between two values in proportion, so that the median of an even number is their mean.
        const std::size_t tenths = (all.size() - 1) * tenth, below = tenths / 10;
        const double above = all[std::min(below + 1, all.size() - 1)] - all[below];
        percentiles.push_back(all[below] + above * static_cast<double>(tenths % 10) / 10);
      }
      json["utilisation"] = std::move(percentiles);
    }
    return json;
  }
};

}  // namespace

Json fabric_of_links(const Json& links) {
  std::map<std::string, std::vector<std::int64_t>, ByTier> tiers;
  std::vector<std::pair<const Json*, std::pair<Node, Node>>> known;
  for (const Json& link : links) {
    auto from = node_of(link, "from"), to = node_of(link, "to");
    if (from && to) {
      tiers[from->kind].push_back(from->number);
      tiers[to->kind].push_back(to->number);
      known.push_back({&link, {std::move(*from), std::move(*to)}});
    }
  }
  Json json = {{"tiers", Json::array()}, {"edges", Json::array()}, {"busiest", Json::array()}};
  std::map<std::string, std::size_t> tier_number;
  for (auto& [kind, numbers] : tiers) {
    std::ranges::sort(numbers);
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
    const std::size_t groups = std::min(kGroups, numbers.size());
    Json list = Json::array();
    for (std::size_t g = 0; g < groups; ++g) {
      list.push_back({{"first", numbers[g * numbers.size() / groups]},
                      {"last", numbers[(g + 1) * numbers.size() / groups - 1]}});
    }
    tier_number[kind] = json["tiers"].size();
    json["tiers"].push_back(
        {{"kind", kind}, {"nodes", numbers.size()}, {"groups", std::move(list)}});
  }
  const auto place = [&](const Node& node) {
    const auto& numbers = tiers.find(node.kind)->second;
    const auto index =
        static_cast<std::size_t>(std::ranges::lower_bound(numbers, node.number) - numbers.begin());
    const std::size_t groups = std::min(kGroups, numbers.size());
    // The group whose share of the numbers holds the index.
    std::size_t group = index * groups / numbers.size();
    while (group + 1 < groups && (group + 1) * numbers.size() / groups <= index) {
      ++group;
    }
    return std::pair(tier_number[node.kind], group);
  };
  std::map<std::pair<std::pair<std::size_t, std::size_t>, std::pair<std::size_t, std::size_t>>,
           Load>
      edges;
  std::map<std::pair<std::size_t, std::size_t>, Load> kinds;
  for (const auto& [link, ends] : known) {
    auto low = place(ends.first), high = place(ends.second);
    if (high < low) {
      std::swap(low, high);
    }
    edges[{low, high}].add(*link, false);
    kinds[{low.first, high.first}].add(*link, true);
  }
  for (auto& [ends, load] : edges) {
    Json edge = load.json();
    edge["from"] = {ends.first.first, ends.first.second};
    edge["to"] = {ends.second.first, ends.second.second};
    json["edges"].push_back(std::move(edge));
  }
  json["kinds"] = Json::array();
  for (auto& [ends, load] : kinds) {
    Json kind = load.json();
    kind["name"] = json["tiers"][ends.first]["kind"].get<std::string>() + " – " +
                   json["tiers"][ends.second]["kind"].get<std::string>();
    json["kinds"].push_back(std::move(kind));
  }
  std::vector<const Json*> busiest;
  for (const Json& link : links) {
    busiest.push_back(&link);
  }
  std::ranges::stable_sort(busiest, [](const Json* a, const Json* b) {
    return number_of(*a, "utilisation") > number_of(*b, "utilisation");
  });
  for (std::size_t i = 0; i < std::min(kBusiest, busiest.size()); ++i) {
    json["busiest"].push_back(*busiest[i]);
  }
  return json;
}

}  // namespace lockstep

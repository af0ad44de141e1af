#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>

#include "topologies/topology.h"

namespace lockstep {

/// The most that a link of any topology may be: some factors of ten beyond the fastest, and far
/// from where sums of rates or of delays leave 64 bits (MaxMin::kMaxUnits, Time).
inline constexpr Bandwidth kMostLinkRate = Bandwidth::bits_per_second(1'000'000'000'000'000);
inline constexpr Time kMostLinkDelay = Time::ps(60'000'000'000'000);

/// A link's three texts. ERRORS: Error (without place) for a rate that is not positive, a rate or a
/// delay beyond these, a bad unit, an error rate outside [0, 1].
Bandwidth parse_link_rate(std::string_view text);
Time parse_link_delay(std::string_view text);
double parse_error_rate(std::string_view text);

/// Puts a Topology together: nodes get ids in the order they are added, links with the same three
/// texts share one LinkClass. Readers and builders all end in finish().
class TopologyMaker {
 public:
  explicit TopologyMaker(std::string name) { topology_.name = std::move(name); }

  /// The index of a GPU type, added on first use.
  std::int16_t gpu_type(std::string_view type);
  /// The index of a link class, added on first use; the texts are kept as given.
  /// ERRORS: those of parse_link_rate and its like.
  std::int32_t link_class(std::string_view rate, std::string_view delay, std::string_view error);

  NodeId add_gpu(std::int32_t server, std::int16_t type = 0);
  NodeId add_nvswitch(std::int32_t server);
  NodeId add_switch();
  /// Announces the final size. ERRORS: more than 4 million nodes or 32 million links.
  void reserve(std::int64_t nodes, std::int64_t links);
  void link(NodeId a, NodeId b, std::int32_t link_class) {
    topology_.links.push_back({a, b, link_class});
  }
  std::size_t node_count() const { return topology_.nodes.size(); }

  /// Sets the tiers and hands the topology over. PRECONDITION: every link joins nodes that exist.
  Topology finish(std::int32_t gpus_per_server);
  /// What has been added, as it is.
  Topology take() { return std::move(topology_); }

 private:
  using Key = std::tuple<std::string, std::string, std::string>;

  Topology topology_;
  std::map<Key, std::int32_t> classes_;
};

/// Sets every switch's tier to its distance from the nearest GPU in links (1 = linked to a GPU),
/// at most 255; a switch that no GPU reaches gets 0. O(nodes + links).
void assign_tiers(Topology& topology);

}  // namespace lockstep

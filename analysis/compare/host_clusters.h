#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::compare {

/// The hosts that a table's id names: "…-g1-node7_node9" -> node7, node9; "…-n1_g8_node7" -> node7.
/// None unless they are as many as its servers.
std::vector<std::string> hosts_in(std::string_view id, std::int32_t servers);

/// Hosts of one cluster: those that were tested together, and those of like names: but for the
/// number at their ends ("cnode2-001"), or where there is none up to the first number or dash
/// ("mig-gq7k", "r1-n3-a"). Each cluster is known by one of its hosts. O(log hosts) a host and what
/// its way to that one takes.
class HostClusters {
 public:
  void take(const std::vector<std::string>& hosts);
  /// Of a test on these hosts; empty where they are not known.
  std::string of(const std::vector<std::string>& hosts);

 private:
  std::string root(const std::string& host);
  void join(const std::string& a, const std::string& b);

  std::map<std::string, std::string> parents_, family_;
};

}  // namespace lockstep::compare

#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::metis {

/// One server. Bandwidths in GB/s, memory of a GPU in GB of 1024 MB.
struct Node {
  std::string address, type;
  int gpus = 0;
  double intra = 0, inter = 0, memory = 0;
  double type_memory = 0;  ///< that of the first of its type in the clusterfile
};

/// The servers of Metis's hostfile ("IP slots=N" or "IP N", # begins a comment) with what its
/// clusterfile (JSON by IP) says of them, in the hostfile's order. ERRORS: Error with file, line
/// and field: no hosts, counts below 1, an address the clusterfile lacks.
std::vector<Node> parse_cluster(std::string_view hosts, const std::string& hostfile,
                                std::string_view cluster, const std::string& clusterfile);

}  // namespace lockstep::metis

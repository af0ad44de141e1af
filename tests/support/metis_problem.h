#pragma once

#include <string>

#include "planner/metis/cost.h"

namespace lockstep::testing {

/// Two servers of two A100s and two T4s, four layers, eight samples: tests/data/plan/metis.
inline metis::Problem metis_problem(metis::Flavour flavour) {
  const std::string folder = std::string(LOCKSTEP_SOURCE_DIR) + "/tests/data/plan/metis";
  metis::Problem problem;
  problem.nodes = metis::parse_cluster(
      "10.0.0.1 slots=2\n10.0.0.2 2\n", "hostfile",
      R"({"10.0.0.1": {"instance_type": "A100", "inter_bandwidth": 10, "intra_bandwidth": 40, "memory": 80},
          "10.0.0.2": {"instance_type": "T4", "inter_bandwidth": 10, "intra_bandwidth": 20, "memory": 40}})",
      "cluster");
  problem.layers = 4;
  problem.global_batch = 8;
  problem.max_tp = 2;
  problem.max_batch = 2;
  problem.flavour = flavour;
  problem.profiles = metis::read_profiles(folder, problem.types(), 4);
  return problem;
}

}  // namespace lockstep::testing

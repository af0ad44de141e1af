#pragma once

#include <string>
#include <vector>

namespace lockstep::samples {

struct Sample {
  std::string file;  ///< in workloads/samples
  std::string text;
};

/// The sample workloads, made from model shapes as workloads/samples/README.md states. The files
/// in the tree are these texts; a test compares them.
std::vector<Sample> all_samples();

}  // namespace lockstep::samples

#pragma once

#include <string>
#include <string_view>

namespace lockstep {

/// What this program was built from and with; a part that was not found has an empty version.
struct BuildFacts {
  std::string_view version;     ///< "0.1.0"
  std::string_view revision;    ///< git describe when it was configured
  std::string_view compiler;    ///< "GNU 12.2.0"
  std::string_view build_type;  ///< "Release"
  std::string_view ns3, arrow, mpi, echarts, cuda, nccl;
};

const BuildFacts& build_facts();

/// What --version prints.
std::string version_text();

}  // namespace lockstep

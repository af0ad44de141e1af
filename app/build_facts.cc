#include "app/build_facts.h"

#include <fmt/format.h>

namespace lockstep {

std::string version_text() {
  const BuildFacts& facts = build_facts();
  std::string text = fmt::format("lockstep {}", facts.version);
  if (!facts.revision.empty()) {
    text += fmt::format(" ({})", facts.revision);
  }
  text += fmt::format("\n  compiler  {}, {}", facts.compiler, facts.build_type);
  const auto part = [&text](std::string_view name, std::string_view version) {
    text += fmt::format("\n  {:<8}  {}", name, version.empty() ? "not built in" : version);
  };
  part("ns-3", facts.ns3);
  part("Arrow", facts.arrow);
  part("MPI", facts.mpi);
  part("ECharts", facts.echarts);
  part("CUDA", facts.cuda);
  part("NCCL", facts.nccl);
  return text;
}

}  // namespace lockstep

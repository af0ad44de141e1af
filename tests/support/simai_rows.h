#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/text.h"
#include "workloads/workload.h"

namespace lockstep::testing {

struct SimaiJob {
  Parallelism parallel;
  LayerTable table;
};

inline LayerPhase simai_phase(std::string_view compute, std::string_view comm,
                              std::string_view bytes, GroupKind plain) {
  LayerPhase phase;
  phase.compute = Time::ns(to_int(compute).value());
  phase.bytes = Bytes(to_int(bytes).value());
  const auto cut = std::min(comm.find('_'), comm.size());
  const auto suffix = comm.substr(cut);
  phase.comm = comm_type_named(to_lower(comm.substr(0, cut))).value();
  phase.group = suffix == "_EP" ? GroupKind::kEp : suffix == "_DP_EP" ? GroupKind::kDpEp : plain;
  return phase;
}

/// A well-formed SimAI workload, read word by word: nothing of the real reader is needed.
inline SimaiJob simai_job(std::string_view text) {
  SimaiJob job;
  const auto words = split_blanks(text);
  std::size_t i = 1;
  for (; !to_int(words[i]) || words[i - 1].ends_with(':') || words[i - 1] == "pp_comm"; ++i) {
    const auto number = [&] { return to_int(words[i + 1]).value(); };
    if (words[i] == "model_parallel_NPU_group:") job.parallel.tp = number();
    if (words[i] == "ep:") job.parallel.ep = number();
    if (words[i] == "pp:") job.parallel.pp = number();
    if (words[i] == "vpp:") job.parallel.vpp = number();
    if (words[i] == "ga:") job.parallel.ga = number();
    if (words[i] == "all_gpus:") job.parallel.gpus = number();
    if (words[i] == "pp_comm") job.table.pp_comm_bytes = to_double(words[i + 1]).value();
  }
  auto rows = to_int(words[i++]).value();
  for (; rows-- > 0; i += 12) {
    Layer layer;
    const std::string name(words[i]);
    const auto known = std::find(job.table.names.begin(), job.table.names.end(), name);
    layer.name = static_cast<std::int32_t>(known - job.table.names.begin());
    if (known == job.table.names.end()) job.table.names.push_back(name);
    layer.forward = simai_phase(words[i + 2], words[i + 3], words[i + 4], GroupKind::kTp);
    layer.input_grad = simai_phase(words[i + 5], words[i + 6], words[i + 7], GroupKind::kTp);
    layer.weight_grad = simai_phase(words[i + 8], words[i + 9], words[i + 10], GroupKind::kDp);
    layer.update = Time::ns(to_int(words[i + 11]).value());
    job.table.layers.push_back(layer);
  }
  return job;
}

}  // namespace lockstep::testing

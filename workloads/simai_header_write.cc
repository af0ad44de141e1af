#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <span>

#include <fmt/format.h>

#include "workloads/simai_header.h"
#include "workloads/simai_keys.h"
#include "workloads/simai_names.h"

namespace lockstep {
namespace {

constexpr std::array kTrainingOrder{
    SimaiKey::kTp,     SimaiKey::kEp,      SimaiKey::kPp,          SimaiKey::kVpp,
    SimaiKey::kGa,     SimaiKey::kAllGpus, SimaiKey::kCheckpoints, SimaiKey::kCheckpointInitiates,
    SimaiKey::kPpComm,
};

void append_list(std::span<const std::int32_t> ids, std::string& out) {
  fmt::format_to(std::back_inserter(out), "{}", ids.size());
  for (const std::int32_t id : ids) {
    fmt::format_to(std::back_inserter(out), " {}", id);
  }
}

void append_pp_comm(const LayerTable& table, std::string& out) {
  const double value = table.pp_comm_bytes;
  if (value == std::floor(value) && std::fabs(value) <= static_cast<double>(kMaxSimaiPpComm)) {
    fmt::format_to(std::back_inserter(out), "{}{}", static_cast<std::int64_t>(value),
                   table.header.pp_comm_float ? ".0" : "");
  } else {
    fmt::format_to(std::back_inserter(out), "{}", value);  // shortest that reads back the same
  }
}

void append_value(SimaiKey key, const WorkloadJob& job, const LayerTable& table, std::string& out) {
  const auto integer = [&](std::int64_t value) {
    fmt::format_to(std::back_inserter(out), "{}", value);
  };
  switch (key) {
    case SimaiKey::kTp:
      return integer(job.parallel.tp);
    case SimaiKey::kEp:
      return integer(job.parallel.ep);
    case SimaiKey::kPp:
      return integer(job.parallel.pp);
    case SimaiKey::kVpp:
      return integer(job.parallel.vpp);
    case SimaiKey::kGa:
      return integer(job.parallel.ga);
    case SimaiKey::kAllGpus:
      return integer(job.parallel.gpus);
    case SimaiKey::kMode:
      return integer(table.mode);
    case SimaiKey::kCheckpoints:
      return append_list(table.checkpoints, out);
    case SimaiKey::kCheckpointInitiates:
      return append_list(table.checkpoint_initiates, out);
    case SimaiKey::kPpComm:
    case SimaiKey::kPpCommNoColon:
      return append_pp_comm(table, out);
    case SimaiKey::kOther:
      return;
  }
}

/// Whether a reader would assume this value where the key is absent.
bool is_assumed(SimaiKey key, const WorkloadJob& job, const LayerTable& table) {
  switch (key) {
    case SimaiKey::kTp:
      return job.parallel.tp == 1;
    case SimaiKey::kEp:
      return job.parallel.ep == 1;
    case SimaiKey::kPp:
      return job.parallel.pp == 1;
    case SimaiKey::kVpp:
      return job.parallel.vpp == 1;
    case SimaiKey::kGa:
      return job.parallel.ga == 1;
    case SimaiKey::kAllGpus:
      return job.parallel.gpus == 0;
    case SimaiKey::kMode:
      return table.mode == 0;
    case SimaiKey::kCheckpoints:
      return table.checkpoints.empty();
    case SimaiKey::kCheckpointInitiates:
      return table.checkpoint_initiates.empty();
    case SimaiKey::kPpComm:
    case SimaiKey::kPpCommNoColon:
      return table.pp_comm_bytes == 0;
    case SimaiKey::kOther:
      return true;
  }
  return true;
}

std::vector<SimaiHeader::Field> fields_to_write(const WorkloadJob& job, const LayerTable& table) {
  std::vector<SimaiHeader::Field> fields = table.header.fields;
  const bool usual = fields.empty() && table.policy != kMicroPolicy;
  if (job.parallel.gpus == 0) {  // unknown, which only an absent key says
    std::erase_if(fields, [](const auto& field) { return field.key == SimaiKey::kAllGpus; });
  }
  const auto add_missing = [&](SimaiKey key) {
    const bool there = std::any_of(fields.begin(), fields.end(),
                                   [&](const auto& field) { return meaning_of(field.key) == key; });
    const bool wanted = usual && key != SimaiKey::kMode && key != SimaiKey::kAllGpus;
    if (!there && (wanted || !is_assumed(key, job, table))) {
      fields.push_back({key, ""});
    }
  };
  std::for_each(kTrainingOrder.begin(), kTrainingOrder.end(), add_missing);
  add_missing(SimaiKey::kMode);
  return fields;
}

}  // namespace

void append_simai_header(const WorkloadJob& job, const LayerTable& table, std::string& out) {
  out += table.policy;
  for (const SimaiHeader::Field& field : fields_to_write(job, table)) {
    out += ' ';
    if (field.key == SimaiKey::kOther) {
      out += field.text;
      continue;
    }
    out += text_of_key(field.key);
    out += ' ';
    append_value(field.key, job, table, out);
  }
}

}  // namespace lockstep

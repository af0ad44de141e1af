#include "analysis/compare/predict.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace lockstep::compare {
namespace {

std::string setting_of(const std::map<std::string, std::string>& env, const std::string& name) {
  const auto found = env.find(name);
  return found == env.end() ? "" : to_lower(found->second);
}

/// libfabric without GDRCopy has the driver copy what a NIC brings of each step (cudaMemcpy): the
/// ratio of Alps' runs.
constexpr double kStepWithoutGdrcopy = 2.25;

/// NCCL_ALGO: one name; lists and exclusions ("^NVLS") leave the choice to NCCL.
std::optional<NcclAlgorithm> algorithm_of(const std::string& text) {
  constexpr std::pair<std::string_view, NcclAlgorithm> kNames[] = {
      {"ring", NcclAlgorithm::kRing},
      {"tree", NcclAlgorithm::kTree},
      {"nvls", NcclAlgorithm::kNvls},
      {"nvlstree", NcclAlgorithm::kNvlsTree},
      {"pat", NcclAlgorithm::kPat},
      {"collnetdirect", NcclAlgorithm::kCollnetDirect},
      {"collnetchain", NcclAlgorithm::kCollnetChain}};
  for (const auto& [name, algorithm] : kNames) {
    if (text == name) {
      return algorithm;
    }
  }
  return std::nullopt;
}

}  // namespace

TableSetting table_setting(const CommSetting& setting, const CompareWishes& wishes) {
  TableSetting table;
  const Preset* matched = wishes.preset ? &*wishes.preset : match_preset(setting);
  if (matched == nullptr) {
    table.refused = "the log does not tell what cluster it is of (--preset names one)";
    return table;
  }
  table.preset = *matched;
  NcclSystem& system = table.preset.system;
  if (wishes.fabric) {
    system.fabric = *wishes.fabric;
    system.nics_per_server = std::max(1, wishes.fabric->nics);
  }
  // NVLink SHARP is a matter of the switches to NCCL's choice.
  system.fabric.nvswitch = system.fabric.nvswitch && table.preset.nvls && setting.nvls != false;
  if (setting_of(setting.env, "NCCL_NVLS_ENABLE") == "0") {
    system.fabric.nvswitch = false;
  }
  if (setting_of(setting.env, "FI_HMEM_CUDA_USE_GDRCOPY") == "0") {
    system.rates.step_us *= kStepWithoutGdrcopy;
  }
  if (wishes.gpus_per_server > 0) {
    system.gpus_per_server = wishes.gpus_per_server;
  }
  table.ranks = wishes.ranks > 0 ? wishes.ranks : setting.ranks;
  table.servers = setting.servers;
  const std::int32_t each = system.gpus_per_server;
  if (table.ranks == 0) {
    table.ranks = table.servers * each;
  }
  if (table.servers == 0 || table.servers > table.ranks) {
    table.servers = std::max(1, (table.ranks + each - 1) / each);
  }
  if (table.ranks < 1) {
    table.refused = "the log does not tell how many GPUs it is of (--gpus)";
  }
  const std::string version = !wishes.nccl_version.empty()    ? wishes.nccl_version
                              : !setting.nccl_version.empty() ? setting.nccl_version
                                                              : table.preset.nccl_version;
  if (!version.empty()) {
    try {
      table.wishes.version = parse_nccl_version(version);
    } catch (const Error&) {
      table.wishes.version = {};  // later than what is known: the latest
    }
  }
  table.wishes.algorithm = algorithm_of(setting_of(setting.env, "NCCL_ALGO"));
  table.wishes.protocol = protocol_named(setting_of(setting.env, "NCCL_PROTO"));
  return table;
}

std::vector<ComparedRow> predict_rows(const PhysicalLog& log, const CompareWishes& wishes,
                                      Warnings& left_out) {
  std::vector<TableSetting> tables;
  for (const CommSetting& setting : log.settings) {
    tables.push_back(table_setting(setting, wishes));
  }
  std::vector<ComparedRow> rows;
  for (const CommRow& row : log.comms) {
    const TableSetting& table = tables[static_cast<std::size_t>(row.setting)];
    const CommSetting& setting = log.settings[static_cast<std::size_t>(row.setting)];
    if (!table.refused.empty()) {
      left_out.add(table.refused);
      continue;
    }
    const CommType op = row.op == CommType::kNone ? wishes.op : row.op;
    if (op == CommType::kNone || op == CommType::kBarrier) {
      const std::string& name = log.names[static_cast<std::size_t>(row.name)];
      left_out.add(name == name_of(CommType::kNone)
                       ? "a table does not say which operation it measures; --op does"
                       : fmt::format("no model of '{}'", name));
      continue;
    }
    if (row.bytes <= Bytes() || row.time_s <= 0) {
      left_out.add("rows of no bytes");
      continue;
    }
    ComparedRow compared;
    compared.row = &row;
    compared.setting = &setting;
    const bool whole = row.ranks == 0 || row.ranks == setting.ranks;
    compared.task.op = op;
    compared.task.bytes = row.bytes;
    compared.task.ranks = whole ? table.ranks : row.ranks;
    // A group of a larger job: as few servers as can hold it.
    const std::int32_t each = std::max(1, table.ranks / table.servers);
    compared.task.servers =
        whole ? table.servers
              : std::clamp((row.ranks + each - 1) / each, 1, std::max(1, row.ranks));
    compared.task.wishes = table.wishes;
    if (compared.task.ranks < 2) {
      left_out.add("rows of one rank");
      continue;
    }
    try {
      compared.predicted = nccl_time(compared.task, table.preset.system);
    } catch (const Error& error) {
      left_out.add(error.message());
      continue;
    }
    compared.measured_us = row.time_s * 1e6;
    rows.push_back(std::move(compared));
  }
  return rows;
}

}  // namespace lockstep::compare

#include "analysis/compare/predict.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "analysis/compare/nccl_settings.h"
#include "base/error.h"
#include "base/text.h"

namespace lockstep::compare {
namespace {

std::string setting_of(const std::map<std::string, std::string>& env, const std::string& name) {
  const auto found = env.find(name);
  return found == env.end() ? "" : to_lower(found->second);
}

/// More of them only share NVSwitches in racks.
constexpr std::int32_t kMostGpusOfAHost = 16;

/// libfabric without GDRCopy has the driver copy what a NIC brings of each step (cudaMemcpy): the
/// ratio of Alps' runs.
constexpr double kStepWithoutGdrcopy = 2.25;

/// The release that a text names; the oldest or newest known, with a note, where it is outside.
NcclVersion version_of(const std::string& text, std::vector<std::string>& notes) {
  try {
    return parse_nccl_version(text);
  } catch (const Error&) {
    const auto parts = split(text, '.');
    const auto major = to_int(parts.front());
    const auto minor = parts.size() > 1 ? to_int(parts[1]) : std::optional<std::int64_t>(0);
    if (!major || !minor) {
      return {};
    }
    const bool old = std::pair(*major, *minor) < std::pair<std::int64_t, std::int64_t>(2, 8);
    notes.push_back(fmt::format("NCCL {} is {} than those that are known: taken for {}",
                                printable(text, 20), old ? "older" : "newer",
                                old ? "2.8, the oldest" : "the newest"));
    return old ? parse_nccl_version("2.8") : NcclVersion();
  }
}

/// GPUs of one architecture with other links than the preset's, guessed from the log's words: those
/// of the kind that goes into a PCIe slot, and those that are sold with fewer NVLinks.
void take_variant(const CommSetting& setting, TableSetting& table) {
  const std::string gpu = to_lower(setting.gpu_type);
  const auto has = [&](std::string_view word) { return gpu.find(word) != std::string::npos; };
  NcclFabric& fabric = table.preset.system.fabric;
  if (fabric.nvlink == Bandwidth()) {
    return;
  }
  const auto note = [&](std::string what) {
    table.notes.push_back(fmt::format("{}: preset {} {}; no rates were measured on such GPUs",
                                      printable(setting.gpu_type, 40), table.preset.name, what));
  };
  if (has("pcie") || has("h100 nvl") || has("h200 nvl")) {
    const bool bridged = !has("pcie") && table.ranks <= 2;  // NVL: pairs have a bridge
    if (!bridged) {
      fabric.nvlink = Bandwidth();
    }
    fabric.nvswitch = false;
    note(bridged ? "without NVSwitch" : "without NVLink");
  } else if (has("h800") || has("a800")) {
    const double links = has("h800") ? 8.0 / 18 : 8.0 / 12;
    fabric.nvlink = Bandwidth::bytes_per_second(fabric.nvlink.bytes_per_second() * links);
    note("with 8 NVLinks a GPU");
  }
}

/// nccl-tests' hypercube: with each of 1, 2, 4 … ranks away, what was gathered so far, one
/// send/receive after the other.
NcclTime hypercube_time(const NcclTask& task, const NcclSystem& system) {
  const std::int32_t each = std::max(1, task.ranks / task.servers);
  NcclTime sum;
  for (std::int32_t away = 1; away < task.ranks; away *= 2) {
    NcclTask round = task;
    round.op = CommType::kSendRecv;
    round.ranks = 2;
    round.servers = away < each ? 1 : 2;
    round.bytes = Bytes(std::max<std::int64_t>(1, task.bytes.count() / task.ranks * away));
    const NcclTime time = nccl_time(round, system);
    sum.choice = time.choice;
    sum.latency_us += time.latency_us;
    sum.wire_us += time.wire_us;
    sum.fill_us += time.fill_us;
    sum.time_us += time.time_us;
    sum.network_bound = time.network_bound;
  }
  return sum;
}

/// On how many servers the ranks of a row's group are: those that the log names, else as few as can
/// hold it.
std::int32_t servers_of_group(const PhysicalLog& log, const CommRow& row, std::int32_t each) {
  const auto& members = members_of(log, row.group);
  if (std::ssize(members) == row.ranks) {
    std::set<std::int32_t> servers;
    for (const std::int32_t rank : members) {
      servers.insert(rank / each);
    }
    return static_cast<std::int32_t>(servers.size());
  }
  return std::clamp((row.ranks + each - 1) / each, 1, std::max(1, row.ranks));
}

}  // namespace

std::optional<Preset> cluster_preset(const CommSetting& setting, const CompareWishes& wishes) {
  const Preset* matched = wishes.preset ? &*wishes.preset : match_preset(setting);
  if (matched == nullptr) {
    return std::nullopt;
  }
  Preset preset = *matched;
  if (wishes.fabric) {
    preset.system.fabric = *wishes.fabric;
    preset.system.nvlinks = {};
    preset.system.nics_per_server = std::max(1, wishes.fabric->nics);
  }
  if (wishes.gpus_per_server > 0) {
    preset.system.gpus_per_server = wishes.gpus_per_server;
  }
  return preset;
}

TableSetting table_setting(const CommSetting& setting, const CompareWishes& wishes) {
  TableSetting table;
  std::optional<Preset> matched = cluster_preset(setting, wishes);
  if (!matched) {
    table.refused = "the log does not tell what cluster it is of (--preset names one)";
    return table;
  }
  table.preset = std::move(*matched);
  NcclSystem& system = table.preset.system;
  // NVLink SHARP is a matter of the switches to NCCL's choice.
  system.fabric.nvswitch = system.fabric.nvswitch && table.preset.nvls && setting.nvls != false;
  if (setting_of(setting.env, "NCCL_NVLS_ENABLE") == "0") {
    system.fabric.nvswitch = false;
  }
  if (setting_of(setting.env, "FI_HMEM_CUDA_USE_GDRCOPY") == "0") {
    table.step_factor = kStepWithoutGdrcopy;
    system.rates.step_us *= table.step_factor;
  }
  table.notes = unmodelled_settings(setting);
  // What a log lists is so; what it lets guess (a name, a ratio of bandwidths) a flag corrects.
  const bool contradicts = wishes.ranks > 0 && setting.ranks > 0 && wishes.ranks != setting.ranks;
  const bool listed = contradicts && !setting.ranks_guessed;
  table.ranks = wishes.ranks > 0 && !listed ? wishes.ranks : setting.ranks;
  if (contradicts) {
    table.notes.push_back(fmt::format("--gpus {}: the log {} {} GPUs; {} taken", wishes.ranks,
                                      listed ? "lists" : "seems to be of", setting.ranks,
                                      listed ? "these are" : "the flag's are"));
  }
  table.servers = contradicts && !listed ? 0 : setting.servers;
  const std::int32_t each = system.gpus_per_server;
  // Hosts of a rack whose GPUs NVSwitches join are one server to NCCL.
  const std::int32_t racks = (table.ranks + each - 1) / each;
  if (each > kMostGpusOfAHost && system.fabric.nvlink > Bandwidth() && !setting.servers_by_nccl &&
      table.servers > racks && setting_of(setting.env, "NCCL_MNNVL_ENABLE") != "0") {
    table.notes.push_back(
        fmt::format("{} hosts of {} GPUs are taken for {} NVLink domain{} of preset {}, of {} GPUs",
                    table.servers, (table.ranks + table.servers - 1) / table.servers, racks,
                    racks == 1 ? "" : "s", table.preset.name, each));
    table.servers = racks;
  }
  if (table.ranks == 0) {
    table.ranks = table.servers * each;
  }
  if (table.servers == 0 || table.servers > table.ranks) {
    table.servers = std::max(1, (table.ranks + each - 1) / each);
  }
  const std::int32_t here =
      table.servers > 0 ? (table.ranks + table.servers - 1) / table.servers : 0;
  table.each = std::max(1, table.servers == setting.servers ? here : each);
  if (here > each) {
    table.notes.push_back(fmt::format(
        "the log has {} GPUs in a server, {} {}: its links may be others", here,
        wishes.gpus_per_server > 0 ? "--gpus-per-server" : "preset " + table.preset.name, each));
  }
  const auto nics = static_cast<double>(setting.nics.size());
  const double part = std::min(1.0, static_cast<double>(here) / each);  // of a server, that is used
  if (table.servers > 1 && nics > 0 && nics < std::round(part * system.nics_per_server) &&
      !wishes.fabric) {
    table.notes.push_back(fmt::format(
        "NCCL saw {:.0f} NICs for {} GPUs of a server, preset {} has {} for {}: taken so", nics,
        here, table.preset.name, system.nics_per_server, each));
    system.nics_per_server = system.fabric.nics = static_cast<std::int32_t>(nics / part);
  }
  if (!wishes.preset) {
    take_variant(setting, table);
  }
  if (table.ranks < 1) {
    table.refused = "the log does not tell how many GPUs it is of (--gpus)";
  }
  const std::string version = !wishes.nccl_version.empty()    ? wishes.nccl_version
                              : !setting.nccl_version.empty() ? setting.nccl_version
                                                              : table.preset.nccl_version;
  if (!version.empty()) {
    table.wishes.version = version_of(version, table.notes);
  }
  return table;
}

std::vector<ComparedRow> predict_rows(const PhysicalLog& log, const CompareWishes& wishes,
                                      Warnings& left_out, Warnings* notes) {
  std::vector<TableSetting> tables;
  const auto note = [&](std::string_view text) {
    if (notes != nullptr) {
      notes->add(text);
    }
  };
  for (const CommSetting& setting : log.settings) {
    tables.push_back(table_setting(setting, wishes));
    for (const std::string& text : tables.back().notes) {
      note(text);
    }
  }
  std::vector<ComparedRow> rows;
  for (const CommRow& row : log.comms) {
    const TableSetting& table = tables[static_cast<std::size_t>(row.setting)];
    const CommSetting& setting = log.settings[static_cast<std::size_t>(row.setting)];
    if (!table.refused.empty()) {
      left_out.add(table.refused);
      continue;
    }
    const std::string& name = log.names[static_cast<std::size_t>(row.name)];
    const bool told = row.op != CommType::kNone || !pattern_in(name).empty();
    if (told && (wishes.op != CommType::kNone
                     ? wishes.op != row.op
                     : !wishes.pattern.empty() && wishes.pattern != pattern_in(name))) {
      note("--op is not what the log says that it measures: the log's is taken");
    }
    const std::string_view pattern = row.op != CommType::kNone ? std::string_view()
                                     : told                    ? pattern_in(name)
                                                               : wishes.pattern;
    // The links of a root carry what those of each rank do in an all-to-all of its bytes.
    const CommType op = !pattern.empty()            ? CommType::kAllToAll
                        : row.op == CommType::kNone ? wishes.op
                                                    : row.op;
    if (op == CommType::kNone || op == CommType::kBarrier) {
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
    compared.system = table.preset.system;
    compared.step_factor = table.step_factor;
    compared.task.op = op;
    compared.task.bytes = row.bytes;
    compared.task.ranks = whole ? table.ranks : row.ranks;
    compared.task.servers = whole ? table.servers : servers_of_group(log, row, table.each);
    if (op == CommType::kSendRecv && row.group >= 0 && compared.task.ranks > 2) {
      // A message of a group is between two of its ranks; nccl-tests' goes around all.
      compared.task.ranks = 2;
      compared.task.servers = std::min(2, compared.task.servers);
    }
    compared.task.wishes = table.wishes;
    compared.group = row.group;
    if (row.group >= 0 && std::cmp_less(row.group, log.groups.size())) {
      compared.group_name = log.groups[static_cast<std::size_t>(row.group)];
    }
    compared.pattern = pattern;
    if (compared.task.ranks < 2) {
      left_out.add("rows of one rank");
      continue;
    }
    compared.task = within(compared.task, nccl_ways(setting, op), table.preset.system);
    try {
      compared.predicted = pattern == "hypercube"
                               ? hypercube_time(compared.task, table.preset.system)
                               : nccl_time(compared.task, table.preset.system);
    } catch (const Error& error) {
      left_out.add(error.message());
      continue;
    }
    compared.measured_us = row.time_s * 1e6;
    rows.push_back(std::move(compared));
  }
  return rows;
}

std::map<const CommSetting*, std::size_t> table_numbers(
    const std::vector<const ComparedRow*>& rows) {
  std::map<const CommSetting*, std::size_t> numbers;
  std::vector<const CommSetting*> tables;
  for (const ComparedRow* row : rows) {
    if (numbers.try_emplace(row->setting, 0).second) {
      tables.push_back(row->setting);
    }
  }
  std::ranges::stable_sort(tables, {}, &CommSetting::id);
  for (std::size_t i = 0; i < tables.size(); ++i) {
    numbers[tables[i]] = i;
  }
  return numbers;
}

}  // namespace lockstep::compare

#include "trace/nccl_table.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "trace/nccl_info.h"

namespace lockstep {
namespace {

/// Ranks that meet, where the communicator was split (NCCL_TESTS_SPLIT): rank 0's group.
void keep_first_group(CommSetting& setting, const std::vector<std::int64_t>& groups,
                      Warnings& warnings) {
  if (groups.size() != setting.hosts.size() ||
      std::ranges::count(groups, groups.empty() ? 0 : groups.front()) == std::ssize(groups)) {
    return;
  }
  std::vector<std::string> kept;
  for (std::size_t rank = 0; rank < groups.size(); ++rank) {
    if (groups[rank] == groups.front()) {
      kept.push_back(std::move(setting.hosts[rank]));
    }
  }
  setting.hosts = std::move(kept);
  warnings.add("the communicator was split: the figures are of the first rank's group");
}

}  // namespace

void name_ranks(CommSetting& setting, const NcclTable& table, std::span<CommRow> rows,
                TextTable& names, PhysicalLog& log) {
  keep_first_group(setting, table.groups, log.warnings);
  std::set<std::string> hosts(setting.hosts.begin(), setting.hosts.end());
  hosts.erase("");
  if (!setting.hosts.empty()) {
    setting.ranks = static_cast<std::int32_t>(setting.hosts.size());
    if (!hosts.empty()) {
      setting.servers = static_cast<std::int32_t>(hosts.size());
    }
  }
  const bool told = setting.ranks > 0;  // by NCCL's own log
  const NcclTableRow& fastest = table.fastest;
  CommType op = comm_type_in(setting.program);
  const CommType hint = take_hints(setting.id, setting);
  const CommType file = take_hints(std::filesystem::path(log.file).filename().string(), setting);
  const bool unknown = setting.program.empty();
  if (unknown && op == CommType::kNone) {
    op = hint != CommType::kNone ? hint : file != CommType::kNone ? file : op_of(fastest);
  }
  setting.ranks_guessed = setting.hosts.empty() && !told;
  const LaunchLine& launch = table.launch;
  const std::int32_t each = table.process_gpus;
  const std::int64_t started = std::int64_t{launch.processes} * std::max(1, each);
  if (setting.ranks == 0 && started > 1 && started < (1 << 24)) {
    setting.ranks = static_cast<std::int32_t>(started);
    setting.servers = setting.servers == 0 ? launch.servers : setting.servers;
  }
  if (setting.ranks == 0) {
    setting.ranks = ranks_by_ratio(fastest, op);
  }
  if (setting.ranks == 0 && each > 1) {
    setting.ranks = each;
  }
  if (setting.servers == 0 && setting.ranks == 1) {
    setting.servers = 1;
  }
  std::string_view pattern;  // gather, scatter, hypercube
  for (const std::string& text :
       {setting.id, std::filesystem::path(log.file).filename().string()}) {
    pattern = unknown && op == CommType::kNone && pattern.empty() ? pattern_in(text) : pattern;
  }
  const std::int32_t name = names.index(!unknown           ? std::string_view(setting.program)
                                        : !pattern.empty() ? pattern
                                                           : name_of(op));
  if (op == CommType::kNone && unknown && pattern.empty()) {
    log.warnings.add("a table does not say which operation it measures");
  }
  for (CommRow& row : rows) {
    row.op = op;
    row.name = name;
    row.ranks = setting.ranks;
  }
}

void check_times(const CommSetting& setting, const NcclTableRow& row, std::span<CommRow> rows,
                 Warnings& warnings) {
  if (row.algbw_Bps < 1e8 || row.time_s <= 0) {
    return;  // two digits say too little
  }
  const double off = static_cast<double>(row.bytes) / row.time_s / row.algbw_Bps;
  const double slack = 0.02 + 0.01e9 / row.algbw_Bps;
  const double factor = nccl_bus_factor(comm_type_in(setting.program), setting.ranks);
  if (factor > 0 && row.busbw_Bps > 0 &&
      std::abs(row.busbw_Bps / row.algbw_Bps / factor - 1) > 2 * slack) {
    warnings.add("a table's bus bandwidths are not those of its operation on so many ranks");
  }
  if (std::abs(off - 1) <= slack) {
    return;
  }
  const double unit = off > 30 ? 1e3 : 1e-3;
  const bool other_unit = !row.unit_told && std::abs(off / unit - 1) <= slack;
  for (CommRow& each : rows) {
    each.time_s *= other_unit ? unit : 1;
  }
  warnings.add(other_unit ? "a table's times are in another unit than microseconds, by the "
                            "bandwidths beside them"
                          : "a table's times do not agree with the bandwidths beside them");
}

}  // namespace lockstep

#include "trace/nccl_table.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "trace/nccl_info.h"

namespace lockstep {
namespace {

/// On how many servers a launcher's line puts a table's ranks; 0: it does not tell.
std::int32_t servers_launched(const NcclTable& table, std::int32_t ranks) {
  const LaunchLine& launch = table.launch;
  const std::int64_t gpus = std::max(1, table.process_gpus);
  if (launch.processes > 0 && launch.processes * gpus != ranks) {
    return 0;
  }
  if (launch.servers > 0) {
    return launch.servers <= ranks ? launch.servers : 0;
  }
  const std::int64_t each = launch.processes_per_server * gpus;
  return each > 0 ? static_cast<std::int32_t>((ranks + each - 1) / each) : 0;
}

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
    const auto ranks = static_cast<std::int32_t>(setting.hosts.size());
    const auto servers = static_cast<std::int32_t>(hosts.size());
    // Of these ranks NCCL says itself what it takes for a server.
    setting.servers_by_nccl = setting.servers_by_nccl && setting.ranks == ranks;
    setting.ranks = ranks;
    if (setting.servers_by_nccl && servers > 0 && setting.servers != servers) {
      log.warnings.add(
          fmt::format("the devices are of {} host{}, of NCCL's nodes there are {}: these are taken",
                      servers, servers == 1 ? "" : "s", setting.servers));
    } else if (servers > 0 && !setting.servers_by_nccl) {
      setting.servers = servers;
    }
  }
  const bool told = setting.ranks > 0;  // by NCCL's own log
  const std::int32_t told_servers = setting.servers;
  const NcclTableRow& fastest = table.fastest;
  if (!table.program_told && contradicts(fastest, setting.program)) {
    log.warnings.add(
        fmt::format("a table is not of {}, which the log names before it: its own columns are "
                    "taken",
                    setting.program));
    setting.program.clear();
  }
  CommType op = comm_type_in(setting.program);
  const CommType hint = take_hints(setting.id, setting);
  const CommType file = take_hints(std::filesystem::path(log.file).filename().string(), setting);
  const bool unknown = setting.program.empty();
  if (unknown && op == CommType::kNone) {
    op = hint != CommType::kNone ? hint : file != CommType::kNone ? file : op_of(fastest);
  }
  // Servers alone ("…-n2.log") are a name's weakest hint: a launcher's line is right against it.
  const bool alone = told_servers == 0 && (told || setting.ranks == 0);
  const std::int32_t named = alone ? std::exchange(setting.servers, 0) : 0;
  setting.ranks_guessed = setting.hosts.empty() && !told;
  const LaunchLine& launch = table.launch;
  const std::int32_t each = table.process_gpus;
  const std::int64_t started = std::int64_t{launch.processes} * std::max(1, each);
  if (setting.ranks == 0 && started > 1 && started < (1 << 24)) {
    setting.ranks = static_cast<std::int32_t>(started);
  }
  if (setting.ranks == 0) {
    setting.ranks = ranks_by_ratio(fastest, op);
  }
  if (setting.ranks == 0 && each > 1) {
    setting.ranks = each;
  }
  const std::int32_t launched = servers_launched(table, setting.ranks);
  if (setting.servers == 0) {
    const bool divides = setting.ranks % std::max(1, named) == 0;
    setting.servers = setting.ranks == 1 ? 1 : launched > 0 ? launched : divides ? named : 0;
  }
  if (named > 0 && setting.servers != named) {
    log.warnings.add(
        launched > 0
            ? "a name tells other servers than the command of its run: the command's are taken"
            : "a name tells a number of servers that the GPUs do not divide into: it is not taken");
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

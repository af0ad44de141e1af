#include "app/compare/on_topology.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "app/collective/run_collective.h"
#include "base/error.h"
#include "simulator/collectives/protocol.h"
#include "topologies/topology_file.h"

namespace lockstep {
namespace {

using compare::ComparedRow;

/// The GPUs of each server, in order.
std::map<std::int32_t, std::vector<std::size_t>> gpus_of_servers(const Topology& topology) {
  std::map<std::int32_t, std::vector<std::size_t>> servers;
  std::size_t number = 0;
  for (const NodeId gpu : topology.gpus()) {
    servers[topology.nodes[gpu.index()].server].push_back(number++);
  }
  return servers;
}

/// Where the ranks go, as --placement takes it: the first of each of the first servers.
/// ERRORS: there are too few.
std::string placement_of(const NcclTask& task, const Topology& topology) {
  std::string list;
  std::int32_t left = task.ranks, servers = task.servers;
  for (const auto& [server, gpus] : gpus_of_servers(topology)) {
    const auto here = static_cast<std::size_t>(servers > 0 ? (left + servers - 1) / servers : 0);
    if (here > gpus.size()) {
      break;
    }
    for (std::size_t i = 0; i < here; ++i) {
      list += fmt::format("{}{}", list.empty() ? "" : ",", gpus[i]);
    }
    left -= static_cast<std::int32_t>(here);
    servers -= here > 0 ? 1 : 0;
  }
  if (left > 0) {
    throw Error(fmt::format("the topology has no {} servers of {} GPUs", task.servers,
                            (task.ranks + task.servers - 1) / task.servers));
  }
  return list;
}

std::string version_text(NcclVersion version) {
  return fmt::format("{}.{}.{}", version.number / 10000, version.number / 100 % 100,
                     version.number % 100);
}

/// Rows that differ in their sizes alone.
using Key = std::tuple<CommType, std::int32_t, std::int32_t, NcclVersion, int, int>;

Key key_of(const NcclTask& task) {
  const NcclWishes& wishes = task.wishes;
  return {task.op,
          task.ranks,
          task.servers,
          wishes.version,
          wishes.algorithm ? static_cast<int>(*wishes.algorithm) : -1,
          wishes.protocol ? static_cast<int>(*wishes.protocol) : -1};
}

CollectiveOptions options_for(const NcclTask& task, const std::string& topology) {
  CollectiveOptions options;
  options.op = name_of(task.op);
  options.topology = topology;
  options.nccl_version = version_text(task.wishes.version);
  const bool pairs = task.op == CommType::kAllToAll || task.op == CommType::kSendRecv;
  if (task.wishes.algorithm && !pairs) {
    options.algorithm = our_name(*task.wishes.algorithm, task.op, task.ranks);
  }
  if (task.wishes.protocol) {
    options.protocol = name_of(*task.wishes.protocol);
  }
  return options;
}

void take(const CollectivePoint& point, NcclTime& time) {
  time = {.choice = time.choice};
  if (const auto algorithm = nccl_algorithm_named(point.algorithm)) {
    time.choice.algorithm = *algorithm;
    time.choice.protocol = protocol_named(point.protocol).value_or(Protocol::kSimple);
  }
  time.time_us = point.timings.front().time.seconds() * 1e6;
}

/// Rows of one key: one simulation a size. ERRORS: what the topology or NCCL cannot do.
void predict_group(const std::vector<ComparedRow*>& members, const Topology& built,
                   const std::string& topology, const std::string& preset) {
  const NcclTask& task = members.front()->task;
  CollectiveOptions options = options_for(task, topology);
  options.placement = placement_of(task, built);
  options.preset = preset;
  for (const ComparedRow* row : members) {
    options.sizes.push_back(row->task.bytes);
  }
  std::ranges::sort(options.sizes);
  options.sizes.erase(std::unique(options.sizes.begin(), options.sizes.end()), options.sizes.end());
  const CollectiveSweep sweep = run_collective(options);
  for (ComparedRow* row : members) {
    const auto point = std::ranges::find(sweep.points, row->task.bytes, &CollectivePoint::bytes);
    LOCKSTEP_CHECK(point != sweep.points.end(), "every size is worked out");
    take(*point, row->predicted);
  }
}

}  // namespace

void predict_on_topology(std::vector<ComparedRow>& rows, const std::string& topology,
                         const std::string& preset, Warnings& left_out) {
  std::vector<std::string> warnings;
  const Topology built = topology_from(topology, &warnings);
  std::map<Key, std::vector<ComparedRow*>> groups;
  for (ComparedRow& row : rows) {
    if (!row.pattern.empty()) {
      left_out.add("no model of " + row.pattern + " on a topology");
      row.row = nullptr;
      continue;
    }
    groups[key_of(row.task)].push_back(&row);
  }
  for (auto& [key, members] : groups) {
    try {
      predict_group(members, built, topology, preset);
    } catch (const Error& error) {
      for (ComparedRow* row : members) {
        left_out.add(error.message());
        row->row = nullptr;
      }
    }
  }
  std::erase_if(rows, [](const ComparedRow& row) { return row.row == nullptr; });
}

}  // namespace lockstep

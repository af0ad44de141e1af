#include "app/compare/compare_options.h"

#include <filesystem>
#include <set>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "app/flag_value.h"
#include "base/error.h"
#include "base/text.h"
#include "simulator/replay/fabric_of.h"
#include "topologies/topology_file.h"
#include "trace/log_reader.h"

namespace lockstep {

void define_cluster_flags(CLI::App& app, ClusterFlags& flags) {
  app.add_option(
      "-p,--preset", flags.preset,
      "a kind of cluster, or a file that calibrate wrote; default: by what the log tells");
  app.add_option("-n,--topology", flags.topology,
                 "topology file, or TEMPLATE[:flags]: its links in place of the preset's");
  app.add_option("--gpus", flags.gpus, "GPUs of the run, where the log does not tell")
      ->check(CLI::Range(1, 1 << 24));
  app.add_option("--op", flags.op, "the operation (all_reduce, …), where the log does not tell");
  app.add_option("--gpus-per-server", flags.gpus_per_server, "default: the preset's")
      ->check(CLI::Range(1, 4096));
  app.add_option("--nccl-version", flags.nccl_version, "default: the log's, else the preset's");
}

compare::CompareWishes wishes_of(const ClusterFlags& flags) {
  compare::CompareWishes wishes;
  wishes.ranks = flags.gpus;
  wishes.gpus_per_server = flags.gpus_per_server;
  if (!flags.op.empty()) {
    wishes.op = comm_type_in(flags.op);
    wishes.pattern = pattern_in(flags.op);
    if (wishes.op == CommType::kNone && wishes.pattern.empty()) {
      throw Error("unknown collective '" + printable(flags.op) + "'")
          .field("--op")
          .expected(
              "all_reduce, all_gather, reduce_scatter, alltoall, broadcast, reduce, sendrecv, "
              "gather, "
              "scatter, hypercube");
    }
  }
  if (!flags.nccl_version.empty()) {
    flag_value("--nccl-version", flags.nccl_version, parse_nccl_version);
    wishes.nccl_version = flags.nccl_version;
  }
  if (!flags.preset.empty()) {
    wishes.preset = flag_value("--preset", flags.preset, [](std::string_view name) {
      return compare::preset_named(std::string(name));
    });
  }
  if (!flags.topology.empty()) {
    std::vector<std::string> warnings;
    const Topology topology = topology_from(flags.topology, &warnings);
    const std::vector<NodeId> first = gpus_of_first_server(topology);
    if (first.empty()) {
      throw Error("the topology has no GPUs").field("--topology");
    }
    wishes.fabric = fabric_of(topology, first);
    if (wishes.gpus_per_server == 0) {
      wishes.gpus_per_server = static_cast<std::int32_t>(first.size());
    }
    if (!wishes.preset) {  // rates of the kind of cluster that has such GPUs
      CommSetting setting;
      setting.gpu_type = topology.gpu_types.empty() ? "h100" : topology.gpu_types.front();
      const compare::Preset* preset = compare::match_preset(setting);
      wishes.preset = preset != nullptr ? *preset : compare::preset_named("dgx-h100");
      wishes.preset->name = "topology";
    }
  }
  return wishes;
}

std::vector<PhysicalLog> logs_of(const std::vector<std::string>& paths) {
  std::set<std::filesystem::path> known;
  std::vector<PhysicalLog> logs;
  for (const std::string& path : paths) {
    std::error_code unknown;  // then reading tells
    if (!known.insert(std::filesystem::weakly_canonical(path, unknown)).second && !unknown) {
      throw Error("this log is given twice").at(path).expected("each log once");
    }
    for (PhysicalLog& log : read_logs(path)) {
      logs.push_back(std::move(log));
    }
  }
  return logs;
}

Warnings warnings_of(const std::vector<PhysicalLog>& logs) {
  Warnings warnings;
  for (const PhysicalLog& log : logs) {
    for (const Warnings::Entry& entry : log.warnings.entries()) {
      warnings.add(fmt::format("{}: {}{}", log.file, entry.text,
                               entry.count > 1 ? fmt::format(" ({} times)", entry.count) : ""));
    }
  }
  return warnings;
}

}  // namespace lockstep

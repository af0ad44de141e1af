#include "topologies/simai_fabric.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "topologies/topology_maker.h"

namespace lockstep {
namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// How GPUs fall into segments, the groups that share leaf switches.
struct Segments {
  std::int64_t gpus;    ///< in one segment
  std::int64_t leaves;  ///< of one segment, in one half if there are two
  std::int64_t count;
};

Segments segments_of(const SimaiFabric& f) {
  const std::int64_t leaves = f.rail_optimised ? f.gpus_per_server : 1;
  const std::int64_t gpus = leaves * f.nics_per_asw;
  return {gpus, leaves, ceil_div(f.gpus, gpus)};
}

void check(const SimaiFabric& f, const Segments& segments) {
  if (f.dual_plane && !(f.rail_optimised && f.dual_tor)) {
    throw Error(f.rail_optimised ? "a rail-optimised fabric with a single ToR has no dual plane"
                                 : "a fabric that is not rail-optimised has no dual plane")
        .hint("dual plane needs both rail-optimised and dual-tor");
  }
  if (f.nvswitches_per_server > 0 && f.gpus % f.gpus_per_server != 0) {
    throw Error(fmt::format("{} GPUs do not fill servers of {}: the last server has no NVSwitch",
                            f.gpus, f.gpus_per_server))
        .field("flag gpus")
        .expected(fmt::format("a multiple of gpus-per-server, such as {}",
                              ceil_div(f.gpus, f.gpus_per_server) * f.gpus_per_server));
  }
  const std::int64_t leaves_on_spine = segments.leaves * (f.dual_tor && !f.rail_optimised ? 2 : 1);
  const std::int64_t capacity = f.asws_per_psw / leaves_on_spine;
  if (segments.count > capacity) {
    throw Error(fmt::format("{} GPUs need {} segments, but one pod holds {}", f.gpus,
                            segments.count, capacity))
        .field("flag gpus")
        .expected(fmt::format("at most {} GPUs with gpus-per-leaf {} and leaves-per-spine {}",
                              capacity * segments.gpus, f.nics_per_asw, f.asws_per_psw))
        .hint(
            "raise leaves-per-spine or gpus-per-leaf, or use the template pods, whose "
            "spine-switches and core-switches are few unless you ask for more");
  }
}

}  // namespace

BuiltTopology build_simai_fabric(const SimaiFabric& f, std::string_view prefix,
                                 std::string_view infix) {
  const Segments segments = segments_of(f);
  check(f, segments);
  BuiltTopology built;
  const std::int64_t halves = f.dual_tor ? 2 : 1;
  const std::int64_t asws = segments.count * segments.leaves * halves;
  if (f.asws != asws) {
    built.simai_messages.push_back(
        fmt::format("Error relations between total GPU Nums and total aws_switch_num. The correct "
                    "asw_switch_num is set to {}",
                    asws));
    if (f.asws_given) {
      built.warnings.push_back(
          fmt::format("leaf-switches: {} in place of {}, as {} GPUs need", asws, f.asws, f.gpus));
    }
  }
  built.file_name = fmt::format("{}{}g_{}gps_{}{}_{}", prefix, f.gpus, f.gpus_per_server, infix,
                                f.nic_rate, f.gpu_type);
  std::replace(built.file_name.begin(), built.file_name.end(), '/', '_');

  const std::int64_t servers = f.gpus / f.gpus_per_server;
  const std::int64_t nvswitches = servers * f.nvswitches_per_server;
  TopologyMaker maker(built.file_name);
  maker.reserve(f.gpus + nvswitches + asws + f.psws, f.gpus * (f.nvswitches_per_server + halves) +
                                                         asws * f.psws / (f.dual_plane ? 2 : 1));
  const std::int16_t type = maker.gpu_type(f.gpu_type);
  for (std::int64_t i = 0; i < f.gpus; ++i) {
    maker.add_gpu(static_cast<std::int32_t>(i / f.gpus_per_server), type);
  }
  for (std::int64_t i = 0; i < nvswitches; ++i) {
    maker.add_nvswitch(static_cast<std::int32_t>(i / f.nvswitches_per_server));
  }
  for (std::int64_t i = 0; i < asws + f.psws; ++i) {
    maker.add_switch();
  }
  const auto id = [](std::int64_t i) { return NodeId(static_cast<std::size_t>(i)); };
  const std::int64_t first_asw = f.gpus + nvswitches;
  const std::int64_t first_psw = first_asw + asws;
  const std::int64_t half = asws / halves;

  const std::int32_t nvlink = f.nvswitches_per_server > 0
                                  ? maker.link_class(f.nvlink_rate, f.nvlink_delay, f.error_rate)
                                  : -1;
  const std::int32_t nic = maker.link_class(f.nic_rate, f.delay, f.error_rate);
  for (std::int64_t i = 0; i < f.gpus; ++i) {
    for (std::int64_t j = 0; j < f.nvswitches_per_server; ++j) {
      maker.link(id(i), id(f.gpus + i / f.gpus_per_server * f.nvswitches_per_server + j), nvlink);
    }
    const std::int64_t asw = i / segments.gpus * segments.leaves + i % segments.leaves;
    for (std::int64_t h = 0; h < halves; ++h) {
      maker.link(id(i), id(first_asw + h * half + asw), nic);
    }
  }
  const std::int32_t uplink =
      f.psws > 0 ? maker.link_class(f.fabric_rate, f.delay, f.error_rate) : -1;
  const std::int64_t first_plane = (f.psws + 1) / 2;
  for (std::int64_t a = 0; a < asws; ++a) {
    const bool second = f.dual_plane && a >= half;
    const std::int64_t begin = second ? first_plane : 0;
    const std::int64_t end = f.dual_plane && !second ? first_plane : f.psws;
    for (std::int64_t p = begin; p < end; ++p) {
      maker.link(id(first_asw + a), id(first_psw + p), uplink);
    }
  }
  built.topology = maker.finish(static_cast<std::int32_t>(f.gpus_per_server));
  return built;
}

BuiltTopology build_simai_fabric(const SimaiFabric& fabric) {
  if (!fabric.rail_optimised) {
    return build_simai_fabric(fabric, "No_Rail_Opti_", fabric.dual_tor ? "DualToR_" : "SingleToR_");
  }
  if (!fabric.dual_tor) {
    return build_simai_fabric(fabric, "Rail_Opti_SingleToR_", "");
  }
  return build_simai_fabric(fabric, "Rail_Opti_",
                            fabric.dual_plane ? "DualToR_DualPlane_" : "DualToR_SinglePlane_");
}

void note_ignored(BuiltTopology& built, const SimaiFabric& asked, const SimaiFabric& fabric,
                  std::string_view name) {
  const auto note = [&](bool was_asked, bool is, std::string_view flag, std::string_view what) {
    if (was_asked && !is) {
      built.ignored.push_back(fmt::format("--{} changes nothing: {} has no {}", flag, name, what));
    }
  };
  note(asked.rail_optimised, fabric.rail_optimised, "rail-optimised", "rails");
  note(asked.dual_tor, fabric.dual_tor, "dual-tor", "second leaf switch for a GPU");
  note(asked.dual_plane, fabric.dual_plane, "dual-plane", "second plane");
}

SimaiFabric simai_fabric(const FlagValues& flags) {
  SimaiFabric f;
  f.rail_optimised = flags.on("ro");
  f.dual_tor = flags.on("dt");
  f.dual_plane = flags.on("dp");
  f.gpus = flags.count("gpus");
  f.gpus_per_server = flags.count("gps");
  f.nvswitches_per_server = flags.count("nsps");
  f.asws = flags.count("asn");
  f.asws_given = flags.given("asn");
  f.nics_per_asw = flags.count("npa");
  f.psws = flags.count("psn");
  f.asws_per_psw = flags.count("app");
  f.gpu_type = flags.text("gt");
  f.nvlink_rate = flags.text("nvbw");
  f.nvlink_delay = flags.text("nl");
  f.nic_rate = flags.text("bw");
  f.fabric_rate = flags.text("apbw");
  f.delay = flags.text("l");
  f.error_rate = flags.text("er");
  return f;
}

}  // namespace lockstep

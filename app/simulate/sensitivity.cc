#include "app/simulate/sensitivity.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/parallel.h"
#include "workloads/comm.h"
#include "workloads/op_type.h"

namespace lockstep {
namespace {

constexpr double kBetter = 1.1;

Time faster(Time time) { return Time::seconds(time.seconds() / kBetter); }
Bytes lighter(Bytes bytes) {
  return Bytes(static_cast<std::int64_t>(static_cast<double>(bytes.count()) / kBetter));
}

/// Between which kinds of nodes a link lies.
std::string tier_of(const Topology& topology, const Link& link) {
  const auto name = [&](NodeId id) -> std::string {
    const Node& node = topology.nodes[id.index()];
    if (node.kind == NodeKind::kGpu) {
      return "GPU";
    }
    if (node.kind == NodeKind::kNvSwitch) {
      return "NVSwitch";
    }
    return node.tier == 1 ? "leaf" : node.tier == 2 ? "spine" : "core";
  };
  const std::string a = name(link.a), b = name(link.b);
  const auto height = [&](NodeId id) {
    const Node& node = topology.nodes[id.index()];
    return std::pair(node.kind, node.tier);
  };
  const bool up = height(link.a) <= height(link.b);
  return up ? a + " to " + b : b + " to " + a;
}

/// The links of a tier get classes of their own.
Topology changed(Topology topology, const std::string& tier, bool latency) {
  std::map<std::int32_t, std::int32_t> replaced;
  for (Link& link : topology.links) {
    if (tier_of(topology, link) != tier) {
      continue;
    }
    const auto [known, is_new] = replaced.try_emplace(link.link_class);
    if (is_new) {
      std::vector<LinkClass>& classes = topology.link_classes;
      LinkClass better = classes[static_cast<std::size_t>(link.link_class)];
      if (latency) {
        better.set_delay(faster(better.delay));
      } else {
        better.set_rate(Bandwidth::bytes_per_second(better.rate.bytes_per_second() * kBetter));
      }
      const auto same = std::ranges::find(classes, better);  // no class stands twice
      known->second = static_cast<std::int32_t>(same - classes.begin());
      if (same == classes.end()) {
        classes.push_back(better);
      }
    }
    link.link_class = known->second;
  }
  return topology;
}

/// What a workload does, each with a name; `change` calls f(name, operation) on all of them.
template <class F>
void each_part(Workload& workload, const F& f) {
  for (WorkloadJob& job : workload.jobs) {
    if (auto* layers = std::get_if<LayerTable>(&job.work)) {
      for (Layer& layer : layers->layers) {
        for (LayerPhase* phase : {&layer.forward, &layer.input_grad, &layer.weight_grad}) {
          f("compute", phase->compute, nullptr);
          if (phase->comm != CommType::kNone) {
            f(fmt::format("{} over {}", name_of(phase->comm), name_of(phase->group)),
              phase->compute, &phase->bytes);
          }
        }
      }
      continue;
    }
    auto& table = std::get<OpTable>(job.work);
    for (OpProgram& program : table.programs) {
      for (Op& op : program.ops) {
        if (op.comm == CommType::kNone) {
          f(op.type == OpType::kOther ? std::string("compute") : std::string(name_of(op.type)),
            op.compute, nullptr);
        } else if (op.comm != CommType::kSendRecv) {
          f(fmt::format("{} over {}", name_of(op.comm),
                        table.groups[static_cast<std::size_t>(op.group)].name),
            op.compute, &op.bytes);
        }
      }
    }
  }
}

Workload changed(Workload workload, const std::string& part) {
  each_part(workload, [&](const std::string& name, Time& compute, Bytes* bytes) {
    if (name == part) {
      if (bytes != nullptr) {
        *bytes = lighter(*bytes);
      } else {
        compute = faster(compute);
      }
    }
  });
  return workload;
}

}  // namespace

std::vector<Sensitivity> sensitivities(
    const Workload& workload, const Topology& topology, int threads,
    const std::function<Time(const Workload&, const Topology&)>& run) {
  std::set<std::string> tiers, parts;
  for (const Link& link : topology.links) {
    tiers.insert(tier_of(topology, link));
  }
  Workload copy = workload;
  each_part(copy, [&](const std::string& name, const Time& compute, const Bytes* bytes) {
    if (bytes != nullptr ? *bytes > Bytes(0) : compute > Time()) {
      parts.insert(name);
    }
  });
  std::vector<Sensitivity> all;
  std::vector<std::function<Time()>> runs;
  for (const std::string& tier : tiers) {
    for (const bool latency : {false, true}) {
      all.push_back({tier + (latency ? " latency" : " bandwidth"), {}});
      runs.emplace_back(
          [&, tier, latency] { return run(workload, changed(topology, tier, latency)); });
    }
  }
  for (const std::string& part : parts) {
    all.push_back({part, {}});
    runs.emplace_back([&, part] { return run(changed(workload, part), topology); });
  }
  for_each_in_parallel(runs.size(), threads, [&](std::size_t i) { all[i].total = runs[i](); });
  return all;
}

std::string sensitivity_text(std::vector<Sensitivity> all, Time base) {
  std::ranges::stable_sort(all, {}, &Sensitivity::total);
  std::string text = "what a tenth more of it brings      step ms     saves\n";
  for (const Sensitivity& each : all) {
    text += fmt::format("  {:<32} {:>9.3f} {:>7.2f} %\n", each.what, each.total.seconds() * 1e3,
                        100 * (1 - each.total / base));
  }
  return text;
}

Json sensitivity_json(const std::vector<Sensitivity>& all, Time base) {
  Json json = Json::array();
  for (const Sensitivity& each : all) {
    json.push_back({{"what", each.what},
                    {"better", kBetter},
                    {"total_s", each.total.seconds()},
                    {"saves", 1 - each.total / base}});
  }
  return json;
}

}  // namespace lockstep

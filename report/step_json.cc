#include "report/step_json.h"

#include "base/json.h"
#include "report/collective_report.h"
#include "report/json_time.h"
#include "report/packet_counts.h"
#include "report/port_loads.h"

namespace lockstep {
namespace {

Json phase_json(const PhaseResult& phase) {
  Json json = {{"compute_s", seconds(phase.compute)}};
  if (phase.comm_type == CommType::kNone) {
    return json;
  }
  json["comm"] = name_of(phase.comm_type);
  json["group"] = name_of(phase.group);
  json["ranks"] = phase.group_size;
  json["size_bytes"] = phase.bytes.count();
  json["comm_s"] = seconds(phase.comm);
  json["exposed_s"] = seconds(phase.exposed);
  if (phase.comm > Time()) {
    const double rate = static_cast<double>(phase.bytes.count()) / seconds(phase.comm);
    json["algorithm_Bps"] = rate;
    json["bus_Bps"] = rate * bus_factor(phase.comm_type, phase.group_size);
  }
  return json;
}

Json parallel_json(const StepResult& result) {
  const Parallelism& p = result.parallel;
  Json json = {{"tp", p.tp}, {"ep", p.ep}, {"pp", p.pp}, {"vpp", p.vpp}, {"ga", p.ga}};
  if (p.cp > 1) {
    json["cp"] = p.cp;
  }
  if (p.tp > 0 && p.pp > 0) {
    json["dp"] = result.first_gpus() / (p.tp * p.cp * p.pp);
  }
  return json;
}

Json groups_json(const StepResult& result) {
  Json json = Json::object();
  for (std::size_t i = 0; i < result.exposed_by_group.size(); ++i) {
    json[std::string(name_of(static_cast<GroupKind>(i))) + "_s"] =
        seconds(result.exposed_by_group[i]);
  }
  return json;
}

Json layers_json(const StepResult& result) {
  Json json = Json::array();
  for (const LayerResult& layer : result.layers) {
    json.push_back({{"name", result.names[static_cast<std::size_t>(layer.name)]},
                    {"forward", phase_json(layer.forward)},
                    {"input_grad", phase_json(layer.input_grad)},
                    {"weight_grad", phase_json(layer.weight_grad)}});
  }
  return json;
}

Json jobs_json(const StepResult& result) {
  Json json = Json::array();
  for (const JobResult& job : result.jobs) {
    json.push_back({{"name", job.name},
                    {"first_rank", job.first_rank},
                    {"ranks", job.ranks},
                    {"end_s", seconds(job.end)}});
  }
  return json;
}

Json links_json(const StepResult& result, const Topology* topology) {
  Json json = Json::array();
  for (const PortLoad& load : busiest_ports(result)) {
    Json link = {{"port", load.port.value}};
    if (topology != nullptr) {
      const PortEnds ends = ends_of(*topology, load.port);
      link["from"] = node_name(*topology, ends.from);
      link["to"] = node_name(*topology, ends.to);
      link["rate_Bps"] = topology->class_of(LinkId(load.port.index() / 2)).rate.bytes_per_second();
    }
    link["carried_bytes"] = load.bytes.count();
    link["busy_s"] = seconds(load.busy);
    link["utilisation"] = load.utilisation;
    json.push_back(std::move(link));
  }
  return json;
}

Json stragglers_json(const StepResult& result) {
  Json json = Json::array();
  for (const StragglerCost& cost : result.stragglers) {
    json.push_back({{"spec", cost.spec},
                    {"without_s", seconds(cost.without)},
                    {"cost_s", seconds(result.total - cost.without)},
                    {"slowdown", cost.without > Time() ? result.total / cost.without : 1.0}});
  }
  return json;
}

Json sample_json(const StepSample& sample) {
  Json totals = Json::array();
  for (const Time total : sample.totals) {
    totals.push_back(seconds(total));
  }
  return {{"steps", sample.totals.size()},
          {"seed", sample.seed},
          {"mean_s", seconds(sample.mean)},
          {"deviation_s", seconds(sample.deviation)},
          {"mean_low_s", seconds(sample.mean - sample.half_width)},
          {"mean_high_s", seconds(sample.mean + sample.half_width)},
          {"p50_s", seconds(sample.p50)},
          {"p90_s", seconds(sample.p90)},
          {"p99_s", seconds(sample.p99)},
          {"total_s", std::move(totals)}};
}

Json critical_links_json(const CriticalPath& path, const Topology* topology) {
  Json links = Json::array();
  for (const LinkShare& share : path.by_link) {
    Json link = {{"port", share.port.value}};
    if (topology != nullptr) {
      const PortEnds ends = ends_of(*topology, share.port);
      link["from"] = node_name(*topology, ends.from);
      link["to"] = node_name(*topology, ends.to);
    }
    link["time_s"] = seconds(share.time);
    links.push_back(std::move(link));
  }
  return links;
}

Json critical_json(const CriticalPath& path, const Topology* topology) {
  Json types = Json::object(), groups = Json::object(), ranks = Json::array();
  for (std::size_t i = 0; i < path.by_type.size(); ++i) {
    if (path.by_type[i] > Time()) {
      types[std::string(name_of(static_cast<OpType>(i))) + "_s"] = seconds(path.by_type[i]);
    }
  }
  for (std::size_t i = 0; i < path.comm_by_group.size(); ++i) {
    if (path.comm_by_group[i] > Time()) {
      groups[std::string(name_of(static_cast<GroupKind>(i))) + "_s"] =
          seconds(path.comm_by_group[i]);
    }
  }
  for (std::size_t rank = 0; rank < path.by_rank.size(); ++rank) {
    if (path.by_rank[rank] > Time()) {
      ranks.push_back({{"rank", rank}, {"time_s", seconds(path.by_rank[rank])}});
    }
  }
  return {{"total_s", seconds(path.total)},
          {"compute_s", seconds(path.compute)},
          {"gap_s", seconds(path.gap)},
          {"comm_by_group", std::move(groups)},
          {"by_type", std::move(types)},
          {"by_rank", std::move(ranks)},
          {"by_link", critical_links_json(path, topology)},
          {"pieces", path.pieces.size()}};
}

}  // namespace

std::string step_json(const StepResult& result, const Topology* topology, const Json& more) {
  Json json = {
      {"schema", "lockstep-simulate/1"},
      {"workload", result.workload},
      {"topology", result.topology},
      {"engine", result.engine},
      {"semantics", result.semantics},
      {"flavour", result.flavour},
      {"gpus", result.first_gpus()},
      {"parallel", parallel_json(result)},
      {"total_s", seconds(result.total)},
      {"compute_s", seconds(result.compute)},
      {"exposed_s", seconds(result.exposed)},
      {"bubble_s", seconds(result.bubble)},
      {"skew_s", seconds(result.skew)},
      {"exposed_by_group", groups_json(result)},
      {"first_rank_end_s", seconds(result.first_rank_end)},
      {"last_rank_end_s", seconds(result.last_rank_end)},
      {"flows", result.flows},
      {"layers", layers_json(result)},
      {"jobs", jobs_json(result)},
      {"links", links_json(result, topology)},
      {"warnings", result.warnings},
  };
  if (result.jobs.size() > 1) {
    json["other_jobs_s"] = seconds(result.others);
  }
  if (result.compared) {
    json["compared_ranks"] = *result.compared;
  }
  if (result.drawn) {
    json["drawn"] = true;
  }
  if (!result.routes.empty()) {
    json["routes"] = result.routes;
  }
  if (result.recalled_flows > 0 || result.error > Time()) {
    json["recalled_flows"] = result.recalled_flows;
    json["error_s"] = seconds(result.error);
    json["error_kind"] = "estimate";  // what repeats exactly is skipped without any error
  }
  if (result.packets) {
    json["packets"] = packets_json(*result.packets);
  }
  if (!result.stragglers.empty()) {
    json["clean_s"] = seconds(result.clean);
    json["slowdown"] = result.clean > Time() ? result.total / result.clean : 1.0;
    json["stragglers"] = stragglers_json(result);
  }
  if (result.critical) {
    json["critical_path"] = critical_json(*result.critical, topology);
  }
  if (result.sample) {
    json["sample"] = sample_json(*result.sample);
  }
  for (const auto& [key, value] : more.items()) {
    json[key] = value;
  }
  return to_text(json);
}

}  // namespace lockstep

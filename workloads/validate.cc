#include "workloads/validate.h"

#include <cmath>
#include <limits>
#include <set>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "workloads/simai_names.h"

namespace lockstep {
namespace {

void check_range(std::int64_t value, std::int64_t low, std::int64_t high, const std::string& path) {
  if (value < low || value > high) {
    throw Error(fmt::format("{} is out of range", value))
        .field(path)
        .expected(fmt::format("a whole number from {} to {}", low, high));
  }
}

void check_parallelism(const Parallelism& parallel, const std::string& path) {
  constexpr std::int64_t kMaxCount = std::numeric_limits<std::int32_t>::max();
  check_range(parallel.gpus, 0, kMaxGpus, path + ".gpus");
  check_range(parallel.tp, 1, kMaxGpus, path + ".tp");
  check_range(parallel.cp, 1, kMaxGpus, path + ".cp");
  check_range(parallel.ep, 1, kMaxGpus, path + ".ep");
  check_range(parallel.pp, 1, kMaxGpus, path + ".pp");
  check_range(parallel.vpp, 0, kMaxCount, path + ".vpp");
  check_range(parallel.ga, 0, kMaxCount, path + ".ga");
}

/// Of a table of operations they only name its ranks: (tp, cp, dp, pp) of each.
void check_ranks_of_tables(const Parallelism& parallel, const std::string& path) {
  std::int64_t left = parallel.gpus;
  for (const std::int64_t ways : {parallel.tp, parallel.cp, parallel.pp}) {
    if (left % ways != 0) {
      throw Error(fmt::format("{} GPUs are no multiple of tp {} x cp {} x pp {}", parallel.gpus,
                              parallel.tp, parallel.cp, parallel.pp))
          .field(path)
          .expected("numbers whose product divides gpus");
    }
    left /= ways;
  }
}

std::string layer_path(const std::string& path, std::size_t layer, std::string_view member) {
  return fmt::format("{}.layers[{}].{}", path, layer, member);
}

void check_phase(const LayerPhase& phase, const std::string& path, std::size_t layer,
                 std::string_view member) {
  if (phase.compute < Time() || phase.bytes < Bytes()) {
    throw Error("a time or a size is negative").field(layer_path(path, layer, member));
  }
  if (phase.comm == CommType::kSendRecv) {
    throw Error("a layer cannot send to one rank")
        .field(layer_path(path, layer, member))
        .expected("a collective")
        .hint("give the work rank by rank, as an op_table");
  }
}

void check_layer_list(const std::vector<std::int32_t>& ids, std::size_t layers,
                      const std::string& path) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || static_cast<std::size_t>(ids[i]) >= layers) {
      throw Error(fmt::format("there is no layer {}", ids[i]))
          .field(fmt::format("{}[{}]", path, i))
          .expected(fmt::format("a layer from 0 to {}", layers - 1));
    }
  }
}

void check_layer_table(const LayerTable& table, const std::string& path) {
  if (!is_simai_policy(table.policy)) {
    throw Error(fmt::format("unknown parallelism policy '{}'", printable(table.policy)))
        .field(path + ".policy")
        .expected(join(simai_policies(), ", "));
  }
  if (!std::isfinite(table.pp_comm_bytes) || table.pp_comm_bytes < 0) {
    throw Error("not a size").field(path + ".pp_comm_bytes").expected("a number of 0 or more");
  }
  check_range(table.mode, 0, std::numeric_limits<std::int32_t>::max(), path + ".mode");
  if (table.layers.empty()) {
    throw Error("the job has no layers").field(path + ".layers").expected("at least one layer");
  }
  if (table.layer_policies.size() !=
      (table.policy == kCustomizedPolicy ? table.layers.size() : 0)) {
    throw Error(fmt::format("{} layers have a policy of their own", table.layer_policies.size()))
        .field(path + ".layers")
        .expected(fmt::format("one for each layer under {}, none else", kCustomizedPolicy));
  }
  for (std::size_t i = 0; i < table.layers.size(); ++i) {
    const Layer& layer = table.layers[i];
    if (layer.name < 0 || static_cast<std::size_t>(layer.name) >= table.names.size()) {
      throw Error("the name is not in the table of names").field(layer_path(path, i, "name"));
    }
    check_phase(layer.forward, path, i, "forward");
    check_phase(layer.input_grad, path, i, "input_grad");
    check_phase(layer.weight_grad, path, i, "weight_grad");
    if (layer.update < Time()) {
      throw Error("a time is negative").field(layer_path(path, i, "update_ps"));
    }
    if (!table.layer_policies.empty() && !is_simai_policy(table.layer_policies[i])) {
      throw Error(
          fmt::format("unknown parallelism policy '{}'", printable(table.layer_policies[i])))
          .field(layer_path(path, i, "policy"))
          .expected(join(simai_policies(), ", "));
    }
  }
  check_layer_list(table.checkpoints, table.layers.size(), path + ".checkpoints");
  check_layer_list(table.checkpoint_initiates, table.layers.size(), path + ".checkpoint_initiates");
}

}  // namespace

void validate(const Workload& workload) {
  if (workload.jobs.empty()) {
    throw Error("there are no jobs").field("jobs").expected("at least one job");
  }
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < workload.jobs.size(); ++i) {
    const WorkloadJob& job = workload.jobs[i];
    const std::string path = fmt::format("jobs[{}]", i);
    if (job.name.empty() || !names.insert(job.name).second) {
      throw Error(job.name.empty() ? "the name is empty" : "another job has this name")
          .field(path + ".name")
          .expected("a name of its own");
    }
    check_parallelism(job.parallel, path + ".parallel");
    if (const auto* table = std::get_if<LayerTable>(&job.work)) {
      check_layer_table(*table, path + ".layer_table");
    } else {
      check_range(job.parallel.gpus, 1, kMaxGpus, path + ".parallel.gpus");
      check_ranks_of_tables(job.parallel, path + ".parallel");
      validate_op_table(std::get<OpTable>(job.work), job.parallel.gpus, path + ".op_table");
    }
  }
}

}  // namespace lockstep

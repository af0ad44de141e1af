#include "planner/aceso/cost.h"

#include <algorithm>

namespace lockstep::aceso {
namespace {

/// One stage of a plan, with where it stands.
struct Place {
  const Stage& stage;
  std::int64_t first_op;
  int first_gpu;
  std::int64_t behind;
  bool last() const { return behind == 0; }
};

class Pricer {
 public:
  Pricer(const Plan& plan, const Database& database, const Model& model, const Cluster& cluster,
         Flavour flavour)
      : plan_(plan), database_(database), model_(model), cluster_(cluster), flavour_(flavour) {}

  StagePrice stage(const Place& at) const {
    StagePrice price;
    double reshard_in_ms = 0, reshard_out_ms = 0;
    for (std::int64_t i = 0; i < at.stage.ops(); ++i) {
      const auto index = static_cast<std::size_t>(i);
      const OpPlace& place = at.stage.places[index];
      const OpCost& cost = cost_at(at.first_op + i, plan_.microbatch / place.dp, place);
      price.forward_us += cost.forward_us;
      price.backward_us += cost.backward_us;
      if (at.stage.recompute[index] != 0) {
        price.recompute_us += cost.forward_us;
      }
      if (model_.resharding && i > 0) {
        const Reshard change =
            reshard(database_, traits(at.first_op + i - 1), at.stage.places[index - 1],
                    traits(at.first_op + i), place, cost.input_mb, flavour_);
        reshard_in_ms += change.forward_ms;
        reshard_out_ms += change.backward_ms;
      }
      price.once_us += once_us(at, cost, place);
    }
    add_transfers(at, price);
    price.in_us += 1000 * reshard_in_ms;
    price.out_us += 1000 * reshard_out_ms;
    price.once_us += tied_embedding_us(at);
    price.once_us /= static_cast<double>(plan_.microbatches());
    price.time_ms = (price.forward_us + price.backward_us + price.in_us + price.out_us +
                     price.recompute_us + price.once_us) /
                    1000;
    const StageMemory memory = stage_memory(at.stage, at.first_op, at.behind, plan_.microbatch,
                                            plan_.microbatches(), database_, model_, flavour_);
    price.weights_mb = memory.weights_mb;
    price.memory_mb = memory.total_mb;
    price.reserved_mb = memory.reserved_mb;
    return price;
  }

  /// Section 4.5 of the source: figures that Aceso's search goes by.
  void derive(const Place& at, double slowest_ms, StagePrice& price) const {
    const double gpus = at.stage.gpus;
    double forward = 0, backward = 0;
    for (std::int64_t i = 0; i < at.stage.ops(); ++i) {
      const OpCost& cost = single(at, i);
      forward += cost.forward_us;
      backward += cost.backward_us;
    }
    const double in = peer_us(database_, single(at, 0).input_mb, in_crosses(at), flavour_);
    const double out =
        peer_us(database_, single(at, at.stage.ops() - 1).output_mb, out_crosses(at), flavour_);
    price.ideal_ms = (forward + backward) / gpus / 1000;
    price.efficiency_loss_ms = (price.forward_us + price.backward_us) / 1000 - price.ideal_ms;
    const double efficiency = (forward + backward + in + out) / 1000 / (price.time_ms * gpus);
    const double gap = slowest_ms - price.iteration_ms;
    double idle = gap;
    if (price.recompute_us > 0) {
      idle = gap / 2;
    } else {
      const double room =
          (cluster_.memory_limit_mb - price.memory_mb) / price.memory_mb * price.iteration_ms;
      idle = room < gap ? room + (gap - room) / 2 : gap;
    }
    price.efficient_time_ms = idle * gpus * efficiency;
  }

 private:
  const OpCost& cost_at(std::int64_t op, std::int64_t microbatch, const OpPlace& place) const {
    return database_.cost(database_.ops[static_cast<std::size_t>(op)], microbatch, place.tp,
                          place.algorithm);
  }
  const OpTraits& traits(std::int64_t op) const {
    return database_.traits[static_cast<std::size_t>(database_.ops[static_cast<std::size_t>(op)])];
  }
  /// The op on one GPU with the whole microbatch, by its own algorithm.
  const OpCost& single(const Place& at, std::int64_t op) const {
    return cost_at(at.first_op + op, plan_.microbatch,
                   {1, 1, at.stage.places[static_cast<std::size_t>(op)].algorithm});
  }
  bool in_crosses(const Place& at) const {
    return at.first_gpu > 0 && at.first_gpu % cluster_.gpus_per_node == 0;
  }
  bool out_crosses(const Place& at) const {
    return (at.first_gpu + at.stage.gpus) % cluster_.gpus_per_node == 0;
  }

  void add_transfers(const Place& at, StagePrice& price) const {
    const OpPlace& first = at.stage.places.front();
    const OpPlace& last = at.stage.places.back();
    const double size_in = cost_at(at.first_op, plan_.microbatch / first.dp, first).input_mb;
    // Strict: the tensor-parallel degree of the first op, whatever the last one's.
    const OpPlace ending{flavour_ == Flavour::kStrict ? first.tp : last.tp, last.dp,
                         last.algorithm};
    const double size_out =
        cost_at(at.first_op + at.stage.ops() - 1, plan_.microbatch / last.dp, ending).output_mb;
    if (flavour_ == Flavour::kStrict || at.first_gpu > 0) {
      price.in_us = peer_us(database_, size_in, in_crosses(at), flavour_);
    }
    if (flavour_ == Flavour::kStrict || !at.last()) {
      price.out_us = peer_us(database_, size_out, out_crosses(at), flavour_);
    }
  }

  /// Fixed flavour: gradients summed over the op's replicas, and the optimizer's pass over them.
  double once_us(const Place& at, const OpCost& cost, const OpPlace& place) const {
    return flavour_ == Flavour::kStrict
               ? 0
               : gradient_us(database_, cost.weights_mb, place.dp,
                             at.first_gpu / cluster_.gpus_per_node !=
                                 (at.first_gpu + at.stage.gpus - 1) / cluster_.gpus_per_node) +
                     optimizer_us(cost.weights_mb, model_, cluster_);
  }

  /// Fixed flavour: gpt ties the embedding of its first stage to the head of its last one.
  double tied_embedding_us(const Place& at) const {
    const bool tied = model_.family == Family::kGpt || model_.family == Family::kScaleLayer;
    if (flavour_ == Flavour::kStrict || !tied || plan_.stages.size() < 2 ||
        (at.first_gpu > 0 && !at.last())) {
      return 0;
    }
    const bool head = at.first_gpu > 0;
    const OpPlace& place = head ? at.stage.places.back() : at.stage.places.front();
    const std::int64_t op = head ? at.first_op + at.stage.ops() - 1 : at.first_op;
    return gradient_us(database_, cost_at(op, plan_.microbatch / place.dp, place).weights_mb, 2,
                       cluster_.nodes > 1);
  }

  const Plan& plan_;
  const Database& database_;
  const Model& model_;
  const Cluster& cluster_;
  Flavour flavour_;
};

}  // namespace

double gradient_us(const Database& database, double weights_mb, int dp, bool crosses) {
  if (dp < 2 || weights_mb == 0) {
    return 0;
  }
  const double moved = 2.0 * (dp - 1) / dp * weights_mb;
  const PeerTable& table = crosses ? database.inter : database.intra;
  return moved / (table.back() * 0.001024);
}

double optimizer_us(double weights_mb, const Model& model, const Cluster& cluster) {
  // fp16: gradient and copy out (2 + 2 B), main copy and both moments in and out (24 B) per 2 B of
  // weights. fp32: gradient in, weights and both moments in and out: 28 B per 4 B.
  const double moved = weights_mb * (model.fp32 ? 7.0 : 14.0) * 1.048576;
  return moved / cluster.memory_bandwidth_gbps * 1000;
}

PlanPrice price_plan(const Plan& plan, const Database& database, const Model& model,
                     const Cluster& cluster, Flavour flavour) {
  const Pricer pricer(plan, database, model, cluster, flavour);
  std::vector<Place> places;
  std::int64_t op = 0;
  int gpu = 0;
  auto behind = static_cast<std::int64_t>(plan.stages.size());
  for (const Stage& stage : plan.stages) {
    places.push_back({stage, op, gpu, --behind});
    op += stage.ops();
    gpu += stage.gpus;
  }
  PlanPrice price;
  double sum = 0;
  for (const Place& place : places) {
    price.stages.push_back(pricer.stage(place));
    sum += price.stages.back().time_ms;
    price.memory_mb = std::max(price.memory_mb, price.stages.back().memory_mb);
  }
  const auto rest = static_cast<double>(plan.microbatches() - 1);
  for (StagePrice& stage : price.stages) {
    stage.iteration_ms = stage.time_ms * rest + sum;
    price.time_ms = std::max(price.time_ms, stage.iteration_ms);
  }
  for (std::size_t s = 0; s < places.size(); ++s) {
    pricer.derive(places[s], price.time_ms, price.stages[s]);
    price.total_gpu_time += price.stages[s].time_ms * places[s].stage.gpus * rest;
  }
  return price;
}

}  // namespace lockstep::aceso

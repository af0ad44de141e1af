#include "planner/job/mixed_bound.h"

#include <algorithm>

namespace lockstep {
namespace {

/// One kind of a mixed job's pipelines.
class KindCosts final : public StageCosts {
 public:
  KindCosts(MixedBound& bound, const MixedJob& mixed, const MixedPieces& pieces,
            std::vector<std::vector<PlacedShape>>& piece_shapes, const PipelineKind& kind,
            const Job& job)
      : bound_(bound), pieces_(pieces), piece_shapes_(piece_shapes), kind_(kind), job_(job) {
    std::int64_t layer = 0;
    const auto tp = static_cast<std::int32_t>(mixed.base.tp);
    for (std::size_t s = 0; s < kind.layers.size(); ++s) {
      first_piece_.push_back(pieces.at(layer));
      cuts_.push_back(
          pieces.cuts(layer, kind.layers[s], s == 0 && !mixed.base.model.before.empty()));
      layer += kind.layers[s];
      std::vector<std::vector<std::int32_t>> pairs;
      for (const std::vector<std::int32_t>& stages : kind.first_rank) {
        for (std::int32_t i = 0; s + 1 < stages.size() && i < tp; ++i) {
          pairs.push_back({stages[s] + i, stages[s + 1] + i});
        }
      }
      next_.push_back(bound.bounds().shapes_of(pairs));
    }
  }

  const ModelTimes& model(std::size_t stage) override {
    return bound_.units(kind_.gpu_type[stage], job_);
  }
  double time_s(std::size_t stage, const Operator& op) override {
    return bound_.time_s(kind_.gpu_type[stage], job_, op);
  }
  double send_s(std::size_t stage, Bytes bytes) override {
    return bound_.bounds().least_s(next_[stage], CommType::kSendRecv, bytes);
  }
  double copies_s(std::size_t stage, std::size_t piece, bool, CommType comm, Bytes bytes,
                  std::int64_t) override {
    const std::size_t at = first_piece_[stage] + piece;
    std::vector<PlacedShape>& shapes = piece_shapes_[at];
    if (shapes.empty()) {
      shapes = bound_.bounds().shapes_of(pieces_.groups[at]);
    }
    return bound_.bounds().least_s(shapes, comm, bytes);
  }
  std::span<const std::size_t> cuts(std::size_t stage) const override { return cuts_[stage]; }

 private:
  MixedBound& bound_;
  const MixedPieces& pieces_;
  std::vector<std::vector<PlacedShape>>& piece_shapes_;
  const PipelineKind& kind_;
  const Job& job_;
  std::vector<std::size_t> first_piece_;
  std::vector<std::vector<std::size_t>> cuts_;
  std::vector<std::vector<PlacedShape>> next_;  ///< of each stage and the one behind it
};

}  // namespace

MixedBound::Ground::Ground(const Topology& topology, const std::vector<NodeId>& gpus,
                           std::int64_t tp, OperatorTime time, const Speeds& speeds)
    : bounds(topology, gpus, speeds), cache(std::move(time), bounds, speeds.compute) {
  layout.gpus = std::ssize(gpus);
  layout.tp = layout.etp = tp;
}

MixedBound::MixedBound(const Topology& topology, std::vector<GpuPool> pools,
                       std::vector<OperatorTime> times, const Speeds& speeds,
                       std::vector<double> compute)
    : topology_(topology),
      pools_(std::move(pools)),
      times_(std::move(times)),
      speeds_(speeds),
      compute_(std::move(compute)),
      all_(topology, speeds) {
  compute_.resize(pools_.size(), 1);
}

MixedBound::Ground& MixedBound::ground(std::size_t pool, std::int64_t tp) {
  std::unique_ptr<Ground>& found = grounds_[{pool, tp}];
  if (!found) {
    const std::vector<NodeId> nodes = topology_.gpus();
    std::vector<NodeId> gpus;
    for (const std::int32_t first : pools_[pool].slots(tp)) {
      for (std::int64_t i = 0; i < tp; ++i) {
        gpus.push_back(nodes[static_cast<std::size_t>(first + i)]);
      }
    }
    Speeds speeds = speeds_;
    speeds.compute *= compute_[pool];
    found = std::make_unique<Ground>(topology_, gpus, tp, times_[pool], speeds);
  }
  return *found;
}

const ModelTimes& MixedBound::units(std::size_t pool, const Job& job) {
  Ground& place = ground(pool, job.tp);
  return place.cache.of(job, place.layout);
}

double MixedBound::time_s(std::size_t pool, const Job& job, const Operator& op) {
  return ground(pool, job.tp).cache.time_s(op);
}

StepFloor MixedBound::of(const MixedJob& mixed) {
  const MixedPieces pieces = pieces_of(mixed);
  std::vector<std::vector<PlacedShape>> piece_shapes(pieces.groups.size());
  StepFloor floor;
  double ranks = 0;
  for (const PipelineKind& kind : mixed.kinds) {
    const Job job = job_of(mixed, kind);
    KindCosts costs(*this, mixed, pieces, piece_shapes, kind, job);
    const StepFloor one = step_floor(job, costs);
    floor.step_s = std::max(floor.step_s, one.step_s);
    const auto weight = static_cast<double>(kind.pipelines() * kind.stages());
    floor.compute_s += weight * one.compute_s;
    ranks += weight;
  }
  floor.compute_s /= ranks;
  return floor;
}

}  // namespace lockstep

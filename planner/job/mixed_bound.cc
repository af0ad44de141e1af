#include "planner/job/mixed_bound.h"

#include <algorithm>
#include <utility>

namespace lockstep {
namespace {

/// Of a piece's dense parameters, and of its experts.
using PieceShapes = std::map<std::pair<std::size_t, bool>, std::vector<PlacedShape>>;

/// One kind of a mixed job's pipelines.
class KindCosts final : public StageCosts {
 public:
  KindCosts(MixedBound& bound, const MixedJob& mixed, const MixedPieces& pieces,
            PieceShapes& piece_shapes, const PipelineKind& kind, const Job& job)
      : bound_(bound),
        layout_(stage_layout(mixed)),
        pieces_(pieces),
        piece_shapes_(piece_shapes),
        kind_(kind),
        job_(job) {
    const std::vector<std::int64_t> layer = first_layers(kind);
    for (std::size_t v = 0; v < kind.layers.size(); ++v) {
      first_piece_.push_back(pieces.at(layer[v]));
      cuts_.push_back(
          pieces.cuts(layer[v], kind.layers[v], v == 0 && !mixed.base.model.before.empty()));
    }
    // The last stage's next chunk is the first's.
    const auto width = static_cast<std::int32_t>(mixed.width());
    const std::size_t stages = kind.gpu_type.size();
    for (std::size_t s = 0; s < stages; ++s) {
      std::vector<std::vector<std::int32_t>> pairs;
      for (const std::vector<std::int32_t>& first : kind.first_rank) {
        for (std::int32_t i = 0; stages > 1 && i < width; ++i) {
          pairs.push_back({first[s] + i, first[(s + 1) % stages] + i});
        }
      }
      next_.push_back(bound.bounds().shapes_of(pairs));
    }
  }

  const ModelTimes& model(std::size_t stage) override {
    return bound_.units(kind_.gpu_type[stage], layout_, job_);
  }
  double time_s(std::size_t stage, const Operator& op) override {
    return bound_.time_s(kind_.gpu_type[stage], layout_, op);
  }
  double send_s(std::size_t stage, Bytes bytes) override {
    return bound_.bounds().least_s(next_[stage], CommType::kSendRecv, bytes);
  }
  double copies_s(const ChunkPiece& where, bool expert, CommType comm, Bytes bytes,
                  std::int64_t replicas) override {
    if (bytes == Bytes()) {
      return 0;
    }
    if (replicas > 1) {
      return bound_.bounds().least_s(own_shards(), comm, bytes);
    }
    const std::size_t at = first_piece_[virtual_stage(where.stage, where.chunk)] + where.piece;
    std::vector<PlacedShape>& shapes = piece_shapes_[{at, expert}];
    if (shapes.empty()) {
      shapes = bound_.bounds().shapes_of((expert ? pieces_.expert : pieces_.dense)[at]);
    }
    return bound_.bounds().least_s(shapes, comm, bytes);
  }
  std::span<const std::size_t> cuts(std::size_t stage, std::size_t chunk) const override {
    return cuts_[virtual_stage(stage, chunk)];
  }

 private:
  std::size_t virtual_stage(std::size_t stage, std::size_t chunk) const {
    return chunk * kind_.gpu_type.size() + stage;
  }

  /// Hybrid sharding: those within a stage, of all its pipelines.
  const std::vector<PlacedShape>& own_shards() {
    if (shards_.empty()) {
      std::vector<std::vector<std::int32_t>> groups;
      for (const std::vector<std::int32_t>& members : groups_of(layout_, RankGroup::kDpCp)) {
        for (const std::vector<std::int32_t>& stages : kind_.first_rank) {
          for (const std::int32_t first : stages) {
            std::vector<std::int32_t> group = members;
            std::ranges::for_each(group, [first](std::int32_t& rank) { rank += first; });
            groups.push_back(std::move(group));
          }
        }
      }
      shards_ = bound_.bounds().shapes_of(groups);
    }
    return shards_;
  }

  MixedBound& bound_;
  RankLayout layout_;
  const MixedPieces& pieces_;
  PieceShapes& piece_shapes_;
  const PipelineKind& kind_;
  const Job& job_;
  std::vector<std::size_t> first_piece_;        ///< by virtual stage
  std::vector<std::vector<std::size_t>> cuts_;  ///< likewise
  std::vector<PlacedShape> shards_;
  std::vector<std::vector<PlacedShape>> next_;  ///< of each stage and the one behind it
};

}  // namespace

MixedBound::Ground::Ground(const Topology& topology, const std::vector<NodeId>& gpus,
                           RankLayout stage, OperatorTime time, const Speeds& speeds)
    : bounds(topology, gpus, speeds),
      cache(std::move(time), bounds, speeds.compute),
      layout(std::move(stage)) {
  layout.gpus = std::ssize(gpus);
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

MixedBound::Ground& MixedBound::ground(std::size_t pool, const RankLayout& stage) {
  std::unique_ptr<Ground>& found =
      grounds_[{pool, stage.gpus, stage.tp, stage.cp, stage.ep, stage.etp}];
  if (!found) {
    const std::vector<NodeId> nodes = topology_.gpus();
    std::vector<NodeId> gpus;
    for (const std::int32_t first : pools_[pool].slots(stage.gpus, stage.tp)) {
      for (std::int64_t i = 0; i < stage.gpus; ++i) {
        gpus.push_back(nodes[static_cast<std::size_t>(first + i)]);
      }
    }
    Speeds speeds = speeds_;
    speeds.compute *= compute_[pool];
    found = std::make_unique<Ground>(topology_, gpus, stage, times_[pool], speeds);
  }
  return *found;
}

const ModelTimes& MixedBound::units(std::size_t pool, const RankLayout& stage, const Job& job) {
  Ground& place = ground(pool, stage);
  return place.cache.of(job, place.layout);
}

double MixedBound::time_s(std::size_t pool, const RankLayout& stage, const Operator& op) {
  return ground(pool, stage).cache.time_s(op);
}

StepFloor MixedBound::of(const MixedJob& mixed) {
  const MixedPieces pieces = pieces_of(mixed);
  PieceShapes piece_shapes;
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

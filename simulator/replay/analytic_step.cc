#include "simulator/replay/analytic_step.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "simulator/network/analytic/collective_time.h"
#include "simulator/replay/pipeline.h"
#include "simulator/replay/simai_layers.h"

namespace lockstep {
namespace {

constexpr std::string_view kOutsidePipeline = "embedding_layer";
constexpr std::int64_t kMaxCount = 2'147'483'647;

std::size_t index_of(GroupKind kind) { return static_cast<std::size_t>(kind); }

void check_degrees(const Parallelism& p, std::int64_t gpus) {
  const auto check = [](std::int64_t value, std::int64_t low, std::string_view field) {
    if (value < low || value > kMaxCount) {
      throw Error(fmt::format("{} is out of range", value))
          .field(field)
          .expected(fmt::format("{} to {}", low, kMaxCount));
    }
  };
  check(gpus, 1, "gpus");
  check(p.tp, 1, "tp");
  check(p.ep, 1, "ep");
  check(p.pp, 1, "pp");
  check(p.vpp, 0, "vpp");
  check(p.ga, 0, "ga");
}

std::int64_t exact_quotient(std::int64_t whole, std::int64_t part, std::string_view what) {
  if (whole % part != 0) {
    throw Error(fmt::format("{} do not divide into {}", whole, what))
        .field("gpus")
        .expected(fmt::format("a multiple of {}", part));
  }
  return whole / part;
}

std::int64_t group_size(GroupKind group, const Parallelism& p, std::int64_t gpus) {
  switch (group) {
    case GroupKind::kTp:
      return p.tp;
    case GroupKind::kEp:
      return p.ep;
    case GroupKind::kPp:
      return p.pp;
    case GroupKind::kWorld:
      return gpus;
    case GroupKind::kDp:
      return exact_quotient(gpus, p.tp * p.pp, fmt::format("tp {} x pp {}", p.tp, p.pp));
    case GroupKind::kDpEp: {
      const std::int64_t dp = group_size(GroupKind::kDp, p, gpus);
      return exact_quotient(dp, p.ep, fmt::format("ep {}", p.ep));
    }
    case GroupKind::kCp:
      break;
  }
  throw Error("the analytic engine knows no degree for this group")
      .field(name_of(group))
      .expected("tp, ep, dp, dp_ep, pp or world");
}

/// SimAI scales whole nanoseconds in single precision. Of a negative time, which it holds unsigned
/// and so near 2^64, nothing is left: rounded to 2^64 it becomes 0 on the way back.
Time simai_exposed(Time comm, double overlap) {
  if (comm < Time()) {
    if (overlap > 0) {
      throw Error(
          "a server has fewer NICs than groups that share them; with an overlap SimAI "
          "prints a time of centuries for that")
          .field("nics-per-server")
          .hint("the default flavour lets groups share NICs");
    }
    return Time();
  }
  const float ns = static_cast<float>(comm.count_ns()) * (1 - static_cast<float>(overlap));
  return Time::ns(static_cast<std::int64_t>(ns));
}

Time scaled(Time time, double factor) { return Time::seconds(time.seconds() * factor); }

class Step {
 public:
  Step(const LayerTable& table, const Parallelism& parallel, const AnalyticOptions& options)
      : table_(table), parallel_(parallel), options_(options) {
    validate(options);
    if (options_.gpus == 0) {
      options_.gpus = parallel.gpus;
    }
    check_degrees(parallel_, options_.gpus);
    simai_ = options_.flavour == Flavour::kSimai;
    result_.parallel = parallel_;
    if (!simai_) {
      settle_pipeline(parallel_, options_.chunks_per_stage, result_.warnings);
    }
    chunks_ = parallel_.vpp;
  }

  StepResult run() {
    result_.engine = "analytic";
    result_.semantics = "simai";
    result_.flavour = name_of(options_.flavour);
    result_.gpus = static_cast<std::int32_t>(options_.gpus);
    result_.names = table_.names;
    warn_of_policy(table_, result_.warnings);
    result_.layers.reserve(table_.layers.size());
    const std::vector<std::int64_t> runs = forward_runs(
        table_.layers.size(), listed(table_.checkpoints), listed(table_.checkpoint_initiates));
    for (std::size_t i = 0; i < table_.layers.size(); ++i) {
      const std::string& name = table_.names[static_cast<std::size_t>(table_.layers[i].name)];
      with_context(fmt::format("in layer {} ({})", i, name),
                   [&] { add_layer(table_.layers[i], runs[i], name != kOutsidePipeline); });
    }
    finish();
    return std::move(result_);
  }

 private:
  std::span<const std::int32_t> listed(std::span<const std::int32_t> layers) const {
    return simai_ ? simai_listed(layers) : layers;
  }

  PhaseResult phase(LayerColumn column, const LayerPhase& in, std::int64_t runs) {
    PhaseResult out;
    out.compute = in.compute * runs;
    out.bytes = in.bytes;
    out.comm_type = in.comm;
    out.group = in.group;
    if (simai_) {
      out.bytes = simai_bytes(column, in.bytes);
      runs = 1;
    }
    if (!simai_ && in.comm == CommType::kNone) {
      return out;
    }
    const std::int64_t ranks = simai_ ? simai_group_size(column, in.group, parallel_, options_.gpus)
                                      : group_size(in.group, parallel_, options_.gpus);
    out.group_size = static_cast<std::int32_t>(ranks);
    const GroupDegrees degrees{options_.gpus, parallel_.tp, parallel_.ep, parallel_.pp};
    out.comm = collective_time({in.comm, in.group, ranks, out.bytes}, degrees, options_) * runs;
    if (out.comm < Time() && !std::exchange(short_of_nics_, true)) {
      result_.warnings.push_back(
          fmt::format("the {} NICs of a server are fewer than its {} groups: as in SimAI, their "
                      "communication counts as nothing",
                      options_.nics_per_server, name_of(in.group)));
    }
    return out;
  }

  double overlap_of(LayerColumn column, GroupKind group) const {
    if (column == LayerColumn::kWeightGrad) {
      return options_.overlap.dp;
    }
    return group == GroupKind::kEp ? options_.overlap.ep : options_.overlap.tp;
  }

  /// `group` is where the exposure is booked.
  void expose(LayerColumn column, GroupKind group, PhaseResult& phase) {
    const double overlap = overlap_of(column, group);
    phase.exposed = simai_ ? simai_exposed(phase.comm, overlap) : scaled(phase.comm, 1 - overlap);
    result_.exposed_by_group[index_of(group)] += phase.exposed;
    result_.exposed += phase.exposed;
  }

  void add_layer(const Layer& layer, std::int64_t runs, bool in_pipeline) {
    LayerResult out;
    out.name = layer.name;
    out.forward = phase(LayerColumn::kForward, layer.forward, runs);
    out.input_grad = phase(LayerColumn::kInputGrad, layer.input_grad, 1);
    out.weight_grad = phase(LayerColumn::kWeightGrad, layer.weight_grad, 1);
    if (simai_) {  // books by the forward column's group, and knows four groups
      const GroupKind forward = has_comm(layer.forward) && layer.forward.group == GroupKind::kEp
                                    ? GroupKind::kEp
                                    : GroupKind::kTp;
      expose(LayerColumn::kForward, forward, out.forward);
      expose(LayerColumn::kInputGrad, forward, out.input_grad);
      expose(LayerColumn::kWeightGrad,
             has_comm(layer.weight_grad) && layer.weight_grad.group == GroupKind::kDpEp
                 ? GroupKind::kDpEp
                 : GroupKind::kDp,
             out.weight_grad);
    } else {
      expose(LayerColumn::kForward, out.forward.group, out.forward);
      expose(LayerColumn::kInputGrad, out.input_grad.group, out.input_grad);
      expose(LayerColumn::kWeightGrad, out.weight_grad.group, out.weight_grad);
    }
    const Time compute = out.forward.compute + out.input_grad.compute + out.weight_grad.compute;
    result_.compute += compute;
    if (in_pipeline) {
      pipelined_ += compute + (simai_ ? out.forward.comm + out.input_grad.comm
                                      : out.forward.exposed + out.input_grad.exposed);
    }
    result_.layers.push_back(out);
  }

  static bool has_comm(const LayerPhase& phase) { return phase.comm != CommType::kNone; }

  Time pipeline_transfers() const {
    const double sends = 2 * static_cast<double>(chunks_) * static_cast<double>(parallel_.ga);
    if (!simai_) {
      if (parallel_.pp == 1) {
        return Time();
      }
      const Bandwidth rate = stage_bandwidth(options_.gpus, options_);
      return Time::seconds(sends * table_.pp_comm_bytes / rate.bytes_per_second() *
                           (1 - options_.overlap.pp.value_or(0)));
    }
    // SimAI divides by the overlap where it means the bandwidth, in GiB/s; counts whole us.
    const float overlap = static_cast<float>(options_.overlap.pp.value_or(1));
    if (overlap == 0) {
      return Time();  // it divides by zero, and the cut to whole us makes 0 of infinity
    }
    const double us =
        sends * (std::trunc(table_.pp_comm_bytes) / 1073741824.0 / overlap * 1e9) / 1000;
    if (!(us < 9e12)) {
      throw_overflow("time");
    }
    const float exposed = static_cast<float>(static_cast<std::int64_t>(us)) * (1 - overlap);
    return Time::us(static_cast<std::int64_t>(exposed));
  }

  void finish() {
    const double slots = static_cast<double>(parallel_.ga) * static_cast<double>(chunks_);
    if (slots > 0) {
      result_.bubble = scaled(pipelined_, static_cast<double>(parallel_.pp - 1) / slots);
    }
    const Time transfers = pipeline_transfers();
    result_.exposed_by_group[index_of(GroupKind::kPp)] += transfers;
    result_.exposed += transfers;
    result_.total = result_.compute + result_.exposed + result_.bubble;
    result_.first_rank_end = result_.last_rank_end = result_.total;
  }

  const LayerTable& table_;
  Parallelism parallel_;
  AnalyticOptions options_;
  bool simai_ = false;
  bool short_of_nics_ = false;
  std::int64_t chunks_ = 1;
  Time pipelined_;
  StepResult result_;
};

}  // namespace

std::vector<std::int64_t> forward_runs(std::size_t layers,
                                       std::span<const std::int32_t> checkpoints,
                                       std::span<const std::int32_t> initiates) {
  const auto sorted = [&](std::span<const std::int32_t> list, std::string_view field) {
    std::vector<std::int32_t> indices(list.begin(), list.end());
    std::sort(indices.begin(), indices.end());
    indices.erase(std::unique(indices.begin(), indices.end()), indices.end());
    if (!indices.empty() &&
        (indices.front() < 0 || static_cast<std::size_t>(indices.back()) >= layers)) {
      throw Error("a layer index is outside the workload")
          .field(field)
          .expected(fmt::format("0 to {}", static_cast<std::int64_t>(layers) - 1));
    }
    return indices;
  };
  const std::vector<std::int32_t> starts = sorted(checkpoints, "checkpoints");
  std::vector<std::int64_t> runs(layers, 0);  // at first: more than the layer before
  for (const std::int32_t end : sorted(initiates, "checkpoint_initiates")) {
    const auto after = std::upper_bound(starts.begin(), starts.end(), end);
    const std::int32_t begin = after == starts.begin() ? 0 : *std::prev(after);
    runs[static_cast<std::size_t>(begin)] += 1;
    runs[static_cast<std::size_t>(end)] -= 1;
  }
  std::int64_t current = 1;
  for (std::int64_t& run : runs) {
    run = current += run;
  }
  return runs;
}

StepResult analytic_step(const LayerTable& table, const Parallelism& parallel,
                         const AnalyticOptions& options) {
  return Step(table, parallel, options).run();
}

}  // namespace lockstep

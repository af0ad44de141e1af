#include "report/end_to_end_csv.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>

#include "base/csv_fields.h"

namespace lockstep {
namespace {

constexpr std::string_view kSummaryTitles =
    "File name, Expose DP comm, Expose DP_EP comm, Expose TP comm, Expose_EP_comm, "
    "Expose_PP_comm, bubble time, total comp, total exposed comm, Total time\n";
constexpr std::string_view kLayerTitles =
    ",fwd compute,wg compute,ig compute,fwd exposed comm,wg exposed comm,ig exposed comm,"
    "fwd total comm,algbw,busbw,wg total comm,algbw,busbw,ig total comm,algbw,busbw";
constexpr std::string_view kOutsidePipeline = "embedding_layer";
constexpr double kGiB = 1073741824.0;

/// As printf("%.*f"), but the sign of "nan" is always the minus that x86 prints.
std::string fixed(double value, int decimals) {
  if (std::isnan(value)) {
    return "-nan";
  }
  std::array<char, 400> text;
  const auto end =
      std::to_chars(text.begin(), text.end(), value, std::chars_format::fixed, decimals).ptr;
  return {text.begin(), end};
}

/// Microseconds; whole nanoseconds are divided as SimAI divides them. It holds them unsigned: a
/// negative time (see collective_time) wraps around.
double us(Time time) {
  return time.count_ps() % 1000 == 0
             ? static_cast<double>(static_cast<std::uint64_t>(time.count_ns())) / 1000.0
             : static_cast<double>(time.count_ps()) / 1e6;
}

/// All in us.
struct Summary {
  double dp = 0, dp_ep = 0, tp = 0, ep = 0, pp = 0;
  double bubble = 0, compute = 0, exposed = 0, total = 0;
};

double total_compute(const StepResult& result) {
  double sum = 0;
  for (const LayerResult& layer : result.layers) {
    sum += us(layer.forward.compute);
    sum += us(layer.weight_grad.compute);
    sum += us(layer.input_grad.compute);
  }
  return sum;
}

/// Totals as SimAI adds them up, layer by layer.
Summary simai_summary(const StepResult& result, bool analytical) {
  Summary s;
  double pipelined = 0;
  for (const LayerResult& layer : result.layers) {
    const PhaseResult& forward = layer.forward;
    const PhaseResult& input_grad = layer.input_grad;
    const PhaseResult& weight_grad = layer.weight_grad;
    if (result.names[static_cast<std::size_t>(layer.name)] != kOutsidePipeline) {
      const Time waits =
          analytical ? forward.comm + input_grad.comm : forward.exposed + input_grad.exposed;
      pipelined += us(waits + forward.compute + weight_grad.compute + input_grad.compute);
    }
    const bool dp_ep =
        weight_grad.comm_type != CommType::kNone && weight_grad.group == GroupKind::kDpEp;
    (dp_ep ? s.dp_ep : s.dp) += us(weight_grad.exposed);
    const bool ep = forward.comm_type != CommType::kNone && forward.group == GroupKind::kEp;
    (ep ? s.ep : s.tp) += us(forward.exposed + input_grad.exposed);
    s.exposed += us(forward.exposed);
    s.exposed += us(weight_grad.exposed);
    s.exposed += us(input_grad.exposed);
  }
  const Parallelism& p = result.parallel;
  s.bubble = pipelined * (static_cast<double>(p.pp - 1) /
                          (static_cast<double>(p.ga) * static_cast<double>(p.vpp)));
  return s;
}

Summary result_summary(const StepResult& result) {
  const auto group = [&](GroupKind kind) {
    return us(result.exposed_by_group[static_cast<std::size_t>(kind)]);
  };
  Summary s;
  s.dp = group(GroupKind::kDp);
  s.dp_ep = group(GroupKind::kDpEp);
  s.tp = group(GroupKind::kTp) + group(GroupKind::kCp) + group(GroupKind::kWorld);
  s.ep = group(GroupKind::kEp);
  s.bubble = us(result.bubble);
  s.exposed = us(result.exposed) - group(GroupKind::kPp);
  return s;
}

Summary summary_of(const StepResult& result, EndToEndLayout layout) {
  const bool analytical = layout == EndToEndLayout::kAnalytical;
  Summary s =
      result.flavour == "simai" ? simai_summary(result, analytical) : result_summary(result);
  s.compute = result.flavour == "simai" || analytical ? total_compute(result) : us(result.compute);
  s.pp = us(result.exposed_by_group[static_cast<std::size_t>(GroupKind::kPp)]);
  if (analytical) {
    s.total = s.compute + s.exposed + s.bubble + s.pp;
  } else {
    s.exposed = us(result.total) - s.compute;
    s.total = s.compute + s.exposed;
  }
  return s;
}

std::string summary_line(const Summary& s, std::string_view name) {
  const auto whole = [](double value) {
    return std::isfinite(value) ? fixed(value, 0) : std::string("NaN or Inf");
  };
  std::string line(name);
  for (const double value : {s.dp, s.dp_ep, s.tp, s.ep, s.pp, s.bubble, s.compute, s.exposed}) {
    line += ", " + whole(value) + " (" + fixed(value / s.total * 100, 2) + "%)";
  }
  return line + ", " + whole(s.total) + "\n";
}

struct Rates {
  float algorithm, bus;  ///< GiB/s
};

/// In SimAI's precision and order of operations.
Rates rates_of(const PhaseResult& phase) {
  const float algorithm = static_cast<float>(static_cast<double>(phase.bytes.count()) /
                                             us(phase.comm) * 1000000 / kGiB);
  const auto others = static_cast<float>(phase.group_size - 1);
  const double ranks = phase.group_size;
  switch (phase.comm_type) {
    case CommType::kAllReduce:
      return {algorithm, static_cast<float>(algorithm * 2 * others / ranks)};
    case CommType::kAllGather:
    case CommType::kReduceScatter:
    case CommType::kAllToAll:
      return {algorithm, static_cast<float>(algorithm * others / ranks)};
    default:
      return {algorithm, 0};
  }
}

class Table {
 public:
  explicit Table(EndToEndLayout layout)
      : analytical_(layout == EndToEndLayout::kAnalytical),
        run_(analytical_ ? "Analytical_test" : "test1") {}

  void titles() {
    text_ += "layer_name," + run_ + std::string(kLayerTitles);
    text_ += analytical_ ? "\n" : ",workload finished at\n";
  }

  void layer(const std::string& name, const LayerResult& layer, double end_us) {
    begin_row(name);
    for (const PhaseResult* phase : {&layer.forward, &layer.weight_grad, &layer.input_grad}) {
      cell(us(phase->compute));
    }
    for (const PhaseResult* phase : {&layer.forward, &layer.weight_grad, &layer.input_grad}) {
      cell(us(phase->exposed));
    }
    for (const PhaseResult* phase : {&layer.forward, &layer.weight_grad, &layer.input_grad}) {
      cell(us(phase->comm));
      const Rates rates = rates_of(*phase);
      text_ += ',' + fixed(rates.algorithm, analytical_ ? 2 : 6);
      text_ += ',' + fixed(rates.bus, analytical_ ? 2 : 6);
    }
    if (!analytical_) {
      cell(end_us);
    }
    text_ += '\n';
  }

  void sums(const StepResult& result) {
    using Get = Time PhaseResult::*;
    const auto sum = [&](PhaseResult LayerResult::*phase, Get get) {
      double total = 0;
      for (const LayerResult& layer : result.layers) {
        total += us(layer.*phase.*get);
      }
      return total;
    };
    constexpr std::array kPhases{&LayerResult::forward, &LayerResult::weight_grad,
                                 &LayerResult::input_grad};
    begin_row("SUM");
    for (const Get get : {&PhaseResult::compute, &PhaseResult::exposed}) {
      for (const auto phase : kPhases) {
        cell(sum(phase, get));
      }
    }
    for (const auto phase : kPhases) {
      cell(sum(phase, &PhaseResult::comm));
      text_ += ",NONE,NONE";
    }
    text_ += '\n';
  }

  void totals(const Summary& s) {
    text_ += "total exposed comm," + fixed(s.exposed, 6) + ",total comp," + fixed(s.compute, 6) +
             ",total time," + fixed(s.total, 6) + '\n';
  }

  void add(std::string_view text) { text_ += text; }
  const std::string& run() const { return run_; }
  std::string take() { return std::move(text_); }

 private:
  void begin_row(const std::string& name) { text_ += csv_field(name) + ',' + run_; }
  void cell(double value_us) { text_ += ',' + fixed(value_us, analytical_ ? 0 : 6); }

  bool analytical_;
  std::string run_;
  std::string text_;
};

}  // namespace

std::string end_to_end_csv(const StepResult& result, EndToEndLayout layout,
                           std::string_view prefix) {
  const Summary summary = summary_of(result, layout);
  const bool analytical = layout == EndToEndLayout::kAnalytical;
  Table table(layout);
  table.add(kSummaryTitles);
  table.add(summary_line(summary, analytical ? prefix : std::string_view(table.run())));
  table.titles();
  const double end_us = us(result.total);
  for (const LayerResult& layer : result.layers) {
    table.layer(result.names[static_cast<std::size_t>(layer.name)], layer, end_us);
  }
  if (!analytical) {
    table.sums(result);
    table.totals(summary);
  }
  return table.take();
}

std::string end_to_end_name(std::string_view prefix) {
  return std::string(prefix) + "EndToEnd.csv";
}

}  // namespace lockstep

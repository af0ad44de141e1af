#include "report/step_table.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "report/packet_counts.h"
#include "report/port_loads.h"

namespace lockstep {
namespace {

constexpr std::size_t kMinWidth = 60;
constexpr std::size_t kTop = 10;
constexpr std::size_t kLabelWidth = 26, kTimeWidth = 13, kShareWidth = 9;

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

std::size_t characters(std::string_view text) {
  return text.size() -
         static_cast<std::size_t>(std::count_if(text.begin(), text.end(), continues_character));
}

/// Exactly `width` characters: cut with ".." or padded on the right.
std::string left(std::string_view text, std::size_t width) {
  if (characters(text) <= width) {
    return std::string(text) + std::string(width - characters(text), ' ');
  }
  std::size_t end = 0;
  for (std::size_t begun = 0; end < text.size(); ++end) {
    if (!continues_character(text[end]) && ++begun > width - 2) {
      break;
    }
  }
  return std::string(text.substr(0, end)) + "..";
}

std::string right(std::string_view text, std::size_t width) {
  return std::string(width - std::min(width, characters(text)), ' ') + std::string(text);
}

std::string percent(double share) { return fmt::format("{:.1f} %", share * 100); }

/// Flags stay as they are: they are a model's, and may name files.
std::string_view base_name(std::string_view path) {
  return path.starts_with("--") ? path : path.substr(path.rfind('/') + 1);
}

/// One unit for the whole table, by the step's time, so that figures can be compared at a glance.
struct Unit {
  const char* name;
  double ps;
};
Unit unit_for(Time total) {
  if (total >= Time::us(10'000'000)) {
    return {"s", 1e12};
  }
  return total >= Time::us(10'000) ? Unit{"ms", 1e9} : Unit{"us", 1e6};
}

double share_of(Time part, Time whole) { return whole > Time() ? part / whole : 0; }

struct NameCost {
  std::string_view name;
  std::int64_t count = 0;
  Time compute, exposed;
  Time cost() const { return compute + exposed; }
};

/// Layers of one name together, the most expensive first (ties by first appearance).
std::vector<NameCost> cost_by_name(const StepResult& result) {
  std::vector<NameCost> costs(result.names.size());
  for (const LayerResult& layer : result.layers) {
    const auto name = static_cast<std::size_t>(layer.name);
    NameCost& cost = costs[name];
    cost.name = result.names[name];
    ++cost.count;
    for (const PhaseResult* phase : {&layer.forward, &layer.input_grad, &layer.weight_grad}) {
      cost.compute += phase->compute;
      cost.exposed += phase->exposed;
    }
  }
  std::stable_sort(costs.begin(), costs.end(),
                   [](const NameCost& a, const NameCost& b) { return a.cost() > b.cost(); });
  return costs;
}

class Writer {
 public:
  Writer(const StepResult& result, const Topology* topology, std::size_t width,
         std::string_view job)
      : result_(result),
        topology_(topology),
        job_(job),
        width_(std::max(width, kMinWidth)),
        unit_(unit_for(result.total)) {}

  std::string write() {
    headline();
    breakdown();
    critical();
    stragglers();
    sample();
    layers();
    jobs();
    links();
    return std::move(text_);
  }

 private:
  void line(std::string_view text) {
    const std::string cut = characters(text) > width_ ? left(text, width_) : std::string(text);
    text_ += cut.substr(0, cut.find_last_not_of(' ') + 1) + '\n';
  }

  std::string in_unit(Time time) const {
    return time == Time() ? "-"
                          : fmt::format("{:.3f}", static_cast<double>(time.count_ps()) / unit_.ps);
  }
  std::string titled(std::string_view title) const {
    return fmt::format("{} {}", title, unit_.name);
  }

  /// Without control characters; longer than a line only if it is to be cut.
  std::string shown(std::string_view name) const { return printable(name, 4 * width_); }

  /// How the job is cut, the first of several, by the degrees of the result.
  std::string degrees() const {
    const Parallelism& p = result_.parallel;
    const bool several = result_.jobs.size() > 1;
    const std::int64_t gpus = result_.first_gpus();
    std::string text =
        several ? fmt::format("{} GPUs, {} jobs; the first: ", result_.gpus, result_.jobs.size())
                : "";
    text += fmt::format("{} GPUs: tp {}, {}pp {}", gpus, p.tp,
                        p.cp > 1 ? fmt::format("cp {}, ", p.cp) : "", p.pp);
    if (p.tp > 0 && p.pp > 0) {
      text += fmt::format(", dp {}", gpus / (p.tp * p.cp * p.pp));
    }
    return text + fmt::format(", ep {}, {} micro-batch{}", p.ep, p.ga, p.ga == 1 ? "" : "es");
  }

  void headline() {
    line(fmt::format("step time  {}", to_text(result_.total)));
    if (result_.recalled_flows > 0 || result_.error > Time()) {
      line(fmt::format("  +- {}, an estimate: {} of {} transfers are told from ones seen before",
                       to_text(result_.error), result_.recalled_flows, result_.flows));
    }
    std::string what = fmt::format("{} engine", result_.engine);
    what += result_.routes == "sprayed" ? ", sprayed" : "";
    if (result_.flavour == "simai") {
      what += ", flavour simai";
    }
    if (!result_.workload.empty()) {
      what = shown(base_name(result_.workload)) +
             (result_.topology.empty() ? "" : " on " + shown(base_name(result_.topology))) + ", " +
             what;
    }
    line(what);
    const std::string job = job_.empty() ? degrees() : job_;
    for (const std::string_view each : split(job, '\n')) {
      line(each);
    }
    const std::string first = to_text(result_.first_rank_end);
    const std::string last = to_text(result_.last_rank_end);
    if (first != last) {
      line(fmt::format("ranks end between {} and {}", first, last));
    }
    if (result_.compared) {
      line(*result_.compared > 0
               ? fmt::format("symmetry: the step of all {} ranks is the same to the picosecond",
                             *result_.compared)
               : "symmetry: nothing folds, so that there is nothing to compare");
    }
    if (result_.drawn) {
      line("messages meet at random: one draw, others (--seed) differ by 0 to 3 %");
    }
    if (result_.packets) {
      const std::string told = packets_text(*result_.packets);
      if (!told.empty()) {
        line("packets: " + told);
      }
    }
  }

  void row(std::string_view label, Time time, bool with_bar = true) {
    const std::size_t bar_room = width_ - kLabelWidth - kTimeWidth - kShareWidth - 2;
    const double share = share_of(time, result_.total);
    const double bar = with_bar ? std::clamp(share, 0.0, 1.0) * static_cast<double>(bar_room) : 0;
    line(left(label, kLabelWidth) + right(in_unit(time), kTimeWidth) +
         right(percent(share), kShareWidth) + "  " +
         std::string(static_cast<std::size_t>(std::lround(bar)), '#'));
  }

  void breakdown() {
    text_ += '\n';
    line(left("where the time goes", kLabelWidth) + right(unit_.name, kTimeWidth) +
         right("share", kShareWidth));
    row("  compute", result_.compute);
    row("  exposed communication", result_.exposed);
    for (std::size_t i = 0; i < result_.exposed_by_group.size(); ++i) {
      if (result_.exposed_by_group[i] > Time()) {
        row("    " + to_upper(name_of(static_cast<GroupKind>(i))), result_.exposed_by_group[i]);
      }
    }
    if (result_.skew * 1000 > result_.total) {
      row("    slower ranks", result_.skew);
    }
    if (result_.bubble > Time()) {
      row("  pipeline bubble", result_.bubble);
    }
    if (result_.others > Time()) {
      row("  other jobs alone", result_.others);
    }
    row("  step", result_.total, false);
  }

  static std::string to_upper(std::string_view text) {
    std::string upper(text);
    std::transform(upper.begin(), upper.end(), upper.begin(), [](char c) {
      return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    });
    return upper;
  }

  /// The places of the three longest times, the longest first; of those that are not 0.
  static std::vector<std::size_t> longest(std::span<const Time> times) {
    std::vector<std::size_t> places(times.size());
    std::iota(places.begin(), places.end(), std::size_t{0});
    std::ranges::stable_sort(places, std::greater<>(),
                             [&](std::size_t place) { return times[place]; });
    while (!places.empty() && (places.size() > 3 || times[places.back()] == Time())) {
      places.pop_back();
    }
    return places;
  }

  void critical() {
    if (!result_.critical) {
      return;
    }
    const CriticalPath& path = *result_.critical;
    text_ += '\n';
    line(left("critical path", kLabelWidth) + right(unit_.name, kTimeWidth) +
         right("share", kShareWidth));
    row("  compute", path.compute);
    for (std::size_t i = 0; i < path.comm_by_group.size(); ++i) {
      if (path.comm_by_group[i] > Time()) {
        row("  " + to_upper(name_of(static_cast<GroupKind>(i))), path.comm_by_group[i]);
      }
    }
    if (path.gap > Time()) {
      row("  nothing", path.gap);
    }
    for (const std::size_t type : longest(path.by_type)) {
      if (static_cast<OpType>(type) != OpType::kOther) {
        row(fmt::format("  of it {}", name_of(static_cast<OpType>(type))), path.by_type[type]);
      }
    }
    for (const std::size_t rank : longest(path.by_rank)) {
      row(fmt::format("  of it on rank {}", rank), path.by_rank[rank]);
    }
    for (std::size_t i = 0;
         topology_ != nullptr && i < std::min<std::size_t>(3, path.by_link.size()); ++i) {
      const PortEnds ends = ends_of(*topology_, path.by_link[i].port);
      row(fmt::format("  {} to {}", node_name(*topology_, ends.from),
                      node_name(*topology_, ends.to)),
          path.by_link[i].time);
    }
  }

  void stragglers() {
    if (result_.stragglers.empty()) {
      return;
    }
    const std::size_t name_width = width_ - 2 * kTimeWidth - kShareWidth;
    text_ += '\n';
    line(left("stragglers", name_width) + right(titled("without"), kTimeWidth) +
         right(titled("cost"), kTimeWidth) + right("S", kShareWidth));
    const auto show = [&](std::string_view name, Time without) {
      line(left("  " + shown(name), name_width) + right(in_unit(without), kTimeWidth) +
           right(in_unit(result_.total - without), kTimeWidth) +
           right(without > Time() ? fmt::format("{:.3f}", result_.total / without) : "-",
                 kShareWidth));
    };
    for (const StragglerCost& cost : result_.stragglers) {
      show(cost.spec, cost.without);
    }
    if (result_.stragglers.size() > 1) {
      show("all", result_.clean);
    }
  }

  void sample() {
    if (!result_.sample) {
      return;
    }
    const StepSample& sample = *result_.sample;
    text_ += '\n';
    line(fmt::format("{} steps{} (seed {})", sample.totals.size(),
                     result_.jobs.size() > 1 ? " of the first job" : "", sample.seed));
    line(fmt::format("  mean {} ± {} (95 %), deviation {}", to_text(sample.mean),
                     to_text(sample.half_width), to_text(sample.deviation)));
    line(fmt::format("  p50 {}, p90 {}, p99 {}", to_text(sample.p50), to_text(sample.p90),
                     to_text(sample.p99)));
  }

  void layers() {
    const std::vector<NameCost> costs = cost_by_name(result_);
    if (result_.layers.empty()) {
      return;
    }
    const std::size_t count_width = 8;
    const std::size_t name_width = width_ - count_width - 2 * kTimeWidth - kShareWidth;
    text_ += '\n';
    line(left(costs.size() > kTop ? fmt::format("layers (top {} of {})", kTop, costs.size())
                                  : std::string("layers"),
              name_width) +
         right("count", count_width) + right(titled("compute"), kTimeWidth) +
         right(titled("exposed"), kTimeWidth) + right("share", kShareWidth));
    for (std::size_t i = 0; i < std::min(kTop, costs.size()); ++i) {
      const NameCost& cost = costs[i];
      line(left("  " + shown(cost.name), name_width) +
           right(std::to_string(cost.count), count_width) +
           right(in_unit(cost.compute), kTimeWidth) + right(in_unit(cost.exposed), kTimeWidth) +
           right(percent(share_of(cost.cost(), result_.total)), kShareWidth));
    }
  }

  void jobs() {
    if (result_.jobs.size() < 2) {
      return;
    }
    const std::size_t name_width = width_ - 2 * kTimeWidth - 10;
    text_ += '\n';
    line(left("jobs", name_width) + right("first rank", kTimeWidth) + right("ranks", 10) +
         right(titled("end"), kTimeWidth));
    for (const JobResult& job : result_.jobs) {
      line(left("  " + shown(job.name), name_width) +
           right(std::to_string(job.first_rank), kTimeWidth) +
           right(std::to_string(job.ranks), 10) + right(in_unit(job.end), kTimeWidth));
    }
  }

  void links() {
    const std::vector<PortLoad> loads = busiest_ports(result_);
    if (loads.empty()) {
      return;
    }
    const std::size_t name_width = width_ - 2 * kTimeWidth - kShareWidth;
    text_ += '\n';
    line(left(loads.size() > kTop ? fmt::format("links (busiest {} of {})", kTop, loads.size())
                                  : std::string("links"),
              name_width) +
         right("carried", kTimeWidth) + right(titled("busy"), kTimeWidth) +
         right("share", kShareWidth));
    for (std::size_t i = 0; i < std::min(kTop, loads.size()); ++i) {
      const PortLoad& load = loads[i];
      line(left("  " + port_name(load.port), name_width) + right(to_text(load.bytes), kTimeWidth) +
           right(in_unit(load.busy), kTimeWidth) + right(percent(load.utilisation), kShareWidth));
    }
  }

  std::string port_name(PortId port) const {
    if (topology_ == nullptr) {
      return fmt::format("port {}", port.value);
    }
    const PortEnds ends = ends_of(*topology_, port);
    return node_name(*topology_, ends.from) + " -> " + node_name(*topology_, ends.to);
  }

  const StepResult& result_;
  const Topology* topology_;
  std::string job_;
  std::size_t width_;
  Unit unit_;
  std::string text_;
};

}  // namespace

std::string step_table(const StepResult& result, const Topology* topology, std::size_t width,
                       std::string_view job) {
  return Writer(result, topology, width, job).write();
}

}  // namespace lockstep

#include "report/collective_report.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "base/json.h"
#include "base/text.h"
#include "report/json_time.h"
#include "report/packet_counts.h"

namespace lockstep {
namespace {

/// Bytes a second; 0 for no time.
double rate_of(Bytes bytes, Time time) {
  return time > Time() ? static_cast<double>(bytes.count()) / time.seconds() : 0;
}

std::string number(double value) {
  return fmt::format("{:.{}f}", value, value < 10 ? 3 : value < 1000 ? 2 : 1);
}

std::string algorithm_text(const CollectivePoint& point) {
  return point.algorithm.empty()
             ? std::string("-")
             : fmt::format(
                   "{} {}{}", point.algorithm, point.protocol,
                   point.channels > 0 ? fmt::format(" x{}", point.channels) : std::string());
}

}  // namespace

double bus_factor(CommType op, std::int64_t ranks) {
  const auto n = static_cast<double>(ranks);
  switch (op) {
    case CommType::kAllReduce:
      return 2 * (n - 1) / n;
    case CommType::kAllGather:
    case CommType::kReduceScatter:
    case CommType::kAllToAll:
      return (n - 1) / n;
    default:
      return 1;
  }
}

namespace {

/// The table of the engines from `first` on, `count` of them side by side.
std::string engines_table(const CollectiveSweep& sweep, std::size_t first, std::size_t count) {
  std::string over = fmt::format("# {:>14}", ""), head = fmt::format("# {:>14}", "size"),
              units = fmt::format("# {:>14}", "(B)");
  for (const std::string& engine : std::span(sweep.engines).subspan(first, count)) {
    over += fmt::format("  {:-^33}", " " + engine + " ");
    head += fmt::format("  {:>13} {:>9} {:>9}", "time", "algbw", "busbw");
    units += fmt::format("  {:>13} {:>9} {:>9}", "(us)", "(GB/s)", "(GB/s)");
  }
  std::string text = over + "\n" + head + "  algorithm\n" + units + "\n";
  for (const CollectivePoint& point : sweep.points) {
    const auto timings = std::span(point.timings).subspan(first, count);
    text += fmt::format("  {:>14}", point.bytes.count());
    for (const CollectiveTiming& timing : timings) {
      const double rate = rate_of(point.bytes, timing.time) / 1e9;
      text += fmt::format("  {:>13} {:>9} {:>9}", number(timing.time.us()), number(rate),
                          number(rate * bus_factor(sweep.op, sweep.ranks)));
    }
    const bool formula = count == 1 && sweep.engines[first] == "analytic";
    text += "  " + (formula ? std::string("-") : algorithm_text(point));
    for (const CollectiveTiming& timing : timings) {
      text += timing.error > Time() ? fmt::format("  +-{} us", number(timing.error.us())) : "";
      const std::string told = timing.packets ? packets_text(*timing.packets) : "";
      text += told.empty() ? "" : "  packets: " + told;
    }
    text += "\n";
  }
  return text;
}

std::size_t longest_line(std::string_view text) {
  std::size_t longest = 0;
  for (const std::string_view line : split(text, '\n')) {
    longest = std::max(longest, line.size());
  }
  return longest;
}

}  // namespace

std::string collective_table(const CollectiveSweep& sweep, std::size_t width) {
  std::string text =
      fmt::format("# {} on {} GPUs in {} server{}, {}\n", name_of(sweep.op), sweep.ranks,
                  sweep.servers, sweep.servers == 1 ? "" : "s", sweep.topology);
  const std::size_t all = sweep.engines.size();
  const std::string beside = engines_table(sweep, 0, all);
  if (all == 1 || longest_line(beside) <= width) {
    return text + beside;
  }
  for (std::size_t engine = 0; engine < all; ++engine) {
    text += engines_table(sweep, engine, 1);
  }
  return text;
}

std::string collective_json(const CollectiveSweep& sweep) {
  Json points = Json::array();
  for (const CollectivePoint& point : sweep.points) {
    Json engines = Json::object();
    for (std::size_t i = 0; i < sweep.engines.size(); ++i) {
      const CollectiveTiming& timing = point.timings[i];
      const double rate = rate_of(point.bytes, timing.time);
      engines[sweep.engines[i]] = {{"time_s", seconds(timing.time)},
                                   {"algorithm_Bps", rate},
                                   {"bus_Bps", rate * bus_factor(sweep.op, sweep.ranks)},
                                   {"transfers", timing.transfers}};
      if (timing.error > Time()) {
        engines[sweep.engines[i]]["error_s"] = seconds(timing.error);
      }
      if (timing.packets) {
        engines[sweep.engines[i]]["packets"] = packets_json(*timing.packets);
      }
    }
    Json line = {{"size_bytes", point.bytes.count()}};
    if (!point.algorithm.empty()) {
      line["algorithm"] = point.algorithm;
      line["protocol"] = point.protocol;
      line["channels"] = point.channels;
    }
    line["engines"] = std::move(engines);
    points.push_back(std::move(line));
  }
  return to_text(Json{{"schema", "lockstep-collective/1"},
                      {"op", name_of(sweep.op)},
                      {"gpus", sweep.ranks},
                      {"servers", sweep.servers},
                      {"topology", sweep.topology},
                      {"flavour", sweep.flavour},
                      {"placement", sweep.placement},
                      {"engines", sweep.engines},
                      {"points", std::move(points)},
                      {"warnings", sweep.warnings}});
}

}  // namespace lockstep

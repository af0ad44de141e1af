#include "simulator/network/packet_engine_simai_conf.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"

namespace lockstep {
namespace {

/// Accepted and used by nothing, in SimAI 1.6 either: inputs and outputs that our flags name, and
/// monitors that it never starts.
constexpr std::array<std::string_view, 20> kUnused = {
    "FLOW_FILE",       "TRACE_FILE",    "TRACE_OUTPUT_FILE",   "FCT_OUTPUT_FILE",
    "PFC_OUTPUT_FILE", "TOPOLOGY_FILE", "SIMULATOR_STOP_TIME", "ENABLE_TRACE",
    "QLEN_MON_FILE",   "BW_MON_FILE",   "RATE_MON_FILE",       "CNP_MON_FILE",
    "MON_START",       "MON_END",       "QP_MON_INTERVAL",     "QLEN_MON_INTERVAL",
    "BW_MON_INTERVAL", "DATA_RATE",     "LINK_DELAY",          "NIC_TOTAL_PAUSE_TIME"};
/// Of HPCC's sampled telemetry, which runs as full telemetry (CC_MODE 10 is warned about); and two
/// that SimAI overrides or reads as a switch.
constexpr std::array<std::string_view, 4> kOfOtherModes = {"PINT_LOG_BASE", "PINT_PROB", "GLOBAL_T",
                                                           "PAUSE_TIME"};
/// Of HPCC, with the values that ours has.
constexpr std::array<std::pair<std::string_view, int>, 4> kFixedInHpcc = {
    {{"MULTI_RATE", 0}, {"SAMPLE_FEEDBACK", 0}, {"FAST_REACT", 1}, {"INT_MULTI", 1}}};

/// One line: a key and its values.
class Entry {
 public:
  Entry(std::vector<std::string_view> words, const std::string& file, std::size_t line)
      : words_(std::move(words)), file_(&file), line_(line) {}

  std::string_view key() const { return words_[0]; }
  std::size_t size() const { return words_.size() - 1; }

  std::string_view text(std::size_t i = 0) const {
    if (i >= size()) {
      throw error(fmt::format("{} has {} values", key(), size()))
          .expected(fmt::format("at least {}", i + 1));
    }
    return words_[i + 1];
  }
  double number(double low, double high, std::size_t i = 0) const {
    const std::optional<double> value = to_double(text(i));
    if (!value || *value < low || *value > high) {
      throw error(fmt::format("'{}' cannot be", printable(text(i))))
          .expected(fmt::format("a number from {} to {}", low, high));
    }
    return *value;
  }
  std::int64_t whole(double low, double high, std::size_t i = 0) const {
    const double value = number(low, high, i);
    if (value != std::floor(value)) {
      throw error(fmt::format("'{}' cannot be", printable(text(i))))
          .expected(fmt::format("a whole number from {} to {}", low, high));
    }
    return static_cast<std::int64_t>(value);
  }
  bool flag() const { return whole(0, 1) != 0; }
  Bandwidth rate() const {
    // ns-3 writes "50Mb/s", as the unit library does.
    try {
      return parse_bandwidth(text());
    } catch (Error& problem) {
      throw std::move(problem).at(*file_, line_).field(key());
    }
  }
  Error error(std::string message) const {
    return Error(std::move(message)).at(*file_, line_).field(key());
  }

 private:
  std::vector<std::string_view> words_;
  const std::string* file_;
  std::size_t line_;
};

/// The three ECN maps, "n rate value rate value …", put together by rate.
class EcnMaps {
 public:
  void read(const Entry& entry) {
    const auto rows = static_cast<std::size_t>(entry.whole(0, 1000));
    if (entry.size() != 1 + 2 * rows) {
      throw entry
          .error(fmt::format("{} rates are announced, {} values follow", rows, entry.size() - 1))
          .expected("a rate in bits per second and a value for each");
    }
    const bool probability = entry.key() == "PMAX_MAP";
    for (std::size_t i = 0; i < rows; ++i) {
      const auto rate = static_cast<std::int64_t>(entry.number(1, 1e15, 1 + 2 * i));
      PacketOptions::EcnRow& row = rows_[rate];
      row.rate = Bandwidth::bits_per_second(rate);
      const double value = entry.number(0, probability ? 1 : 1e9, 2 + 2 * i);
      if (probability) {
        row.pmax = value;
      } else {
        (entry.key() == "KMAX_MAP" ? row.kmax : row.kmin) =
            Bytes(std::llround(value * 1000));  // given in kB
      }
    }
  }
  void apply(PacketOptions& options) const {
    if (rows_.empty()) {
      return;
    }
    options.ecn.clear();
    for (const auto& [rate, row] : rows_) {
      options.ecn.push_back(row);
    }
  }

 private:
  std::map<std::int64_t, PacketOptions::EcnRow> rows_;
};

std::string text_of(double value) { return fmt::format("{}", value); }
std::string micro(const Entry& entry) { return fmt::format("{}us", entry.number(0.001, 1e12)); }
std::string bits(const Entry& entry) {
  return fmt::format("{}bps", entry.rate().bits_per_second());
}

struct Conf {
  PacketOptions& options;
  Warnings& warnings;
  EcnMaps ecn;
  int mode = 1;
  bool marking = true, windows = true;
  std::vector<std::string> beyond_hpcc;  // settings that ours does not have
  /// Attributes by the congestion control that has them.
  std::map<std::string, std::map<std::string, std::string>> attributes;

  /// Whether the key is known.
  bool apply(const Entry& entry);
  void finish();
};

bool Conf::apply(const Entry& entry) {
  const std::string_view key = entry.key();
  auto& fabric = options.fabric;
  auto& dcqcn = attributes["dcqcn"];
  if (key == "ENABLE_QCN") {
    marking = entry.flag();
  } else if (key == "CC_MODE") {
    mode = static_cast<int>(entry.whole(0, 1000));
  } else if (key == "PACKET_PAYLOAD_SIZE") {
    fabric["Payload"] = fmt::format("{}", entry.whole(1, 1 << 24));
  } else if (key == "USE_DYNAMIC_PFC_THRESHOLD") {
    fabric["DynamicThreshold"] = entry.flag() ? "true" : "false";
  } else if (key == "ALPHA_RESUME_INTERVAL") {
    dcqcn["AlphaInterval"] = micro(entry);
  } else if (key == "RATE_DECREASE_INTERVAL") {
    dcqcn["DecreaseInterval"] = micro(entry);
  } else if (key == "CLAMP_TARGET_RATE") {
    dcqcn["ClampTargetRate"] = entry.flag() ? "true" : "false";
  } else if (key == "RP_TIMER") {
    dcqcn["IncreaseInterval"] = micro(entry);
  } else if (key == "EWMA_GAIN") {
    dcqcn["Gain"] = text_of(entry.number(0, 1));
    attributes["dctcp"]["Gain"] = text_of(entry.number(0, 1));
  } else if (key == "FAST_RECOVERY_TIMES") {
    dcqcn["FastRecovery"] = fmt::format("{}", entry.whole(0, 1e6));
  } else if (key == "RATE_AI") {
    dcqcn["AdditiveIncrease"] = bits(entry);
    attributes["hpcc"]["AdditiveIncrease"] = bits(entry);
    attributes["timely"]["AdditiveIncrease"] = bits(entry);
  } else if (key == "RATE_HAI") {
    dcqcn["HyperIncrease"] = bits(entry);
    attributes["timely"]["HyperIncrease"] = bits(entry);
  } else if (key == "MIN_RATE") {
    for (const char* name : {"dcqcn", "hpcc", "timely", "dctcp"}) {
      attributes[name]["MinRate"] = bits(entry);
    }
  } else if (key == "DCTCP_RATE_AI") {
    attributes["dctcp"]["AdditiveIncrease"] = bits(entry);
  } else if (key == "U_TARGET") {
    attributes["hpcc"]["Target"] = text_of(entry.number(0.01, 1));
  } else if (key == "MI_THRESH") {
    attributes["hpcc"]["Stages"] = fmt::format("{}", entry.whole(0, 1000));
  } else if (key == "ERROR_RATE_PER_LINK") {
    fabric["LossRate"] = text_of(entry.number(0, 1));
  } else if (key == "L2_ACK_INTERVAL") {
    options.ack_bytes = Bytes(entry.whole(0, 1e9));
  } else if (key == "L2_BACK_TO_ZERO") {
    fabric["Recovery"] = entry.flag() ? "GoBackToZero" : "GoBackN";
  } else if (key == "L2_CHUNK_SIZE") {
    fabric["RecoveryChunk"] = fmt::format("{}", entry.whole(0, 1e15));
  } else if (key == "HAS_WIN") {
    windows = entry.flag();
  } else if (key == "VAR_WIN") {
    for (const char* name : {"dcqcn", "timely", "dctcp"}) {
      attributes[name]["ScaleWindow"] = entry.flag() ? "true" : "false";
    }
  } else if (key == "RATE_BOUND") {
    fabric["Pacing"] = entry.flag() ? "true" : "false";
  } else if (key == "ACK_HIGH_PRIO") {
    fabric["AckHighPriority"] = entry.flag() ? "true" : "false";
  } else if (key == "BUFFER_SIZE") {
    fabric["Buffer"] = fmt::format("{}", entry.whole(1, 1e6) * 1048576);
  } else if (key == "LINK_DOWN") {
    // Microseconds after two seconds, and the two nodes; none of it where all are 0.
    const double after = entry.number(0, 1e12, 0);
    const auto a = static_cast<std::int32_t>(entry.whole(0, 1e9, 1));
    const auto b = static_cast<std::int32_t>(entry.whole(0, 1e9, 2));
    options.faults.clear();  // of two such lines the last holds
    if (a != b) {
      const Time when = Time::us(2000000) + Time::ps(std::llround(after * 1e6));
      options.faults.push_back({NodeId(a), NodeId(b), when, Time::max(), 1});
      options.rerouting = Time();
    }
  } else if (key == "KMAX_MAP" || key == "KMIN_MAP" || key == "PMAX_MAP") {
    ecn.read(entry);
  } else if (const auto fixed =
                 std::ranges::find(kFixedInHpcc, key, &std::pair<std::string_view, int>::first);
             fixed != kFixedInHpcc.end()) {
    if (entry.number(0, 1e9) != fixed->second) {
      beyond_hpcc.push_back(fmt::format("{} {}", key, printable(entry.text())));
    }
  } else {
    return std::ranges::find(kUnused, key) != kUnused.end() ||
           std::ranges::find(kOfOtherModes, key) != kOfOtherModes.end();
  }
  return true;
}

void Conf::finish() {
  static const std::map<int, std::string> modes = {
      {1, "dcqcn"}, {3, "hpcc"}, {7, "timely"}, {8, "dctcp"}, {10, "hpcc"}};
  const auto found = modes.find(mode);
  const std::string congestion = found == modes.end() ? "none" : found->second;
  if (congestion != options.congestion) {
    options.congestion = congestion;
    options.congestion_attributes.clear();
  }
  if (found == modes.end() && mode != 0) {
    warnings.add(
        fmt::format("CC_MODE {} is no congestion control of SimAI's (1, 3, 7, 8, 10): "
                    "runs without one, as there",
                    mode));
  }
  if (mode == 10) {
    warnings.add("CC_MODE 10 (HPCC with sampled telemetry) runs as HPCC with full telemetry");
  }
  for (const std::string& setting : beyond_hpcc) {
    if (options.congestion == "hpcc") {
      warnings.add(setting + " is not modelled: HPCC reacts to each ACK, by its largest link");
    }
  }
  if (!windows) {
    options.global_window = false;
    options.fabric["Window"] = "1000000000000";
  }
  options.fabric["Ecn"] = marking ? "true" : "false";
  for (const auto& [name, value] : attributes[options.congestion]) {
    options.congestion_attributes[name] = value;
  }
  ecn.apply(options);
  take_ack_bytes(options);
}

}  // namespace

void apply_simai_conf(std::string_view text, const std::string& file, PacketOptions& options,
                      Warnings& warnings) {
  Conf conf{options, warnings};
  std::size_t number = 0;
  std::vector<Entry> entries;
  for (const std::string_view line : split(text, '\n')) {
    ++number;
    std::vector<std::string_view> words = split_blanks(line);
    if (!words.empty()) {
      entries.emplace_back(std::move(words), file, number);
    }
  }
  std::size_t known = 0;
  for (const Entry& entry : entries) {
    if (conf.apply(entry)) {
      ++known;
    } else {
      warnings.add(fmt::format("{}: unknown key {}", file, printable(entry.key())));
    }
  }
  if (known == 0 && !entries.empty()) {
    throw Error("no line of the file sets anything")
        .at(file)
        .expected("SimAI.conf: a key and its value a line, such as 'CC_MODE 1'");
  }
  conf.finish();
}

}  // namespace lockstep

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
#include "simulator/network/packet_engine_simai_ecn.h"
#include "simulator/network/packet_engine_simai_entry.h"

namespace lockstep {
namespace {

/// Accepted and used by nothing, in SimAI 1.6 either: inputs and outputs that our flags name, and
/// monitors that it never starts.
constexpr std::array<std::string_view, 10> kUnusedFiles = {
    "FLOW_FILE",     "TRACE_FILE",    "TRACE_OUTPUT_FILE", "FCT_OUTPUT_FILE", "PFC_OUTPUT_FILE",
    "TOPOLOGY_FILE", "QLEN_MON_FILE", "BW_MON_FILE",       "RATE_MON_FILE",   "CNP_MON_FILE"};
/// The same: ns-3's texts.
constexpr std::array<std::string_view, 2> kUnusedTexts = {"DATA_RATE", "LINK_DELAY"};
/// The same: numbers. The last four are of HPCC's sampled telemetry, which runs as full telemetry
/// (CC_MODE 10 is warned about), and two that SimAI overrides or reads as a switch.
constexpr std::array<std::string_view, 12> kUnusedNumbers = {
    "SIMULATOR_STOP_TIME", "ENABLE_TRACE",      "MON_START",       "MON_END",
    "QP_MON_INTERVAL",     "QLEN_MON_INTERVAL", "BW_MON_INTERVAL", "NIC_TOTAL_PAUSE_TIME",
    "PINT_LOG_BASE",       "PINT_PROB",         "GLOBAL_T",        "PAUSE_TIME"};
/// Of HPCC, with the values that ours has.
constexpr std::array<std::pair<std::string_view, int>, 4> kFixedInHpcc = {
    {{"MULTI_RATE", 0}, {"SAMPLE_FEEDBACK", 0}, {"FAST_REACT", 1}, {"INT_MULTI", 1}}};

using Entry = SimaiConfEntry;

std::string text_of(double value) { return fmt::format("{}", value); }
std::string micro(const Entry& entry) { return fmt::format("{}us", entry.number(0.001, 1e12)); }
std::string bits(const Entry& entry) {
  return fmt::format("{}bps", entry.rate().bits_per_second());
}

struct Conf {
  PacketOptions& options;
  Warnings& warnings;
  SimaiEcnMaps ecn;
  int mode = 1;
  bool marking = true, windows = true;
  std::vector<std::string> beyond_hpcc;  // settings that ours does not have

  /// Whether the key is known.
  bool apply(const Entry& entry);
  void finish();
};

bool Conf::apply(const Entry& entry) {
  const std::string_view key = entry.key();
  auto& fabric = options.fabric;
  auto& attributes = options.attributes_of;
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
    entry.expect(3);
    const double after = entry.number_at(0, 0, 1e12);
    const auto a = static_cast<std::int32_t>(entry.whole_at(1, 0, 1e9));
    const auto b = static_cast<std::int32_t>(entry.whole_at(2, 0, 1e9));
    options.faults.clear();  // of two such lines the last holds
    if (a != b) {
      const Time when = Time::us(2000000) + Time::ps(std::llround(after * 1e6));
      options.faults.push_back(
          {NodeId(a), NodeId(b), when, Time::max(), 1, entry.file(), entry.line()});
      options.rerouting = Time();
    }
  } else if (SimaiEcnMaps::is_one(key)) {
    ecn.read(entry);
  } else if (const auto fixed =
                 std::ranges::find(kFixedInHpcc, key, &std::pair<std::string_view, int>::first);
             fixed != kFixedInHpcc.end()) {
    if (entry.number(0, 1e9) != fixed->second) {
      beyond_hpcc.push_back(fmt::format("{} {}", key, printable(entry.text())));
    }
  } else if (std::ranges::find(kUnusedNumbers, key) != kUnusedNumbers.end()) {
    entry.any_number();
  } else if (std::ranges::find(kUnusedTexts, key) != kUnusedTexts.end()) {
    entry.expect(1);
  } else {
    return std::ranges::find(kUnusedFiles, key) != kUnusedFiles.end();
  }
  return true;
}

void Conf::finish() {
  static const std::map<int, std::string> modes = {
      {1, "dcqcn"}, {3, "hpcc"}, {7, "timely"}, {8, "dctcp"}, {10, "hpcc"}};
  const auto found = modes.find(mode);
  choose_congestion(options, found == modes.end() ? "none" : found->second);
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
  ecn.apply(options, warnings);
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

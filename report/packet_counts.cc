#include "report/packet_counts.h"

#include <vector>

#include <fmt/format.h>

#include "base/text.h"

namespace lockstep {

Json packets_json(const PacketStatistics& packets) {
  return {{"sent", packets.packets},
          {"lost", packets.drops},
          {"marked", packets.marks},
          {"pauses", packets.pauses},
          {"storms", packets.storms},
          {"stalls", packets.stalls},
          {"max_queue_bytes", packets.max_queue.count()}};
}

std::string packets_text(const PacketStatistics& packets) {
  std::vector<std::string> parts;
  if (packets.drops > 0) {
    parts.push_back(fmt::format("{} lost of {}", packets.drops, packets.packets));
  }
  if (packets.marks > 0) {
    parts.push_back(fmt::format("{} marked", packets.marks));
  }
  if (packets.pauses > 0) {
    parts.push_back(
        fmt::format("{} pause{} by PFC", packets.pauses, packets.pauses == 1 ? "" : "s"));
  }
  if (packets.storms > 0) {
    parts.push_back(fmt::format("{} storm{}", packets.storms, packets.storms == 1 ? "" : "s"));
  }
  if (!parts.empty() && packets.max_queue > Bytes()) {
    parts.push_back("longest queue " + to_text(packets.max_queue));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace lockstep

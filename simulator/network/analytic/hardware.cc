#include "simulator/network/analytic/hardware.h"

#include <array>
#include <span>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {
namespace {

constexpr std::int64_t kSm80LinkMbps = 160'000;  // 20.0 GB/s
constexpr std::int64_t kSm90LinkMbps = 164'800;  // 20.6 GB/s

struct GpuRow {
  std::string_view name;
  std::int64_t links, link_mbps;
};
constexpr std::array<GpuRow, 5> kGpus{{{"A100", 12, kSm80LinkMbps},
                                       {"A800", 8, kSm80LinkMbps},
                                       {"H100", 18, kSm90LinkMbps},
                                       {"H800", 8, kSm90LinkMbps},
                                       {"H20", 18, kSm90LinkMbps}}};

struct NicRow {
  std::string_view name;
  std::int64_t mbps;
};
constexpr std::array<NicRow, 3> kNics{{{"cx6", 188'000}, {"cx7", 388'000}, {"bf3", 388'000}}};

template <class Type, class Row, std::size_t N>
Type parse_name(std::string_view text, const std::array<Row, N>& rows, std::string_view what) {
  std::array<std::string_view, N> names;
  for (std::size_t i = 0; i < N; ++i) {
    names[i] = rows[i].name;
    if (to_lower(text) == to_lower(rows[i].name)) {
      return static_cast<Type>(i);
    }
  }
  throw Error(fmt::format("unknown {} '{}'", what, printable(text))).expected(join(names, ", "));
}

Bandwidth mbps(std::int64_t value) { return Bandwidth::bits_per_second(value * 1'000'000); }

}  // namespace

Bandwidth nvlink_bandwidth(GpuType type) {
  const GpuRow& row = kGpus[static_cast<std::size_t>(type)];
  return mbps(row.links * row.link_mbps);
}

Bandwidth nic_bandwidth(NicType type) { return mbps(kNics[static_cast<std::size_t>(type)].mbps); }

GpuType parse_gpu_type(std::string_view text) {
  return parse_name<GpuType>(text, kGpus, "GPU type");
}
NicType parse_nic_type(std::string_view text) {
  return parse_name<NicType>(text, kNics, "NIC type");
}
std::string_view name_of(GpuType type) { return kGpus[static_cast<std::size_t>(type)].name; }
std::string_view name_of(NicType type) { return kNics[static_cast<std::size_t>(type)].name; }

}  // namespace lockstep

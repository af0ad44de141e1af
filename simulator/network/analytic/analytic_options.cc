#include "simulator/network/analytic/analytic_options.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {
namespace {

constexpr std::int64_t kMaxCount = 2'147'483'647;

void check_count(std::int64_t value, std::string_view field) {
  if (value < 1 || value > kMaxCount) {
    throw Error(fmt::format("{} is out of range", value))
        .field(field)
        .expected(fmt::format("1 to {}", kMaxCount));
  }
}

void check_rate(Bandwidth rate, std::string_view field) {
  if (rate.bits_per_second() <= 0) {
    throw Error("the bandwidth is not above 0").field(field);
  }
}

void check_overlap(double share, std::string_view field) {
  if (!(share >= 0 && share <= 1)) {
    throw Error(fmt::format("{} is no share", share)).field(field).expected("0 to 1");
  }
}

}  // namespace

std::string_view name_of(Flavour flavour) {
  return flavour == Flavour::kSimai ? "simai" : "default";
}

Flavour parse_flavour(std::string_view text) {
  for (const Flavour flavour : {Flavour::kDefault, Flavour::kSimai}) {
    if (text == name_of(flavour)) {
      return flavour;
    }
  }
  throw Error(fmt::format("unknown flavour '{}'", printable(text))).expected("default, simai");
}

void validate(const AnalyticOptions& options) {
  if (options.gpus != 0) {
    check_count(options.gpus, "gpus");
  }
  check_count(options.gpus_per_server, "gpus-per-server");
  check_count(options.nics_per_server, "nics-per-server");
  if (options.chunks_per_stage) {
    check_count(*options.chunks_per_stage, "chunks-per-stage");
  }
  check_rate(options.nvlink_rate(), "nvlink");
  check_rate(options.nic_rate(), "nic");
  check_overlap(options.overlap.dp, "dp-overlap");
  check_overlap(options.overlap.ep, "ep-overlap");
  check_overlap(options.overlap.tp, "tp-overlap");
  check_overlap(options.overlap.pp.value_or(0), "pp-overlap");
}

}  // namespace lockstep

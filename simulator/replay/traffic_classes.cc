#include "simulator/replay/traffic_classes.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {

TrafficClasses TrafficClasses::parse(std::string_view text) {
  constexpr std::int64_t kMostClasses = 8;
  TrafficClasses classes;
  for (const std::string_view part : split(text, ',')) {
    const std::size_t equals = part.find('=');
    const std::string what = to_lower(trim(part.substr(0, equals)));
    Rule rule;
    rule.kind = group_kind_named(what);
    if (!rule.kind) {
      rule.op = comm_type_named(what);
    }
    if (what.starts_with("job")) {
      const auto number = to_int(what.substr(3));
      if (number && *number >= 1 && *number <= 1 << 20) {
        rule.job = static_cast<std::int32_t>(*number - 1);
      }
    }
    if ((!rule.kind && !rule.op && !rule.job) || rule.op == CommType::kNone) {
      throw Error("'" + printable(part) + "' names no traffic")
          .expected(
              "WHAT=CLASS, WHAT being tp, dp, ep, dp_ep, pp, cp, world, an operation such as "
              "alltoall, or job1, job2, …");
    }
    const auto number =
        to_int(equals == std::string_view::npos ? std::string_view() : part.substr(equals + 1));
    if (!number || *number < 0 || *number >= kMostClasses) {
      throw Error("'" + printable(part) + "' names no traffic class")
          .expected("a class 0 to 7 behind '='");
    }
    rule.traffic_class = static_cast<std::int32_t>(*number);
    classes.rules_.push_back(rule);
  }
  return classes;
}

std::int32_t TrafficClasses::of(GroupKind kind, CommType op, std::int32_t job) const {
  std::int32_t found = -1;
  for (const Rule& rule : rules_) {
    if (rule.kind.value_or(kind) == kind && rule.op.value_or(op) == op &&
        rule.job.value_or(job) == job) {
      found = rule.traffic_class;
    }
  }
  return found;
}

std::int32_t TrafficClasses::needed() const {
  std::int32_t most = 0;
  for (const Rule& rule : rules_) {
    most = std::max(most, rule.traffic_class);
  }
  return std::min(most + 2, 8);
}

}  // namespace lockstep

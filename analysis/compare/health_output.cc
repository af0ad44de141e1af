#include <fmt/format.h>

#include "analysis/compare/health.h"
#include "base/error.h"
#include "base/json.h"

namespace lockstep::compare {

std::string_view name_of(FindingKind kind) {
  switch (kind) {
    case FindingKind::kSlowNode:
      return "slow-node";
    case FindingKind::kSlowPair:
      return "slow-pair";
    case FindingKind::kSlowRun:
      return "slow-run";
    case FindingKind::kTcpFallback:
      return "tcp-fallback";
    case FindingKind::kGdrOff:
      return "gdr-off";
    case FindingKind::kFewNics:
      return "few-nics";
    case FindingKind::kNicError:
      return "nic-error";
    case FindingKind::kWrongResults:
      return "wrong-results";
  }
  LOCKSTEP_CHECK(false, "every kind has a name");
}

std::string_view name_of(SizeKind kind) {
  switch (kind) {
    case SizeKind::kAll:
      return "all";
    case SizeKind::kBandwidthBound:
      return "bandwidth-bound";
  }
  LOCKSTEP_CHECK(false, "every kind has a name");
}

std::string health_table(const Health& health) {
  std::size_t slow = 0;
  for (const TestHealth& test : health.tests) {
    slow += test.slow ? 1U : 0U;
  }
  std::string text = fmt::format("{} test{} in {} set{} of like ones; {} slow\n",
                                 health.tests.size(), health.tests.size() == 1 ? "" : "s",
                                 health.groups, health.groups == 1 ? "" : "s", slow);
  for (const Finding& finding : health.findings) {
    text +=
        fmt::format("{:<13} {}: {}\n", name_of(finding.kind), finding.subject, finding.evidence);
  }
  const bool any_judged = health.not_judged < health.tests.size();
  text += health.findings.empty() && any_judged ? "nothing stands out\n" : "";
  if (health.not_judged > 0) {
    text += fmt::format("{} test{} not judged: fewer than {} are alike\n", health.not_judged,
                        health.not_judged == 1 ? " was" : "s were", kFewestLikeTests);
  }
  return text;
}

std::string health_json(const Health& health) {
  Json json;
  json["schema"] = "lockstep-health/1";
  json["sets"] = health.groups;
  json["not_judged"] = health.not_judged;
  json["warnings"] = health.warnings;
  json["findings"] = Json::array();
  for (const Finding& finding : health.findings) {
    json["findings"].push_back({{"kind", name_of(finding.kind)},
                                {"subject", finding.subject},
                                {"slowdown", finding.slowdown},
                                {"evidence", finding.evidence}});
  }
  json["tests"] = Json::array();
  for (const TestHealth& test : health.tests) {
    json["tests"].push_back({{"id", test.id},
                             {"hosts", test.hosts},
                             {"judged", test.judged},
                             {"slowdown", test.slowdown},
                             {"sizes", name_of(test.sizes)},
                             {"slow", test.slow}});
  }
  return to_text(json);
}

}  // namespace lockstep::compare

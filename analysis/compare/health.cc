#include "analysis/compare/health.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

namespace lockstep::compare {
namespace {

constexpr double kSlow = 1.2;
constexpr std::size_t kFewest = 4;  // like tests, before one of them can stand out

double median(std::vector<double> values) {
  if (values.empty()) {
    return 0;
  }
  std::ranges::sort(values);
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

/// "…-g1-node7_node9" -> node7, node9; "…-n1_g8_node7" -> node7.
std::vector<std::string> hosts_in(const std::string& id, std::int32_t servers) {
  std::size_t at = std::string::npos;
  for (std::size_t i = 0; i + 2 < id.size(); ++i) {
    const bool mark = (id[i] == 'g' || id[i] == 'G') && id[i + 1] >= '0' && id[i + 1] <= '9' &&
                      (i == 0 || id[i - 1] == '-' || id[i - 1] == '_');
    std::size_t end = i + 1;
    while (mark && end < id.size() && id[end] >= '0' && id[end] <= '9') {
      ++end;
    }
    if (mark && end + 1 < id.size() && (id[end] == '-' || id[end] == '_')) {
      at = end + 1;
    }
  }
  std::vector<std::string> hosts;
  if (at != std::string::npos) {
    for (const std::string_view host : split(std::string_view(id).substr(at), '_')) {
      if (!host.empty()) {
        hosts.emplace_back(host);
      }
    }
  }
  return std::ssize(hosts) == servers ? hosts : std::vector<std::string>{};
}

/// A host's name without the number at its end: hosts of one cluster have the same.
std::string family(std::string host) {
  while (!host.empty() && (host.back() == '-' || (host.back() >= '0' && host.back() <= '9'))) {
    host.pop_back();
  }
  return host;
}

struct Table {
  const CommSetting* setting = nullptr;
  CommType op = CommType::kNone;
  std::map<std::pair<std::int64_t, bool>, std::vector<double>> times;
  double wrong = 0;
  TestHealth health;
};

using GroupKey =
    std::tuple<CommType, std::int32_t, std::int32_t, std::string, std::string, std::string>;

std::vector<Table> tables_of(const std::vector<PhysicalLog>& logs) {
  std::vector<Table> tables;
  for (const PhysicalLog& log : logs) {
    std::map<std::pair<std::int32_t, CommType>, std::size_t> known;
    for (const CommRow& row : log.comms) {
      if (row.time_s <= 0 || row.bytes <= Bytes()) {
        continue;
      }
      const auto [at, fresh] = known.try_emplace({row.setting, row.op}, tables.size());
      if (fresh) {
        Table table;
        table.setting = &log.settings[static_cast<std::size_t>(row.setting)];
        table.op = row.op;
        table.health.id = table.setting->id;
        std::set<std::string> hosts(table.setting->hosts.begin(), table.setting->hosts.end());
        hosts.erase("");
        table.health.hosts.assign(hosts.begin(), hosts.end());
        if (hosts.empty()) {
          table.health.hosts = hosts_in(table.setting->id, table.setting->servers);
        }
        tables.push_back(std::move(table));
      }
      Table& table = tables[at->second];
      table.times[{row.bytes.count(), row.in_place}].push_back(row.time_s);
      table.wrong = std::min(table.wrong + row.wrong, 1e18);  // stays a number
    }
  }
  return tables;
}

/// Slowdown of each table of a group: the mean of its bandwidths, each of the group's median one,
/// inverted.
void judge(std::vector<Table*>& group) {
  std::map<std::pair<std::int64_t, bool>, std::vector<double>> all;
  for (const Table* table : group) {
    for (const auto& [size, times] : table->times) {
      all[size].push_back(median(times));
    }
  }
  std::map<std::pair<std::int64_t, bool>, double> usual;
  for (const auto& [size, times] : all) {
    if (times.size() >= kFewest) {
      usual[size] = median(times);
    }
  }
  std::vector<double> slowdowns;
  for (Table* table : group) {
    double rates = 0, sizes = 0;  // the mean of the bandwidths, of the usual ones
    for (const auto& [size, times] : table->times) {
      if (const auto found = usual.find(size); found != usual.end()) {
        rates += found->second / median(times);
        ++sizes;
      }
    }
    table->health.slowdown = sizes > 0 ? sizes / rates : 1;
    slowdowns.push_back(table->health.slowdown);
  }
  const double middle = median(slowdowns);
  for (Table* table : group) {
    table->health.slow = group.size() >= kFewest && table->health.slowdown > kSlow * middle;
  }
}

/// The hosts that explain most slow tests, one by one, then the pairs that are left.
void name_culprits(const std::vector<Table*>& group, const std::string& what,
                   std::vector<Finding>& findings) {
  std::map<std::string, std::size_t> tests;
  for (const Table* table : group) {
    for (const std::string& host : table->health.hosts) {
      ++tests[host];
    }
  }
  std::vector<const Table*> slow;
  for (const Table* table : group) {
    if (table->health.slow) {
      slow.push_back(table);
    }
  }
  for (;;) {
    std::map<std::string, std::vector<double>> counts;
    for (const Table* table : slow) {
      for (const std::string& host : table->health.hosts) {
        counts[host].push_back(table->health.slowdown);
      }
    }
    const std::vector<double>* most = nullptr;
    std::string host;
    for (const auto& [name, list] : counts) {
      const bool majority = 2 * list.size() > tests[name] && (list.size() > 1 || tests[name] == 1);
      if (majority && (most == nullptr || list.size() > most->size())) {
        most = &list;
        host = name;
      }
    }
    if (most == nullptr) {
      break;
    }
    // Of two hosts that meet in one test alone, neither can be told to be the slow one.
    const bool lone = group.front()->health.hosts.size() > 1 && most->size() < 2;
    if (lone) {
      break;
    }
    findings.push_back({FindingKind::kSlowNode, host, median(*most),
                        fmt::format("{}: {} of its {} tests are slow, {:.2f} times the median",
                                    what, most->size(), tests[host], median(*most))});
    std::erase_if(slow, [&](const Table* table) {
      return std::ranges::find(table->health.hosts, host) != table->health.hosts.end();
    });
  }
  for (const Table* table : slow) {
    const auto& hosts = table->health.hosts;
    std::string names;
    for (const std::string& host : hosts) {
      names += (names.empty() ? "" : " ") + host;
    }
    const bool pair = hosts.size() == 2;
    findings.push_back({pair ? FindingKind::kSlowPair : FindingKind::kSlowRun,
                        pair ? names : table->health.id, table->health.slowdown,
                        fmt::format("{}: {:.2f} times the median{}", what, table->health.slowdown,
                                    pair ? "; both hosts are well with most others: cables, switch "
                                           "ports or paths between them"
                                         : "")});
  }
}

/// What a log says about itself.
void look_at(const Table& table, std::vector<Finding>& findings) {
  const CommSetting& setting = *table.setting;
  const std::string transport = to_lower(setting.transport);
  const std::int32_t each = setting.servers > 0 ? setting.ranks / setting.servers : 0;
  const bool far = setting.servers > 1;
  if (far && transport.find("socket") != std::string::npos) {
    findings.push_back({FindingKind::kTcpFallback, table.health.id, 1,
                        "NCCL uses the network 'Socket': TCP, not the NICs' own transport"});
  }
  const auto gdr_level = setting.env.find("NCCL_NET_GDR_LEVEL");
  const bool off = gdr_level != setting.env.end() &&
                   (gdr_level->second == "0" || to_lower(gdr_level->second) == "loc");
  if (far && (setting.gdr == false || off || transport.find("gdr off") != std::string::npos)) {
    findings.push_back({FindingKind::kGdrOff, table.health.id, 1,
                        off ? "NCCL_NET_GDR_LEVEL=" + gdr_level->second
                            : "NICs do not read GPU memory: GPU Direct RDMA is off for every GPU"});
  }
  std::size_t ib = 0;
  for (const std::string& nic : setting.nics) {
    ib += nic.find("/IB") != std::string::npos || nic.find("/RoCE") != std::string::npos ? 1U : 0U;
  }
  if (far && each >= 4 && ib > 0 && 2 * static_cast<std::int32_t>(ib) < each) {
    findings.push_back({FindingKind::kFewNics, table.health.id, 1,
                        fmt::format("NCCL uses {} NICs for {} GPUs of a server", ib, each)});
  }
  if (table.wrong > 0) {
    findings.push_back({FindingKind::kWrongResults, table.health.id, 1,
                        fmt::format("{:.0f} elements came out wrong", table.wrong)});
  }
}

}  // namespace

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
    case FindingKind::kWrongResults:
      return "wrong-results";
  }
  LOCKSTEP_CHECK(false, "every kind has a name");
}

Health check_health(const std::vector<PhysicalLog>& logs) {
  std::vector<Table> tables = tables_of(logs);
  std::map<GroupKey, std::vector<Table*>> groups;
  Health health;
  for (Table& table : tables) {
    const CommSetting& setting = *table.setting;
    const std::string cluster =
        table.health.hosts.empty() ? "" : family(table.health.hosts.front());
    groups[{table.op, setting.ranks, setting.servers, setting.gpu_type, setting.nccl_version,
            cluster}]
        .push_back(&table);
    look_at(table, health.findings);
  }
  for (auto& [key, group] : groups) {
    judge(group);
    ++health.groups;
    name_culprits(group,
                  fmt::format("{} on {} GPUs in {} server{}", lockstep::name_of(std::get<0>(key)),
                              std::get<1>(key), std::get<2>(key), std::get<2>(key) == 1 ? "" : "s"),
                  health.findings);
  }
  for (const Table& table : tables) {
    health.tests.push_back(table.health);
  }
  std::ranges::stable_sort(health.findings, [](const Finding& a, const Finding& b) {
    return a.kind != b.kind ? a.kind < b.kind : a.slowdown > b.slowdown;
  });
  return health;
}

std::string health_table(const Health& health) {
  std::size_t slow = 0;
  for (const TestHealth& test : health.tests) {
    slow += test.slow ? 1U : 0U;
  }
  std::string text = fmt::format("{} tests in {} sets of like ones; {} slow\n", health.tests.size(),
                                 health.groups, slow);
  for (const Finding& finding : health.findings) {
    text +=
        fmt::format("{:<13} {}: {}\n", name_of(finding.kind), finding.subject, finding.evidence);
  }
  return text + (health.findings.empty() ? "nothing stands out\n" : "");
}

std::string health_json(const Health& health) {
  Json json;
  json["schema"] = "lockstep-health/1";
  json["sets"] = health.groups;
  json["findings"] = Json::array();
  for (const Finding& finding : health.findings) {
    json["findings"].push_back({{"kind", name_of(finding.kind)},
                                {"subject", finding.subject},
                                {"slowdown", finding.slowdown},
                                {"evidence", finding.evidence}});
  }
  json["tests"] = Json::array();
  for (const TestHealth& test : health.tests) {
    json["tests"].push_back(
        {{"id", test.id}, {"hosts", test.hosts}, {"slowdown", test.slowdown}, {"slow", test.slow}});
  }
  return to_text(json);
}

}  // namespace lockstep::compare

#include "analysis/compare/health.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "analysis/compare/errors.h"
#include "analysis/compare/host_clusters.h"
#include "base/text.h"

namespace lockstep::compare {
namespace {

constexpr double kSlow = 1.2;

using Size = std::pair<std::int64_t, bool>;  // bytes, in place

/// Something that a log says itself, or beside like ones.
struct Cause {
  FindingKind kind;
  std::string evidence;
};

/// Whether it is why a test is slow.
bool slows_down(FindingKind kind) { return kind != FindingKind::kWrongResults; }

struct Table {
  const CommSetting* setting = nullptr;
  CommType op = CommType::kNone;
  std::map<Size, std::vector<double>> times;
  double wrong = 0;
  std::map<SizeKind, double> slowdowns;  // none where too few tests are alike
  std::vector<Cause> causes;
  TestHealth health;
};

std::map<std::string, std::size_t> tests_of_hosts(const std::vector<Table*>& group) {
  std::map<std::string, std::size_t> tests;
  for (const Table* table : group) {
    for (const std::string& host : table->health.hosts) {
      ++tests[host];
    }
  }
  return tests;
}

std::string names_of(const std::vector<std::string>& hosts) {
  std::string names;
  for (const std::string& host : hosts) {
    names += (names.empty() ? "" : " ") + host;
  }
  return names;
}

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

/// The usual time of each size of a group that enough tests measured.
std::map<Size, double> usual_times(const std::vector<Table*>& group) {
  std::map<Size, std::vector<double>> all;
  for (const Table* table : group) {
    for (const auto& [size, times] : table->times) {
      all[size].push_back(median(times));
    }
  }
  std::map<Size, double> usual;
  for (const auto& [size, times] : all) {
    if (times.size() >= kFewestLikeTests) {
      usual[size] = median(times);
    }
  }
  return usual;
}

/// What the times of the smallest and the largest size have in common beside what grows with the
/// bytes, of those in place or not.
double latency(const std::map<Size, double>& usual, bool in_place) {
  const std::pair<const Size, double>*smallest = nullptr, *largest = nullptr;
  for (const auto& entry : usual) {
    if (entry.first.second == in_place) {
      smallest = smallest == nullptr ? &entry : smallest;
      largest = &entry;
    }
  }
  if (smallest == largest) {
    return 0;
  }
  const auto least = static_cast<double>(smallest->first.first);
  const double more = static_cast<double>(largest->first.first) - least;
  return smallest->second - least * std::max(0.0, largest->second - smallest->second) / more;
}

/// The sizes that bandwidth bounds: their usual one is at least half of the most, and their usual
/// time at least twice the latency: in a sweep that latency alone bounds there are none.
std::set<Size> bandwidth_bound(const std::map<Size, double>& usual) {
  const auto rate = [](const auto& entry) {
    return static_cast<double>(entry.first.first) / entry.second;
  };
  std::map<bool, double> most;  // in place or not
  for (const auto& entry : usual) {
    double& here = most[entry.first.second];
    here = std::max(here, rate(entry));
  }
  const std::map<bool, double> latencies{{false, latency(usual, false)},
                                         {true, latency(usual, true)}};
  std::set<Size> sizes;
  for (const auto& entry : usual) {
    const bool in_place = entry.first.second;
    if (2 * rate(entry) >= most[in_place] && entry.second >= 2 * latencies.at(in_place)) {
      sizes.insert(entry.first);
    }
  }
  return sizes;
}

/// Slowdown of each table of a group: the mean of its bandwidths, each of the group's median one,
/// inverted, and of the median of these. Of all sizes, or of those that bandwidth bounds where
/// these tell more: beside many small sizes the few large ones of a usual sweep hardly count.
void judge(std::vector<Table*>& group) {
  const std::map<Size, double> usual = usual_times(group);
  const std::set<Size> large = bandwidth_bound(usual);
  std::map<SizeKind, std::vector<double>> slowdowns;
  for (Table* table : group) {
    std::map<SizeKind, std::vector<double>> rates;
    for (const auto& [size, times] : table->times) {
      if (const auto found = usual.find(size); found != usual.end()) {
        const double rate = found->second / median(times);
        rates[SizeKind::kAll].push_back(rate);
        if (large.contains(size)) {
          rates[SizeKind::kBandwidthBound].push_back(rate);
        }
      }
    }
    for (const auto& [kind, values] : rates) {
      const double sum = std::accumulate(values.begin(), values.end(), 0.0);
      table->slowdowns[kind] = static_cast<double>(values.size()) / sum;
      slowdowns[kind].push_back(table->slowdowns[kind]);
    }
  }
  std::map<SizeKind, double> middle;
  for (const auto& [kind, values] : slowdowns) {
    middle[kind] = median(values);
  }
  for (Table* table : group) {
    TestHealth& health = table->health;
    for (auto& [kind, slowdown] : table->slowdowns) {  // all sizes first
      slowdown /= middle[kind];
      const bool tells_more =
          slowdown > kSlow * health.slowdown || (slowdown > kSlow && health.slowdown <= kSlow);
      if (!health.judged || tells_more) {
        health.slowdown = slowdown;
        health.sizes = kind;
      }
      health.judged = true;
    }
    health.slow = health.slowdown > kSlow;
  }
}

/// The hosts that explain most of the picked tests, one by one: more than half of their tests, and
/// not one alone, are picked. Those tests are taken out of `picked`.
std::vector<std::pair<std::string, std::vector<const Table*>>> hosts_behind(
    const std::vector<Table*>& group, std::vector<const Table*>& picked) {
  const std::map<std::string, std::size_t> tests = tests_of_hosts(group);
  std::vector<std::pair<std::string, std::vector<const Table*>>> found;
  for (;;) {
    std::map<std::string, std::vector<const Table*>> of_host;
    for (const Table* table : picked) {
      for (const std::string& host : table->health.hosts) {
        of_host[host].push_back(table);
      }
    }
    const std::pair<const std::string, std::vector<const Table*>>* most = nullptr;
    for (const auto& each : of_host) {
      const std::size_t count = each.second.size(), all = tests.at(each.first);
      const bool majority = 2 * count > all && (count > 1 || all == 1);
      if (majority && (most == nullptr || count > most->second.size())) {
        most = &each;
      }
    }
    // Of two hosts that meet in one test alone, neither can be told to be the one.
    if (most == nullptr || (group.front()->health.hosts.size() > 1 && most->second.size() < 2)) {
      return found;
    }
    found.emplace_back(most->first, most->second);
    std::erase_if(picked, [&](const Table* table) {
      return std::ranges::find(table->health.hosts, found.back().first) !=
             table->health.hosts.end();
    });
  }
}

/// Of the tests of the very hosts of a slow one, those that are not slow; none where most are.
std::vector<const Table*> sound_tests_of_same(const std::vector<Table*>& group, const Table& slow) {
  std::vector<const Table*> sound;
  std::size_t all = 0;
  for (const Table* table : group) {
    if (!slow.health.hosts.empty() && table->health.hosts == slow.health.hosts) {
      ++all;
      if (!table->health.slow) {
        sound.push_back(table);
      }
    }
  }
  return 2 * sound.size() >= all ? sound : std::vector<const Table*>();
}

/// Whether both hosts of a slow test have some with other hosts, most of which are not slow.
bool well_with_others(const std::vector<Table*>& group, const Table& slow) {
  return std::ranges::all_of(slow.health.hosts, [&](const std::string& host) {
    std::size_t others = 0, well = 0;
    for (const Table* table : group) {
      if (table->health.hosts != slow.health.hosts &&
          std::ranges::find(table->health.hosts, host) != table->health.hosts.end()) {
        ++others;
        well += table->health.slow ? 0U : 1U;
      }
    }
    return others > 0 && 2 * well > others;
  });
}

/// What is to be said of tests whose median may be slow itself, or nothing.
std::string warning_of(const std::vector<Table*>& group, const std::string& what) {
  std::map<SizeKind, std::size_t> fast, all;
  for (const Table* table : group) {
    for (const auto& [kind, slowdown] : table->slowdowns) {
      fast[kind] += slowdown < 1 / kSlow ? 1U : 0U;
      ++all[kind];
    }
  }
  const auto most =
      std::ranges::max_element(fast, {}, [](const auto& each) { return each.second; });
  if (most == fast.end() || most->second < 2 || 5 * most->second < all[most->first]) {
    return "";
  }
  return fmt::format(
      "{}: {} of {} tests take less than 1/{:.1f} of the median time: if they are the sound ones, "
      "most others are slow, and their hosts cannot be told (of n hosts in pairs a third suffices)",
      what, most->second, all[most->first], kSlow);
}

/// "2.00 times the median", with the sizes of which this is so.
std::string slowdown_text(double slowdown, SizeKind sizes) {
  const std::string text = fmt::format("{:.2f} times the median", slowdown);
  return sizes == SizeKind::kAll ? text : fmt::format("{} of {} sizes", text, name_of(sizes));
}

/// The hosts that explain most slow tests, one by one, then the pairs that are left. Tests that say
/// themselves why they are slow are no evidence against hosts or cables.
void name_culprits(const std::vector<Table*>& group, const std::string& what,
                   std::vector<Finding>& findings) {
  const std::map<std::string, std::size_t> tests = tests_of_hosts(group);
  std::vector<const Table*> slow;
  for (const Table* table : group) {
    const bool explained = std::ranges::any_of(
        table->causes, [](const Cause& cause) { return slows_down(cause.kind); });
    if (table->health.slow && !explained) {
      slow.push_back(table);
    }
  }
  for (const auto& [host, tables] : hosts_behind(group, slow)) {
    std::vector<double> slowdowns;
    for (const Table* table : tables) {
      slowdowns.push_back(table->health.slowdown);
    }
    const SizeKind sizes = tables.front()->health.sizes;
    const bool alike = std::ranges::all_of(
        tables, [&](const Table* table) { return table->health.sizes == sizes; });
    findings.push_back(
        {FindingKind::kSlowNode, host, median(slowdowns),
         fmt::format("{}: {} of its {} tests are slow, {}", what, tables.size(), tests.at(host),
                     slowdown_text(median(slowdowns), alike ? sizes : SizeKind::kAll))});
  }
  for (const Table* table : slow) {
    const auto& hosts = table->health.hosts;
    const std::vector<const Table*> sound = sound_tests_of_same(group, *table);
    const bool pair = hosts.size() == 2 && sound.empty();
    const double slowdown = table->health.slowdown;
    std::string evidence =
        fmt::format("{}: {}", what, slowdown_text(slowdown, table->health.sizes));
    if (slowdown > 1.8 && slowdown < 2.2) {
      evidence += ", about half the rate: as if half of the rails or of a link's width were gone";
    }
    if (!sound.empty()) {
      evidence += fmt::format(
          "; the same hosts are sound in {}{}: what differs is this run's settings or moment, not "
          "hosts or cables",
          sound.front()->health.id,
          sound.size() > 1 ? fmt::format(" and {} more", sound.size() - 1) : "");
    } else if (pair) {
      evidence += well_with_others(group, *table)
                      ? "; both hosts are well with most others: cables, switch ports or paths "
                        "between them"
                      : "; no other tests tell whether it is a host or what lies between them";
    }
    findings.push_back({pair ? FindingKind::kSlowPair : FindingKind::kSlowRun,
                        pair ? names_of(hosts) : table->health.id, slowdown, std::move(evidence)});
  }
}

bool over_tcp(const Table& table) {
  return std::ranges::find(table.causes, FindingKind::kTcpFallback, &Cause::kind) !=
         table.causes.end();
}

/// Like tests on as many GPUs should see as many NICs: those that see fewer than most.
void compare_nics(const std::vector<Table*>& group) {
  std::map<std::size_t, std::vector<const Table*>> by_count;
  for (const Table* table : group) {
    if (!table->setting->nics.empty() && !over_tcp(*table)) {
      by_count[table->setting->nics.size()].push_back(table);
    }
  }
  const auto usual = std::ranges::max_element(
      by_count, {}, [](const auto& each) { return std::pair(each.second.size(), each.first); });
  if (usual == by_count.end() || usual->second.size() < 2) {
    return;
  }
  const std::vector<std::string>& names = usual->second.front()->setting->nics;
  for (Table* table : group) {
    const std::vector<std::string>& nics = table->setting->nics;
    if (nics.empty() || nics.size() >= usual->first || over_tcp(*table) ||
        std::ranges::find(table->causes, FindingKind::kFewNics, &Cause::kind) !=
            table->causes.end()) {
      continue;
    }
    std::string missing;
    for (const std::string& name : names) {
      if (std::ranges::find(nics, name) == nics.end()) {
        missing += (missing.empty() ? "" : " ") + printable(name, 40);
      }
    }
    table->causes.push_back(
        {FindingKind::kFewNics,
         fmt::format("NCCL uses {} NICs, most like tests {}{}{}", nics.size(), usual->first,
                     missing.empty() ? "" : "; without ", missing)});
  }
}

/// What logs say about themselves: of a host, if most of its tests say so and others do not, else
/// of each log.
void tell_causes(const std::vector<Table*>& group, std::vector<Finding>& findings) {
  std::map<FindingKind, std::vector<const Table*>> by_kind;
  for (const Table* table : group) {
    for (const Cause& cause : table->causes) {
      by_kind[cause.kind].push_back(table);
    }
  }
  const std::map<std::string, std::size_t> tests = tests_of_hosts(group);
  for (auto& [kind, tables] : by_kind) {
    const auto evidence = [&, which = kind](const Table& table) {
      return std::ranges::find(table.causes, which, &Cause::kind)->evidence;
    };
    if (tables.size() < group.size()) {
      for (const auto& [host, of_host] : hosts_behind(group, tables)) {
        findings.push_back({kind, host, of_host.front()->health.slowdown,
                            fmt::format("{} of its {} tests: {}", of_host.size(), tests.at(host),
                                        evidence(*of_host.front()))});
      }
    }
    for (const Table* table : tables) {
      std::string text = evidence(*table);
      if (table->health.slow) {
        text += "; " + slowdown_text(table->health.slowdown, table->health.sizes);
      }
      findings.push_back({kind, table->health.id, table->health.slowdown, std::move(text)});
    }
  }
}

/// What a log says about itself.
void look_at(Table& table) {
  const CommSetting& setting = *table.setting;
  const std::string transport = to_lower(setting.transport);
  const std::int32_t each = setting.servers > 0 ? setting.ranks / setting.servers : 0;
  const bool far = setting.servers > 1;
  const auto set_to = [&](const char* name, std::string_view value) {
    const auto found = setting.env.find(name);
    return found != setting.env.end() && to_lower(found->second) == value;
  };
  const auto add = [&](FindingKind kind, std::string evidence) {
    table.causes.push_back({kind, std::move(evidence)});
  };
  if (far && transport.find("socket") != std::string::npos) {
    add(FindingKind::kTcpFallback,
        "NCCL uses the network 'Socket': TCP, not the NICs' own transport");
  } else if (far && (set_to("NCCL_IB_DISABLE", "1") || set_to("NCCL_NET", "socket"))) {
    add(FindingKind::kTcpFallback,
        fmt::format("{}: TCP, not the NICs' own transport",
                    set_to("NCCL_NET", "socket") ? "NCCL_NET=Socket" : "NCCL_IB_DISABLE=1"));
  }
  const auto gdr_level = setting.env.find("NCCL_NET_GDR_LEVEL");
  const bool off = gdr_level != setting.env.end() &&
                   (gdr_level->second == "0" || to_lower(gdr_level->second) == "loc");
  const bool no_channel = setting.net_channels > 0 && setting.gdr_channels == 0;
  if (far && (setting.gdr == false || off || transport.find("gdr off") != std::string::npos)) {
    add(FindingKind::kGdrOff,
        off ? "NCCL_NET_GDR_LEVEL=" + printable(gdr_level->second, 20)
        : no_channel
            ? fmt::format("none of {} listed channels over NICs reads GPU memory (/GDRDMA)",
                          setting.net_channels)
            : "NICs do not read GPU memory: GPU Direct RDMA is off for every GPU");
  }
  std::size_t ib = 0;
  for (const std::string& nic : setting.nics) {
    ib += nic.find("/IB") != std::string::npos || nic.find("/RoCE") != std::string::npos ? 1U : 0U;
  }
  if (far && each >= 4 && ib > 0 && 2 * static_cast<std::int32_t>(ib) < each) {
    add(FindingKind::kFewNics, fmt::format("NCCL uses {} NICs for {} GPUs of a server", ib, each));
  }
  if (!setting.nic_errors.empty()) {
    add(FindingKind::kNicError, printable(setting.nic_errors.front(), 120));
  }
  if (table.wrong > 0) {
    add(FindingKind::kWrongResults, fmt::format("{:.0f} elements came out wrong", table.wrong));
  }
}

}  // namespace

Health check_health(const std::vector<PhysicalLog>& logs) {
  std::vector<Table> tables = tables_of(logs);
  HostClusters clusters;
  for (const Table& table : tables) {
    clusters.take(table.health.hosts);
  }
  std::map<GroupKey, std::vector<Table*>> groups;
  Health health;
  for (Table& table : tables) {
    const CommSetting& setting = *table.setting;
    groups[{table.op, setting.ranks, setting.servers, setting.gpu_type, setting.nccl_version,
            clusters.of(table.health.hosts)}]
        .push_back(&table);
    look_at(table);
  }
  for (auto& [key, group] : groups) {
    judge(group);
    compare_nics(group);
    tell_causes(group, health.findings);
    ++health.groups;
    const std::string what =
        fmt::format("{} on {} GPUs in {} server{}", lockstep::name_of(std::get<0>(key)),
                    std::get<1>(key), std::get<2>(key), std::get<2>(key) == 1 ? "" : "s");
    name_culprits(group, what, health.findings);
    if (std::string warning = warning_of(group, what); !warning.empty()) {
      health.warnings.push_back(std::move(warning));
    }
  }
  for (const Table& table : tables) {
    health.tests.push_back(table.health);
    health.not_judged += table.health.judged ? 0U : 1U;
  }
  std::ranges::stable_sort(health.findings, [](const Finding& a, const Finding& b) {
    return a.kind != b.kind ? a.kind < b.kind : a.slowdown > b.slowdown;
  });
  return health;
}

}  // namespace lockstep::compare

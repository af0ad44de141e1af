// The flow engine against SimAI's packet simulator, transfer by transfer: every transfer of a SimAI
// run is started when SimAI started it, with the source port that it had there (hence on the same
// path), and its duration up to the last ACK is compared. The bounds are what was measured, rounded
// up; docs/models.md has the table.

#include <algorithm>
#include <cmath>
#include <cstdio>

#include <gtest/gtest.h>

#include "base/text.h"
#include "simulator/network/flow/flow_engine.h"
#include "tests/support/flow_run.h"
#include "tests/support/reference.h"
#include "topologies/topology_file.h"

namespace lockstep::flow_simai_fct_test {
namespace {

struct Recorded {
  FlowSpec flow;
  std::int64_t source_port = 0;
  Time duration;
};

/// Node of an address 11.(id / 256).(id % 256).1, in hexadecimal.
NodeId node_of(std::string_view address) {
  const std::int64_t number = std::stoll(std::string(address), nullptr, 16);
  return NodeId(static_cast<std::int32_t>(number >> 8 & 0xffff));
}

/// Lines "source destination source-port destination-port bytes start-ns duration-ns …"; in the
/// order of the source ports of each pair.
std::vector<Recorded> read_transfers(const std::string& path) {
  std::vector<Recorded> transfers;
  const std::string text = testing::slurp(path);
  for (const std::string_view line : split(text, '\n')) {
    const std::vector<std::string_view> words = split_blanks(line);
    if (words.size() < 7) {
      continue;
    }
    Recorded& r = transfers.emplace_back();
    r.flow.source = node_of(words[0]);
    r.flow.destination = node_of(words[1]);
    r.source_port = to_int(words[2]).value();
    r.flow.bytes = Bytes(to_int(words[4]).value());
    r.flow.start = Time::ns(to_int(words[5]).value());
    r.duration = Time::ns(to_int(words[6]).value());
  }
  std::stable_sort(transfers.begin(), transfers.end(), [](const Recorded& a, const Recorded& b) {
    return a.source_port < b.source_port;
  });
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    transfers[i].flow.tag = i;
  }
  return transfers;
}

struct Agreement {
  std::size_t transfers = 0;
  double mean = 0;      ///< of duration / SimAI's - 1
  double mean_abs = 0;  ///< of its absolute value
  double worst = 0;
  double last_end = 0;  ///< end of the last transfer, over its start: the same
};

Agreement compare(const std::string& name) {
  const std::string folder = testing::reference_dir() + "/simai/" + name;
  const Topology topology = parse_topology(testing::slurp(folder + "/topo"), folder + "/topo");
  const std::vector<Recorded> transfers = read_transfers(folder + "/fct.txt.gz");
  FlowEngine engine(topology, simai_flow_options());
  for (const Recorded& r : transfers) {
    engine.start(r.flow);
  }
  const auto outcomes = testing::outcomes(testing::run_to_end(engine));
  Agreement a;
  a.transfers = transfers.size();
  Time first = Time::max(), our_end, their_end;
  for (const Recorded& r : transfers) {
    const Time end = outcomes.at(r.flow.tag).delivered;
    const double error = (end - r.flow.start) / r.duration - 1;
    a.mean += error / static_cast<double>(transfers.size());
    a.mean_abs += std::abs(error) / static_cast<double>(transfers.size());
    a.worst = std::max(a.worst, std::abs(error));
    first = std::min(first, r.flow.start);
    our_end = std::max(our_end, end);
    their_end = std::max(their_end, r.flow.start + r.duration);
  }
  a.last_end = (our_end - first) / (their_end - first) - 1;
  return a;
}

struct Expected {
  const char* name;
  double mean_abs, last_end;
};

class FlowAgainstSimai : public ::testing::TestWithParam<Expected> {};

TEST_P(FlowAgainstSimai, DurationsAgree) {
  LOCKSTEP_NEEDS_REFERENCE();
  const Agreement a = compare(GetParam().name);
  std::printf(
      "%-22s %6zu transfers: mean %+.2f %%, mean size %.2f %%, worst %.1f %%, end %+.3f %%\n",
      GetParam().name, a.transfers, 100 * a.mean, 100 * a.mean_abs, 100 * a.worst,
      100 * a.last_end);
  EXPECT_LE(a.mean_abs, GetParam().mean_abs);
  EXPECT_LE(std::abs(a.last_end), GetParam().last_end);
}

INSTANTIATE_TEST_SUITE_P(
    Runs, FlowAgainstSimai,
    ::testing::Values(Expected{"ar_16M_8", 0.002, 0.0001}, Expected{"ar_128M_8", 0.001, 0.0001},
                      Expected{"ar_1G_8", 0.001, 0.0001}, Expected{"ar_16M_16", 0.015, 0.0002},
                      Expected{"ar_16M_32", 0.015, 0.0001}, Expected{"llm2_8", 0.003, 0.0001},
                      Expected{"llm2_16", 0.003, 0.0005}, Expected{"llm2_64", 0.003, 0.0002},
                      Expected{"micro_32_pxn", 0.002, 0.0001},
                      Expected{"micro_128_A100_readme", 0.002, 0.0001},
                      Expected{"tut_ring_32_nv1440", 0.002, 0.0001},
                      Expected{"tut_nvls_32_nv1360", 0.001, 0.0001}),
    [](const auto& run) { return std::string(run.param.name); });

}  // namespace
}  // namespace lockstep::flow_simai_fct_test

// Random steps, folded by symmetry and rank by rank: every rank ends at the same picosecond, every
// operation of rank 0 (of some steps, of all ranks) runs at the same time, and ports carry the
// same. Jobs of all schedules and cuts, on fabrics of most templates, with stragglers of all kinds
// that leave anything to fold. LOCKSTEP_DIFFERENTIAL_CASES=2000 draws more of them,
// LOCKSTEP_DIFFERENTIAL_SEED others, LOCKSTEP_DIFFERENTIAL_CASE the one of that number alone.
#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/rng.h"
#include "base/text.h"
#include "generator/exact/exact_workload.h"
#include "simulator/replay/kept_step.h"
#include "simulator/replay/shared_step.h"
#include "tests/support/exact_models.h"
#include "tests/support/random_job.h"
#include "tests/support/replayed_job.h"
#include "topologies/topology_file.h"

namespace lockstep::folded_steps_test {
namespace {

using testing::pick;

std::int64_t from_environment(const char* name, std::int64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : to_int(text).value_or(otherwise);
}

bool one_in(Rng& rng, std::uint64_t n) { return rng.below(n) == 0; }

/// How long operators take: the roofline's time, so many times as long, in whole grains. Coarse
/// ones make many things happen at the same moment.
struct Pace {
  std::int64_t factor = 1, grain_ps = 1;
};

struct Case {
  Job job;
  std::optional<Job> other;  ///< that shares the fabric
  enum class Layers : std::uint8_t { kNone, kPlain, kStrict };
  Layers layers =
      Layers::kNone;  ///< SimAI's in place of the job, by its rules to the letter or not
  Pace pace;
  std::string topology;
  FlowOptions flow;
  std::vector<std::string> slow;
  bool steady = false;       ///< nobody is slow for a time, no link is
  bool ranks_alike = false;  ///< small collectives as `simulate` has them
  Interference interference;
  Time send_latency = Time::us(6);
  std::uint64_t seed = 1;
  enum class Mode : std::uint8_t { kVerify, kAllRanks, kKept, kShared } mode = Mode::kVerify;

  std::int64_t gpus() const { return job.gpus + (other ? other->gpus : 0); }
};

/// What a job is drawn from. `repeats`: many microbatches of replicas, most of which do the same
/// again and again.
struct Range {
  std::int64_t most_gpus = 64, most_work = 1500;
  bool repeats = false;
};

/// May break rules. No GPUs where it would take long in full.
Job draw_job(Rng& rng, const Range& range) {
  Job job;
  job.tp = pick<std::int64_t>(rng, {1, 1, 2, 2, 4, 8});
  job.cp = pick<std::int64_t>(rng, {1, 1, 1, 2, 4});
  job.pp = pick<std::int64_t>(rng, {1, 2, 2, 3, 4, 4, 6, 8});
  const PipelineSchedule& schedule = *pipeline_schedules()[rng.below(pipeline_schedules().size())];
  job.schedule = schedule.name;
  job.vpp = job.pp > 1 && !schedule.one_chunk ? rng.between(1, 4) : 1;
  const auto dp = range.repeats           ? pick<std::int64_t>(rng, {2, 2, 3, 4})
                  : range.most_gpus <= 64 ? pick<std::int64_t>(rng, {1, 2, 2, 3, 4, 4, 6, 8, 16})
                                          : pick<std::int64_t>(rng, {8, 12, 16, 32, 64});
  job.gpus = job.tp * job.cp * job.pp * dp;
  job.sequence_parallel = one_in(rng, 2);
  const bool moe = (job.tp == 1 || job.sequence_parallel) && one_in(rng, 3);
  if (moe) {
    job.ep = pick<std::int64_t>(rng, {1, 2, 4, 8});
    job.expert_tp = pick<std::int64_t>(rng, {0, 1, 2});
  }
  const std::int64_t stages = job.pp * job.vpp;
  const std::int64_t layers = rng.between(stages, stages + rng.between(0, stages));
  const auto kv_heads = pick<std::int64_t>(rng, {2, 8});
  job.model = one_in(rng, 4) && !moe
                  ? testing::gpt(layers, 64, 8, 256, 64)
                  : testing::llama(layers, 64, 8, kv_heads, 128, 256, moe ? 8 : 0);
  if (job.pp > 1 && one_in(rng, 8)) {
    job.stage_layers.assign(static_cast<std::size_t>(stages), 1);
    job.stage_layers[static_cast<std::size_t>(stages / 2)] += layers - stages;
    if (one_in(rng, 2)) {  // the embedding alone
      job.stage_layers[static_cast<std::size_t>(stages / 2)] += job.stage_layers[0];
      job.stage_layers[0] = 0;
    }
  }
  job.seq = pick<std::int64_t>(rng, {64, 64, 1024});
  job.micro_batch = rng.between(1, 2);
  const std::int64_t most = range.repeats ? 64 : 24;
  std::int64_t microbatches = rng.between(range.repeats ? 16 : 1, most);
  if (schedule.bidirectional) {
    microbatches = 2 * (job.pp + rng.between(0, range.repeats ? 16 : 4));
  } else if (job.vpp > 1) {
    microbatches = job.pp * rng.between(1, std::max<std::int64_t>(1, most / job.pp));
  }
  if (job.gpus > range.most_gpus || job.gpus * layers * microbatches > range.most_work) {
    job.gpus = 0;  // takes long in full
    return job;
  }
  job.global_batch = job.micro_batch * dp * microbatches;
  job.recompute = pick(rng, {Recompute::kNone, Recompute::kSelective, Recompute::kFull});
  job.precision =
      pick(rng, {Precision::kBf16, Precision::kBf16, Precision::kFp32, Precision::kFp8});
  job.sharding = pick(rng, {Sharding::kNone, Sharding::kZero1, Sharding::kZero2, Sharding::kZero3});
  if (job.sharding == Sharding::kZero3 && one_in(rng, 2)) {
    job.hsdp_replicas = pick<std::int64_t>(rng, {1, 2, 4});
  }
  job.rank_order = pick<std::string>(rng, {"tp-cp-ep-dp-pp", "tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp",
                                           "cp-tp-ep-dp-pp", "dp-tp-cp-ep-pp", "pp-tp-cp-ep-dp"});
  job.context_comm =
      pick(rng, {ContextComm::kRing, ContextComm::kAllGather, ContextComm::kAllToAll});
  job.gradient_bucket = pick<std::int64_t>(rng, {0, 1, 20'000});
  job.overlap_gradients = one_in(rng, 2);
  job.overlap_parameters = one_in(rng, 2);
  job.host_launch = one_in(rng, 8) && !range.repeats ? Time::ns(rng.between(1, 3000)) : Time();
  return job;
}

std::string draw_topology(Rng& rng, std::int64_t gpus) {
  const auto gps = pick<std::int64_t>(rng, {1, 2, 4, 8, 8, 8});
  const std::int64_t g = (gpus + gps - 1) / gps * gps;
  const std::string nic = pick<std::string>(rng, {"1Gbps", "40Gbps", "400Gbps", "400Gbps"});
  const std::string servers = fmt::format("gps={},bw={}", gps, nic);
  const std::string leaves =
      fmt::format("g={},{},npa={},psn={}", g, servers, pick<std::int64_t>(rng, {2, 4, 8, 64}),
                  pick<std::int64_t>(rng, {1, 2, 4, 8}));
  switch (rng.below(gpus <= 64 ? 16 : 5) + (gpus <= 64 ? 0 : 8)) {
    case 0:
      return fmt::format("single-switch:g={},{}", g, servers);
    case 1:
      return fmt::format("full-mesh:g={}", std::max<std::int64_t>(gpus, 2));
    case 2:
      return fmt::format("fat-tree:k={},{}",
                         gpus <= 16   ? 4
                         : gpus <= 54 ? 6
                                      : 8,
                         gpus <= 16 ? "gps=2" : "gps=2,bw=" + nic);
    case 3:
      return "AlibabaHPN:" + leaves;
    case 4:
      return "DCN+:" + leaves;
    case 5:
      return fmt::format("torus:s={},gpr=4,gps=4,bw={}", gpus <= 16 ? "2x2" : "4x4", nic);
    case 6:
      return fmt::format("dragonfly:p=4,a=4,gl=1,gps=4,bw={}", nic);
    case 7:
      return fmt::format("nvlink-racks:racks=4,gps=16,rpl=2,psn=2,bw={}", nic);
    case 8:
      return fmt::format("heterogeneous:gpus-a={0},gpus-b={0},nic-a={1}", (gpus / 2 + 8) / 8 * 8,
                         nic);
    case 9:
      return fmt::format("pods:g={},pods=2,npa=4,psn=2,csn=4,{}", (g + 15) / 16 * 16, servers);
    case 10:
      return "plain:" + leaves;
    case 11:
      return "rail-optimised:" + leaves;
    default:
      return one_in(rng, 2) ? "Spectrum-X:" + leaves
                            : fmt::format("Spectrum-X:g={},{}", g, servers);
  }
}

/// A time between 100 ns and 100 ms, small ones as often as long ones.
Time draw_time(Rng& rng) {
  std::int64_t ps = rng.between(100'000, 1'000'000);
  for (std::uint64_t i = rng.below(6); i > 0; --i) {
    ps *= 10;
  }
  return Time::ps(ps);
}

std::string ps(Time time) { return fmt::format("{}ps", time.count_ps()); }

std::string draw_straggler(Rng& rng, const Case& of, const Topology& topology) {
  const auto gpus = static_cast<std::uint64_t>(of.gpus());
  const auto rank = rng.below(gpus);
  const std::string ranks = one_in(rng, 4)
                                ? fmt::format("{}-{}", rank, rank + rng.below(gpus - rank))
                                : fmt::format("{}", rank);
  const auto factor = pick<std::string>(rng, {"1.0001", "1.01", "1.1", "1.5", "2", "4", "0.5"});
  const auto share = pick<std::string>(rng, {"0.99", "0.5", "0.5", "0.1", "2"});
  const Link& link = topology.links[rng.below(topology.links.size())];
  const std::string cable = fmt::format("{}-{}", link.a.value, link.b.value);
  std::string timed;
  if (one_in(rng, 3) && !of.steady) {
    const Time from = draw_time(rng);
    timed = "@" + ps(from);
    if (one_in(rng, 2)) {
      timed += "-" + ps(from + draw_time(rng));
    }
  }
  switch (of.steady && one_in(rng, 2) ? 12 : rng.below(of.steady ? 3 : 16)) {
    case 0:
      return fmt::format("node:0:{}{}", factor, timed);
    case 1:
      return fmt::format("stage:{}:{}{}", rng.below(static_cast<std::uint64_t>(of.job.pp)), factor,
                         timed);
    case 2:
      return fmt::format("jitter:{}:{}:{}:{}", ranks,
                         pick<std::string>(rng, {"normal", "lognormal", "uniform", "exponential"}),
                         pick<std::string>(rng, {"0.05", "0.3"}),
                         of.steady ? "rank" : pick<std::string>(rng, {"rank", "microbatch", "op"}));
    case 3:
      return fmt::format("thermal:{}:{}:{}:0.3{}", ranks, factor, ps(Time::us(2) + draw_time(rng)),
                         timed);
    case 4: {
      const Time pause = draw_time(rng);
      return fmt::format("gc:{}:{}:{}:{}{}", ranks, ps(pause), ps(pause + draw_time(rng)),
                         pick<std::string>(rng, {"no", "yes"}), timed);
    }
    case 5:
      return fmt::format("seqlen:0.5:4:{}:0.5",
                         pick<std::string>(rng, {"lognormal", "uniform", "exponential"}));
    case 6:
      return fmt::format("link:{}:{}{}", cable, share, timed);
    case 7: {
      for (int i = 0; i < 20; ++i) {
        const auto node = rng.below(topology.nodes.size());
        if (topology.nodes[node].kind != NodeKind::kGpu) {
          return fmt::format("switch:{}:{}{}", node, share, timed);
        }
      }
      return fmt::format("nic:{}:{}{}", ranks, share, timed);
    }
    case 8:
      return fmt::format("nic:{}:{}{}", ranks, share, timed);
    case 9:
      return fmt::format("rail:0:{}{}", share, timed);
    case 10:
      return fmt::format("loss:{}:0.01:{}", cable, pick<int>(rng, {1, 64}));
    case 11:
      return fmt::format("background:{}-{}:100Mbps{}", rank, rng.below(gpus), timed);
    default:
      return fmt::format("gpu:{}:{}{}", ranks, factor, timed);
  }
}

Case draw(Rng& rng) {
  Case drawn;
  Range range;
  range.repeats = one_in(rng, 4);
  range.most_work = range.repeats ? 2500 : one_in(rng, 8) ? 6000 : 1500;
  if (one_in(rng, 25)) {
    range = {512, 6000, false};
  }
  while (drawn.job.gpus < 4) {
    drawn.job = draw_job(rng, range);
  }
  if (one_in(rng, 12)) {
    drawn.layers = pick(rng, {Case::Layers::kPlain, Case::Layers::kStrict});
  } else if (one_in(rng, 12) && drawn.job.gpus <= 32) {
    range.most_gpus = 32;
    drawn.other = draw_job(rng, range);
    if (drawn.other->gpus == 0) {
      drawn.other.reset();
    }
  }
  drawn.pace.factor = pick<std::int64_t>(rng, {1, 1, 10, 100});
  drawn.pace.grain_ps = pick<std::int64_t>(rng, {1, 1, 1000, 1'000'000, 10'000'000});
  drawn.flow.routes.spray = !one_in(rng, 3);
  drawn.flow.routes.rail_affinity = one_in(rng, 4);
  drawn.flow.routes.pxn = one_in(rng, 6);
  drawn.flow.wait_for_ack = one_in(rng, 10);
  drawn.flow.whole_ns = one_in(rng, 10);
  drawn.ranks_alike = one_in(rng, 2);
  if (one_in(rng, 8) && !range.repeats) {
    if (one_in(rng, 2)) {
      drawn.interference.measured = {{1, 0.95}, {4, 0.8}, {16, 0.5}};
    } else {
      drawn.interference.share = 0.2;
    }
  }
  drawn.send_latency = one_in(rng, 8) ? Time() : Time::us(6);
  drawn.seed = rng.below(1000);
  using enum Case::Mode;
  drawn.mode = range.repeats ? pick(rng, {kVerify, kVerify, kVerify, kKept})
                             : pick(rng, {kVerify, kVerify, kVerify, kAllRanks, kKept, kShared});
  const auto stragglers = range.repeats ? pick<std::uint64_t>(rng, {1, 1, 2})
                                        : pick<std::uint64_t>(rng, {0, 1, 1, 2, 3});
  drawn.slow.resize(stragglers);
  drawn.steady = range.repeats;
  return drawn;
}

std::string describe(const Job& job) {
  return fmt::format(
      "{} of {} layers and {} kv heads, {} GPUs, tp {} cp {} pp {} vpp {} ep {} etp {}, {}, {} "
      "microbatches of {} x {}, sp {}, recompute {}, precision {}, sharding {} x {}, {}, context "
      "{}, "
      "bucket {}, overlap {} {}, host {} ps",
      job.model.name, job.model.blocks.front().layers, job.model.blocks.front().modules[2].kv_heads,
      job.gpus, job.tp, job.cp, job.pp, job.vpp, job.ep, job.expert_tp, job.schedule,
      job.microbatches(), job.micro_batch, job.seq, job.sequence_parallel,
      static_cast<int>(job.recompute), static_cast<int>(job.precision),
      static_cast<int>(job.sharding), job.hsdp_replicas, job.rank_order,
      static_cast<int>(job.context_comm), job.gradient_bucket, job.overlap_gradients,
      job.overlap_parameters, job.host_launch.count_ps());
}

std::string describe(const Case& of) {
  return fmt::format(
      "{}; {}; pace {} grain {}; {}, spray {} rail {} pxn {} ack {} ns {}; alike {}, interference "
      "{} or {} points, send {} ps, seed {}, mode {}; stragglers: {}",
      of.layers == Case::Layers::kNone
          ? describe(of.job)
          : fmt::format("layers on {} GPUs, {}", of.job.gpus, static_cast<int>(of.layers)),
      of.other ? describe(*of.other) : "alone", of.pace.factor, of.pace.grain_ps, of.topology,
      of.flow.routes.spray, of.flow.routes.rail_affinity, of.flow.routes.pxn, of.flow.wait_for_ack,
      of.flow.whole_ns, of.ranks_alike, of.interference.share, of.interference.measured.size(),
      of.send_latency.count_ps(), of.seed, static_cast<int>(of.mode), fmt::join(of.slow, " "));
}

OperatorTime time_of(const Case& of, const Job& job) {
  return [time = testing::roofline_of(job), pace = of.pace](const Operator& op) {
    const std::int64_t ps = time(op).count_ps() * pace.factor;
    return Time::ps((ps + pace.grain_ps - 1) / pace.grain_ps * pace.grain_ps);
  };
}

using Bar = std::tuple<std::string, std::string, std::string, Time, Time>;

std::vector<Bar> bars(const Timeline& timeline) {
  std::vector<Bar> all;
  for (const TimelineEvent& event : timeline.events) {
    const TimelineTrack& track = timeline.tracks[static_cast<std::size_t>(event.track)];
    all.emplace_back(timeline.tracks[static_cast<std::size_t>(track.parent)].name, track.name,
                     timeline.names[static_cast<std::size_t>(event.name)], event.begin, event.end);
  }
  std::ranges::sort(all);
  return all;
}

/// ERRORS: Error where anything differs.
void compare(const Case& of, const Workload& workload, const Topology& topology) {
  std::vector<Straggler> stragglers;
  for (const std::string& slow : of.slow) {
    stragglers.push_back(Straggler::parse(slow));
  }
  StepOptions options;
  options.verify_symmetry = true;
  options.stragglers = stragglers;
  options.seed = of.seed;
  options.simai_flavour = of.layers == Case::Layers::kStrict;
  options.send_latency = of.send_latency;
  options.interference = of.interference;
  const auto run = [&](const StepOptions& with, bool folds = true) {
    return testing::replay_workload(workload, topology, of.flow, with, of.ranks_alike, folds);
  };
  if (of.layers == Case::Layers::kStrict) {  // SimAI's one queue a rank, newest first, may lock
    const auto ends = [&](bool folds) {
      try {
        run(options, folds);
      } catch (const Error& error) {
        if (error.message().find("cannot finish") == std::string::npos) {
          throw;
        }
        return false;
      }
      return true;
    };
    if (const bool folded = ends(true), full = ends(false); folded != full) {
      throw Error(fmt::format("folded it {}", folded ? "ends, in full it locks" : "locks"));
    }
    return;
  }
  if (of.mode == Case::Mode::kKept) {
    KeptStep kept;
    options.kept = &kept;
    options.stragglers = {};
    run(options);
    kept.network = "with stragglers";
    options.stragglers = stragglers;
    run(options);
    run(options);
    Workload slower = workload;
    if (of.layers != Case::Layers::kNone) {
      return;
    }
    for (WorkloadJob& job : slower.jobs) {
      for (OpProgram& program : std::get<OpTable>(job.work).programs) {
        for (Op& op : program.ops) {
          op.compute = op.compute * 2;
        }
      }
    }
    kept.computations = "slower";
    testing::replay_workload(slower, topology, of.flow, options, of.ranks_alike);
    return;
  }
  if (of.mode == Case::Mode::kShared) {
    SharedStep shared(2);
    options.shared = &shared;
    run(options);
    options.stragglers = {};
    run(options);
    return;
  }
  if (of.mode == Case::Mode::kVerify) {
    run(options);
    return;
  }
  Timeline folded, full;
  options.timeline_ranks = static_cast<std::int32_t>(of.gpus());
  options.timeline = &folded;
  run(options);
  options.timeline = &full;
  options.verify_symmetry = false;
  run(options, false);
  const std::vector<Bar> a = bars(folded), b = bars(full);
  const auto [x, y] = std::ranges::mismatch(a, b);
  if (x != a.end() || y != b.end()) {
    const auto text = [](const auto& at, const auto& end) {
      return at == end ? std::string("nothing")
                       : fmt::format("{} {} {} {} to {} ps", std::get<0>(*at), std::get<1>(*at),
                                     std::get<2>(*at), std::get<3>(*at).count_ps(),
                                     std::get<4>(*at).count_ps());
    };
    throw Error(fmt::format("folded: {}; in full: {}", text(x, a.end()), text(y, b.end())));
  }
}

/// SimAI's layers, which all ranks walk through.
Workload draw_layers(Rng& rng) {
  WorkloadJob job;
  job.parallel.tp = pick<std::int64_t>(rng, {1, 2, 4, 8});
  job.parallel.pp = pick<std::int64_t>(rng, {1, 1, 2, 4});
  job.parallel.ep = pick<std::int64_t>(rng, {1, 2, 4});
  job.parallel.gpus =
      job.parallel.tp * job.parallel.pp * job.parallel.ep * pick<std::int64_t>(rng, {1, 2, 3, 4});
  job.parallel.ga = rng.between(1, 6);
  job.parallel.vpp = rng.between(1, 2);
  LayerTable table;
  table.pp_comm_bytes = static_cast<double>(rng.below(1'000'000));
  const auto phase = [&](GroupKind plain) {
    LayerPhase drawn;
    drawn.compute = Time::ns(rng.between(0, 1000)) * pick<std::int64_t>(rng, {1, 10, 1000});
    drawn.comm = pick(rng, {CommType::kNone, CommType::kAllReduce, CommType::kAllGather,
                            CommType::kReduceScatter, CommType::kAllToAll});
    drawn.bytes = Bytes(rng.between(1, 2000) * pick<std::int64_t>(rng, {1, 1000}));
    drawn.group = drawn.comm == CommType::kNone
                      ? plain
                      : pick(rng, {plain, plain, GroupKind::kEp, GroupKind::kDpEp});
    return drawn;
  };
  for (std::int64_t layers = rng.between(1, 8); layers > 0; --layers) {
    Layer& layer = table.layers.emplace_back();
    layer.forward = phase(GroupKind::kTp);
    layer.input_grad = phase(GroupKind::kTp);
    layer.weight_grad = phase(GroupKind::kDp);
    layer.update = Time::ns(rng.between(0, 1000));
  }
  table.names = {"layer"};
  job.work = std::move(table);
  return {{job}};
}

Workload workload_of(Case& of, Rng& rng) {
  if (of.layers != Case::Layers::kNone) {
    Workload workload = draw_layers(rng);
    of.job.gpus = workload.jobs.front().parallel.gpus;
    of.job.pp = workload.jobs.front().parallel.pp;
    if (of.layers == Case::Layers::kStrict) {
      of.flow = simai_flow_options();
    }
    return workload;
  }
  Workload workload = exact_workload(of.job, time_of(of, of.job));
  if (of.other) {
    workload.jobs.push_back(exact_workload(*of.other, time_of(of, *of.other)).jobs.front());
  }
  return workload;
}

// What is on the wire goes on at the new rate from that moment on, not from when something happened
// there last.
TEST(FoldedSteps, ALinkSlowsAmidTransfers) {
  Case of;
  of.job.model = testing::llama(2, 64, 8, 8, 128, 256);
  of.job.gpus = 4;
  of.job.pp = 2;
  of.job.seq = 1024;
  of.job.global_batch = 8;
  const Workload workload = exact_workload(of.job, time_of(of, of.job));
  const Topology topology = topology_from("Spectrum-X:g=4,gps=1,bw=1Gbps");
  const Time step = testing::replay_workload(workload, topology).total;
  for (std::int64_t tenth = 0; tenth < 10; ++tenth) {
    of.slow = {fmt::format("nic:1:0.1@{}", ps(Time::ps(step.count_ps() / 10 * tenth)))};
    EXPECT_NO_THROW(compare(of, workload, topology)) << of.slow.front();
  }
}

TEST(FoldedSteps, RunAsInFull) {
  const std::int64_t cases = from_environment("LOCKSTEP_DIFFERENTIAL_CASES", 20);
  const std::int64_t seed = from_environment("LOCKSTEP_DIFFERENTIAL_SEED", 1);
  const std::int64_t only = from_environment("LOCKSTEP_DIFFERENTIAL_CASE", -1);
  std::int64_t done = 0, refused = 0, with_stragglers = 0;
  for (std::int64_t number = only < 0 ? 0 : only; number < (only < 0 ? cases : only + 1);
       ++number) {
    Rng rng(static_cast<std::uint64_t>(seed), fmt::format("folded step {}", number));
    Case drawn;
    std::optional<Workload> workload;
    std::optional<Topology> topology;
    while (!topology) {
      try {
        drawn = draw(rng);
        workload = workload_of(drawn, rng);
        drawn.topology = draw_topology(rng, drawn.gpus());
        topology = topology_from(drawn.topology);
      } catch (const Error&) {
        ++refused;
        ASSERT_LT(refused, 1000 + 10 * done) << "most jobs break a rule";
      }
    }
    for (std::string& slow : drawn.slow) {
      slow = draw_straggler(rng, drawn, *topology);
    }
    std::string differs;
    try {
      compare(drawn, *workload, *topology);
    } catch (const Error& error) {
      if (std::string_view(error.what()).find("--straggler") != std::string_view::npos) {
        ++refused;
        continue;
      }
      differs = error.what();
    } catch (const InternalError& error) {
      differs = error.what();
    }
    EXPECT_EQ(differs, "") << "seed " << seed << ", case " << number << ": " << describe(drawn);
    ++done;
    with_stragglers += drawn.slow.empty() ? 0 : 1;
  }
  fmt::print("{} steps, {} of them with stragglers; {} draws broke a rule\n", done, with_stragglers,
             refused);
}

}  // namespace
}  // namespace lockstep::folded_steps_test

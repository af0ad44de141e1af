// Completions per CPU second of the flow engine alone: no replay, no symmetry, no fast-forward.
// items_per_second counts transfers from start() to kDelivered.

#include "simulator/network/flow/flow_engine.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "topologies/topology_file.h"

namespace lockstep {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

Topology spectrum_x(std::int64_t gpus) {
  return topology_from(fmt::format("Spectrum-X:g={}", gpus));
}

/// The place after `rank` on channel c's ring: the server's GPUs from local rank c on, then the
/// next server (SimAI's order).
std::int32_t ring_next(std::int32_t rank, std::int32_t channel, std::int32_t ranks) {
  constexpr std::int32_t kLocal = 8;
  const std::int32_t server = rank / kLocal, local = rank % kLocal;
  const std::int32_t last = (channel + kLocal - 1) % kLocal;
  if (local != last) {
    return server * kLocal + (local + 1) % kLocal;
  }
  return (server + 1) % (ranks / kLocal) * kLocal + channel;
}

/// Args: GPUs, steps, channels. A ring all-reduce of 1 GiB, cut after that many steps: each
/// delivery starts the next step's transfer from there.
void ring(benchmark::State& state) {
  const auto ranks = static_cast<std::int32_t>(state.range(0));
  const auto steps = static_cast<std::uint64_t>(state.range(1));
  const auto channels = static_cast<std::int32_t>(state.range(2));
  const Topology topology = spectrum_x(ranks);
  const Bytes chunk(kGiB / ranks / channels);
  std::int64_t completions = 0;
  for (auto _ : state) {
    FlowEngine engine(topology);
    std::vector<ConnectionId> pairs;  // by channel and source; the tag is the index
    std::vector<std::uint64_t> after;
    for (std::int32_t channel = 0; channel < channels; ++channel) {
      for (std::int32_t rank = 0; rank < ranks; ++rank) {
        const std::int32_t next = ring_next(rank, channel, ranks);
        pairs.push_back(engine.connect(NodeId(rank), NodeId(next), channel));
        after.push_back(static_cast<std::uint64_t>(channel * ranks + next));
      }
    }
    std::vector<std::uint64_t> step(pairs.size(), 1);
    for (std::uint64_t i = 0; i < pairs.size(); ++i) {
      engine.start(pairs[i], chunk, Time(), i);
    }
    std::vector<NetworkEvent> events;
    while (events.clear(), engine.advance(Time::max(), events), !events.empty()) {
      for (const NetworkEvent& event : events) {
        if (event.kind == NetworkEvent::Kind::kSent) {
          continue;
        }
        ++completions;
        const std::uint64_t next = after[event.tag];
        if (step[next] < steps) {
          ++step[next];
          engine.start(pairs[next], chunk, event.when, next);
        }
      }
    }
    state.counters["simulated_ms"] = engine.now().seconds() * 1e3;
    state.counters["filled"] = static_cast<double>(engine.rates().filled_variables());
  }
  state.SetItemsProcessed(completions);
}
BENCHMARK(ring)
    ->Args({1024, 2046, 1})
    ->Args({4096, 500, 1})
    ->Args({64, 126, 8})
    ->Args({256, 510, 8})
    ->Args({1024, 200, 8})
    ->Args({4096, 50, 8})
    ->Unit(benchmark::kMillisecond);

/// Args: GPUs, spray. Every GPU sends 1 GiB / GPUs to every other, all at once.
void all_to_all(benchmark::State& state) {
  const auto ranks = static_cast<std::int32_t>(state.range(0));
  const Topology topology = spectrum_x(ranks);
  FlowOptions options;
  options.routes.spray = state.range(1) != 0;
  std::int64_t completions = 0;
  for (auto _ : state) {
    FlowEngine engine(topology, options);
    for (std::int32_t step = 1; step < ranks; ++step) {
      for (std::int32_t rank = 0; rank < ranks; ++rank) {
        engine.start({NodeId(rank), NodeId((rank + step) % ranks), Bytes(kGiB / ranks), Time()});
      }
    }
    std::vector<NetworkEvent> events;
    while (events.clear(), engine.advance(Time::max(), events), !events.empty()) {
      completions += static_cast<std::int64_t>(events.size());
    }
    state.counters["simulated_ms"] = engine.now().seconds() * 1e3;
    state.counters["filled"] = static_cast<double>(engine.rates().filled_variables());
  }
  state.SetItemsProcessed(completions / 2);  // each is sent and delivered
}
BENCHMARK(all_to_all)
    ->Args({64, 0})
    ->Args({256, 0})
    ->Args({512, 0})
    ->Args({1024, 0})
    ->Unit(benchmark::kMillisecond);

/// Args: GPUs, PXN. As all_to_all, but each GPU has 8 peers in flight: the next starts when one is
/// sent. With PXN a transfer changes rails inside the server, as NCCL does it, and only transfers
/// between segments are hashed to spines; without, all that change rails.
void windowed_all_to_all(benchmark::State& state) {
  constexpr std::int32_t kWindow = 8;
  const auto ranks = static_cast<std::int32_t>(state.range(0));
  const Topology topology = spectrum_x(ranks);
  FlowOptions options;
  options.routes.pxn = state.range(1) != 0;
  std::int64_t completions = 0;
  for (auto _ : state) {
    FlowEngine engine(topology, options);
    std::vector<std::int32_t> next(static_cast<std::size_t>(ranks), 1);
    const auto start_next = [&](std::int32_t rank) {
      std::int32_t& step = next[static_cast<std::size_t>(rank)];
      if (step < ranks) {
        engine.start({NodeId(rank), NodeId((rank + step) % ranks), Bytes(kGiB / ranks),
                      engine.now(), 0, static_cast<std::uint64_t>(rank)});
        ++step;
      }
    };
    for (std::int32_t i = 0; i < kWindow * ranks; ++i) {
      start_next(i % ranks);
    }
    std::vector<NetworkEvent> events;
    while (events.clear(), engine.advance(Time::max(), events), !events.empty()) {
      for (const NetworkEvent& event : events) {
        if (event.kind == NetworkEvent::Kind::kSent) {
          ++completions;
          start_next(static_cast<std::int32_t>(event.tag));
        }
      }
    }
    state.counters["simulated_ms"] = engine.now().seconds() * 1e3;
    state.counters["filled"] = static_cast<double>(engine.rates().filled_variables());
  }
  state.SetItemsProcessed(completions);
}
BENCHMARK(windowed_all_to_all)
    ->Args({128, 0})
    ->Args({256, 0})
    ->Args({512, 1})
    ->Args({1024, 1})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace lockstep

BENCHMARK_MAIN();

// How fast the live page's model answers when a slider moves: GPT-3 175B on 1,024 GPUs by default.
// Every place of a slider is new. Some answers are compared with a simulation that keeps nothing
// (none with --places, for profiles); with --full one with a slow GPU also with the simulation of
// every rank (minutes at 1,024).
//
// Usage: live_model [--full] [--only <slider>] [--places <number>] [<flags of simulate>]
#include "app/serve/live_model.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <malloc.h>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"

namespace {

using namespace lockstep;

/// Of each slider.
struct Places {
  int count = 9;
  bool compared = true;
  std::string only;  // the slider; empty: all
};

double cpu_seconds(clockid_t clock) {
  timespec cpu{};
  ::clock_gettime(clock, &cpu);
  return static_cast<double>(cpu.tv_sec) + 1e-9 * static_cast<double>(cpu.tv_nsec);
}

struct Clock {
  double wall = 0, cpu = 0, own = 0;  // of all threads, of the one that answers
  static Clock now() {
    return {
        std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(),
        cpu_seconds(CLOCK_PROCESS_CPUTIME_ID), cpu_seconds(CLOCK_THREAD_CPUTIME_ID)};
  }
};

void check(const StepResult& a, const StepResult& b, const char* what) {
  LOCKSTEP_CHECK(a.total == b.total && a.exposed == b.exposed &&
                     a.exposed_by_group == b.exposed_by_group && a.compute == b.compute &&
                     a.first_rank_end == b.first_rank_end && a.last_rank_end == b.last_rank_end &&
                     a.flows == b.flows,
                 what);
}

void measure(LiveModel& model, const Places& places, const char* name, double LiveSliders::*slider,
             LiveSliders sliders) {
  if (!places.only.empty() && places.only != name) {
    return;
  }
  std::vector<double> wall, cpu, own;
  double fresh = 0;
  for (int i = 0; i < places.count; ++i) {
    sliders.*slider = 1.013 + 0.9 * i / places.count;
    const Clock begin = Clock::now();
    const StepResult kept = model.simulate(sliders);
    const Clock middle = Clock::now();
    wall.push_back(1e3 * (middle.wall - begin.wall));
    cpu.push_back(1e3 * (middle.cpu - begin.cpu));
    own.push_back(1e3 * (middle.own - begin.own));
    if (places.compared && i % 4 == 0) {
      const StepResult alone = model.simulate(sliders, true);
      fresh = 1e3 * (Clock::now().wall - middle.wall);
      check(kept, alone, "what is kept changes nothing");
    }
  }
  std::ranges::sort(wall);
  std::ranges::sort(cpu);
  std::ranges::sort(own);
  fmt::print(
      "{:34} median {:6.1f} ms, slowest {:6.1f} ms (CPU {:6.1f}, slowest {:6.1f} ms; of the thread "
      "that answers {:6.1f}, {:6.1f} ms); keeping nothing {:6.1f} ms\n",
      name, wall[wall.size() / 2], wall.back(), cpu[cpu.size() / 2], cpu.back(),
      own[own.size() / 2], own.back(), fresh);
}

}  // namespace

int main(int count, char** words) {
  ::mallopt(M_MMAP_THRESHOLD, 1 << 30);  // as the process of the page
  ::mallopt(M_TRIM_THRESHOLD, 1 << 30);
  std::vector<std::string> flags(words + 1, words + count);
  const bool full = !flags.empty() && flags.front() == "--full";
  if (full) {
    flags.erase(flags.begin());
  }
  Places places;
  if (flags.size() > 1 && flags.front() == "--only") {
    places.only = flags[1];
    flags.erase(flags.begin(), flags.begin() + 2);
  }
  if (flags.size() > 1 && flags.front() == "--places") {
    places.count = std::max(1, std::atoi(flags[1].c_str()));
    places.compared = false;
    flags.erase(flags.begin(), flags.begin() + 2);
  }
  if (flags.empty()) {
    flags = {"--model", "gpt3-175b", "--gpus", "1024", "--tp",       "8",
             "--pp",    "16",        "--gbs",  "1536", "--topology", "Spectrum-X:g=1024",
             "--spray"};
  }
  try {
    LiveModel model(flags);
    const Clock begin = Clock::now();
    model.simulate({});
    fmt::print("{:34} {:.1f} ms\n", "the first answer", 1e3 * (Clock::now().wall - begin.wall));
    const LiveSliders slow_gpu{.straggler = 1.5, .straggler_gpu = 5};
    const Clock prepared = Clock::now();
    model.prepare(slow_gpu);  // as the page's process does while nobody asks
    fmt::print("{:34} {:.1f} ms\n", "prepared for a slow GPU",
               1e3 * (Clock::now().wall - prepared.wall));
    measure(model, places, "GPU speed", &LiveSliders::gpu_speed, {});
    measure(model, places, "network bandwidth", &LiveSliders::network_bandwidth, {});
    measure(model, places, "NVLink bandwidth", &LiveSliders::nvlink_bandwidth, {});
    measure(model, places, "latency", &LiveSliders::latency, {});
    measure(model, places, "one slow GPU", &LiveSliders::straggler, slow_gpu);
    measure(model, places, "GPU speed, one GPU slow", &LiveSliders::gpu_speed, slow_gpu);
    measure(model, places, "network bandwidth, one GPU slow", &LiveSliders::network_bandwidth,
            slow_gpu);
    if (full) {
      flags.emplace_back("--no-symmetry");
      const Clock start = Clock::now();
      check(model.simulate(slow_gpu), LiveModel(flags).simulate(slow_gpu, true),
            "folding changes nothing");
      fmt::print("one slow GPU, every rank: the same, {:.0f} s of CPU\n",
                 Clock::now().cpu - start.cpu);
    }
  } catch (const Error& error) {
    fmt::print(stderr, "live_model: {}\n", error.what());
    return static_cast<int>(error.code());
  }
}

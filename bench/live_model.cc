// How fast the live page's model answers when a slider moves: GPT-3 175B on 1,024 GPUs by default.
// Every place of a slider is new; each answer is compared with a simulation that keeps nothing,
// with
// --full one with a slow GPU also with the simulation of every rank (minutes at 1,024).
//
// Usage: live_model [--full] [--only <slider>] [<flags of simulate>]
#include "app/serve/live_model.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <malloc.h>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"

namespace {

using namespace lockstep;

struct Clock {
  double wall = 0, cpu = 0;
  static Clock now() {
    timespec cpu{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    return {
        std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(),
        static_cast<double>(cpu.tv_sec) + 1e-9 * static_cast<double>(cpu.tv_nsec)};
  }
};

void check(const StepResult& a, const StepResult& b, const char* what) {
  LOCKSTEP_CHECK(a.total == b.total && a.exposed == b.exposed &&
                     a.exposed_by_group == b.exposed_by_group && a.compute == b.compute &&
                     a.first_rank_end == b.first_rank_end && a.last_rank_end == b.last_rank_end &&
                     a.flows == b.flows,
                 what);
}

void measure(LiveModel& model, const std::string& only, const char* name,
             double LiveSliders::*slider, LiveSliders sliders) {
  if (!only.empty() && only != name) {
    return;
  }
  constexpr int kPlaces = 9;
  std::vector<double> wall, cpu;
  double fresh = 0;
  for (int i = 0; i < kPlaces; ++i) {
    sliders.*slider = 1.013 + 0.1 * i;
    const Clock begin = Clock::now();
    const StepResult kept = model.simulate(sliders);
    const Clock middle = Clock::now();
    wall.push_back(1e3 * (middle.wall - begin.wall));
    cpu.push_back(1e3 * (middle.cpu - begin.cpu));
    if (i % 4 == 0) {
      const StepResult alone = model.simulate(sliders, true);
      fresh = 1e3 * (Clock::now().wall - middle.wall);
      check(kept, alone, "what is kept changes nothing");
    }
  }
  std::ranges::sort(wall);
  std::ranges::sort(cpu);
  fmt::print(
      "{:34} median {:6.1f} ms, slowest {:6.1f} ms (CPU {:6.1f} ms); keeping nothing {:6.1f} ms\n",
      name, wall[kPlaces / 2], wall.back(), cpu[kPlaces / 2], fresh);
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
  std::string only;
  if (flags.size() > 1 && flags.front() == "--only") {
    only = flags[1];
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
    measure(model, only, "GPU speed", &LiveSliders::gpu_speed, {});
    measure(model, only, "network bandwidth", &LiveSliders::network_bandwidth, {});
    measure(model, only, "NVLink bandwidth", &LiveSliders::nvlink_bandwidth, {});
    measure(model, only, "latency", &LiveSliders::latency, {});
    measure(model, only, "one slow GPU", &LiveSliders::straggler, slow_gpu);
    measure(model, only, "GPU speed, one GPU slow", &LiveSliders::gpu_speed, slow_gpu);
    measure(model, only, "network bandwidth, one GPU slow", &LiveSliders::network_bandwidth,
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

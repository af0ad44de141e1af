#include "profiler/run/runner.h"

#include <atomic>
#include <chrono>
#include <thread>

#include "base/error.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double run_item(const RunItem& item, const std::vector<int>& groups, Transport& transport) {
  if (item.comm == CommType::kNone) {
    return transport.compute(item.compute);
  }
  CommCall call;
  call.comm = item.comm;
  call.bytes = item.bytes;
  call.peer = item.peer;
  call.send = item.send;
  call.group = item.group < 0 ? -1 : groups[static_cast<std::size_t>(item.group)];
  return transport.communicate(call);
}

RunLog run_all(const RunPlan& plan, Transport& transport, Bootstrap& bootstrap,
               const RunLimits& limits) {
  const std::string id = bootstrap.share(plan.rank == 0 ? transport.make_id() : std::string());
  transport.join(plan.rank, static_cast<int>(plan.world), id, plan.largest_bytes);
  std::vector<int> groups;
  for (const RunGroup& group : plan.groups) {
    groups.push_back(transport.add_group(group.ranks));
  }
  RunLog log;
  Clock::time_point begin;
  for (std::int64_t i = 0; i < limits.warmups + limits.iterations; ++i) {
    const bool counts = i >= limits.warmups;
    bootstrap.barrier();
    if (i == limits.warmups) {
      begin = Clock::now();
    }
    Clock::time_point iteration = Clock::now();
    for (std::size_t at = 0; at < plan.items.size(); ++at) {
      const RunItem& item = plan.items[at];
      const double start = counts ? seconds_since(begin) : 0;
      double seconds = 0;
      if (item.epoch_end) {
        transport.synchronise();
        seconds = seconds_since(iteration);
        iteration = Clock::now();
        if (counts) {
          log.iterations_s.push_back(seconds);
        }
      } else {
        seconds = run_item(item, groups, transport);
      }
      if (counts) {
        log.records.push_back({static_cast<std::int32_t>(at), start, seconds});
      }
    }
  }
  bootstrap.barrier();
  return log;
}

class ControlTransport : public Transport {
 public:
  explicit ControlTransport(Bootstrap& bootstrap) : bootstrap_(bootstrap) {}

  std::string make_id() override { return "control"; }
  void join(int, int world, const std::string& id, std::int64_t) override {
    if (id != "control") {
      throw Error("the ranks do not run one transport");
    }
    world_ = static_cast<std::size_t>(world);
  }
  int add_group(std::span<const std::int32_t> ranks) override {
    everybody_.push_back(ranks.size() == world_);
    return static_cast<int>(everybody_.size()) - 1;
  }
  double communicate(const CommCall& call) override {
    const auto begin = Clock::now();
    if (call.group >= 0 && everybody_.at(static_cast<std::size_t>(call.group))) {
      bootstrap_.barrier();
    }
    stop_if_aborted();
    return seconds_since(begin);
  }
  double compute(const ComputeCall& call) override {
    const auto begin = Clock::now();
    std::this_thread::sleep_for(std::chrono::duration<double>(call.idle.seconds()));
    stop_if_aborted();
    return seconds_since(begin);
  }
  void synchronise() override {}
  void stop() noexcept override { aborted_ = true; }
  std::string name() const override { return "no transport: nothing is moved"; }

 private:
  void stop_if_aborted() const {
    if (aborted_) {
      throw Error("stopped", ExitCode::kCheckFailed);
    }
  }

  Bootstrap& bootstrap_;
  std::size_t world_ = 1;
  std::vector<bool> everybody_;
  std::atomic<bool> aborted_ = false;
};

}  // namespace

RunLog execute(const RunPlan& plan, Transport& transport, Bootstrap& bootstrap,
               const RunLimits& limits) {
  bootstrap.on_failure([&](const std::string&) { transport.stop(); });
  struct Forget {
    Bootstrap& bootstrap;
    ~Forget() { bootstrap.on_failure({}); }  // the transport may go before the bootstrap
  } forget{bootstrap};
  try {
    return run_all(plan, transport, bootstrap, limits);
  } catch (const Error& error) {
    const std::string other = bootstrap.failure();
    if (!other.empty()) {
      throw Error("stopped: " + other, ExitCode::kCheckFailed);
    }
    bootstrap.fail(error.what());
    throw;
  }
}

std::unique_ptr<Transport> make_control_transport(Bootstrap& bootstrap) {
  return std::make_unique<ControlTransport>(bootstrap);
}

}  // namespace lockstep

#include "profiler/run/runner.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "profiler/run/watchdog.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

/// So many items are started ahead of what has ended: a GPU's queue is finite, and who fills it
/// waits.
constexpr std::size_t kAhead = 128;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Runs a plan on a rank, again and again.
class Runner {
 public:
  Runner(const RunPlan& plan, Transport& transport, Bootstrap& bootstrap, double patience_s)
      : plan_(plan),
        transport_(transport),
        bootstrap_(bootstrap),
        patience_s_(patience_s),
        watchdog_(patience_s_, [&transport] { transport.stop(); }) {
    for (std::size_t i = 0; i < plan.items.size(); ++i) {
      texts_.push_back(fmt::format("item {} of {}, {} ({})", i + 1, plan.items.size(),
                                   what(plan, plan.items[i]), plan.items[i].name));
    }
  }

  RunLog run(const RunLimits& limits);

  /// Why the watchdog has stopped the run; nothing if it has not.
  std::string stall() const {
    return watchdog_.has_barked()
               ? fmt::format("no progress for {:g} s at {}", patience_s_, standing())
               : std::string();
  }
  /// Where this rank is.
  std::string standing() const {
    return at_ < texts_.size() ? texts_[at_] : "before its first item";
  }

 private:
  void join();
  void run_batch(std::size_t first, std::size_t end);
  void start(std::size_t item, std::size_t first);
  /// Notes what has ended. Returns whether anything has.
  bool collect(std::size_t first);
  void wait(std::size_t first) {
    if (collect(first)) {
      watchdog_.progress();
    } else {
      transport_.pause();
    }
  }
  void log_batch(std::size_t first, std::size_t end, double begin_s, RunLog& log);

  const RunPlan& plan_;
  Transport& transport_;
  Bootstrap& bootstrap_;
  double patience_s_;
  Watchdog watchdog_;
  std::vector<std::string> texts_;                 ///< of the items
  std::vector<int> groups_;                        ///< the transport's numbers
  std::size_t at_ = static_cast<std::size_t>(-1);  ///< the first item that has not ended
  std::size_t ended_ = 0;                          ///< how many of the batch
  std::vector<bool> has_ended_;                    ///< of the batch
  std::vector<std::vector<std::size_t>> streams_;  ///< numbers of what has been started
  std::vector<std::size_t> heads_;                 ///< of each stream, the first not ended
};

void Runner::join() {
  const std::string id = bootstrap_.share(plan_.rank == 0 ? transport_.make_id() : std::string());
  watchdog_.progress();
  transport_.join({plan_.rank, static_cast<int>(plan_.world), id, plan_.largest_bytes,
                   static_cast<int>(plan_.streams.size())});
  for (const RunGroup& group : plan_.groups) {
    groups_.push_back(transport_.add_group(group.ranks, group.messages));
    watchdog_.progress();
  }
  for (const RunItem& item : plan_.items) {
    if (item.comm == CommType::kNone && !item.epoch_end) {
      transport_.prepare(item.compute, item.stream);
      watchdog_.progress();
    }
  }
  watchdog_.rest();
}

void Runner::start(std::size_t item, std::size_t first) {
  const RunItem& what = plan_.items[item];
  Work work;
  work.call.comm = what.comm;
  work.call.bytes = what.bytes;
  work.call.root = what.root;
  work.call.send = what.send;
  work.call.group = what.group < 0 ? -1 : groups_[static_cast<std::size_t>(what.group)];
  work.compute = what.compute;
  work.stream = what.stream;
  work.text = texts_[item];
  std::vector<std::int32_t> after;
  for (const std::int32_t other : what.after) {
    if (static_cast<std::size_t>(other) >= first) {
      after.push_back(other - static_cast<std::int32_t>(first));
    }
  }
  work.after = after;
  transport_.start(work);
  streams_[static_cast<std::size_t>(what.stream)].push_back(item - first);
}

bool Runner::collect(std::size_t first) {
  const std::size_t before = ended_;
  for (std::size_t stream = 0; stream < streams_.size(); ++stream) {
    std::size_t& head = heads_[stream];
    while (head < streams_[stream].size() && transport_.has_ended(streams_[stream][head])) {
      has_ended_[streams_[stream][head++]] = true;
      ++ended_;
    }
  }
  while (at_ - first < has_ended_.size() && has_ended_[at_ - first]) {
    ++at_;
  }
  return ended_ > before;
}

void Runner::run_batch(std::size_t first, std::size_t end) {
  streams_.assign(plan_.streams.size(), {});
  heads_.assign(plan_.streams.size(), 0);
  has_ended_.assign(end - first, false);
  ended_ = 0;
  at_ = first;
  transport_.begin_batch();
  watchdog_.progress();
  for (std::size_t item = first; item < end; ++item) {
    while (item - first >= ended_ + kAhead) {
      wait(first);
    }
    start(item, first);
  }
  while (ended_ < end - first) {
    wait(first);
  }
  watchdog_.rest();
}

void Runner::log_batch(std::size_t first, std::size_t end, double begin_s, RunLog& log) {
  for (std::size_t item = first; item < end; ++item) {
    const WorkTime time = transport_.time_of(item - first);
    log.records.push_back({static_cast<std::int32_t>(item), begin_s + time.begin_s, time.seconds});
  }
}

RunLog Runner::run(const RunLimits& limits) {
  join();
  RunLog log;
  Clock::time_point begin;
  for (std::int64_t i = 0; i < limits.warmups + limits.iterations; ++i) {
    bootstrap_.barrier();
    if (i == limits.warmups) {
      begin = Clock::now();
    }
    for (std::size_t first = 0; first < plan_.items.size();) {
      std::size_t end = first;
      while (!plan_.items[end].epoch_end) {
        ++end;
      }
      const Clock::time_point start = Clock::now();
      run_batch(first, end);
      const double seconds = seconds_since(start);
      if (i >= limits.warmups) {
        const double begin_s = std::chrono::duration<double>(start - begin).count();
        log_batch(first, end, begin_s, log);
        log.records.push_back({static_cast<std::int32_t>(end), begin_s + seconds, seconds});
        log.iterations_s.push_back(seconds);
      }
      first = end + 1;
    }
  }
  bootstrap_.barrier();
  watchdog_.progress();
  transport_.leave();
  watchdog_.rest();
  return log;
}

/// The computations of the rank that has most of them, in seconds: the others may have nothing else
/// to do than to wait for it. Collective.
double most_computing(const RunPlan& plan, Bootstrap& bootstrap) {
  Time own;
  for (const RunItem& item : plan.items) {
    own += item.compute.idle;
  }
  std::int64_t most = own.count_ps();
  for (const std::string& other : bootstrap.gather(std::to_string(most))) {
    most = std::max(most, to_int(other).value_or(0));
  }
  return Time::ps(to_int(bootstrap.share(std::to_string(most))).value_or(0)).seconds();
}

}  // namespace

RunLog execute(const RunPlan& plan, Transport& transport, Bootstrap& bootstrap,
               const RunLimits& limits) {
  const double computing_s = most_computing(plan, bootstrap);
  Runner runner(plan, transport, bootstrap, limits.patience_s + computing_s);
  bootstrap.on_failure([&](const std::string&) { transport.stop(); });
  struct Forget {
    Bootstrap& bootstrap;
    ~Forget() { bootstrap.on_failure({}); }  // the transport may go before the bootstrap
  } forget{bootstrap};
  try {
    return runner.run(limits);
  } catch (const Error& error) {
    const std::string other = bootstrap.failure();
    if (!other.empty()) {
      throw Error(
          fmt::format("stopped: {}; this rank, {}, is at {}", other, plan.rank, runner.standing()),
          ExitCode::kCheckFailed);
    }
    const std::string stall = runner.stall();
    bootstrap.fail(stall.empty() ? error.what() : stall);
    if (!stall.empty()) {
      throw Error(fmt::format("rank {}: {}", plan.rank, stall), ExitCode::kCheckFailed)
          .hint("--timeout tells how long to wait");
    }
    throw;
  }
}

}  // namespace lockstep

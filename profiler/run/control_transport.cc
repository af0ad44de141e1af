#include "profiler/run/control_transport.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

class ControlTransport : public Transport {
 public:
  explicit ControlTransport(Bootstrap& bootstrap) : bootstrap_(bootstrap) {}

  std::string make_id() override { return "control"; }
  void join(const TransportWorld& world) override {
    if (world.id != "control") {
      throw Error("the ranks do not run one transport");
    }
    streams_.resize(static_cast<std::size_t>(world.streams));
  }
  int add_group(std::span<const std::int32_t> ranks, bool) override {
    groups_.push_back({static_cast<std::int64_t>(ranks.size()), 0, -1});
    return static_cast<int>(groups_.size()) - 1;
  }
  void prepare(const ComputeCall&, int) override {}

  void begin_batch() override {
    tasks_.clear();
    begin_ = Clock::now();
    for (Group& group : groups_) {
      group.last = -1;
    }
  }
  void start(const Work& work) override {
    stop_if_stopped();
    const auto number = static_cast<std::int32_t>(tasks_.size());
    Task& task = tasks_.emplace_back();
    task.after.assign(work.after.begin(), work.after.end());
    task.idle = std::chrono::duration_cast<Clock::duration>(
        std::chrono::duration<double>(work.compute.idle.seconds()));
    if (work.call.comm != CommType::kNone) {
      Group& group = groups_.at(static_cast<std::size_t>(work.call.group));
      if (group.last >= 0) {
        task.after.push_back(group.last);
      }
      group.last = number;
      task.meeting = {fmt::format("{}#{}", work.call.group, group.calls++), group.size,
                      fmt::format("{} of {} bytes, root {}", name_of(work.call.comm),
                                  work.call.bytes, work.call.root),
                      std::string(work.text)};
    }
    streams_.at(static_cast<std::size_t>(work.stream)).push_back(number);
  }
  bool has_ended(std::size_t number) override {
    advance();
    return tasks_[number].state == State::kEnded;
  }
  WorkTime time_of(std::size_t number) override {
    const Task& task = tasks_[number];
    return {std::chrono::duration<double>(task.begin - begin_).count(),
            std::chrono::duration<double>(task.end - task.begin).count()};
  }
  void pause() override {
    advance();
    if (std::exchange(moved_, false)) {
      return;  // whoever calls may not know yet
    }
    if (!is_computing() && !told_) {
      told_ = true;
      bootstrap_.wait_for_meetings();
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  void leave() override {}
  void stop() noexcept override { stopped_ = true; }
  std::string name() const override { return "no transport: nothing is moved"; }

 private:
  enum class State : std::uint8_t { kWaits, kBegun, kEnded };
  struct Task {
    MeetingCall meeting;  ///< of no ranks: a computation
    Clock::duration idle{};
    std::vector<std::int32_t> after;
    State state = State::kWaits;
    Clock::time_point begin, end;
  };
  struct Group {
    std::int64_t size = 1, calls = 0;
    std::int32_t last = -1;  ///< work of it in this batch
  };

  /// Begins and ends what can.
  void advance() {
    stop_if_stopped();
    for (bool again = true; again;) {
      again = false;
      for (std::deque<std::int32_t>& stream : streams_) {
        while (!stream.empty() && step(tasks_[static_cast<std::size_t>(stream.front())])) {
          stream.pop_front();
          again = moved_ = true;
        }
      }
    }
    told_ = told_ && !moved_;
  }

  /// Whether the task, the first of its stream, has ended.
  bool step(Task& task) {
    if (task.state == State::kWaits) {
      if (!std::ranges::all_of(task.after, [&](std::int32_t other) {
            return tasks_[static_cast<std::size_t>(other)].state == State::kEnded;
          })) {
        return false;
      }
      task.state = State::kBegun;
      task.begin = Clock::now();
      told_ = false;
      if (task.meeting.ranks > 1) {
        bootstrap_.meet(task.meeting);
      }
    }
    const bool ends = task.meeting.ranks > 1 ? bootstrap_.has_met(task.meeting.name)
                                             : Clock::now() >= task.begin + task.idle;
    if (ends) {
      task.state = State::kEnded;
      task.end = Clock::now();
    }
    return ends;
  }

  bool is_computing() const {
    return std::ranges::any_of(streams_, [&](const std::deque<std::int32_t>& stream) {
      if (stream.empty()) {
        return false;
      }
      const Task& task = tasks_[static_cast<std::size_t>(stream.front())];
      return task.state == State::kBegun && task.meeting.ranks <= 1;
    });
  }

  void stop_if_stopped() const {
    if (stopped_) {
      throw Error("stopped", ExitCode::kCheckFailed);
    }
  }

  Bootstrap& bootstrap_;
  std::vector<Group> groups_;
  std::vector<Task> tasks_;
  std::vector<std::deque<std::int32_t>> streams_;  ///< numbers of what has not ended
  Clock::time_point begin_;
  bool moved_ = false;  ///< something has ended since pause()
  bool told_ = false;   ///< that there is nothing to do here
  std::atomic<bool> stopped_ = false;
};

}  // namespace

std::unique_ptr<Transport> make_control_transport(Bootstrap& bootstrap) {
  return std::make_unique<ControlTransport>(bootstrap);
}

}  // namespace lockstep

#include "profiler/run/bootstrap.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <poll.h>
#include <set>
#include <string_view>
#include <sys/socket.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "profiler/run/frames.h"
#include "profiler/run/join.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

// "<ranks>\n<name>\n<terms>\n<item>"
std::string frame_of(const MeetingCall& call) {
  return fmt::format("{}\n{}\n{}\n{}", call.ranks, call.name, call.terms, call.item);
}

MeetingCall meeting_of(const std::string& text) {
  std::array<std::string, 4> parts;
  std::size_t at = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::size_t end = i + 1 < parts.size() ? text.find('\n', at) : std::string::npos;
    parts[i] = text.substr(at, end - at);
    at = end == std::string::npos ? text.size() : end + 1;
  }
  return {parts[1], to_int(parts[0]).value_or(0), parts[2], parts[3]};
}

}  // namespace

/// The connections. Rank 0 has one to each other rank, the others one to rank 0; `peers` is by rank
/// there, and has one entry here.
struct Bootstrap::State {
  struct Peer {
    int socket = -1;
    int rank = 0;
    std::mutex sending;
    std::deque<std::string> inbox;  // guarded by State::mutex
    bool left = false;              // said goodbye; guarded by State::mutex
    std::thread reader;
  };

  RankPlace place;
  std::vector<std::unique_ptr<Peer>> peers;
  mutable std::mutex mutex;
  std::condition_variable changed;
  std::string failure;
  std::function<void(const std::string&)> call;
  bool told = false, failing = false, leaving = false;
  bool passing_on = false;    // a reader tells the other ranks of a failure
  std::thread::id calling;    // who is in `call` now, or nobody
  Meetings meetings{1};       // of rank 0
  std::set<std::string> met;  // held, and not told of yet
  std::int64_t meetings_held = 0;

  ~State() { close(); }

  void close() {
    {
      std::unique_lock lock(mutex);
      leaving = true;
      // A goodbye before the reason would leave the others without it.
      changed.wait(lock, [&] { return !passing_on; });
    }
    for (const auto& peer : peers) {
      const std::lock_guard lock(peer->sending);
      (void)send_frame(peer->socket, kBye, "");
      (void)::shutdown(peer->socket, SHUT_WR);
    }
    // The other side says goodbye too, or ends; but it may hang.
    for (const auto& peer : peers) {
      timeval limit{2, 0};
      (void)::setsockopt(peer->socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
      pollfd waiting{peer->socket, POLLIN, 0};
      (void)::poll(&waiting, 1, 0);
      if (peer->reader.joinable()) {
        (void)::shutdown(peer->socket, SHUT_RD);
        peer->reader.join();
      }
      (void)::close(peer->socket);
    }
    peers.clear();
  }

  bool send(Peer& peer, char kind, std::string_view text) {
    const std::lock_guard lock(peer.sending);
    return send_frame(peer.socket, kind, text);
  }

  /// Calls `call` if it has not been; by the thread that holds `lock`, which is given up meanwhile.
  void tell(std::unique_lock<std::mutex>& lock) {
    if (!call || told || failure.empty()) {
      return;
    }
    told = true;
    const std::function<void(const std::string&)> to_call = call;
    calling = std::this_thread::get_id();
    lock.unlock();
    to_call(failure);  // never written again
    lock.lock();
    calling = {};
    changed.notify_all();
  }

  void set_failure(const std::string& reason, int from) {
    {
      const std::lock_guard lock(mutex);
      if (!failure.empty() || failing || leaving) {
        return;
      }
      failure = reason;
      passing_on = place.rank == 0;
    }
    changed.notify_all();
    if (place.rank == 0) {
      for (const auto& peer : peers) {
        if (peer->rank != from) {
          (void)send(*peer, kFailure, reason);
        }
      }
      {
        const std::lock_guard lock(mutex);
        passing_on = false;
      }
      changed.notify_all();
    }
    std::unique_lock lock(mutex);
    tell(lock);
  }

  void held(const std::string& name) {
    const std::lock_guard lock(mutex);
    met.insert(name);
    ++meetings_held;
  }

  /// Of rank 0, whose reader threads call it too.
  void come(int rank, const MeetingCall& meeting) {
    Meetings::Outcome outcome;
    {
      const std::lock_guard lock(mutex);
      outcome = meetings.come(rank, meeting);
    }
    for (const int member : outcome.held) {
      if (member == 0) {
        held(meeting.name);
      } else {
        (void)send(*peers[static_cast<std::size_t>(member - 1)], kMeet, meeting.name);
      }
    }
    if (!outcome.failure.empty()) {
      set_failure(outcome.failure, -1);
    }
  }

  /// Likewise.
  void wait(int rank, std::int64_t count) {
    std::string reason;
    {
      const std::lock_guard lock(mutex);
      reason = meetings.wait(rank, count);
    }
    if (!reason.empty()) {
      set_failure(reason, -1);
    }
  }

  void read(Peer& peer) {
    for (;;) {
      const std::optional<Frame> frame = receive_frame(peer.socket);
      if (!frame) {
        set_failure(fmt::format("rank {} has gone without a word", peer.rank), peer.rank);
        return;
      }
      switch (frame->kind) {
        case kBye: {
          const std::lock_guard lock(mutex);
          peer.left = true;
        }
          changed.notify_all();
          return;
        case kFailure:
          set_failure(frame->text, peer.rank);
          break;
        case kMeet:
          if (place.rank == 0) {
            come(peer.rank, meeting_of(frame->text));
          } else {
            held(frame->text);
          }
          break;
        case kWait:
          wait(peer.rank, to_int(frame->text).value_or(-1));
          break;
        default: {
          std::string reason;
          {
            const std::lock_guard lock(mutex);
            // Whoever sends a text waits for the others', and may go on once it has been taken.
            reason = place.rank == 0 ? meetings.wait(peer.rank) : std::string();
            peer.inbox.push_back(frame->text);
          }
          changed.notify_all();
          if (!reason.empty()) {
            set_failure(reason, -1);
          }
          break;
        }
      }
    }
  }

  void start_readers() {
    for (const auto& peer : peers) {
      peer->reader = std::thread([this, p = peer.get()] { read(*p); });
    }
  }

  std::string next(Peer& peer) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return !peer.inbox.empty() || !failure.empty() || peer.left; });
    if (peer.inbox.empty()) {
      throw Error(
          failure.empty() ? fmt::format("rank {} has left before the others", peer.rank) : failure,
          ExitCode::kCheckFailed);
    }
    std::string text = std::move(peer.inbox.front());
    peer.inbox.pop_front();
    return text;
  }

  void send_or_fail(Peer& peer, char kind, const std::string& text) {
    if (!send(peer, kind, text)) {
      std::unique_lock lock(mutex);
      // The reader finds out why.
      changed.wait_for(lock, std::chrono::seconds(2), [&] { return !failure.empty(); });
      throw Error(failure.empty() ? fmt::format("rank {} cannot be reached", peer.rank) : failure,
                  ExitCode::kCheckFailed);
    }
  }

  struct Comer;
  Comer comer_of(const std::optional<Frame>& frame, const std::string& hello,
                 const std::function<bool(int)>& taken) const;
  void listen(const std::string& hello, Clock::time_point until);
  void connect(const std::string& hello, Clock::time_point until);
};

/// Who comes while rank 0 listens.
struct Bootstrap::State::Comer {
  int rank = -1;
  std::string refusal;  ///< why it is none of this job's ranks; empty: it is one
  std::string failure;  ///< why it gave up; empty: it did not
};

/// `taken`: of ranks from 1 on.
Bootstrap::State::Comer Bootstrap::State::comer_of(const std::optional<Frame>& frame,
                                                   const std::string& hello,
                                                   const std::function<bool(int)>& taken) const {
  // "<rank> <hello>", or of a rank that gave up "<rank> <beginning of the hello>\n<reason>"
  const std::size_t blank = frame ? frame->text.find(' ') : std::string::npos;
  const std::int64_t rank =
      blank == std::string::npos ? -1 : to_int(frame->text.substr(0, blank)).value_or(-1);
  if (!frame || (frame->kind != kHello && frame->kind != kGaveUp) || blank == std::string::npos) {
    return {-1, "not a rank of this program", ""};
  }
  const std::string_view said = std::string_view(frame->text).substr(blank + 1);
  const std::size_t end = frame->kind == kGaveUp ? said.find('\n') : said.size();
  if (frame->kind == kGaveUp ? end == said.npos || !hello.starts_with(said.substr(0, end))
                             : said != hello) {
    return {-1, fmt::format("rank {} runs another job (its world or its workload differs)", rank),
            ""};
  }
  if (rank < 1 || rank >= place.world || taken(static_cast<int>(rank))) {
    return {-1, fmt::format("there is a rank {} already, or no such rank", rank), ""};
  }
  Comer comer{static_cast<int>(rank), "", ""};
  if (frame->kind == kGaveUp) {
    comer.failure = fmt::format("rank {} failed: {}", rank, said.substr(end + 1));
  }
  return comer;
}

void Bootstrap::State::listen(const std::string& hello, Clock::time_point until) {
  const Listener listener(place);
  std::vector<std::unique_ptr<Peer>> found(static_cast<std::size_t>(place.world - 1));
  int missing = place.world - 1;
  std::string wrong;
  // Ends the wait of those that have come.
  const auto tell_found = [&](FrameKind kind, const std::string& reason) {
    for (const auto& peer : found) {
      if (peer) {
        (void)send_frame(peer->socket, kind, reason);
        (void)::close(peer->socket);
      }
    }
  };
  while (missing > 0) {
    const int socket = listener.accept(until);
    if (socket < 0) {
      const std::string problem = fmt::format("{} of {} ranks did not come in time{}{}", missing,
                                              place.world, wrong.empty() ? "" : "; ", wrong);
      tell_found(kFailure, problem);
      throw network_error(place, problem);
    }
    const std::optional<Frame> frame =
        receive_frame(socket, kLongestHello, std::min(until, Clock::now() + kHelloTime));
    const Comer comer = comer_of(frame, hello, [&](int rank) {
      return found[static_cast<std::size_t>(rank - 1)] != nullptr;
    });
    if (!comer.refusal.empty()) {
      wrong = comer.refusal;
      (void)send_frame(socket, kFailure, wrong);
      (void)::close(socket);
      continue;
    }
    --missing;
    if (!comer.failure.empty()) {
      (void)::close(socket);
      tell_found(kGaveUp, comer.failure);
      listener.tell_comers(comer.failure, missing, std::min(until, Clock::now() + kTellingTime));
      throw Error(comer.failure, ExitCode::kCheckFailed);
    }
    auto peer = std::make_unique<Peer>();
    peer->socket = socket;
    peer->rank = comer.rank;
    found[static_cast<std::size_t>(comer.rank - 1)] = std::move(peer);
  }
  peers = std::move(found);
  for (const auto& peer : peers) {
    (void)send(*peer, kShare, hello);
  }
}

void Bootstrap::State::connect(const std::string& hello, Clock::time_point until) {
  const int socket = connect_to_first(place, until);
  if (socket < 0) {
    throw network_error(place, "rank 0 is not there")
        .hint("--master HOST:PORT must be the same on all ranks");
  }
  auto peer = std::make_unique<Peer>();
  peer->socket = socket;
  const auto left = std::chrono::duration_cast<std::chrono::seconds>(until - Clock::now()).count();
  timeval limit{std::max<long>(1, left), 0};
  (void)::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  const bool sent = send_frame(socket, kHello, fmt::format("{} {}", place.rank, hello));
  const std::optional<Frame> answer = sent ? receive_frame(socket) : std::nullopt;
  if (!answer || answer->kind != kShare) {
    (void)::close(socket);
    if (answer && answer->kind == kGaveUp) {
      throw Error(answer->text, ExitCode::kCheckFailed);
    }
    throw network_error(place, answer && answer->kind == kFailure
                                   ? "rank 0 says: " + printable(answer->text, 400)
                                   : "the other ranks did not come in time");
  }
  limit = {0, 0};
  (void)::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  peers.push_back(std::move(peer));
}

Bootstrap::Bootstrap(const RankPlace& place, const std::string& key, double timeout_s)
    : state_(std::make_unique<State>()) {
  state_->place = place;
  state_->meetings = Meetings(place.world);
  if (place.world < 2) {
    return;
  }
  const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                        std::chrono::duration<double>(timeout_s));
  const std::string hello = fmt::format("{} {}", place.world, key);
  if (place.rank == 0) {
    state_->listen(hello, until);
  } else {
    state_->connect(hello, until);
  }
  state_->start_readers();
}

Bootstrap::~Bootstrap() = default;

std::string Bootstrap::share(const std::string& text) {
  if (state_->place.world < 2) {
    return text;
  }
  if (state_->place.rank != 0) {
    return state_->next(*state_->peers.front());
  }
  {
    const std::lock_guard lock(state_->mutex);
    state_->meetings.go_on();
  }
  for (const auto& peer : state_->peers) {
    state_->send_or_fail(*peer, kShare, text);
  }
  return text;
}

std::vector<std::string> Bootstrap::gather(const std::string& text) {
  if (state_->place.rank != 0) {
    state_->send_or_fail(*state_->peers.front(), kText, text);
    return {};
  }
  std::vector<std::string> all{text};
  std::string reason;
  {
    const std::lock_guard lock(state_->mutex);
    reason = state_->meetings.wait(0);
  }
  if (!reason.empty()) {
    state_->set_failure(reason, -1);
  }
  for (const auto& peer : state_->peers) {
    all.push_back(state_->next(*peer));
  }
  return all;
}

void Bootstrap::barrier() {
  (void)gather("");
  (void)share("");
}

void Bootstrap::meet(const MeetingCall& call) {
  if (state_->place.rank == 0) {
    state_->come(0, call);
  } else {
    state_->send_or_fail(*state_->peers.front(), kMeet, frame_of(call));
  }
}

bool Bootstrap::has_met(const std::string& name) {
  const std::lock_guard lock(state_->mutex);
  return state_->met.erase(name) > 0;
}

void Bootstrap::wait_for_meetings() {
  std::int64_t count = 0;
  {
    const std::lock_guard lock(state_->mutex);
    if (!state_->met.empty()) {
      return;
    }
    count = state_->meetings_held;
  }
  if (state_->place.rank == 0) {
    state_->wait(0, count);
  } else {
    state_->send_or_fail(*state_->peers.front(), kWait, std::to_string(count));
  }
}

void Bootstrap::fail(const std::string& reason) noexcept {
  try {
    {
      const std::lock_guard lock(state_->mutex);
      if (state_->failing || !state_->failure.empty()) {
        return;
      }
      state_->failing = true;
    }
    for (const auto& peer : state_->peers) {
      (void)state_->send(*peer, kFailure,
                         fmt::format("rank {} failed: {}", state_->place.rank, reason));
    }
  } catch (...) {  // memory: the others see the connection end
    return;
  }
}

void Bootstrap::on_failure(const std::function<void(const std::string&)>& call) {
  std::unique_lock lock(state_->mutex);
  // What the old one works on may go after this.
  state_->changed.wait(lock, [&] {
    return state_->calling == std::thread::id() || state_->calling == std::this_thread::get_id();
  });
  state_->call = call;
  state_->tell(lock);
}

std::string Bootstrap::failure() const {
  const std::lock_guard lock(state_->mutex);
  return state_->failure;
}

}  // namespace lockstep

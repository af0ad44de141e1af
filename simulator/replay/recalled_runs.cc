#include "simulator/replay/recalled_runs.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/error.h"

namespace lockstep {
namespace {

std::size_t index_of(std::int32_t i) { return static_cast<std::size_t>(i); }

std::int32_t ranks_of(const RankPrograms& work, const CollectiveRuns::Key& key) {
  if (key.family < 0) {
    return 2;
  }
  return static_cast<std::int32_t>(
      work.families[index_of(key.family)].groups()[index_of(key.group)].size());
}

/// Whether no rank can be done before all have entered: only then may those that came first wait
/// for the last before they send.
bool needs_all(CommType op) {
  return op == CommType::kAllReduce || op == CommType::kAllGather ||
         op == CommType::kReduceScatter || op == CommType::kAllToAll || op == CommType::kBarrier;
}

}  // namespace

RecalledRuns::RecalledRuns(const RankPrograms& work, const std::vector<NodeId>& node_of_rank,
                           const Topology& topology, NetworkEngine& network,
                           const ScheduleSource& schedules, const ReplayOptions& options,
                           Finished finished)
    : work_(work),
      topology_(topology),
      finished_(std::move(finished)),
      budget_(options.recall->error_budget),
      least_share_(options.recall->least_share),
      wait_for_last_(options.recall->wait_for_last),
      finder_(topology, *options.recall),
      simulated_(
          work, node_of_rank, topology, network, schedules, options,
          [this](std::int32_t rank, std::int32_t op, Time moved) {
            const CollectiveRuns::Key key =
                simulated_.key_of(rank, work_.program(rank).ops()[index_of(op)]);
            const auto found = open_.find(key);
            if (found == open_.end()) {
              finished_(rank, op, moved);
              return;
            }
            const std::int32_t place = simulated_.place_of(key, rank);
            know(found->second, place, now_);
            if (at(found->second).cut > Time()) {
              schedule(found->second, place);
            } else {
              finish(found->second, place);
            }
          },
          [this](const CollectiveRuns::Key& key, std::int32_t place) {
            if (const auto found = open_.find(key); found != open_.end()) {
              know(found->second, place, now_);
            }
          },
          [this](const CollectiveRuns::Key& key, const SteadyPace& pace, std::int32_t left) {
            return cut(key, pace, left);
          }),
      uses_(2 * topology.links.size()),
      error_(index_of(work.ranks())) {}

/// Whether so manieth of a kind is simulated, whatever is known of it.
bool RecalledRuns::looks(const Kind& kind, std::int64_t count) {
  return count <= 2 ||
         (kind.samples >= 2 && std::has_single_bit(static_cast<std::uint64_t>(count)));
}

RecalledRuns::Communicator& RecalledRuns::communicator_of(const CollectiveRuns::Key& key,
                                                          const ProgramOp& op) {
  std::unique_ptr<Communicator>& known =
      communicators_[{key.family, key.group, key.other, op.comm, op.bytes.count()}];
  if (known) {
    return *known;
  }
  known = std::make_unique<Communicator>();
  Communicator& communicator = *known;
  communicator.schedule = simulated_.schedule_of(key, op);
  const Schedule& schedule = *communicator.schedule;
  const std::vector<std::int32_t> members = simulated_.members_of(key);
  communicator.ways = finder_.find(
      schedule, [&](std::int32_t place) { return simulated_.node_of(schedule, members, place); });
  communicator.kind = &kinds_[{&schedule, communicator.ways.description}];
  communicator.ways.description.clear();
  communicator.transfers = schedule.transfer_count();
  communicator.sends.assign(index_of(schedule.ranks), 0);
  for (const Slot& slot : schedule.slots) {
    if (slot.source < schedule.ranks) {
      communicator.sends[index_of(slot.source)] = 1;
    }
  }
  communicator.senders = static_cast<std::int32_t>(std::ranges::count(communicator.sends, char{1}));
  communicator.steady =
      communicator.ways.steady && (communicator.senders == 1 || needs_all(schedule.op));
  return communicator;
}

std::int32_t RecalledRuns::open(const CollectiveRuns::Key& key, const ProgramOp& op, Time now) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::int32_t>(sessions_.size()));
    sessions_.push_back(std::make_unique<Session>());
  }
  const std::int32_t index = free_.back();
  free_.pop_back();
  Session& session = at(index);
  session = Session{};
  session.communicator = &communicator_of(key, op);
  session.key = key;
  session.first_op = &op;
  const std::size_t places = session.communicator->sends.size();
  session.rank.assign(places, kNone);
  session.op.assign(places, kNone);
  session.finish.assign(places, Time::max());
  session.to_come = session.communicator->senders;
  session.unfinished = static_cast<std::int32_t>(places);
  session.first = session.begin = now;
  const Kind& kind = *session.communicator->kind;
  if (session.to_come == 0 || !session.communicator->steady) {
    simulate_as_they_come(index, now);
    session.alone = false;  // it is like nobody else
  } else if (looks(kind, kind.count + 1) || !wait_for_last_ || worst_ > allowed(now)) {
    brief_.push_back(index);
  }
  return index;
}

/// Its ranks send as they come.
void RecalledRuns::simulate_as_they_come(std::int32_t index, Time now) {
  Session& session = at(index);
  session.state = State::kSimulated;
  session.waits = false;
  if (!session.communicator->steady) {
    meet_others(index, now);
  }
  for (const auto& [rank, op] : session.order) {
    simulated_.enter(rank, op, now);
  }
}

void RecalledRuns::enter(std::int32_t rank, std::int32_t op_index, Time now) {
  now_ = now;
  const ProgramOp& op = work_.program(rank).ops()[index_of(op_index)];
  const CollectiveRuns::Key key = simulated_.key_of(rank, op);
  if (ranks_of(work_, key) < 2) {
    finished_(rank, op_index, now);
    return;
  }
  auto found = open_.find(key);
  if (found == open_.end()) {
    if (off_) {
      simulated_.enter(rank, op_index, now);
      return;
    }
    found = open_.emplace(key, open(key, op, now)).first;
  }
  const std::int32_t index = found->second;
  Session& session = at(index);
  if (session.first_op->comm != op.comm || session.first_op->bytes != op.bytes) {
    for (const auto& [other, other_op] : session.order) {
      simulated_.enter(other, other_op, now);
    }
    simulated_.enter(rank, op_index, now);  // says how they disagree
  }
  const std::int32_t place = simulated_.place_of(key, rank);
  session.rank[index_of(place)] = rank;
  session.op[index_of(place)] = op_index;
  session.error = std::max(session.error, error_[index_of(rank)]);
  session.order.emplace_back(rank, op_index);
  session.moved = op.sets_off() ? now : session.moved;
  if (session.to_come > 0 && session.communicator->sends[index_of(place)] != 0) {
    session.first = session.to_come == session.communicator->senders ? now : session.first;
    session.begin = now;
    if (--session.to_come == 0 && session.state == State::kGathers) {
      begin(index, now);
      return;
    }
    if (session.to_come == 0 && session.communicator->steady) {
      meet_others(index, now);  // until all are there little is sent
      Kind& kind = *session.communicator->kind;
      kind.leader = kind.leader == kNone && session.alone ? index : kind.leader;
    }
  }
  if (session.state == State::kSimulated) {
    simulated_.enter(rank, op_index, now);
  } else if (session.state != State::kGathers) {
    schedule(index, place);
  }
}

void RecalledRuns::begin(std::int32_t index, Time now) {
  Session& session = at(index);
  Kind& kind = *session.communicator->kind;
  session.begin = now;
  const bool beside_simulated = meet_others(index, now);
  ++kind.count;
  const bool known = kind.samples >= 2;
  const Time apart = known ? kind.apart : kind.leader != kNone ? at(kind.leader).apart() : Time();
  const Time early = std::max(Time(), apart - (now - session.first));
  const bool beyond =
      (worst_ > allowed(now) && (session.first < now || kind.difference > Time())) ||
      (early > Time() && worst_ + early > allowed(now));
  if (off_ || beside_simulated || looks(kind, kind.count) || beyond ||
      (!known && kind.leader == kNone)) {
    session.state = State::kSimulated;
    kind.leader = kind.leader == kNone && session.alone ? index : kind.leader;
    for (const auto& [rank, op] : session.order) {
      simulated_.enter(rank, op, now);
    }
    return;
  }
  session.state = known ? State::kTold : State::kFollows;
  session.error += early;
  if (known) {
    session.error += kind.difference;
    session.finish = kind.finish;
  } else {
    Session& leader = at(kind.leader);
    leader.followers.push_back(index);
    for (std::size_t place = 0; place < session.finish.size(); ++place) {
      session.finish[place] = leader.finish[place];
    }
  }
  kind.most_told = std::max(kind.most_told, ++session.communicator->told);
  recalled_ += session.communicator->transfers;
  for (std::size_t place = 0; place < session.rank.size(); ++place) {
    if (session.rank[place] != kNone) {
      schedule(index, static_cast<std::int32_t>(place));
    }
  }
}

/// Goes to its ports. Whether one whose transfers are being simulated is there; what it does to the
/// others that are there, and they to it, is added to the errors.
bool RecalledRuns::meet_others(std::int32_t index, Time now) {
  Session& session = at(index);
  const RecalledWays& ways = session.communicator->ways;
  struct Meeting {
    std::int32_t session;
    Time error;
  };
  std::vector<Meeting> meetings;
  bool quiet = true;
  for (const RecalledWays::Load& load : ways.loads) {
    std::vector<Use>& uses = uses_[index_of(load.port)];
    std::erase_if(uses, [&](const Use& use) { return use.until <= now; });
    for (const Use& use : uses) {
      if (use.until < Time::max()) {
        quiet = false;
        continue;
      }
      const Time shared = longest_over(PortId(load.port), std::min(load.bytes, use.bytes));
      const auto known = std::ranges::find(meetings, use.session, &Meeting::session);
      if (known == meetings.end()) {
        meetings.push_back({use.session, shared});
      } else {
        known->error = std::max(known->error, shared);
      }
    }
    uses.push_back({index, load.bytes, Time::max()});
  }
  session.error += quiet ? Time() : ways.packet;
  bool simulated = session.state == State::kSimulated;
  const bool must = simulated;
  for (const Meeting& meeting : meetings) {
    simulated = simulated || at(meeting.session).state == State::kSimulated;
  }
  bool beside = false;
  for (const Meeting& meeting : meetings) {
    Session& other = at(meeting.session);
    other.alone = session.alone = false;
    other.met = session.met = true;
    if (other.state == State::kSimulated && other.cut == Time()) {
      beside = true;
      for (const std::int32_t follower : other.followers) {
        at(follower).error += meeting.error;
      }
    } else {
      other.error += meeting.error;
      session.error += meeting.error;
    }
  }
  return beside || must;
}

/// What bytes take over a port that carries as little of its rate as any.
Time RecalledRuns::longest_over(PortId port, std::int64_t bytes) const {
  const Bandwidth rate = topology_.class_of(LinkId(port.value / 2)).rate;
  return Time::seconds(static_cast<double>(bytes) / (rate.bytes_per_second() * least_share_));
}

void RecalledRuns::schedule(std::int32_t index, std::int32_t place) {
  const Session& session = at(index);
  const Time offset = session.finish[index_of(place)];
  if (offset < Time::max()) {
    due_.push({std::max(now_, session.begin + offset), order_++, index, place});
  }
}

/// How many of the steps that are left need not be simulated.
std::int32_t RecalledRuns::cut(const CollectiveRuns::Key& key, const SteadyPace& pace,
                               std::int32_t left) {
  const auto found = open_.find(key);
  if (found == open_.end() || off_ || at(found->second).met) {
    return 0;
  }
  const auto estimate = pace.estimate(left);
  if (!estimate || worst_ + estimate->error > allowed(now_ + estimate->time)) {
    return 0;
  }
  Session& session = at(found->second);
  session.cut = estimate->time;
  session.alone = false;  // it is not like one that was simulated
  session.error += estimate->error;
  for (const std::int32_t follower : session.followers) {
    at(follower).error += estimate->error;
  }
  Communicator& communicator = *session.communicator;
  const std::int64_t transfers = std::int64_t{left} * pace.connections();
  recalled_ += transfers;
  communicator.parts +=
      static_cast<double>(transfers) / static_cast<double>(communicator.transfers);
  return left;
}

/// A simulated place has its data now: so those that follow it know when they have theirs.
void RecalledRuns::know(std::int32_t index, std::int32_t place, Time now) {
  Session& session = at(index);
  Time& offset = session.finish[index_of(place)];
  if (offset < Time::max()) {
    return;  // it had come before its rank
  }
  offset = now - session.begin + session.cut;
  for (const std::int32_t follower : session.followers) {
    Session& other = at(follower);
    other.finish[index_of(place)] = offset;
    if (other.rank[index_of(place)] != kNone) {
      schedule(follower, place);
    }
  }
}

void RecalledRuns::finish(std::int32_t index, std::int32_t place) {
  Session& session = at(index);
  const std::int32_t rank = session.rank[index_of(place)], op = session.op[index_of(place)];
  const Time moved = session.moved;
  Time& error = error_[index_of(rank)];
  const Time waited = session.waits ? session.begin - session.first : Time();
  error = std::max(error, session.error + std::min(waited, session.finish[index_of(place)]));
  worst_ = std::max(worst_, error);
  if (--session.unfinished == 0) {
    close(index);
  }
  finished_(rank, op, moved);
}

void RecalledRuns::close(std::int32_t index) {
  Session& session = at(index);
  Communicator& communicator = *session.communicator;
  for (const RecalledWays::Load& load : communicator.ways.loads) {
    for (Use& use : uses_[index_of(load.port)]) {
      if (use.session == index && use.until == Time::max()) {
        use.until = now_ + communicator.ways.rest;
      }
    }
  }
  if (session.state == State::kSimulated) {
    keep(session);
  }
  if (communicator.kind->leader == index) {
    communicator.kind->leader = kNone;
  }
  open_.erase(session.key);
  free_.push_back(index);
}

/// What a simulated collective did, for those of its kind.
void RecalledRuns::keep(const Session& session) {
  if (!session.alone) {
    return;
  }
  Kind& kind = *session.communicator->kind;
  if (kind.samples > 0) {
    Time difference;
    for (std::size_t place = 0; place < session.finish.size(); ++place) {
      const Time a = session.finish[place], b = kind.finish[place];
      difference = std::max(difference, a > b ? a - b : b - a);
    }
    if (difference > kind.difference) {
      // Those that were told already were off by more than was thought.
      const Time more = (difference - kind.difference) * kind.most_told;
      for (Time& error : error_) {
        error += more;
      }
      worst_ += more;
      kind.difference = difference;
    }
  }
  kind.finish = session.finish;
  kind.apart = session.apart();
  ++kind.samples;
}

Time RecalledRuns::advance(Time limit) {
  told_.clear();
  for (const std::int32_t index : brief_) {
    Session& session = at(index);
    if (session.state == State::kGathers && session.unfinished > 0) {
      Kind& kind = *session.communicator->kind;
      const bool sample = looks(kind, kind.count + 1);
      kind.count += sample ? 1 : 0;
      simulate_as_they_come(index, now_);
      session.alone = session.alone && sample;
    }
  }
  brief_.clear();
  const Time until = due_.empty() ? limit : std::min(limit, due_.top().when);
  const Time now = simulated_.advance(until);
  while (!due_.empty() && due_.top().when <= now) {
    told_.push_back(due_.top());
    due_.pop();
  }
  return now;
}

void RecalledRuns::dispatch(Time now) {
  now_ = now;
  simulated_.dispatch(now);
  for (const Due& due : told_) {
    finish(due.session, due.place);
  }
}

void RecalledRuns::scale_capacity(PortId port, double share) {
  off_ = true;
  simulated_.scale_capacity(port, share);
  // What is told as of before goes through the port as if nothing had happened.
  for (const auto& session : sessions_) {
    if (session->unfinished > 0 && session->state != State::kSimulated && share < 1) {
      for (const RecalledWays::Load& load : session->communicator->ways.loads) {
        if (load.port == port.value) {
          session->error +=
              Time::seconds(longest_over(port, load.bytes).seconds() * (1 / share - 1));
        }
      }
    }
  }
}

std::vector<std::int32_t> RecalledRuns::missing(std::int32_t rank, std::int32_t op) const {
  const auto found = open_.find(simulated_.key_of(rank, work_.program(rank).ops()[index_of(op)]));
  if (found == open_.end() || sessions_[index_of(found->second)]->state != State::kGathers) {
    return simulated_.missing(rank, op);
  }
  std::vector<std::int32_t> ranks;
  const Session& session = *sessions_[index_of(found->second)];
  const std::vector<std::int32_t> members = simulated_.members_of(session.key);
  for (std::size_t place = 0; place < members.size(); ++place) {
    if (session.rank[place] == kNone) {
      ranks.push_back(members[place]);
    }
  }
  return ranks;
}

Time RecalledRuns::allowed(Time now) const {
  return Time::ps(static_cast<std::int64_t>(static_cast<double>(now.count_ps()) * budget_));
}

std::vector<Bytes> RecalledRuns::recalled_bytes() const {
  std::vector<Bytes> bytes(uses_.size());
  for (const auto& [key, communicator] : communicators_) {
    for (const RecalledWays::Load& load : communicator->ways.loads) {
      const double times = static_cast<double>(communicator->told) + communicator->parts;
      bytes[index_of(load.port)] += Bytes(std::llround(static_cast<double>(load.bytes) * times));
    }
  }
  return bytes;
}

}  // namespace lockstep

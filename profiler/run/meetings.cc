#include "profiler/run/meetings.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace lockstep {

Meetings::Outcome Meetings::come(int rank, const MeetingCall& call) {
  waits_[static_cast<std::size_t>(rank)] = false;
  const auto [place, fresh] = open_.emplace(call.name, Meeting{call.terms, {}});
  Meeting& meeting = place->second;
  if (meeting.terms != call.terms) {
    const int other = meeting.items.begin()->first;
    meeting.items.emplace(rank, call.item);
    std::vector<std::string> named;
    for (const int one : {std::min(rank, other), std::max(rank, other)}) {
      named.push_back(fmt::format("rank {} is at {}", one, meeting.items.at(one)));
    }
    return {{}, fmt::format("ranks do not do the same: {}", fmt::join(named, "; "))};
  }
  meeting.items.emplace(rank, call.item);
  Outcome outcome;
  if (static_cast<std::int64_t>(meeting.items.size()) >= call.ranks) {
    for (const auto& [member, item] : meeting.items) {
      outcome.held.push_back(member);
      ++held_[static_cast<std::size_t>(member)];
      waits_[static_cast<std::size_t>(member)] = false;
    }
    open_.erase(place);
  }
  return outcome;
}

std::string Meetings::wait(int rank, std::int64_t held) {
  // Who has not heard of its last meeting yet will go on.
  waits_[static_cast<std::size_t>(rank)] = held == held_[static_cast<std::size_t>(rank)];
  return std::ranges::all_of(waits_, [](bool waits) { return waits; }) ? all_wait() : std::string();
}

std::string Meetings::all_wait() const {
  constexpr std::size_t kNamed = 4;
  std::map<int, std::string> ranks;
  for (const auto& [name, meeting] : open_) {
    ranks.insert(meeting.items.begin(), meeting.items.end());
  }
  if (ranks.empty()) {
    return "";
  }
  std::vector<std::string> named;
  for (const auto& [rank, item] : ranks) {
    if (named.size() == kNamed) {
      named.push_back(fmt::format("and {} more", ranks.size() - kNamed));
      break;
    }
    named.push_back(fmt::format("rank {} is at {}", rank, item));
  }
  return fmt::format("the ranks wait for each other for ever: {}", fmt::join(named, "; "));
}

}  // namespace lockstep

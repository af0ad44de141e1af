#include "simulator/collectives/custom/schedule_json.h"

#include <array>
#include <limits>
#include <utility>
#include <vector>

#include "base/json.h"

namespace lockstep {
namespace {

constexpr std::int64_t kMost = 1 << 24;  // ranks, chunks, counts, …

std::int32_t required(const JsonView& object, std::string_view key, std::int64_t low,
                      std::int64_t high = kMost) {
  return static_cast<std::int32_t>(object[key].integer(low, high));
}

/// A whole number with a value for its absence.
std::int32_t optional(const JsonView& object, std::string_view key, std::int32_t absent,
                      std::int64_t low, std::int64_t high = kMost) {
  return object.has(key) ? required(object, key, low, high) : absent;
}

SlotWait read_wait(const JsonView& json) {
  constexpr std::array<std::string_view, 2> kKeys = {"slot", "lag"};
  json.allow_keys(kKeys);
  SlotWait wait;
  wait.slot = required(json, "slot", 0);
  const bool all = !json.has("lag") || (json["lag"].json().is_string());
  if (all && json.has("lag") && json["lag"].string() != "all") {
    throw json["lag"].error("is neither a whole number nor \"all\"");
  }
  wait.lag = all ? SlotWait::kAll : required(json, "lag", -kMost);
  return wait;
}

void read_slot(const JsonView& json, Schedule& schedule) {
  constexpr std::array<std::string_view, 10> kKeys = {"source",  "destination", "channel", "count",
                                                      "reduces", "cycle",       "start",   "step",
                                                      "run",     "waits"};
  json.allow_keys(kKeys);
  Slot slot;
  const std::int32_t places = schedule.places();
  slot.source = required(json, "source", 0, places - 1);
  slot.destination = required(json, "destination", 0, places - 1);
  if (slot.source == slot.destination) {
    throw json["destination"].error("is the source");
  }
  slot.channel = optional(json, "channel", 0, 0, 1 << 20);
  slot.count = optional(json, "count", 1, 1);
  slot.reduces = optional(json, "reduces", 0, 0, slot.count);
  const auto cycles = static_cast<std::int64_t>(schedule.cycle_begin.size()) - 1;
  slot.cycle = optional(json, "cycle", -1, -1, cycles - 1);
  slot.start = optional(json, "start", 0, -kMost);
  slot.step = optional(json, "step", 0, -kMost);
  slot.run = optional(json, "run", 1, 1, schedule.chunks);
  std::vector<SlotWait> waits;
  if (json.has("waits")) {
    const JsonView list = json["waits"];
    for (std::size_t i = 0; i < list.size(); ++i) {
      waits.push_back(read_wait(list[i]));
    }
  }
  schedule.add(slot, waits);
}

void read_cycle(const JsonView& json, Schedule& schedule) {
  std::vector<std::int32_t> chunks;
  for (std::size_t i = 0; i < json.size(); ++i) {
    chunks.push_back(static_cast<std::int32_t>(json[i].integer(0, schedule.chunks - 1)));
  }
  if (chunks.empty()) {
    throw json.error("is empty");
  }
  schedule.add_cycle(chunks);
}

SwitchPlace read_switch(const JsonView& json, std::int32_t ranks) {
  constexpr std::array<std::string_view, 3> kKeys = {"near", "level", "index"};
  json.allow_keys(kKeys);
  return {required(json, "near", 0, ranks - 1), required(json, "level", 0, 16),
          optional(json, "index", 0, 0)};
}

template <class F>
void each(const JsonView& object, std::string_view key, F&& f) {
  if (object.has(key)) {
    const JsonView list = object[key];
    for (std::size_t i = 0; i < list.size(); ++i) {
      f(list[i]);
    }
  }
}

}  // namespace

NamedSchedule parse_schedule_json(std::string_view text, const std::string& file) {
  constexpr std::array<std::string_view, 9> kKeys = {
      "schema", "name", "op", "ranks", "chunks", "root", "switches", "cycles", "slots"};
  const Json document = parse_json(text, file);
  const JsonView root(document, file);
  root.allow_keys(kKeys);
  if (root["schema"].string() != "lockstep-algorithm/1") {
    throw root["schema"].error("is not lockstep-algorithm/1");
  }
  NamedSchedule named;
  named.name = root["name"].string();
  Schedule& schedule = named.schedule;
  const auto op = comm_type_named(root["op"].string());
  if (!op || *op == CommType::kNone) {
    throw root["op"]
        .error("is no collective")
        .expected(
            "allreduce, allgather, reducescatter, alltoall, broadcast, reduce, sendrecv or "
            "barrier");
  }
  schedule.op = *op;
  schedule.ranks = required(root, "ranks", 2, 1 << 20);
  schedule.chunks = required(root, "chunks", 1);
  schedule.root = optional(root, "root", 0, 0, schedule.ranks - 1);
  const std::int64_t n = schedule.ranks, chunks = schedule.chunks;
  const bool sharded = *op == CommType::kAllGather || *op == CommType::kReduceScatter;
  if ((sharded && chunks % n != 0) || (*op == CommType::kAllToAll && chunks != n * n) ||
      (*op == CommType::kSendRecv && chunks > n)) {
    throw root["chunks"]
        .error("does not go with the operation")
        .expected(
            "a multiple of the ranks for all-gather and reduce-scatter, their square for "
            "all-to-all, "
            "at most one a rank for sendrecv");
  }
  each(root, "switches", [&](const JsonView& json) {
    schedule.switches.push_back(read_switch(json, schedule.ranks));
  });
  each(root, "cycles", [&](const JsonView& json) { read_cycle(json, schedule); });
  each(root, "slots", [&](const JsonView& json) { read_slot(json, schedule); });
  const JsonView slots = root["slots"];
  for (std::size_t i = 0; i < schedule.slots.size(); ++i) {
    for (std::size_t w = 0; w < schedule.waits(i).size(); ++w) {
      if (schedule.waits(i)[w].slot >= static_cast<std::int64_t>(schedule.slots.size())) {
        throw slots[i]["waits"][w]["slot"].error("there is no such slot");
      }
    }
  }
  return named;
}

std::string to_schedule_json(const NamedSchedule& named) {
  const Schedule& s = named.schedule;
  Json switches = Json::array(), cycles = Json::array(), slots = Json::array();
  for (const SwitchPlace& place : s.switches) {
    switches.push_back({{"near", place.near}, {"level", place.level}, {"index", place.index}});
  }
  for (std::size_t i = 0; i + 1 < s.cycle_begin.size(); ++i) {
    cycles.push_back(std::vector<std::int32_t>(s.cycle_chunks.begin() + s.cycle_begin[i],
                                               s.cycle_chunks.begin() + s.cycle_begin[i + 1]));
  }
  for (std::size_t i = 0; i < s.slots.size(); ++i) {
    const Slot& slot = s.slots[i];
    Json waits = Json::array();
    for (const SlotWait& wait : s.waits(i)) {
      waits.push_back({{"slot", wait.slot},
                       {"lag", wait.lag == SlotWait::kAll ? Json("all") : Json(wait.lag)}});
    }
    slots.push_back({{"source", slot.source},
                     {"destination", slot.destination},
                     {"channel", slot.channel},
                     {"count", slot.count},
                     {"reduces", slot.reduces},
                     {"cycle", slot.cycle},
                     {"start", slot.start},
                     {"step", slot.step},
                     {"run", slot.run},
                     {"waits", std::move(waits)}});
  }
  return to_text(Json{{"schema", "lockstep-algorithm/1"},
                      {"name", named.name},
                      {"op", name_of(s.op)},
                      {"ranks", s.ranks},
                      {"chunks", s.chunks},
                      {"root", s.root},
                      {"switches", std::move(switches)},
                      {"cycles", std::move(cycles)},
                      {"slots", std::move(slots)}});
}

}  // namespace lockstep

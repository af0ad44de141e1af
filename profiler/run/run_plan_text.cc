// What a rank would run, for people and for programs: runs of equal items are one line.
#include <fmt/format.h>

#include "base/json.h"
#include "base/units.h"
#include "profiler/run/aicb_words.h"
#include "profiler/run/run_plan.h"

namespace lockstep {

std::string what(const RunPlan& plan, const RunItem& item) {
  if (item.epoch_end) {
    return "end of iteration";
  }
  if (item.comm == CommType::kNone) {
    return item.compute.m > 0
               ? fmt::format("gemm {} x {} x {}", item.compute.m, item.compute.n, item.compute.k)
               : fmt::format("idle {}", to_text(item.compute.idle));
  }
  if (item.comm == CommType::kSendRecv) {
    return fmt::format("{} {} {} rank {}", item.send ? "send" : "receive",
                       to_text(Bytes(item.bytes)), item.send ? "to" : "from", item.peer);
  }
  const RunGroup& group = plan.groups[static_cast<std::size_t>(item.group)];
  return fmt::format(
      "{} {} over {} of {}{}", name_of(item.comm), to_text(Bytes(item.bytes)), group.name,
      group.ranks.size(),
      has_root(item.comm) ? fmt::format(", root rank {}", root_rank(plan, item)) : "");
}

namespace {

/// Calls `take(item, how often in a row)` for each run of items that look alike.
template <typename Take>
void each_run(const RunPlan& plan, const Take& take) {
  for (std::size_t i = 0; i < plan.items.size();) {
    const RunItem& item = plan.items[i];
    const std::string looks = what(plan, item);
    std::size_t end = i + 1;
    while (end < plan.items.size() && plan.items[end].name == item.name &&
           plan.items[end].stream == item.stream && what(plan, plan.items[end]) == looks) {
      ++end;
    }
    take(item, looks, end - i);
    i = end;
  }
}

Json json_of(const RunPlan& plan, const RunItem& item, std::size_t count) {
  Json json{{"count", count}, {"name", item.name}};
  if (!item.epoch_end && plan.streams.size() > 1) {
    json["stream"] = plan.streams[static_cast<std::size_t>(item.stream)];
  }
  if (item.epoch_end) {
    json["op"] = "end_of_iteration";
  } else if (item.comm == CommType::kNone && item.compute.m > 0) {
    json["op"] = "gemm";
    json["shape"] = {item.compute.m, item.compute.n, item.compute.k};
  } else if (item.comm == CommType::kNone) {
    json["op"] = "idle";
    json["time_s"] = item.compute.idle.seconds();
  } else {
    json["op"] = item.comm == CommType::kSendRecv ? (item.send ? "send" : "receive")
                                                  : std::string(name_of(item.comm));
    json["size_bytes"] = item.bytes;
    json["communicator"] = item.group;
    if (item.comm == CommType::kSendRecv) {
      json["peer"] = item.peer;
    } else if (has_root(item.comm)) {
      json["root"] = root_rank(plan, item);
    }
  }
  return json;
}

}  // namespace

std::string describe(const RunPlan& plan) {
  std::string text = fmt::format("rank {} of {}: {} items, {} communicators, buffers of {}\n",
                                 plan.rank, plan.world, plan.items.size(), plan.groups.size(),
                                 to_text(Bytes(plan.largest_bytes)));
  each_run(plan, [&](const RunItem& item, const std::string& looks, std::size_t count) {
    text += fmt::format("{:>6} x  {:<44} {}\n", count, looks, item.name);
  });
  return text;
}

std::string to_json_text(const RunPlan& plan) {
  Json communicators = Json::array(), items = Json::array();
  for (const RunGroup& group : plan.groups) {
    communicators.push_back({{"group", group.name}, {"ranks", group.ranks}});
  }
  each_run(plan, [&](const RunItem& item, const std::string&, std::size_t count) {
    items.push_back(json_of(plan, item, count));
  });
  return to_text(Json{{"schema", "lockstep-run-plan/1"},
                      {"rank", plan.rank},
                      {"world", plan.world},
                      {"largest_bytes", plan.largest_bytes},
                      {"communicators", std::move(communicators)},
                      {"items", std::move(items)}});
}

}  // namespace lockstep

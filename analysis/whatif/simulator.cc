#include "analysis/whatif/simulator.h"

#include <fmt/format.h>

#include "base/error.h"

namespace lockstep::whatif {

Simulator::Simulator(const OpTable& table, const DependencyGraph& graph, const std::string& file,
                     const std::vector<bool>& keep)
    : table_(table) {
  const std::size_t nodes = table.nodes.size();
  const auto kept = [&keep](std::uint32_t node) { return keep.empty() || keep[node]; };
  std::size_t wanted = 0;
  predecessor_begin_.push_back(0);
  std::vector<std::vector<std::uint32_t>> successors(nodes);
  for (std::uint32_t n = 0; n < nodes; ++n) {
    wanted += kept(n) ? 1U : 0U;
    for (const std::uint32_t p : graph.predecessors[n]) {
      if (kept(n) && kept(p)) {
        predecessors_.push_back(p);
        successors[p].push_back(n);
      }
    }
    predecessor_begin_.push_back(static_cast<std::uint32_t>(predecessors_.size()));
  }

  // A group waits for the predecessors of all its members.
  const std::size_t groups = graph.groups.size();
  const auto unit_of = [&](std::uint32_t n) {
    return graph.group_of[n] >= 0 ? static_cast<std::size_t>(graph.group_of[n]) : groups + n;
  };
  std::vector<std::size_t> waiting(groups + nodes, 0);
  for (std::uint32_t n = 0; n < nodes; ++n) {
    waiting[unit_of(n)] += predecessor_begin_[n + 1] - predecessor_begin_[n];
  }
  std::vector<std::size_t> ready;
  for (std::uint32_t n = 0; n < nodes; ++n) {
    const std::size_t unit = unit_of(n);
    const bool first = unit >= groups || graph.groups[unit].members.front() == n;
    if (first && kept(n) && waiting[unit] == 0) {
      ready.push_back(unit);
    }
  }
  for (std::size_t i = 0; i < ready.size(); ++i) {
    const std::size_t unit = ready[i];
    Item item{.first = static_cast<std::uint32_t>(order_.size())};
    if (unit < groups) {
      const CommGroup& group = graph.groups[unit];
      order_.insert(order_.end(), group.members.begin(), group.members.end());
      item.grouped = true;
      item.scope = group.scope;
    } else {
      order_.push_back(static_cast<std::uint32_t>(unit - groups));
    }
    item.count = static_cast<std::uint32_t>(order_.size()) - item.first;
    items_.push_back(item);
    for (std::uint32_t m = item.first; m < order_.size(); ++m) {
      for (const std::uint32_t next : successors[order_[m]]) {
        if (--waiting[unit_of(next)] == 0) {
          ready.push_back(unit_of(next));
        }
      }
    }
  }
  if (order_.size() < wanted) {
    std::string stuck;
    int named = 0;
    for (std::uint32_t n = 0; n < nodes && named < 3; ++n) {
      if (waiting[unit_of(n)] > 0) {
        stuck += (named++ == 0 ? "" : ", ") + to_text(table.nodes[n]);
      }
    }
    throw Error(
        fmt::format("{} operations wait for each other: {} …", wanted - order_.size(), stuck))
        .at(file)
        .hint("the order of the operations in the first step is one that cannot run");
  }

  for (const Item& item : items_) {
    largest_item_ = std::max(largest_item_, item.count);
  }

  // Slots: a node's is free again after the item in which its last successor starts.
  std::vector<std::size_t> last_use(nodes, 0);
  std::vector<std::vector<std::uint32_t>> unused_after(items_.size());
  for (std::size_t i = 0; i < items_.size(); ++i) {
    for (std::uint32_t m = 0; m < items_[i].count; ++m) {
      const std::uint32_t node = order_[items_[i].first + m];
      last_use[node] = i;
      for (std::uint32_t p = predecessor_begin_[node]; p < predecessor_begin_[node + 1]; ++p) {
        last_use[predecessors_[p]] = i;
      }
    }
  }
  for (std::uint32_t n = 0; n < nodes; ++n) {
    if (kept(n)) {
      unused_after[last_use[n]].push_back(n);
    }
  }
  slot_.resize(nodes);
  std::vector<std::uint32_t> free;
  for (std::size_t i = 0; i < items_.size(); ++i) {
    for (std::uint32_t m = 0; m < items_[i].count; ++m) {
      const std::uint32_t node = order_[items_[i].first + m];
      if (free.empty()) {
        slot_[node] = slots_++;
      } else {
        slot_[node] = free.back();
        free.pop_back();
      }
    }
    for (const std::uint32_t n : unused_after[i]) {
      free.push_back(slot_[n]);
    }
  }
}

}  // namespace lockstep::whatif

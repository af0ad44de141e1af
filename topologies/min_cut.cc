#include "topologies/min_cut.h"

#include <algorithm>

namespace lockstep {

void MinCut::connect(std::size_t a, std::size_t b, std::int64_t forward, std::int64_t backward) {
  edges_of_[a].push_back(edges_.size());
  edges_.push_back({b, forward});
  edges_of_[b].push_back(edges_.size());
  edges_.push_back({a, backward});
}

bool MinCut::label(std::size_t source, std::size_t sink) {
  level_.assign(edges_of_.size(), -1);
  level_[source] = 0;
  std::vector<std::size_t> queue{source};
  for (std::size_t i = 0; i < queue.size(); ++i) {
    for (const std::size_t e : edges_of_[queue[i]]) {
      if (edges_[e].room > 0 && level_[edges_[e].to] < 0) {
        level_[edges_[e].to] = level_[queue[i]] + 1;
        queue.push_back(edges_[e].to);
      }
    }
  }
  return level_[sink] >= 0;
}

std::int64_t MinCut::augment(std::size_t source, std::size_t sink) {
  std::int64_t total = 0;
  std::vector<std::size_t> path;  // edges
  std::size_t at = source;
  for (;;) {
    if (at == sink) {
      std::int64_t least = edges_[path[0]].room;
      for (const std::size_t e : path) {
        least = std::min(least, edges_[e].room);
      }
      total += least;
      std::size_t full = path.size();
      for (std::size_t i = path.size(); i-- > 0;) {
        edges_[path[i]].room -= least;
        edges_[path[i] ^ 1].room += least;
        full = edges_[path[i]].room == 0 ? i : full;
      }
      at = edges_[path[full] ^ 1].to;
      path.resize(full);
      continue;
    }
    std::size_t& i = next_[at];
    while (i < edges_of_[at].size()) {
      const Edge& edge = edges_[edges_of_[at][i]];
      if (edge.room > 0 && level_[edge.to] == level_[at] + 1) {
        break;
      }
      ++i;
    }
    if (i < edges_of_[at].size()) {
      path.push_back(edges_of_[at][i]);
      at = edges_[path.back()].to;
    } else if (path.empty()) {
      return total;
    } else {
      at = edges_[path.back() ^ 1].to;
      path.pop_back();
      ++next_[at];
    }
  }
}

std::int64_t MinCut::between(std::size_t source, std::size_t sink) {
  std::int64_t total = 0;
  while (label(source, sink)) {
    next_.assign(edges_of_.size(), 0);
    total += augment(source, sink);
  }
  return total;
}

}  // namespace lockstep

#include "app/collective/placement.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/rng.h"
#include "base/text.h"

namespace lockstep {
namespace {

Error bad_placement(std::string message) {
  return Error(std::move(message))
      .field("--placement")
      .expected("first, spread, stride:K, random, or GPUs such as 0-3,8-11");
}

std::vector<NodeId> spread(const Topology& topology, const std::vector<NodeId>& gpus) {
  std::map<std::int32_t, std::int32_t> seen;  // GPUs of a server so far
  std::vector<std::pair<std::int32_t, NodeId>> order;
  order.reserve(gpus.size());
  for (const NodeId gpu : gpus) {
    order.emplace_back(seen[topology.nodes[gpu.index()].server]++, gpu);
  }
  std::ranges::stable_sort(order, {}, &std::pair<std::int32_t, NodeId>::first);
  std::vector<NodeId> result;
  result.reserve(order.size());
  for (const auto& entry : order) {
    result.push_back(entry.second);
  }
  return result;
}

std::vector<NodeId> listed(std::string_view text, const std::vector<NodeId>& gpus) {
  std::vector<NodeId> result;
  std::vector<bool> taken(gpus.size(), false);
  for (const std::string_view part : split(text, ',')) {
    const std::size_t dash = part.find('-');
    const auto first = to_int(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : to_int(part.substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first) {
      throw bad_placement(fmt::format("'{}' is no GPU and no range of GPUs", printable(part)));
    }
    if (*last >= std::ssize(gpus)) {
      throw bad_placement(
          fmt::format("there is no GPU {}; the topology has {}", *last, gpus.size()));
    }
    for (std::int64_t gpu = *first; gpu <= *last; ++gpu) {
      const auto i = static_cast<std::size_t>(gpu);
      if (taken[i]) {
        throw bad_placement(fmt::format("GPU {} is named twice", gpu));
      }
      taken[i] = true;
      result.push_back(gpus[i]);
    }
  }
  return result;
}

std::vector<NodeId> candidates(const Topology& topology, std::string_view placement,
                               std::uint64_t seed) {
  std::vector<NodeId> gpus = topology.gpus();
  if (placement == "first") {
    return gpus;
  }
  if (placement == "spread") {
    return spread(topology, gpus);
  }
  if (placement == "random") {
    Rng rng(seed, "collective/placement");
    for (std::size_t i = gpus.size(); i > 1; --i) {
      std::swap(gpus[i - 1], gpus[rng.below(i)]);
    }
    return gpus;
  }
  if (placement.starts_with("stride:")) {
    const auto stride = to_int(placement.substr(7));
    if (!stride || *stride < 1) {
      throw bad_placement(fmt::format("'{}' is no stride", printable(placement.substr(7))));
    }
    std::vector<NodeId> result;
    for (std::int64_t i = 0; i < std::ssize(gpus); i += *stride) {
      result.push_back(gpus[static_cast<std::size_t>(i)]);
    }
    return result;
  }
  if (placement.empty() || placement.front() < '0' || placement.front() > '9') {
    throw bad_placement(fmt::format("unknown placement '{}'", printable(placement)));
  }
  return listed(placement, gpus);
}

}  // namespace

std::vector<NodeId> place_ranks(const Topology& topology, std::string_view placement,
                                std::int64_t ranks, std::uint64_t seed) {
  std::vector<NodeId> nodes = candidates(topology, placement, seed);
  if (ranks > std::ssize(nodes)) {
    throw Error(fmt::format("{} ranks have only {} GPUs to run on", ranks, nodes.size()))
        .field("--gpus")
        .hint("take a larger topology, or another --placement");
  }
  if (ranks > 0) {
    nodes.resize(static_cast<std::size_t>(ranks));
  }
  if (nodes.size() < 2) {
    throw Error("a collective needs at least two GPUs")
        .field(ranks > 0              ? "--gpus"
               : placement == "first" ? "--topology"
                                      : "--placement");
  }
  return nodes;
}

}  // namespace lockstep

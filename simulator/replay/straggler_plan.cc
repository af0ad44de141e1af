#include "simulator/replay/straggler_plan.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace lockstep {
namespace {

/// What traffic that does not give way leaves of a link: too little for any message, but not
/// nothing.
constexpr double kLeastShare = 1e-9;

std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15U;
  return hash ^ (hash >> 29);
}

}  // namespace

const CommFamily* StragglerContext::family_of(GroupKind kind, std::int32_t rank) const {
  const CommFamily* other = nullptr;
  for (const CommFamily& family : families) {
    if (family.kind() != kind || family.group_of(rank) < 0) {
      continue;
    }
    if (family.plain()) {
      return &family;
    }
    other = other == nullptr ? &family : other;
  }
  // Of a job of unlike pipelines those of each part are a family.
  return kind == GroupKind::kPp ? other : nullptr;
}

std::int32_t StragglerContext::place(GroupKind kind, std::int32_t rank) const {
  const CommFamily* groups = family_of(kind, rank);
  return groups == nullptr ? 0 : groups->place_of(rank);
}

std::int32_t StragglerContext::size(GroupKind kind) const {
  std::size_t size = 1;
  for (const CommFamily& family : families) {
    for (const std::vector<std::int32_t>& group : family.groups()) {
      size = family.kind() == kind && (family.plain() || kind == GroupKind::kPp)
                 ? std::max(size, group.size())
                 : size;
    }
  }
  return static_cast<std::int32_t>(size);
}

std::int32_t StragglerContext::data_parallel_rank(std::int32_t rank) const {
  const CommFamily* contexts = family_of(GroupKind::kCp, rank);
  const CommFamily* replicas = family_of(GroupKind::kDp, rank);
  if (contexts == nullptr || replicas == nullptr) {
    return place(GroupKind::kDp, rank);
  }
  // Ranks that hold the same parameters are data- and context-parallel.
  const auto in = [](const CommFamily& family, std::int32_t member) -> decltype(auto) {
    return family.groups()[static_cast<std::size_t>(family.group_of(member))];
  };
  const std::int32_t first = in(*contexts, rank).front();
  std::int32_t before = 0;
  for (const std::int32_t other : in(*replicas, rank)) {
    if (other == first) {
      return before;
    }
    before += contexts->place_of(other) == 0 ? 1 : 0;
  }
  return replicas->place_of(rank);  // the context's ranks hold other parameters
}

std::uint64_t StragglerContext::draw_of(const CommFamily& family, std::int32_t group) const {
  std::uint64_t before = 0;
  for (const CommFamily& other : families) {
    if (&other == &family) {
      break;
    }
    before += other.kind() == family.kind() && other.plain() ? 1U : 0U;
  }
  return (before << 32) + static_cast<std::uint64_t>(group);
}

StragglerPlan::StragglerPlan(std::span<const Straggler> stragglers, const StragglerContext& context)
    : context_(context),
      speed_(static_cast<std::size_t>(context.ranks())),
      colour_(static_cast<std::size_t>(context.ranks())) {
  for (std::size_t i = 0; i < stragglers.size(); ++i) {
    const Straggler& straggler = stragglers[i];
    index_ = straggler.place().value_or(i) + 1;
    try {
      straggler.model().apply(straggler, context, *this);
    } catch (Error& error) {
      straggler.locate(error);
      throw;
    }
  }
  computes_ = !factors_.empty() ||
              std::ranges::any_of(speed_, [](const RankSpeed& speed) { return !speed.empty(); });
}

Rng StragglerPlan::rng(std::uint64_t a, std::uint64_t b, std::uint64_t c) const {
  std::uint64_t hash = context_.seed;
  for (const std::uint64_t part : {static_cast<std::uint64_t>(context_.step), a, b, c}) {
    hash = mixed(hash, part + 1);
  }
  return Rng(hash, "straggler");
}

void StragglerPlan::factor(Factor factor, std::span<const std::uint64_t> alike) {
  factors_.push_back(std::move(factor));
  for (std::size_t rank = 0; rank < colour_.size(); ++rank) {
    colour_[rank] = mixed(colour_[rank] + factors_.size(), alike[rank] + 1);
  }
}

std::vector<double> StragglerPlan::loads_of(const ProgramOp& op, std::int32_t group) const {
  std::vector<double> product;
  if (op.family < 0 ||
      context_.families[static_cast<std::size_t>(op.family)].kind() != GroupKind::kEp) {
    return product;
  }
  for (const Loads& loads : loads_) {
    const std::vector<double> each =
        loads(context_.families[static_cast<std::size_t>(op.family)], group, op.microbatch);
    product.resize(each.size(), 1);
    for (std::size_t place = 0; place < each.size(); ++place) {
      product[place] *= each[place];
    }
  }
  return product;
}

void StragglerPlan::scale_port(const Straggler& spec, PortId port, double share, Bandwidth taken) {
  changes_[port.value].push_back({share, taken, spec.from(), spec.until(), 0});
}

void StragglerPlan::lose(const Straggler& spec, LinkId link, double probability, double share) {
  for (const std::int32_t port : {2 * link.value, 2 * link.value + 1}) {
    changes_[port].push_back({share, {}, spec.from(), spec.until(), probability});
  }
}

void StragglerPlan::fail(const Straggler& spec, std::vector<LinkId> links, Time rerouting) {
  faults_.push_back({std::move(links), spec.from(), spec.until(), rerouting});
}

void StragglerPlan::scale_link(const Straggler& spec, LinkId link, double share) {
  scale_port(spec, PortId(2 * link.value), share);
  scale_port(spec, PortId(2 * link.value + 1), share);
}

std::vector<std::uint64_t> StragglerPlan::colours() const {
  std::vector<std::uint64_t> colours = colour_;
  for (std::size_t rank = 0; rank < speed_.size(); ++rank) {
    std::uint64_t& colour = colours[rank];
    for (const SpeedWindow& window : speed_[rank].windows()) {
      colour = mixed(colour + 1, std::bit_cast<std::uint64_t>(window.factor));
      for (const Time part :
           {window.from, window.until, window.period, window.length, window.phase}) {
        colour = mixed(colour, static_cast<std::uint64_t>(part.count_ps()));
      }
    }
  }
  return colours;
}

bool StragglerPlan::steady() const {
  return factors_.empty() && std::ranges::all_of(speed_, [](const RankSpeed& speed) {
           return std::ranges::all_of(speed.windows(), [](const SpeedWindow& window) {
             return window.period <= Time() && window.from <= Time() && window.until == Time::max();
           });
         });
}

Time StragglerPlan::duration(std::int32_t rank, std::int32_t op, const ProgramOp& what,
                             Time begin) const {
  if (!computes_) {
    return what.compute;
  }
  Time nominal = what.compute;
  double factor = 1;
  for (const Factor& each : factors_) {
    factor *= each(rank, op, what);
  }
  if (factor != 1) {
    nominal = Time::ps(std::llround(static_cast<double>(nominal.count_ps()) * factor));
  }
  return speed_[static_cast<std::size_t>(rank)].duration(begin, nominal);
}

std::vector<NetworkChange> StragglerPlan::changes() const {
  std::vector<NetworkChange> result;
  for (const auto& [port, shares] : changes_) {
    const Bandwidth rate = context_.topology->class_of(LinkId(port / 2)).rate;
    std::set<Time> dates;
    for (const Share& share : shares) {
      dates.insert(share.from);
      if (share.until < Time::max()) {
        dates.insert(share.until);
      }
    }
    for (const Time date : dates) {
      double left = 1, beside_loss = 1, taken = 0, arrives = 1;
      for (const Share& share : shares) {
        if (share.from <= date && date < share.until) {
          left *= share.share;
          beside_loss *= share.loss > 0 ? 1 : share.share;
          arrives *= 1 - share.loss;
          taken += share.taken.bytes_per_second() / rate.bytes_per_second();
        }
      }
      if (taken > 0 && left - taken < kLeastShare) {
        const auto rate_text = [&](double share) {
          return to_text(Bandwidth::bytes_per_second(rate.bytes_per_second() * share));
        };
        const Link& link = context_.topology->links[static_cast<std::size_t>(port / 2)];
        throw Error(fmt::format("background traffic leaves nothing of the link between the nodes "
                                "{} and {} from {} on: it takes {} of {}",
                                link.a.value, link.b.value, to_text(date), rate_text(taken),
                                rate_text(left)))
            .field("--straggler background")
            .expected("less than the links on its way have left");
      }
      result.push_back({date, PortId(port), std::max(left - taken, kLeastShare),
                        std::max(beside_loss - taken, kLeastShare), 1 - arrives});
    }
  }
  std::ranges::stable_sort(result, {}, &NetworkChange::when);
  return result;
}

double StragglerPlan::slowest() const {
  if (!changes_.empty() || !faults_.empty()) {
    throw Error("the analytic engine has no links that could be slow").hint("use --engine flow");
  }
  ProgramOp pass, later;
  pass.type = later.type = OpType::kForward;
  later.microbatch = 1;
  double slowest = 0;
  for (std::int32_t rank = 0; rank < context_.ranks(); ++rank) {
    double factor = 1;
    for (const Factor& each : factors_) {
      const double here = each(rank, 0, pass);
      if (here != each(rank, 1, pass) || here != each(rank, 1, later)) {
        throw Error("the formulas of a table of layers know one speed a rank, not one an operation")
            .hint("use --engine flow");
      }
      factor *= here;
    }
    for (const SpeedWindow& window : speed_[static_cast<std::size_t>(rank)].windows()) {
      if (window.period > Time() || window.from > Time() || window.until < Time::max()) {
        throw Error("the analytic engine has no clock: a straggler cannot come and go")
            .hint("use --engine flow");
      }
      factor *= window.factor;
    }
    slowest = std::max(slowest, factor);
  }
  return slowest;
}

std::vector<LinkId> links_of(const Topology& topology, NodeId node) {
  std::vector<LinkId> links;
  for (std::size_t i = 0; i < topology.links.size(); ++i) {
    if (topology.links[i].a == node || topology.links[i].b == node) {
      links.emplace_back(static_cast<std::int32_t>(i));
    }
  }
  return links;
}

std::vector<LinkId> nics_of(const Topology& topology, NodeId gpu) {
  std::vector<LinkId> links = links_of(topology, gpu);
  std::erase_if(links, [&](LinkId link) {
    const Link& ends = topology.links[link.index()];
    const NodeId other = ends.a == gpu ? ends.b : ends.a;
    return topology.nodes[other.index()].kind != NodeKind::kSwitch;
  });
  return links;
}

std::vector<LinkId> links_between(const Straggler& spec, std::size_t field,
                                  const Topology& topology, std::int64_t a, std::int64_t b) {
  for (const std::int64_t node : {a, b}) {
    if (node >= std::ssize(topology.nodes)) {
      throw spec.error(field, fmt::format("there is no node {}; there are {}, from 0", node,
                                          topology.nodes.size()));
    }
  }
  std::vector<LinkId> links;
  for (const LinkId link : links_of(topology, NodeId(static_cast<std::int32_t>(a)))) {
    const Link& ends = topology.links[link.index()];
    if (ends.a.value == b || ends.b.value == b) {
      links.push_back(link);
    }
  }
  if (links.empty()) {
    throw spec.error(field, fmt::format("no link joins the nodes {} and {}", a, b))
        .hint("'lockstep topology links' lists what joins what");
  }
  return links;
}

const Topology& topology_of(const Straggler& spec, const StragglerContext& context) {
  if (context.topology == nullptr) {
    throw spec.error("the analytic engine has no links that could be slow")
        .hint("use --engine flow");
  }
  return *context.topology;
}

}  // namespace lockstep

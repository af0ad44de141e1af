#include "planner/aceso/search/space.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace lockstep::aceso {
namespace {

/// A part of a unit that is rounding of doubles, not memory.
constexpr double kRoundingUnits = 1e-4;

bool listed(const std::vector<std::int64_t>& values, std::int64_t value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

void add_choices(const Problem& problem, Space& space) {
  for (int tp = 1; tp <= std::min(space.gpus, problem.max_tp); tp *= 2) {
    const int dp = space.gpus / tp;
    const std::int64_t share = space.microbatch / dp;
    if (space.microbatch % dp != 0 || !listed(problem.microbatches, share) ||
        !problem.database->has(share, tp, 0)) {
      continue;
    }
    for (int algorithm = 0; algorithm < problem.model->algorithms; ++algorithm) {
      if (problem.database->has(share, tp, algorithm)) {
        space.choices.push_back({tp, dp, algorithm});
      }
    }
  }
  std::vector<int> degrees;
  for (const OpPlace& place : space.choices) {
    if (degrees.empty() || degrees.back() != place.tp) {
      degrees.push_back(place.tp);
    }
    space.tensor_index.push_back(static_cast<int>(degrees.size()) - 1);
  }
}

void add_rows(const Problem& problem, Space& space) {
  const Database& database = *problem.database;
  const auto count = static_cast<double>(space.microbatches);
  for (std::size_t row = 0; row < database.names.size(); ++row) {
    const OpTraits& traits = database.traits[row];
    std::vector<OpChoice> choices;
    for (const OpPlace& place : space.choices) {
      const OpCost& cost = database.cost(static_cast<int>(row), space.microbatch / place.dp,
                                         place.tp, place.algorithm);
      OpChoice choice;
      choice.allowed = place.algorithm == 0 || traits.tunable;
      choice.time_us = cost.forward_us + cost.backward_us;
      if (problem.flavour == Flavour::kFixed) {
        choice.time_us += (gradient_us(database, cost.weights_mb, place.dp, false) +
                           optimizer_us(cost.weights_mb, *problem.model, problem.cluster)) /
                          count;
      }
      choice.forward_us = cost.forward_us;
      choice.activations = to_units(cost.activations_mb * traits.activation_factor);
      choice.weights = to_units(cost.weights_mb);
      choice.input = to_units(cost.input_mb);
      choice.forward_reserved = to_units(cost.forward_reserved_mb);
      choice.backward_reserved = to_units(cost.backward_reserved_mb);
      for (const bool crosses : {false, true}) {
        choice.receive_us[crosses ? 1 : 0] =
            peer_us(database, cost.input_mb, crosses, problem.flavour);
      }
      choices.push_back(choice);
    }
    space.rows.push_back(std::move(choices));
  }
}

void add_sends(const Problem& problem, Space& space) {
  const Database& database = *problem.database;
  std::vector<int> degrees;
  for (std::size_t c = 0; c < space.choices.size(); ++c) {
    if (static_cast<std::size_t>(space.tensor_index[c]) == degrees.size()) {
      degrees.push_back(space.choices[c].tp);
    }
  }
  for (const int first_tp : degrees) {
    auto& by_row = space.send_us.emplace_back();
    for (std::size_t row = 0; row < database.names.size(); ++row) {
      auto& by_choice = by_row.emplace_back();
      for (const OpPlace& place : space.choices) {
        const int tp = problem.flavour == Flavour::kStrict ? first_tp : place.tp;
        const double size =
            database.cost(static_cast<int>(row), space.microbatch / place.dp, tp, place.algorithm)
                .output_mb;
        by_choice.push_back({peer_us(database, size, false, problem.flavour),
                             peer_us(database, size, true, problem.flavour)});
      }
    }
  }
}

/// Fixed flavour: what summing the gradients of the tied embedding costs, a microbatch's share.
void add_ties(const Problem& problem, Space& space) {
  space.ends_are_free = problem.flavour == Flavour::kFixed;
  const Database& database = *problem.database;
  const bool tied = space.ends_are_free && (problem.model->family == Family::kGpt ||
                                            problem.model->family == Family::kScaleLayer);
  for (const OpPlace& place : space.choices) {
    const auto share = [&](int row) {
      const double weights =
          database.cost(row, space.microbatch / place.dp, place.tp, place.algorithm).weights_mb;
      return tied ? gradient_us(database, weights, 2, problem.cluster.nodes > 1) /
                        static_cast<double>(space.microbatches)
                  : 0;
    };
    space.tie_first_us.push_back(share(database.ops.front()));
    space.tie_last_us.push_back(share(database.ops.back()));
  }
}

std::vector<Step> steps_between(const Problem& problem, const Space& space, int from_row,
                                int to_row) {
  const Database& database = *problem.database;
  const auto producer = static_cast<std::size_t>(from_row);
  const auto consumer = static_cast<std::size_t>(to_row);
  const OpTraits& traits = database.traits[consumer];
  std::vector<Step> steps;
  for (std::size_t to = 0; to < space.choices.size(); ++to) {
    for (std::size_t from = 0; from < space.choices.size(); ++from) {
      const OpPlace &a = space.choices[from], &b = space.choices[to];
      if (!space.rows[producer][from].allowed || !space.rows[consumer][to].allowed ||
          (a.tp != b.tp && !traits.tunable)) {
        continue;
      }
      double us = 0;
      if (problem.model->resharding) {
        const double size =
            database.cost(to_row, space.microbatch / b.dp, b.tp, b.algorithm).input_mb;
        const Reshard change =
            reshard(database, database.traits[producer], a, traits, b, size, problem.flavour);
        us = 1000 * (change.forward_ms + change.backward_ms);
      }
      steps.push_back({static_cast<int>(from), static_cast<int>(to), us});
    }
  }
  return steps;
}

void add_ops(const Problem& problem, Space& space) {
  const Database& database = *problem.database;
  std::map<std::pair<int, int>, int> pairs;
  space.op_row = database.ops;
  for (std::size_t i = 0; i < database.ops.size(); ++i) {
    const int row = database.ops[i];
    const OpTraits& traits = database.traits[static_cast<std::size_t>(row)];
    space.ordinary.push_back(traits.ordinary ? 1 : 0);
    space.recomputable.push_back(traits.recomputable ? 1 : 0);
    if (i + 1 == database.ops.size()) {
      space.pair.push_back(-1);
      space.counts_when_saved.push_back(0);
      space.closes.push_back(0);
      continue;
    }
    const int next = database.ops[i + 1];
    const bool ends = database.traits[static_cast<std::size_t>(next)].boundary;
    space.counts_when_saved.push_back(!traits.ordinary || !ends ? 1 : 0);
    space.closes.push_back(traits.ordinary && ends ? 1 : 0);
    const auto [place, fresh] =
        pairs.emplace(std::pair(row, next), static_cast<int>(space.steps.size()));
    if (fresh) {
      space.steps.push_back(steps_between(problem, space, row, next));
    }
    space.pair.push_back(place->second);
  }
}

void add_least(Space& space) {
  constexpr double kFar = std::numeric_limits<double>::infinity();
  space.least_receive_us.fill(kFar);
  space.least_send_us.fill(kFar);
  space.least_input = std::numeric_limits<Units>::max();
  const auto ops = static_cast<std::int64_t>(space.op_row.size());
  for (std::int64_t op = 0; op < ops; ++op) {
    for (std::size_t c = 0; c < space.choices.size(); ++c) {
      if (!space.at(op, c).allowed) {
        continue;
      }
      for (const bool crosses : {false, true}) {
        double& receive = space.least_receive_us[crosses ? 1 : 0];
        double& send = space.least_send_us[crosses ? 1 : 0];
        if (op > 0) {
          receive = std::min(receive, space.receive(op, c, crosses, false));
          space.least_input = std::min(space.least_input, space.at(op, c).input);
        }
        for (int t = 0; op + 1 < ops && t <= space.tensor_index.back(); ++t) {
          send = std::min(send, space.send(t, op, c, crosses, false));
        }
      }
    }
  }
  if (ops == 1) {
    space.least_receive_us.fill(0);
    space.least_send_us.fill(0);
    space.least_input = 0;
  }
}

}  // namespace

Units to_units(double mb) {
  return static_cast<Units>(std::ceil(mb * kUnitsPerMb - kRoundingUnits));
}

Units limit_units(double mb) {
  return static_cast<Units>(std::floor(mb * kUnitsPerMb + kRoundingUnits));
}

Space make_space(const Problem& problem, std::int64_t microbatch, int gpus) {
  Space space{
      .gpus = gpus, .microbatch = microbatch, .microbatches = problem.global_batch / microbatch};
  add_choices(problem, space);
  if (!space.empty()) {
    add_rows(problem, space);
    add_sends(problem, space);
    add_ties(problem, space);
    add_ops(problem, space);
    add_least(space);
  }
  return space;
}

}  // namespace lockstep::aceso

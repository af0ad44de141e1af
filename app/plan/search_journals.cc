#include "app/plan/search_journals.h"

#include <cstring>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/digest.h"
#include "base/error.h"

namespace lockstep {
namespace {

constexpr double kFar = std::numeric_limits<double>::infinity();
constexpr std::int64_t kMostOps = std::int64_t{1} << 20, kMostWork = std::int64_t{1} << 60;

/// Infinite times, which JSON has not, are null.
Json number_json(double value) { return value == kFar ? Json() : Json(value); }
double number_of(const JsonView& view) { return view.json().is_null() ? kFar : view.number(); }

/// Runs of equal ways to run an op: [ops, tp, dp, algorithm, recompute].
Json ways_json(const aceso::StageSolution& solution) {
  Json runs = Json::array();
  for (std::size_t i = 0; i < solution.places.size();) {
    std::size_t end = i;
    while (end < solution.places.size() && solution.places[end] == solution.places[i] &&
           solution.recompute[end] == solution.recompute[i]) {
      ++end;
    }
    const aceso::OpPlace& place = solution.places[i];
    runs.push_back({end - i, place.tp, place.dp, place.algorithm, int{solution.recompute[i]}});
    i = end;
  }
  return runs;
}

aceso::StageAnswer answer_of(const JsonView& line) {
  aceso::StageAnswer answer;
  answer.bound_us = number_of(line["bound_us"]);
  answer.exact = line["exact"].boolean();
  answer.labels = line["labels"].integer(0, kMostWork);
  answer.found = line.has("time_us");
  if (!answer.found) {
    return answer;
  }
  answer.solution.time_us = line["time_us"].number();
  line["ways"].each([&](const JsonView& run) {
    const std::int64_t before = std::ssize(answer.solution.places);
    const auto ops = static_cast<std::size_t>(run[0].integer(1, kMostOps - before));
    const aceso::OpPlace place{static_cast<int>(run[1].integer(1, 1 << 20)),
                               static_cast<int>(run[2].integer(1, 1 << 20)),
                               static_cast<int>(run[3].integer(0, 1))};
    answer.solution.places.insert(answer.solution.places.end(), ops, place);
    answer.solution.recompute.insert(answer.solution.recompute.end(), ops,
                                     static_cast<char>(run[4].integer(0, 1)));
  });
  return answer;
}

void check_aceso(const JsonView& line) {
  if (line.has("bottleneck_us")) {
    number_of(line["bottleneck_us"]);
  } else {
    answer_of(line);
  }
}

constexpr JournalKind kAceso{"lockstep-plan-stages/1", "stage", check_aceso};

std::string key_of(const aceso::StageQuestion& question) {
  const aceso::StageKind& kind = question.kind;
  return fmt::format("microbatch {}, {} GPUs, ops {}-{}, {} in flight{}{}, cap {} us, {} labels",
                     question.microbatch, question.gpus, question.first, question.end,
                     kind.in_flight, kind.receives_across ? ", receives across" : "",
                     kind.sends_across ? ", sends across" : "", question.cap_us,
                     question.labels_an_op);
}

/// Adds values to a digest, as their bytes.
template <class T>
void add_bytes(Digest& digest, const T* values, std::size_t count) {
  digest.add({reinterpret_cast<const char*>(values), count * sizeof(T)});
}

std::string digest_of_profile(const aceso::Database& database) {
  Digest digest;
  for (const std::string& name : database.names) {
    digest.add(name);
  }
  add_bytes(digest, database.ops.data(), database.ops.size());
  for (const aceso::Database::Profile& profile : database.profiles) {
    digest.add(fmt::format("{} {} {}", profile.microbatch, profile.tp, profile.algorithm));
    add_bytes(digest, profile.costs.data(), profile.costs.size());
  }
  for (const auto& by_gpus : database.collectives) {
    for (const aceso::CollectiveTable& table : by_gpus) {
      for (const auto& [size, ms] : table) {
        digest.add(fmt::format("{} {}", size, ms));
      }
    }
  }
  add_bytes(digest, database.intra.data(), database.intra.size());
  add_bytes(digest, database.inter.data(), database.inter.size());
  return digest.hex();
}

std::string problem_text(const aceso::Problem& problem) {
  return fmt::format(
      "{} {} {} on {} x {} GPUs of {} MB, {} kept free, {}, tp up to {}, {} samples, profile {}",
      problem.model->name, problem.model->size, problem.ops(), problem.cluster.nodes,
      problem.cluster.gpus_per_node, problem.cluster.memory_limit_mb, problem.spare_mb,
      problem.flavour == aceso::Flavour::kFixed ? "fixed" : "strict", problem.max_tp,
      problem.global_batch, digest_of_profile(*problem.database));
}

std::string problem_text(const metis::Problem& problem) {
  Digest digest;
  for (const metis::Node& node : problem.nodes) {
    digest.add(fmt::format("{} {} {} {} {} {}", node.type, node.gpus, node.inter, node.intra,
                           node.memory, node.type_memory));
  }
  const auto add = [&](const metis::Profile& profile) {
    for (const std::vector<double>* list :
         {&profile.layer_ms, &profile.layer_mb, &profile.layer_bytes}) {
      add_bytes(digest, list->data(), list->size());
    }
    digest.add(fmt::format("{} {} {}", profile.forward_backward_ms, profile.optimizer_ms,
                           profile.batch_generator_ms));
  };
  for (const auto& [key, profile] : problem.profiles.profiles) {
    digest.add(fmt::format("{} {} {}", std::get<0>(key), std::get<1>(key), std::get<2>(key)));
    add(profile);
  }
  add(problem.profiles.model);
  return fmt::format(
      "{} layers, {} samples, {} x {}, vocabulary {}, tp up to {}, {} samples a rank, {}, cluster "
      "and profiles {}",
      problem.layers, problem.global_batch, problem.hidden, problem.sequence, problem.vocabulary,
      problem.max_tp, problem.max_batch,
      problem.flavour == metis::Flavour::kFixed ? "fixed" : "strict", digest.hex());
}

std::vector<metis::Plan> plans_of(const JsonView& line) {
  std::vector<metis::Plan> plans;
  line["plans"].each([&](const JsonView& view) {
    metis::Plan& plan = plans.emplace_back();
    plan.batches = view["batches"].integer(1, std::int64_t{1} << 40);
    view["types"].each([&](const JsonView& type) { plan.node_sequence.push_back(type.string()); });
    view["groups"].each([&](const JsonView& group) {
      plan.device_groups.push_back(static_cast<int>(group.integer(1, 1 << 20)));
    });
    view["strategies"].each([&](const JsonView& pair) {
      plan.strategies.push_back({static_cast<int>(pair[0].integer(1, 1 << 20)),
                                 static_cast<int>(pair[1].integer(1, 1 << 20))});
    });
    view["layers"].each(
        [&](const JsonView& layer) { plan.partition.push_back(layer.integer(0, 1 << 20)); });
  });
  return plans;
}

constexpr JournalKind kMetis{"lockstep-plan-parts/1", "part",
                             [](const JsonView& line) { plans_of(line); }};

std::string key_of(const metis::SearchMemo::Part& part, std::size_t most) {
  return fmt::format("{}, {} batches, {} plans", fmt::join(part.first, " "), part.second, most);
}

}  // namespace

AcesoJournal::AcesoJournal(std::string path, const aceso::Problem& problem)
    : lines_(std::move(path), kAceso, problem_text(problem)) {}

bool AcesoJournal::find(const aceso::StageQuestion& question, aceso::StageAnswer& answer) {
  const std::optional<Json> line = lines_.find(key_of(question));
  if (line) {
    answer = answer_of(JsonView(*line, "the journal"));
  }
  return line.has_value();
}

void AcesoJournal::add(const aceso::StageQuestion& question, const aceso::StageAnswer& answer) {
  Json line = {{"bound_us", number_json(answer.bound_us)},
               {"exact", answer.exact},
               {"labels", answer.labels}};
  if (answer.found) {
    line["time_us"] = answer.solution.time_us;
    line["ways"] = ways_json(answer.solution);
  }
  lines_.add(key_of(question), std::move(line));
}

bool AcesoJournal::find_bottleneck(std::int64_t microbatch, double& us) {
  const std::optional<Json> line = lines_.find(fmt::format("microbatch {}", microbatch));
  if (line) {
    us = number_of(JsonView(*line, "the journal")["bottleneck_us"]);
  }
  return line.has_value();
}

void AcesoJournal::add_bottleneck(std::int64_t microbatch, double us) {
  lines_.add(fmt::format("microbatch {}", microbatch), {{"bottleneck_us", number_json(us)}});
}

MetisJournal::MetisJournal(std::string path, const metis::Problem& problem)
    : lines_(std::move(path), kMetis, problem_text(problem)) {}

bool MetisJournal::find(const Part& part, std::size_t most, std::vector<metis::Plan>& plans) {
  const std::optional<Json> line = lines_.find(key_of(part, most));
  if (line) {
    plans = plans_of(JsonView(*line, "the journal"));
  }
  return line.has_value();
}

void MetisJournal::add(const Part& part, std::size_t most,
                       const std::vector<metis::Ranked>& found) {
  Json plans = Json::array();
  for (const metis::Ranked& ranked : found) {
    Json strategies = Json::array();
    for (const metis::Strategy& strategy : ranked.plan.strategies) {
      strategies.push_back({strategy.dp, strategy.tp});
    }
    plans.push_back({{"types", ranked.plan.node_sequence},
                     {"groups", ranked.plan.device_groups},
                     {"strategies", std::move(strategies)},
                     {"batches", ranked.plan.batches},
                     {"layers", ranked.plan.partition}});
  }
  lines_.add(key_of(part, most), {{"plans", std::move(plans)}});
}

void read_aceso_journal(std::string_view text, const std::string& file, std::string_view problem) {
  read_line_journal(text, file, kAceso, problem);
}

void read_metis_journal(std::string_view text, const std::string& file, std::string_view problem) {
  read_line_journal(text, file, kMetis, problem);
}

}  // namespace lockstep

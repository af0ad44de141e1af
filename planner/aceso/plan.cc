#include "planner/aceso/plan.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"

namespace lockstep::aceso {
namespace {

constexpr std::int64_t kMaxBatch = std::int64_t{1} << 40;
constexpr std::int64_t kMaxGpus = 1 << 20;

/// The inner list of a field's list of lists, with as many elements as the stage has ops.
JsonView stage_list(const JsonView& document, std::string_view key, std::size_t stage,
                    std::size_t stages, std::size_t ops) {
  const JsonView all = document[key];
  if (all.size() != stages) {
    throw all.error(fmt::format("{} lists for {} stages", all.size(), stages));
  }
  JsonView list = all[stage];
  if (list.size() != ops) {
    throw list.error(fmt::format("{} elements for the stage's {} ops", list.size(), ops));
  }
  return list;
}

Stage parse_stage(const JsonView& document, std::size_t index, std::size_t stages,
                  const Model& model) {
  Stage stage;
  stage.gpus = static_cast<int>(document["num_gpus"][index].integer(1, kMaxGpus));
  const auto ops =
      static_cast<std::size_t>(document["num_ops_in_each_stage"][index].integer(1, 1 << 24));
  const JsonView tp = stage_list(document, "model_parallel_size_of_each_op", index, stages, ops);
  const JsonView dp = stage_list(document, "data_parallel_size_of_each_op", index, stages, ops);
  const JsonView flags = stage_list(document, "recompute_ops", index, stages, ops);
  const JsonView algo = stage_list(document, "algo_of_each_op", index, stages, ops);
  for (std::size_t i = 0; i < ops; ++i) {
    OpPlace place;
    place.tp = static_cast<int>(tp[i].integer(1, stage.gpus));
    place.dp = static_cast<int>(dp[i].integer(1, stage.gpus));
    place.algorithm = static_cast<int>(algo[i].integer(0, model.algorithms - 1));
    if (std::int64_t{place.tp} * place.dp != stage.gpus) {
      throw dp[i].error(
          fmt::format("tp {} and dp {} on a stage of {} GPUs", place.tp, place.dp, stage.gpus));
    }
    stage.places.push_back(place);
    stage.recompute.push_back(static_cast<char>(flags[i].integer(0, 1)));
  }
  return stage;
}

void check_text(const JsonView& document, std::string_view key, const std::string& wanted) {
  if (document.has(key) && document[key].json().is_string() && document[key].string() != wanted) {
    throw document[key].error(fmt::format("this plan is for '{}', not for '{}'",
                                          printable(document[key].string()), wanted));
  }
}

template <class F>
Json per_op(const Plan& plan, F&& value) {
  Json all = Json::array();
  for (const Stage& stage : plan.stages) {
    Json list = Json::array();
    for (std::size_t i = 0; i < stage.places.size(); ++i) {
      list.push_back(value(stage, i));
    }
    all.push_back(std::move(list));
  }
  return all;
}

template <class F>
Json per_stage(const Plan& plan, F&& value) {
  Json all = Json::array();
  for (const Stage& stage : plan.stages) {
    all.push_back(value(stage));
  }
  return all;
}

}  // namespace

Plan parse_plan(std::string_view text, const std::string& file, const Model& model) {
  const Json json = parse_json(text, file);
  const JsonView document(json, file);
  check_text(document, "model_name", model.name);
  check_text(document, "model_size", model.size);
  Plan plan;
  plan.global_batch = document["global_batch_size"].integer(1, kMaxBatch);
  plan.microbatch = document["micro_batch_size"].integer(1, kMaxBatch);
  if (plan.microbatch > plan.global_batch) {
    throw document["micro_batch_size"].error(fmt::format("{} is larger than the global batch of {}",
                                                         plan.microbatch, plan.global_batch));
  }
  const std::size_t stages = document["num_ops_in_each_stage"].size();
  if (stages == 0) {
    throw document["num_ops_in_each_stage"].error("a plan needs a stage");
  }
  if (document.has("num_stages") &&
      document["num_stages"].integer(1, kMaxGpus) != static_cast<std::int64_t>(stages)) {
    throw document["num_stages"].error(fmt::format("the lists have {} stages", stages));
  }
  if (document["num_gpus"].size() != stages) {
    throw document["num_gpus"].error(
        fmt::format("{} elements for {} stages", document["num_gpus"].size(), stages));
  }
  for (std::size_t s = 0; s < stages; ++s) {
    plan.stages.push_back(parse_stage(document, s, stages, model));
  }
  return plan;
}

void check_ops(const Plan& plan, const std::string& file, const Model& model,
               std::int64_t model_ops) {
  std::int64_t ops = 0;
  for (const Stage& stage : plan.stages) {
    ops += stage.ops();
  }
  if (ops != model_ops) {
    throw Error(fmt::format("{} ops, but {} {} has {}", ops, model.name, model.size, model_ops))
        .at(file)
        .field("num_ops_in_each_stage");
  }
}

std::int64_t Plan::samples() const {
  std::int64_t least = microbatch;
  for (const Stage& stage : stages) {
    for (const OpPlace& place : stage.places) {
      least = std::min(least, microbatch / place.dp * place.dp);
    }
  }
  return microbatches() * least;
}

std::string plan_json(const Plan& plan, const Model& model) {
  Json json;
  json["model_name"] = model.name;
  json["model_size"] = model.size;
  for (const auto& [key, value] : model.runtime) {
    json[key] = value;
  }
  json["global_batch_size"] = plan.global_batch;
  json["micro_batch_size"] = plan.microbatch;
  json["num_stages"] = plan.stages.size();
  json["num_gpus"] = per_stage(plan, [](const Stage& stage) { return stage.gpus; });
  json["checkpoint_activations"] = per_stage(plan, [](const Stage& stage) {
    return std::count(stage.recompute.begin(), stage.recompute.end(), 1) > 0;
  });
  json["resharding_stages"] = per_stage(plan, [](const Stage& stage) {
    return std::any_of(stage.places.begin(), stage.places.end(),
                       [&](const OpPlace& place) { return !(place == stage.places[0]); });
  });
  json["num_ops_in_each_stage"] = per_stage(plan, [](const Stage& stage) { return stage.ops(); });
  json["model_parallel_size_of_each_op"] =
      per_op(plan, [](const Stage& stage, std::size_t i) { return stage.places[i].tp; });
  json["data_parallel_size_of_each_op"] =
      per_op(plan, [](const Stage& stage, std::size_t i) { return stage.places[i].dp; });
  json["recompute_ops"] = per_op(
      plan, [](const Stage& stage, std::size_t i) { return static_cast<int>(stage.recompute[i]); });
  json["algo_of_each_op"] =
      per_op(plan, [](const Stage& stage, std::size_t i) { return stage.places[i].algorithm; });
  return json.dump(4) + "\n";
}

}  // namespace lockstep::aceso

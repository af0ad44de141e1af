#include <memory>

#include "app/command.h"
#include "app/plan/plan_options.h"

namespace lockstep {
namespace {

constexpr std::string_view kExamples =
    R"(Examples:
  lockstep plan --aceso-model scale-layer --aceso-size 2layers --profiles tests/data/plan/scale-layer --gpus-per-node 2 --nodes 2 --memory-limit 4000 --price tests/data/plan/scale-layer/two-stages.json
)";

CommandBody define(CLI::App& app) {
  auto aceso = std::make_shared<AcesoOptions>();
  app.add_option("--aceso-model", aceso->model, "Aceso's problem: gpt, t5, resnet or scale-layer")
      ->required();
  app.add_option("--aceso-size", aceso->size, "The model's size: 1_3B, 770M, 16layers …");
  app.add_option("--num-layers", aceso->layers, "Layers of scale-layer");
  app.add_option("--profiles", aceso->profiles, "Folder with the profile database")->required();
  app.add_option("--gpus-per-node", aceso->gpus_per_node, "GPUs of a server")
      ->check(CLI::Range(1, 1 << 10))
      ->capture_default_str();
  app.add_option("--nodes", aceso->nodes, "Servers")
      ->check(CLI::Range(1, 1 << 16))
      ->capture_default_str();
  app.add_option("--memory-limit", aceso->memory_limit_mb, "Memory of a GPU in MB of 2^20 bytes")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--cost", aceso->cost,
                 "strict: the system's own cost model, defects included; fixed: them mended")
      ->check(CLI::IsMember({"strict", "fixed"}))
      ->capture_default_str();
  app.add_option("--price", aceso->price, "Price this plan")->required();
  app.add_flag("--json", aceso->json, "Print one JSON document");
  return [aceso] { return run_aceso(*aceso); };
}

}  // namespace

extern const Command kPlanCommand;
const Command kPlanCommand{"plan", "The best way to train a model on a cluster, and what it costs",
                           kExamples, define};

}  // namespace lockstep

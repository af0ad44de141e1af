#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "generator/generator.h"
#include "generator/inference_model.h"

namespace lockstep {
namespace {

std::string_view kind_of(InferenceOp op) {
  switch (op) {
    case InferenceOp::kAttentionNorm:
    case InferenceOp::kAttention:
    case InferenceOp::kLinearAttention:
      return "attention";
    case InferenceOp::kDenseMlp:
      return "mlp";
    case InferenceOp::kSharedExperts:
    case InferenceOp::kMoeNorm:
    case InferenceOp::kMoeRoute:
    case InferenceOp::kMoeExpert:
      break;
  }
  return "moe";
}

/// One row of a layer: the times of its items of one kind, added.
struct Row {
  std::string_view kind;
  Count ns;
};

std::vector<Row> rows_of(const InferenceModel& model, const InferenceModel::Block& block) {
  std::vector<Row> rows;
  for (const InferenceModel::Item& item : block.items) {
    const std::string_view kind = kind_of(item.op);
    auto row = std::ranges::find(rows, kind, &Row::kind);
    if (row == rows.end()) {
      row = rows.insert(row, {kind, 0});
    }
    if (item.op != InferenceOp::kMoeRoute || model.route_is_timed) {
      row->ns += item.ns;
    }
  }
  return rows;
}

void write(const InferenceModel& model, BlockWriter& out) {
  const Count moe = model.dispatch + model.combine;
  const Count dense = model.tp > 1 ? model.activation : 0;
  out.text("layer_id\tlayer_name\tcomp_time\tcomm_size\n");
  std::int64_t layer = 0;
  for (const InferenceModel::Block& block : model.blocks) {
    const std::vector<Row> rows = rows_of(model, block);
    for (std::int64_t i = 0; i < block.layers; ++i, ++layer) {
      for (const Row& row : rows) {
        out.text(fmt::format("{}\t{}\t{}\t{}\n", layer, row.kind, row.ns.value,
                             (row.kind == "moe" ? moe : dense).value));
      }
    }
  }
}

GeneratedWorkload generate(const GenerateRequest& request) {
  GeneratedWorkload workload;
  const auto model =
      std::make_shared<const InferenceModel>(inference_model(request, workload.warnings));
  workload.file_name = "vidur-" + inference_base_name(*model) + ".csv";
  workload.write = [model](BlockWriter& out) { write(*model, out); };
  return workload;
}

}  // namespace

extern const Generator kVidurGenerator;
const Generator kVidurGenerator = {"vidur", "the same forward pass, a row a layer and kind",
                                   "vidur", inference_flag_table, generate};

}  // namespace lockstep

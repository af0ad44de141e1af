#include <cmath>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "base/json.h"
#include "workloads/workload_json.h"

namespace lockstep {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 20;

/// Collects the text and hands it on in pieces.
class Output {
 public:
  explicit Output(const TextSink& sink) : sink_(sink) {}

  template <class Value>
  Output& operator<<(const Value& value) {
    if constexpr (std::is_same_v<Value, Json>) {
      piece_ += to_line(value);
    } else {
      piece_ += value;
    }
    if (piece_.size() >= kPiece) {
      flush();
    }
    return *this;
  }

  void flush() {
    sink_(piece_);
    piece_.clear();
  }

 private:
  const TextSink& sink_;
  std::string piece_;
};

/// Writes `"key": [` and the items, one a line.
template <class Items, class ToJson>
void write_array(Output& out, std::string_view indent, std::string_view key, const Items& items,
                 ToJson to_json) {
  out << indent << "\"" << key << "\": [";
  std::string_view separator = "\n";
  for (const auto& item : items) {
    out << separator << indent << "  " << to_json(item);
    separator = ",\n";
  }
  out << (items.empty() ? "]" : "\n") << (items.empty() ? "" : indent)
      << (items.empty() ? "" : "]");
}

Json parallelism_json(const Parallelism& parallel) {
  Json json = {{"gpus", parallel.gpus}, {"tp", parallel.tp},   {"ep", parallel.ep},
               {"pp", parallel.pp},     {"vpp", parallel.vpp}, {"ga", parallel.ga}};
  if (parallel.cp > 1) {
    json["cp"] = parallel.cp;
  }
  return json;
}

/// Without what a reader assumes.
Json phase_json(const LayerPhase& phase, GroupKind plain) {
  Json json = Json::object();
  if (phase.compute != Time()) {
    json["compute_ps"] = phase.compute.count_ps();
  }
  if (phase.comm != CommType::kNone) {
    json["comm"] = name_of(phase.comm);
  }
  if (phase.comm != CommType::kNone || phase.group != plain) {
    json["group"] = name_of(phase.group);
  }
  if (phase.bytes != Bytes()) {
    json["bytes"] = phase.bytes.count();
  }
  return json;
}

void put_unless_empty(Json& json, std::string_view key, Json value) {
  if (!value.empty()) {
    json[std::string(key)] = std::move(value);
  }
}

Json layer_json(const LayerTable& table, const Layer& layer) {
  Json json;
  json["name"] = table.names[static_cast<std::size_t>(layer.name)];
  if (layer.dependency != -1) {
    json["dependency"] = layer.dependency;
  }
  put_unless_empty(json, "forward", phase_json(layer.forward, GroupKind::kTp));
  put_unless_empty(json, "input_grad", phase_json(layer.input_grad, GroupKind::kTp));
  put_unless_empty(json, "weight_grad", phase_json(layer.weight_grad, GroupKind::kDp));
  if (layer.update != Time()) {
    json["update_ps"] = layer.update.count_ps();
  }
  if (!table.layer_policies.empty()) {
    json["policy"] = table.layer_policies[static_cast<std::size_t>(&layer - table.layers.data())];
  }
  return json;
}

Json number_json(double value) {
  constexpr double kExact = 9007199254740992.0;  // 2^53
  return value == std::floor(value) && value <= kExact ? Json(static_cast<std::int64_t>(value))
                                                       : Json(value);
}

void write_layer_table(Output& out, const LayerTable& table) {
  out << "      \"layer_table\": {\n        \"policy\": " << Json(table.policy)
      << ",\n        \"pp_comm_bytes\": " << number_json(table.pp_comm_bytes);
  if (table.mode != 0) {
    out << ",\n        \"mode\": " << Json(table.mode);
  }
  if (!table.checkpoints.empty()) {
    out << ",\n        \"checkpoints\": " << Json(table.checkpoints);
  }
  if (!table.checkpoint_initiates.empty()) {
    out << ",\n        \"checkpoint_initiates\": " << Json(table.checkpoint_initiates);
  }
  out << ",\n";
  write_array(out, "        ", "layers", table.layers,
              [&](const Layer& layer) { return layer_json(table, layer); });
  out << "\n      }";
}

Json range_json(const RankRange& range) {
  Json json{{"first", range.first}, {"end", range.end}};
  if (range.stride != 1) {
    json["stride"] = range.stride;
  }
  return json;
}

Json op_json(const OpTable& table, const OpProgram& program, const Op& op) {
  Json json;
  if (!op.name.empty()) {
    json["name"] = op.name;
  }
  json["stream"] = program.streams[static_cast<std::size_t>(op.stream)];
  if (op.comm == CommType::kNone) {
    json["compute_ps"] = op.compute.count_ps();
    if (op.host != Time()) {
      json["host_ps"] = op.host.count_ps();
    }
  } else if (op.comm == CommType::kSendRecv) {
    json[op.send ? "send_to" : "recv_from"] = op.peer;
    if (op.group >= 0) {
      json["group"] = table.groups[static_cast<std::size_t>(op.group)].name;
    }
    json["bytes"] = op.bytes.count();
  } else {
    json["comm"] = name_of(op.comm);
    json["group"] = table.groups[static_cast<std::size_t>(op.group)].name;
    json["bytes"] = op.bytes.count();
  }
  put_unless_empty(json, "after", Json(op.after));
  if (op.type != OpType::kOther) {
    json["type"] = name_of(op.type);
  }
  if (op.microbatch >= 0) {
    json["microbatch"] = op.microbatch;
  }
  if (op.chunk >= 0) {
    json["chunk"] = op.chunk;
  }
  return json;
}

void write_op_table(Output& out, const OpTable& table) {
  out << "      \"op_table\": {\n";
  write_array(out, "        ", "groups", table.groups, [](const GroupFamily& family) {
    return Json{{"name", family.name}, {"members", family.members}};
  });
  out << ",\n        \"programs\": [";
  std::string_view separator = "\n";
  for (const OpProgram& program : table.programs) {
    out << separator << "          {\n            \"ranks\": [";
    std::string_view comma;
    for (const RankRange& range : program.ranks) {
      out << comma << range_json(range);
      comma = ", ";
    }
    out << "],\n            \"streams\": " << Json(program.streams) << ",\n";
    write_array(out, "            ", "ops", program.ops,
                [&](const Op& op) { return op_json(table, program, op); });
    out << "\n          }";
    separator = ",\n";
  }
  out << "\n        ]\n      }";
}

}  // namespace

void write_workload_json(const Workload& workload, const TextSink& sink) {
  Output out(sink);
  out << "{\n  \"schema\": " << Json(kWorkloadSchema) << ",\n  \"jobs\": [";
  std::string_view separator = "\n";
  for (const WorkloadJob& job : workload.jobs) {
    out << separator << "    {\n      \"name\": " << Json(job.name)
        << ",\n      \"parallel\": " << parallelism_json(job.parallel) << ",\n";
    if (const auto* table = std::get_if<LayerTable>(&job.work)) {
      write_layer_table(out, *table);
    } else {
      write_op_table(out, std::get<OpTable>(job.work));
    }
    out << "\n    }";
    separator = ",\n";
  }
  out << "\n  ]\n}\n";
  out.flush();
}

std::string to_workload_json(const Workload& workload) {
  std::string text;
  write_workload_json(workload, [&](std::string_view piece) { text += piece; });
  return text;
}

}  // namespace lockstep

#include "workloads/workload_json.h"

#include <array>
#include <limits>
#include <map>
#include <span>
#include <unordered_map>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "workloads/validate.h"

namespace lockstep {
namespace {

constexpr std::int64_t kMax64 = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMin32 = std::numeric_limits<std::int32_t>::min();
constexpr std::int64_t kMax32 = std::numeric_limits<std::int32_t>::max();

void allow(const JsonView& view, std::initializer_list<std::string_view> keys) {
  view.allow_keys(std::span(keys.begin(), keys.size()));
}

std::int64_t integer_or(const JsonView& view, std::string_view key, std::int64_t low,
                        std::int64_t high, std::int64_t absent) {
  return view.has(key) ? view[key].integer(low, high) : absent;
}

Time time_or_zero(const JsonView& view, std::string_view key) {
  return Time::ps(integer_or(view, key, 0, kMax64, 0));
}

std::int32_t int32_of(const JsonView& view, std::int64_t low = 0) {
  return static_cast<std::int32_t>(view.integer(low, kMax32));
}

std::vector<std::int32_t> int32_list(const JsonView& view) {
  if (!view.json().is_array()) {
    throw view.error("expected an array of whole numbers");
  }
  std::vector<std::int32_t> out;
  out.reserve(view.size());
  for (std::size_t i = 0; i < view.size(); ++i) {
    out.push_back(int32_of(view[i]));
  }
  return out;
}

/// Calls f with each element of an array.
template <class F>
void each(const JsonView& view, F&& f) {
  view.each(std::forward<F>(f));
}

template <class Value>
Value choice(const JsonView& view, std::optional<Value> (*parse)(std::string_view),
             std::span<const std::string_view> names) {
  const std::optional<Value> value = parse(view.string());
  if (!value) {
    const std::string_view near = closest(view.string(), names);
    throw view.error(fmt::format("unknown value \"{}\"", printable(view.string())))
        .expected(join(names, ", "))
        .hint(near.empty() ? "" : fmt::format("did you mean \"{}\"?", near));
  }
  return *value;
}

CommType comm_of(const JsonView& view) {
  static constexpr std::array<std::string_view, 8> kNames{"none",          "allreduce", "allgather",
                                                          "reducescatter", "alltoall",  "broadcast",
                                                          "reduce",        "barrier"};
  const CommType comm = choice<CommType>(view, comm_type_named, kNames);
  if (comm == CommType::kSendRecv) {
    throw view.error("sends and receives are written with send_to and recv_from");
  }
  return comm;
}

OpType op_type_of(const JsonView& view) {
  std::vector<std::string_view> names;
  names.reserve(kOpTypes);
  for (int i = 0; i < kOpTypes; ++i) {
    names.push_back(name_of(static_cast<OpType>(i)));
  }
  return choice<OpType>(view, op_type_named, names);
}

GroupKind group_of(const JsonView& view) {
  static constexpr std::array<std::string_view, 7> kNames{"tp", "dp", "ep",   "dp_ep",
                                                          "pp", "cp", "world"};
  return choice<GroupKind>(view, group_kind_named, kNames);
}

Parallelism read_parallelism(const JsonView& view) {
  allow(view, {"gpus", "tp", "cp", "ep", "pp", "vpp", "ga"});
  Parallelism out;
  out.gpus = integer_or(view, "gpus", 0, kMaxGpus, 0);
  out.tp = integer_or(view, "tp", 1, kMaxGpus, 1);
  out.cp = integer_or(view, "cp", 1, kMaxGpus, 1);
  out.ep = integer_or(view, "ep", 1, kMaxGpus, 1);
  out.pp = integer_or(view, "pp", 1, kMaxGpus, 1);
  out.vpp = integer_or(view, "vpp", 0, kMax32, 1);
  out.ga = integer_or(view, "ga", 0, kMax32, 1);
  return out;
}

LayerPhase read_phase(const JsonView& layer, std::string_view key, GroupKind plain) {
  LayerPhase phase;
  phase.group = plain;
  if (!layer.has(key)) {
    return phase;
  }
  const JsonView view = layer[key];
  allow(view, {"compute_ps", "comm", "group", "bytes"});
  phase.compute = time_or_zero(view, "compute_ps");
  phase.bytes = Bytes(integer_or(view, "bytes", 0, kMax64, 0));
  if (view.has("comm")) {
    phase.comm = comm_of(view["comm"]);
  }
  if (view.has("group")) {
    phase.group = group_of(view["group"]);
  }
  return phase;
}

LayerTable read_layer_table(const JsonView& view) {
  allow(view, {"policy", "pp_comm_bytes", "mode", "checkpoints", "checkpoint_initiates", "layers"});
  LayerTable table;
  if (view.has("policy")) {
    table.policy = view["policy"].string();
  }
  if (view.has("pp_comm_bytes")) {
    table.pp_comm_bytes = view["pp_comm_bytes"].number();
  }
  table.mode = integer_or(view, "mode", 0, kMax32, 0);
  if (view.has("checkpoints")) {
    table.checkpoints = int32_list(view["checkpoints"]);
  }
  if (view.has("checkpoint_initiates")) {
    table.checkpoint_initiates = int32_list(view["checkpoint_initiates"]);
  }
  std::unordered_map<std::string_view, std::int32_t> ids;
  each(view["layers"], [&](const JsonView& item) {
    allow(item,
          {"name", "dependency", "forward", "input_grad", "weight_grad", "update_ps", "policy"});
    const std::string& name = item["name"].string();
    const auto [id, is_new] = ids.try_emplace(name, static_cast<std::int32_t>(table.names.size()));
    if (is_new) {
      table.names.push_back(name);
    }
    Layer layer;
    layer.name = id->second;
    layer.dependency =
        static_cast<std::int32_t>(integer_or(item, "dependency", kMin32, kMax32, -1));
    layer.forward = read_phase(item, "forward", GroupKind::kTp);
    layer.input_grad = read_phase(item, "input_grad", GroupKind::kTp);
    layer.weight_grad = read_phase(item, "weight_grad", GroupKind::kDp);
    layer.update = time_or_zero(item, "update_ps");
    table.layers.push_back(layer);
    if (item.has("policy")) {
      table.layer_policies.push_back(item["policy"].string());
    }
  });
  return table;
}

using Numbers = std::map<std::string, std::int32_t, std::less<>>;

std::int32_t number_of(const JsonView& view, const Numbers& numbers, std::string_view what) {
  const auto found = numbers.find(view.string());
  if (found == numbers.end()) {
    std::vector<std::string_view> names;
    for (const auto& [name, unused] : numbers) {
      names.push_back(name);
    }
    const std::string_view near = closest(view.string(), names);
    throw view.error(fmt::format("there is no {} \"{}\"", what, printable(view.string())))
        .hint(near.empty() ? "" : fmt::format("did you mean \"{}\"?", near));
  }
  return found->second;
}

RankRange read_range(const JsonView& view) {
  allow(view, {"first", "end", "stride"});
  return {int32_of(view["first"]), int32_of(view["end"]),
          static_cast<std::int32_t>(integer_or(view, "stride", 1, kMax32, 1))};
}

/// The one key that tells the operation's kind.
std::string_view kind_of(const JsonView& view) {
  std::string_view kind;
  for (const std::string_view key : {"compute_ps", "comm", "send_to", "recv_from"}) {
    if (view.has(key)) {
      if (!kind.empty()) {
        throw view.error(fmt::format("both \"{}\" and \"{}\"", kind, key))
            .expected("one of compute_ps, comm, send_to, recv_from");
      }
      kind = key;
    }
  }
  if (kind.empty()) {
    throw view.error("the kind of operation is missing")
        .expected("one of compute_ps, comm, send_to, recv_from");
  }
  return kind;
}

Op read_op(const JsonView& view, const Numbers& streams, const Numbers& families) {
  Op op;
  const std::string_view kind = kind_of(view);
  if (kind == "compute_ps") {
    allow(view,
          {"name", "stream", "compute_ps", "host_ps", "after", "type", "microbatch", "chunk"});
    op.compute = Time::ps(view["compute_ps"].integer(0, kMax64));
    op.host = time_or_zero(view, "host_ps");
  } else if (kind == "comm") {
    allow(view,
          {"name", "stream", "comm", "group", "bytes", "after", "type", "microbatch", "chunk"});
    op.comm = comm_of(view["comm"]);
    if (op.comm == CommType::kNone) {
      throw view["comm"].error("an operation must not communicate \"none\"");
    }
    op.group = number_of(view["group"], families, "family of groups");
    op.bytes = Bytes(integer_or(view, "bytes", 0, kMax64, 0));
  } else {
    allow(view, {"name", "stream", kind, "group", "bytes", "after", "type", "microbatch", "chunk"});
    op.comm = CommType::kSendRecv;
    op.send = kind == "send_to";
    if (view.has("group")) {
      op.group = number_of(view["group"], families, "family of groups");
      op.peer = static_cast<std::int32_t>(view[kind].integer(-kMax32, kMax32));
    } else {
      op.peer = int32_of(view[kind]);
    }
    op.bytes = Bytes(view["bytes"].integer(0, kMax64));
  }
  op.name = view.has("name") ? view["name"].string() : std::string();
  op.stream = number_of(view["stream"], streams, "stream");
  if (view.has("after")) {
    op.after = int32_list(view["after"]);
  }
  if (view.has("type")) {
    op.type = op_type_of(view["type"]);
  }
  op.microbatch = static_cast<std::int32_t>(integer_or(view, "microbatch", 0, kMax32, -1));
  op.chunk = static_cast<std::int32_t>(integer_or(view, "chunk", 0, kMax32, -1));
  return op;
}

OpProgram read_program(const JsonView& view, const Numbers& families) {
  allow(view, {"ranks", "streams", "ops"});
  OpProgram program;
  each(view["ranks"], [&](const JsonView& item) { program.ranks.push_back(read_range(item)); });
  Numbers streams;
  each(view["streams"], [&](const JsonView& item) {
    streams.try_emplace(item.string(), static_cast<std::int32_t>(program.streams.size()));
    program.streams.push_back(item.string());
  });
  each(view["ops"],
       [&](const JsonView& item) { program.ops.push_back(read_op(item, streams, families)); });
  return program;
}

OpTable read_op_table(const JsonView& view) {
  allow(view, {"groups", "programs"});
  OpTable table;
  Numbers families;
  if (view.has("groups")) {
    each(view["groups"], [&](const JsonView& item) {
      allow(item, {"name", "members"});
      GroupFamily family;
      family.name = item["name"].string();
      each(item["members"],
           [&](const JsonView& list) { family.members.push_back(int32_list(list)); });
      families.try_emplace(family.name, static_cast<std::int32_t>(table.groups.size()));
      table.groups.push_back(std::move(family));
    });
  }
  each(view["programs"],
       [&](const JsonView& item) { table.programs.push_back(read_program(item, families)); });
  return table;
}

WorkloadJob read_job(const JsonView& view) {
  allow(view, {"name", "parallel", "layer_table", "op_table"});
  WorkloadJob job;
  job.name = view["name"].string();
  job.parallel = read_parallelism(view["parallel"]);
  if (view.has("layer_table") == view.has("op_table")) {
    throw view
        .error(view.has("op_table") ? "the job has both a layer_table and an op_table"
                                    : "the job has no work")
        .expected("either a layer_table or an op_table");
  }
  if (view.has("layer_table")) {
    job.work = read_layer_table(view["layer_table"]);
  } else {
    job.work = read_op_table(view["op_table"]);
  }
  return job;
}

/// ERRORS: Error for what `compare` reads: Chakra's JSON and PyTorch's execution traces.
void refuse_execution_trace(const Json& document, const std::string& file) {
  const bool chakra = document.is_object() && document.contains("workload_graph");
  const bool pytorch =
      document.is_object() && document.contains("nodes") && document.contains("pid");
  if (chakra || pytorch) {
    throw Error(fmt::format("this is an execution trace of one rank, {}",
                            chakra ? "in Chakra's JSON form" : "as PyTorch writes it"))
        .at(file)
        .expected("a folder of Chakra's protobuf traces, one a rank: NAME.0.et, NAME.1.et, …")
        .hint(chakra ? "'lockstep compare' reads this form"
                     : "Chakra's converter makes those of it; 'lockstep compare' reads this form");
  }
}

}  // namespace

Workload read_workload_json(std::string_view text, const std::string& file) {
  const Json document = parse_json(text, file, "ops");
  refuse_execution_trace(document, file);
  const JsonView root(document, file);
  allow(root, {"schema", "jobs"});
  if (root["schema"].string() != kWorkloadSchema) {
    throw root["schema"]
        .error(fmt::format("unknown schema \"{}\"", printable(root["schema"].string())))
        .expected(fmt::format("\"{}\"", kWorkloadSchema));
  }
  Workload workload;
  each(root["jobs"], [&](const JsonView& item) { workload.jobs.push_back(read_job(item)); });
  try {
    validate(workload);
  } catch (Error& error) {
    error.locate(file);
    throw;
  }
  return workload;
}

}  // namespace lockstep

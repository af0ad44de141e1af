// PyTorch execution traces and Chakra's JSON form: a list of nodes ("nodes" with inputs and attrs,
// or "workload_graph" with runtimes in microseconds).
#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "trace/log_reader.h"
#include "trace/rank_in_name.h"

namespace lockstep {
namespace {

constexpr int kDeepest = 64;  // nodes within nodes that are looked through

bool sniff(std::string_view head, std::string_view) {
  const std::size_t first = head.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || head[first] != '{' ||
      head.find("\"traceEvents\"") != std::string_view::npos) {
    return false;
  }
  return (head.find("\"schema\"") != std::string_view::npos &&
          head.find("\"nodes\"") != std::string_view::npos) ||
         head.find("\"workload_graph\"") != std::string_view::npos;
}

/// A member under its name, or under the same with another first letter: "Name", "name".
const Json* member(const Json& node, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const auto found = node.find(name);
    if (found != node.end()) {
      return &*found;
    }
  }
  return nullptr;
}

/// Microseconds, which some writers give with a fraction; nothing where it is no time.
std::optional<double> microseconds_of(const Json* json) {
  constexpr double kMost = 1e15;
  if (json == nullptr || !json->is_number()) {
    return std::nullopt;
  }
  const double us = json->get<double>();
  return us >= 0 && us < kMost ? std::optional(us) : std::nullopt;
}

std::int64_t whole(const Json* json, std::int64_t otherwise) {
  return json != nullptr && json->is_number_integer() ? json->get<std::int64_t>() : otherwise;
}

/// Bytes of a tensor of PyTorch's ET: [id, storage, offset, elements, element's bytes, device].
std::int64_t tensor_bytes(const Json& value) {
  if (value.is_array() && value.size() >= 5 && value[3].is_number_integer() &&
      value[4].is_number_integer() && value[3] >= 0 && value[4] > 0 && value[4] <= 16 &&
      value[3] < (std::int64_t{1} << 48)) {
    return value[3].get<std::int64_t>() * value[4].get<std::int64_t>();
  }
  std::int64_t sum = 0;
  if (value.is_array() && value.size() < 100000) {
    for (const Json& each : value) {
      sum += each.is_array() ? tensor_bytes(each) : 0;
    }
  }
  return sum;
}

/// A call of a communication on the host: c10d::allreduce_, and within it record_param_comms.
struct Call {
  std::size_t op = 0;  ///< index into PhysicalLog::ops
  std::int64_t node = -1;
};

void take_node(const Json& node, std::int32_t rank, TextTable& names,
               std::map<std::int64_t, std::int64_t>& parents, std::vector<Call>& calls,
               std::vector<std::int64_t>& ids, PhysicalLog& log) {
  const Json* name = node.is_object() ? member(node, {"name", "Name"}) : nullptr;
  if (name == nullptr || !name->is_string()) {
    log.warnings.add("nodes without a name");
    return;
  }
  const std::string& text = name->get_ref<const std::string&>();
  const std::int64_t id = whole(member(node, {"id", "Id"}), -1);
  parents[id] = whole(member(node, {"parent", "ctrl_deps"}), -1);
  OpRow row;
  row.rank = rank;
  row.name = names.index(std::string_view(text).substr(0, 200));
  const std::int64_t type = whole(member(node, {"NodeType", "type"}), 0);
  const Json* cpu = member(node, {"is_cpu_op"});
  // Chakra's trace_link lays Kineto's categories and times beside the nodes.
  const Json* category = member(node, {"cat"});
  const bool of_gpu =
      category != nullptr && category->is_string() &&
      (*category == "kernel" || category->get<std::string>().starts_with("gpu_mem"));
  const bool told = cpu != nullptr && cpu->is_boolean();
  const bool on_host = told ? cpu->get<bool>() : !of_gpu;
  const bool nccl = text.starts_with("nccl") || text.starts_with("c10d::") ||
                    text == "record_param_comms" || (type >= 5 && type <= 7);
  row.op = nccl ? comm_type_in(text) : CommType::kNone;
  row.kind = nccl                   ? OpKind::kCommunication
             : on_host              ? OpKind::kHost
             : is_copy_kernel(text) ? OpKind::kCopy
                                    : OpKind::kCompute;
  row.duration_s = 1e-6 * microseconds_of(member(node, {"runtime", "duration_micros", "duration",
                                                        "inclusive_dur", "exclusive_dur", "dur"}))
                              .value_or(0);
  row.begin_s = 1e-6 * microseconds_of(member(node, {"ts"})).value_or(-1e6);
  if (nccl) {
    const Json* inputs = member(node, {"inputs"});
    const Json* values =
        inputs != nullptr && inputs->is_object() ? member(*inputs, {"values"}) : inputs;
    row.bytes = values != nullptr ? tensor_bytes(*values) : -1;
    row.bytes = row.bytes == 0 ? -1 : row.bytes;
    if (on_host && !text.starts_with("nccl")) {
      calls.push_back({log.ops.size(), id});
    }
  }
  ids.push_back(id);
  log.ops.push_back(row);
}

/// Nodes follow each other in the order of their ids, those of the host within their parents, where
/// a file gives durations, but no begins (less than 0 here). What a host's operation starts on the
/// GPU runs behind it.
void place_nodes(const std::map<std::int64_t, std::int64_t>& parents,
                 const std::vector<std::int64_t>& ids, std::vector<OpRow>& ops) {
  std::vector<std::size_t> order(ops.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return ids[i]; });
  std::map<std::int64_t, double> next;  // of each host operation: when what is within it begins
  double clock = 0;
  for (const std::size_t i : order) {
    OpRow& op = ops[i];
    if (op.begin_s >= 0) {
      clock = std::max(clock, op.begin_s + op.duration_s);
      continue;
    }
    const bool host = op.kind != OpKind::kCompute && op.kind != OpKind::kCopy;
    auto within = next.end();
    auto parent = parents.find(ids[i]);
    for (int depth = 0; host && depth < kDeepest && parent != parents.end(); ++depth) {
      within = within == next.end() ? next.find(parent->second) : within;
      parent = parents.find(parent->second);
    }
    double& begin = within != next.end() ? within->second : clock;
    op.begin_s = begin;
    begin += op.duration_s;
    if (host && op.duration_s > 0 && ids[i] >= 0) {
      next[ids[i]] = op.begin_s;
    }
  }
}

/// A call within another is that one's communication: the outer is kept, with the size of the inner
/// where it tells none itself.
std::vector<std::size_t> outer_calls(const std::map<std::int64_t, std::int64_t>& parents,
                                     const std::vector<Call>& calls, PhysicalLog& log) {
  std::map<std::int64_t, std::size_t> op_of;
  for (const Call& call : calls) {
    if (call.node >= 0) {
      op_of.emplace(call.node, call.op);
    }
  }
  std::vector<std::size_t> outer;
  for (const Call& call : calls) {
    std::optional<std::size_t> around;
    std::int64_t node = call.node;
    for (int depth = 0; depth < kDeepest && node >= 0; ++depth) {
      const auto parent = parents.find(node);
      node = parent == parents.end() ? -1 : parent->second;
      const auto found = op_of.find(node);
      around = found != op_of.end() && found->second != call.op ? found->second : around;
    }
    if (!around) {
      outer.push_back(call.op);
      continue;
    }
    OpRow& kept = log.ops[*around];
    kept.bytes = kept.bytes > 0 ? kept.bytes : log.ops[call.op].bytes;
    log.ops[call.op].kind = OpKind::kHost;
  }
  return outer;
}

void read(std::string_view text, PhysicalLog& log) {
  const Json json = parse_json(text, log.file);
  const Json* nodes = json.is_object() ? member(json, {"nodes", "workload_graph"}) : nullptr;
  if (nodes == nullptr || !nodes->is_array()) {
    throw Error("there is no list of nodes").expected("\"nodes\" or \"workload_graph\"");
  }
  for (const char* key : {"schema", "time"}) {
    if (json.contains(key) && json[key].is_string()) {
      log.facts.emplace(key, json[key].get<std::string>());
    }
  }
  TextTable names(log.names);
  const std::int32_t rank = std::max(0, rank_in_name(log.file));
  std::map<std::int64_t, std::int64_t> parents;
  std::vector<Call> calls;
  std::vector<std::int64_t> ids;  // of the nodes of log.ops
  for (const Json& node : *nodes) {
    take_node(node, rank, names, parents, calls, ids, log);
  }
  place_nodes(parents, ids, log.ops);
  keep_kernels_of_calls(log, outer_calls(parents, calls, log));
  if (log.ops.empty()) {
    throw Error("there are no nodes with a name");
  }
  if (std::ranges::all_of(log.ops, [](const OpRow& op) { return op.duration_s == 0; })) {
    log.warnings.add("no node tells how long it takes");
  }
}

}  // namespace

extern const LogReader kPytorchEtLogReader;
const LogReader kPytorchEtLogReader{"pytorch-et", "PyTorch execution traces, Chakra's JSON", sniff,
                                    read};

}  // namespace lockstep

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "generator/exact/groups.h"
#include "generator/exact/operator.h"
#include "generator/model/expression.h"
#include "workloads/comm.h"
#include "workloads/op_type.h"

namespace lockstep {

/// An expression that is evaluated when its item runs.
struct ProcessExpression {
  std::string text;
  ExpressionPlace place;
};

/// A communicator an item may name: a kind of group, or first and last stage together.
struct ProcessGroup {
  std::string_view name;
  std::optional<RankGroup> kind;  ///< none: "pp.embedding"
};

/// One item of a training process (docs/formats/process.md).
struct ProcessItem {
  enum class Kind : std::uint8_t {
    kComm,     ///< a collective over a group
    kSend,     ///< to the stage beside, at once; nothing waits for it
    kReceive,  ///< from the stage beside; what follows waits
    kCompute,  ///< an operator with operations and memory traffic
    kRun,      ///< the model's own pass: of every unit, or of the one at hand
    kEach,     ///< the items for every unit, or for every gradient bucket
    kRepeat,   ///< the items `times` times
    kWait,     ///< for everything overlapped so far
  };
  Kind kind = Kind::kWait;
  std::string name;
  ExpressionPlace place;
  std::optional<ProcessExpression> when;
  std::vector<std::pair<std::string, ProcessExpression>> with;  ///< variables of its own
  OpType type = OpType::kOther;  ///< what its operation is for, in traces
  CommType comm = CommType::kNone;
  ProcessGroup group;
  bool next = true;  ///< send, receive: the stage after, not the one before
  ProcessExpression bytes, flops, times;
  MemoryWork work = MemoryWork::kStream;  ///< kCompute
  bool overlap = false;                   ///< what follows does not wait
  bool buckets = false;                   ///< kEach: buckets; kRun: always of units
  bool experts = false;                   ///< kEach buckets: those of the experts' parameters
  std::vector<ProcessItem> items;
};

/// A training process as data: what a rank does once at the beginning, for the forward and the
/// backward pass of each microbatch, and at the end of a step.
struct Process {
  std::string name;
  std::vector<std::pair<std::string, ProcessExpression>> variables;
  std::vector<ProcessItem> init, forward, backward, step;
};

/// Reads a process from YAML or JSON: a file of its own, or the mapping under `process` of a model
/// file. Expressions are read when they are evaluated.
///
/// Complexity: linear in the text.
/// ERRORS: Error naming file, line and field: no YAML; a key that is unknown, stands twice or does
/// not belong to its item; an item of no kind or of two; an unknown collective or group (with the
/// nearest); `run: unit` outside `each: unit`; nesting deeper than 8; more than 10,000 items; no
/// item at all; a text above 1 MiB.
Process parse_process(std::string_view text, const std::string& file);

/// A file of that path; or a built-in process by its name (list_processes()).
/// ERRORS: also a name that is neither.
Process find_process(const std::string& name_or_path);

/// Whether a model file has a process of its own.
bool has_process(std::string_view model_text, const std::string& file);

/// Names of the built-in processes, sorted.
std::vector<std::string_view> list_processes();

/// The text of a built-in process. ERRORS: unknown name.
std::string_view process_text(std::string_view name);

}  // namespace lockstep

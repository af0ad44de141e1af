// Chakra execution traces (protobuf): length-delimited messages, first the metadata, then one node
// each (workloads/chakra_node.h). A trace has no clock of the GPU: nodes that have no start follow
// each other.
#include <algorithm>
#include <cmath>
#include <optional>
#include <protozero/pbf_reader.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "trace/log_reader.h"
#include "trace/rank_in_name.h"
#include "workloads/chakra_node.h"

namespace lockstep {
namespace {

bool sniff(std::string_view head, std::string_view name) {
  if (head.substr(0, 200).find("\":") != std::string_view::npos) {
    return false;  // JSON
  }
  std::string_view rest = head;
  const std::string_view first = take_chakra_message(rest).value_or(std::string_view());
  if (first.empty()) {
    return false;
  }
  try {
    // Metadata: nothing but attributes (field 1) that have names, or a version (field 1 or 2).
    protozero::pbf_reader message(protozero::data_view(first.data(), first.size()));
    bool named = first.find("schema") != std::string_view::npos ||
                 first.find("version") != std::string_view::npos || name.ends_with(".et");
    std::size_t fields = 0;
    while (message.next()) {
      named = named && message.tag() <= 2;
      message.skip();
      ++fields;
    }
    return named && fields > 0;
  } catch (const protozero::exception&) {
    return false;
  }
}

/// Nodes without a start follow the one before them; but protobuf does not write a start of 0, so
/// that they begin there where the others' clock begins near it.
void place(const std::vector<bool>& dated, std::vector<OpRow>& ops) {
  double all = 0, first = INFINITY;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    all += ops[i].duration_s;
    first = dated[i] ? std::min(first, ops[i].begin_s) : first;
  }
  double clock = 0;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (!dated[i] && first > all) {
      ops[i].begin_s = clock;
    }
    clock = ops[i].begin_s + ops[i].duration_s;
  }
}

void read(std::string_view text, PhysicalLog& log) {
  TextTable names(log.names), groups(log.groups);
  const std::int32_t rank = std::max(0, rank_in_name(log.file));
  bool first = true;
  std::vector<bool> dated;  // of log.ops
  std::vector<std::size_t> calls;
  while (!text.empty()) {
    const std::optional<std::string_view> message = take_chakra_message(text);
    if (!message) {
      log.warnings.add("the file is cut off within a message");
      break;
    }
    if (std::exchange(first, false)) {
      continue;  // the metadata
    }
    const std::optional<ChakraNode> node = parse_chakra_node(*message);
    if (!node) {
      log.warnings.add("nodes that are damaged were passed over");
      continue;
    }
    if (node->kind == ChakraKind::kMetadata) {
      continue;  // takes no time
    }
    OpRow row;
    row.rank = rank;
    row.stream = static_cast<std::int32_t>(std::clamp<std::int64_t>(node->cuda_stream, 0, 1 << 30));
    row.name = names.index(node->name);
    row.duration_s =
        static_cast<double>(std::clamp<std::int64_t>(node->duration_us, 0, 1LL << 50)) * 1e-6;
    const bool p2p = node->kind == ChakraKind::kSend || node->kind == ChakraKind::kReceive;
    if (p2p || node->kind == ChakraKind::kCollective) {
      row.kind = OpKind::kCommunication;
      row.op = p2p ? CommType::kSendRecv : chakra_collective(node->comm_type);
      row.op = row.op == CommType::kNone ? comm_type_in(node->name) : row.op;
      row.bytes = std::max<std::int64_t>(-1, node->comm_bytes);
      row.group = node->group.empty() ? -1 : groups.index(node->group);
      if (node->cpu) {
        calls.push_back(log.ops.size());
      }
    } else {
      const bool copies = node->kind == ChakraKind::kLoad || node->kind == ChakraKind::kStore ||
                          is_copy_kernel(node->name);
      row.kind = node->cpu ? OpKind::kHost : copies ? OpKind::kCopy : OpKind::kCompute;
    }
    const bool is_dated = node->start_us > 0 && node->start_us < (1LL << 52);
    row.begin_s = is_dated ? static_cast<double>(node->start_us) * 1e-6 : 0;
    dated.push_back(is_dated);
    log.ops.push_back(row);
  }
  place(dated, log.ops);
  keep_kernels_of_calls(log, calls);
  if (log.ops.empty()) {
    throw Error("there are no nodes").expected("a Chakra execution trace");
  }
}

}  // namespace

extern const LogReader kChakraEtLogReader;
const LogReader kChakraEtLogReader{"chakra-et", "Chakra execution traces (protobuf)", sniff, read};

}  // namespace lockstep

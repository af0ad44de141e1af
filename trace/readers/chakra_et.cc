// Chakra execution traces (protobuf): length-delimited messages, first the metadata, then one node
// each (et_def.proto: id 1, name 2, type 3, start 6, duration 7, inputs 8, outputs 9, attributes
// 10). A trace has no clock of the GPU: nodes that have no start follow each other.
#include <algorithm>
#include <protozero/pbf_reader.hpp>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "trace/log_reader.h"
#include "trace/rank_in_name.h"

namespace lockstep {
namespace {

enum NodeType : std::int32_t { kSend = 5, kReceive = 6, kCollective = 7 };

CommType collective_of(std::int64_t type) {
  constexpr CommType kTypes[] = {
      CommType::kAllReduce, CommType::kReduce,    CommType::kAllGather, CommType::kNone,
      CommType::kNone,      CommType::kBroadcast, CommType::kAllToAll,  CommType::kReduceScatter};
  return type >= 0 && type < 8 ? kTypes[type] : CommType::kNone;
}

/// One message of the file: its length as a varint, then itself. Empty at the end.
std::string_view take_message(std::string_view& text, bool& sound) {
  std::uint64_t length = 0;
  int shift = 0;
  std::size_t at = 0;
  for (;; ++at, shift += 7) {
    if (at >= text.size() || shift > 56) {
      sound = false;
      return {};
    }
    const auto byte = static_cast<unsigned char>(text[at]);
    length |= std::uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80) {
      break;
    }
  }
  if (length > text.size() - at - 1) {
    sound = false;
    return {};
  }
  const std::string_view message = text.substr(at + 1, length);
  text.remove_prefix(at + 1 + length);
  return message;
}

bool sniff(std::string_view head, std::string_view name) {
  if (head.substr(0, 200).find("\":") != std::string_view::npos) {
    return false;  // JSON
  }
  std::string_view rest = head;
  bool sound = true;
  const std::string_view first = take_message(rest, sound);
  if (!sound || first.empty()) {
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

struct Node {
  std::string name;
  std::int64_t type = 0, start_us = -1, duration_us = 0, comm_type = -1, comm_bytes = -1;
  bool cpu = false;
};

void take_attribute(protozero::pbf_reader attribute, Node& node) {
  std::string name;
  std::int64_t value = 0;
  while (attribute.next()) {
    if (attribute.tag() == 1 &&
        attribute.wire_type() == protozero::pbf_wire_type::length_delimited) {
      const auto view = attribute.get_view();
      name.assign(view.data(), std::min<std::size_t>(view.size(), 64));
    } else if (attribute.wire_type() == protozero::pbf_wire_type::varint) {
      value = attribute.get_int64();
    } else {
      attribute.skip();
    }
  }
  if (name == "comm_type") {
    node.comm_type = value;
  } else if (name == "comm_size") {
    node.comm_bytes = value;
  } else if (name == "is_cpu_op") {
    node.cpu = value != 0;
  }
}

Node node_of(std::string_view text) {
  using Wire = protozero::pbf_wire_type;
  Node node;
  protozero::pbf_reader message(protozero::data_view(text.data(), text.size()));
  while (message.next()) {
    const bool varint = message.wire_type() == Wire::varint;
    const bool bytes = message.wire_type() == Wire::length_delimited;
    if (message.tag() == 2 && bytes) {
      const auto view = message.get_view();
      node.name.assign(view.data(), std::min<std::size_t>(view.size(), 200));
    } else if (message.tag() == 3 && varint) {
      node.type = message.get_int64();
    } else if (message.tag() == 6 && varint) {
      node.start_us = message.get_int64();
    } else if (message.tag() == 7 && varint) {
      node.duration_us = message.get_int64();
    } else if (message.tag() == 10 && bytes) {
      take_attribute(message.get_message(), node);
    } else {
      message.skip();
    }
  }
  return node;
}

void read(std::string_view text, PhysicalLog& log) {
  TextTable names(log.names);
  const std::int32_t rank = std::max(0, rank_in_name(log.file));
  bool sound = true, first = true;
  double clock = 0;
  while (!text.empty()) {
    const std::string_view message = take_message(text, sound);
    if (!sound) {
      log.warnings.add("the file is cut off within a message");
      break;
    }
    if (std::exchange(first, false)) {
      continue;  // the metadata
    }
    try {
      const Node node = node_of(message);
      OpRow row;
      row.rank = rank;
      row.name = names.index(node.name);
      row.duration_s =
          static_cast<double>(std::clamp<std::int64_t>(node.duration_us, 0, 1LL << 50)) * 1e-6;
      const bool p2p = node.type == kSend || node.type == kReceive;
      if (p2p || node.type == kCollective) {
        row.kind = OpKind::kCommunication;
        row.op = p2p ? CommType::kSendRecv : collective_of(node.comm_type);
        row.op = row.op == CommType::kNone ? comm_type_in(node.name) : row.op;
        row.bytes = std::max<std::int64_t>(-1, node.comm_bytes);
      } else {
        row.kind = node.cpu ? OpKind::kHost : OpKind::kCompute;
      }
      const bool dated = node.start_us > 0 && node.start_us < (1LL << 52);
      row.begin_s = dated ? static_cast<double>(node.start_us) * 1e-6 : clock;
      clock = row.begin_s + row.duration_s;
      log.ops.push_back(row);
    } catch (const protozero::exception&) {
      log.warnings.add("nodes that are damaged were passed over");
    }
  }
  if (log.ops.empty()) {
    throw Error("there are no nodes").expected("a Chakra execution trace");
  }
}

}  // namespace

extern const LogReader kChakraEtLogReader;
const LogReader kChakraEtLogReader{"chakra-et", "Chakra execution traces (protobuf)", sniff, read};

}  // namespace lockstep

#include "workloads/chakra_node.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <protozero/pbf_reader.hpp>
#include <utility>

namespace lockstep {
namespace {

using Wire = protozero::pbf_wire_type;

/// The fields of et_def.proto's AttributeProto that hold one number, in the form that each has.
/// Nothing for a field of another form.
std::optional<std::int64_t> number_of(protozero::pbf_reader& attribute) {
  const auto whole = [](double number) -> std::optional<std::int64_t> {
    constexpr double kMost = 9e18;
    return std::abs(number) < kMost ? std::optional(static_cast<std::int64_t>(number))
                                    : std::nullopt;
  };
  switch (attribute.tag_and_type()) {
    case protozero::tag_and_type(3, Wire::fixed64):
      return whole(attribute.get_double());
    case protozero::tag_and_type(5, Wire::fixed32):
      return whole(attribute.get_float());
    case protozero::tag_and_type(15, Wire::varint):
    case protozero::tag_and_type(17, Wire::varint):
      return attribute.get_sint64();
    case protozero::tag_and_type(19, Wire::fixed32):
      return attribute.get_fixed32();
    case protozero::tag_and_type(21, Wire::fixed64):
      return static_cast<std::int64_t>(attribute.get_fixed64());
    case protozero::tag_and_type(23, Wire::fixed32):
      return attribute.get_sfixed32();
    case protozero::tag_and_type(25, Wire::fixed64):
      return attribute.get_sfixed64();
    default:
      break;
  }
  if (attribute.wire_type() == Wire::varint) {
    return attribute.get_int64();
  }
  attribute.skip();
  return std::nullopt;
}

std::string text_of(const protozero::data_view& view, std::size_t most) {
  return {view.data(), std::min<std::size_t>(view.size(), most)};
}

/// Whether it could be read: a number that counts has to be one.
bool take_attribute(protozero::pbf_reader attribute, ChakraNode& node) {
  std::string name, text;
  std::int64_t value = 0;
  bool whole = true;
  while (attribute.next()) {
    const bool bytes = attribute.wire_type() == Wire::length_delimited;
    const auto tag = attribute.tag();  // not to be asked for any more once the field is read
    if (tag == 1 && bytes) {
      name = text_of(attribute.get_view(), 64);
    } else if (bytes) {
      text = text_of(attribute.get_view(), 200);
      whole = whole && tag == 2;  // which is about the attribute
    } else if (const auto number = number_of(attribute)) {
      value = *number;
    } else {
      whole = false;
    }
  }
  if (name == "pg_name") {
    node.group = text;
    return true;
  }
  const std::array<std::pair<std::string_view, std::int64_t*>, 5> numbers = {
      {{"comm_type", &node.comm_type},
       {"comm_size", &node.comm_bytes},
       {"comm_src", &node.source},
       {"comm_dst", &node.destination},
       {"stream", &node.cuda_stream}}};
  const auto counts = std::ranges::find(numbers, name, [](const auto& each) { return each.first; });
  if (counts != numbers.end()) {
    *counts->second = value;
    return whole;
  }
  if (name == "is_cpu_op") {
    node.cpu = value != 0;
    return whole;
  }
  return true;
}

/// One number of a repeated field, or several of them packed.
void take_ids(protozero::pbf_reader& message, std::vector<std::uint64_t>& ids) {
  if (message.wire_type() == Wire::length_delimited) {
    for (const std::uint64_t id : message.get_packed_uint64()) {
      ids.push_back(id);
    }
  } else {
    ids.push_back(message.get_uint64());
  }
}

}  // namespace

CommType chakra_collective(std::int64_t comm_type) {
  constexpr auto kTypes = std::to_array<CommType>(
      {CommType::kAllReduce, CommType::kReduce, CommType::kAllGather, CommType::kNone,
       CommType::kNone, CommType::kBroadcast, CommType::kAllToAll, CommType::kReduceScatter,
       CommType::kReduceScatter, CommType::kBarrier});
  return comm_type >= 0 && comm_type < std::ssize(kTypes)
             ? kTypes[static_cast<std::size_t>(comm_type)]
             : CommType::kNone;
}

std::optional<std::string_view> take_chakra_message(std::string_view& text) {
  std::uint64_t length = 0;
  std::size_t at = 0;
  for (int shift = 0;; ++at, shift += 7) {
    if (at >= text.size() || shift > 56) {
      return std::nullopt;
    }
    const auto byte = static_cast<unsigned char>(text[at]);
    length |= std::uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80) {
      break;
    }
  }
  if (length > text.size() - at - 1) {
    return std::nullopt;
  }
  const std::string_view message = text.substr(at + 1, length);
  text.remove_prefix(at + 1 + length);
  return message;
}

std::optional<ChakraNode> parse_chakra_node(std::string_view text) {
  ChakraNode node;
  try {
    protozero::pbf_reader message(protozero::data_view(text.data(), text.size()));
    while (message.next()) {
      const bool varint = message.wire_type() == Wire::varint;
      const bool bytes = message.wire_type() == Wire::length_delimited;
      const auto tag = message.tag();
      if (tag == 1 && varint) {
        node.id = message.get_uint64();
      } else if (tag == 2 && bytes) {
        node.name = text_of(message.get_view(), 200);
      } else if (tag == 3 && varint) {
        const std::int64_t kind = message.get_int64();
        node.kind = kind >= 0 && kind <= 7 ? static_cast<ChakraKind>(kind) : ChakraKind::kOther;
      } else if ((tag == 4 || tag == 5) && (varint || bytes)) {
        take_ids(message, tag == 4 ? node.ctrl_deps : node.data_deps);
      } else if (tag == 6 && varint) {
        node.start_us = message.get_int64();
      } else if (tag == 7 && varint) {
        node.duration_us = message.get_int64();
      } else if (tag == 10 && bytes) {
        if (!take_attribute(message.get_message(), node)) {
          return std::nullopt;
        }
      } else {
        message.skip();
      }
    }
  } catch (const protozero::exception&) {
    return std::nullopt;
  }
  return node;
}

}  // namespace lockstep

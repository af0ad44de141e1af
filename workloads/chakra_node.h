#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/comm.h"

namespace lockstep {

/// What a node of a Chakra execution trace does (et_def.proto, NodeType).
enum class ChakraKind : std::int32_t {
  kOther = 0,
  kMetadata = 1,
  kLoad = 2,
  kStore = 3,
  kCompute = 4,
  kSend = 5,
  kReceive = 6,
  kCollective = 7,
};

/// One node: its fields that say what takes how long and after what.
struct ChakraNode {
  std::uint64_t id = 0;
  std::string name;  ///< at most 200 bytes of it
  ChakraKind kind = ChakraKind::kOther;
  std::int64_t start_us = -1;  ///< -1: the trace does not say
  std::int64_t duration_us = 0;
  std::vector<std::uint64_t> data_deps;  ///< ids of the nodes that it waits for
  std::vector<std::uint64_t> ctrl_deps;  ///< of those that called it
  std::int64_t comm_type = -1, comm_bytes = -1;
  std::int64_t source = -1, destination = -1;  ///< ranks, of a message
  std::string group;                           ///< process group of a collective; empty: all ranks
  std::int64_t cuda_stream = -1;
  bool cpu = false;  ///< of the host: a collective's call, whose kernel is another node
};

/// The collective that `comm_type` numbers (CollectiveCommType); kNone for those that we have no
/// collective for.
CommType chakra_collective(std::int64_t comm_type);

/// Takes one message off the front of a file of them: its length as a varint, then itself. Nothing
/// where the file is cut off within it.
std::optional<std::string_view> take_chakra_message(std::string_view& text);

/// Parses a node (fields: id 1, name 2, type 3, ctrl_deps 4, data_deps 5, start_time_micros 6,
/// duration_micros 7, attr 10). Nothing where it is damaged. O(size).
std::optional<ChakraNode> parse_chakra_node(std::string_view message);

}  // namespace lockstep

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/warnings.h"
#include "workloads/chakra_node.h"

namespace lockstep {

/// A node and the places, in its list, of the nodes that it waits for: ascending, all before it.
struct OrderedChakraNode {
  ChakraNode node;
  std::vector<std::int32_t> after;
};

/// The nodes of a file in an order in which each comes after what it waits for; of those that are
/// ready the one with the smallest id comes first.
///
/// A node waits for its data dependencies, as in Chakra's feeder, which ASTRA-sim draws from. A
/// control dependency names the caller, which has begun and not ended: it counts only for a node
/// without data dependencies, and where it is part of no cycle.
///
/// Warns of damaged nodes, of dependencies on nodes that are not there, and of control dependencies
/// that count and that do not. ERRORS: Error with the file, and the node where there is one: cut
/// off, no nodes, two with one id, nodes that wait for each other.
/// O(nodes log nodes + dependencies).
std::vector<OrderedChakraNode> ordered_chakra_nodes(std::string_view text, const std::string& file,
                                                    Warnings* warnings);

/// "FILE: node 3 (NAME)", for messages.
std::string chakra_node_place(const std::string& file, const ChakraNode& node);

}  // namespace lockstep

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "simulator/collectives/algorithm.h"

namespace lockstep {

/// Parents in NCCL's binary tree over 0 … count-1 (src/graph/trees: the level of a node is its
/// lowest set bit): 0 is the root (-1) and has one child; the parent of r is r without its lowest
/// bit b but with bit 2b, or, where there is no such node, r without b. Odd nodes are leaves.
std::vector<std::int32_t> binary_tree(std::int32_t count);

/// The second tree, in which the first one's inner nodes are leaves: the first one mirrored for an
/// even count, shifted by one for an odd one.
std::vector<std::int32_t> complementary_tree(std::int32_t count);

/// Trees over the ranks of a group: parents[rank], -1 at the root.
///
/// Within a server a chain; its first rank has the link to the parent server, its second (if there
/// is one) those to the child servers, so that two NICs share the load ("balanced"). Links stay on
/// their rail: a server's chain starts at the local rank at which its parent's links end, and the
/// ranks follow in cyclic order from there. Between servers the binary tree for channels of the
/// first half, the complementary one for those of the second.
///
/// With root < 0 the tree's root is where the construction puts it: server 0 or, in the second
/// tree, the last one (the second one of an odd number), at local rank channel mod (ranks of that
/// server). With root >= 0 that rank is the root, and the trees go over the other servers, as in
/// Sanders, Speck and Träff: Two-tree algorithms for full bandwidth broadcast, reduction and scan,
/// 2009.
std::vector<std::int32_t> tree_parents(const GroupShape& shape, std::int32_t channel,
                                       std::int32_t channels, std::int32_t root);

/// Over how many channels a tree algorithm goes: what the request says, or two (one a tree) for
/// each NIC, or one for each rank of a lone server. ERRORS: as channel_count().
std::int32_t tree_channels(const CollectiveRequest& request, const GroupShape& shape);

/// Children of each node of a tree given by its parents, ascending.
std::vector<std::vector<std::int32_t>> children_of(std::span<const std::int32_t> parents);

/// The slots of a tree's nodes: to and from the parent; -1 where there is none.
struct TreeSlots {
  std::vector<std::int32_t> up, down;
};

/// Appends a tree's slots: `up` adds towards the root, `down` brings copies of the result back,
/// piece after piece as `pieces` says (count, channel, start, step, run, cycle). A sender may be
/// kBufferSlots pieces ahead of its receiver. Node i is place places[i]; before_up[i], if
/// given, comes before it passes anything up (or at the root: down) and before it is added to.
TreeSlots add_tree(Schedule& schedule, std::span<const std::int32_t> parents,
                   std::span<const std::int32_t> places, const Slot& pieces, bool up, bool down,
                   std::span<const std::vector<SlotWait>> before_up);

}  // namespace lockstep

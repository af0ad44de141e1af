#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/units.h"

namespace lockstep {

enum class NodeKind : std::uint8_t { kGpu, kNvSwitch, kSwitch };

struct Node {
  NodeKind kind = NodeKind::kGpu;
  std::uint8_t tier = 0;  ///< switches: 1 = linked to GPUs (leaf, ASW), 2 = spine (PSW), 3 = core
  std::int16_t gpu_type = 0;  ///< GPUs: index into Topology::gpu_types
  std::int32_t server = -1;   ///< GPUs and NVSwitches: which NVLink domain; -1 for switches
  friend bool operator==(const Node&, const Node&) = default;
};

/// What many links share. The texts are kept as read or given, so that a file is written back as
/// it was ("0.000025ms").
struct LinkClass {
  Bandwidth rate;         ///< per direction
  Time delay;             ///< propagation
  double error_rate = 0;  ///< loss probability of a packet, 0 to 1
  std::string rate_text, delay_text, error_text;
  friend bool operator==(const LinkClass&, const LinkClass&) = default;

  /// Another rate or delay, with its text.
  void set_rate(Bandwidth other);
  void set_delay(Time other);
};

struct Link {
  NodeId a, b;
  std::int32_t link_class = 0;
  friend bool operator==(const Link&, const Link&) = default;
};

/// GPUs, NVSwitches, switches and the full-duplex links between them. A plain value; 65,536 GPUs
/// with their fabric take a few MB. Rank r of a job runs on gpus()[r].
struct Topology {
  std::string name;                    ///< the template's or the file's
  std::int32_t gpus_per_server = 8;    ///< of the (first) server
  std::vector<std::string> gpu_types;  ///< at least one
  std::vector<Node> nodes;
  std::vector<LinkClass> link_classes;
  std::vector<Link> links;
  friend bool operator==(const Topology&, const Topology&) = default;

  const LinkClass& class_of(LinkId link) const {
    return link_classes[static_cast<std::size_t>(links[link.index()].link_class)];
  }
  /// The GPUs in ascending id: rank to node. O(nodes).
  std::vector<NodeId> gpus() const;
  std::int32_t count(NodeKind kind) const;
};

/// A port (one direction of a link) as seen from the node it leaves.
struct Neighbour {
  NodeId node;
  PortId port;
};

/// Neighbours of every node in ascending id (parallel links in link order), in CSR form.
class Adjacency {
 public:
  explicit Adjacency(const Topology& topology);
  std::span<const Neighbour> of(NodeId node) const {
    return {neighbours_.data() + begin_[node.index()],
            neighbours_.data() + begin_[node.index() + 1]};
  }

 private:
  std::vector<std::size_t> begin_;
  std::vector<Neighbour> neighbours_;
};

/// Checks what every user of a Topology may rely on: ids in range, no link from a node to itself,
/// positive rates, every GPU reachable from every other over NVSwitches and switches, GPUs and
/// NVSwitches have a server. ERRORS: Error naming the first node or link at fault.
void validate(const Topology& topology);

}  // namespace lockstep

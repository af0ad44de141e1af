#include "topologies/draw.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include <fmt/format.h>

#include "topologies/describe.h"
#include "topologies/fold.h"
#include "topologies/svg.h"

namespace lockstep {
namespace {

constexpr double kMargin = 28, kPad = 18, kGap = 26, kCaption = 26, kStack = 7;
constexpr double kLinkSpace = 96;  ///< between rows, for the lines and their label
constexpr double kSwitchWidth = 46, kSwitchHeight = 30, kSwitchPitch = 56;
constexpr double kGpuSize = 28, kGpuPitch = 36, kNvlinkSpace = 34, kNvswitchHeight = 24;
constexpr std::size_t kMostSwitches = 16, kEndsOfRow = 12, kMostGpus = 8, kMostKinds = 3;

constexpr std::string_view kInk = "#1f2933", kFaint = "#6b7785", kFrame = "#c9d1da";

struct Colours {
  std::string_view fill, stroke;
};
constexpr Colours kGpuColours{"#e3f2fd", "#1e78c8"}, kNvswitchColours{"#fff4d6", "#d98c0a"};
/// By tier, then round again.
constexpr std::array<Colours, 4> kTierColours{{{"#e1f6e6", "#2e9e57"},
                                               {"#ece6fb", "#7350d8"},
                                               {"#fde5e5", "#d64545"},
                                               {"#e0f4f5", "#12858c"}}};
/// One for each rail.
constexpr std::array<std::string_view, 8> kRailColours{"#2e9e57", "#1e78c8", "#d98c0a", "#d64545",
                                                       "#7350d8", "#12858c", "#b0487f", "#6d7b2a"};

constexpr std::array<std::string_view, 9> kFrameFills{"#ffffff", "#f4f7fa", "#eaf0f6",
                                                      "#ffffff", "#f4f7fa", "#eaf0f6",
                                                      "#ffffff", "#f4f7fa", "#eaf0f6"};

/// Children of one part that are alike; if there are no others, two are drawn, else the first.
struct Kind {
  std::vector<const TopologyPart*> drawn;
  std::int64_t count = 0;

  /// How many each drawn one stands for.
  std::int64_t stands_for() const { return drawn.size() == 1 ? count : 1; }
  double stack_space() const { return stands_for() > 1 ? 2 * kStack : 0; }
};

std::vector<Kind> kinds_of(const TopologyPart& part) {
  std::vector<Kind> kinds;
  std::map<std::string_view, std::size_t> index;
  for (const TopologyPart& child : part.children) {
    const auto [found, added] = index.emplace(child.shape, kinds.size());
    if (added) {
      kinds.emplace_back();
    }
    Kind& kind = kinds[found->second];
    if (++kind.count <= 2) {
      kind.drawn.push_back(&child);
    }
  }
  for (Kind& kind : kinds) {
    if (kind.count > 2 || kinds.size() > 1) {
      kind.drawn.resize(1);
    }
  }
  return kinds;
}

/// Which of `count` things a row shows: all up to `most`, else `slots` places: its ends and a gap.
struct Shown {
  std::size_t head, tail, hidden;
  std::size_t slots() const { return head + tail + (hidden > 0 ? 1 : 0); }
};

Shown shown_of(std::size_t count, std::size_t most, std::size_t slots) {
  if (count <= most) {
    return {count, 0, 0};
  }
  const std::size_t head = slots / 2;
  const std::size_t tail = slots - 1 - head;
  return {head, tail, count - head - tail};
}

std::string plural(std::int64_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

class Drawing {
 public:
  explicit Drawing(const Topology& topology)
      : topology_(topology), adjacency_(topology), place_(topology.nodes.size()) {}

  std::string run() {
    const TopologyPart root = fold(topology_);
    const Box size = measure(root);
    constexpr double kTitle = 64, kLegendLine = 19;
    const std::vector<LinkGroup> groups = link_groups(topology_);
    const double width = std::max(size.width, 560.0) + 2 * kMargin;
    place(root, {(width - size.width) / 2, kMargin + kTitle}, 1, 0);
    draw_links();
    svg_.text({kMargin, kMargin + 14}, topology_.name, 19, kInk, Svg::Anchor::kStart, true);
    svg_.text({kMargin, kMargin + 38}, summary(), 13, kFaint, Svg::Anchor::kStart);
    double y = kMargin + kTitle + size.height + 34;
    for (const LinkGroup& g : groups) {
      svg_.text({kMargin, y},
                fmt::format("{} {} – {}: {} each way, {}{}", g.count, g.from, g.to,
                            to_text(g.link_class.rate), to_text(g.link_class.delay),
                            g.link_class.error_rate > 0
                                ? fmt::format(", loses {} of the packets", g.link_class.error_text)
                                : ""),
                12, kFaint, Svg::Anchor::kStart);
      y += kLegendLine;
    }
    return svg_.finish(width, y + kMargin - kLegendLine, topology_.name);
  }

 private:
  /// Where a drawn node's lines end: above and below it.
  struct Place {
    bool drawn = false;
    Point top, bottom;
  };

  const Node& node(NodeId id) const { return topology_.nodes[id.index()]; }

  std::string summary() const {
    std::string types;
    for (const std::string& type : topology_.gpu_types) {
      types += (types.empty() ? "" : ", ") + type;
    }
    return fmt::format("{} ({}) · {} · {} · {}",
                       plural(topology_.count(NodeKind::kGpu), "GPU", "GPUs"), types,
                       plural(topology_.count(NodeKind::kNvSwitch), "NVSwitch", "NVSwitches"),
                       plural(topology_.count(NodeKind::kSwitch), "switch", "switches"),
                       plural(static_cast<std::int64_t>(topology_.links.size()), "link", "links"));
  }

  // Sizes, from the inside out. Only width and height of the Box count.

  static double row_width(std::size_t slots, double pitch, double width) {
    return slots == 0 ? 0 : static_cast<double>(slots - 1) * pitch + width;
  }

  Box measure(const TopologyPart& part) const {
    return part.gpus.empty() ? measure_inner(part) : measure_server(part);
  }

  Box measure_server(const TopologyPart& part) const {
    const double gpus =
        row_width(shown_of(part.gpus.size(), kMostGpus, kMostGpus).slots(), kGpuPitch, kGpuSize);
    const double text = 7.2 * static_cast<double>(server_text(part).size()) + 40;
    Box size;
    size.width = std::max(gpus, text) + 2 * kPad;
    size.height = kPad + arch_space(part) + kGpuSize + kCaption + kPad / 2 +
                  (part.nvswitches.empty() ? 0 : kNvlinkSpace + kNvswitchHeight);
    return size;
  }

  Box measure_inner(const TopologyPart& part) const {
    Box size;
    double children = 0, height = 0;
    const std::vector<Kind> kinds = kinds_of(part);
    for (std::size_t k = 0; k < std::min(kinds.size(), kMostKinds); ++k) {
      for (const TopologyPart* child : kinds[k].drawn) {
        const Box box = measure(*child);
        children += box.width + (children > 0 ? kGap : 0) + kinds[k].stack_space();
        height = std::max(height, box.height + kinds[k].stack_space());
      }
    }
    const double row = row_width(shown_of(part.switches.size(), kMostSwitches, kEndsOfRow).slots(),
                                 kSwitchPitch, kSwitchWidth);
    const double text = 7.0 * static_cast<double>(part_text(part, 1).size()) + 40;
    size.width = std::max({children, row, text, 300.0}) + 2 * kPad;
    size.height =
        kCaption + kPad + height + kPad + more_kinds_space(kinds) +
        (part.switches.empty() ? side_space(part) : side_space(part) + kSwitchHeight + kLinkSpace);
    return size;
  }

  static double more_kinds_space(const std::vector<Kind>& kinds) {
    return kinds.size() > kMostKinds ? 22 : 0;
  }

  bool has_direct_links(const TopologyPart& server) const {
    const auto neighbours = adjacency_.of(server.gpus[0]);
    return std::any_of(neighbours.begin(), neighbours.end(),
                       [&](const Neighbour& n) { return node(n.node).kind == NodeKind::kGpu; });
  }
  double arch_space(const TopologyPart& server) const { return has_direct_links(server) ? 84 : 0; }

  /// Links between switches of one tier are drawn as arches over their row.
  bool has_side_links(NodeId id) const {
    const auto neighbours = adjacency_.of(id);
    return std::any_of(neighbours.begin(), neighbours.end(), [&](const Neighbour& n) {
      return node(n.node).kind == NodeKind::kSwitch && node(n.node).tier == node(id).tier;
    });
  }
  double side_space(const TopologyPart& part) const {
    return !part.switches.empty() && has_side_links(part.switches[0]) ? 40 : 0;
  }

  // Captions.

  std::string server_text(const TopologyPart& part) const {
    std::map<std::int16_t, int> types;
    for (const NodeId gpu : part.gpus) {
      ++types[node(gpu).gpu_type];
    }
    std::string text;
    for (const auto& [type, count] : types) {
      text += fmt::format("{}{} × {}", text.empty() ? "" : " + ", count,
                          topology_.gpu_types[static_cast<std::size_t>(type)]);
    }
    return text;
  }

  static std::string_view part_name(std::int32_t tier) {
    constexpr std::array<std::string_view, 4> kNames{"server", "segment", "pod", "cluster"};
    return kNames[static_cast<std::size_t>(std::min(tier, 3))];
  }

  std::string part_text(const TopologyPart& part, std::int64_t count) const {
    std::string text;
    if (count > 1) {
      text = fmt::format("{} × {}{}", part_name(part.tier), count,
                         part.gpus.empty() ? ", each " : ": ");
    } else if (!part.gpus.empty()) {
      text = fmt::format("server {}: ", node(part.gpus[0]).server);
    }
    if (!part.gpus.empty()) {
      return text + server_text(part);
    }
    if (!part.switches.empty()) {
      text += plural(static_cast<std::int64_t>(part.switches.size()), "switch", "switches") +
              fmt::format(" of tier {}, ", part.tier);
    }
    return text + plural(part.gpu_count, "GPU", "GPUs");
  }

  // Places.

  void place(const TopologyPart& part, Point at, std::int64_t count, std::size_t depth) {
    Box box = measure(part);
    box.x = at.x;
    box.y = at.y;
    for (double shift = count > 1 ? 2 * kStack : 0; shift >= 0; shift -= kStack) {
      svg_.frame({box.x + shift, box.y + shift, box.width, box.height},
                 kFrameFills[depth % kFrameFills.size()], kFrame);
    }
    if (part.gpus.empty()) {
      place_inner(part, box, count, depth);
    } else {
      place_server(part, box, count);
    }
  }

  void place_inner(const TopologyPart& part, const Box& box, std::int64_t count,
                   std::size_t depth) {
    svg_.text({box.x + kPad, box.y + 18}, part_text(part, count), 12.5, kInk, Svg::Anchor::kStart,
              true);
    const double middle = box.x + box.width / 2;
    double y = box.y + kCaption + kPad / 2 + side_space(part);
    if (!part.switches.empty()) {
      place_switches(part, middle, y);
      if (side_space(part) > 0) {
        svg_.text({middle, y - 12},
                  fmt::format("{} to switches of the same tier", links_text(part, true)), 11.5,
                  kFaint);
      }
      y += kSwitchHeight + kLinkSpace;
      label_links(part, {middle, y - kLinkSpace / 2});
    }
    const std::vector<Kind> kinds = kinds_of(part);
    const std::size_t drawn_kinds = std::min(kinds.size(), kMostKinds);
    double width = -kGap;
    for (std::size_t k = 0; k < drawn_kinds; ++k) {
      for (const TopologyPart* child : kinds[k].drawn) {
        width += kGap + measure(*child).width + kinds[k].stack_space();
      }
    }
    double x = middle - width / 2;
    for (std::size_t k = 0; k < drawn_kinds; ++k) {
      for (const TopologyPart* child : kinds[k].drawn) {
        place(*child, {x, y}, kinds[k].stands_for(), depth + 1);
        x += kGap + measure(*child).width + kinds[k].stack_space();
      }
    }
    if (kinds.size() > kMostKinds) {
      svg_.text({middle, box.y + box.height - kPad / 2 - 4},
                fmt::format("… and {} more kinds of {}", kinds.size() - kMostKinds,
                            part_name(part.children[0].tier)),
                12, kFaint);
    }
  }

  void place_switches(const TopologyPart& part, double middle, double y) {
    const Shown shown = shown_of(part.switches.size(), kMostSwitches, kEndsOfRow);
    const Colours colours =
        kTierColours[static_cast<std::size_t>(part.tier - 1) % kTierColours.size()];
    double x = middle - row_width(shown.slots(), kSwitchPitch, kSwitchWidth) / 2;
    for (std::size_t i = 0; i < part.switches.size(); ++i) {
      const NodeId id = part.switches[i];
      if (i >= shown.head && i < part.switches.size() - shown.tail) {
        mark(id, {x, y, kSwitchWidth, kSwitchHeight});
        if (i + 1 == part.switches.size() - shown.tail) {
          svg_.text({x + kSwitchWidth / 2, y + 14}, "· · ·", 13, kFaint);
          svg_.text({x + kSwitchWidth / 2, y + 27}, fmt::format("{} more", shown.hidden), 10,
                    kFaint);
          x += kSwitchPitch;
        }
        continue;
      }
      const Box box{x, y, kSwitchWidth, kSwitchHeight};
      svg_.box(box, 5, colours.fill, colours.stroke,
               fmt::format("switch {}, tier {}", id.value, part.tier));
      svg_.text({x + kSwitchWidth / 2, y + 19}, std::to_string(id.value), 11, kInk);
      mark(id, box);
      x += kSwitchPitch;
    }
  }

  void place_server(const TopologyPart& part, const Box& box, std::int64_t count) {
    const Shown shown = shown_of(part.gpus.size(), kMostGpus, kMostGpus);
    const double middle = box.x + box.width / 2;
    const double row = row_width(shown.slots(), kGpuPitch, kGpuSize);
    double x = middle - row / 2;
    const double y = box.y + kPad + arch_space(part);
    for (std::size_t i = 0; i < part.gpus.size(); ++i) {
      const NodeId id = part.gpus[i];
      if (i >= shown.head && i < part.gpus.size() - shown.tail) {
        if (i == shown.head) {
          svg_.text({x + kGpuSize / 2, y + 13}, "· · ·", 12, kFaint);
          svg_.text({x + kGpuSize / 2, y + 25}, fmt::format("{}", shown.hidden), 10, kFaint);
          x += kGpuPitch;
        }
        continue;
      }
      const Box gpu{x, y, kGpuSize, kGpuSize};
      svg_.box(gpu, 4, kGpuColours.fill, kGpuColours.stroke,
               fmt::format("GPU {}, server {}", id.value, node(id).server));
      svg_.text({x + kGpuSize / 2, y + 18}, std::to_string(id.value), id.value < 1000 ? 10.5 : 8.5,
                kInk);
      mark(id, gpu);
      x += kGpuPitch;
    }
    if (!part.nvswitches.empty()) {
      const Box bar{middle - row / 2, y + kGpuSize + kNvlinkSpace, std::max(row, 80.0),
                    kNvswitchHeight};
      svg_.box(bar, 5, kNvswitchColours.fill, kNvswitchColours.stroke);
      svg_.text({bar.x + bar.width / 2, bar.y + 16}, nvswitch_text(part), 11, kInk);
      for (const NodeId id : part.nvswitches) {
        mark(id, bar);
      }
    }
    svg_.text({middle, box.y + box.height - 12}, part_text(part, count), 12.5, kInk,
              Svg::Anchor::kMiddle, true);
  }

  std::string nvswitch_text(const TopologyPart& part) const {
    std::string number = part.nvswitches.size() == 1
                             ? "NVSwitch"
                             : fmt::format("{} NVSwitches", part.nvswitches.size());
    for (const Neighbour& n : adjacency_.of(part.nvswitches[0])) {
      return fmt::format("{} · {}", number,
                         to_text(topology_.class_of(LinkId(n.port.value / 2)).rate));
    }
    return number;
  }

  void mark(NodeId id, const Box& box) {
    place_[id.index()] = {
        true, {box.x + box.width / 2, box.y}, {box.x + box.width / 2, box.y + box.height}};
  }

  /// The links of a part's own switches to what is below, or among themselves, by rate.
  std::string links_text(const TopologyPart& part, bool sideways) const {
    std::map<Bandwidth, std::int64_t> counts;
    for (const NodeId id : part.switches) {
      for (const Neighbour& n : adjacency_.of(id)) {
        const Node& other = node(n.node);
        const bool same_tier = other.kind == NodeKind::kSwitch && other.tier == part.tier;
        const bool below = other.kind != NodeKind::kSwitch || other.tier < part.tier;
        if (sideways ? same_tier : below) {
          ++counts[topology_.class_of(LinkId(n.port.value / 2)).rate];
        }
      }
    }
    std::string text;
    for (const auto& [rate, count] : counts) {
      text += fmt::format("{}{} × {}", text.empty() ? "" : " + ", count, to_text(rate));
    }
    return text;
  }

  void label_links(const TopologyPart& part, Point middle) {
    const std::string text = links_text(part, false);
    const double width = 6.6 * static_cast<double>(text.size()) + 22;
    svg_.box({middle.x - width / 2, middle.y - 12, width, 24}, 12, "#ffffff", kFrame);
    svg_.text({middle.x, middle.y + 4}, text, 11.5, kInk);
  }

  void draw_links() {
    std::set<std::array<std::int64_t, 4>> drawn;  // lines that would lie on each other
    for (const Link& link : topology_.links) {
      const Place& a = place_[link.a.index()];
      const Place& b = place_[link.b.index()];
      if (!a.drawn || !b.drawn) {
        continue;
      }
      const bool a_is_higher = a.top.y < b.top.y;
      const Place& high = a_is_higher ? a : b;
      const Place& low = a_is_higher ? b : a;
      const auto round = [](double v) { return static_cast<std::int64_t>(v * 8); };
      if (!drawn
               .insert(
                   {round(high.bottom.x), round(high.bottom.y), round(low.top.x), round(low.top.y)})
               .second) {
        continue;
      }
      draw_link(link, high, low, a_is_higher ? link.a : link.b, a_is_higher ? link.b : link.a);
    }
  }

  void draw_link(const Link& link, const Place& high, const Place& low, NodeId high_id,
                 NodeId low_id) {
    if (high.top.y == low.top.y) {
      const double span = std::abs(high.top.x - low.top.x);
      const bool gpus = node(link.a).kind == NodeKind::kGpu;
      svg_.arch(high.top, low.top, std::min(gpus ? 100.0 : 44.0, 16 + span / 3), kFaint, 0.7);
    } else if (node(high_id).kind == NodeKind::kGpu) {  // to its NVSwitch, straight down
      svg_.line(high.bottom, {high.bottom.x, low.top.y}, kNvswitchColours.stroke, 2.4, 0.8);
    } else if (node(low_id).kind == NodeKind::kGpu) {
      svg_.line(high.bottom, low.top,
                kRailColours[static_cast<std::size_t>(high_id.value) % kRailColours.size()], 1.6,
                0.75);
    } else {
      svg_.line(high.bottom, low.top, kFaint, 1, 0.28);
    }
  }

  const Topology& topology_;
  Adjacency adjacency_;
  std::vector<Place> place_;  // by node
  Svg svg_;
};

}  // namespace

std::string draw(const Topology& topology) { return Drawing(topology).run(); }

}  // namespace lockstep

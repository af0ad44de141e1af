#include "topologies/simai_topology.h"

#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "topologies/topology_maker.h"

namespace lockstep {
namespace {

constexpr bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v';
}

/// The words of a text, line by line, with their places.
class Scanner {
 public:
  Scanner(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  /// Moves to the next line that holds a word; false at the end of the text.
  bool next_line() {
    while (next_ < text_.size()) {
      begin_ = position_ = word_ = next_;
      const std::size_t end = text_.find('\n', begin_);
      line_end_ = end == std::string_view::npos ? text_.size() : end;
      next_ = end == std::string_view::npos ? text_.size() : end + 1;
      ++line_;
      if (!skip_blanks()) {
        return true;
      }
    }
    return false;
  }
  /// The line's next word; empty at its end.
  std::string_view word() {
    skip_blanks();
    word_ = position_;
    while (position_ < line_end_ && !is_blank(text_[position_])) {
      ++position_;
    }
    return text_.substr(word_, position_ - word_);
  }
  std::size_t line() const { return line_; }
  /// An Error at the word last read.
  Error error(std::string message) const {
    return Error(std::move(message)).at(file_, line_, word_ - begin_ + 1);
  }
  /// Calls f(word); an Error that leaves it gets the word's place.
  template <class F>
  void at_word(std::string_view word, F&& f) const {
    try {
      f(word);
    } catch (Error& problem) {
      const auto offset = static_cast<std::size_t>(word.data() - text_.data());
      throw std::move(problem).at(file_, line_, offset - begin_ + 1);
    }
  }

 private:
  bool skip_blanks() {
    while (position_ < line_end_ && is_blank(text_[position_])) {
      ++position_;
    }
    return position_ == line_end_;
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t next_ = 0, begin_ = 0, position_ = 0, line_end_ = 0, word_ = 0, line_ = 0;
};

struct Header {
  std::int64_t nodes = 0, gpus_per_server = 0, nvswitches = 0, switches = 0, links = 0;
  std::string gpu_type;
};

constexpr std::string_view kHeaderHelp =
    "six fields: node_num gpus_per_server nvswitch_num switch_num link_num gpu_type";
constexpr std::string_view kLinkHelp = "five fields: src dst rate delay error_rate";

std::int64_t whole_number(Scanner& in, std::string_view field, std::string_view line_help,
                          std::int64_t low, std::int64_t high) {
  const std::string_view word = in.word();
  if (word.empty()) {
    throw in.error("the line ends too early").field(field).expected(line_help);
  }
  const std::optional<std::int64_t> value = to_int(word);
  if (!value || *value < low || *value > high) {
    throw in.error(fmt::format("'{}' is out of place", printable(word)))
        .field(field)
        .expected(fmt::format("a whole number from {} to {}", low, high));
  }
  return *value;
}

std::string_view required_word(Scanner& in, std::string_view field, std::string_view line_help) {
  const std::string_view word = in.word();
  if (word.empty()) {
    throw in.error("the line ends too early").field(field).expected(line_help);
  }
  return word;
}

void end_of_line(Scanner& in, std::string_view line_help) {
  if (const std::string_view word = in.word(); !word.empty()) {
    throw in.error(fmt::format("'{}' is one field too many", printable(word))).expected(line_help);
  }
}

Header read_header(Scanner& in, const std::string& file) {
  if (!in.next_line()) {
    throw Error("the file is empty").at(file).expected(kHeaderHelp);
  }
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  Header header;
  try {
    header.nodes = whole_number(in, "node_num", kHeaderHelp, 1, kMost);
  } catch (Error& error) {
    throw std::move(error).hint("is this a topology text of SimAI? A workload goes to --workload");
  }
  header.gpus_per_server = whole_number(in, "gpus_per_server", kHeaderHelp, 1, kMost);
  header.nvswitches = whole_number(in, "nvswitch_num", kHeaderHelp, 0, header.nodes - 1);
  header.switches =
      whole_number(in, "switch_num", kHeaderHelp, 0, header.nodes - 1 - header.nvswitches);
  header.links = whole_number(in, "link_num", kHeaderHelp, 0, kMost);
  header.gpu_type = required_word(in, "gpu_type", kHeaderHelp);
  if (std::any_of(header.gpu_type.begin(), header.gpu_type.end(),
                  [](char c) { return c < '!' || c > '~'; })) {
    throw in.error("the name has characters that are not plain ASCII")
        .field("gpu_type")
        .expected("a name such as H100");
  }
  end_of_line(in, kHeaderHelp);
  return header;
}

std::vector<std::int32_t> read_switch_ids(Scanner& in, const Header& header) {
  const std::int64_t count = header.nvswitches + header.switches;
  std::vector<std::int32_t> ids;
  if (count == 0) {
    return ids;  // line 2 is blank
  }
  if (!in.next_line()) {
    throw in.error("the file ends after its header")
        .field("switch ids")
        .expected(fmt::format("a line with the ids of {} switching nodes", count));
  }
  const std::string help =
      fmt::format("{} ids: {} of NVSwitches, then {} of switches, as the header says", count,
                  header.nvswitches, header.switches);
  while (static_cast<std::int64_t>(ids.size()) < count) {
    ids.push_back(
        static_cast<std::int32_t>(whole_number(in, "switch id", help, 0, header.nodes - 1)));
  }
  end_of_line(in, help);
  std::vector<std::int32_t> sorted = ids;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) {
    throw in.error(fmt::format("the id {} stands twice", *twice))
        .field("switch id")
        .expected("each switching node once");
  }
  return ids;
}

struct FileLink {
  Link link;
  std::uint32_t line;
};

/// Remembers the last few classes, since most neighbouring lines differ in few ways.
class ClassReader {
 public:
  std::int32_t read(Scanner& in, TopologyMaker& maker) {
    const std::string_view rate = required_word(in, "rate", kLinkHelp);
    const std::string_view delay = required_word(in, "delay", kLinkHelp);
    const std::string_view error = required_word(in, "error_rate", kLinkHelp);
    for (const Known& known : recent_) {
      if (known.rate == rate && known.delay == delay && known.error == error) {
        return known.index;
      }
    }
    in.at_word(rate, parse_link_rate);
    in.at_word(delay, parse_link_delay);
    in.at_word(error, parse_error_rate);
    const std::int32_t index = maker.link_class(rate, delay, error);
    recent_[next_] = {rate, delay, error, index};
    next_ = (next_ + 1) % recent_.size();
    return index;
  }

 private:
  struct Known {
    std::string_view rate, delay, error;
    std::int32_t index = -1;
  };
  std::array<Known, 4> recent_{};
  std::size_t next_ = 0;
};

std::vector<FileLink> read_links(Scanner& in, const Header& header, std::size_t text_size,
                                 TopologyMaker& maker) {
  constexpr std::int64_t kShortestLine = 12;  // "0 1 1bps 0 0"
  std::vector<FileLink> links;
  links.reserve(static_cast<std::size_t>(
      std::min(header.links, static_cast<std::int64_t>(text_size) / kShortestLine)));
  ClassReader classes;
  for (std::int64_t i = 0; i < header.links; ++i) {
    if (!in.next_line()) {
      throw in
          .error(fmt::format("the file ends after {} of the {} links its header announces", i,
                             header.links))
          .field("link_num");
    }
    const std::int64_t a = whole_number(in, "src", kLinkHelp, 0, header.nodes - 1);
    const std::int64_t b = whole_number(in, "dst", kLinkHelp, 0, header.nodes - 1);
    if (a == b) {
      throw in.error(fmt::format("the link leads from node {} to itself", a)).field("dst");
    }
    const std::int32_t link_class = classes.read(in, maker);
    end_of_line(in, kLinkHelp);
    links.push_back(
        {{NodeId(static_cast<std::int32_t>(a)), NodeId(static_cast<std::int32_t>(b)), link_class},
         static_cast<std::uint32_t>(in.line())});
  }
  if (in.next_line()) {
    throw in
        .error(
            fmt::format("the file goes on after the {} links its header announces", header.links))
        .field("link_num");
  }
  return links;
}

/// Puts every NVSwitch into the server of the GPUs it is linked to.
void place_nvswitches(Topology& topology, const std::vector<FileLink>& links,
                      const std::string& file) {
  for (const FileLink& at : links) {
    for (const auto& [self, other] : {std::pair(at.link.a, at.link.b), {at.link.b, at.link.a}}) {
      Node& node = topology.nodes[self.index()];
      const Node& peer = topology.nodes[other.index()];
      if (node.kind != NodeKind::kNvSwitch || peer.kind != NodeKind::kGpu) {
        continue;
      }
      if (node.server >= 0 && node.server != peer.server) {
        throw Error(fmt::format("NVSwitch {} is linked to GPUs of servers {} and {}", self.value,
                                node.server, peer.server))
            .at(file, at.line)
            .expected(fmt::format("one server: GPU i is in server i / {} (gpus_per_server)",
                                  topology.gpus_per_server));
      }
      node.server = peer.server;
    }
  }
}

}  // namespace

Topology parse_simai_topology(std::string_view text, const std::string& file) {
  Scanner in(text, file);
  const Header header = read_header(in, file);
  const std::size_t header_line = in.line();
  const std::vector<std::int32_t> switches = read_switch_ids(in, header);
  TopologyMaker maker(file);
  const std::vector<FileLink> links = read_links(in, header, text.size(), maker);
  // Before anything is sized by node_num: a node without a link is an error anyway.
  if (header.nodes > 1 && header.nodes > 2 * header.links) {
    throw Error(fmt::format("{} nodes, but {} links reach at most {} of them", header.nodes,
                            header.links, 2 * header.links))
        .at(file, header_line)
        .field("node_num");
  }
  std::vector<std::int8_t> kind(static_cast<std::size_t>(header.nodes), 0);
  for (std::size_t i = 0; i < switches.size(); ++i) {
    kind[static_cast<std::size_t>(switches[i])] =
        static_cast<std::int64_t>(i) < header.nvswitches ? 1 : 2;
  }
  maker.reserve(header.nodes, header.links);
  maker.gpu_type(header.gpu_type);
  for (std::size_t i = 0; i < kind.size(); ++i) {
    if (kind[i] == 0) {
      maker.add_gpu(
          static_cast<std::int32_t>(static_cast<std::int64_t>(i) / header.gpus_per_server));
    } else if (kind[i] == 1) {
      maker.add_nvswitch(-1);
    } else {
      maker.add_switch();
    }
  }
  for (const FileLink& at : links) {
    maker.link(at.link.a, at.link.b, at.link.link_class);
  }
  Topology topology = maker.finish(static_cast<std::int32_t>(header.gpus_per_server));
  place_nvswitches(topology, links, file);
  return topology;
}

std::string to_simai_text(const Topology& topology) {
  const auto cannot = [&](std::string reason) {
    return Error(fmt::format("the topology {} cannot be written in SimAI's text: {}", topology.name,
                             reason))
        .hint("write it as .json, which holds every topology");
  };
  if (topology.gpu_types.size() != 1) {
    throw cannot(fmt::format("it has {} GPU types", topology.gpu_types.size()));
  }
  const std::string& type = topology.gpu_types[0];
  if (split_blanks(type).size() != 1 || trim(type).size() != type.size()) {
    throw cannot(fmt::format("the GPU type '{}' is not one word", printable(type)));
  }
  std::vector<std::size_t> nvswitches, switches;
  for (std::size_t i = 0; i < topology.nodes.size(); ++i) {
    const Node& node = topology.nodes[i];
    if (node.kind == NodeKind::kGpu &&
        node.server != static_cast<std::int64_t>(i) / topology.gpus_per_server) {
      throw cannot(fmt::format("GPU {} is in server {}, not {} = {} / {}", i, node.server,
                               static_cast<std::int64_t>(i) / topology.gpus_per_server, i,
                               topology.gpus_per_server));
    }
    if (node.kind != NodeKind::kGpu) {
      (node.kind == NodeKind::kNvSwitch ? nvswitches : switches).push_back(i);
    }
  }
  std::string text;
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "{} {} {} {} {} {}\n", topology.nodes.size(), topology.gpus_per_server,
                 nvswitches.size(), switches.size(), topology.links.size(), type);
  for (const std::vector<std::size_t>* ids : {&nvswitches, &switches}) {
    for (const std::size_t id : *ids) {
      fmt::format_to(out, "{} ", id);
    }
  }
  text += '\n';
  std::vector<std::string> endings;
  for (const LinkClass& c : topology.link_classes) {
    endings.push_back(fmt::format(" {} {} {}\n", c.rate_text, c.delay_text, c.error_text));
  }
  for (const Link& link : topology.links) {
    fmt::format_to(out, "{} {}", link.a.value, link.b.value);
    text += endings[static_cast<std::size_t>(link.link_class)];
  }
  return text;
}

}  // namespace lockstep

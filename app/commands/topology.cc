#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "app/command.h"
#include "app/terminal.h"
#include "app/usage.h"
#include "base/atomic_file.h"
#include "base/error.h"
#include "base/file_record.h"
#include "base/json.h"
#include "base/output_capture.h"
#include "base/text.h"
#include "topologies/builder.h"
#include "topologies/describe.h"
#include "topologies/draw.h"
#include "topologies/link_list.h"
#include "topologies/simai_topology.h"
#include "topologies/topology_file.h"
#include "topologies/topology_json.h"

namespace lockstep {
namespace {

void warn(const std::vector<std::string>& warnings) {
  for (const std::string& text : warnings) {
    fmt::print(standard_error(), "lockstep: warning: {}\n", text);
  }
}

Topology load(const std::string& from) {
  std::vector<std::string> warnings;
  Topology topology = topology_from(from, &warnings);
  warn(warnings);
  return topology;
}

std::string one_line(const Topology& t) {
  return fmt::format("{} GPUs, {} NVSwitches, {} switches, {} links", t.count(NodeKind::kGpu),
                     t.count(NodeKind::kNvSwitch), t.count(NodeKind::kSwitch), t.links.size());
}

/// Whether an output is our JSON, by --format or else by its name. ERRORS: an unknown format.
bool wants_json(const std::string& format, const std::string& path) {
  if (!format.empty() && format != "simai" && format != "json") {
    throw Error(fmt::format("there is no topology format '{}'", printable(format)))
        .field("--format")
        .expected("simai or json");
  }
  return format.empty() ? path.ends_with(".json") : format == "json";
}

void write_topology(const Topology& topology, const std::string& path, bool json) {
  write_file(path, json ? to_json_text(topology) : to_simai_text(topology));
  if (path != "-") {
    fmt::print(standard_error(), "{}: {}\n", path, one_line(topology));
  }
}

// build ------------------------------------------------------------------------------------------

struct BuildFlags {
  std::string topology_template = "plain", output, format;
  bool help = false;
  CLI::App* app = nullptr;
};

/// SimAI's generator has flags such as -gps, which CLI11 would read as -g -p -s; so the template's
/// flags arrive as words that CLI11 did not know, and the template's own table reads them.
std::vector<std::string> take_template(std::vector<std::string> words, std::string& name) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "-topo") {
      if (i + 1 == words.size()) {
        throw Error("the flag needs a value").field("-topo");
      }
      name = words[i + 1];
      words.erase(words.begin() + static_cast<std::ptrdiff_t>(i),
                  words.begin() + static_cast<std::ptrdiff_t>(i + 2));
      return words;
    }
  }
  return words;
}

const TopologyBuilder& named_template(const std::string& name) {
  if (const TopologyBuilder* builder = find_topology_builder(name)) {
    return *builder;
  }
  const std::string_view near = closest_topology_builder(name);
  throw Error(fmt::format("there is no topology template '{}'", printable(name)))
      .expected("one of " + topology_builder_names())
      .hint(near.empty() ? "" : fmt::format("did you mean {}?", near));
}

/// What --help says below the options.
std::string about_templates(const TopologyBuilder& builder) {
  std::string text = "Templates (--template):\n";
  for (const TopologyBuilder* each : topology_builders()) {
    text += fmt::format("  {:<16} {}\n", each->name, each->summary);
  }
  return text +
         fmt::format("\nFlags of {} (see another template's with --template NAME --help):\n{}",
                     builder.name, flag_help(builder));
}

ExitCode build(const BuildFlags& flags) {
  std::string name = flags.topology_template;
  const std::vector<std::string> words = take_template(flags.app->remaining(), name);
  const TopologyBuilder& builder = named_template(name);
  if (flags.help) {
    flags.app->footer(about_templates(builder));
    write_file("-", root_help(*flags.app));
    return ExitCode::kDone;
  }
  bool json = wants_json(flags.format, flags.output);
  if (flags.output.empty()) {
    throw Error("topology build: no output is named")
        .expected("-o FILE, -o DIR (the template's own file name in that folder) or -o -");
  }
  const BuiltTopology built = build_topology(builder, FlagValues::from_words(builder, words));
  warn(built.simai_messages.empty() ? built.warnings : built.simai_messages);
  warn(built.ignored);
  std::string path = flags.output;
  if (path.ends_with('/') || (path != "-" && is_folder(path))) {
    json = json || (flags.format.empty() && built.topology.gpu_types.size() > 1);
    path = std::filesystem::path(path) / (built.file_name + (json ? ".json" : ""));
  }
  write_topology(built.topology, path, json);
  return ExitCode::kDone;
}

CommandBody define_build(CLI::App& app) {
  auto flags = std::make_shared<BuildFlags>();
  flags->app = &app;
  app.set_help_flag();
  app.allow_extras();
  app.footer(about_templates(named_template(flags->topology_template)));
  app.add_option("--template,--topology", flags->topology_template,
                 "The template, by default plain; -topo is taken too")
      ->expected(0, 1);
  app.add_option("-o,--output", flags->output,
                 "File to write: SimAI's text, or our JSON if it ends in .json; a folder gets the "
                 "template's own file name; - is standard output")
      ->expected(0, 1);
  app.add_option("--format", flags->format, "simai or json, whatever the file's name")
      ->expected(0, 1);
  app.add_flag("-h,--help", flags->help, "The templates, and the flags of the one that is named");
  return [flags] { return build(*flags); };
}

/// Of the commands that read a topology and tell something about it.
struct ReadingFlags {
  std::string from;
  bool json = false;
};

std::shared_ptr<ReadingFlags> add_reading_flags(CLI::App& app, const char* json_help) {
  auto flags = std::make_shared<ReadingFlags>();
  app.add_option("topology", flags->from, "A topology file, or TEMPLATE[:flag=value,…]")
      ->required();
  app.add_flag("--json", flags->json, json_help);
  return flags;
}

// convert ----------------------------------------------------------------------------------------

CommandBody define_convert(CLI::App& app) {
  struct Flags {
    std::string from, output, format;
  };
  auto flags = std::make_shared<Flags>();
  app.add_option("topology", flags->from, "A topology file, or TEMPLATE[:flag=value,…]")
      ->required();
  app.add_option("-o,--output", flags->output,
                 "File to write: SimAI's text, or our JSON if it ends in .json; - is standard "
                 "output")
      ->required();
  app.add_option("--format", flags->format, "simai or json, whatever the file's name");
  return [flags] {
    const bool json = wants_json(flags->format, flags->output);
    write_topology(load(flags->from), flags->output, json);
    return ExitCode::kDone;
  };
}

// check ------------------------------------------------------------------------------------------

std::string check_json(const std::string& from, const Topology& t,
                       const std::vector<std::string>& warnings) {
  return to_text(Json{{"schema", "lockstep-topology-check/1"},
                      {"topology", from},
                      {"gpus", t.count(NodeKind::kGpu)},
                      {"nvswitches", t.count(NodeKind::kNvSwitch)},
                      {"switches", t.count(NodeKind::kSwitch)},
                      {"links", t.links.size()},
                      {"warnings", warnings}});
}

/// Switches that nothing passes, for they have one link or none.
std::vector<std::string> dead_ends(const Topology& topology) {
  std::vector<std::int64_t> links(topology.nodes.size());
  for (const Link& link : topology.links) {
    ++links[link.a.index()];
    ++links[link.b.index()];
  }
  std::vector<std::string> found;
  for (std::size_t node = 0; node < links.size(); ++node) {
    if (topology.nodes[node].kind != NodeKind::kGpu && links[node] < 2) {
      found.push_back(std::to_string(node));
    }
  }
  constexpr std::size_t kShown = 8;
  if (found.empty()) {
    return {};
  }
  const std::size_t all = found.size();
  found.resize(std::min(all, kShown));
  return {fmt::format("{} with fewer than two links, which nothing passes: node {}{}",
                      all == 1 ? "a switch" : fmt::format("{} switches", all),
                      fmt::join(found, ", "), all > kShown ? ", …" : "")};
}

CommandBody define_check(CLI::App& app) {
  const auto flags = add_reading_flags(app, "One JSON document instead of a line");
  return [flags] {
    std::vector<std::string> warnings;
    const Topology topology = topology_from(flags->from, &warnings);  // throws what is wrong
    std::ranges::move(dead_ends(topology), std::back_inserter(warnings));
    warn(warnings);
    write_file("-", flags->json ? check_json(flags->from, topology, warnings)
                                : fmt::format("{}: ok, {}\n", flags->from, one_line(topology)));
    return ExitCode::kDone;
  };
}

// describe ---------------------------------------------------------------------------------------

CommandBody define_describe(CLI::App& app) {
  const auto flags = add_reading_flags(app, "One JSON document instead of a table");
  return [flags] {
    const TopologyDescription description = describe(load(flags->from));
    write_file("-", flags->json ? to_json_text(description) : for_terminal(to_text(description)));
    return ExitCode::kDone;
  };
}

// links ------------------------------------------------------------------------------------------

CommandBody define_links(CLI::App& app) {
  const auto flags = add_reading_flags(app, "One JSON document instead of a table");
  auto of = std::make_shared<std::optional<std::int64_t>>();
  app.add_option("--of", *of, "Only the links of this node");
  return [flags, of] {
    const Topology topology = load(flags->from);
    write_file("-",
               flags->json ? links_json(topology, *of) : for_terminal(links_text(topology, *of)));
    return ExitCode::kDone;
  };
}

// draw -------------------------------------------------------------------------------------------

CommandBody define_draw(CLI::App& app) {
  struct Flags {
    std::string from, output;
  };
  auto flags = std::make_shared<Flags>();
  app.add_option("topology", flags->from, "A topology file, or TEMPLATE[:flag=value,…]")
      ->required();
  app.add_option("-o,--output", flags->output, "SVG file to write; - is standard output")
      ->required();
  return [flags] {
    const std::string kind = to_lower(std::filesystem::path(flags->output).extension().string());
    constexpr std::array<std::string_view, 6> kOthers{".png", ".jpg", ".jpeg",
                                                      ".gif", ".pdf", ".webp"};
    if (std::ranges::find(kOthers, kind) != kOthers.end()) {
      throw Error(fmt::format("a picture of a topology is SVG, not {}", kind))
          .field("--output")
          .expected("a name that ends in .svg, or -");
    }
    write_file(flags->output, draw(load(flags->from)));
    return ExitCode::kDone;
  };
}

// ------------------------------------------------------------------------------------------------

CommandBody define(CLI::App& app) {
  app.require_subcommand(1);
  std::vector<std::pair<CLI::App*, CommandBody>> bodies;
  const auto add = [&](const char* name, const char* summary, CommandBody (*part)(CLI::App&)) {
    CLI::App* sub = app.add_subcommand(name, summary);
    bodies.emplace_back(sub, part(*sub));
  };
  add("build", "Writes a topology from a template", define_build);
  add("convert", "Writes a topology in the other format", define_convert);
  add("check", "Reads a topology and says whether it is sound", define_check);
  add("draw", "Draws a topology as an SVG picture", define_draw);
  add("describe", "Counts, rates, bisection, oversubscription and distances", define_describe);
  add("links", "Every link with the nodes it joins, by number", define_links);
  return [bodies] {
    for (const auto& [sub, body] : bodies) {
      if (sub->parsed()) {
        return body();
      }
    }
    return ExitCode::kDone;
  };
}

}  // namespace

extern const Command kTopologyCommand;
const Command kTopologyCommand{
    "topology", "Builds, converts, checks, describes, lists and draws cluster topologies",
    R"(Examples:
  lockstep topology build --template Spectrum-X -g 128 -o cluster.txt
  lockstep topology build --template fat-tree --ports 8 -o fat-tree.json
  lockstep topology build --template dragonfly --help
  lockstep topology convert cluster.txt -o cluster.json
  lockstep topology check cluster.txt --json
  lockstep topology describe AlibabaHPN:gpus=1024 --json
  lockstep topology links Spectrum-X:gpus=16 --of 3
  lockstep topology draw Spectrum-X:gpus=4096 -o spectrum.svg
)",
    define};

}  // namespace lockstep

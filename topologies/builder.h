#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "topologies/topology.h"

namespace lockstep {

enum class FlagKind : std::uint8_t {
  kCount,        ///< a whole number from `low` to `high`
  kSwitch,       ///< on or off; given without a value it is on
  kRate,         ///< a bandwidth per direction, such as 400Gbps; kept as written
  kDelay,        ///< a time, such as 0.0005ms; kept as written
  kProbability,  ///< 0 to 1; kept as written
  kRatio,        ///< a positive number
  kWord,         ///< a name without blanks
  kShape,        ///< whole numbers joined by x, such as 8x8x8
};

/// One flag of a builder. `names` are its spellings without dashes, separated by blanks, the
/// readable one first; '-' and '_' count as equal, and so do capitals.
struct BuilderFlag {
  std::string_view names;
  FlagKind kind = FlagKind::kCount;
  std::string_view fallback;  ///< the default, as written on a command line
  std::string_view summary;
  std::int64_t low = 1, high = 1 << 20;
};

struct TopologyBuilder;

/// The values of a builder's flags, each checked against its kind and range.
/// ERRORS (while reading): an unknown flag (with the nearest known one), a missing or second value,
/// a value of the wrong kind or outside its range.
class FlagValues {
 public:
  /// The part after the colon of "template:g=128,bw=400Gbps,ro".
  static FlagValues from_compact(const TopologyBuilder& builder, std::string_view text);
  /// Words of a command line: "-g 128 --bandwidth=400Gbps --ro"; one dash or two.
  static FlagValues from_words(const TopologyBuilder& builder, std::span<const std::string> words);

  /// As given or by default. PRECONDITION: the builder's table has the flag, with a fitting kind.
  std::int64_t count(std::string_view name) const;
  bool on(std::string_view name) const;
  double ratio(std::string_view name) const;
  const std::string& text(std::string_view name) const;
  std::vector<std::int64_t> shape(std::string_view name) const;
  bool given(std::string_view name) const;

 private:
  explicit FlagValues(const TopologyBuilder& builder);
  void set(std::string_view name, std::string_view value, bool has_value);
  std::size_t index(std::string_view name) const;

  const TopologyBuilder* builder_;
  std::vector<std::string> values_;  // by flag
  std::vector<bool> given_;
};

struct BuiltTopology {
  Topology topology;
  std::string file_name;  ///< SimAI's own name for its templates
  std::vector<std::string> warnings;
  /// What SimAI's generator says for the same flags, also of those that were not given: `topology
  /// build` says that in place of the warnings, where there is any.
  std::vector<std::string> simai_messages;
  std::vector<std::string> ignored;  ///< what to say of flags that change nothing here
};

/// A topology template: one file in topologies/builders.
struct TopologyBuilder {
  std::string_view name;
  std::string_view aliases;  ///< separated by blanks
  std::string_view summary;  ///< one line
  std::span<const BuilderFlag> flags;
  /// ERRORS: Error for flags that do not go together.
  BuiltTopology (*build)(const FlagValues& flags);
};

/// All builders, by file name.
std::span<const TopologyBuilder* const> topology_builders();

/// By name or alias, in any case; null if there is none.
const TopologyBuilder* find_topology_builder(std::string_view name);
/// The nearest name; empty if none is near.
std::string_view closest_topology_builder(std::string_view name);
std::string topology_builder_names();

/// Builds and validates. ERRORS: those of the builder; unconnected GPUs.
BuiltTopology build_topology(const TopologyBuilder& builder, const FlagValues& flags);

/// The flags as a table for --help.
std::string flag_help(const TopologyBuilder& builder);

}  // namespace lockstep

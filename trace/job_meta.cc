#include "trace/job_meta.h"

#include <array>
#include <set>

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "base/yaml_problem.h"

namespace lockstep {
namespace {

struct SizeField {
  const char* name;
  std::int64_t JobMeta::*member;
  std::int64_t low;
};

constexpr std::array<SizeField, 10> kSizes = {{
    {"run_id", &JobMeta::run_id, 0},
    {"dp_size", &JobMeta::dp_size, 1},
    {"pp_size", &JobMeta::pp_size, 1},
    {"tp_size", &JobMeta::tp_size, 1},
    {"dsp_size", &JobMeta::dsp_size, 1},
    {"vpp_size", &JobMeta::vpp_size, 1},
    {"world_size", &JobMeta::world_size, 1},
    {"gathers_in_passes", &JobMeta::gathers_in_passes, 0},
    {"gradients_behind_gc", &JobMeta::gradients_behind_gc, 0},
    {"clips_in_replicas", &JobMeta::clips_in_replicas, 0},
}};

bool is_flag(const SizeField& field) {
  return field.member == &JobMeta::gradients_behind_gc ||
         field.member == &JobMeta::clips_in_replicas;
}

/// Fields that the original tools do not have.
bool is_ours(const SizeField& field) {
  return is_flag(field) || field.member == &JobMeta::gathers_in_passes;
}

Error error_at(const YAML::Node& node, const std::string& file, std::string message) {
  const YAML::Mark mark = node.Mark();
  return Error(std::move(message)).at(file, mark.is_null() ? 0 : std::size_t(mark.line) + 1);
}

std::int64_t whole(const YAML::Node& node, const SizeField& field, const std::string& file) {
  constexpr std::int64_t kMost = 1 << 24;
  const auto value = node.IsScalar() ? to_int(node.Scalar()) : std::nullopt;
  const std::int64_t most = field.member == &JobMeta::run_id ? INT64_MAX : kMost;
  if (!value || *value < field.low || *value > most) {
    throw error_at(node, file,
                   fmt::format("'{}' is no such number", node.IsScalar() ? printable(node.Scalar())
                                                         : node.IsNull() ? "nothing"
                                                         : node.IsSequence() ? "a list"
                                                                             : "a map"))
        .field(field.name)
        .expected(fmt::format("a whole number from {} to {}", field.low, most));
  }
  return *value;
}

/// Whether JSON can hold the text.
bool is_utf8(const std::string& text) {
  try {
    static_cast<void>(Json(text).dump());
    return true;
  } catch (const Json::exception&) {
    return false;
  }
}

std::string name_of(const YAML::Node& node, const std::string& file) {
  std::string name = node.IsScalar() ? node.Scalar() : "";
  if (name.empty() || name.size() > 200 || name.find('/') != std::string::npos ||
      name.find_first_not_of('.') == std::string::npos || printable(name, 400) != name ||
      !is_utf8(name)) {
    throw error_at(node, file, fmt::format("'{}' cannot be a part of file names", printable(name)))
        .field("trial_name")
        .expected("1 to 200 bytes of UTF-8 without a slash");
  }
  return name;
}

void read_field(JobMeta& meta, const std::string& key, const YAML::Node& value,
                const std::string& file) {
  if (key == "trial_name") {
    meta.trial_name = name_of(value, file);
    return;
  }
  for (const SizeField& field : kSizes) {
    if (key == field.name) {
      meta.*field.member = whole(value, field, file);
      return;
    }
  }
  constexpr std::array<std::string_view, 11> kKnown = {
      "trial_name",       "run_id",   "dp_size",    "pp_size",           "tp_size",
      "dsp_size",         "vpp_size", "world_size", "gathers_in_passes", "gradients_behind_gc",
      "clips_in_replicas"};
  if (const std::string_view near = closest(key, kKnown); !near.empty()) {
    throw error_at(value, file, fmt::format("unknown field '{}'", printable(key)))
        .expected(join(kKnown, ", "))
        .hint(fmt::format("did you mean {}?", near));
  }
}

void check(const JobMeta& meta, const std::string& file) {
  if (meta.trial_name.empty()) {
    throw Error("the field is missing").at(file).field("trial_name").expected("the job's name");
  }
  std::int64_t product = 1;
  for (const std::int64_t size : {meta.dp_size, meta.pp_size, meta.tp_size, meta.dsp_size}) {
    if (__builtin_mul_overflow(product, size, &product)) {
      product = INT64_MAX;
      break;
    }
  }
  if (meta.gathers_in_passes > 0 && meta.dp_size % meta.gathers_in_passes != 0) {
    throw Error(
        fmt::format("{} dp_ranks in a row do not divide {}", meta.gathers_in_passes, meta.dp_size))
        .at(file)
        .field("gathers_in_passes")
        .expected("a divisor of dp_size, or 0");
  }
  for (const SizeField& field : kSizes) {
    if (is_flag(field) && meta.*field.member > 1) {
      throw Error(fmt::format("{} is neither 0 nor 1", meta.*field.member))
          .at(file)
          .field(field.name);
    }
  }
  if (product != meta.world_size) {
    throw Error(fmt::format("{} is not dp * pp * tp * dsp = {} * {} * {} * {}", meta.world_size,
                            meta.dp_size, meta.pp_size, meta.tp_size, meta.dsp_size))
        .at(file)
        .field("world_size");
  }
}

}  // namespace

JobMeta read_job_meta(std::string_view text, const std::string& file) {
  JobMeta meta;
  try {
    const YAML::Node root = YAML::Load(std::string(text));
    if (!root.IsMap()) {
      throw Error("this is no mapping")
          .at(file)
          .expected("trial_name: NAME and so on, line by line");
    }
    std::set<std::string> seen;
    for (const auto& entry : root) {
      if (!entry.first.IsScalar()) {
        throw Error("a field's name is no text").at(file);
      }
      if (!seen.insert(entry.first.Scalar()).second) {
        throw error_at(entry.first, file, "the field stands twice")
            .field(printable(entry.first.Scalar()));
      }
      read_field(meta, entry.first.Scalar(), entry.second, file);
    }
  } catch (const YAML::Exception& problem) {
    throw yaml_problem(problem, file);
  }
  check(meta, file);
  return meta;
}

std::string to_yaml_text(const JobMeta& meta) {
  YAML::Emitter out;
  out << YAML::BeginMap << YAML::Key << "trial_name" << YAML::Value << meta.trial_name;
  for (const SizeField& field : kSizes) {
    if (!is_ours(field) || meta.*field.member > 0) {
      out << YAML::Key << field.name << YAML::Value << meta.*field.member;
    }
  }
  out << YAML::EndMap;
  return std::string(out.c_str()) + "\n";
}

}  // namespace lockstep

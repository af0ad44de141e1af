#include "generator/compute/profile_json.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "generator/compute/gpu_spec.h"
#include "generator/compute/roofline.h"

namespace lockstep {
namespace {

constexpr std::int64_t kLargest = std::int64_t{1} << 62;
constexpr double kLongest = 3600;

struct KindFields {
  OperatorKind kind;
  std::string_view name;
  std::vector<std::string_view> sizes;  // in the order of OperatorKey::sizes
};

const std::vector<KindFields>& kinds() {
  static const std::vector<KindFields> table{
      {OperatorKind::kGemm, "gemm", {"m", "n", "k"}},
      {OperatorKind::kGroupedGemm, "grouped-gemm", {"groups", "m", "n", "k"}},
      {OperatorKind::kAttention,
       "attention",
       {"batch", "heads", "kv_heads", "queries", "keys", "head_dim", "value_dim"}},
      {OperatorKind::kMemory, "memory", {"bytes"}},
  };
  return table;
}

MemoryWork read_work(const JsonView& view) {
  const auto found = std::ranges::find(kMemoryWorkNames, std::string_view(view.string()));
  if (found == kMemoryWorkNames.end()) {
    throw view.error("unknown work '" + printable(view.string()) + "'")
        .expected(join(kMemoryWorkNames, ", "));
  }
  return static_cast<MemoryWork>(found - kMemoryWorkNames.begin());
}

const KindFields& fields_of(OperatorKind kind) { return kinds()[static_cast<std::size_t>(kind)]; }

Time time_of(const JsonView& view) {
  const double seconds = view.number();
  if (!(seconds >= 0) || seconds > kLongest) {
    throw view.error("not a time of an operator").expected("seconds from 0 to 3600");
  }
  return Time::seconds(seconds);
}

OperatorKey read_key(const JsonView& entry) {
  OperatorKey key;
  const JsonView kind = entry["kind"];
  const KindFields* fields = nullptr;
  for (const KindFields& candidate : kinds()) {
    if (kind.string() == candidate.name) {
      fields = &candidate;
    }
  }
  if (fields == nullptr) {
    throw kind.error("unknown kind '" + printable(kind.string()) + "'")
        .expected("gemm, grouped-gemm, attention or memory");
  }
  key.kind = fields->kind;
  std::vector<std::string_view> allowed{"kind", "precision", "median_s", "spread_s", "samples"};
  allowed.insert(allowed.end(), fields->sizes.begin(), fields->sizes.end());
  if (key.kind == OperatorKind::kAttention) {
    allowed.insert(allowed.end(), {"causal", "backward", "fused"});
    key.causal = entry["causal"].boolean();
    key.backward = entry["backward"].boolean();
    key.fused = !entry.has("fused") || entry["fused"].boolean();
  }
  if (key.kind == OperatorKind::kMemory) {
    allowed.emplace_back("work");
    if (entry.has("work")) {
      key.work = read_work(entry["work"]);
      allowed.emplace_back("backward");
      key.backward = entry["backward"].boolean();
    }
  }
  entry.allow_keys(allowed);
  const std::optional<Precision> precision = precision_of(entry["precision"].string());
  if (!precision) {
    throw entry["precision"].error("unknown precision").expected("bf16, fp16, fp32 or fp8");
  }
  key.precision = *precision;
  for (std::size_t i = 0; i < fields->sizes.size(); ++i) {
    key.sizes[i] = entry[fields->sizes[i]].integer(1, kLargest);
  }
  return key;
}

std::string text_or_nothing(const JsonView& view, std::string_view key) {
  return view.has(key) ? view[key].string() : std::string();
}

}  // namespace

OperatorKey key_of(const Operator& op, Precision precision) {
  OperatorKey key;
  key.kind = op.kind;
  key.precision = precision;
  switch (op.kind) {
    case OperatorKind::kGemm:
      key.sizes = {op.m, op.n, op.k};
      break;
    case OperatorKind::kGroupedGemm:
      key.sizes = {op.groups, op.m, op.n, op.k};
      break;
    case OperatorKind::kAttention:
      key.sizes = {op.batch, op.heads, op.kv_heads, op.queries, op.keys, op.head_dim, op.value_dim};
      key.causal = op.causal;
      key.backward = op.backward;
      key.fused = op.fused;
      break;
    case OperatorKind::kMemory:
      if (!(op.bytes >= 0 && op.bytes <= static_cast<double>(kLargest))) {
        throw Error("operator '" + printable(op.name) + "' has " + std::to_string(op.bytes) +
                    " bytes")
            .expected("bytes from 0 to 2^62");
      }
      key.sizes = {static_cast<std::int64_t>(std::llround(op.bytes))};
      key.work = op.memory_work;
      key.backward = op.backward;
      break;
  }
  return key;
}

bool is_all_in_its_key(const Operator& op) {
  if (op.kind != OperatorKind::kAttention || !op.fused) {
    return true;
  }
  const auto real = [](std::int64_t size) { return static_cast<double>(size); };
  // The last query of a causal mask sees all keys, the first the fewest: half of `queries` fewer on
  // average.
  const double seen = real(op.keys) - (op.causal ? real(op.queries) / 2 : 0);
  const double work = attention_key_flops(real(op.batch) * real(op.heads) * real(op.queries),
                                          real(op.head_dim) + real(op.value_dim), op.backward) *
                      seen;
  return std::abs(op.flops - work) <= 1e-6 * work;
}

std::optional<TimeDistribution> OperatorProfile::find(const OperatorKey& key) const {
  auto found = times.find(key);
  if (found == times.end()) {
    found = times.find(of_any_work(key));
  }
  return found == times.end() ? std::nullopt : std::optional(found->second);
}

OperatorKey of_any_work(OperatorKey key) {
  if (key.kind == OperatorKind::kMemory) {
    key.work = std::nullopt;
    key.backward = false;
  }
  return key;
}

OperatorProfile read_profile_json(std::string_view text, const std::string& file) {
  const Json json = parse_json(text, file);
  const JsonView view(json, file);
  if (const JsonView schema = view["schema"]; schema.string() != kProfileSchema) {
    throw schema.error("unknown schema '" + printable(schema.string()) + "'")
        .expected(std::string(kProfileSchema));
  }
  constexpr std::array<std::string_view, 5> kKeys{"schema", "gpu", "driver", "libraries",
                                                  "operators"};
  view.allow_keys(kKeys);
  OperatorProfile profile;
  profile.gpu = view["gpu"].string();
  profile.driver = text_or_nothing(view, "driver");
  if (view.has("libraries")) {
    const JsonView libraries = view["libraries"];
    if (!libraries.json().is_object()) {
      throw libraries.error("not an object").expected(R"({"name": "version", …})");
    }
    for (const auto& item : libraries.json().items()) {
      profile.libraries[item.key()] = libraries[item.key()].string();
    }
  }
  const JsonView operators = view["operators"];
  if (!operators.json().is_array()) {
    throw operators.error("not a list").expected("a list of measured operators");
  }
  for (std::size_t i = 0; i < operators.size(); ++i) {
    const JsonView entry = operators[i];
    const OperatorKey key = read_key(entry);
    TimeDistribution time;
    time.median = time_of(entry["median_s"]);
    if (time.median == Time()) {
      throw entry["median_s"].error("an operator that takes no time").expected("at least 1e-12");
    }
    time.spread = entry.has("spread_s") ? time_of(entry["spread_s"]) : Time();
    time.samples = entry.has("samples") ? entry["samples"].integer(1, kLargest) : 1;
    if (!profile.times.emplace(key, time).second) {
      throw entry.error("this operator stands twice").expected("each operator once");
    }
  }
  return profile;
}

std::string to_profile_json(const OperatorProfile& profile) {
  Json json;
  json["schema"] = kProfileSchema;
  json["gpu"] = profile.gpu;
  if (!profile.driver.empty()) {
    json["driver"] = profile.driver;
  }
  json["libraries"] = Json::object();
  for (const auto& [name, version] : profile.libraries) {
    json["libraries"][name] = version;
  }
  json["operators"] = Json::array();
  for (const auto& [key, time] : profile.times) {
    const KindFields& fields = fields_of(key.kind);
    Json entry;
    entry["kind"] = fields.name;
    entry["precision"] = to_text(key.precision);
    for (std::size_t i = 0; i < fields.sizes.size(); ++i) {
      entry[std::string(fields.sizes[i])] = key.sizes[i];
    }
    if (key.work) {
      entry["work"] = kMemoryWorkNames.at(static_cast<std::size_t>(*key.work));
      entry["backward"] = key.backward;
    }
    if (key.kind == OperatorKind::kAttention) {
      entry["causal"] = key.causal;
      entry["backward"] = key.backward;
      if (!key.fused) {
        entry["fused"] = false;
      }
    }
    entry["median_s"] = time.median.seconds();
    entry["spread_s"] = time.spread.seconds();
    entry["samples"] = time.samples;
    json["operators"].push_back(std::move(entry));
  }
  return to_text(json);
}

}  // namespace lockstep

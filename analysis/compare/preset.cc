#include "analysis/compare/preset.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "analysis/compare/preset_files.h"
#include "base/error.h"
#include "base/file.h"
#include "base/file_record.h"
#include "base/json.h"
#include "base/missing_path.h"
#include "base/text.h"

namespace lockstep::compare {
namespace {

constexpr std::string_view kSchema = "lockstep-fabric/1";

std::vector<std::string> strings_of(const JsonView& view, std::string_view key) {
  std::vector<std::string> out;
  if (view.has(key)) {
    view[key].each([&](const JsonView& each) { out.push_back(each.string()); });
  }
  return out;
}

double within(const JsonView& view, double least, double most) {
  const double value = view.number();
  if (!(value >= least && value <= most)) {
    throw view.error(fmt::format("{} is out of range", value))
        .expected(fmt::format("{} to {}", least, most));
  }
  return value;
}

/// Slingshot's hosts are called x3200c0s13b1n0.
bool is_xname(std::string_view host) {
  constexpr std::string_view kLetters = "xcsbn";
  std::size_t letter = 0;
  for (std::size_t i = 0; i < host.size(); ++i) {
    const bool digit = host[i] >= '0' && host[i] <= '9';
    if (digit) {
      continue;
    }
    if (letter >= kLetters.size() || host[i] != kLetters[letter]) {
      return false;
    }
    ++letter;
  }
  return letter == kLetters.size();
}

/// Whether one of the words stands in the text, not within another word: "efa" is in "4xefa", not
/// in "default".
bool has_word(const std::string& text, std::string_view either) {
  const auto letter = [&](std::size_t i) { return text[i] >= 'a' && text[i] <= 'z'; };
  for (const std::string_view word : split(either, '|')) {
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
      const bool times = at > 1 && text[at - 1] == 'x' && !letter(at - 2);
      if (at == 0 || times || !letter(at - 1)) {
        return true;
      }
    }
  }
  return false;
}

/// How many NVLinks each two GPUs of a server have, where that is not the same for all.
void set_links(const JsonView& view, NcclSystem& system) {
  const std::int32_t gpus = system.gpus_per_server;
  if (!system.fabric.mesh || gpus < 2 || gpus > kMostMeshGpus) {
    throw view.error("these are of GPUs without switches")
        .expected(fmt::format("nvswitch false, nvlink_Bps above 0, 2 to {} GPUs", kMostMeshGpus));
  }
  system.nvlinks.gpus = gpus;
  view.each([&](const JsonView& row) {
    const std::size_t begin = system.nvlinks.count.size();
    row.each([&](const JsonView& count) {
      system.nvlinks.count.push_back(static_cast<std::int32_t>(count.integer(0, 64)));
    });
    if (system.nvlinks.count.size() != begin + static_cast<std::size_t>(gpus)) {
      throw row.error("a GPU's row has another number of GPUs").expected(std::to_string(gpus));
    }
  });
  if (system.nvlinks.count.size() !=
      static_cast<std::size_t>(gpus) * static_cast<std::size_t>(gpus)) {
    throw view.error("another number of rows").expected(std::to_string(gpus) + ", one a GPU");
  }
  for (std::int32_t a = 0; a < gpus; ++a) {
    for (std::int32_t b = 0; b < gpus; ++b) {
      if (system.nvlinks.between(a, b) != (a == b ? 0 : system.nvlinks.between(b, a))) {
        throw view.error(fmt::format("links of GPU {} to {}", a, b))
            .expected(a == b ? "none to itself" : fmt::format("as many as of GPU {} to {}", b, a));
      }
    }
  }
  if (system.nvlinks.most_of_a_gpu() == 0) {
    throw view.error("no link").expected("some, or nvlink_Bps 0");
  }
  system.nvlinks.count_rings();
}

}  // namespace

Preset read_preset(std::string_view text, const std::string& file) {
  const Json json = parse_json(text, file);
  const JsonView view(json, file);
  constexpr std::array<std::string_view, 20> kKeys = {
      "schema",          "name",     "title",           "gpu",          "gpus_per_server",
      "nvlink_Bps",      "nvlinks",  "nvswitch",        "network",      "nic_Bps",
      "nics_per_server", "amd_host", "nic_behind_host", "nccl_version", "nvls",
      "words",           "without",  "rates",           "intervals",    "provenance"};
  view.allow_keys(kKeys);
  if (view["schema"].string() != kSchema) {
    throw view["schema"].error("another kind of file").expected(kSchema);
  }
  Preset preset;
  preset.name = view["name"].string();
  preset.title = view.has("title") ? view["title"].string() : preset.name;
  preset.gpu = view["gpu"].string();
  preset.network = view.has("network") ? view["network"].string() : "";
  NcclSystem& system = preset.system;
  system.fabric.arch = arch_of(preset.gpu);
  system.fabric.grace_host = is_beside_grace(preset.gpu);
  system.gpus_per_server = static_cast<std::int32_t>(view["gpus_per_server"].integer(1, 4096));
  system.nics_per_server = static_cast<std::int32_t>(view["nics_per_server"].integer(1, 4096));
  system.fabric.nics = system.nics_per_server;
  system.fabric.nvlink = Bandwidth::bytes_per_second(within(view["nvlink_Bps"], 0, 1e14));
  system.fabric.nic = Bandwidth::bytes_per_second(within(view["nic_Bps"], 1e6, 1e13));
  system.fabric.nvswitch = view["nvswitch"].boolean();
  system.fabric.mesh = !system.fabric.nvswitch && system.fabric.nvlink > Bandwidth();
  if (view.has("nvlinks")) {
    set_links(view["nvlinks"], system);
  }
  preset.nvls = !view.has("nvls") || view["nvls"].boolean();
  system.fabric.amd_host = view.has("amd_host") && view["amd_host"].boolean();
  system.fabric.nic_behind_host = view.has("nic_behind_host") && view["nic_behind_host"].boolean();
  if (view.has("nccl_version")) {
    preset.nccl_version = view["nccl_version"].string();
    parse_nccl_version(preset.nccl_version);
  }
  preset.words = strings_of(view, "words");
  preset.without = strings_of(view, "without");
  preset.provenance = strings_of(view, "provenance");
  std::vector<std::string_view> names;
  for (const NcclRateField& field : nccl_rate_fields()) {
    names.push_back(field.name);
  }
  view["rates"].allow_keys(names);
  // Overlaps of one kind of collective are those of all where a file does not tell them apart.
  const auto set_if_silent = [&](const char* name, double NcclRates::*rate, double NcclRates::*as) {
    if (!view["rates"].has(name)) {
      system.rates.*rate = system.rates.*as;
    }
  };
  for (const NcclRateField& field : nccl_rate_fields()) {
    if (view["rates"].has(field.name)) {
      system.rates.*field.value =
          within(view["rates"][field.name], field.least * field.unit, field.most * field.unit) /
          field.unit;
    }
    if (view.has("intervals") && view["intervals"].has(field.name)) {
      const JsonView interval = view["intervals"][field.name];
      preset.intervals[std::string(field.name)] = {interval[0].number(), interval[1].number()};
    }
  }
  set_if_silent("local_ring_overlap", &NcclRates::local_ring_overlap, &NcclRates::local_overlap);
  set_if_silent("pair_overlap", &NcclRates::pair_overlap, &NcclRates::network_overlap);
  return preset;
}

std::string to_json_text(const Preset& preset) {
  const NcclFabric& fabric = preset.system.fabric;
  Json json;
  json["schema"] = kSchema;
  json["name"] = preset.name;
  json["title"] = preset.title;
  json["gpu"] = preset.gpu;
  json["gpus_per_server"] = preset.system.gpus_per_server;
  json["nvlink_Bps"] = fabric.nvlink.bytes_per_second();
  for (std::int32_t a = 0; a < preset.system.nvlinks.gpus; ++a) {
    Json row = Json::array();
    for (std::int32_t b = 0; b < preset.system.nvlinks.gpus; ++b) {
      row.push_back(preset.system.nvlinks.between(a, b));
    }
    json["nvlinks"].push_back(std::move(row));
  }
  json["nvswitch"] = fabric.nvswitch;
  if (!preset.nvls) {
    json["nvls"] = false;
  }
  json["network"] = preset.network;
  json["nic_Bps"] = fabric.nic.bytes_per_second();
  json["nics_per_server"] = preset.system.nics_per_server;
  json["amd_host"] = fabric.amd_host;
  if (fabric.nic_behind_host) {
    json["nic_behind_host"] = true;
  }
  if (!preset.nccl_version.empty()) {
    json["nccl_version"] = preset.nccl_version;
  }
  for (const auto& [key, list] :
       {std::pair{"words", &preset.words}, std::pair{"without", &preset.without}}) {
    if (!list->empty()) {
      json[key] = *list;
    }
  }
  for (const NcclRateField& field : nccl_rate_fields()) {
    json["rates"][std::string(field.name)] = preset.system.rates.*field.value * field.unit;
  }
  for (const auto& [name, interval] : preset.intervals) {
    json["intervals"][name] = {interval.low, interval.high};
  }
  json["provenance"] = preset.provenance;
  return to_text(json);
}

const std::vector<Preset>& presets() {
  static const std::vector<Preset> all = [] {
    std::vector<Preset> read;
    for (const PresetFile& file : preset_files()) {
      read.push_back(read_preset(file.text, std::string(file.name)));
    }
    return read;
  }();
  return all;
}

Preset preset_named(const std::string& name_or_file) {
  std::vector<std::string_view> names;
  for (const Preset& preset : presets()) {
    if (preset.name == name_or_file) {
      return preset;
    }
    names.push_back(preset.name);
  }
  if (path_exists(name_or_file)) {
    const FileText file(name_or_file, Bytes(1 << 20));
    return read_preset(file.view(), name_or_file);
  }
  const std::string_view near = closest(name_or_file, names);
  Error error("there is no preset '" + printable(name_or_file) + "', and no such file");
  throw std::move(error)
      .expected(join(names, ", "))
      .hint(!near.empty() ? "did you mean " + std::string(near) + "?"
            : name_or_file.find_first_of("./") != std::string::npos
                ? hint_of_missing(name_or_file)
                : "calibrate writes such files");
}

std::string description_of(const CommSetting& setting) {
  std::string text = setting.gpu_type + " " + setting.transport + " " + setting.id;
  for (const std::string& nic : setting.nics) {
    text += " " + nic;
  }
  if (!setting.hosts.empty() && std::ranges::all_of(setting.hosts, is_xname)) {
    text += " xname";
  }
  const std::int32_t each = setting.servers > 0 ? setting.ranks / setting.servers : 0;
  if (setting.nvls == false && each > 1) {
    text += " mesh";
  }
  return to_lower(text);
}

const Preset* match_preset(const CommSetting& setting) {
  const std::string text = description_of(setting);
  const Preset* best = nullptr;
  for (const Preset& preset : presets()) {
    const bool fits =
        !preset.words.empty() &&
        std::ranges::all_of(preset.words, [&](const auto& word) { return has_word(text, word); }) &&
        std::ranges::none_of(preset.without,
                             [&](const auto& word) { return has_word(text, word); });
    if (fits && (best == nullptr || preset.words.size() > best->words.size())) {
      best = &preset;
    }
  }
  return best;
}

}  // namespace lockstep::compare

#include "planner/metis/profile.h"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <optional>

#include <fmt/format.h>

#include "base/file.h"
#include "base/file_record.h"
#include "base/json.h"
#include "base/missing_path.h"
#include "base/text.h"

namespace lockstep::metis {
namespace {

namespace fs = std::filesystem;

/// A step may be measured to be shorter than its layers, which were measured one by one: by so
/// much, and it is no measurement.
constexpr double kLeastStep = 0.9;

double amount(const JsonView& view) {
  const double value = view.number();
  if (!(value >= 0) || value > 1e18) {
    throw view.error("expected a number from 0 on");
  }
  return value;
}

std::vector<double> amounts(const JsonView& list) {
  std::vector<double> values;
  for (std::size_t i = 0; i < list.size(); ++i) {
    values.push_back(amount(list[i]));
  }
  return values;
}

/// Type, tp and batch of a file name, or nothing.
std::optional<ProfileSet::Key> key_of(std::string_view name) {
  constexpr std::string_view kBegin = "DeviceType.", kEnd = ".json";
  if (!name.starts_with(kBegin) || !name.ends_with(kEnd)) {
    return std::nullopt;
  }
  name = name.substr(kBegin.size(), name.size() - kBegin.size() - kEnd.size());
  const std::size_t batch = name.rfind("_bs");
  const std::size_t tp = name.rfind("_tp", batch);
  if (batch == std::string_view::npos || tp == std::string_view::npos || tp == 0) {
    return std::nullopt;
  }
  const auto tp_value = to_int(name.substr(tp + 3, batch - tp - 3));
  const auto batch_value = to_int(name.substr(batch + 3));
  if (!tp_value || !batch_value || *tp_value < 1 || *tp_value > 1 << 16 || *batch_value < 1) {
    return std::nullopt;
  }
  return ProfileSet::Key{std::string(name.substr(0, tp)), static_cast<int>(*tp_value),
                         *batch_value};
}

/// Times of one model beside those of another make a plan of neither.
void warn_of_models(const std::map<ProfileSet::Key, std::string>& files, ProfileSet& set) {
  const ProfileSet::Key* first = nullptr;
  for (const auto& [key, profile] : set.profiles) {
    if (profile.model_name.empty()) {
      continue;
    }
    if (first == nullptr) {
      first = &key;
    } else if (const std::string& name = set.profiles.at(*first).model_name;
               name != profile.model_name) {
      set.warnings.push_back(fmt::format("{}: of {}, but {} is of {}", printable(files.at(key)),
                                         printable(profile.model_name), printable(files.at(*first)),
                                         printable(name)));
    }
  }
}

}  // namespace

double Profile::sync_ms() const {
  double sum = 0;
  for (const double layer : layer_ms) {
    sum += layer;
  }
  return forward_backward_ms - sum;
}

Profile parse_profile(std::string_view text, const std::string& file) {
  const Json json = parse_json(text, file);
  const JsonView document(json, file);
  const JsonView time = document["execution_time"];
  Profile profile;
  if (const JsonView model = document["model"]; model.has("model_name")) {
    profile.model_name = model["model_name"].string();
  }
  profile.layer_ms = amounts(time["layer_compute_total_ms"]);
  profile.forward_backward_ms = amount(time["forward_backward_time_ms"]);
  profile.optimizer_ms = amount(time["optimizer_time_ms"]);
  profile.batch_generator_ms = amount(time["batch_generator_time_ms"]);
  const JsonView memory = document["execution_memory"]["layer_memory_total_mb"];
  const JsonView bytes = document["model"]["parameters"]["parameters_per_layer_bytes"];
  profile.layer_mb = amounts(memory);
  profile.layer_bytes = amounts(bytes);
  if (profile.layer_ms.size() < 3) {
    throw time["layer_compute_total_ms"].error("expected an embedding, blocks and a head");
  }
  const double layers_ms = std::accumulate(profile.layer_ms.begin(), profile.layer_ms.end(), 0.0);
  if (!(layers_ms > 0)) {
    throw time["layer_compute_total_ms"].error("expected a layer that takes time");
  }
  if (profile.forward_backward_ms < kLeastStep * layers_ms) {
    throw time["forward_backward_time_ms"].error(fmt::format(
        "{} ms, but the layers take {} ms together", profile.forward_backward_ms, layers_ms));
  }
  for (const JsonView& list : {memory, bytes}) {
    if (list.size() != profile.layer_ms.size()) {
      throw list.error(fmt::format("{} layers, but layer_compute_total_ms has {}", list.size(),
                                   profile.layer_ms.size()));
    }
  }
  return profile;
}

const Profile* ProfileSet::find(const std::string& type, int tp, std::int64_t batch) const {
  const auto found = profiles.find({type, tp, batch});
  return found == profiles.end() ? nullptr : &found->second;
}

ProfileSet read_profiles(const std::string& folder, const std::vector<std::string>& types,
                         std::int64_t layers, const std::string& model_file) {
  if (!is_folder(folder)) {
    throw Error("no such folder")
        .at(folder)
        .field("--profiles")
        .expected("profiles of Metis")
        .hint(hint_of_missing(folder));
  }
  ProfileSet set{.folder = folder};
  std::map<ProfileSet::Key, std::string> files;
  FileRecord::note_listed(folder);
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (const auto key = key_of(entry.path().filename().string());
        key && std::find(types.begin(), types.end(), std::get<0>(*key)) != types.end()) {
      const auto [known, fresh] = files.emplace(*key, entry.path().string());
      if (!fresh) {
        const auto [first, second] = std::minmax({known->second, entry.path().string()});
        throw Error(fmt::format("tp {} with {} samples of {} stands twice: here and in {}",
                                std::get<1>(*key), std::get<2>(*key), printable(std::get<0>(*key)),
                                first))
            .at(second)
            .expected("one profile each");
      }
    }
  }
  for (const auto& [key, file] : files) {
    Profile profile = parse_profile(FileText(file, Bytes(1 << 26)).view(), file);
    if (static_cast<std::int64_t>(profile.layer_ms.size()) != layers) {
      throw Error(fmt::format("{} layers, but --layers is {}", profile.layer_ms.size(), layers))
          .at(file);
    }
    set.profiles.emplace(key, std::move(profile));
  }
  warn_of_models(files, set);
  for (const std::string& type : types) {
    if (std::none_of(files.begin(), files.end(),
                     [&](const auto& file) { return std::get<0>(file.first) == type; })) {
      throw Error(fmt::format("no profile of the device type {}", printable(type)))
          .at(folder)
          .field("--profiles")
          .expected(fmt::format("DeviceType.{}_tp1_bs1.json and others", printable(type)))
          .hint("without it no stage can use these GPUs");
    }
  }
  if (!model_file.empty()) {
    const std::string file = (fs::path(folder) / model_file).string();
    set.model = parse_profile(FileText(file, Bytes(1 << 26)).view(), file);
  } else {
    // Keys are sorted by type, tp and batch: the first is the smallest of the first type.
    set.model = set.profiles.begin()->second;
  }
  return set;
}

}  // namespace lockstep::metis

// What nccl-tests writes with -J: one JSON document a run.
#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include "base/cut_json.h"
#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "trace/log_reader.h"
#include "trace/nccl_info.h"
#include "trace/wrapped_size.h"

namespace lockstep {
namespace {

bool sniff(std::string_view head, std::string_view) {
  const std::size_t first = head.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && head[first] == '{' &&
         head.find("\"nccl_version\"") != std::string_view::npos &&
         head.find("\"args\"") != std::string_view::npos &&
         head.find("\"traceEvents\"") == std::string_view::npos;
}

std::string text_of(const Json& json, const char* key) {
  return json.is_object() && json.contains(key) && json[key].is_string()
             ? json[key].get<std::string>()
             : "";
}

double number_of(const Json& json, const char* key) {
  return json.is_object() && json.contains(key) && json[key].is_number() ? json[key].get<double>()
                                                                         : 0;
}

/// "config": {"nthreads": 1, "ngpus": 8}
std::int64_t gpus_of_a_process(const Json& json) {
  std::int64_t gpus = 1;
  for (const char* key : {"nthreads", "ngpus"}) {
    const double number = json.contains("config") ? number_of(json["config"], key) : 0;
    gpus *= std::clamp<std::int64_t>(static_cast<std::int64_t>(std::min(number, 4096.0)), 1, 4096);
  }
  return std::min<std::int64_t>(gpus, 4096);
}

/// Hosts of the ranks that meet: of the first one's group, where the communicator was split.
/// nccl-tests lists the first device of each process, some releases all of them.
void take_devices(const Json& devices, std::int64_t gpus, CommSetting& setting, PhysicalLog& log) {
  std::set<std::pair<std::string, double>> processes;
  std::set<double> groups;
  for (const Json& device : devices) {
    processes.emplace(text_of(device, "hostname"), number_of(device, "pid"));
    groups.insert(number_of(device, "group"));
  }
  constexpr std::size_t kMostRanks = 1 << 20;
  const bool is_first = gpus > 1 && processes.size() == devices.size() &&
                        devices.size() * static_cast<std::size_t>(gpus) <= kMostRanks;
  for (const Json& device : devices) {
    if (number_of(device, "group") == number_of(devices.front(), "group")) {
      setting.hosts.insert(setting.hosts.end(), static_cast<std::size_t>(is_first ? gpus : 1),
                           text_of(device, "hostname"));
    }
    setting.gpu_type = text_of(device, "device_info");
  }
  if (groups.size() > 1) {
    log.warnings.add("the communicator was split: the figures are of the first rank's group");
  }
}

void take_body(const Json& result, const char* key, bool in_place, CommRow row, PhysicalLog& log) {
  if (!result.contains(key) || !result[key].is_object()) {
    return;
  }
  const Json& body = result[key];
  const double us = std::max(number_of(body, "time"), number_of(body, "cpu_time"));
  if (!(us > 0) || us > 1e15) {
    log.warnings.add("results without a time");
    return;
  }
  row.in_place = in_place;
  row.time_s = us * 1e-6;
  row.algbw_Bps = std::clamp(number_of(body, "alg_bw"), 0.0, 1e9) * 1e9;
  row.busbw_Bps = std::clamp(number_of(body, "bus_bw"), 0.0, 1e9) * 1e9;
  row.wrong = std::max(0.0, number_of(body, "nwrong"));
  if (unwrap_size(row, log.warnings)) {
    log.comms.push_back(row);
  }
}

void read(std::string_view text, PhysicalLog& log) {
  const std::optional<std::string> whole = whole_of_cut_json(text);
  if (whole) {
    log.warnings.add("the document ends in the middle, as of a run that was stopped");
  }
  const Json json = parse_json(whole ? *whole : text, log.file);
  CommSetting setting;
  setting.id = log.file.substr(log.file.rfind('/') + 1);
  setting.nccl_version = nccl_version_of_number(
      static_cast<std::int64_t>(std::clamp(number_of(json, "nccl_version"), 0.0, 1e9)));
  for (const char* key : {"env", "args"}) {
    if (json.contains(key) && json[key].is_array()) {
      for (const Json& word : json[key]) {
        if (word.is_string()) {
          take_nccl_environment(word.get_ref<const std::string&>(), setting);
          if (setting.program.empty() && std::string_view(key) == "args") {
            const std::string& program = word.get_ref<const std::string&>();
            setting.program = program.substr(program.rfind('/') + 1);
          }
        }
      }
    }
  }
  const Json* devices = json.contains("devices") ? &json["devices"] : nullptr;
  if (devices == nullptr && json.contains("config") && json["config"].is_object() &&
      json["config"].contains("devices")) {
    devices = &json["config"]["devices"];
  }
  if (devices != nullptr && devices->is_array()) {
    take_devices(*devices, gpus_of_a_process(json), setting, log);
  }
  setting.ranks = static_cast<std::int32_t>(setting.hosts.size());
  setting.servers = static_cast<std::int32_t>(
      std::set<std::string>(setting.hosts.begin(), setting.hosts.end()).size());
  CommType op = comm_type_in(setting.program);
  const CommType hint = take_hints(setting.id, setting);
  op = op == CommType::kNone ? hint : op;
  if (!json.contains("results") || !json["results"].is_array()) {
    throw Error("the document has no results").expected("a list \"results\"");
  }
  TextTable names(log.names);
  CommRow row;
  row.op = op;
  row.name = names.index(setting.program);
  row.ranks = setting.ranks;
  for (const Json& result : json["results"]) {
    if (!result.is_object()) {
      continue;
    }
    row.bytes =
        Bytes(static_cast<std::int64_t>(std::clamp(number_of(result, "size"), -1e18, 1e18)));
    setting.dtype = text_of(result, "type");
    take_body(result, "out_of_place", false, row, log);
    take_body(result, "in_place", true, row, log);
  }
  if (log.comms.empty()) {
    throw Error("the document has no measured size");
  }
  log.settings.push_back(std::move(setting));
}

}  // namespace

extern const LogReader kNcclTestsJsonLogReader;
const LogReader kNcclTestsJsonLogReader{"nccl-tests-json", "nccl-tests' JSON (-J)", sniff, read};

}  // namespace lockstep

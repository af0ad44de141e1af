#include "profiler/measurements.h"

#include <array>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "profiler/statistics.h"

namespace lockstep {
namespace {

constexpr double kLongest = 3600;
constexpr std::int64_t kLargest = std::int64_t{1} << 62;

double amount(const JsonView& object, std::string_view key, double most) {
  if (!object.has(key)) {
    return 0;
  }
  const double value = object[key].number();
  if (!(value >= 0) || value > most) {
    throw object[key].error("out of range").expected(fmt::format("a number from 0 to {}", most));
  }
  return value;
}

std::string text_if(const JsonView& object, std::string_view key) {
  return object.has(key) ? object[key].string() : std::string();
}

Measurement read_one(const JsonView& entry) {
  Measurement one;
  one.kernel = read_kernel(entry);
  std::vector<std::string_view> keys = kernel_keys(one.kernel.kind);
  constexpr std::array<std::string_view, 11> kOwn{
      "samples_s", "median_s",     "low_s",         "high_s",        "spread",    "outliers",
      "algorithm", "clock_low_Hz", "clock_high_Hz", "temperature_C", "peak_bytes"};
  keys.insert(keys.end(), kOwn.begin(), kOwn.end());
  entry.allow_keys(keys);
  entry["samples_s"].each([&](const JsonView& sample) {
    const double seconds = sample.number();
    if (!(seconds >= 0) || seconds > kLongest) {
      throw sample.error("not a time of an operator").expected("seconds from 0 to 3600");
    }
    one.seconds.push_back(seconds);
  });
  if (one.seconds.empty()) {
    throw entry["samples_s"].error("there are no samples");
  }
  one.clock_low_Hz = amount(entry, "clock_low_Hz", 1e12);
  one.clock_high_Hz = amount(entry, "clock_high_Hz", 1e12);
  one.temperature_C = amount(entry, "temperature_C", 1000);
  one.peak = entry.has("peak_bytes") ? Bytes(entry["peak_bytes"].integer(0, kLargest)) : Bytes();
  one.algorithm = text_if(entry, "algorithm");
  return one;
}

MeasuredDevice read_device(const JsonView& view) {
  constexpr std::array<std::string_view, 5> kKeys{"gpu", "driver", "libraries", "multiprocessors",
                                                  "memory_bytes"};
  view.allow_keys(kKeys);
  MeasuredDevice device;
  device.gpu = view["gpu"].string();
  device.driver = text_if(view, "driver");
  if (view.has("libraries")) {
    const JsonView libraries = view["libraries"];
    if (!libraries.json().is_object()) {
      throw libraries.error("not an object").expected(R"({"name": "version", …})");
    }
    for (const auto& item : libraries.json().items()) {
      device.libraries[item.key()] = libraries[item.key()].string();
    }
  }
  device.multiprocessors =
      view.has("multiprocessors") ? view["multiprocessors"].integer(0, 1 << 20) : 0;
  device.memory =
      view.has("memory_bytes") ? Bytes(view["memory_bytes"].integer(0, kLargest)) : Bytes();
  return device;
}

}  // namespace

const Measurement& Measurements::of(const Kernel& kernel) const {
  const auto found = kernels.find(kernel);
  if (found == kernels.end()) {
    throw Error("not measured: " + to_text(kernel))
        .hint("measure this job again, or name the measurements that hold it");
  }
  return found->second;
}

double Measurements::median_s(const Kernel& kernel) const {
  return summarise(of(kernel).seconds).median;
}

std::string to_measurements_json(const Measurements& measurements) {
  Json device;
  device["gpu"] = measurements.device.gpu;
  device["driver"] = measurements.device.driver;
  device["libraries"] = Json::object();
  for (const auto& [name, version] : measurements.device.libraries) {
    device["libraries"][name] = version;
  }
  device["multiprocessors"] = measurements.device.multiprocessors;
  device["memory_bytes"] = measurements.device.memory.count();
  Json json;
  json["schema"] = kMeasurementsSchema;
  json["when"] = measurements.when;
  json["command"] = measurements.command;
  json["device"] = std::move(device);
  json["left_out"] = measurements.left_out;
  json["kernels"] = Json::array();
  for (const auto& [kernel, one] : measurements.kernels) {
    const SampleSummary summary = summarise(one.seconds);
    Json entry;
    write_kernel(kernel, entry);
    entry["median_s"] = summary.median;
    entry["low_s"] = summary.low;
    entry["high_s"] = summary.high;
    entry["spread"] = summary.median > 0 ? summary.spread() / summary.median : 0.0;
    entry["outliers"] = summary.outliers;
    if (!one.algorithm.empty()) {
      entry["algorithm"] = one.algorithm;
    }
    entry["clock_low_Hz"] = one.clock_low_Hz;
    entry["clock_high_Hz"] = one.clock_high_Hz;
    entry["temperature_C"] = one.temperature_C;
    entry["peak_bytes"] = one.peak.count();
    entry["samples_s"] = one.seconds;
    json["kernels"].push_back(std::move(entry));
  }
  return to_text(json);
}

Measurements read_measurements(std::string_view text, const std::string& file) {
  const Json json = parse_json(text, file);
  const JsonView view(json, file);
  if (const JsonView schema = view["schema"]; schema.string() != kMeasurementsSchema) {
    throw schema.error("unknown schema '" + printable(schema.string()) + "'")
        .expected(std::string(kMeasurementsSchema));
  }
  constexpr std::array<std::string_view, 6> kKeys{"schema", "when",     "command",
                                                  "device", "left_out", "kernels"};
  view.allow_keys(kKeys);
  Measurements measurements;
  measurements.device = read_device(view["device"]);
  measurements.when = text_if(view, "when");
  measurements.command = text_if(view, "command");
  if (view.has("left_out")) {
    view["left_out"].each(
        [&](const JsonView& entry) { measurements.left_out.push_back(entry.string()); });
  }
  view["kernels"].each([&](const JsonView& entry) {
    Measurement one = read_one(entry);
    const Kernel kernel = one.kernel;
    if (!measurements.kernels.emplace(kernel, std::move(one)).second) {
      throw entry.error("this kernel stands twice").expected("each kernel once");
    }
  });
  return measurements;
}

}  // namespace lockstep

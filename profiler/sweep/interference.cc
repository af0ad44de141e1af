#include "profiler/sweep/interference.h"

#include <array>

#include <fmt/format.h>

#include "base/json.h"
#include "base/text.h"

namespace lockstep {
namespace {

constexpr std::int64_t kMostBlocks = 1 << 16;
constexpr double kLongest = 3600;

double ratio(double both, double alone) { return alone > 0 ? both / alone : 0; }

double time_of(const JsonView& view) {
  const double seconds = view.number();
  if (!(seconds > 0) || seconds > kLongest) {
    throw view.error("not a time").expected("seconds above 0 to 3600");
  }
  return seconds;
}

}  // namespace

InterferenceTable measure_interference(Device& device, const TimingOptions& options) {
  InterferenceTable table;
  table.device = device.facts();
  table.product = make_kernel(KernelKind::kGemm, Precision::kBf16, {8192, 8192, 8192});
  table.copy_bytes = std::int64_t{256} << 20;
  for (const int blocks : {1, 2, 4, 8, 16, 24, 32, 48, 64}) {
    table.rows.push_back(device.interfere(table.product, table.copy_bytes, blocks, options));
  }
  return table;
}

std::string to_interference_json(const InterferenceTable& table) {
  Json json;
  json["schema"] = kInterferenceSchema;
  json["gpu"] = table.device.gpu;
  json["driver"] = table.device.driver;
  Json product;
  write_kernel(table.product, product);
  json["compute"] = std::move(product);
  json["copy_bytes"] = table.copy_bytes;
  json["rows"] = Json::array();
  for (const InterferenceRow& row : table.rows) {
    json["rows"].push_back({{"copy_blocks", row.copy_blocks},
                            {"compute_s", row.compute_s},
                            {"copy_s", row.copy_s},
                            {"both_compute_s", row.both_compute_s},
                            {"both_copy_s", row.both_copy_s},
                            {"compute_slowdown", ratio(row.both_compute_s, row.compute_s)},
                            {"copy_slowdown", ratio(row.both_copy_s, row.copy_s)}});
  }
  return to_text(json);
}

InterferenceTable read_interference_json(std::string_view text, const std::string& file) {
  const Json json = parse_json(text, file);
  const JsonView view(json, file);
  if (const JsonView schema = view["schema"]; schema.string() != kInterferenceSchema) {
    throw schema.error("unknown schema '" + printable(schema.string()) + "'")
        .expected(std::string(kInterferenceSchema));
  }
  constexpr std::array<std::string_view, 6> kKeys{"schema",  "gpu",        "driver",
                                                  "compute", "copy_bytes", "rows"};
  view.allow_keys(kKeys);
  InterferenceTable table;
  table.device.gpu = view["gpu"].string();
  table.device.driver = view["driver"].string();
  table.product = read_kernel(view["compute"]);
  table.copy_bytes = view["copy_bytes"].integer(1, std::int64_t{1} << 62);
  const JsonView rows = view["rows"];
  rows.each([&](const JsonView& row) {
    constexpr std::array<std::string_view, 7> kRowKeys{
        "copy_blocks", "compute_s",        "copy_s",       "both_compute_s",
        "both_copy_s", "compute_slowdown", "copy_slowdown"};
    row.allow_keys(kRowKeys);
    const int before = table.rows.empty() ? 0 : table.rows.back().copy_blocks;
    table.rows.push_back({static_cast<int>(row["copy_blocks"].integer(before + 1, kMostBlocks)),
                          time_of(row["compute_s"]), time_of(row["copy_s"]),
                          time_of(row["both_compute_s"]), time_of(row["both_copy_s"])});
  });
  if (table.rows.empty()) {
    throw rows.error("empty").expected("a row for each number of thread blocks");
  }
  return table;
}

std::string interference_text(const InterferenceTable& table) {
  std::string text = fmt::format("{}: {} beside a copy of {}\n", table.device.gpu,
                                 to_text(table.product), to_text(Bytes(table.copy_bytes)));
  text += fmt::format("{:>7} {:>12} {:>12} {:>14} {:>14} {:>9} {:>9}\n", "blocks", "compute us",
                      "copy us", "both: compute", "both: copy", "compute x", "copy x");
  for (const InterferenceRow& row : table.rows) {
    text += fmt::format(
        "{:>7} {:>12.2f} {:>12.2f} {:>14.2f} {:>14.2f} {:>9.3f} {:>9.3f}\n", row.copy_blocks,
        row.compute_s * 1e6, row.copy_s * 1e6, row.both_compute_s * 1e6, row.both_copy_s * 1e6,
        ratio(row.both_compute_s, row.compute_s), ratio(row.both_copy_s, row.copy_s));
  }
  return text;
}

}  // namespace lockstep

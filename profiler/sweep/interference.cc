#include "profiler/sweep/interference.h"

#include <fmt/format.h>

#include "base/json.h"

namespace lockstep {
namespace {

double ratio(double both, double alone) { return alone > 0 ? both / alone : 0; }

}  // namespace

InterferenceTable measure_interference(Device& device, const TimingOptions& options) {
  InterferenceTable table;
  table.device = device.facts();
  table.product = make_kernel(KernelKind::kGemm, Precision::kBf16, {8192, 8192, 8192});
  table.copy_bytes = std::int64_t{1} << 30;
  for (const int blocks : {1, 2, 4, 8, 16, 24, 32}) {
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

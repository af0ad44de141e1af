#include "report/compare_report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "analysis/compare/errors.h"
#include "base/json.h"
#include "base/text.h"
#include "report/collective_report.h"

namespace lockstep {
namespace {

using compare::ComparedRow;
using compare::error_statistics;
using compare::ErrorStatistics;
using compare::percent;

/// Rows of one table: the same setting, operation and group.
struct Panel {
  const CommSetting* setting = nullptr;
  std::string op, group;
  std::int32_t ranks = 0, servers = 0;
  std::string preset;
  std::vector<const ComparedRow*> rows;
};

std::vector<Panel> panels_of(const CompareReport& report) {
  std::vector<Panel> panels;
  std::map<std::tuple<const CommSetting*, std::string, std::int32_t, std::int32_t>, std::size_t>
      known;
  for (const ComparedRow& row : report.rows) {
    const auto [at, fresh] = known.try_emplace(
        {row.setting, std::string(row.op_name()), row.task.ranks, row.group}, panels.size());
    if (fresh) {
      panels.push_back({row.setting,
                        std::string(row.op_name()),
                        row.group_name,
                        row.task.ranks,
                        row.task.servers,
                        compare::table_setting(*row.setting, report.wishes).preset.name,
                        {}});
    }
    panels[at->second].rows.push_back(&row);
  }
  return panels;
}

std::string of_group(const Panel& panel) {
  return panel.group.empty() ? "" : " of " + printable(panel.group, 60);
}

ErrorStatistics statistics_of(const std::vector<const ComparedRow*>& rows, bool large, bool small) {
  std::vector<double> errors;
  for (const ComparedRow* row : rows) {
    const bool is_large = row->task.bytes.count() >= (1 << 20);
    if ((is_large && large) || (!is_large && small)) {
      errors.push_back(row->error());
    }
  }
  return error_statistics(errors);
}

/// GB/s.
double busbw_GBps(const ComparedRow& row, double us) {
  return static_cast<double>(row.task.bytes.count()) / us / 1e3 *
         bus_factor(row.task.op, row.task.ranks);
}

std::string way_of(const ComparedRow& row) {
  const NcclChoice& choice = row.predicted.choice;
  return fmt::format("{} {}", our_name(choice.algorithm, row.task.op, row.task.ranks),
                     name_of(choice.protocol));
}

std::string statistics_line(const char* what, const ErrorStatistics& e) {
  return e.rows == 0
             ? ""
             : fmt::format(
                   "{:<14} {:>6} rows   median size {:>7}   p90 {:>7}   bias {:>8}   worst {:>8}\n",
                   what, e.rows, percent(e.median), percent(e.p90), percent(e.bias, true),
                   percent(e.worst, true));
}

}  // namespace

std::string compare_table(const CompareReport& report) {
  constexpr std::size_t kMostRows = 40;
  std::string text;
  std::vector<const ComparedRow*> all;
  for (const Panel& panel : panels_of(report)) {
    text += fmt::format("{}: {}{} on {} GPUs in {} server{}, preset {}\n", panel.setting->id,
                        panel.op, of_group(panel), panel.ranks, panel.servers,
                        panel.servers == 1 ? "" : "s", panel.preset);
    text += fmt::format("{:>14} {:>6} {:>12} {:>9} {:>12} {:>9} {:>9}  {}\n", "bytes", "place",
                        "measured us", "busbw", "predicted us", "busbw", "error", "by");
    const std::size_t stride = (panel.rows.size() + kMostRows - 1) / kMostRows;
    for (std::size_t i = 0; i < panel.rows.size(); ++i) {
      const ComparedRow& row = *panel.rows[i];
      all.push_back(&row);
      if (i % std::max<std::size_t>(1, stride) != 0) {
        continue;
      }
      text += fmt::format("{:>14} {:>6} {:>12.2f} {:>9.2f} {:>12.2f} {:>9.2f} {:>9}  {}\n",
                          row.task.bytes.count(), row.row->in_place ? "in" : "out", row.measured_us,
                          busbw_GBps(row, row.measured_us), row.predicted.time_us,
                          busbw_GBps(row, row.predicted.time_us), percent(row.error(), true),
                          way_of(row));
    }
    if (stride > 1) {
      text += fmt::format("(every {}th of {} rows; --json has all)\n", stride, panel.rows.size());
    }
    text += statistics_line("all sizes", statistics_of(panel.rows, true, true)) + "\n";
  }
  text += statistics_line("all", statistics_of(all, true, true));
  text += statistics_line("1 MiB and more", statistics_of(all, true, false));
  text += statistics_line("below 1 MiB", statistics_of(all, false, true));
  std::ranges::stable_sort(all, [](const ComparedRow* a, const ComparedRow* b) {
    return std::abs(std::log1p(a->error())) > std::abs(std::log1p(b->error()));
  });
  std::size_t shown = 0, wrong = 0;
  for (const ComparedRow* row : all) {
    wrong += row->row->wrong > 0 ? 1U : 0U;
  }
  if (wrong > 0) {
    text += fmt::format("{} rows came out with wrong elements\n", wrong);
  }
  for (const ComparedRow* row : all) {
    if (row->why.empty() || ++shown > 8) {
      break;
    }
    text += fmt::format("{}{}, {}{}, {} bytes {} place: {}: {}\n",
                        shown == 1 ? "worst rows:\n" : "", row->setting->id, row->op_name(),
                        row->group_name.empty() ? "" : " of " + printable(row->group_name, 60),
                        row->task.bytes.count(), row->row->in_place ? "in" : "out of",
                        percent(row->error(), true), row->why);
  }
  return text;
}

std::string compare_json(const CompareReport& report) {
  Json json;
  json["schema"] = "lockstep-compare/1";
  json["logs"] = report.logs;
  json["tables"] = Json::array();
  std::vector<const ComparedRow*> all;
  for (const Panel& panel : panels_of(report)) {
    Json table;
    table["id"] = panel.setting->id;
    table["op"] = panel.op;
    if (!panel.group.empty()) {
      table["group"] = printable(panel.group, 200);
    }
    table["gpus"] = panel.ranks;
    table["servers"] = panel.servers;
    table["preset"] = panel.preset;
    table["gpu_type"] = panel.setting->gpu_type;
    table["nccl_version"] = panel.setting->nccl_version;
    if (!panel.setting->transport.empty()) {
      table["transport"] = printable(panel.setting->transport, 80);
    }
    if (panel.setting->channels > 0) {
      table["channels"] = panel.setting->channels;
    }
    table["nics"] = Json::array();
    for (const std::string& nic : panel.setting->nics) {
      table["nics"].push_back(printable(nic, 80));
    }
    table["rings"] = panel.setting->rings.size();
    table["notes"] = compare::table_setting(*panel.setting, report.wishes).notes;
    table["error"] = to_json(statistics_of(panel.rows, true, true));
    table["rows"] = Json::array();
    for (const ComparedRow* row : panel.rows) {
      all.push_back(row);
      Json line;
      line["size_bytes"] = row->task.bytes.count();
      line["in_place"] = row->row->in_place;
      if (row->row->wrong > 0) {
        line["wrong"] = row->row->wrong;
      }
      line["measured_s"] = row->measured_us * 1e-6;
      line["measured_busbw_Bps"] = busbw_GBps(*row, row->measured_us) * 1e9;
      line["predicted_s"] = row->predicted.time_us * 1e-6;
      line["predicted_busbw_Bps"] = busbw_GBps(*row, row->predicted.time_us) * 1e9;
      line["error"] = row->error();
      line["algorithm"] = our_name(row->predicted.choice.algorithm, row->task.op, row->task.ranks);
      line["protocol"] = name_of(row->predicted.choice.protocol);
      line["channels"] = row->predicted.choice.channels;
      line["latency_s"] = row->predicted.latency_us * 1e-6;
      line["wire_s"] = row->predicted.wire_us * 1e-6;
      if (!row->why.empty()) {
        line["why"] = row->why;
      }
      table["rows"].push_back(std::move(line));
    }
    json["tables"].push_back(std::move(table));
  }
  json["error"] = to_json(statistics_of(all, true, true));
  json["error_from_1MiB"] = to_json(statistics_of(all, true, false));
  json["error_below_1MiB"] = to_json(statistics_of(all, false, true));
  json["warnings"] = Json::array();
  for (const Warnings::Entry& entry : report.warnings.entries()) {
    json["warnings"].push_back(entry.text);
  }
  json["left_out"] = Json::array();
  for (const Warnings::Entry& entry : report.left_out.entries()) {
    json["left_out"].push_back({{"why", entry.text}, {"rows", entry.count}});
  }
  return to_text(json);
}

Picture compare_picture(const CompareReport& report) {
  constexpr double kWidth = 420, kHeight = 275, kLeft = 60, kTop = 55, kPlotWidth = 330,
                   kPlotHeight = 170;
  constexpr Colour kMeasured = {60, 60, 60}, kPredicted = {214, 96, 39}, kFrame = {200, 200, 200};
  std::vector<Panel> panels = panels_of(report);
  panels.resize(std::min<std::size_t>(panels.size(), 12));
  const std::size_t columns = std::min<std::size_t>(3, std::max<std::size_t>(1, panels.size()));
  Picture picture;
  picture.width = kWidth * static_cast<double>(columns);
  picture.height = kHeight * static_cast<double>(
                                 std::max<std::size_t>(1, (panels.size() + columns - 1) / columns));
  for (std::size_t p = 0; p < panels.size(); ++p) {
    const Panel& panel = panels[p];
    const double x0 = kWidth * static_cast<double>(p % columns) + kLeft;
    const double y0 = kHeight * static_cast<double>(p / columns) + kTop;
    double most = 0, low = 1e300, high = 0;
    for (const ComparedRow* row : panel.rows) {
      most = std::max(
          {most, busbw_GBps(*row, row->measured_us), busbw_GBps(*row, row->predicted.time_us)});
      low = std::min(low, std::log2(static_cast<double>(row->task.bytes.count())));
      high = std::max(high, std::log2(static_cast<double>(row->task.bytes.count())));
    }
    most = std::max(most, 1e-6);
    const auto x_of = [&](const ComparedRow& row) {
      const double at = std::log2(static_cast<double>(row.task.bytes.count()));
      return x0 + kPlotWidth * (at - low) / std::max(high - low, 1e-9);
    };
    picture.rectangles.push_back({x0, y0 + kPlotHeight, kPlotWidth, 1, kFrame, ""});
    picture.rectangles.push_back({x0, y0, 1, kPlotHeight, kFrame, ""});
    const auto dot = [&](const ComparedRow& row, double us, Colour colour, const char* what) {
      const double busbw = busbw_GBps(row, us);
      picture.rectangles.push_back({x_of(row) - 2, y0 + kPlotHeight * (1 - busbw / most) - 2, 4, 4,
                                    colour,
                                    fmt::format("{} {} bytes: {:.2f} us, {:.2f} GB/s", what,
                                                row.task.bytes.count(), us, busbw)});
    };
    for (const ComparedRow* row : panel.rows) {
      dot(*row, row->measured_us, kMeasured, "measured");
      dot(*row, row->predicted.time_us, kPredicted, "predicted");
    }
    picture.texts.push_back({x0 + kPlotWidth / 2, y0 - 22,
                             fmt::format("{}{} {} GPUs, {} server{}", panel.op, of_group(panel),
                                         panel.ranks, panel.servers, panel.servers == 1 ? "" : "s"),
                             14, Picture::Anchor::kMiddle, false, kMeasured});
    const std::string& id = panel.setting->id;
    picture.texts.push_back({x0 + kPlotWidth / 2, y0 - 36,
                             printable(id.substr(id.rfind('/') + 1), 48), 11,
                             Picture::Anchor::kMiddle, false, kMeasured});
    picture.texts.push_back(
        {x0 + 4, y0 - 6, "measured", 11, Picture::Anchor::kStart, false, kMeasured});
    picture.texts.push_back(
        {x0 + 80, y0 - 6, "predicted", 11, Picture::Anchor::kStart, false, kPredicted});
    picture.texts.push_back(
        {x0 - 6, y0 + 4, fmt::format("{:.4g}", most), 11, Picture::Anchor::kEnd, false, kMeasured});
    picture.texts.push_back(
        {x0 - 6, y0 + kPlotHeight, "0", 11, Picture::Anchor::kEnd, false, kMeasured});
    picture.texts.push_back({x0 - 40, y0 + kPlotHeight / 2, "busbw GB/s", 11,
                             Picture::Anchor::kMiddle, true, kMeasured});
    picture.texts.push_back({x0, y0 + kPlotHeight + 14, fmt::format("{:.0f} B", std::exp2(low)), 11,
                             Picture::Anchor::kStart, false, kMeasured});
    picture.texts.push_back({x0 + kPlotWidth, y0 + kPlotHeight + 14,
                             fmt::format("{:.0f} B", std::exp2(high)), 11, Picture::Anchor::kEnd,
                             false, kMeasured});
  }
  return picture;
}

}  // namespace lockstep

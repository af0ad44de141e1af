#include "app/plan/aceso_studies.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>

#include "app/plan/aceso_report.h"
#include "app/step_score/csv_table.h"
#include "app/terminal.h"
#include "base/atomic_file.h"
#include "base/file.h"
#include "base/json.h"
#include "report/bar_chart.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

struct Accuracy {
  std::string plan;
  double predicted_ms = 0, actual_ms = 0;
  double predicted_mb = 0, actual_mb = 0;  ///< actual_mb 0: not measured
  double time_error() const { return predicted_ms / actual_ms - 1; }
  double memory_error() const { return predicted_mb / actual_mb - 1; }
};

double positive(const CsvTable& table, std::size_t row, const char* column,
                const std::string& file) {
  const std::optional<double> value = table.number(row, column);
  if (!value || !(*value > 0)) {
    throw Error(fmt::format("row {} of the measurements has no {}", row + 1, column))
        .at(file)
        .field(column)
        .expected("a number above 0");
  }
  return *value;
}

/// The mean iteration of what `lockstep run --json` printed.
double iteration_ms(const std::string& file) {
  const FileText text(file, Bytes(1 << 26));
  const Json document = parse_json(text.view(), file);
  const JsonView view(document, file);
  constexpr std::string_view kSchema = "lockstep-run-summary/1";
  if (const JsonView schema = view["schema"]; schema.string() != kSchema) {
    throw schema.error(fmt::format("expected {}: what 'lockstep run --json' prints", kSchema));
  }
  if (!view.has("iterations")) {
    throw view.error("the run has no whole iteration");
  }
  const JsonView mean = view["iterations"]["mean_s"];
  if (!(mean.number() > 0)) {
    throw mean.error("expected a time above 0");
  }
  return 1000 * mean.number();
}

/// A file that a row of the measurements names, from where these are.
std::string beside(const std::string& measurements, const std::string& named) {
  const fs::path path = named;
  return path.is_absolute() ? named : (fs::path(measurements).parent_path() / path).string();
}

/// A row's `time_ms`; where it has none, the mean iteration of its `run`.
double measured_ms(const CsvTable& table, std::size_t row, const std::string& file) {
  const bool told = table.has("time_ms") && table.number(row, "time_ms");
  if (!told && table.has("run") && !table.text(row, "run").empty()) {
    return iteration_ms(beside(file, table.text(row, "run")));
  }
  return positive(table, row, "time_ms", file);
}

/// Mean size of the errors, in percent.
double mean_percent(const std::vector<double>& errors) {
  double sum = 0;
  for (const double error : errors) {
    sum += std::abs(error);
  }
  return errors.empty() ? 0 : 100 * sum / static_cast<double>(errors.size());
}

std::string accuracy_csv(const std::vector<Accuracy>& rows) {
  std::string text = "plan,predicted_ms,actual_ms,time_error,predicted_mb,actual_mb,memory_error\n";
  for (const Accuracy& row : rows) {
    text += fmt::format("{},{},{},{:.6f},{},", row.plan, row.predicted_ms, row.actual_ms,
                        row.time_error(), row.predicted_mb);
    text +=
        row.actual_mb > 0 ? fmt::format("{},{:.6f}\n", row.actual_mb, row.memory_error()) : ",\n";
  }
  return text;
}

void write_accuracy(const std::string& folder, const std::vector<Accuracy>& rows) {
  make_folder(folder);
  write_file((fs::path(folder) / "accuracy.csv").string(), accuracy_csv(rows));
  BarChart time{
      "Predicted and actual time of an iteration", "ms", {"predicted", "actual"}, {}, {{}, {}}};
  BarChart memory{"Predicted and actual memory", "MB", {"predicted", "actual"}, {}, {{}, {}}};
  for (const Accuracy& row : rows) {
    time.categories.push_back(row.plan);
    time.values[0].push_back(row.predicted_ms);
    time.values[1].push_back(row.actual_ms);
    if (row.actual_mb > 0) {
      memory.categories.push_back(row.plan);
      memory.values[0].push_back(row.predicted_mb);
      memory.values[1].push_back(row.actual_mb);
    }
  }
  write_picture(folder, "accuracy-time", bar_chart(time));
  if (!memory.categories.empty()) {
    write_picture(folder, "accuracy-memory", bar_chart(memory));
  }
}

}  // namespace

ExitCode run_accuracy_study(const AcesoOptions& options,
                            const std::function<PricedFile(const std::string& file)>& price) {
  const FileText text(options.actual, Bytes(1 << 24));
  const CsvTable table(text.view(), options.actual);
  std::vector<Accuracy> rows;
  std::vector<double> time_errors, memory_errors;
  for (std::size_t r = 0; r < table.rows(); ++r) {
    Accuracy row;
    const std::string file = beside(options.actual, table.text(r, "plan"));
    row.plan = fs::path(file).stem().string();
    row.actual_ms = measured_ms(table, r, options.actual);
    if (table.has("memory_mb") && table.number(r, "memory_mb")) {
      row.actual_mb = positive(table, r, "memory_mb", options.actual);
    }
    const PricedFile priced = price(file);
    row.predicted_ms = priced.price.time_ms;
    row.predicted_mb = priced.price.memory_mb;
    time_errors.push_back(row.time_error());
    if (row.actual_mb > 0) {
      memory_errors.push_back(row.memory_error());
    }
    rows.push_back(std::move(row));
  }
  if (rows.empty()) {
    throw Error("there are no measurements")
        .at(options.actual)
        .expected("plan,time_ms,memory_mb, or plan,run,memory_mb");
  }
  if (!options.output.empty()) {
    write_accuracy(options.output, rows);
  }
  if (options.json) {
    Json list = Json::array();
    for (const Accuracy& row : rows) {
      list.push_back(
          {{"plan", row.plan},
           {"predicted_s", row.predicted_ms / 1000},
           {"actual_s", row.actual_ms / 1000},
           {"time_error", row.time_error()},
           {"predicted_bytes", row.predicted_mb * (1 << 20)},
           {"actual_bytes", row.actual_mb > 0 ? Json(row.actual_mb * (1 << 20)) : Json()},
           {"memory_error", row.actual_mb > 0 ? Json(row.memory_error()) : Json()}});
    }
    write_file("-", to_text({{"schema", "lockstep-plan-accuracy/1"},
                             {"cost", options.cost},
                             {"mean_time_error", mean_percent(time_errors) / 100},
                             {"mean_memory_error", mean_percent(memory_errors) / 100},
                             {"plans", std::move(list)}}));
    return ExitCode::kDone;
  }
  std::string out =
      fmt::format("{:<32} {:>12} {:>12} {:>8} {:>12} {:>12} {:>8}\n", "plan", "predicted ms",
                  "actual ms", "error", "predicted MB", "actual MB", "error");
  for (const Accuracy& row : rows) {
    out += fmt::format("{:<32} {:>12.2f} {:>12.2f} {:>+7.2f}%", row.plan, row.predicted_ms,
                       row.actual_ms, 100 * row.time_error());
    out += fmt::format(" {:>12.2f}", row.predicted_mb);
    out += row.actual_mb > 0
               ? fmt::format(" {:>12.2f} {:>+7.2f}%\n", row.actual_mb, 100 * row.memory_error())
               : fmt::format(" {:>12} {:>8}\n", "-", "-");
  }
  out += fmt::format("mean size of the error: time {:.2f} %, memory {:.2f} %\n",
                     mean_percent(time_errors), mean_percent(memory_errors));
  write_file("-", for_terminal(out));
  return ExitCode::kDone;
}

ExitCode run_scaling_study(const AcesoOptions& options, const SearchStop& stop,
                           const std::function<ScalingPoint(std::int64_t layers)>& search) {
  std::vector<ScalingPoint> points;
  for (const std::int64_t layers : options.scaling) {
    points.push_back(search(layers));
    if (stop.asked()()) {
      break;
    }
  }
  std::string csv = "layers,ops,time_ms,samples_per_s,bound_ms,gap,labels,search_cpu_s\n";
  std::string text =
      fmt::format("{:>7} {:>7} {:>12} {:>11} {:>12} {:>8} {:>12} {:>9}\n", "layers", "ops",
                  "time ms", "samples/s", "bound ms", "gap", "labels", "CPU s");
  Json list = Json::array();
  BarChart cost{"CPU time of the search by layers", "s", {"search"}, {}, {{}}};
  BarChart speed{"Throughput of the best plan by layers", "samples/s", {"best plan"}, {}, {{}}};
  for (const ScalingPoint& point : points) {
    const aceso::RankedPlan& best = point.result.plans.front();
    const double gap = best.price.time_ms / point.result.bound_ms - 1;
    csv += fmt::format("{},{},{},{},{},{},{},{}\n", point.layers, point.ops, best.price.time_ms,
                       samples_per_s(best.plan, best.price), point.result.bound_ms, gap,
                       point.result.work, point.cpu_s);
    text += fmt::format("{:>7} {:>7} {:>12.2f} {:>11.2f} {:>12.2f} {:>7.2f}% {:>12} {:>9.2f}\n",
                        point.layers, point.ops, best.price.time_ms,
                        samples_per_s(best.plan, best.price), point.result.bound_ms, 100 * gap,
                        point.result.work, point.cpu_s);
    list.push_back({{"layers", point.layers},
                    {"ops", point.ops},
                    {"time_s", best.price.time_ms / 1000},
                    {"samples_per_s", samples_per_s(best.plan, best.price)},
                    {"bound_s", point.result.bound_ms / 1000},
                    {"gap", gap},
                    {"search_work", point.result.work},
                    {"search_cpu_s", point.cpu_s}});
    cost.categories.push_back(std::to_string(point.layers));
    cost.values[0].push_back(point.cpu_s);
    speed.categories.push_back(std::to_string(point.layers));
    speed.values[0].push_back(samples_per_s(best.plan, best.price));
  }
  if (!options.output.empty() && !stop.interrupted()) {
    make_folder(options.output);
    write_file((fs::path(options.output) / "scaling.csv").string(), csv);
    write_picture(options.output, "scaling-search", bar_chart(cost));
    write_picture(options.output, "scaling-throughput", bar_chart(speed));
  }
  write_file("-", options.json ? to_text({{"schema", "lockstep-plan-scaling/1"},
                                          {"cost", options.cost},
                                          {"points", std::move(list)}})
                               : for_terminal(text));
  return stop.ended("the searches made by now", !options.output.empty());
}

void write_search_tables(const std::string& folder, const std::string& problem,
                         const aceso::SearchResult& result, double cpu_s) {
  const double best = result.plans.front().price.time_ms;
  write_file(
      (fs::path(folder) / "search.csv").string(),
      fmt::format("best_ms,bound_ms,gap,proven,labels,search_cpu_s\n{},{},{},{},{},{}\n", best,
                  result.bound_ms, result.bound_ms > 0 ? best / result.bound_ms - 1 : 0,
                  result.exact ? 1 : 0, result.work, cpu_s));
  BarChart chart{"Throughput by number of stages", "samples/s", {"plan"}, {}, {{}}};
  for (const aceso::RankedPlan& ranked : result.plans) {
    chart.categories.push_back(
        fmt::format("{} stages, microbatch {}", ranked.plan.stages.size(), ranked.plan.microbatch));
    chart.values[0].push_back(samples_per_s(ranked.plan, ranked.price));
  }
  write_picture(folder, "throughput", bar_chart(chart));
  write_picture(folder, "search",
                bar_chart({"CPU time of the search", "s", {"search"}, {problem}, {{cpu_s}}}));
}

}  // namespace lockstep

#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "app/command.h"
#include "app/report_flags.h"
#include "base/atomic_file.h"
#include "report/html/figure.h"

namespace lockstep {
namespace {

constexpr std::string_view kExamples =
    R"(Examples:
  lockstep simulate --model llama3-8b --gpus 16 --tp 2 --pp 4 --global-batch 32 --topology Spectrum-X:g=16 --detail --json > step.json
  lockstep report step.json -o report.html
  lockstep report before.json after.json -o both.html
  lockstep report causes-job.json --figure heatmap.svg
)";

struct Options {
  std::vector<std::string> results;
  ReportFlags output;
  bool list = false;
};

ExitCode run(const Options& options) {
  if (!options.list && !options.output.wanted()) {
    throw Error("nothing is asked for")
        .expected("-o FILE.html, --figure NAME.svg or --list-figures");
  }
  check_report_flags(options.output, options.list ? "the list of figures" : nullptr);
  std::vector<ReportDocument> documents;
  for (const std::string& path : options.results) {
    documents.push_back(read_report_document(path));
  }
  if (options.list) {
    std::string text;
    for (const FigureName& figure : figures_of(documents)) {
      text += fmt::format("{:<18} {}\n", figure.name, figure.title);
    }
    write_file("-", text);
  }
  write_reports(options.output, documents);
  return ExitCode::kDone;
}

CommandBody define(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  app.add_option("results", options->results,
                 "what simulate, whatif, compare, plan, sweep, collective, score or goodput print "
                 "with --json")
      ->required();
  app.add_option("-o,--output,--report", options->output.report,
                 "HTML page to write; - is standard output");
  app.add_option("--figure", options->output.figures,
                 "a figure alone as NAME.svg or NAME.png, or NAME=FILE; may be given several times")
      ->allow_extra_args(false)
      ->take_all();
  app.add_flag("--list-figures", options->list, "the names of the figures that there is data for");
  return [options] { return run(*options); };
}

}  // namespace

extern const Command kReportCommand;
const Command kReportCommand{"report", "Any results to one self-contained HTML page, or to figures",
                             kExamples, define};

}  // namespace lockstep

#include <memory>

#include <CLI/CLI.hpp>

#include "analysis/compare/score.h"
#include "app/compare/compare_options.h"
#include "base/atomic_file.h"

namespace lockstep {

CommandBody define_score(CLI::App& app) {
  struct Flags {
    ClusterFlags cluster;
    std::string folder, output = "-";
    bool json = false;
  };
  auto flags = std::make_shared<Flags>();
  app.add_option("folder", flags->folder,
                 "folder of measurements: index.csv and tables.csv, or logs")
      ->required();
  app.add_option("-o,--output", flags->output, "file to write; - is standard output")
      ->capture_default_str();
  app.add_flag("--json", flags->json, "one JSON document in place of Markdown");
  define_cluster_flags(app, flags->cluster);
  return [flags] {
    const compare::Score score = compare::score_folder(flags->folder, wishes_of(flags->cluster));
    write_file(flags->output,
               flags->json ? compare::score_json(score) : compare::score_markdown(score));
    return ExitCode::kDone;
  };
}

}  // namespace lockstep

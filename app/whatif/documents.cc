#include "app/whatif/documents.h"

#include <filesystem>

#include <fmt/format.h>

#include "analysis/whatif/timelines.h"
#include "base/atomic_file.h"
#include "base/record_gzip.h"
#include "report/heat_map.h"
#include "trace/perfetto_proto.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using namespace whatif;

std::string name_of(const std::string& kind, const std::string& trial_name,
                    const std::string& ending) {
  return kind + "-" + trial_name + ending;
}

std::string path_of(const JobAnalysis& job, const std::string& folder, const std::string& kind,
                    const std::string& ending) {
  return (fs::path(folder) / name_of(kind, job.result.meta.trial_name, ending)).string();
}

}  // namespace

void compare_with_meta(const OpTable& table, const JobMeta& meta, const std::string& meta_file,
                       Warnings& warnings) {
  if (table.dp != meta.dp_size || table.stages != meta.pp_size) {
    warnings.add(
        fmt::format("{}: dp_size {} and pp_size {}, but the trace has {} dp_ranks and {} "
                    "stages; the trace's are used",
                    meta_file, meta.dp_size, meta.pp_size, table.dp, table.stages));
  }
  // One recorded rank of a group says nothing about its size.
  if ((table.tp > 1 && table.tp != meta.tp_size) || (table.cp > 1 && table.cp != meta.dsp_size)) {
    warnings.add(
        fmt::format("{}: tp_size {} and dsp_size {}, but the trace has {} tp_ranks and {} "
                    "cp_ranks; the trace's are used",
                    meta_file, meta.tp_size, meta.dsp_size, table.tp, table.cp));
  }
}

std::vector<std::string> document_names(const std::string& trial_name) {
  std::vector<std::string> names;
  const auto add = [&](const char* kind, const char* ending) {
    names.push_back(name_of(kind, trial_name, ending));
  };
  for (const char* kind : {"result", "ms", "mw", "causes"}) {
    add(kind, ".json");
  }
  for (const char* kind : {"heatmap", "heatmap-exact"}) {
    add(kind, ".svg");
    add(kind, ".png");
  }
  return names;
}

void write_documents(const JobAnalysis& job, const std::string& folder) {
  make_folder(folder);
  const auto write = [&](const std::string& kind, const std::string& ending,
                         const std::string& text) {
    write_file(path_of(job, folder, kind, ending), text);
  };
  const auto write_heat_map = [&](const std::string& kind, const std::vector<double>& slowdown) {
    const Picture picture = heat_map(slowdown, {job.table.dp, job.table.cp, job.table.tp});
    write(kind, ".svg", to_svg(picture));
    write(kind, ".png", to_png(picture));
  };
  write("result", ".json", result_json(job.result));
  write("ms", ".json", contribution_json(job.shares.stage, "Ms"));
  write("mw", ".json", contribution_json(job.shares.workers, "Mw"));
  write_heat_map("heatmap", job.approximate);
  write_heat_map("heatmap-exact", job.workers.ratio);
  write("causes", ".json", causes_json(job.causes, job.table, job.result.meta));
}

void write_timelines(const JobAnalysis& job, const std::string& folder, bool perfetto) {
  make_folder(folder);
  if (perfetto) {
    for (const bool ideal : {false, true}) {
      write_perfetto_proto(
          whatif_timeline(job.scene, job.trace, ideal),
          path_of(job, folder, ideal ? "ideal-timeline" : "timeline", ".pftrace.gz"));
    }
    return;
  }
  RecordGzip timeline(path_of(job, folder, "timeline", ".json.gz"));
  write_timeline(job.scene, job.trace, timeline);
  timeline.commit();
  RecordGzip ideal(path_of(job, folder, "ideal-timeline", ".json.gz"));
  write_ideal_timeline(job.scene, job.trace, ideal);
  ideal.commit();
}

}  // namespace lockstep

#include "workloads/read_workload.h"

#include "base/error.h"
#include "base/gunzip.h"
#include "workloads/chakra_et.h"
#include "workloads/simai_txt.h"
#include "workloads/workload_json.h"

namespace lockstep {

Workload read_workload(const std::string& path, Warnings* warnings) {
  if (const std::vector<std::string> traces = chakra_files(path); !traces.empty()) {
    return read_chakra_et(traces, warnings);
  }
  const UnpackedText file(path);
  const std::string_view text = file.view();
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (text.starts_with("comm_type,comm_group,")) {
    throw Error("AICB's CSV is what one rank does, without the times of its computations")
        .at(path, 1)
        .expected("SimAI's text, our JSON or Chakra traces")
        .hint("'lockstep run' carries it out; --generator simai-training writes what is simulated");
  }
  if (first == std::string_view::npos || text[first] != '{') {
    return read_simai_txt(text, path, warnings);
  }
  return read_workload_json(text, path);
}

}  // namespace lockstep

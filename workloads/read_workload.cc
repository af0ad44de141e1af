#include "workloads/read_workload.h"

#include "base/error.h"
#include "base/file.h"
#include "workloads/simai_txt.h"
#include "workloads/workload_json.h"

namespace lockstep {
namespace {

/// A parsed JSON document takes about fifteen times its text.
constexpr std::size_t kMaxJson = std::size_t{256} << 20;

}  // namespace

Workload read_workload(const std::string& path, Warnings* warnings) {
  const FileText file(path);
  const std::string_view text = file.view();
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || text[first] != '{') {
    return read_simai_txt(text, path, warnings);
  }
  if (text.size() > kMaxJson) {
    throw Error("the JSON document is too large")
        .at(path)
        .expected("at most 256 MiB; SimAI's text may be of any size");
  }
  return read_workload_json(text, path);
}

}  // namespace lockstep

#include "workloads/read_workload.h"

#include "base/file.h"
#include "workloads/simai_txt.h"

namespace lockstep {

Workload read_workload(const std::string& path, Warnings* warnings) {
  const FileText file(path);
  return read_simai_txt(file.view(), path, warnings);
}

}  // namespace lockstep

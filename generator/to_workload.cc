#include "generator/to_workload.h"

#include "workloads/simai_txt.h"
#include "workloads/validate.h"

namespace lockstep {

Workload to_workload(const GeneratedWorkload& generated) {
  Workload workload = read_simai_txt(to_text(generated), generated.file_name);
  validate(workload);
  return workload;
}

}  // namespace lockstep

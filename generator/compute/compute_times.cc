#include "generator/compute/compute_times.h"

#include <string>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "generator/compute/roofline.h"
#include "generator/compute/sustained.h"

namespace lockstep {
namespace {

std::string_view type_named(const std::string& text) {
  const GpuSpec* gpu = find_gpu_spec(text);
  return gpu == nullptr ? std::string_view() : gpu->name;
}

}  // namespace

ComputeTimes::ComputeTimes(const GpuSpec& gpu, Precision precision,
                           std::optional<OperatorProfile> profile)
    : gpu_(under_load(gpu)), precision_(precision), profile_(std::move(profile)) {
  peak_flops(gpu, precision);
  if (profile_) {
    const std::string_view type = type_named(profile_->gpu);
    if (!type.empty() && type != gpu.name) {
      throw Error("the profile was measured on '" + printable(profile_->gpu) +
                  "', the job runs on " + std::string(gpu.name))
          .expected("a profile of the job's GPU type");
    }
  }
}

Time ComputeTimes::operator()(const Operator& op) {
  if (profile_) {
    const auto measured = profile_->find(key_of(op, precision_of(op, precision_)));
    if (measured) {
      ++counts_.measured;
      return measured->median;
    }
  }
  const Time time = operator_time(op, gpu_, precision_);
  ++counts_.modelled;
  return time;
}

}  // namespace lockstep

#include "generator/compute/compute_times.h"

#include <string>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "generator/compute/between_measured.h"
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
                           std::shared_ptr<const OperatorProfile> profile)
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
  if (profile_ && is_all_in_its_key(op)) {
    const Precision precision = precision_of(op, precision_);
    const OperatorKey key = key_of(op, precision);
    if (const auto measured = profile_->find(key)) {
      ++counts_.measured;
      return measured->median;
    }
    const auto [known, is_new] = between_.try_emplace(key);
    if (is_new) {
      known->second = between_measured(*profile_, op, precision, [&](const Operator& other) {
        return operator_time(other, gpu_, precision_);
      });
    }
    if (known->second) {
      ++counts_.between;
      return *known->second;
    }
  }
  const Time time = operator_time(op, gpu_, precision_);
  ++counts_.modelled;
  return time;
}

}  // namespace lockstep

#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "profiler/kernel.h"

namespace lockstep {

inline constexpr std::string_view kMeasurementsSchema = "lockstep-measurements/1";

/// The machine that was measured, as far as it tells.
struct MeasuredDevice {
  std::string gpu, driver;
  std::map<std::string, std::string> libraries;  ///< "cublasLt" -> "13.0.0"
  std::int64_t multiprocessors = 0;              ///< 0: not known
  Bytes memory;
  friend bool operator==(const MeasuredDevice&, const MeasuredDevice&) = default;
};

/// Every timing of one kernel, and what the GPU was like meanwhile.
struct Measurement {
  Kernel kernel;
  std::vector<double> seconds;                 ///< one a run, in the order of the runs
  double clock_low_Hz = 0, clock_high_Hz = 0;  ///< of the SMs, before and after; 0: not known
  double temperature_C = 0;                    ///< highest of them; 0: not known
  Bytes peak;                                  ///< memory held, workspace included
  std::string algorithm;                       ///< what a search chose; may be empty
  friend bool operator==(const Measurement&, const Measurement&) = default;
};

/// All measurements of one run of `lockstep profile`: what every other output is made from.
struct Measurements {
  MeasuredDevice device;
  std::string when;     ///< UTC, ISO 8601
  std::string command;  ///< as it was given
  std::map<Kernel, Measurement> kernels;
  std::vector<std::string> left_out;  ///< kernels that could not be timed, and why

  /// ERRORS: Error naming the kernel, if it was not measured.
  const Measurement& of(const Kernel& kernel) const;
  bool has(const Kernel& kernel) const { return kernels.contains(kernel); }
  /// Median time. ERRORS: as of().
  double median_s(const Kernel& kernel) const;
  friend bool operator==(const Measurements&, const Measurements&) = default;
};

/// docs/formats/measurements.md. Kernels in ascending order: the same measurements are the same
/// text, and reading it gives them back. Summaries (median, quartiles, outliers) are written beside
/// the samples for people and are worked out again when read.
std::string to_measurements_json(const Measurements& measurements);
/// ERRORS: Error with the file and the place in the document: another schema, unknown or wrong
/// fields, a kernel that stands twice, no samples.
Measurements read_measurements(std::string_view text, const std::string& file);

}  // namespace lockstep

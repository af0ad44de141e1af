#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/units.h"
#include "generator/job.h"

namespace lockstep {

/// Kinds of GPUs whose kernels behave alike, as far as the roofline's efficiencies go.
enum class GpuFamily : std::uint8_t { kVolta, kAmpere, kHopper, kBlackwell, kCdna3 };

/// What the vendor says about one type of GPU. Rates are per GPU, in FLOP/s and without structured
/// sparsity; 0 means that the GPU has no units for it.
struct GpuSpec {
  std::string_view name;  ///< "H100"; unique but for case
  GpuFamily family = GpuFamily::kHopper;
  double fp32 = 0;  ///< vector units
  double tf32 = 0;  ///< matrix units, fp32 in and out
  double fp16 = 0;  ///< matrix units, fp32 accumulation
  double bf16 = 0;  ///< as fp16
  double fp8 = 0;   ///< matrix units, fp32 accumulation
  Bandwidth memory_bandwidth;
  Bytes memory;
  int multiprocessors = 0;  ///< SMs (NVIDIA) or compute units (AMD) that are switched on
  Bandwidth nvlink;         ///< all NVLinks (Infinity Fabric's links) of a GPU, per direction
  std::string_view source;  ///< which documents the figures are from, and pages that repeat them
  /// What no page that was looked at has, or has otherwise; empty: all is there.
  std::string_view unconfirmed = {};
  double vector_share = 1;  ///< of what kernels that SMs hold up put through; under_load() sets it
};

/// All known types, in the order of the vendors' generations.
std::span<const GpuSpec> gpu_specs();

/// The type of that name; case, '-', '_' and blanks do not count, and a form factor or kind of
/// memory after the name ("nvidia a100 sxm4") is passed over. A size of memory must be the type's
/// within 8 % ("H100-SXM5-80GB"; "A100-SXM4-40GB" is A100-40GB, "H100-94GB" is none).
///
/// ERRORS: Error that lists the known types, with the nearest one as a hint.
const GpuSpec& gpu_spec(std::string_view name);
/// The same, or nullptr.
const GpuSpec* find_gpu_spec(std::string_view name);

/// Whether it has units for that precision.
bool supports(const GpuSpec& gpu, Precision precision);

/// Peak FLOP/s of matrix products in `precision`. fp32 is TF32 where the GPU has it, which is what
/// training frameworks are told to use; else the vector units.
///
/// ERRORS: Error that names the GPUs that have the precision, where this one has not.
double peak_flops(const GpuSpec& gpu, Precision precision);

/// The name in flags and files: "bf16", "fp16", "fp32", "fp8".
std::string_view to_text(Precision precision);
std::optional<Precision> precision_of(std::string_view text);

}  // namespace lockstep

#include "generator/compute/gpu_spec.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {
namespace {

constexpr double kTera = 1e12;
constexpr Bytes gb(std::int64_t v) { return Bytes(v * 1'000'000'000); }
constexpr Bandwidth gigabytes(std::int64_t v) { return Bandwidth::gbps(8 * v); }

// Data sheets that state rates with sparsity are halved. Powers of ten throughout.
constexpr std::array kSpecs{
    GpuSpec{"V100", GpuFamily::kVolta, 15.7 * kTera, 0, 125 * kTera, 0, 0, gigabytes(900), gb(32),
            80, gigabytes(150),
            "NVIDIA V100 data sheet (SXM2); https://ozyphus.github.io/gpu-maths.html",
            "number of SMs"},
    GpuSpec{"V100-16GB", GpuFamily::kVolta, 15.7 * kTera, 0, 125 * kTera, 0, 0, gigabytes(900),
            gb(16), 80, gigabytes(150), "NVIDIA V100 data sheet (SXM2, 16 GB)", "number of SMs"},
    GpuSpec{"A100-40GB", GpuFamily::kAmpere, 19.5 * kTera, 156 * kTera, 312 * kTera, 312 * kTera, 0,
            gigabytes(1555), gb(40), 108, gigabytes(300),
            "NVIDIA A100 Tensor Core GPU data sheet (SXM4, 40 GB); Azure's ND A100 v4, AWS's p4d",
            "tf32"},
    GpuSpec{"A100", GpuFamily::kAmpere, 19.5 * kTera, 156 * kTera, 312 * kTera, 312 * kTera, 0,
            gigabytes(2039), gb(80), 108, gigabytes(300),
            "NVIDIA A100 80GB data sheet (SXM4); https://ozyphus.github.io/gpu-maths.html", "tf32"},
    GpuSpec{"A800", GpuFamily::kAmpere, 19.5 * kTera, 156 * kTera, 312 * kTera, 312 * kTera, 0,
            gigabytes(2039), gb(80), 108, gigabytes(200),
            "NVIDIA A800 80GB data sheet: an A100 with less NVLink",
            "all of it: no page about the A800 was found"},
    GpuSpec{"H100", GpuFamily::kHopper, 66.9 * kTera, 494.7 * kTera, 989.4 * kTera, 989.4 * kTera,
            1978.9 * kTera, gigabytes(3350), gb(80), 132, gigabytes(450),
            "NVIDIA H100 architecture white paper (SXM5); "
            "https://glennklockwood.com/garden/processors/h100"},
    GpuSpec{"H800", GpuFamily::kHopper, 66.9 * kTera, 494.7 * kTera, 989.4 * kTera, 989.4 * kTera,
            1978.9 * kTera, gigabytes(3350), gb(80), 132, gigabytes(200),
            "NVIDIA H800 data sheet (SXM5): an H100 with less NVLink and FP64; "
            "bf16, memory and its bandwidth in the reports on FlashMLA and DeepSeek-V3",
            "fp32, tf32, number of SMs"},
    GpuSpec{"H20", GpuFamily::kHopper, 44 * kTera, 74 * kTera, 148 * kTera, 148 * kTera,
            296 * kTera, gigabytes(4000), gb(96), 78, gigabytes(450),
            "https://zangshuxian.com/new/674733024499207168; "
            "https://willitrunai.com/es/gpus/h20-96gb",
            "fp8: twice bf16, as its int8"},
    GpuSpec{"H200", GpuFamily::kHopper, 66.9 * kTera, 494.7 * kTera, 989.4 * kTera, 989.4 * kTera,
            1978.9 * kTera, gigabytes(4800), gb(141), 132, gigabytes(450),
            "NVIDIA H200 data sheet (SXM5), the H100's chip; "
            "https://itkb.uw.cz/2026/06/nvidia-h200-vs-b300-precisions-cores.html"},
    GpuSpec{
        "B200", GpuFamily::kBlackwell, 75 * kTera, 1125 * kTera, 2250 * kTera, 2250 * kTera,
        4500 * kTera, gigabytes(7700), gb(180), 148, gigabytes(900),
        "NVIDIA HGX B200 data sheet, a GPU of eight (1000 W); "
        "https://rooflinenotes.dev/accelerators/, "
        "https://glennklockwood.com/garden/processors/B200; these have 8 TB/s, later sheets too",
        "fp32 and tf32: the second page has 80 and 1100"},
    GpuSpec{"GB200", GpuFamily::kBlackwell, 80 * kTera, 1250 * kTera, 2500 * kTera, 2500 * kTera,
            5000 * kTera, gigabytes(8000), gb(186), 148, gigabytes(900),
            "NVIDIA GB200 NVL72 data sheet, one of 72 GPUs (1200 W); "
            "https://glennklockwood.com/garden/processors/B200",
            "fp32: the page has 90; memory: 186 of 192 GB"},
    GpuSpec{
        "B300", GpuFamily::kBlackwell, 75 * kTera, 1125 * kTera, 2250 * kTera, 2250 * kTera,
        4500 * kTera, gigabytes(8000), gb(288), 148, gigabytes(900),
        "NVIDIA HGX B300 data sheet; memory at "
        "https://itkb.uw.cz/2026/06/nvidia-h200-vs-b300-precisions-cores.html",
        "rates: the page has 3500 and 7000 for bf16 and fp8, others 2250 and 4500; number of SMs"},
    GpuSpec{"GB300", GpuFamily::kBlackwell, 80 * kTera, 1250 * kTera, 2500 * kTera, 2500 * kTera,
            5000 * kTera, gigabytes(8000), gb(279), 148, gigabytes(900),
            "https://verda.com/blog/gb300-nvl72-architecture; rack totals at "
            "https://glennklockwood.com/garden/processors/B300 (360 PF of fp8, 20 TB)",
            "number of SMs: taken over from the B300, other pages have 160; memory: 279 of 288 GB"},
    GpuSpec{"MI300X", GpuFamily::kCdna3, 163.4 * kTera, 653.7 * kTera, 1307.4 * kTera,
            1307.4 * kTera, 2614.9 * kTera, gigabytes(5300), gb(192), 304, gigabytes(448),
            "AMD Instinct MI300X data sheet; "
            "https://gpu.blog/gpus/instinct-mi300x-mi300x (memory, CUs), "
            "https://rooflinenotes.dev/accelerators/ (rates)",
            "fp32, tf32"},
};

std::string letters_and_digits(std::string_view text) {
  std::string kept;
  for (const char c : to_lower(text)) {
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
      kept += c;
    }
  }
  return kept;
}

double rate(const GpuSpec& gpu, Precision precision) {
  switch (precision) {
    case Precision::kBf16:
      return gpu.bf16;
    case Precision::kFp16:
      return gpu.fp16;
    case Precision::kFp32:
      return gpu.tf32 > 0 ? gpu.tf32 : gpu.fp32;
    case Precision::kFp8:
      return gpu.fp8;
  }
  return 0;
}

void skip(std::string_view& text, std::string_view word) {
  text.remove_prefix(text.starts_with(word) ? word.size() : 0);
}

std::size_t leading_digits(std::string_view text) {
  return std::min(text.find_first_not_of("0123456789"), text.size());
}

/// The memory in GB that a text (letters and digits) says behind a GPU's name, 0 where it says
/// nothing of it: "a100sxm440gb", "h10080gbhbm3". Nothing if it is another GPU's.
std::optional<std::int64_t> memory_in(std::string_view text, std::string_view name) {
  for (const std::string_view vendor : {"nvidia", "amd", "instinct", "tesla"}) {
    skip(text, vendor);
  }
  if (!text.starts_with(name)) {
    return std::nullopt;
  }
  std::int64_t gigabytes = 0;
  text.remove_prefix(name.size());
  if (text.starts_with("sxm")) {
    text.remove_prefix(3);
    const bool version = !text.empty() && text.front() >= '2' && text.front() <= '6';
    text.remove_prefix(version && leading_digits(text) != 2 ? 1 : 0);  // "sxm440gb", but "sxm40gb"
  }
  if (const std::size_t digits = leading_digits(text);
      digits > 1 && text.front() != '0' && text.substr(digits).starts_with("gb")) {
    gigabytes = to_int(text.substr(0, digits)).value_or(0);
    text.remove_prefix(digits + 2);
  }
  for (const std::string_view memory : {"hbm2e", "hbm3e", "hbm2", "hbm3"}) {
    skip(text, memory);
  }
  return text.empty() ? std::optional(gigabytes) : std::nullopt;
}

/// "a100" of "A100-40GB".
std::string base_name(const GpuSpec& gpu) {
  return letters_and_digits(gpu.name.substr(0, gpu.name.find('-')));
}

}  // namespace

std::span<const GpuSpec> gpu_specs() { return kSpecs; }

const GpuSpec* find_gpu_spec(std::string_view name) {
  constexpr double kSameMemory = 0.08;  // what is sold as 192 GB may have 180 for its user
  const std::string wanted = letters_and_digits(name);
  const GpuSpec* found = nullptr;
  double nearest = kSameMemory;
  for (const GpuSpec& gpu : kSpecs) {
    const auto memory = memory_in(wanted, base_name(gpu));
    if (!memory) {
      continue;
    }
    if (*memory == 0 && gpu.name.find('-') == gpu.name.npos) {
      return &gpu;
    }
    const double has = static_cast<double>(gpu.memory.count()) / 1e9;
    const double off = std::abs(static_cast<double>(*memory) / has - 1);
    if (*memory > 0 && off <= nearest) {
      nearest = off;
      found = &gpu;
    }
  }
  return found;
}

const GpuSpec& gpu_spec(std::string_view name) {
  if (const GpuSpec* gpu = find_gpu_spec(name)) {
    return *gpu;
  }
  std::vector<std::string_view> known;
  known.reserve(std::size(kSpecs));
  for (const GpuSpec& gpu : kSpecs) {
    known.push_back(gpu.name);
  }
  Error error =
      Error("unknown GPU type '" + printable(name) + "'").expected("one of " + join(known, ", "));
  const std::string_view near = closest(letters_and_digits(name), known);
  if (near.empty()) {
    throw error;
  }
  throw std::move(error).hint("did you mean " + std::string(near) + "?");
}

bool supports(const GpuSpec& gpu, Precision precision) { return rate(gpu, precision) > 0; }

double peak_flops(const GpuSpec& gpu, Precision precision) {
  const double peak = rate(gpu, precision);
  if (peak > 0) {
    return peak;
  }
  std::vector<std::string_view> able;
  for (const GpuSpec& other : kSpecs) {
    if (rate(other, precision) > 0) {
      able.push_back(other.name);
    }
  }
  throw Error(std::string(gpu.name) + " has no " + std::string(to_text(precision)))
      .expected("a GPU that has it: " + join(able, ", "));
}

std::string_view to_text(Precision precision) {
  switch (precision) {
    case Precision::kBf16:
      return "bf16";
    case Precision::kFp16:
      return "fp16";
    case Precision::kFp32:
      return "fp32";
    case Precision::kFp8:
      return "fp8";
  }
  return "";
}

std::optional<Precision> precision_of(std::string_view text) {
  for (const Precision precision :
       {Precision::kBf16, Precision::kFp16, Precision::kFp32, Precision::kFp8}) {
    if (to_lower(text) == to_text(precision)) {
      return precision;
    }
  }
  return std::nullopt;
}

}  // namespace lockstep

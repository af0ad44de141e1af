#include "app/health.h"

#include <array>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <thread>

#include <fmt/format.h>

#include "app/build_facts.h"
#include "base/error.h"
#include "base/find_program.h"
#include "base/process.h"
#include "base/text.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

HealthCheck good(std::string_view part, std::string detail) {
  return {part, HealthState::kGood, std::move(detail), ""};
}
HealthCheck absent(std::string_view part, std::string detail, std::string mend) {
  return {part, HealthState::kAbsent, std::move(detail), std::move(mend)};
}
HealthCheck broken(std::string_view part, std::string detail, std::string mend) {
  return {part, HealthState::kBroken, std::move(detail), std::move(mend)};
}

/// A library opened at run time, so that this program also starts where it is missing.
class SharedLibrary {
 public:
  explicit SharedLibrary(const char* name) : handle_(::dlopen(name, RTLD_LAZY | RTLD_LOCAL)) {}
  ~SharedLibrary() {
    if (handle_ != nullptr) {
      ::dlclose(handle_);
    }
  }
  SharedLibrary(const SharedLibrary&) = delete;
  SharedLibrary& operator=(const SharedLibrary&) = delete;

  bool found() const { return handle_ != nullptr; }

  /// Calls a C function that returns 0 on success; false if it is missing or fails.
  template <class... Arguments>
  bool call(const char* name, Arguments... arguments) const {
    const auto function = reinterpret_cast<int (*)(Arguments...)>(::dlsym(handle_, name));
    return function != nullptr && function(arguments...) == 0;
  }

 private:
  void* handle_;
};

HealthCheck check_program() {
  const BuildFacts& facts = build_facts();
  return good("lockstep", fmt::format("{}, {}, {}; {} threads here", facts.version, facts.compiler,
                                      facts.build_type, std::thread::hardware_concurrency()));
}

HealthCheck check_packet_program() {
  constexpr std::string_view kPart = "packet engine";
  const fs::path program = find_program("lockstep-packet");
  if (program.empty()) {
    return absent(kPart, "lockstep-packet is neither beside this program nor on PATH",
                  "./setup installs ns-3; then configure and build again");
  }
  constexpr const char* kMend = "build it again: cmake --build build --target lockstep-packet";
  try {
    const ProcessResult answer =
        run_process({program.string(), "--version"}, {.environment = {}, .seconds = 20});
    if (answer.exit_code != 0) {
      return broken(kPart,
                    fmt::format("{} ends with {}: {}", program.string(), answer.exit_code,
                                printable(trim(answer.err), 200)),
                    kMend);
    }
    const std::vector<std::string_view> lines = split(answer.out, '\n');
    const std::string expected = fmt::format("lockstep-packet {} ", build_facts().version);
    if (!lines[0].starts_with(expected) || lines.size() < 2) {
      return broken(
          kPart,
          fmt::format("{} says '{}', not '{}…'", program.string(), printable(lines[0]), expected),
          kMend);
    }
    const std::vector<std::string_view> words = split_blanks(lines[1]);
    return good(kPart, fmt::format("{} with {}", program.string(), join(words, " ")));
  } catch (const Error& error) {
    return broken(kPart, error.what(), kMend);
  }
}

HealthCheck check_arrow() {
  const std::string_view version = build_facts().arrow;
  return version.empty() ? absent("Arrow", "not built in: Parquet files cannot be used",
                                  "./setup installs it; then configure and build again")
                         : good("Arrow", std::string(version));
}

HealthCheck check_mpi() {
  const std::string_view version = build_facts().mpi;
  return version.empty() ? absent("MPI", "not built in: sweeps run in one process",
                                  "./setup installs it; then configure and build again")
                         : good("MPI", std::string(version));
}

HealthCheck check_report() {
  constexpr std::string_view kPart = "reports";
  const std::string_view version = build_facts().echarts;
  if (version.empty()) {
    return absent(kPart, "ECharts is not built in: no HTML report and no figures",
                  "./setup installs it; then configure and build again");
  }
  return good(kPart, fmt::format("ECharts {}; figures as .png {}", version,
                                 !find_program("rsvg-convert").empty()
                                     ? "by rsvg-convert"
                                     : "need rsvg-convert (librsvg2-bin)"));
}

HealthCheck check_gpu() {
  constexpr std::string_view kPart = "GPU";
  std::error_code ignored;
  const bool device = fs::exists("/dev/nvidia0", ignored);
  const SharedLibrary driver("libcuda.so.1");
  if (!driver.found()) {
    return device ? broken(kPart, "/dev/nvidia0 is there, the driver's library libcuda.so.1 is not",
                           "install the driver's user-space libraries")
                  : absent(kPart, "no NVIDIA driver",
                           "only profile and run need one; predictions do not");
  }
  int count = 0;
  if (!driver.call("cuInit", 0U) || !driver.call("cuDeviceGetCount", &count) || count == 0) {
    return device ? broken(kPart, "the driver does not start", "nvidia-smi says more")
                  : absent(kPart, "the driver is installed, but there is no GPU",
                           "only profile and run need one; predictions do not");
  }
  std::array<char, 128> name{};
  int version = 0;
  driver.call("cuDeviceGetName", name.data(), static_cast<int>(name.size() - 1), 0);
  driver.call("cuDriverGetVersion", &version);
  return good(kPart, fmt::format("{} x {}, driver for CUDA {}.{}", count, printable(name.data()),
                                 version / 1000, version % 1000 / 10));
}

HealthCheck check_cuda() {
  const std::string_view version = build_facts().cuda;
  return version.empty()
             ? absent("CUDA", "no toolkit was found when this program was built",
                      "install the CUDA Toolkit, then configure and build again")
             : good("CUDA", fmt::format("toolkit {} when this program was built", version));
}

HealthCheck check_nccl() {
  constexpr std::string_view kPart = "NCCL";
  const SharedLibrary library("libnccl.so.2");
  int version = 0;
  if (!library.found()) {
    return absent(kPart, "libnccl.so.2 cannot be loaded", "only run needs it; install libnccl2");
  }
  if (!library.call("ncclGetVersion", &version)) {
    return broken(kPart, "libnccl.so.2 does not tell its version", "install libnccl2 again");
  }
  return good(kPart, fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100));
}

}  // namespace

std::string_view to_text(HealthState state) {
  switch (state) {
    case HealthState::kGood:
      return "ok";
    case HealthState::kAbsent:
      return "absent";
    case HealthState::kBroken:
      return "broken";
  }
  LOCKSTEP_CHECK(false, "a state without a name");
}

std::vector<HealthCheck> examine_installation() {
  return {check_program(), check_packet_program(), check_arrow(), check_mpi(),
          check_report(),  check_cuda(),           check_nccl(),  check_gpu()};
}

}  // namespace lockstep

// How long a log takes to be read: log_read FILE. Prints the reader, rows and, for the whole
// program, what /usr/bin/time would.
#include <sys/resource.h>

#include <fmt/format.h>

#include "base/error.h"
#include "trace/log_reader.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: log_read FILE\n");
    return 2;
  }
  try {
    for (const lockstep::PhysicalLog& log : lockstep::read_logs(argv[1])) {
      fmt::print("{}: {}: {} operations, {} collectives, {} steps, {} warnings\n", log.file,
                 log.format, log.ops.size(), log.comms.size(), log.steps.size(),
                 log.warnings.total());
    }
  } catch (const lockstep::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  fmt::print("{:.2f} s of CPU, {:.0f} MB at most\n",
             static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                 static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6,
             static_cast<double>(usage.ru_maxrss) / 1000);
  return 0;
}

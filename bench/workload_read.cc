// Reads and writes a SimAI workload text of about 2.1 million lines (190 MB), made like one of AICB
// for a 405B model, and prints what it cost:
//
//     workload_read [LINES [FILE]]
//
// The file is left in place if it was named, else made in the working directory and removed.
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <sys/resource.h>

#include <fmt/format.h>

#include "base/atomic_file.h"
#include "base/error.h"
#include "workloads/read_workload.h"
#include "workloads/simai_txt.h"

namespace {

using namespace lockstep;

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double peak_mb() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

/// Returns the size in bytes.
std::size_t make_file(const std::string& path, long lines) {
  static constexpr const char* kLines[] = {
      "attention_column\t-"
      "1\t910000\tALLGATHER\t134217728\t910000\tREDUCESCATTER\t0\t910000\tNONE\t0\t100\n",
      "attention_row\t-"
      "1\t910000\tREDUCESCATTER\t134217728\t910000\tALLGATHER\t134217728\t910000\tNONE\t0\t100\n",
      "mlp_column\t-"
      "1\t1239000\tALLGATHER\t134217728\t1239000\tREDUCESCATTER\t0\t1239000\tNONE\t0\t100\n",
      "mlp_row\t-"
      "1\t1239000\tREDUCESCATTER\t134217728\t1239000\tALLGATHER\t134217728\t1239000\tNONE\t0\t100"
      "\n",
  };
  std::string text = fmt::format(
      "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 8 ep: 1 pp: 1 vpp: 128 ga: 4096 "
      "all_gpus: 64 checkpoints: 0 checkpoint_initiates: 0 pp_comm: 0\n{}\n",
      lines);
  AtomicFile file(path);
  std::size_t size = 0;
  for (long i = 0; i < lines; ++i) {
    text += kLines[i % 4];
    if (text.size() > (1U << 20U) || i + 1 == lines) {
      size += text.size();
      file.write(text);
      text.clear();
    }
  }
  file.commit();
  return size;
}

void report(const char* what, double cpu_s, std::size_t bytes, long lines) {
  fmt::print("{:<6} {:7.3f} CPU s  {:7.0f} MB/s  {:6.2f} M lines/s  peak {:5.0f} MB\n", what, cpu_s,
             static_cast<double>(bytes) * 1e-6 / cpu_s, static_cast<double>(lines) * 1e-6 / cpu_s,
             peak_mb());
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const long lines = argc > 1 ? std::atol(argv[1]) : 2'105'359;
    const std::string path = argc > 2 ? argv[2] : "workload_read.tmp.txt";
    if (lines < 1) {
      fmt::print(stderr, "usage: workload_read [LINES [FILE]]\n");
      return 2;
    }
    const std::size_t size = make_file(path, lines);
    fmt::print("{} lines, {:.1f} MB; before: peak {:.0f} MB\n", lines,
               static_cast<double>(size) * 1e-6, peak_mb());
    const double start = cpu_seconds();
    const Workload workload = read_workload(path);
    const double read = cpu_seconds();
    report("read", read - start, size, lines);
    std::size_t written = 0;
    write_simai_txt(workload, [&](std::string_view piece) { written += piece.size(); });
    report("write", cpu_seconds() - read, written, lines);
    if (argc <= 2) {
      std::remove(path.c_str());
    }
    return written == size ? 0 : 1;
  } catch (const Error& error) {
    fmt::print(stderr, "workload_read: {}\n", error.what());
    return 2;
  }
}

// Writes the sample workloads into the folder named on the command line.
#include <cstdio>

#include "base/atomic_file.h"
#include "base/error.h"
#include "workloads/samples/samples.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_samples FOLDER\n");
    return 2;
  }
  try {
    for (const lockstep::samples::Sample& sample : lockstep::samples::all_samples()) {
      lockstep::write_file(std::string(argv[1]) + "/" + sample.file, sample.text);
    }
  } catch (const lockstep::Error& error) {
    std::fprintf(stderr, "make_samples: %s\n", error.what());
    return 2;
  }
  return 0;
}

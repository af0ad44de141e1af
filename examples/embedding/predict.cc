// Predicts a step of a workload on eight GPUs, and shows how a mistake is told. Usage: predict
// <workload>
#include <iostream>
#include <lockstep/lockstep.hpp>

int main(int count, char** words) {
  if (count != 2) {
    std::cerr << "Usage: predict <workload>\n";
    return 2;
  }
  std::cout << lockstep::api::simulate({"--workload", words[1], "--topology", "Spectrum-X:g=8"});
  try {
    lockstep::api::simulate({"--workload", "absent.txt", "--topology", "Spectrum-X:g=8"});
  } catch (const lockstep::api::Failure& failure) {
    std::cerr << failure.exit_code() << " " << failure.what();
    return 0;
  }
  return 1;
}

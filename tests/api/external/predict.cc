// An external program: predicts a step, and is told of a mistake.
#include <iostream>
#include <lockstep/lockstep.hpp>

int main(int, char** argv) {
  const std::string workload = argv[1];
  const std::string document =
      lockstep::api::simulate({"--workload", workload, "--topology", "Spectrum-X:g=8"});
  std::cout << document;
  try {
    lockstep::api::simulate({"--workload", "absent.txt", "--topology", "Spectrum-X:g=8"});
  } catch (const lockstep::api::Failure& failure) {
    std::cerr << failure.exit_code() << " " << failure.what();
    return 0;
  }
  return 1;
}

// A plan of a model, given as a file: words of a job, or an Error.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "app/plan/given_plan.h"
#include "app/plan/job_words.h"
#include "base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::vector<std::string> job = {"--model", "llama3-8b", "--gbs=16"};
  try {
    lockstep::take_axes(lockstep::words_with_plan(job, text, "plan.json"), {});
  } catch (const lockstep::Error&) {  // says what is wrong
  }
  return 0;
}

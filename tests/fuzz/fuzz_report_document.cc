#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "report/html/page.h"
#include "report/html/report_document.h"

// A result for a report, and what a page is given of it.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    lockstep::page_data({lockstep::parse_report_document(text, "fuzz")});
  } catch (const lockstep::Error&) {
  }
  return 0;
}

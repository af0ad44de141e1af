#pragma once

#include <string>

namespace lockstep::testing {

/// Folder of other systems' outputs ($LOCKSTEP_REFERENCE, else ../shared/reference beside the
/// source tree); empty where there is none.
std::string reference_dir();

/// A file's text, unpacked if its name ends in .gz.
std::string slurp(const std::string& path);

}  // namespace lockstep::testing

/// First line of a test that needs reference data: skips it, and says so, where there is none.
#define LOCKSTEP_NEEDS_REFERENCE()                                                    \
  if (::lockstep::testing::reference_dir().empty()) {                                 \
    GTEST_SKIP() << "REFERENCE DATA ABSENT: set LOCKSTEP_REFERENCE to run this test"; \
  }                                                                                   \
  static_assert(true, "")

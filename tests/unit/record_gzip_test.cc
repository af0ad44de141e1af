// What zlib unpacks is what was written, whatever the parts and their distances.
#include "base/record_gzip.h"

#include <vector>

#include <gtest/gtest.h>

#include "base/rng.h"
#include "tests/support/reference.h"
#include "tests/support/run.h"

namespace lockstep::record_gzip_test {
namespace {

TEST(RecordGzip, ZlibGivesTheTextBack) {
  const testing::ScratchFolder scratch;
  Rng rng(1, "record gzip");
  for (int round = 0; round < 20; ++round) {
    // Lengths around the limits of 3 and 258; now and then more than a window between two uses.
    std::vector<RecordGzip::Part> parts;
    for (const std::size_t length :
         {0UL, 1UL, 2UL, 3UL, 4UL, 10UL, 11UL, 34UL, 35UL, 257UL, 258UL, 259UL, 600UL}) {
      std::string text;
      while (text.size() < length) {
        text += static_cast<char>(rng.below(256));
      }
      parts.push_back({.text = text});
    }
    const std::string path = scratch / "t.gz";
    RecordGzip file(path);
    std::string expected;
    for (int i = 0; i < 2000; ++i) {
      RecordGzip::Part& part = parts[rng.below(parts.size())];
      file.write(part);
      expected += part.text;
      const std::string fresh(rng.below(round % 4 == 0 ? 3000 : 8),
                              static_cast<char>('a' + i % 26));
      file.write(fresh);
      expected += fresh;
    }
    file.commit();
    ASSERT_TRUE(testing::slurp(path) == expected);
  }
}

TEST(RecordGzip, AnEmptyFile) {
  const testing::ScratchFolder scratch;
  RecordGzip file(scratch / "e.gz");
  file.commit();
  EXPECT_EQ(testing::slurp(scratch / "e.gz"), "");
}

}  // namespace
}  // namespace lockstep::record_gzip_test

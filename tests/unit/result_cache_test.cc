#include "app/cache/result_cache.h"

#include <atomic>
#include <filesystem>
#include <sqlite3.h>
#include <sys/stat.h>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/atomic_file.h"
#include "base/file.h"
#include "base/file_record.h"
#include "tests/support/run.h"

namespace lockstep::result_cache_test {
namespace {

using testing::ScratchFolder;

StoredResult result_of_size(std::size_t size) {
  return {.exit_code = 0, .out = std::string(size, 'x'), .err = {}, .files = {}};
}

TEST(ResultCache, GivesBackWhatWasStored) {
  const ScratchFolder scratch;
  ResultCache cache(scratch.path(), 1 << 20);
  EXPECT_FALSE(cache.find("key").has_value());
  cache.store("key", "simulate x", {},
              {.exit_code = 1, .out = "out\0put", .err = "\xff", .files = {{"a/b", "bytes"}}});
  const auto found = cache.find("key");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->exit_code, 1);
  EXPECT_EQ(found->err, "\xff");
  EXPECT_EQ(found->files.front().bytes, "bytes");
  EXPECT_FALSE(cache.find("other").has_value());
  EXPECT_EQ(cache.list().front().command, "simulate x");
}

TEST(ResultCache, AnInputThatChangedIsAMiss) {
  const ScratchFolder scratch;
  const std::string input = scratch / "input";
  write_file(input, "one");
  ResultCache cache(scratch / "cache", 1 << 20);
  cache.store("key", "c", {look_at(input)}, result_of_size(1));
  EXPECT_TRUE(cache.find("key").has_value());
  write_file(input, "two");  // as long as before
  EXPECT_FALSE(cache.find("key").has_value());
  cache.store("key", "c", {look_at(input)}, result_of_size(2));
  EXPECT_EQ(cache.find("key")->out.size(), 2U);
  write_file(input, "one");  // both are kept
  EXPECT_EQ(cache.find("key")->out.size(), 1U);
}

TEST(ResultCache, AFolderThatGrewIsAMiss) {
  const ScratchFolder scratch;
  make_folder(scratch / "profiles");
  write_file(scratch / "profiles/a", "");
  ResultCache cache(scratch / "cache", 1 << 20);
  cache.store("key", "c", {look_at(scratch / "profiles")}, result_of_size(1));
  EXPECT_TRUE(cache.find("key").has_value());
  write_file(scratch / "profiles/b", "");
  EXPECT_FALSE(cache.find("key").has_value());
}

TEST(ResultCache, ANameThatMeantNothingMustMeanNothing) {
  const ScratchFolder scratch;
  ResultCache cache(scratch / "cache", 1 << 20);
  cache.store("key", "c", {look_at(scratch / "name"), look_for_folder(scratch / "folder")},
              result_of_size(1));
  EXPECT_TRUE(cache.find("key").has_value());
  write_file(scratch / "name", "");
  EXPECT_FALSE(cache.find("key").has_value());
  std::filesystem::remove(scratch / "name");
  EXPECT_TRUE(cache.find("key").has_value());
  make_folder(scratch / "folder");
  EXPECT_FALSE(cache.find("key").has_value());
}

TEST(ResultCache, APipeIsNeverTheSame) {
  const ScratchFolder scratch;
  ASSERT_EQ(::mkfifo((scratch / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(look_at(scratch / "pipe").digest, "");
  EXPECT_FALSE(unchanged(look_at(scratch / "pipe")));
  EXPECT_FALSE(unchanged(look_at("/dev/null")));
}

TEST(FileRecord, NotesWhatTheFileSystemWasAsked) {
  const ScratchFolder scratch;
  write_file(scratch / "file", "");
  const FileRecord record;
  EXPECT_TRUE(path_exists(scratch / "file"));
  EXPECT_FALSE(path_exists(scratch / "nothing"));
  EXPECT_FALSE(is_folder(scratch / "file"));
  EXPECT_FALSE(record.files().place);
  EXPECT_EQ(absolute_path("/a"), "/a");
  EXPECT_FALSE(record.files().place);
  absolute_path("a");
  const FileRecord::Files files = record.files();
  EXPECT_TRUE(files.asked.at(scratch / "file"));
  EXPECT_FALSE(files.asked.at(scratch / "nothing"));
  EXPECT_FALSE(files.asked_folder.at(scratch / "file"));
  EXPECT_TRUE(files.place);
}

std::int64_t file_size(const ResultCache& cache) {
  return static_cast<std::int64_t>(std::filesystem::file_size(cache.path()));
}

TEST(ResultCache, StaysBelowItsSizeAndDropsTheOldest) {
  const ScratchFolder scratch;
  ResultCache cache(scratch.path(), 1'000'000);
  for (int i = 0; i < 20; ++i) {
    cache.store("key" + std::to_string(i), "c", {}, result_of_size(100'000));
  }
  EXPECT_LE(file_size(cache), 1'000'000);
  EXPECT_LE(cache.used_bytes(), 1'000'000);
  EXPECT_GE(cache.list().size(), 7U);  // of some 103,000 bytes
  EXPECT_FALSE(cache.find("key9").has_value());
  EXPECT_TRUE(cache.find("key13").has_value());
  EXPECT_TRUE(cache.find("key19").has_value());
  cache.store("large", "c", {}, result_of_size(260'000));  // more than a quarter: not kept
  EXPECT_FALSE(cache.find("large").has_value());
  EXPECT_TRUE(cache.find("key13").has_value());
  const auto entries = static_cast<std::int64_t>(cache.list().size());
  EXPECT_EQ(cache.shrink(0), entries);
  EXPECT_LE(file_size(cache), 40'000);  // of a store without entries
}

// What a row takes beside its results counts, too: long command lines, sums, the indices.
TEST(ResultCache, StaysBelowItsSizeWithSmallResults) {
  const ScratchFolder scratch;
  ResultCache cache(scratch.path(), 300'000);
  for (int i = 0; i < 1000; ++i) {
    cache.store("key" + std::to_string(i), std::string(1000, 'c'), {}, result_of_size(10));
  }
  EXPECT_LE(file_size(cache), 300'000);
  EXPECT_GE(cache.list().size(), 50U);
  EXPECT_TRUE(cache.find("key999").has_value());
}

// The file shrinks, not only what is in it, beside readers and writers of the same store.
TEST(ResultCache, CollectsBesideConcurrentWriters) {
  const ScratchFolder scratch;
  constexpr std::int64_t kMost = 2'000'000, kFew = 400'000;
  constexpr int kWriters = 3, kResults = 60, kCollections = 5;
  std::atomic<int> writing = kWriters;
  std::atomic<int> collected = 0;
  std::vector<std::thread> writers;
  for (int w = 0; w < kWriters; ++w) {
    writers.emplace_back([&, w] {
      ResultCache cache(scratch.path(), kMost);
      for (int r = 0; r < kResults || collected < kCollections; ++r) {  // surely beside each other
        const std::string key = std::to_string(w) + ":" + std::to_string(r);
        cache.store(key, "c", {}, result_of_size(static_cast<std::size_t>(1000 * (r % 90))));
        EXPECT_LE(file_size(cache), kMost);
      }
      --writing;
    });
  }
  ResultCache cache(scratch.path(), kMost);
  while (writing > 0) {
    cache.shrink(kFew);
    ++collected;
  }
  for (std::thread& writer : writers) {
    writer.join();
  }
  cache.shrink(kFew);
  EXPECT_LE(file_size(cache), kFew);
  EXPECT_GE(cache.list().size(), 1U);
  const CacheCheck check = cache.verify();
  EXPECT_EQ(check.damaged, 0);
  EXPECT_EQ(check.store, "ok");
}

void damage(const std::string& path, const char* sql) {
  sqlite3* store = nullptr;
  ASSERT_EQ(::sqlite3_open(path.c_str(), &store), SQLITE_OK);
  ASSERT_EQ(::sqlite3_exec(store, sql, nullptr, nullptr, nullptr), SQLITE_OK);
  ::sqlite3_close(store);
}

TEST(ResultCache, ADamagedEntryIsAMissAndGoes) {
  const ScratchFolder scratch;
  ResultCache cache(scratch.path(), 1 << 20);
  cache.store("key", "c", {}, result_of_size(100));
  damage(cache.path(), "UPDATE results SET head = zeroblob(100)");
  EXPECT_FALSE(cache.find("key").has_value());
  EXPECT_TRUE(cache.list().empty());
  cache.store("key", "c", {}, result_of_size(100));
  damage(cache.path(), "UPDATE results SET inputs = x'ff'");
  EXPECT_FALSE(cache.find("key").has_value());
  cache.store("key", "c", {}, result_of_size(100));
  cache.store("key2", "c", {}, result_of_size(100));
  damage(cache.path(), "UPDATE results SET files = x'00' WHERE key = 'key'");
  const CacheCheck check = cache.verify();
  EXPECT_EQ(check.entries, 2);
  EXPECT_EQ(check.damaged, 1);
  EXPECT_EQ(check.store, "ok");
  EXPECT_EQ(cache.verify().damaged, 0);
}

TEST(ResultCache, FilesThatAreThereAreNotGivenAgain) {
  const ScratchFolder scratch;
  ResultCache cache(scratch / "cache", 1 << 20);
  const std::string a = scratch / "a", b = scratch / "b";
  cache.store("key", "c", {},
              {.exit_code = 0, .out = {}, .err = {}, .files = {{a, "one"}, {b, "two"}}});
  EXPECT_EQ(cache.find("key")->files.size(), 2U);
  write_file(a, "one");
  ASSERT_EQ(cache.find("key")->files.size(), 1U);
  EXPECT_EQ(cache.find("key")->files[0].bytes, "two");
  write_file(b, "two");
  EXPECT_TRUE(cache.find("key")->files.empty());
  damage(cache.path(), "UPDATE results SET files = x'00'");
  EXPECT_TRUE(cache.find("key").has_value());  // they are not needed
  write_file(b, "2");
  EXPECT_FALSE(cache.find("key").has_value());
}

TEST(ResultCache, AFileThatIsNoStoreIsMovedAside) {
  const ScratchFolder scratch;
  write_file(scratch / "results.sqlite", std::string(5000, 'q'));
  ResultCache cache(scratch.path(), 1 << 20);
  cache.store("key", "c", {}, result_of_size(100));
  EXPECT_TRUE(cache.find("key").has_value());
  EXPECT_EQ(FileText(scratch / "results.sqlite.damaged").view().size(), 5000U);
  EXPECT_NE(cache.problem(), "");
  EXPECT_TRUE(cache.verify().broken);
  EXPECT_EQ(ResultCache(scratch.path(), 1 << 20).problem(), "");
}

class ResultCacheOf : public ::testing::TestWithParam<CacheSharing> {};
INSTANTIATE_TEST_SUITE_P(Sharing, ResultCacheOf,
                         ::testing::Values(CacheSharing::kOneMachine, CacheSharing::kMachines));

// With a write-ahead log and without, as on a network's file system.
TEST_P(ResultCacheOf, TakesConcurrentWriters) {
  const ScratchFolder scratch;
  constexpr int kWriters = 4;
  const int results =
      GetParam() == CacheSharing::kOneMachine ? 25 : 5;  // these wait for each other
  std::vector<std::thread> writers;
  for (int w = 0; w < kWriters; ++w) {
    writers.emplace_back([&, w] {
      ResultCache cache(scratch.path(), 1 << 24, GetParam());
      for (int r = 0; r < results; ++r) {
        const std::string key = std::to_string(w) + ":" + std::to_string(r);
        cache.store(key, "c", {}, result_of_size(100));
        cache.store("shared", "c", {}, result_of_size(100));
        const auto found = cache.find("shared");
        ASSERT_TRUE(found.has_value());
        EXPECT_EQ(found->out.size(), 100U);
      }
    });
  }
  for (std::thread& writer : writers) {
    writer.join();
  }
  EXPECT_FALSE(std::filesystem::exists(scratch / "results.sqlite-shm"));
  ResultCache cache(scratch.path(), 1 << 24, GetParam());
  EXPECT_EQ(cache.list().size(), static_cast<std::size_t>(kWriters * results + 1));
  EXPECT_EQ(cache.verify().damaged, 0);
  EXPECT_EQ(std::filesystem::exists(scratch / "results.sqlite-shm"),
            GetParam() == CacheSharing::kOneMachine);
}

TEST(ResultCache, KnowsFileSystemsOfNetworks) {
  EXPECT_EQ(cache_sharing("/proc"), CacheSharing::kOneMachine);
  EXPECT_EQ(cache_sharing("/no such folder"), CacheSharing::kOneMachine);
}

// An entry that is stored anew gets another row, and rows that went may give their numbers to
// others.
TEST(ResultCache, FindsWhatIsBeingReplaced) {
  const ScratchFolder scratch;
  ResultCache cache(scratch.path(), 1 << 24);
  cache.store("shared", "c", {}, result_of_size(100));
  std::atomic<bool> over = false;
  std::thread writer([&] {
    ResultCache other(scratch.path(), 1 << 24);
    for (int r = 0; r < 500; ++r) {
      other.store("shared", "c", {}, result_of_size(r % 2 == 0 ? 200 : 100));
    }
    over = true;
  });
  int found = 0, looked = 0;
  while (!over) {
    ++looked;
    found += cache.find("shared").has_value() ? 1 : 0;
  }
  writer.join();
  EXPECT_GT(looked, 0);
  EXPECT_EQ(found, looked);
  EXPECT_EQ(cache.list().size(), 1U);
}

}  // namespace
}  // namespace lockstep::result_cache_test

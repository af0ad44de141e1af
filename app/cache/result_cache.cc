#include "app/cache/result_cache.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <sqlite3.h>
#include <sys/vfs.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/digest.h"
#include "base/error.h"

namespace lockstep {
namespace {

constexpr const char* kOneMachine = "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;";
constexpr const char* kMachines = "PRAGMA journal_mode = TRUNCATE; PRAGMA synchronous = NORMAL;";
constexpr const char* kSchema = R"sql(
CREATE TABLE IF NOT EXISTS results (
  id INTEGER PRIMARY KEY, key TEXT NOT NULL, command TEXT NOT NULL, created INTEGER NOT NULL,
  used INTEGER NOT NULL, bytes INTEGER NOT NULL, sum TEXT NOT NULL, files_sum TEXT NOT NULL,
  inputs BLOB NOT NULL, head BLOB NOT NULL, files BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS by_key ON results (key, used DESC);
CREATE INDEX IF NOT EXISTS by_use ON results (used);
)sql";
constexpr int kMostVariants = 16;  // of one command line, with different inputs
// Pages that a row takes beside those of its own bytes: where the table and its indices split.
constexpr std::int64_t kRowPages = 8;

/// What SQLite says went wrong.
struct StoreProblem {
  int code;
  std::string text;
};

bool is_damage(int code) {
  return (code & 0xff) == SQLITE_CORRUPT || (code & 0xff) == SQLITE_NOTADB;
}

std::string sum_of(const std::string& key, const std::string& inputs, const std::string& head) {
  return Digest().add(key).add(inputs).add(head).hex();
}

/// Whether a file beside the store can be locked, which is made for that. SQLite takes a file
/// system that has no locks (NFS without its lock server: ENOLCK) for one on which another process
/// holds them.
bool has_locks(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) {
    return true;  // not known
  }
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  const bool can = ::fcntl(file, F_SETLK, &lock) == 0 || errno == EAGAIN || errno == EACCES;
  ::close(file);
  ::unlink(path.c_str());
  return can;
}

/// Whoever's command it is: not make_folder(), which keeps a stranger's to their own.
void make_cache_folder(const std::string& folder) {
  std::error_code problem;
  std::filesystem::create_directories(folder, problem);
  if (problem) {
    throw Error(fmt::format("cannot make the folder: {}", problem.message())).at(folder);
  }
}

CacheSharing sharing_once_made(const std::string& folder) {
  make_cache_folder(folder);
  return cache_sharing(folder);
}

/// Of the files, only those that have to be written again.
StoredResult without_present(StoredResult result, const std::vector<bool>& missing) {
  std::vector<CacheFile> wanted;
  for (std::size_t i = 0; i < missing.size(); ++i) {
    if (missing[i]) {
      wanted.push_back(std::move(result.files[i]));
    }
  }
  result.files = std::move(wanted);
  return result;
}

}  // namespace

/// A prepared statement; parameters and columns by number.
class ResultCache::Statement {
 public:
  Statement(sqlite3* store, const char* sql) : store_(store) {
    check(::sqlite3_prepare_v2(store, sql, -1, &statement_, nullptr));
  }
  ~Statement() { ::sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& bind(int at, std::int64_t number) {
    check(::sqlite3_bind_int64(statement_, at, number));
    return *this;
  }
  Statement& bind(int at, const std::string& text) {
    check(::sqlite3_bind_text64(statement_, at, text.data(), text.size(), SQLITE_STATIC,
                                SQLITE_UTF8));
    return *this;
  }
  Statement& bind_blob(int at, const std::string& bytes) {
    check(::sqlite3_bind_blob64(statement_, at, bytes.data(), bytes.size(), SQLITE_STATIC));
    return *this;
  }
  /// Whether there is a row.
  bool step() {
    const int code = ::sqlite3_step(statement_);
    if (code != SQLITE_ROW && code != SQLITE_DONE) {
      check(code);
    }
    return code == SQLITE_ROW;
  }
  std::int64_t number(int column) { return ::sqlite3_column_int64(statement_, column); }
  std::string text(int column) {
    const auto* bytes = static_cast<const char*>(::sqlite3_column_blob(statement_, column));
    const int size = ::sqlite3_column_bytes(statement_, column);
    return bytes == nullptr ? std::string() : std::string(bytes, static_cast<std::size_t>(size));
  }

 private:
  void check(int code) {
    if (code != SQLITE_OK) {
      throw StoreProblem{code, ::sqlite3_errmsg(store_)};
    }
  }

  sqlite3* store_;
  sqlite3_stmt* statement_ = nullptr;
};

CacheSharing cache_sharing(const std::string& folder) {
  // statfs(2) and the systems' own sources.
  constexpr std::array<std::uint32_t, 17> kOfNetworks{
      0x6969,      // NFS
      0x517b,      // SMB
      0xff534d42,  // CIFS
      0xfe534d42,  // SMB 2
      0x0bd00bd0,  // Lustre
      0x47504653,  // GPFS
      0x19830326,  // BeeGFS
      0x00c36400,  // Ceph
      0x5346414f,  // AFS
      0x6b414653,  // AFS of the kernel
      0x01021997,  // 9P
      0x65735546,  // FUSE: sshfs, GlusterFS, ...
      0x20030528,  // OrangeFS
      0xaad7aaea,  // PanFS
      0x7461636f,  // OCFS2
      0x01161970,  // GFS2
      0x73757245,  // Coda
  };
  struct statfs facts {};
  const bool known = ::statfs(folder.c_str(), &facts) == 0;
  return known && std::ranges::count(kOfNetworks, static_cast<std::uint32_t>(facts.f_type)) > 0
             ? CacheSharing::kMachines
             : CacheSharing::kOneMachine;
}

ResultCache::ResultCache(const std::string& folder, std::int64_t most_bytes)
    : ResultCache(folder, most_bytes, sharing_once_made(folder)) {}

ResultCache::ResultCache(const std::string& folder, std::int64_t most_bytes, CacheSharing sharing)
    : path_(folder + "/results.sqlite"), most_bytes_(most_bytes), sharing_(sharing) {
  make_cache_folder(folder);
  try {
    open();
  } catch (const StoreProblem& problem) {
    if (!is_damage(problem.code)) {
      ::sqlite3_close(store_);
      throw Error("cannot open the cache: " + problem.text).at(path_);
    }
    problem_ = problem.text;
    begin_anew();
  }
}

/// No store, or one past reading, is moved aside: results can be computed again.
void ResultCache::begin_anew() {
  ::sqlite3_close(store_);
  store_ = nullptr;
  std::error_code ignored;
  std::filesystem::rename(path_, path_ + ".damaged", ignored);
  std::filesystem::remove(path_ + "-journal", ignored);
  std::filesystem::remove(path_ + "-wal", ignored);
  std::filesystem::remove(path_ + "-shm", ignored);
  try {
    open();
  } catch (const StoreProblem& again) {
    ::sqlite3_close(store_);
    throw Error("cannot make the cache anew: " + again.text).at(path_);
  }
}

ResultCache::~ResultCache() { ::sqlite3_close(store_); }

void ResultCache::open() {
  const int code = ::sqlite3_open_v2(path_.c_str(), &store_,
                                     SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  if (code != SQLITE_OK) {
    throw StoreProblem{code, store_ != nullptr ? ::sqlite3_errmsg(store_) : "no memory"};
  }
  // Several who open a new store at once change it to WAL, for which SQLite does not wait.
  constexpr std::chrono::seconds kLongest{20};
  const auto until = std::chrono::steady_clock::now() + kLongest;
  for (bool probed = false;;) {
    try {
      ::sqlite3_busy_timeout(store_, 1000);
      execute(sharing_ == CacheSharing::kMachines ? kMachines : kOneMachine);
      execute(kSchema);
      ::sqlite3_busy_timeout(store_, 5000);
      return;
    } catch (const StoreProblem& problem) {
      if ((problem.code & 0xff) != SQLITE_BUSY || std::chrono::steady_clock::now() >= until) {
        throw;
      }
      if (!std::exchange(probed, true) && !has_locks(path_ + ".lock-probe")) {
        throw StoreProblem{SQLITE_IOERR_LOCK, "its file system has no locks"};
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

void ResultCache::execute(const char* sql) {
  const int code = ::sqlite3_exec(store_, sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) {
    throw StoreProblem{code, ::sqlite3_errmsg(store_)};
  }
}

/// A transaction; undone where it is not committed. What it reads is the store as it was at its
/// first statement, whatever others write meanwhile.
class ResultCache::Transaction {
 public:
  Transaction(ResultCache& cache, const char* begin) : cache_(cache) { cache_.execute(begin); }
  ~Transaction() {
    if (open_) {
      ::sqlite3_exec(cache_.store_, "ROLLBACK", nullptr, nullptr, nullptr);
    }
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  void commit() {
    cache_.execute("COMMIT");
    open_ = false;
  }

 private:
  ResultCache& cache_;
  bool open_ = true;
};

/// Of entries that were seen damaged, those that still are: another process may have stored sound
/// ones under their numbers since. How many went.
std::int64_t ResultCache::remove_damaged(const std::vector<std::int64_t>& ids) {
  if (ids.empty()) {
    return 0;
  }
  std::int64_t removed = 0;
  Transaction transaction(*this, "BEGIN IMMEDIATE");
  for (const std::int64_t id : ids) {
    bool damaged = false;
    {
      Statement select(store_,
                       "SELECT key, inputs, head, sum, files, files_sum FROM results WHERE id = ?");
      damaged = select.bind(1, id).step() &&
                (sum_of(select.text(0), select.text(1), select.text(2)) != select.text(3) ||
                 digest_of(select.text(4)) != select.text(5));
    }
    if (damaged) {
      Statement(store_, "DELETE FROM results WHERE id = ?").bind(1, id).step();
      ++removed;
    }
  }
  transaction.commit();
  return removed;
}

std::optional<StoredResult> ResultCache::find(const std::string& key) {
  std::vector<std::int64_t> damaged;
  std::optional<StoredResult> found;
  try {
    found = read(key, damaged);
  } catch (const StoreProblem&) {
    found.reset();
  } catch (const nlohmann::json::exception&) {
    found.reset();
  }
  try {
    remove_damaged(damaged);
  } catch (const StoreProblem&) {
    // Another writer is at it; they are found damaged the next time, too.
  }
  return found;
}

std::optional<StoredResult> ResultCache::read(const std::string& key,
                                              std::vector<std::int64_t>& damaged) {
  // One transaction: an entry that is replaced between two of the queries is a hit all the same.
  Transaction transaction(*this, "BEGIN");
  std::int64_t hit = 0;
  std::string inputs, sum, head, files_sum;
  {
    Statement select(
        store_,
        "SELECT id, inputs, sum, head, files_sum FROM results WHERE key = ? ORDER BY used DESC");
    select.bind(1, key);
    while (hit == 0 && select.step()) {
      try {
        inputs = select.text(1);
        if (std::ranges::all_of(inputs_of_bytes(inputs), unchanged)) {
          hit = select.number(0);
          sum = select.text(2);
          head = select.text(3);
          files_sum = select.text(4);
        }
      } catch (const nlohmann::json::exception&) {
        damaged.push_back(select.number(0));
      }
    }
  }
  if (hit == 0) {
    return std::nullopt;
  }
  if (sum_of(key, inputs, head) != sum) {
    damaged.push_back(hit);
    return std::nullopt;
  }
  std::vector<bool> missing;
  StoredResult result = result_of_head(head, missing);
  if (std::ranges::find(missing, true) != missing.end()) {
    Statement select(store_, "SELECT files FROM results WHERE id = ?");
    const std::string files = select.bind(1, hit).step() ? select.text(0) : "";
    if (digest_of(files) != files_sum) {
      damaged.push_back(hit);
      return std::nullopt;
    }
    add_files(files, result);
  }
  transaction.commit();
  try {
    Statement(store_, "UPDATE results SET used = ? WHERE id = ? AND key = ? AND used < ?")
        .bind(1, std::time(nullptr))
        .bind(2, hit)
        .bind(3, key)
        .bind(4, std::time(nullptr) - 60)  // a write now and then is enough
        .step();
  } catch (const StoreProblem&) {
    // Another writer is at it; the result is found all the same.
  }
  return without_present(std::move(result), missing);
}

void ResultCache::store(const std::string& key, const std::string& command,
                        const std::vector<CacheInput>& inputs, const StoredResult& result) {
  const StoredParts parts = to_parts(result);
  const auto size = static_cast<std::int64_t>(parts.head.size() + parts.files.size());
  if (size > most_bytes_ / 4) {
    return;
  }
  try {
    const std::string input_bytes = to_bytes(inputs);
    const std::string sum = sum_of(key, input_bytes, parts.head);
    const std::string files_sum = digest_of(parts.files);
    Transaction transaction(*this, "BEGIN IMMEDIATE");
    Statement(store_,
              "DELETE FROM results WHERE key = ?1 AND (inputs = ?2 OR id IN (SELECT id FROM "
              "results WHERE key = ?1 ORDER BY used DESC LIMIT -1 OFFSET ?3))")
        .bind(1, key)
        .bind_blob(2, input_bytes)
        .bind(3, kMostVariants - 1)
        .step();
    if (!make_room(most_bytes_,
                   size + static_cast<std::int64_t>(input_bytes.size() + command.size()))) {
      return;
    }
    Statement(store_,
              "INSERT INTO results (key, command, created, used, bytes, sum, files_sum, inputs, "
              "head, files) VALUES (?1, ?2, ?3, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")
        .bind(1, key)
        .bind(2, command)
        .bind(3, std::time(nullptr))
        .bind(4, size + static_cast<std::int64_t>(input_bytes.size()))
        .bind(5, sum)
        .bind(6, files_sum)
        .bind_blob(7, input_bytes)
        .bind_blob(8, parts.head)
        .bind_blob(9, parts.files)
        .step();
    transaction.commit();
  } catch (const StoreProblem&) {
    // Without this result, then.
  }
}

std::vector<CacheEntry> ResultCache::list() {
  std::vector<CacheEntry> entries;
  try {
    Statement select(store_,
                     "SELECT id, command, bytes, created, used FROM results ORDER BY used DESC, id "
                     "DESC");
    while (select.step()) {
      entries.push_back(
          {select.number(0), select.text(1), select.number(2), select.number(3), select.number(4)});
    }
  } catch (const StoreProblem& problem) {
    throw Error("cannot read the cache: " + problem.text).at(path_);
  }
  return entries;
}

ResultCache::Pages ResultCache::pages() {
  const auto ask = [&](const char* pragma) {
    Statement statement(store_, pragma);
    statement.step();
    return statement.number(0);
  };
  return {ask("PRAGMA page_size"), ask("PRAGMA page_count"), ask("PRAGMA freelist_count")};
}

std::int64_t ResultCache::rows() {
  Statement select(store_, "SELECT COUNT(*) FROM results");
  select.step();
  return select.number(0);
}

std::int64_t ResultCache::used_bytes() {
  try {
    const Pages now = pages();
    return (now.count - now.unused) * now.size;
  } catch (const StoreProblem& problem) {
    throw Error("cannot read the cache: " + problem.text).at(path_);
  }
}

/// Removes the longest unused until what is left and a row of so many bytes more fit, where they do
/// not; then some more, so that it is not done for every row. Whether they fit.
/// PRECONDITION: in a transaction that may write.
bool ResultCache::make_room(std::int64_t most_bytes, std::int64_t for_bytes) {
  for (;;) {
    const Pages now = pages();
    const std::int64_t row = for_bytes > 0 ? for_bytes / now.size + kRowPages : 0;
    const std::int64_t over = (now.count - now.unused + row) * now.size - most_bytes;
    if (over <= 0) {
      return true;
    }
    Statement(store_,
              "DELETE FROM results WHERE id IN (SELECT id FROM (SELECT id, SUM(bytes) OVER (ORDER "
              "BY used, id) - bytes AS before FROM results) WHERE before < ?)")
        .bind(1, over + (for_bytes > 0 ? most_bytes / 64 : 0))
        .step();
    if (::sqlite3_changes64(store_) == 0) {
      return false;  // it is empty
    }
  }
}

std::int64_t ResultCache::shrink(std::int64_t most_bytes) {
  try {
    std::int64_t before = 0, after = 0;
    {
      Transaction transaction(*this, "BEGIN IMMEDIATE");
      before = rows();
      make_room(most_bytes, 0);
      after = rows();
      transaction.commit();
    }
    if (pages().unused > 0) {
      execute("VACUUM");
    }
    execute("PRAGMA wal_checkpoint(TRUNCATE)");
    return before - after;
  } catch (const StoreProblem& problem) {
    throw Error("cannot shrink the cache: " + problem.text)
        .at(path_)
        .hint(is_damage(problem.code) ? "'lockstep cache verify' moves a damaged store aside"
                                      : "another process may be writing to it; try again");
  }
}

CacheCheck ResultCache::verify() {
  CacheCheck check;
  if (!problem_.empty()) {
    check.store = problem_;
    check.broken = true;
    return check;
  }
  try {
    std::vector<std::int64_t> damaged;
    {
      Statement select(
          store_, "SELECT id, key, inputs, head, sum, files, files_sum FROM results ORDER BY id");
      while (select.step()) {
        ++check.entries;
        if (sum_of(select.text(1), select.text(2), select.text(3)) != select.text(4) ||
            digest_of(select.text(5)) != select.text(6)) {
          damaged.push_back(select.number(0));
        }
      }
    }
    check.damaged = remove_damaged(damaged);
    Statement pragma(store_, "PRAGMA integrity_check");
    check.store = pragma.step() ? pragma.text(0) : "no answer";
    check.broken = check.store != "ok";
  } catch (const StoreProblem& problem) {
    check.store = problem.text;
    check.broken = is_damage(problem.code);
  }
  if (check.broken) {
    begin_anew();
  }
  return check;
}

}  // namespace lockstep

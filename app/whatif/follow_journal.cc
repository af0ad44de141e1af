#include "app/whatif/follow_journal.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/file.h"

namespace lockstep {
namespace {

Json file_json(const char* event, const TraceFile& file) {
  return {{"event", event},
          {"file", file.name},
          {"bytes", file.bytes},
          {"modified_ns", file.modified_ns}};
}

}  // namespace

Json FollowJournal::first_line(const FollowedJob& job) {
  return {{"event", "journal"},
          {"schema", kFollowSchema},
          {"trial_name", job.trial_name},
          {"meta", job.meta}};
}

FollowJournal::FollowJournal(std::string path, const FollowedJob& job, AlertRule rule)
    : path_(std::move(path)), rule_(rule) {
  descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor_ < 0) {
    fail("cannot open");
  }
  try {
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) {
        fail("cannot lock");
      }
      throw Error("another process follows with this journal")
          .at(path_)
          .hint("stop it, or choose another output folder");
    }
    const FileText text(path_);
    end_ = static_cast<std::int64_t>(read_follow_journal(text.view(), path_, job, rule_, state_));
    const std::string first = to_line(first_line(job));
    if (end_ == 0 && !first.starts_with(text.view())) {  // one line without its end
      throw Error("this is no journal of followed traces")
          .at(path_)
          .hint("remove it, or choose another output folder");
    }
    if (::ftruncate(descriptor_, end_) != 0) {
      fail("cannot take the unfinished end off");
    }
    if (end_ == 0) {
      append({first_line(job)});
    }
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

FollowJournal::~FollowJournal() { ::close(descriptor_); }

std::vector<Json> FollowJournal::add_file(const TraceFile& file, const std::vector<Step>& steps,
                                          const std::string& evidence) {
  std::vector<Json> lines;
  const auto take = [&](Json line) {
    state_.apply(line, rule_);
    lines.push_back(std::move(line));
  };
  std::int64_t added = 0;
  for (const Step& step : steps) {
    if (has_step(step.step)) {
      continue;
    }
    ++added;
    take({{"event", "step"},
          {"step", step.step},
          {"slowdown", step.slowdown},
          {"step_time_s", step.step_time_s},
          {"ideal_step_time_s", step.ideal_step_time_s},
          {"pattern", step.pattern},
          {"slowest_rank", step.slowest_rank},
          {"slowest_stage", step.slowest_stage}});
    if (!state_.alerted && state_.slow_in_a_row >= rule_.steps) {
      take({{"event", "alert"},
            {"step", step.step},
            {"steps", state_.slow_in_a_row},
            {"slowdown", state_.slow_sum / static_cast<double>(state_.slow_in_a_row)},
            {"threshold", rule_.slowdown},
            {"slowest_rank", step.slowest_rank},
            {"slowest_stage", step.slowest_stage},
            {"evidence", evidence}});
    } else if (state_.alerted && state_.fast_in_a_row >= rule_.steps) {
      take({{"event", "clear"}, {"step", step.step}, {"threshold", rule_.slowdown}});
    }
  }
  Json last = file_json("file", file);
  last["steps"] = added;
  last["known_steps"] = static_cast<std::int64_t>(steps.size()) - added;
  take(std::move(last));
  append(lines);
  return lines;
}

std::vector<Json> FollowJournal::add_refused(const TraceFile& file, const std::string& reason) {
  Json line = file_json("refused", file);
  line["reason"] = reason;
  state_.apply(line, rule_);
  append({line});
  return {std::move(line)};
}

void FollowJournal::append(const std::vector<Json>& lines) {
  std::string text;
  for (const Json& line : lines) {
    text += to_line(line) + '\n';
  }
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t count = ::pwrite(descriptor_, text.data() + done, text.size() - done,
                                   end_ + static_cast<std::int64_t>(done));
    if (count < 0 && errno != EINTR) {
      fail("cannot write");
    }
    done += count > 0 ? static_cast<std::size_t>(count) : 0;
  }
  if (::fsync(descriptor_) != 0) {
    fail("cannot flush");
  }
  end_ += static_cast<std::int64_t>(text.size());
}

void FollowJournal::fail(const char* what) const {
  throw Error(fmt::format("{} the journal: {}", what, std::strerror(errno))).at(path_);
}

}  // namespace lockstep

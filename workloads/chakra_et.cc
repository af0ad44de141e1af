#include "workloads/chakra_et.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "base/file_record.h"
#include "base/json.h"
#include "base/text.h"
#include "workloads/chakra_node.h"
#include "workloads/chakra_order.h"
#include "workloads/validate.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnding = ".et";
constexpr const char* kGroupsFile = "comm_group.json";
/// A computation longer than this is a mistake: 30 years would not fit into a Time.
constexpr std::int64_t kLongest = 1'000'000'000'000;

/// The rank in "NAME.3.et" and what stands before it; nothing for other names.
std::optional<std::pair<std::string, std::int64_t>> parts_of(const std::string& name) {
  if (!name.ends_with(kEnding)) {
    return std::nullopt;
  }
  const std::string stem = name.substr(0, name.size() - kEnding.size());
  const std::size_t dot = stem.rfind('.');
  const auto rank = dot == std::string::npos ? std::nullopt : to_int(stem.substr(dot + 1));
  if (!rank || *rank < 0 || *rank >= kMaxGpus) {
    return std::nullopt;
  }
  return std::pair(stem.substr(0, dot), *rank);
}

class RankReader {
 public:
  RankReader(const std::string& file, Warnings* warnings) : file_(file), warnings_(warnings) {}

  ChakraRank read(std::string_view text) {
    for (OrderedChakraNode& each : ordered_chakra_nodes(text, file_, warnings_)) {
      const bool collective = each.node.kind == ChakraKind::kCollective && !each.node.cpu;
      Op op = op_from(each.node);
      op.after = std::move(each.after);
      rank_.program.ops.push_back(std::move(op));
      rank_.group.push_back(collective ? each.node.group : "");
    }
    return std::move(rank_);
  }

 private:
  Op op_from(const ChakraNode& node) {
    Op op;
    op.name = node.name;
    if (node.cpu) {
      set_computation(op, node);
      return op;
    }
    switch (node.kind) {
      case ChakraKind::kCollective:
        op.comm = chakra_collective(node.comm_type);
        if (op.comm == CommType::kNone) {
          throw Error(fmt::format("there is no collective for comm_type {}", node.comm_type))
              .at(chakra_node_place(file_, node))
              .expected(
                  "0 all-reduce, 1 reduce, 2 all-gather, 5 broadcast, 6 all-to-all, 7 or 8 "
                  "reduce-scatter, or 9 barrier");
        }
        op.stream = stream(node.group.empty() ? "collectives" : "group " + node.group);
        op.bytes = bytes_of(node);
        break;
      case ChakraKind::kSend:
      case ChakraKind::kReceive: {
        op.comm = CommType::kSendRecv;
        op.send = node.kind == ChakraKind::kSend;
        const std::int64_t other = op.send ? node.destination : node.source;
        if (other < 0 || other >= kMaxGpus) {
          throw Error("the message does not say who the other rank is")
              .at(chakra_node_place(file_, node))
              .expected(op.send ? "comm_dst, a rank" : "comm_src, a rank");
        }
        op.peer = static_cast<std::int32_t>(other);
        op.stream = stream(fmt::format("{} {}", op.send ? "to" : "from", other));
        op.bytes = bytes_of(node);
        break;
      }
      default:
        set_computation(op, node);
    }
    return op;
  }

  /// Of the host all is computation, its calls of communication, too.
  void set_computation(Op& op, const ChakraNode& node) {
    if (node.cpu && node.comm_type >= 0 && node.comm_bytes >= 0 && warnings_ != nullptr) {
      warnings_->add("collectives of the host (is_cpu_op) are computations of their duration");
    }
    op.compute = duration_of(node);
    op.stream = stream(stream_name(node));
  }

  static std::string stream_name(const ChakraNode& node) {
    if (node.cpu) {
      return "host";
    }
    if (node.cuda_stream >= 0) {
      return fmt::format("stream {}", node.cuda_stream);
    }
    const bool copies = node.kind == ChakraKind::kLoad || node.kind == ChakraKind::kStore;
    return copies ? "copy" : "compute";
  }

  Bytes bytes_of(const ChakraNode& node) const {
    if (chakra_collective(node.comm_type) == CommType::kBarrier) {
      return Bytes();
    }
    constexpr std::int64_t kLargest = std::int64_t{1} << 50;
    if (node.comm_bytes < 0 || node.comm_bytes > kLargest) {
      throw Error("the communication has no size")
          .at(chakra_node_place(file_, node))
          .expected("comm_size, in bytes");
    }
    return Bytes(node.comm_bytes);
  }

  Time duration_of(const ChakraNode& node) {
    if (node.duration_us < 0 || node.duration_us > kLongest) {
      throw Error(fmt::format("a duration of {} us", node.duration_us))
          .at(chakra_node_place(file_, node))
          .expected(fmt::format("0 to {}", kLongest));
    }
    if (node.duration_us == 0 && node.kind == ChakraKind::kCompute && !node.cpu &&
        warnings_ != nullptr) {
      warnings_->add("computations without a duration take no time");
    }
    return Time::us(node.duration_us);
  }

  std::int32_t stream(const std::string& name) {
    const auto next = static_cast<std::int32_t>(rank_.program.streams.size());
    const auto [known, is_new] = streams_.try_emplace(name, next);
    if (is_new) {
      rank_.program.streams.push_back(name);
    }
    return known->second;
  }

  const std::string& file_;
  Warnings* warnings_;
  ChakraRank rank_;
  std::map<std::string, std::int32_t> streams_;
};

using GroupMembers = std::map<std::string, std::vector<std::int32_t>>;

GroupMembers listed_groups(const fs::path& file, std::int32_t ranks) {
  GroupMembers groups;
  if (!path_exists(file.string())) {
    return groups;
  }
  const FileText text(file.string());
  const Json json = parse_json(text.view(), file.string());
  if (!json.is_object()) {
    throw Error("is no object").at(file.string()).expected("{\"GROUP\": [RANK, …], …}");
  }
  for (const auto& [name, list] : json.items()) {
    std::set<std::int32_t> members;
    for (const Json& rank : list) {
      if (!rank.is_number_integer() || rank.get<std::int64_t>() < 0 ||
          rank.get<std::int64_t>() >= ranks ||
          !members.insert(static_cast<std::int32_t>(rank.get<std::int64_t>())).second) {
        throw Error(fmt::format("{} is no further rank", printable(rank.dump())))
            .at(file.string())
            .field(printable(name))
            .expected(fmt::format("different ranks, 0 to {}", ranks - 1));
      }
    }
    groups[name].assign(members.begin(), members.end());
  }
  return groups;
}

/// Gives collectives their families; the one without a name is of all ranks.
void settle_groups(std::vector<ChakraRank>& ranks, const GroupMembers& listed,
                   const std::vector<std::string>& files, OpTable& table) {
  GroupMembers named;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    for (std::size_t i = 0; i < ranks[rank].group.size(); ++i) {
      const Op& op = ranks[rank].program.ops[i];
      if (op.comm == CommType::kNone || op.comm == CommType::kSendRecv) {
        continue;
      }
      std::vector<std::int32_t>& members = named[ranks[rank].group[i]];
      if (members.empty() || members.back() != static_cast<std::int32_t>(rank)) {
        members.push_back(static_cast<std::int32_t>(rank));
      }
    }
  }
  std::map<std::string, std::int32_t> family;
  for (auto& [name, members] : named) {
    const auto known = listed.find(name);
    if (name.empty()) {
      members.resize(ranks.size());
      for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        members[rank] = static_cast<std::int32_t>(rank);
      }
    } else if (known != listed.end()) {
      for (const std::int32_t rank : members) {
        if (!std::ranges::binary_search(known->second, rank)) {
          throw Error(fmt::format("the rank is not in process group {}", printable(name)))
              .at(files[static_cast<std::size_t>(rank)])
              .expected(fmt::format("a group that {} lists it in", kGroupsFile));
        }
      }
      members = known->second;
    }
    family[name] = static_cast<std::int32_t>(table.groups.size());
    table.groups.push_back({name.empty() ? "world" : "group " + name, {members}});
  }
  for (ChakraRank& rank : ranks) {
    for (std::size_t i = 0; i < rank.group.size(); ++i) {
      Op& op = rank.program.ops[i];
      if (op.comm == CommType::kNone || op.comm == CommType::kSendRecv) {
        continue;
      }
      op.group = family.at(rank.group[i]);
      if (op.comm == CommType::kAllGather) {
        op.bytes =
            op.bytes * std::ssize(table.groups[static_cast<std::size_t>(op.group)].members.front());
      }
    }
  }
}

}  // namespace

std::vector<std::string> chakra_files(const std::string& path) {
  const bool folder = is_folder(path);
  const fs::path where = folder ? fs::path(path) : fs::path(path).parent_path();
  if (!folder && !path_exists(path + ".0.et")) {
    return {};
  }
  std::map<std::int64_t, std::string> by_rank;
  std::set<std::string> names;
  FileRecord::note_listed(where.string());
  for (const auto& entry : fs::directory_iterator(where.empty() ? fs::path(".") : where)) {
    const auto parts = parts_of(entry.path().filename().string());
    if (parts && (folder || parts->first == fs::path(path).filename().string())) {
      names.insert(parts->first);
      by_rank[parts->second] = entry.path().string();
    }
  }
  if (names.size() > 1) {
    throw Error(fmt::format("the folder has several sets of traces: {} and {}", *names.begin(),
                            *std::next(names.begin())))
        .at(path)
        .expected("one, or the set's name after the folder's");
  }
  if (by_rank.empty()) {
    throw Error("the folder has no execution traces").at(path).expected("NAME.0.et, NAME.1.et, …");
  }
  std::vector<std::string> files;
  for (const auto& [rank, file] : by_rank) {
    if (rank != std::ssize(files)) {
      throw Error(fmt::format("there is no trace of rank {}", files.size())).at(path);
    }
    files.push_back(file);
  }
  return files;
}

ChakraRank read_chakra_rank(std::string_view text, const std::string& file, Warnings* warnings) {
  return RankReader(file, warnings).read(text);
}

Workload read_chakra_et(const std::vector<std::string>& files, Warnings* warnings) {
  std::vector<ChakraRank> ranks;
  for (const std::string& file : files) {
    const FileText text(file);
    ranks.push_back(read_chakra_rank(text.view(), file, warnings));
  }
  const fs::path first(files.front());
  OpTable table;
  settle_groups(
      ranks,
      listed_groups(first.parent_path() / kGroupsFile, static_cast<std::int32_t>(files.size())),
      files, table);
  /// Programs beyond so many are not compared: nothing is alike then.
  constexpr std::size_t kCompared = 64;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    OpProgram& program = ranks[rank].program;
    const RankRange range{static_cast<std::int32_t>(rank), static_cast<std::int32_t>(rank) + 1, 1};
    const auto end = table.programs.begin() +
                     static_cast<std::ptrdiff_t>(std::min(kCompared, table.programs.size()));
    const auto same = std::find_if(table.programs.begin(), end, [&](const OpProgram& other) {
      return other.streams == program.streams && other.ops == program.ops;
    });
    if (same == end) {
      program.ranks = {range};
      table.programs.push_back(std::move(program));
    } else if (same->ranks.back().end == range.first) {
      same->ranks.back().end = range.end;
    } else {
      same->ranks.push_back(range);
    }
  }
  Workload workload;
  WorkloadJob& job = workload.jobs.emplace_back();
  job.name = parts_of(first.filename().string())->first;
  job.parallel.gpus = static_cast<std::int64_t>(files.size());
  job.work = std::move(table);
  try {
    validate(workload);
  } catch (Error& error) {
    throw std::move(error).at(first.parent_path().string());
  }
  return workload;
}

}  // namespace lockstep

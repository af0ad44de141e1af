#include "planner/aceso/database.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "base/file_record.h"
#include "base/missing_path.h"

namespace lockstep::aceso {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 4> kPrimitives = {"all_gather", "all_reduce",
                                                         "reduce_scatter", "all_to_all"};
constexpr std::int64_t kMaxFile = 64 << 20;

void check_folder(const std::string& folder) {
  if (!is_folder(folder)) {
    throw Error("no such folder")
        .at(folder)
        .field("--profiles")
        .expected("a profile database")
        .hint(hint_of_missing(folder));
  }
}

void read_ops(Database& database, const Model& model, const std::vector<std::int64_t>& microbatches,
              int max_tp) {
  std::string first;
  for (const std::int64_t microbatch : microbatches) {
    for (int tp = 1; tp <= max_tp; tp *= 2) {
      for (int algorithm = 0; algorithm < model.algorithms; ++algorithm) {
        const std::string name =
            fmt::format("{}_mbs{}_tp{}_algo{}.csv", model.table_prefix, microbatch, tp, algorithm);
        const std::string path = (fs::path(database.folder) / name).string();
        if (!path_exists(path)) {
          database.missing.push_back(
              fmt::format("{}: no file; plans with {} samples a rank at tp {}{} are left out", path,
                          microbatch, tp, algorithm == 0 ? "" : ", algorithm 1,"));
          continue;
        }
        OpTable table = parse_op_table(FileText(path, Bytes(kMaxFile)).view(), path);
        if (first.empty()) {
          first = path;
          database.names = table.names;
        } else if (table.names != database.names) {
          const std::size_t at =
              static_cast<std::size_t>(std::mismatch(table.names.begin(), table.names.end(),
                                                     database.names.begin(), database.names.end())
                                           .first -
                                       table.names.begin());
          throw Error(fmt::format("another op list than in {}", first))
              .at(path, at + 2)
              .hint("the tables of one model list the same ops in the same order");
        }
        database.profiles.push_back({microbatch, tp, algorithm, std::move(table.costs)});
      }
    }
  }
  if (first.empty()) {
    throw Error(fmt::format("no op table of {} for a microbatch asked for", model.table_prefix))
        .at(database.folder)
        .field("--profiles")
        .expected(fmt::format("{}_mbs{}_tp1_algo0.csv and others", model.table_prefix,
                              microbatches.empty() ? 1 : microbatches.front()));
  }
  database.ops = op_rows(model, database.names, first);
  for (const std::string& name : database.names) {
    database.traits.push_back(traits_of(name, model.family == Family::kResnet));
  }
}

void read_collectives(Database& database, const Model& model, int max_tp) {
  if (!model.resharding) {
    return;
  }
  for (std::size_t primitive = 0; primitive < kPrimitives.size(); ++primitive) {
    const bool reads = model.family != Family::kResnet ||
                       primitive == static_cast<std::size_t>(Primitive::kAllGather) ||
                       primitive == static_cast<std::size_t>(Primitive::kAllToAll);
    for (std::size_t power = 1; reads && power < 4 && (1 << power) <= max_tp; ++power) {
      const std::string name = fmt::format("prim_{}_{}_{}gpus.csv", model.table_prefix,
                                           kPrimitives[primitive], 1 << power);
      const std::string path = (fs::path(database.folder) / name).string();
      if (path_exists(path)) {
        database.collectives[primitive][power] =
            parse_collective_table(FileText(path, Bytes(kMaxFile)).view(), path);
      } else {
        database.missing.push_back(
            fmt::format("{}: no file; changes of layout that need it take 100 s", path));
      }
    }
  }
}

}  // namespace

bool Database::has(std::int64_t microbatch, int tp, int algorithm) const {
  return std::any_of(profiles.begin(), profiles.end(), [&](const Profile& profile) {
    return profile.microbatch == microbatch && profile.tp == tp && profile.algorithm == algorithm;
  });
}

const OpCost& Database::cost(int row, std::int64_t microbatch, int tp, int algorithm) const {
  for (const Profile& profile : profiles) {
    if (profile.microbatch == microbatch && profile.tp == tp && profile.algorithm == algorithm) {
      return profile.costs[static_cast<std::size_t>(row)];
    }
  }
  return kUnprofiledOp;
}

Database read_database(const std::string& folder, const Model& model,
                       const std::vector<std::int64_t>& microbatches, int max_tp) {
  check_folder(folder);
  Database database;
  database.folder = folder;
  read_ops(database, model, microbatches, max_tp);
  read_collectives(database, model, max_tp);
  const fs::path intra = fs::path(folder) / "p2p_intra_node.csv";
  const fs::path inter = fs::path(folder) / "p2p_inter_node.csv";
  database.intra =
      parse_peer_table(FileText(intra.string(), Bytes(kMaxFile)).view(), intra.string());
  if (path_exists(inter.string())) {
    database.inter =
        parse_peer_table(FileText(inter.string(), Bytes(kMaxFile)).view(), inter.string());
  } else {
    database.inter = database.intra;
    database.missing.push_back(
        fmt::format("{}: no file; p2p_intra_node.csv serves for both", inter.string()));
  }
  return database;
}

}  // namespace lockstep::aceso

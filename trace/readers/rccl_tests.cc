// What rccl-tests writes with -x FILE: a result a row, as CSV (-Z csv) or as a list of JSON's
// objects (-Z json). Programs without MPI tell GPUs, others servers, processes and the GPUs of
// each.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/csv_fields.h"
#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "trace/log_reader.h"
#include "trace/wrapped_size.h"

namespace lockstep {
namespace {

constexpr std::string_view kFirstColumns = "numCycle,collective,";

bool is_list(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '[';
}

bool sniff(std::string_view head, std::string_view) {
  return head.starts_with(kFirstColumns) ||
         (is_list(head) && head.find("\"numCycle\"") != std::string_view::npos &&
          head.find("\"busBw\"") != std::string_view::npos);
}

/// A row's values by the CSV's names of columns.
using Row = std::map<std::string, std::string, std::less<>>;

class Reader {
 public:
  explicit Reader(PhysicalLog& log) : log_(log), names_(log.names) {}

  void take(const Row& values, std::int64_t line) {
    const auto text = [&](const char* name) {
      const auto found = values.find(name);
      return found == values.end() ? std::string() : found->second;
    };
    const auto number = [&](const char* name) { return to_double(text(name)).value_or(0); };
    const auto count = [&](const char* name) { return to_int(text(name)).value_or(0); };
    const auto sane = [](std::int64_t value) { return value >= 1 && value < (1 << 24); };
    const bool mpi = values.contains("ranks");
    const std::int64_t each = mpi ? count("gpusPerRank") : 1;
    std::int64_t gpus = count(mpi ? "ranks" : "gpus");
    gpus = sane(gpus) && sane(each) ? gpus * each : 0;
    const std::int64_t nodes = values.contains("nodes") ? count("nodes") : 0;
    const auto bytes = to_int(text("size"));
    const double us = number("time");
    const std::string op = text("collective").substr(0, 100);
    if (!bytes || !(us > 0) || !sane(gpus) || nodes < 0 || nodes > gpus || op.empty()) {
      log_.warnings.add("rows whose numbers make no sense were passed over");
      return;
    }
    CommRow row;
    row.setting = table(op, text("type").substr(0, 100), static_cast<std::int32_t>(gpus),
                        static_cast<std::int32_t>(nodes));
    row.op = comm_type_in(op);
    row.name = names_.index(op);
    row.ranks = static_cast<std::int32_t>(gpus);
    row.bytes = Bytes(*bytes);
    row.time_s = us * 1e-6;
    row.algbw_Bps = std::max(0.0, number("algbw") * 1e9);
    row.busbw_Bps = std::max(0.0, number("busbw") * 1e9);
    row.wrong = std::max(0.0, number("#wrong"));
    row.in_place = text("inplace") == "1";
    row.line = line;
    if (unwrap_size(row, log_.warnings)) {
      log_.comms.push_back(row);
    }
  }

 private:
  /// Rows of one operation, type and place are a table.
  std::int32_t table(const std::string& op, const std::string& type, std::int32_t gpus,
                     std::int32_t nodes) {
    const auto [known, fresh] =
        tables_.try_emplace(fmt::format("{}\n{}\n{}\n{}", op, type, gpus, nodes),
                            static_cast<std::int32_t>(log_.settings.size()));
    if (fresh) {
      CommSetting setting;
      setting.id = fmt::format("{} {} {}", log_.file.substr(log_.file.rfind('/') + 1), op, type);
      setting.program = op;
      setting.dtype = type;
      setting.ranks = gpus;
      setting.servers = nodes;
      log_.settings.push_back(std::move(setting));
    }
    return known->second;
  }

  PhysicalLog& log_;
  TextTable names_;
  std::map<std::string, std::int32_t> tables_;
};

void read_csv(std::string_view text, Reader& reader, Warnings& warnings) {
  std::string_view line;
  std::vector<std::string> columns, fields;
  std::int64_t number = 1;
  if (next_line(text, line)) {
    split_csv(line, columns);
  }
  // Some releases name no column "nodes", and write it.
  const bool unnamed = std::ranges::find(columns, "nodes") == columns.end() &&
                       std::ranges::find(columns, "ranks") != columns.end();
  while (next_line(text, line)) {
    ++number;
    if (trim(line).empty()) {
      continue;
    }
    split_csv(line, fields);
    if (unnamed && columns.size() >= 2 && fields.size() == columns.size() + 1) {
      columns.insert(columns.begin() + 2, "nodes");
    }
    if (fields.size() != columns.size()) {
      warnings.add("lines with too many or too few fields were passed over");
      continue;
    }
    Row row;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      row.emplace(columns[i], fields[i]);
    }
    reader.take(row, number);
  }
}

void read_json(const Json& list, Reader& reader) {
  static const std::map<std::string_view, std::string> other_names = {{"name", "collective"},
                                                                      {"inPlace", "inplace"},
                                                                      {"algBw", "algbw"},
                                                                      {"busBw", "busbw"},
                                                                      {"wrong", "#wrong"}};
  for (const Json& result : list) {
    Row row;
    for (const auto& [key, value] : result.items()) {
      const auto other = other_names.find(key);
      row.emplace(other == other_names.end() ? key : other->second,
                  value.is_string() ? value.get<std::string>() : value.dump());
    }
    reader.take(row, 0);
  }
}

void read(std::string_view text, PhysicalLog& log) {
  Reader reader(log);
  if (is_list(text)) {
    read_json(parse_json(text, log.file), reader);
  } else {
    read_csv(text, reader, log.warnings);
  }
  if (log.comms.empty()) {
    throw Error("there is no row of a measurement")
        .expected("numCycle, collective, ranks or gpus, size, type, inplace, time, …");
  }
}

}  // namespace

extern const LogReader kRcclTestsLogReader;
const LogReader kRcclTestsLogReader{"rccl-tests", "rccl-tests' CSV and JSON (-x)", sniff, read};

}  // namespace lockstep

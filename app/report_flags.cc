#include "app/report_flags.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <list>
#include <map>
#include <string_view>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "app/program.h"
#include "base/atomic_file.h"
#include "base/error.h"
#include "base/kept_inputs.h"
#include "base/process.h"
#include "base/text.h"
#include "report/html/figure.h"
#include "report/html/page.h"
#include "report/html/report_document.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

/// "heatmap.svg": the figure of this name; "heatmap=out/map.png": in a file of another one.
struct FigureFile {
  std::string name, path;
};

FigureFile figure_file(const std::string& text) {
  const std::size_t equals = text.find('=');
  FigureFile figure;
  figure.path = equals == std::string::npos ? text : text.substr(equals + 1);
  figure.name =
      equals == std::string::npos ? fs::path(text).stem().string() : text.substr(0, equals);
  if (!figure.path.ends_with(".svg") && !figure.path.ends_with(".png")) {
    throw Error("cannot tell the format of a figure by this name")
        .at(figure.path)
        .field("--figure")
        .expected("a name that ends in .svg or .png");
  }
  return figure;
}

/// ERRORS: of the file that it is for.
std::string png_of(const std::string& svg, const std::string& path) {
  ProcessResult result;
  const char* missing = "a figure as .png needs rsvg-convert, which is not there";
  try {
    // Twice as fine as the SVG's pixels, for paper.
    result = run_process({"rsvg-convert", "--zoom=2", "--format=png"},
                         {.input = svg, .environment = {}, .seconds = 120});
  } catch (const Error&) {
    throw Error(missing, ExitCode::kMissingPart)
        .hint("install librsvg2-bin, or take a name that ends in .svg");
  }
  if (result.exit_code == 127) {
    throw Error(missing, ExitCode::kMissingPart)
        .hint("install librsvg2-bin, or take a name that ends in .svg");
  }
  if (result.exit_code != 0) {
    throw Error("rsvg-convert cannot draw the figure: " + printable(trim(result.err), 200))
        .at(path)
        .field("--figure");
  }
  return result.out;
}

bool is_standard_output(std::string_view path) {
  constexpr std::array<std::string_view, 4> kNames{"-", "/dev/stdout", "/dev/fd/1",
                                                   "/proc/self/fd/1"};
  return std::ranges::find(kNames, path) != kNames.end();
}

/// Where the path leads, as far as what is there tells.
std::string place_of(const std::string& path) {
  std::error_code unknown;
  const fs::path whole = fs::absolute(path), place = fs::weakly_canonical(whole, unknown);
  return unknown ? whole.lexically_normal() : place;
}

/// A word as a shell reads it.
std::string quoted(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+./,:@%^";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) {
    return word;
  }
  std::string text = "'";
  for (const char c : word) {
    text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return text + "'";
}

}  // namespace

void check_output_folder(const std::string& path, const char* flag) {
  const fs::path folder = fs::path(path).parent_path();
  std::error_code unknown;
  if (path != "-" && !folder.empty() && !fs::is_directory(folder, unknown)) {
    throw Error("there is no such folder").at(folder.string()).field(flag);
  }
  if (path != "-" && fs::is_directory(path, unknown)) {
    throw Error("it is a folder").at(path).field(flag).expected("a file");
  }
}

void check_names_differ(const OutputNames& files) {
  std::map<std::string, std::string> flag_of;  // by file
  for (const auto& [flag, path] : files) {
    const auto [known, fresh] =
        flag_of.try_emplace(is_standard_output(path) ? "-" : place_of(path), flag);
    if (!fresh) {
      throw Error("is also what " + (known->second == flag ? "another " + flag : known->second) +
                  " writes")
          .at(path)
          .field(flag);
    }
  }
}

void check_not_standard_output(const OutputNames& files, const char* what) {
  for (const auto& [flag, path] : files) {
    if (is_standard_output(path)) {
      throw Error(fmt::format("standard output has {} already", what))
          .at(path)
          .field(flag)
          .expected("a file");
    }
  }
}

OutputNames files_of(const ReportFlags& flags) {
  OutputNames files;
  if (!flags.report.empty()) {
    files.emplace_back("--report", flags.report);
  }
  for (const std::string& text : flags.figures) {
    files.emplace_back("--figure", figure_file(text).path);
  }
  return files;
}

void define_report_flags(CLI::App& app, ReportFlags& flags) {
  app.add_option("--report", flags.report, "HTML page that shows the result")->group("Output");
  app.add_option(
         "--figure", flags.figures,
         "a figure of that page as NAME.svg or NAME.png, or NAME=FILE; may be given several\n"
         "times ('lockstep report RESULT --list-figures' lists the names)")
      ->allow_extra_args(false)
      ->take_all()
      ->group("Output");
}

void check_report_flags(const ReportFlags& flags, const char* on_standard_output) {
  if (flags.wanted() && echarts_text().empty()) {
    throw Error("this build has no charting library, so that it makes no reports",
                ExitCode::kMissingPart)
        .hint("./setup installs it; then configure and build again");
  }
  const OutputNames files = files_of(flags);
  for (const auto& [flag, path] : files) {
    check_output_folder(path, flag.c_str());
  }
  check_names_differ(files);
  if (on_standard_output != nullptr) {
    check_not_standard_output(files, on_standard_output);
  }
}

void write_reports(const ReportFlags& flags, const std::vector<ReportDocument>& documents) {
  std::vector<std::pair<std::string, std::string>> files;  // nothing is written before all is made
  for (const std::string& text : flags.figures) {
    const FigureFile figure = figure_file(text);
    std::string picture = figure_svg(documents, figure.name);
    files.emplace_back(figure.path,
                       figure.path.ends_with(".png") ? png_of(picture, figure.path) : picture);
  }
  if (!flags.report.empty()) {
    files.emplace_back(flags.report, html_page(documents));
  }
  std::list<AtomicFile> outputs;  // nor is one there before all can be
  for (const auto& [path, text] : files) {
    refuse_own_output(path);
    outputs.emplace_back(path);
  }
  auto output = outputs.begin();
  for (const auto& [path, text] : files) {
    output->write(text);
    output->flush();
    ++output;
  }
  for (AtomicFile& each : outputs) {
    each.commit();
  }
}

void write_reports(const ReportFlags& flags, const std::string& command, const std::string& json) {
  if (flags.wanted()) {
    write_reports(flags, {{"lockstep " + command, parse_json(json, "lockstep " + command)}});
  }
}

std::string shell_text(std::span<const std::string> words) {
  std::string text;
  for (const std::string& word : words) {
    text += (text.empty() ? "" : " ") + quoted(word);
  }
  return text;
}

std::string command_line() {
  constexpr std::array<std::string_view, 6> kWithValue{"-o",       "--output", "--report",
                                                       "--figure", "--resume", "--threads"};
  std::string line = "lockstep";
  const std::vector<std::string> words = program_arguments();
  // Their folder is part of what they do: one must be named, the other goes on from what is in it.
  const bool with_output =
      !words.empty() && (words.front() == "whatif" || words.front() == "sweep");
  bool value = false;  // of a flag that is left out
  for (const std::string& word : words) {
    const std::string_view flag = std::string_view(word).substr(0, word.find('='));
    if (std::exchange(value, false) || word == "--quiet") {
      continue;
    }
    if (with_output && (flag == "-o" || flag == "--output")) {
      line += " " + quoted(word);
      continue;
    }
    if (std::ranges::find(kWithValue, flag) != kWithValue.end()) {
      value = flag.size() == word.size();
      continue;
    }
    line += " " + quoted(word);
  }
  return line;
}

std::string with_command(std::string json) {
  const std::size_t schema = json.find("\"schema\":");
  const std::size_t end = schema == std::string::npos ? schema : json.find(',', schema);
  if (end == std::string::npos) {
    return json;
  }
  const std::size_t line = json.rfind('\n', schema);
  const std::string indent =
      line == std::string::npos ? " " : json.substr(line, schema - line);  // "\n  "
  json.insert(end + 1, indent + "\"command\": " + to_line(Json(command_line())) + ",");
  return json;
}

}  // namespace lockstep

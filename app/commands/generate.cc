#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/command.h"
#include "app/generate_exact.h"
#include "app/report_flags.h"
#include "app/simai_command.h"
#include "app/terminal.h"
#include "app/usage.h"
#include "base/atomic_file.h"
#include "base/error.h"
#include "base/file_fence.h"
#include "base/file_record.h"
#include "base/json.h"
#include "base/output_capture.h"
#include "base/text.h"
#include "generator/generator.h"
#include "generator/model/model_table.h"
#include "generator/process/ops_csv.h"
#include "generator/to_workload.h"
#include "workloads/workload_json.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

struct GenerateFlags {
  std::string generator, output, format, flavour, examples;
  bool script_compat = false, help = false, list_models = false, memory = false, json = false;
  CLI::App* app = nullptr;
};

/// What --help says below the examples; `named` is the generator that was named, if any.
std::string about_generators(const Generator* named) {
  std::string text = "\nGenerators (--generator):\n";
  for (const Generator* each : generators()) {
    text += fmt::format("  {:<16} {} ({})\n", each->name, each->summary, each->format);
  }
  if (named != nullptr) {
    return text + fmt::format("\nFlags of {}:\n{}", named->name, args_help(named->flags()));
  }
  return text +
         "\n'lockstep generate --generator NAME --help' lists that one's flags.\n"
         "'lockstep generate --flavour exact --help' lists those of a step as it is: --model,\n"
         "--hf-config, --from-megatron-args, --gpus, --tp, --pp …\n";
}

/// What --memory prints.
std::string memory_of(const ExactJob& job, bool json) {
  const ParameterTotals& all = job.parameters;
  if (!json) {
    const std::string active =
        all.active < all.total ? fmt::format(", {:.0f} of them a token's", all.active) : "";
    return for_terminal(fmt::format("{}: {:.0f} parameters{}\n{}", printable(job.job.model.name),
                                    all.total, active, memory_text(job)));
  }
  if (all.total >= 9.2e18) {
    throw Error("the number of parameters left the range of 64-bit integers").field("--memory");
  }
  Json document = memory_json(job);
  document["model"] = printable(job.job.model.name);
  document["parameters"] = static_cast<std::int64_t>(all.total);
  document["active_parameters"] = static_cast<std::int64_t>(all.active);
  document["schema"] = "lockstep-memory/1";
  return to_text(document);
}

bool as_json(const GenerateFlags& flags) { return flags.format == "json"; }

/// Of AICB's flavour: whether the layer table is to be our JSON, by --format or else by the name of
/// the output. ERRORS: the generator does not write what is asked for.
bool json_wanted(const GenerateFlags& flags, const Generator& generator) {
  const bool layers = generator.format == "simai";
  const bool named = flags.format.empty() && flags.output.ends_with(".json");
  const bool json = as_json(flags) || named;
  if ((flags.format.empty() && !named) || flags.format == generator.format || (layers && json)) {
    return json;
  }
  std::vector<std::string> ways;
  if (json && trains(generator)) {
    ways.emplace_back("--flavour exact beside it writes the step as it is as JSON");
  }
  std::vector<std::string_view> fitting;
  for (const Generator* each : generators()) {
    if (each->format == flags.format || (each->format == "simai" && json)) {
      fitting.push_back(each->name);
    }
  }
  if (!fitting.empty()) {
    ways.push_back(fmt::format("--generator {} does", join(fitting, " or ")));
  }
  Error error =
      named ? Error(fmt::format("{} does not write JSON, which the name ends in", generator.name))
                  .field("--output")
                  .expected(fmt::format("another ending, or --format {} to write that all the same",
                                        generator.format))
            : Error(fmt::format("{} does not write '{}'", generator.name, printable(flags.format)))
                  .field("--format")
                  .expected(std::string(generator.format) + (layers ? " or json" : ""));
  throw std::move(error).hint(fmt::format("{}", fmt::join(ways, "; ")));
}

/// The file to write. A folder (or a name that ends in '/', which is made) gets AICB's file name.
/// Without -o it is that name here, where nothing may be overwritten that the user did not name.
std::string output_path(const std::string& output, const std::string& file_name) {
  std::error_code ignored;
  const bool folder =
      output.empty() || output.ends_with('/') || (output != "-" && is_folder(output));
  if (!folder) {
    return output;
  }
  if (file_name.find('/') != std::string::npos) {
    throw Error(fmt::format("'{}' cannot name a file", printable(file_name)))
        .field("--model_name")
        .expected("a name without '/'");
  }
  std::string path = (fs::path(output) / file_name).string();
  if (output.empty() && fs::exists(path, ignored)) {
    throw Error("the file exists").at(path).hint("name the output: -o DIR, -o FILE or -o -");
  }
  if (output.ends_with('/') && !fs::exists(output, ignored)) {
    refuse_writing_outside(output);
    std::error_code problem;
    fs::create_directory(output.substr(0, output.find_last_not_of('/') + 1), problem);
    if (problem) {
      throw Error(fmt::format("cannot make the folder: {}", problem.message())).at(output);
    }
  }
  return path;
}

void print_size(const AtomicFile& file, std::size_t bytes) {
  if (file.path() != "-") {
    fmt::print(standard_error(), "{}: {} bytes\n", file.path(), bytes);
  }
}

void print_remarks(const ExactJob& job) {
  for (const std::string& note : job.notes) {
    fmt::print(standard_error(), "lockstep: {}\n", note);
  }
  for (const std::string& warning : job.warnings) {
    fmt::print(standard_error(), "lockstep: warning: {}\n", warning);
  }
}

/// Readers of SimAI's text expect it in a .txt: says what is there instead, and what writes that.
void note_no_simai_text(const std::string& path, const Job& job) {
  if (!path.ends_with(".txt")) {
    return;
  }
  fmt::print(standard_error(),
             "lockstep: {} is not SimAI's text but the step as it is, as JSON that 'lockstep "
             "simulate' reads\n",
             printable(path));
  if (const SimaiCommand command = simai_command(job); !command.words.empty()) {
    fmt::print(standard_error(),
               "lockstep: SimAI's text of it{} is written by\n  lockstep generate {} -o {}\n",
               command.lost.empty() ? "" : fmt::format(" (without {})", command.lost),
               command.words, printable(shell_text(std::array{path})));
  }
}

/// The generator that is named, with its words.
GenerateRequest request_of(const GenerateFlags& flags, const Generator& generator) {
  if (flags.script_compat && !trains(generator)) {
    throw Error(fmt::format("{} reads no script's flags", generator.name))
        .field("--script-compat")
        .expected("--generator simai-training, megatron, deepspeed12 or deepspeed3 beside it");
  }
  GenerateRequest request;
  request.words = flags.app->remaining();
  request.script_compat = flags.script_compat;
  return request;
}

/// The job of the words: a generator's, or our own.
ExactJob described_of(const GenerateFlags& flags) {
  if (flags.generator.empty()) {
    return exact_job(flags.app->remaining());
  }
  const Generator& generator = generator_named(flags.generator);
  return exact_job(aicb_job(generator, request_of(flags, generator)));
}

ExitCode generate_exact(const GenerateFlags& flags) {
  if (flags.help) {
    write_file("-", exact_flags_help());
    return ExitCode::kDone;
  }
  const bool csv = flags.format == "csv";
  if (!csv && !flags.format.empty() && !as_json(flags)) {
    throw Error(fmt::format("the exact flavour does not write '{}'", printable(flags.format)))
        .field("--format")
        .expected("json or csv")
        .hint("--generator simai-training --flavour aicb writes SimAI's text");
  }
  ExactJob described = described_of(flags);
  if (flags.memory && flags.output.empty()) {
    print_remarks(described);
    write_file("-", memory_of(described, flags.json));
    return ExitCode::kDone;
  }
  const ProcessWorkload result = exact_workload_of(described);
  print_remarks(described);
  if (flags.memory) {
    fmt::print(standard_error(), "{}", memory_text(described));
  }
  const WorkloadJob& job = result.workload.jobs.front();
  AtomicFile file(output_path(flags.output, job.name + (csv ? ".csv" : ".json")));
  std::size_t bytes = 0;
  const auto take = [&](std::string_view piece) {
    file.write(piece);
    bytes += piece.size();
  };
  if (csv) {
    BlockWriter writer(take);
    const std::size_t init_ops = result.init_ops.empty() ? 0 : result.init_ops.front();
    for (const auto& [group, count] : write_ops_csv(job, init_ops, writer)) {
      fmt::print(standard_error(),
                 "lockstep: warning: {} operations over the group {} are left out: AICB's CSV has "
                 "no word for it\n",
                 count, group);
    }
    writer.flush();
  } else {
    write_workload_json(result.workload, take);
  }
  file.commit();
  print_size(file, bytes);
  if (!csv) {
    note_no_simai_text(file.path(), described.job);
  }
  return ExitCode::kDone;
}

/// Without a generator, words that name a model or a script ask for the exact flavour.
bool is_exact(const GenerateFlags& flags) {
  if (!flags.flavour.empty() && flags.flavour != "exact" && flags.flavour != "aicb") {
    throw Error(fmt::format("unknown flavour '{}'", printable(flags.flavour)))
        .field("--flavour")
        .expected("aicb or exact");
  }
  if (!flags.generator.empty() && flags.flavour == "exact" && !flags.list_models) {
    return true;
  }
  if (!flags.generator.empty() || flags.list_models || flags.flavour == "aicb") {
    return false;
  }
  const auto names_model = [](const std::string& word) {
    std::string name = word.substr(0, word.find('='));
    std::ranges::replace(name, '_', '-');
    return name == "--model" || name == "--model-file" || name == "--hf-config" ||
           name == "--from-megatron-args";
  };
  const std::vector<std::string> words = flags.app->remaining();
  return flags.flavour == "exact" || flags.memory || std::ranges::any_of(words, names_model);
}

ExitCode generate(const GenerateFlags& flags) {
  if (flags.json && !flags.list_models && !(flags.memory && flags.output.empty())) {
    throw Error("a workload is no document of --json")
        .field("--json")
        .expected("--list-models, or --memory without -o")
        .hint("--format json writes the workload as JSON");
  }
  if (is_exact(flags)) {
    return generate_exact(flags);
  }
  if (flags.help) {
    flags.app->footer(flags.examples + about_generators(flags.generator.empty()
                                                            ? nullptr
                                                            : &generator_named(flags.generator)));
    write_file("-", root_help(*flags.app));
    return ExitCode::kDone;
  }
  if (flags.list_models) {
    if (!flags.output.empty() || !flags.generator.empty()) {
      throw Error("a list of models is no workload")
          .field(flags.output.empty() ? "--generator" : "--output")
          .expected("--list-models alone, or with --json");
    }
    write_file("-", flags.json ? to_text(models_json()) : for_terminal(model_table()));
    return ExitCode::kDone;
  }
  if (flags.generator.empty()) {
    constexpr std::array<std::string_view, 6> kStarts{"--generator", "--list-models",
                                                      "--model",     "--model-file",
                                                      "--hf-config", "--from-megatron-args"};
    if (flags.flavour == "aicb") {
      throw Error("AICB's flavour is written by a generator of AICB's")
          .field("--flavour")
          .expected("--generator NAME beside it")
          .hint(
              "--generator simai-training writes SimAI's text; 'lockstep generate --help' lists "
              "all");
    }
    for (const std::string& word : flags.app->remaining()) {
      const std::string_view near = word.starts_with("--") ? closest(word, kStarts) : "";
      if (!near.empty()) {
        throw Error(fmt::format("unknown flag '{}'", printable(word)))
            .hint(fmt::format("did you mean '{}'?", near));
      }
    }
    std::vector<std::string_view> names;
    for (const Generator* each : generators()) {
      names.push_back(each->name);
    }
    throw Error("neither a generator nor a model is named")
        .field("--generator")
        .expected(join(names, ", "))
        .hint("or --model NAME --gpus N for the step as it is: 'lockstep generate --help'");
  }
  const Generator& generator = generator_named(flags.generator);
  const bool json = json_wanted(flags, generator);
  if (flags.memory) {
    throw Error("AICB's generators know nothing of memory")
        .field("--memory")
        .expected("--flavour exact beside --generator, or --model NAME without");
  }
  const GenerateRequest request = request_of(flags, generator);
  FileRecord::note_listed("results/aiob_outputs");  // where AICB's look for compute times
  const GeneratedWorkload workload = generator.generate(request);
  for (const Warnings::Entry& warning : workload.warnings.entries()) {
    fmt::print(standard_error(), "lockstep: warning: {}\n", warning.text);
  }
  std::string name = workload.file_name;
  std::optional<Workload> layers;
  if (json) {
    layers = to_workload(workload);
    name = fs::path(name).replace_extension(".json").string();
  }
  AtomicFile file(output_path(flags.output, name));
  std::size_t bytes = 0;
  const auto take = [&](std::string_view piece) {
    file.write(piece);
    bytes += piece.size();
  };
  if (layers.has_value()) {
    write_workload_json(*layers, take);
  } else {
    BlockWriter writer(take);
    workload.write(writer);
    writer.flush();
  }
  file.commit();
  print_size(file, bytes);
  return ExitCode::kDone;
}

CommandBody define(CLI::App& app) {
  auto flags = std::make_shared<GenerateFlags>();
  flags->app = &app;
  flags->examples = app.get_footer();
  app.footer(flags->examples + about_generators(nullptr));
  app.set_help_flag();
  app.allow_extras();  // a generator's flags: its own table reads them
  app.add_option("--generator", flags->generator, "What to imitate; see below")->expected(0, 1);
  app.add_option("-o,--output", flags->output,
                 "File to write; a folder gets AICB's file name; - is standard output")
      ->expected(0, 1);
  app.add_option(
         "--format", flags->format,
         "of AICB's flavour: json for the layer table as our JSON instead of SimAI's text "
         "(without\n"
         "--format, too, where the output's name ends in .json), else simai, csv or vidur, as the\n"
         "generator has it; of the exact one: json or csv")
      ->expected(0, 1);
  app.add_option("--flavour", flags->flavour,
                 "aicb: byte for byte what AICB writes; exact: the step as it is, what you get\n"
                 "without --generator, and from a training generator's flags, too")
      ->expected(0, 1);
  app.add_flag("--memory", flags->memory,
               "Of the exact flavour: print what a rank of each stage needs; the workload is\n"
               "written only with -o");
  app.add_flag(
      "--script-compat", flags->script_compat,
      "Read the flags as AICB's script does (megatron_workload_with_aiob.sh, megatron_gpt.sh\n"
      "or deepspeed_llama.sh, by the generator): its presets override them");
  app.add_flag("--list-models", flags->list_models,
               "The models that come with Lockstep, with their parameter counts");
  app.add_flag("--json", flags->json, "What --memory or --list-models print, as one JSON document");
  app.add_flag("-h,--help", flags->help, "This, and the flags of the generator that is named");
  return [flags] { return generate(*flags); };
}

}  // namespace

extern const Command kGenerateCommand;
const Command kGenerateCommand{
    "generate", "Writes workloads: a training step as it is, or byte for byte what AICB writes",
    R"(Examples:
  lockstep generate --generator simai-training --model gpt-13b --world_size 32 --tp 8 --sp -o gpt13b.txt
  lockstep generate --generator megatron --model gpt-7b --world_size 8 --tp 2 --global_batch 8 -o -
  lockstep generate --generator simai-training --help
  lockstep generate --generator megatron --flavour exact --model gpt-7b --world_size 8 --tp 2 --gbs 16 -o gpt7b.json
  lockstep generate --model llama3-8b --gpus 16 --tp 2 --pp 2 --sp --gbs 16 -o llama.json
  lockstep generate --model llama3-70b --gpus 64 --tp 8 --pp 2 --sp --memory
  lockstep generate --from-megatron-args train.sh --gpu-type H200 -o train.json
)",
    define};

}  // namespace lockstep

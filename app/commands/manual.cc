#include "app/manual.h"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "app/build_facts.h"
#include "app/command.h"
#include "base/atomic_file.h"

namespace lockstep {
namespace {

struct Options {
  std::vector<std::string> command;
  std::string folder;
};

const CLI::App& find_command(const CLI::App& root, const std::vector<std::string>& words) {
  const CLI::App* app = &root;
  for (const std::string& word : words) {
    const auto subs = app->get_subcommands([](const CLI::App*) { return true; });
    const auto found =
        std::ranges::find_if(subs, [&](const CLI::App* sub) { return sub->get_name() == word; });
    if (found == subs.end()) {
      throw Error(fmt::format("there is no command '{}'", word))
          .hint("'lockstep --help' lists the commands");
    }
    app = *found;
  }
  return *app;
}

void write_all(const CLI::App& app, const std::filesystem::path& folder,
               const std::string& version) {
  write_file((folder / (manual_name(app) + ".1")).string(), manual_page(app, version));
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    write_all(*sub, folder, version);
  }
}

CommandBody define(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  app.add_option("command", options->command,
                 "The command: none for the program, topology build …");
  app.add_option("-o,--output", options->folder,
                 "Folder for the pages of all commands; made if absent");
  return [options, &app] {
    const CLI::App& root = *app.get_parent();
    const std::string version = fmt::format("lockstep {}", build_facts().version);
    if (options->folder.empty()) {
      write_file("-", manual_page(find_command(root, options->command), version));
      return ExitCode::kDone;
    }
    make_folder(options->folder);
    write_all(root, options->folder, version);
    return ExitCode::kDone;
  };
}

}  // namespace

extern const Command kManualCommand;
const Command kManualCommand{"manual", "Prints the manual page of a command, or writes all of them",
                             R"(Examples:
  lockstep manual simulate | man -l -
  lockstep manual -o ~/.local/share/man/man1
)",
                             define};

}  // namespace lockstep

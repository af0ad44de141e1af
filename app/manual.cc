#include "app/manual.h"

#include <algorithm>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "app/usage.h"
#include "base/text.h"

namespace lockstep {
namespace {

/// Text as roff reads it: no line may begin with a dot or quote, and '-' is a minus that can be
/// copied.
std::string roff(std::string_view text) {
  std::string out;
  bool line_start = true;
  for (const char c : text) {
    if (line_start && (c == '.' || c == '\'')) {
      out += "\\&";
    }
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
    line_start = c == '\n';
  }
  return out;
}

std::string without_end(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) {
    text.pop_back();
  }
  return text;
}

/// "-o, --output FILE".
std::string heading(const CLI::Option& option) {
  std::string names;
  for (const std::string& name : option.get_snames()) {
    names += fmt::format("{}\\fB{}\\fR", names.empty() ? "" : ", ", roff("-" + name));
  }
  for (const std::string& name : option.get_lnames()) {
    names += fmt::format("{}\\fB{}\\fR", names.empty() ? "" : ", ", roff("--" + name));
  }
  if (names.empty()) {
    names = fmt::format("\\fI{}\\fR", roff(option.get_name()));
  }
  if (option.get_type_size() != 0 && !option.get_positional()) {
    names += fmt::format(" \\fI{}\\fR", roff(option.get_type_name()));
  }
  if (!option.get_default_str().empty()) {
    names += roff(fmt::format(" (default: {})", option.get_default_str()));
  }
  return names;
}

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  const auto subs = app.get_subcommands([](const CLI::App*) { return true; });
  return {subs.begin(), subs.end()};
}

void append_options(const CLI::App& app, std::string& text) {
  std::vector<std::string> groups;
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_group().empty() &&
        std::ranges::find(groups, option->get_group()) == groups.end()) {
      groups.push_back(option->get_group());
    }
  }
  for (const std::string& group : groups) {
    text += fmt::format(".SH {}\n", roff(group == "Options" ? "OPTIONS" : group));
    for (const CLI::Option* option : app.get_options()) {
      if (option->get_group() == group) {
        text += fmt::format(".TP\n{}\n{}\n", heading(*option), roff(option->get_description()));
      }
    }
  }
}

}  // namespace

std::string manual_name(const CLI::App& app) {
  std::string name = full_name(app);
  std::ranges::replace(name, ' ', '-');
  return name;
}

std::string manual_page(const CLI::App& app, const std::string& version) {
  std::string name = manual_name(app), title = name;
  std::ranges::transform(title, title.begin(), [](unsigned char c) { return std::toupper(c); });
  const std::vector<const CLI::App*> commands = commands_of(app);
  std::string text =
      fmt::format(".TH \"{}\" 1 \"\" \"{}\" \"\"\n.SH NAME\n{} \\- {}\n", roff(title),
                  roff(version), roff(name), roff(app.get_description()));
  text += fmt::format(".SH SYNOPSIS\n\\fB{}\\fR{} [\\fIOPTIONS\\fR]", roff(full_name(app)),
                      commands.empty() ? "" : " \\fICOMMAND\\fR");
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) {
      text += fmt::format(" \\fI{}\\fR", roff(option->get_name()));
    }
  }
  text += "\n";
  if (!commands.empty()) {
    text += ".SH COMMANDS\n";
    for (const CLI::App* command : commands) {
      text += fmt::format(".TP\n\\fB{}\\fR(1)\n{}\n", roff(manual_name(*command)),
                          roff(command->get_description()));
    }
  }
  append_options(app, text);
  if (!app.get_footer().empty()) {
    std::string footer = without_end(app.get_footer());
    if (footer.starts_with("Examples:\n")) {
      footer.erase(0, 10);
    }
    text += fmt::format(".SH EXAMPLES\n.nf\n{}\n.fi\n", roff(footer));
  }
  text +=
      ".SH EXIT STATUS\n0 done; 1 a check that was asked for failed; 2 bad input or usage; 3 a "
      "needed part is missing; 70 a defect of the program.\n.SH "
      "ENVIRONMENT\n.TP\n\\fBNO_COLOR\\fR\n"
      "If set and not empty, nothing is printed in colour.\n";
  if (app.get_parent() != nullptr) {
    text += fmt::format(".SH SEE ALSO\n\\fB{}\\fR(1)\n", roff(manual_name(*app.get_parent())));
  }
  return text;
}

}  // namespace lockstep

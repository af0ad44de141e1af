#include "app/manual.h"

#include <algorithm>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "app/usage.h"
#include "base/text.h"

namespace lockstep {
namespace {

/// The UTF-8 character that text[i] begins as roff's name for it; i goes on to its last byte.
std::string roff_character(std::string_view text, std::size_t& i) {
  const auto first = static_cast<unsigned char>(text[i]);
  const int more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : 1;
  unsigned code = first & (0x3FU >> more);
  for (int k = 0; k < more && i + 1 < text.size(); ++k) {
    code = code << 6 | (static_cast<unsigned char>(text[++i]) & 0x3FU);
  }
  return fmt::format("\\[u{:04X}]", code);
}

/// Text as roff reads it: ASCII alone, no line may begin with a dot or quote, and '-' is a minus
/// that can be copied.
std::string roff(std::string_view text) {
  std::string out;
  bool line_start = true;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (line_start && (c == '.' || c == '\'')) {
      out += "\\&";
    }
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if (static_cast<unsigned char>(c) >= 0x80) {
      out += roff_character(text, i);
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

/// What stands below the options, as it stands: a section for each paragraph with a title, which
/// ends in a colon ("Examples:", "Flags of plain (…):").
void append_footer(std::string_view footer, std::string& text) {
  while (!footer.empty()) {
    const std::string_view paragraph = footer.substr(0, footer.find("\n\n"));
    footer.remove_prefix(std::min(footer.size(), paragraph.size() + 2));
    std::string body = without_end(std::string(
        paragraph.substr(std::min(paragraph.find_first_not_of('\n'), paragraph.size()))));
    const std::size_t line = std::min(body.find('\n'), body.size());
    if (line > 0 && body[line - 1] == ':') {
      std::string title = body.substr(0, std::min(body.find(" ("), line - 1));
      std::ranges::transform(title, title.begin(), [](unsigned char c) { return std::toupper(c); });
      text += fmt::format(".SH {}\n", roff(title));
      body.erase(0, line + 1);
    } else {
      text += ".PP\n";
    }
    text += fmt::format(".nf\n{}\n.fi\n", roff(body));
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
  append_footer(app.get_footer(), text);
  text +=
      ".SH EXIT STATUS\n0 done; 1 a check that was asked for failed; 2 bad input or usage; 3 a "
      "needed part is missing; 70 a defect of the program; 130 interrupted.\n.SH "
      "ENVIRONMENT\n.TP\n\\fBNO_COLOR\\fR\n"
      "If set and not empty, nothing is printed in colour.\n";
  if (app.get_parent() != nullptr) {
    text += fmt::format(".SH SEE ALSO\n\\fB{}\\fR(1)\n", roff(manual_name(*app.get_parent())));
  }
  return text;
}

}  // namespace lockstep

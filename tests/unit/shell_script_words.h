#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "generator/megatron_args/shell_script.h"

namespace lockstep::shell_script_test {

/// The words of all commands of a script, its warnings, and the error that it is ("": none).
inline std::vector<std::string> words_of(std::string_view text) {
  const ShellScript script = read_shell_script(text, "train.sh");
  std::vector<std::string> words;
  for (const ShellCommand& command : script.commands) {
    for (const ShellWord& word : command.words) {
      words.push_back(word.text);
    }
  }
  return words;
}

inline std::vector<std::string> warnings_of(const ShellScript& script) {
  std::vector<std::string> texts;
  for (const Warnings::Entry& entry : script.warnings.entries()) {
    texts.push_back(entry.text);
  }
  return texts;
}

inline std::string error_of(std::string_view text) {
  try {
    read_shell_script(text, "train.sh");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace lockstep::shell_script_test

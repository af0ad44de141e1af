#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "generator/model/expression.h"
#include "generator/model/model.h"

namespace lockstep {

/// A model that comes with Lockstep.
struct ZooEntry {
  std::string name;          ///< "llama3-8b"
  std::string architecture;  ///< "llama"
  Variables variables;       ///< its values of the architecture's variables
  std::vector<std::string> aliases;
  double published_parameters = 0;         ///< of its released weights where those were counted
  double published_active_parameters = 0;  ///< a token; 0: not published (or all of them)
  std::string source;                      ///< public pages that have sizes and totals
  std::string unconfirmed;  ///< what of it no page that was looked at has; empty: all is there
};

/// All of them, in the order of zoo.json (by family, then size). Complexity: one reading of it.
std::vector<ZooEntry> list_models();

/// A model of the zoo by its name or alias (case is ignored), or an architecture with its defaults
/// by its name. `given` replaces values of its variables ("layers": 4 for a shallow copy); then no
/// published total is kept. ERRORS: an unknown name (with those near), an unknown variable.
Model find_model(std::string_view name, const Variables& given = {});

/// Whether find_model() knows the name.
bool has_model(std::string_view name);

/// What to tell somebody whose model file or config is not there: that the zoo has a model of that
/// name, or to check the path.
std::string known_model_hint(std::string_view path);

/// Names of the built-in architectures, sorted.
std::vector<std::string_view> list_architectures();

/// The text of a built-in architecture's model file. ERRORS: unknown name.
std::string_view architecture_text(std::string_view name);

}  // namespace lockstep

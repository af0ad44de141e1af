#include "base/error.h"
#include "report/html/script_engine.h"

// Where Duktape or ECharts is absent. Nobody gets here: figure.cc looks for ECharts first.

namespace lockstep {

struct ScriptEngine::Heap {};

ScriptEngine::ScriptEngine() = default;
ScriptEngine::~ScriptEngine() = default;
ScriptEngine::ScriptEngine(ScriptEngine&&) noexcept = default;
ScriptEngine& ScriptEngine::operator=(ScriptEngine&&) noexcept = default;

void ScriptEngine::run(std::string_view, std::string_view) {
  LOCKSTEP_CHECK(false, "built without a script engine");
}

std::string ScriptEngine::call(const char*, std::string_view) {
  LOCKSTEP_CHECK(false, "built without a script engine");
}

}  // namespace lockstep

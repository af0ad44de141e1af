#include "report/html/script_engine.h"

#include <duktape.h>

#include "base/error.h"

namespace lockstep {

struct ScriptEngine::Heap {
  duk_context* context = duk_create_heap_default();
  Heap() = default;
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;
  ~Heap() { duk_destroy_heap(context); }
};

ScriptEngine::ScriptEngine() : heap_(std::make_unique<Heap>()) {
  LOCKSTEP_CHECK(heap_->context != nullptr, "Duktape has no memory");
}
ScriptEngine::~ScriptEngine() = default;
ScriptEngine::ScriptEngine(ScriptEngine&&) noexcept = default;
ScriptEngine& ScriptEngine::operator=(ScriptEngine&&) noexcept = default;

void ScriptEngine::run(std::string_view name, std::string_view script) {
  duk_context* context = heap_->context;
  duk_push_lstring(context, name.data(), name.size());
  const bool failed =
      duk_pcompile_lstring_filename(context, 0, script.data(), script.size()) != 0 ||
      duk_pcall(context, 0) != 0;
  LOCKSTEP_CHECK(!failed, std::string(name) + ": " + duk_safe_to_stacktrace(context, -1));
  duk_pop(context);
}

std::string ScriptEngine::call(const char* function, std::string_view argument) {
  duk_context* context = heap_->context;
  duk_get_global_string(context, function);
  duk_push_lstring(context, argument.data(), argument.size());
  const bool failed = duk_pcall(context, 1) != 0;
  LOCKSTEP_CHECK(!failed, std::string(function) + ": " + duk_safe_to_stacktrace(context, -1));
  duk_size_t length = 0;
  const char* text = duk_safe_to_lstring(context, -1, &length);
  std::string result(text, length);
  duk_pop(context);
  return result;
}

}  // namespace lockstep

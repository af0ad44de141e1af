#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace lockstep {

/// A JavaScript engine (Duktape, ECMAScript 5.1) without any access to the outside, for scripts of
/// our own. A failing script is a defect of ours: a CheckFailure with the engine's message.
class ScriptEngine {
 public:
  ScriptEngine();
  ~ScriptEngine();
  ScriptEngine(ScriptEngine&&) noexcept;
  ScriptEngine& operator=(ScriptEngine&&) noexcept;

  void run(std::string_view name, std::string_view script);
  /// Calls a global function with a text (UTF-8); it returns a text.
  std::string call(const char* function, std::string_view argument);

 private:
  struct Heap;
  std::unique_ptr<Heap> heap_;
};

}  // namespace lockstep

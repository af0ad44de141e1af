# Target lockstep::warnings: the warnings every target of ours is compiled with, but for
# -Wnull-dereference where a target's property LOCKSTEP_WITHOUT names it.
add_library(lockstep_warnings INTERFACE)
add_library(lockstep::warnings ALIAS lockstep_warnings)
target_compile_options(lockstep_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wnon-virtual-dtor
  -Woverloaded-virtual -Wcast-align
  $<$<NOT:$<STREQUAL:$<TARGET_PROPERTY:LOCKSTEP_WITHOUT>,-Wnull-dereference>>:-Wnull-dereference>
  # A designated initializer that names some members leaves the others to their defaults.
  -Wno-missing-field-initializers
  # GCC 12 warns wrongly about "literal" + std::string (its bug 105329).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
  $<$<BOOL:${LOCKSTEP_WERROR}>:-Werror>)

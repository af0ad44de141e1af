# lockstep_library(<name> SOURCES <file>... [LINK <library>...] [PRIVATE <library>...])
# One static library of the project: lockstep_<name>, alias lockstep::<name>.
# LINK reaches those who use the library; PRIVATE does not. Includes are written from the root of
# the sources ("base/units.h").
function(lockstep_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK;PRIVATE" ${ARGN})
  add_library(lockstep_${name} STATIC ${ARG_SOURCES})
  add_library(lockstep::${name} ALIAS lockstep_${name})
  set_property(GLOBAL APPEND PROPERTY LOCKSTEP_LIBRARIES lockstep_${name})  # api/ packs them
  target_include_directories(lockstep_${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(lockstep_${name} PUBLIC ${ARG_LINK} PRIVATE lockstep::warnings ${ARG_PRIVATE})
endfunction()

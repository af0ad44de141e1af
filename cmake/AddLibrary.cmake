# lockstep_library(<name> SOURCES <file>... [LINK <library>...] [PRIVATE <library>...])
# One static library of the project: lockstep_<name>, alias lockstep::<name>.
# LINK reaches those who use the library; PRIVATE does not. Includes are written from the root of
# the sources ("base/units.h"). Its files are compiled together, up to eight at a time
# (LOCKSTEP_UNITY), since reading the headers is most of the compile time; plug-ins, and files that
# lockstep_apart() names, one by one.
function(lockstep_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK;PRIVATE" ${ARGN})
  add_library(lockstep_${name} STATIC ${ARG_SOURCES})
  set_target_properties(lockstep_${name} PROPERTIES UNITY_BUILD ${LOCKSTEP_UNITY})
  add_library(lockstep::${name} ALIAS lockstep_${name})
  set_property(GLOBAL APPEND PROPERTY LOCKSTEP_LIBRARIES lockstep_${name})  # api/ packs them
  target_include_directories(lockstep_${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(lockstep_${name} PUBLIC ${ARG_LINK} PRIVATE lockstep::warnings ${ARG_PRIVATE})
endfunction()

# lockstep_apart(<file>...)
# Sources of this folder that are compiled by themselves also where others are compiled together: those
# with names of their own (of anonymous namespaces, or by a using directive) that another file has, too.
function(lockstep_apart)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# find_package(NS3 [<version>] [COMPONENTS core network ...])
#
# Finds an installed ns-3, 3.37 or later: the distribution's (libns3-dev), or one built from its
# sources and named by -DNS3_ROOT=<prefix>. ns-3's own package files are not used: as Debian ships
# them they name programs and libraries (gsl, libxml2, Python) that libns3-dev does not bring.
#
#   NS3::<component>   an imported target for each component asked for (core alone by default)
#   NS3_VERSION        "3.37"
#
# Types of ns-3 are found by name, through static initialisers, so a library is linked even where no
# symbol of it is used (--no-as-needed).
if(NOT NS3_FIND_COMPONENTS)
  set(NS3_FIND_COMPONENTS core)
endif()

find_path(NS3_INCLUDE_DIR ns3/simulator.h)
mark_as_advanced(NS3_INCLUDE_DIR)
set(NS3_VERSION "")
if(EXISTS ${NS3_INCLUDE_DIR}/ns3/version-defines.h)
  file(STRINGS ${NS3_INCLUDE_DIR}/ns3/version-defines.h ns3_defines REGEX "define NS3_VERSION_M[AI][JN]OR")
  string(REGEX REPLACE ".*MAJOR ([0-9]+).*MINOR ([0-9]+).*" "\\1.\\2" NS3_VERSION "${ns3_defines}")
endif()

foreach(component IN LISTS NS3_FIND_COMPONENTS)
  # Debian: libns3-core.so. Built from sources: libns3.44-core.so, with its profile if not release.
  find_library(NS3_${component}_LIBRARY
               NAMES ns3-${component} ns${NS3_VERSION}-${component} ns${NS3_VERSION}-${component}-default
                     ns${NS3_VERSION}-${component}-optimized ns${NS3_VERSION}-${component}-debug
               HINTS ${NS3_INCLUDE_DIR}/../lib)
  mark_as_advanced(NS3_${component}_LIBRARY)
  if(NS3_${component}_LIBRARY)
    set(NS3_${component}_FOUND TRUE)
  endif()
endforeach()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(NS3 REQUIRED_VARS NS3_core_LIBRARY NS3_INCLUDE_DIR
                                  VERSION_VAR NS3_VERSION HANDLE_COMPONENTS)

if(NS3_FOUND)
  foreach(component IN LISTS NS3_FIND_COMPONENTS)
    if(NOT TARGET NS3::${component})
      add_library(NS3::${component} INTERFACE IMPORTED)
      target_include_directories(NS3::${component} SYSTEM INTERFACE ${NS3_INCLUDE_DIR})
      target_link_libraries(NS3::${component} INTERFACE
        "-Wl,--push-state,--no-as-needed ${NS3_${component}_LIBRARY} -Wl,--pop-state")
    endif()
  endforeach()
endif()

# find_package(ArrowWheel [<version>])
#
# Arrow C++ with Parquet as the pyarrow wheel brings them: headers and libraries in a private Python
# environment (`./setup` makes .venv; another one is named by -DLOCKSTEP_VENV=<folder>).
#
#   ArrowWheel::arrow, ArrowWheel::parquet   imported targets
#   ArrowWheel_VERSION                       pyarrow's, which is Arrow's
set(LOCKSTEP_VENV ${PROJECT_SOURCE_DIR}/.venv CACHE PATH "Python environment that holds pyarrow")

set(ArrowWheel_VERSION "")
if(EXISTS ${LOCKSTEP_VENV}/bin/python)
  execute_process(
    COMMAND ${LOCKSTEP_VENV}/bin/python ${CMAKE_CURRENT_LIST_DIR}/arrow_wheel.py
    OUTPUT_VARIABLE arrow_wheel OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE arrow_wheel_failed)
  if(NOT arrow_wheel_failed)
    list(POP_FRONT arrow_wheel ArrowWheel_VERSION arrow_wheel_include arrow_wheel_libraries)
  endif()
endif()

find_path(ArrowWheel_INCLUDE_DIR arrow/api.h PATHS ${arrow_wheel_include} NO_DEFAULT_PATH)
find_library(ArrowWheel_arrow_LIBRARY arrow PATHS ${arrow_wheel_libraries} NO_DEFAULT_PATH)
find_library(ArrowWheel_parquet_LIBRARY parquet PATHS ${arrow_wheel_libraries} NO_DEFAULT_PATH)
mark_as_advanced(ArrowWheel_INCLUDE_DIR ArrowWheel_arrow_LIBRARY ArrowWheel_parquet_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  ArrowWheel
  REQUIRED_VARS ArrowWheel_arrow_LIBRARY ArrowWheel_parquet_LIBRARY ArrowWheel_INCLUDE_DIR
  VERSION_VAR ArrowWheel_VERSION
  REASON_FAILURE_MESSAGE "no pyarrow in ${LOCKSTEP_VENV} (./setup installs it)")

if(ArrowWheel_FOUND AND NOT TARGET ArrowWheel::arrow)
  foreach(name arrow parquet)
    add_library(ArrowWheel::${name} SHARED IMPORTED)
    set_target_properties(ArrowWheel::${name} PROPERTIES
      IMPORTED_LOCATION ${ArrowWheel_${name}_LIBRARY}
      INTERFACE_INCLUDE_DIRECTORIES ${ArrowWheel_INCLUDE_DIR})
  endforeach()
  target_link_libraries(ArrowWheel::parquet INTERFACE ArrowWheel::arrow)
endif()

# One line adds a test; tests/README.md shows each kind.
find_package(GTest REQUIRED)

# Seconds after which a test or a command of one is given up: four times more without optimisation, 16 times under a sanitizer,
# where some take 50 times as long on cores that others use as well. There scripts see LOCKSTEP_SANITIZED ("address",
# "thread"), for what cannot be asked of such a program (limits of memory), and a library that is loaded before the
# sanitizer's own is allowed.
set(lockstep_test_patience 1)
if(CMAKE_BUILD_TYPE STREQUAL Debug)
  set(lockstep_test_patience 4)
endif()
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize=([a-z]+)")
  set(lockstep_test_patience 16)
  set(lockstep_test_sanitizer ${CMAKE_MATCH_1})
endif()
function(lockstep_test_limit name seconds)
  math(EXPR limit "${seconds} * ${lockstep_test_patience}")
  set_tests_properties(${name} PROPERTIES TIMEOUT ${limit})
  if(lockstep_test_sanitizer)
    set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT LOCKSTEP_SANITIZED=${lockstep_test_sanitizer} ASAN_OPTIONS=verify_asan_link_order=0)
  endif()
endfunction()

# lockstep_long_sanitized(<test>...)
# Tests of this folder that take minutes under a sanitizer and go where shorter ones go as well: there they are "slow",
# so that they run when all tests do and not with the fast ones (.ci/run).
function(lockstep_long_sanitized)
  if(lockstep_test_sanitizer)
    set_tests_properties(${ARGN} PROPERTIES LABELS slow)
  endif()
endfunction()

# lockstep_test(<name> SOURCES <file>... LIBS <library>... [LABELS <label>...])
# One GoogleTest program, run by ctest as <name>. A program whose every case was skipped (reference
# data absent, for example) is reported as skipped, not as passed. Its files are compiled together, up
# to eight at a time (LOCKSTEP_UNITY): reading the headers is most of a test's compile time. So
# each file has a namespace of its own, by its name.
function(lockstep_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} lockstep::test_support lockstep::warnings GTest::gtest_main
                                        GTest::gmock)
  set_target_properties(${name} PROPERTIES UNITY_BUILD ${LOCKSTEP_UNITY})
  add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}"
                       SKIP_REGULAR_EXPRESSION "REFERENCE DATA ABSENT")
  lockstep_test_limit(${name} 300)
endfunction()

# lockstep_cli_test(<name> ARGS <argument>... [EXIT <code>] [OUT <regex>...] [ERR <regex>...]
#                   [GOLDEN <file>] [STDOUT_TO <file>] [LABELS <label>...])
# Runs `lockstep <argument>...` from the root of the sources and compares how it ends. @OUT@ in an
# argument is a fresh folder, and is put back in place of that folder's name in what is printed.
#   EXIT       expected exit code, 0 unless given; from 2 on stderr must begin with "lockstep: "
#   OUT, ERR   each regular expression (ECMAScript; ^ and $ are a line's ends) occurs in stdout,
#              stderr; without ERR a successful run must leave stderr empty
#   GOLDEN     stdout equals tests/golden/<file>; LOCKSTEP_UPDATE_GOLDEN=1 ctest -R <name> writes it
#   STDOUT_TO  where stdout goes instead ("/dev/full")
#   LABELS     "fast" unless given
function(lockstep_cli_test name)
  cmake_parse_arguments(ARG "" "EXIT;GOLDEN;STDOUT_TO" "ARGS;OUT;ERR;LABELS" ${ARGN})
  set(flags "")
  foreach(pattern IN LISTS ARG_OUT)
    list(APPEND flags "--out=${pattern}")
  endforeach()
  foreach(pattern IN LISTS ARG_ERR)
    list(APPEND flags "--err=${pattern}")
  endforeach()
  foreach(flag EXIT GOLDEN STDOUT_TO)
    if(DEFINED ARG_${flag})
      string(TOLOWER ${flag} spelling)
      string(REPLACE "_" "-" spelling ${spelling})
      list(APPEND flags "--${spelling}=${ARG_${flag}}")
    endif()
  endforeach()
  if(NOT ARG_LABELS)
    set(ARG_LABELS fast)
  endif()
  add_test(NAME ${name} COMMAND lockstep-expect ${flags} -- ${ARG_ARGS})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}")
  lockstep_test_limit(${name} 180)
endfunction()

# lockstep_script_test(<name> COMMAND <script> <argument>... [LABELS <label>...])
# A script of this folder, run from the root of the sources; it fails by its exit code, of which 77 skips it.
function(lockstep_script_test name)
  cmake_parse_arguments(ARG "" "" "COMMAND;LABELS" ${ARGN})
  list(POP_FRONT ARG_COMMAND script)
  add_test(NAME ${name} COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/${script} ${ARG_COMMAND}
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" SKIP_RETURN_CODE 77)
  lockstep_test_limit(${name} 300)
endfunction()

# lockstep_fuzz_target(<name> SOURCES <file>... LIBS <library>... CORPUS <folder>)
# One reader's fuzz target. In a normal build it has a plain main that runs over the corpus (and so
# never rots); with -DLOCKSTEP_FUZZ=ON it is a libFuzzer program, whose test runs the corpus too, or,
# compiled by AFL++'s afl-clang-fast++, a program for afl-fuzz (tests/fuzz/afl.py), which has no test.
function(lockstep_fuzz_target name)
  cmake_parse_arguments(ARG "" "CORPUS" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} lockstep::warnings)
  set(flags "")
  if(LOCKSTEP_FUZZ)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    set(flags -runs=0)
    if(CMAKE_CXX_COMPILER MATCHES "afl-")
      return()
    endif()
  else()
    target_link_libraries(${name} PRIVATE lockstep_fuzz_main)
  endif()
  cmake_path(ABSOLUTE_PATH ARG_CORPUS BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
  add_test(NAME ${name} COMMAND ${name} ${flags} ${ARG_CORPUS})
  set_tests_properties(${name} PROPERTIES LABELS "fast;fuzz")
  lockstep_test_limit(${name} 300)
endfunction()

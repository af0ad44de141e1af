# lockstep_test(<name> SOURCES <file>... LIBS <library>... [LABELS <label>...])
# One GoogleTest program, run by ctest as <name>. A program whose every case was skipped (reference
# data absent, for example) is reported as skipped, not as passed.
find_package(GTest REQUIRED)
function(lockstep_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} lockstep::test_support lockstep::warnings GTest::gtest_main
                                        GTest::gmock)
  add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT 300
                       SKIP_REGULAR_EXPRESSION "REFERENCE DATA ABSENT")
endfunction()

# lockstep_fuzz_target(<name> SOURCES <file>... LIBS <library>... CORPUS <folder>)
# One reader's fuzz target. In a normal build it has a plain main that runs over the corpus (and so
# never rots); with -DLOCKSTEP_FUZZ=ON it is a libFuzzer program.
function(lockstep_fuzz_target name)
  cmake_parse_arguments(ARG "" "CORPUS" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} lockstep::warnings)
  if(LOCKSTEP_FUZZ)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  else()
    target_sources(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests/fuzz/plain_main.cc)
  endif()
  add_test(NAME ${name} COMMAND ${name} ${ARG_CORPUS})
  set_tests_properties(${name} PROPERTIES LABELS "fast;fuzz" TIMEOUT 300)
endfunction()

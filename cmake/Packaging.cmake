# What `cmake --install` installs beside the programs, and the packages of
# `cpack --config build/CPackConfig.cmake`: .tar.gz and .deb.
install(FILES README.md CHANGELOG.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs FILES_MATCHING PATTERN *.md)
install(DIRECTORY workloads/samples DESTINATION ${CMAKE_INSTALL_DATADIR}/lockstep
        FILES_MATCHING PATTERN *.txt PATTERN *.json PATTERN README.md PATTERN CMakeLists.txt EXCLUDE)

# Manual pages and completions come from the same definitions as --help: the program writes them.
install(CODE "
  set(root \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}\")
  set(program \"$<TARGET_FILE:lockstep>\")
  execute_process(COMMAND \${program} manual -o \${root}/man/man1 COMMAND_ERROR_IS_FATAL ANY)
  file(MAKE_DIRECTORY \${root}/bash-completion/completions \${root}/zsh/site-functions)
  execute_process(COMMAND \${program} completion bash OUTPUT_FILE \${root}/bash-completion/completions/lockstep COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND \${program} completion zsh OUTPUT_FILE \${root}/zsh/site-functions/_lockstep COMMAND_ERROR_IS_FATAL ANY)
  file(GLOB written \${root}/man/man1/lockstep*.1)
  list(APPEND CMAKE_INSTALL_MANIFEST_FILES \${written} \${root}/bash-completion/completions/lockstep
       \${root}/zsh/site-functions/_lockstep)
")

set(CPACK_GENERATOR TGZ)
# The programs and their papers: what other programs link (dev, python) comes with `cmake --install`.
set(CPACK_INSTALL_CMAKE_PROJECTS "${PROJECT_BINARY_DIR};${PROJECT_NAME};Unspecified;/")
set(CPACK_PACKAGE_VENDOR "Lockstep contributors")
set(CPACK_PACKAGE_CONTACT "Lockstep contributors")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY ${PROJECT_DESCRIPTION})
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_RESOURCE_FILE_README ${PROJECT_SOURCE_DIR}/README.md)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
# The libraries a .deb depends on are read from the programs, by tools of Debian's.
find_program(DPKG_SHLIBDEPS dpkg-shlibdeps)
find_program(FILE_UTILITY file)
mark_as_advanced(DPKG_SHLIBDEPS FILE_UTILITY)
if(DPKG_SHLIBDEPS AND FILE_UTILITY)
  list(APPEND CPACK_GENERATOR DEB)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
  # Arrow is no package of Debian's: the module that loads it says so where it is missing.
  if(ArrowWheel_FOUND)
    cmake_path(GET ArrowWheel_arrow_LIBRARY PARENT_PATH arrow_folder)
    set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${arrow_folder})
  endif()
endif()
include(CPack)

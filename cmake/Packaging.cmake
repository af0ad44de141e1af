# What `cmake --install` installs beside the programs, and the packages of
# `cpack --config build/CPackConfig.cmake`: .tar.gz and .deb.
install(FILES README.md CHANGELOG.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs FILES_MATCHING PATTERN *.md)
install(DIRECTORY workloads/samples DESTINATION ${CMAKE_INSTALL_DATADIR}/lockstep
        FILES_MATCHING PATTERN *.txt PATTERN *.json PATTERN README.md PATTERN CMakeLists.txt EXCLUDE)

set(CPACK_GENERATOR TGZ)
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

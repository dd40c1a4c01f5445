# What `cmake --install` puts where: find_package(tally) then gives tally::tally, tally::proof and the
# parts by name (tally::core, tally::autograd, ...). Headers keep the paths that they have here.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(parts autograd backends core cpu data flags meta models nn nn_samples optim proof reference tally)
foreach(part ${parts})
  set_target_properties(tally_${part} PROPERTIES EXPORT_NAME ${part})
endforeach()
list(TRANSFORM parts PREPEND tally_)
install(TARGETS ${parts} EXPORT tallyTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS tally RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY core autograd backends data nn optim models
  DESTINATION include/tally FILES_MATCHING PATTERN "*.h")

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tally)
install(EXPORT tallyTargets NAMESPACE tally:: DESTINATION ${package_dir})
configure_package_config_file(tools/tallyConfig.cmake.in tallyConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(tallyConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tallyConfig.cmake ${PROJECT_BINARY_DIR}/tallyConfigVersion.cmake
  DESTINATION ${package_dir})

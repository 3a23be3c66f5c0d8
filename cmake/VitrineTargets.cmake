# SPDX-FileCopyrightText: The Vitrine authors
# SPDX-License-Identifier: GPL-3.0-only
# One library for each folder; include paths start at the root of the tree.

# vitrine_precompile(TARGET HEADER): parses cmake/precompiled/HEADER.h once for all sources of the target.
function(vitrine_precompile target header)
  if(VITRINE_PRECOMPILE)
    target_precompile_headers(${target} PRIVATE ${CMAKE_SOURCE_DIR}/cmake/precompiled/${header}.h)
  endif()
endfunction()

# vitrine_unity(TARGET): compiles the target's sources of one folder in batches of five. Nearly all of a source's time goes
# into its headers and the templates that it shares with its neighbours, and a batch pays that once. Names in anonymous
# namespaces are therefore unique in their folder. Sources with SKIP_UNITY_BUILD_INCLUSION are compiled alone. Sanitizers
# are built as a whole and seldom, so their batches are larger: that takes less time in all, and more after a change.
set(VITRINE_BATCH 5)
if(VITRINE_SANITIZE)
  set(VITRINE_BATCH 12)
endif()
function(vitrine_unity target)
  if(NOT VITRINE_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "[.]cpp$")
  list(SORT sources)
  foreach(source ${sources})
    get_filename_component(folder ${source} ABSOLUTE)
    get_filename_component(folder ${folder} DIRECTORY)
    file(RELATIVE_PATH folder ${CMAKE_SOURCE_DIR} ${folder})
    string(MAKE_C_IDENTIFIER "${folder}" folder)
    if(NOT DEFINED count_${folder})
      set(count_${folder} 0)
    endif()
    math(EXPR batch "${count_${folder}} / ${VITRINE_BATCH} + 1")
    math(EXPR count_${folder} "${count_${folder}} + 1")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder}_${batch})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()

# vitrine_library(NAME DEPENDS ... LIBRARIES ...): all .cpp files of the current folder and its subfolders.
# DEPENDS are other folders of the tree (lower rank), LIBRARIES are third-party targets kept private; EXCLUDE is a
# regular expression of sources to leave out, PRECOMPILE a header of cmake/precompiled.
function(vitrine_library name)
  cmake_parse_arguments(ARG "" "EXCLUDE;PRECOMPILE" "DEPENDS;LIBRARIES;PUBLIC_LIBRARIES" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.h)
  if(ARG_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX "${ARG_EXCLUDE}")
  endif()
  if(NOT sources)
    # A folder without sources is a library all the same, so that the tree configures and links at every moment.
    set(sources ${CMAKE_BINARY_DIR}/generated/empty.cpp)
    if(NOT EXISTS ${sources})
      file(WRITE ${sources} "// This folder has no sources yet.\n")
    endif()
  endif()
  add_library(${name} STATIC ${sources} ${headers})
  target_include_directories(${name} PUBLIC ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/generated)
  target_link_libraries(${name} PUBLIC ${ARG_DEPENDS} ${ARG_PUBLIC_LIBRARIES} Threads::Threads PRIVATE ${ARG_LIBRARIES})
  if(ARG_PRECOMPILE)
    vitrine_precompile(${name} ${ARG_PRECOMPILE})
  endif()
  vitrine_unity(${name})
endfunction()

# vitrine_program(NAME ...): a program from all .cpp files of the current folder and its subfolders; nothing while there
# are none.
function(vitrine_program name)
  cmake_parse_arguments(ARG "" "PRECOMPILE" "LIBRARIES" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  if(NOT sources)
    return()
  endif()
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE ${ARG_LIBRARIES})
  install(TARGETS ${name})
  if(ARG_PRECOMPILE)
    vitrine_precompile(${name} ${ARG_PRECOMPILE})
  endif()
  vitrine_unity(${name})
endfunction()

# Tests run for milliseconds and are compiled for seconds: a lower level saves a quarter of that. Those whose references
# compute a lot keep the level of the program.
set(VITRINE_TEST_OPTIONS $<$<CONFIG:RelWithDebInfo>:-O1>)
if(VITRINE_SANITIZE)
  # Sanitizers double what a test takes to compile; without optimization it takes two thirds of that.
  set(VITRINE_TEST_OPTIONS -O0)
endif()

# vitrine_test(FOLDER DEPENDS ...): one GoogleTest program from tests/FOLDER/*_test.cpp. OPTIMIZE: its references compute a lot.
function(vitrine_test folder)
  cmake_parse_arguments(ARG "OPTIMIZE" "" "DEPENDS;LIBRARIES" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${folder}/*.cpp)
  if(NOT sources)
    return()
  endif()
  string(REPLACE "/" "_" stem ${folder})
  set(name ${stem}_tests)
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE
    ${ARG_DEPENDS} ${ARG_LIBRARIES} vitrine_test_paths GTest::gtest GTest::gmock GTest::gtest_main)
  vitrine_precompile(${name} test)
  vitrine_unity(${name})
  if(NOT ARG_OPTIMIZE)
    target_compile_options(${name} PRIVATE ${VITRINE_TEST_OPTIONS})
  endif()
  include(GoogleTest)
  gtest_discover_tests(${name} TEST_PREFIX ${stem}/ DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 300 LABELS ${stem}
    # Runs of tests keep nothing for the user, and no plan of a test depends on what ran before.
    ENVIRONMENT "VITRINE_CACHE_DIR=/dev/null/vitrine")
endfunction()

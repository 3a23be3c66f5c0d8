# SPDX-FileCopyrightText: The Vitrine authors
# SPDX-License-Identifier: GPL-3.0-only
# Options of the build and the compiler flags that every target shares.
option(VITRINE_GUI "Build the Qt desktop program" ON)
option(VITRINE_CUDA "Build the CUDA context when the toolkit's headers are found" ON)
option(VITRINE_TESTS "Build the tests" ON)
option(VITRINE_BENCH "Build the benchmarks" ON)
option(VITRINE_FUZZ "Build the libFuzzer targets (needs clang)" OFF)
option(VITRINE_PRECOMPILE "Parse the headers of cmake/precompiled once for each target" ON)
option(VITRINE_UNITY "Compile the sources of a folder in batches; off: each alone, for quick rebuilds of one file" ON)
option(VITRINE_CODE "Make code; off: sources are only read, and libraries and programs are empty files" ON)
option(VITRINE_WERROR "Treat warnings as errors" ON)
set(VITRINE_SANITIZE "" CACHE STRING "Sanitizers, as in -fsanitize=: address,undefined or thread")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()
# -g1 keeps line numbers for stack traces at a fraction of the link time of -g.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1")

if(NOT VITRINE_CODE)
  # The compiler leaves no objects, so that what would be made of them stays empty. No test program can list its tests.
  add_compile_options(-fsyntax-only)
  set(VITRINE_EMPTY "${CMAKE_COMMAND} -E touch <TARGET>")
  set(CMAKE_CXX_CREATE_STATIC_LIBRARY ${VITRINE_EMPTY})
  set(CMAKE_CXX_CREATE_SHARED_LIBRARY ${VITRINE_EMPTY})
  set(CMAKE_CXX_LINK_EXECUTABLE ${VITRINE_EMPTY})
  set(CMAKE_GTEST_DISCOVER_TESTS_DISCOVERY_MODE PRE_TEST)
endif()
find_program(VITRINE_CCACHE ccache)
if(VITRINE_CCACHE AND VITRINE_CODE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${VITRINE_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${VITRINE_CCACHE})
endif()
find_program(VITRINE_MOLD mold)
if(VITRINE_MOLD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_link_options(-fuse-ld=mold)
endif()
# A bundle of tools/gpu-bundle has the libraries in lib/ beside bin/. The older of the two kinds of search path also holds
# for libraries that a library needs.
set(CMAKE_BUILD_RPATH "$ORIGIN/../lib")
add_link_options(-Wl,--disable-new-dtags)

add_compile_options(-Wall -Wextra -Wshadow -Wno-missing-field-initializers)
if(VITRINE_WERROR)
  add_compile_options(-Werror)
endif()
if(VITRINE_PRECOMPILE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # After a precompiled header, g++ 12 forgets that these false alarms come from the standard library.
  add_compile_options(-Wno-array-bounds -Wno-stringop-overflow)
endif()
if(VITRINE_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # A batch includes its sources, so that g++ takes them for headers whose classes other sources could see. In the longer
  # file it joins more calls, and g++ 12 then sees overlaps in std::string that are not there (its bug 105651).
  add_compile_options(-Wno-subobject-linkage -Wno-restrict)
endif()
if(VITRINE_SANITIZE)
  # -O1: the checks make code so large that -O2 takes two thirds more time to compile, more than its tests save.
  add_compile_options(-fsanitize=${VITRINE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all -O1)
  # A fifth of the time to compile, for what AddressSanitizer stops at too or for what has never been found here.
  add_compile_options(-fno-sanitize=null,vptr,object-size,pointer-overflow)
  add_link_options(-fsanitize=${VITRINE_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # The sanitizers inflate code so that g++ 12 warns about paths that cannot happen.
    add_compile_options(-Wno-maybe-uninitialized -Wno-stringop-overflow -Wno-array-bounds)
  endif()
endif()

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(SQLITE REQUIRED IMPORTED_TARGET sqlite3)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(UTF8PROC REQUIRED IMPORTED_TARGET libutf8proc)
find_package(CLI11 REQUIRED)
if(VITRINE_GUI)
  find_package(Qt6 6.4 REQUIRED COMPONENTS Core Gui Widgets Charts Svg Test)
endif()

# CUDA is used through headers alone: the libraries are opened at run time.
set(VITRINE_HAS_CUDA OFF)
if(VITRINE_CUDA)
  find_path(VITRINE_CUDA_INCLUDE cuda.h
    HINTS $ENV{VITRINE_CUDA_HOME}/include $ENV{CUDA_HOME}/include /usr/local/cuda/include)
  if(VITRINE_CUDA_INCLUDE)
    set(VITRINE_HAS_CUDA ON)
  endif()
endif()
message(STATUS "Vitrine: GUI ${VITRINE_GUI}, CUDA headers ${VITRINE_HAS_CUDA}")

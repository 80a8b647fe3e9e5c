# The build's rules in one place: language, warnings, sanitizers, and the three verbs every room uses:
#   preregd_library(name SOURCES ... LIBS ...)      one static library per folder
#   preregd_program(name SOURCES ... LIBS ...)      one executable per *_main.c, in build/<preset>/bin
#   preregd_test(name LABEL unit|sim|fault|e2e|oracle SOURCES ... LIBS ... [TIMEOUT s] [COST s])
#   preregd_fuzzer(name SOURCES ... LIBS ...)        only with PREREGD_FUZZ; the target `fuzzers` is all of them
set(CMAKE_C_STANDARD 17)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
option(PREREGD_WERROR "warnings are errors" ON)
option(PREREGD_FUZZ "build the libFuzzer targets" OFF)
option(PREREGD_WARNINGS_ONLY "compile without optimising, link nothing: for a compiler whose warnings are all we want" OFF)
set(PREREGD_SANITIZE "" CACHE STRING "value of -fsanitize=")

# Asserts stay on in every build type: no -DNDEBUG.
foreach(lang C CXX)
  set(CMAKE_${lang}_FLAGS_RELEASE "-O2 -g")
  set(CMAKE_${lang}_FLAGS_RELWITHDEBINFO "-O2 -g")
  set(CMAKE_${lang}_FLAGS_MINSIZEREL "-Os -g")
  set(CMAKE_${lang}_FLAGS_DEBUG "-O1 -g")
  if(PREREGD_SANITIZE)
    set(CMAKE_${lang}_FLAGS_DEBUG "-O1 -g1") # lines for the stacks of a finding; variables are half of the time to link
  endif()
  if(PREREGD_WARNINGS_ONLY)
    set(CMAKE_${lang}_FLAGS_RELEASE "-O0")
    set(CMAKE_${lang}_LINK_EXECUTABLE "<CMAKE_COMMAND> -E touch <TARGET>")
    set(CMAKE_${lang}_CREATE_SHARED_MODULE "<CMAKE_COMMAND> -E touch <TARGET>")
  endif()
endforeach()

include(GNUInstallDirs)
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(CJSON REQUIRED IMPORTED_TARGET libcjson)
pkg_check_modules(NETTLE REQUIRED IMPORTED_TARGET nettle)
pkg_check_modules(SQLITE REQUIRED IMPORTED_TARGET sqlite3)
pkg_check_modules(UV REQUIRED IMPORTED_TARGET libuv)
pkg_check_modules(MHD REQUIRED IMPORTED_TARGET libmicrohttpd)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(ARCHIVE REQUIRED IMPORTED_TARGET libarchive) # tar, and filters for logs of Inspect
pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)

add_library(preregd_rules INTERFACE)
target_include_directories(preregd_rules INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_definitions(preregd_rules INTERFACE _GNU_SOURCE PREREGD_VERSION="${PROJECT_VERSION}")
target_compile_options(preregd_rules INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wdouble-promotion -Wformat=2 -Wvla
  -Wpointer-arith -Wwrite-strings -Wcast-qual -Wswitch-enum -Wnull-dereference -fno-common -ffp-contract=off
  $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes>
  $<$<COMPILE_LANGUAGE:C>:-Wmissing-prototypes>
  $<$<COMPILE_LANGUAGE:C>:-include${CMAKE_SOURCE_DIR}/base/banned.h>
  $<$<C_COMPILER_ID:GNU>:-Wlogical-op>
  $<$<C_COMPILER_ID:GNU>:-Wduplicated-cond>
  $<$<C_COMPILER_ID:GNU>:-Wduplicated-branches>
  $<$<C_COMPILER_ID:Clang>:-Wno-gnu-zero-variadic-macro-arguments>)
# The same commit gives the same bytes in every folder (docs/contributing.md): debug information and __FILE__ name files from
# the tree's root, of which the build folder is `build`. Of two maps that match, the last one counts.
target_compile_options(preregd_rules INTERFACE
  -ffile-prefix-map=${CMAKE_SOURCE_DIR}=. -ffile-prefix-map=${CMAKE_BINARY_DIR}=./build)
if(PREREGD_WERROR)
  target_compile_options(preregd_rules INTERFACE -Werror)
endif()
if(PREREGD_SANITIZE)
  target_compile_options(preregd_rules INTERFACE -fsanitize=${PREREGD_SANITIZE}
    -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(preregd_rules INTERFACE -fsanitize=${PREREGD_SANITIZE})
elseif(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT PREREGD_WARNINGS_ONLY)
  # -fno-semantic-interposition: libraries are compiled with -fPIC, but no one of them is loaded as a shared one. So a
  # function may be inlined into another of its file even if other files call it.
  target_compile_options(preregd_rules INTERFACE -D_FORTIFY_SOURCE=2 -fstack-protector-strong -fno-semantic-interposition)
  target_link_options(preregd_rules INTERFACE -pie -Wl,-z,relro,-z,now)
  # Shims and workers start by the thousand: a shared libstdc++ costs each of them a millisecond.
  target_link_options(preregd_rules INTERFACE $<$<LINK_LANGUAGE:CXX>:-static-libstdc++> $<$<LINK_LANGUAGE:CXX>:-static-libgcc>)
endif()
if(PREREGD_FUZZ)
  target_compile_options(preregd_rules INTERFACE -fsanitize=fuzzer-no-link)
endif()

function(preregd_library name)
  cmake_parse_arguments(A "" "" "SOURCES;LIBS" ${ARGN})
  add_library(${name} STATIC ${A_SOURCES})
  target_link_libraries(${name} PUBLIC ${A_LIBS} preregd_rules)
endfunction()

# Copied as it was built, where `install(TARGETS)` would rewrite the RUNPATH: a lock covers the bytes of the workers.
function(preregd_install_program name)
  set(component daemon)
  if(name STREQUAL "lagfs") # of the tests
    return()
  elseif(name MATCHES "^prereg-(train|eval|data)$")
    set(component workers)
  endif()
  install(PROGRAMS $<TARGET_FILE:${name}> DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT ${component})
endfunction()

function(preregd_program name)
  cmake_parse_arguments(A "" "" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${A_SOURCES})
  target_link_libraries(${name} PRIVATE ${A_LIBS} preregd_rules)
  set_property(GLOBAL APPEND PROPERTY PREREGD_PROGRAMS ${name})
  preregd_install_program(${name})
endfunction()

# What is never shipped is linked by mold where there is one: two hundred tests take the time that they take.
# Compilers for another processor do not find it.
find_program(PREREGD_MOLD mold)
function(preregd_link_fast name)
  if(PREREGD_MOLD AND NOT CMAKE_CROSSCOMPILING)
    target_link_options(${name} PRIVATE -fuse-ld=mold)
  endif()
endfunction()

# A test's time limit ends what hangs, and judges no speed: on a machine with other work a test takes ten times as long.
# Ten minutes at least, and three times as long for a sanitized build.
function(preregd_time_limit out seconds)
  if(seconds LESS 600)
    set(seconds 600)
  endif()
  if(PREREGD_SANITIZE)
    math(EXPR seconds "3 * ${seconds}")
  endif()
  set(${out} ${seconds} PARENT_SCOPE)
endfunction()

# Every test runs in its own process, in its own scratch folder, with a time limit: TIMEOUT s where ten minutes are too short.
# COST s: about how long it takes; ctest starts the longest first.
function(preregd_test name)
  cmake_parse_arguments(A "" "LABEL;TIMEOUT;COST" "SOURCES;LIBS" ${ARGN})
  if(NOT A_COST)
    set(A_COST 0)
  endif()
  if(NOT A_TIMEOUT)
    set(A_TIMEOUT 0)
  endif()
  preregd_time_limit(limit ${A_TIMEOUT})
  add_executable(${name} ${A_SOURCES})
  target_link_libraries(${name} PRIVATE preregd_scratch ${A_LIBS} preregd_rules PkgConfig::CMOCKA)
  preregd_link_fast(${name})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_compile_definitions(${name} PRIVATE TEST_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
    TEST_BIN_DIR="${CMAKE_BINARY_DIR}/bin")
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS ${A_LABEL} TIMEOUT ${limit} COST ${A_COST}
    ENVIRONMENT "OPENBLAS_NUM_THREADS=1;PREREGD_SHARED=${CMAKE_SOURCE_DIR}/../shared"
    SKIP_RETURN_CODE 77)
endfunction()

# tests/fuzz/grow reads of every fuzzer where its seeds are: fuzz_<room>_<what> has those in corpus_<what>.
if(PREREGD_FUZZ)
  add_custom_target(fuzzers)
  file(WRITE ${CMAKE_BINARY_DIR}/targets.txt "")
endif()
function(preregd_fuzzer name)
  if(NOT PREREGD_FUZZ)
    return()
  endif()
  cmake_parse_arguments(A "" "" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${A_SOURCES})
  target_link_libraries(${name} PRIVATE ${A_LIBS} preregd_rules)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  preregd_link_fast(${name})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
  add_dependencies(fuzzers ${name})
  string(REGEX REPLACE ".*_" "" what ${name})
  file(RELATIVE_PATH corpus ${CMAKE_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/corpus_${what})
  file(APPEND ${CMAKE_BINARY_DIR}/targets.txt "${name} ${corpus}\n")
endfunction()

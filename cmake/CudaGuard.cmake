# cudaguard for CMake: cudaguard_embed(<target>) and cudaguard_add_test(<target>). README.md beside this file has the manual.
#
# Nothing is decided here. What CMake alone knows of a target is written into a file for each configuration and language
# when the build system is generated; the command reads it when the target is built, judges, makes the guard's objects, and
# verifies and seals the linked file.

include_guard(GLOBAL)
# Not cmake_minimum_required: that would set a variable of the project's.
if(CMAKE_VERSION VERSION_LESS 3.24)
  message(FATAL_ERROR "cudaguard needs CMake 3.24 or newer, and this is ${CMAKE_VERSION}")
endif()
cmake_policy(VERSION 3.24...4.0)

# The command has to be of the same release.
function(_cudaguard_version)
  include("${CMAKE_CURRENT_FUNCTION_LIST_DIR}/CudaGuardConfigVersion.cmake")
  set_property(GLOBAL PROPERTY CUDAGUARD_VERSION "${PACKAGE_VERSION}")
endfunction()
_cudaguard_version()

option(CUDAGUARD_BUILD_COMMAND "Build cudaguard's command with cargo, from the checkout that the CMake module stands in" OFF)

# Also where drift from cudaguard.lock is only worth a warning, as cargo's --locked.
set(_cudaguard_locked OFF)
if("$ENV{CUDAGUARD_LOCKED}")
  set(_cudaguard_locked ON)
endif()
option(CUDAGUARD_LOCKED "Any drift from cudaguard.lock is an error, in every configuration" ${_cudaguard_locked})
unset(_cudaguard_locked)

# Where the header stands, in a checkout and below a prefix.
foreach(folder IN ITEMS "${CMAKE_CURRENT_LIST_DIR}/../templates" "${CMAKE_CURRENT_LIST_DIR}/../../../include/cudaguard")
  if(EXISTS "${folder}/cudaguard.h")
    get_filename_component(folder "${folder}" ABSOLUTE)
    set_property(GLOBAL PROPERTY CUDAGUARD_INCLUDE_DIR "${folder}")
    break()
  endif()
endforeach()

if(CUDAGUARD_BUILD_COMMAND AND NOT CUDAGUARD_COMMAND)
  get_filename_component(_cudaguard_checkout "${CMAKE_CURRENT_LIST_DIR}/.." ABSOLUTE)
  if(NOT EXISTS "${_cudaguard_checkout}/cargo-cudaguard/Cargo.toml")
    message(FATAL_ERROR "CUDAGUARD_BUILD_COMMAND is for a checkout of cudaguard, and there is none around "
                        "${CMAKE_CURRENT_LIST_DIR}. Install the command with: cargo install cargo-cudaguard")
  endif()
  set(CUDAGUARD_CARGO_TARGET_DIR "${CMAKE_BINARY_DIR}/cudaguard-command" CACHE PATH
      "Where cargo builds cudaguard's command")
  set(CUDAGUARD_CARGO_PROFILE release CACHE STRING "cargo's profile for cudaguard's command")
  mark_as_advanced(CUDAGUARD_CARGO_TARGET_DIR CUDAGUARD_CARGO_PROFILE)
  find_program(CUDAGUARD_CARGO NAMES cargo PATHS "$ENV{HOME}/.cargo/bin" NO_CMAKE_FIND_ROOT_PATH)
  mark_as_advanced(CUDAGUARD_CARGO)
  if(NOT CUDAGUARD_CARGO)
    message(FATAL_ERROR "CUDAGUARD_BUILD_COMMAND needs cargo, which is not in PATH. See https://rustup.rs")
  endif()
  message(STATUS "Building cudaguard's command with cargo")
  execute_process(
    COMMAND "${CUDAGUARD_CARGO}" build --quiet --locked --package cargo-cudaguard --profile "${CUDAGUARD_CARGO_PROFILE}"
            --manifest-path "${_cudaguard_checkout}/Cargo.toml" --target-dir "${CUDAGUARD_CARGO_TARGET_DIR}"
    WORKING_DIRECTORY "${_cudaguard_checkout}"
    RESULT_VARIABLE _cudaguard_status)
  if(NOT _cudaguard_status EQUAL 0)
    message(FATAL_ERROR "cargo could not build cudaguard's command; what it said stands above")
  endif()
  # cargo's folder for the profile `dev` is called otherwise.
  string(REGEX REPLACE "^dev$" "debug" _cudaguard_folder "${CUDAGUARD_CARGO_PROFILE}")
  set(CUDAGUARD_COMMAND "${CUDAGUARD_CARGO_TARGET_DIR}/${_cudaguard_folder}/cargo-cudaguard" CACHE FILEPATH
      "cudaguard's command, cargo-cudaguard" FORCE)
endif()

find_program(CUDAGUARD_COMMAND NAMES cargo-cudaguard
  HINTS "${CMAKE_CURRENT_LIST_DIR}/../../../bin" "$ENV{CARGO_HOME}/bin" "$ENV{HOME}/.cargo/bin"
  NO_CMAKE_FIND_ROOT_PATH
  DOC "cudaguard's command, cargo-cudaguard")

# What to say where the command is missing; empty where it is there.
function(_cudaguard_missing result)
  set(text "")
  if(NOT CUDAGUARD_COMMAND)
    string(CONCAT text "the command cargo-cudaguard is not found. Install it with `cargo install cargo-cudaguard`, or name "
                       "it with -DCUDAGUARD_COMMAND=FILE")
    if(EXISTS "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../cargo-cudaguard/Cargo.toml")
      string(APPEND text ", or let cargo build it from this checkout with -DCUDAGUARD_BUILD_COMMAND=ON")
    endif()
  endif()
  set(${result} "${text}" PARENT_SCOPE)
endfunction()

# A compiler for C that makes files for the target, and its flags: what compiles the guard. In the caller's scope,
# `compiler`, `compiler_target` and `compiler_sysroot`.
macro(_cudaguard_compiler)
  set(compiler "")
  set(compiler_target "")
  set(compiler_sysroot "")
  foreach(language IN ITEMS C CXX)
    if(NOT compiler AND CMAKE_${language}_COMPILER)
      # A list where arguments belong to it.
      list(GET CMAKE_${language}_COMPILER 0 compiler)
      set(compiler_target "${CMAKE_${language}_COMPILER_TARGET}")
    endif()
  endforeach()
  if(NOT compiler)
    foreach(candidate IN ITEMS "${CMAKE_CUDA_HOST_COMPILER}" "${CMAKE_CUDA_HOST_LINK_LAUNCHER}")
      if(NOT compiler AND candidate)
        set(compiler "${candidate}")
      endif()
    endforeach()
  endif()
  foreach(candidate IN ITEMS "${CMAKE_SYSROOT_COMPILE}" "${CMAKE_SYSROOT}")
    if(NOT compiler_sysroot AND candidate)
      set(compiler_sysroot "${candidate}")
    endif()
  endforeach()
endmacro()

# Asks the command once for each compiler whether there can be a guard. `result`: TRUE or FALSE.
function(_cudaguard_begin target result)
  set(${result} FALSE PARENT_SCOPE)
  if(NOT CMAKE_SYSTEM_NAME STREQUAL "Linux")
    set(why "the guard lives in ELF files that start through Linux's C library; ${CMAKE_SYSTEM_NAME} has none")
  else()
    _cudaguard_missing(missing)
    if(missing)
      message(FATAL_ERROR "cudaguard: ${missing}")
    endif()
    _cudaguard_compiler()
    if(NOT compiler)
      message(FATAL_ERROR "cudaguard_embed(${target}): enable the language C, CXX or CUDA before")
    endif()
    set(flags "")
    if(compiler_target)
      list(APPEND flags "--flag=--target=${compiler_target}")
    endif()
    if(compiler_sysroot)
      list(APPEND flags "--flag=--sysroot=${compiler_sysroot}")
    endif()
    string(SHA256 key "${CUDAGUARD_COMMAND} ${compiler} ${flags}")
    get_property(asked GLOBAL PROPERTY CUDAGUARD_BEGUN_${key} SET)
    if(NOT asked)
      get_property(version GLOBAL PROPERTY CUDAGUARD_VERSION)
      execute_process(
        COMMAND "${CUDAGUARD_COMMAND}" cmake begin --module "${version}" --compiler "${compiler}" ${flags}
        RESULT_VARIABLE status OUTPUT_VARIABLE why ERROR_VARIABLE trouble
        OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_STRIP_TRAILING_WHITESPACE)
      # 1 comes with the reason why there can be no guard.
      if(NOT (status STREQUAL "0" OR (status STREQUAL "1" AND why)))
        message(FATAL_ERROR "cudaguard: ${CUDAGUARD_COMMAND} cannot be used (${status}):\n${trouble}")
      endif()
      set_property(GLOBAL PROPERTY CUDAGUARD_BEGUN_${key} "${why}")
    endif()
    get_property(why GLOBAL PROPERTY CUDAGUARD_BEGUN_${key})
  endif()
  if(why)
    get_property(said GLOBAL PROPERTY CUDAGUARD_SAID SET)
    if(NOT said)
      message(STATUS "cudaguard: ${target} is built without the guard: ${why}")
      set_property(GLOBAL PROPERTY CUDAGUARD_SAID TRUE)
    endif()
  else()
    set(${result} TRUE PARENT_SCOPE)
  endif()
endfunction()

# Appends a line for each element of a generator expression that yields a list.
function(_cudaguard_lines variable key expression)
  set(text "${${variable}}")
  string(APPEND text "$<$<BOOL:${expression}>:${key} $<JOIN:${expression},\n${key} >\n>")
  set(${variable} "${text}" PARENT_SCOPE)
endfunction()

# Policy files that the command may read, and the lock, with their content's hash: one that is changed or removed makes CMake run again,
# and then other facts. (In a depfile of make's, CMake never forgets a file: one that is gone would be missed for ever.)
function(_cudaguard_watch variable)
  set(text "${${variable}}")
  set(files "")
  if(arg_POLICY)
    list(APPEND files "${arg_POLICY}")
  else()
    # What FetchContent brings stands elsewhere, and no folder between counts.
    set(folder "${CMAKE_CURRENT_SOURCE_DIR}")
    cmake_path(IS_PREFIX CMAKE_SOURCE_DIR "${folder}" below)
    while(below AND NOT folder STREQUAL CMAKE_SOURCE_DIR)
      list(APPEND files "${folder}/cudaguard.toml")
      get_filename_component(folder "${folder}" DIRECTORY)
    endwhile()
    list(APPEND files "${folder}/cudaguard.toml" "${CMAKE_SOURCE_DIR}/cudaguard.toml")
    list(REMOVE_DUPLICATES files)
  endif()
  list(APPEND files "${CMAKE_SOURCE_DIR}/cudaguard.lock")
  foreach(file IN LISTS files)
    if(EXISTS "${file}" AND NOT IS_DIRECTORY "${file}")
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
      file(SHA256 "${file}" hash)
      string(APPEND text "seen ${hash} ${file}\n")
    endif()
  endforeach()
  set(${variable} "${text}" PARENT_SCOPE)
endfunction()

# What CMake knows of the target. Languages differ in include directories and flags, hence a file for each; which ones there
# are is known when all is configured. Called at the end of the directory, where variables have the values that count.
function(_cudaguard_facts target folder)
  foreach(keyword IN ITEMS COMPONENT VERSION POLICY CUDNN_INCLUDE_DIR ARCHITECTURES)
    get_property(arg_${keyword} TARGET ${target} PROPERTY CUDAGUARD_${keyword})
  endforeach()
  _cudaguard_compiler()
  set(text "cudaguard-facts 1\n")
  get_target_property(type ${target} TYPE)
  foreach(pair IN ITEMS
      "target=${target}" "type=${type}" "component=${arg_COMPONENT}" "version=${arg_VERSION}"
      "source=${CMAKE_CURRENT_SOURCE_DIR}" "top=${CMAKE_SOURCE_DIR}" "binary=${CMAKE_BINARY_DIR}"
      "policy=${arg_POLICY}" "locked=${CUDAGUARD_LOCKED}" "cudnn-include=${arg_CUDNN_INCLUDE_DIR}"
      "compiler=${compiler}" "compiler-target=${compiler_target}" "sysroot=${compiler_sysroot}"
      "C-compiler=${CMAKE_C_COMPILER}" "C-compiler-id=${CMAKE_C_COMPILER_ID}"
      "C-compiler-version=${CMAKE_C_COMPILER_VERSION}"
      "CXX-compiler=${CMAKE_CXX_COMPILER}" "CXX-compiler-id=${CMAKE_CXX_COMPILER_ID}"
      "CXX-compiler-version=${CMAKE_CXX_COMPILER_VERSION}"
      "cuda-compiler=${CMAKE_CUDA_COMPILER}" "cuda-compiler-id=${CMAKE_CUDA_COMPILER_ID}"
      "cuda-toolkit=${CMAKE_CUDA_COMPILER_TOOLKIT_ROOT}" "cuda-host-compiler=${CMAKE_CUDA_HOST_COMPILER}"
      "toolkit-nvcc=${CUDAToolkit_NVCC_EXECUTABLE}")
    string(FIND "${pair}" "=" at)
    string(SUBSTRING "${pair}" 0 ${at} key)
    math(EXPR at "${at} + 1")
    string(SUBSTRING "${pair}" ${at} -1 value)
    string(APPEND text "${key} ${value}\n")
  endforeach()
  _cudaguard_watch(text)
  if(CUDAToolkit_BIN_DIR)
    get_filename_component(root "${CUDAToolkit_BIN_DIR}/.." ABSOLUTE)
    string(APPEND text "toolkit ${root}\n")
  endif()
  string(APPEND text "configuration $<CONFIG>\n")
  get_property(debug GLOBAL PROPERTY DEBUG_CONFIGURATIONS)
  if(NOT debug)
    set(debug Debug)
  endif()
  foreach(configuration IN LISTS debug)
    string(APPEND text "debug-configuration ${configuration}\n")
  endforeach()
  string(APPEND text "install-rpath $<TARGET_PROPERTY:${target},BUILD_WITH_INSTALL_RPATH>\n")

  string(APPEND text "named-architectures ${arg_ARCHITECTURES}\n")
  string(APPEND text "architectures $<TARGET_PROPERTY:${target},CUDA_ARCHITECTURES>\n")
  # What an nvcc that does not ask by itself is told for `native`. Where the detection has failed, its words stand there.
  if(CMAKE_CUDA_ARCHITECTURES_NATIVE MATCHES "^[0-9;a-z-]+$")
    string(APPEND text "native ${CMAKE_CUDA_ARCHITECTURES_NATIVE}\n")
  endif()
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    if(source AND NOT source MATCHES "\\$<")
      get_property(language SOURCE "${source}" PROPERTY LANGUAGE)
      if(language STREQUAL "CUDA")
        string(APPEND text "cuda-source ${source}\n")
      endif()
    endif()
  endforeach()
  _cudaguard_lines(text source-file "$<TARGET_PROPERTY:${target},SOURCES>")
  _cudaguard_lines(text object "$<TARGET_OBJECTS:${target}>")
  _cudaguard_lines(text include "$<TARGET_PROPERTY:${target},INCLUDE_DIRECTORIES>")
  get_target_property(folders ${target} LINK_DIRECTORIES)
  foreach(entry IN LISTS folders)
    if(entry AND NOT entry MATCHES "\\$<")
      string(APPEND text "link-directory ${entry}\n")
    endif()
  endforeach()
  foreach(language IN ITEMS C CXX CUDA)
    foreach(entry IN LISTS CMAKE_${language}_IMPLICIT_INCLUDE_DIRECTORIES)
      string(APPEND text "$<$<COMPILE_LANGUAGE:${language}>:own-include ${entry}\n>")
    endforeach()
  endforeach()

  # nvcc's flags, without those that CMake makes of CUDA_ARCHITECTURES.
  set(flags "")
  foreach(configuration IN LISTS CMAKE_CONFIGURATION_TYPES CMAKE_BUILD_TYPE)
    string(TOUPPER "${configuration}" upper)
    string(REPLACE ">" "$<ANGLE-R>" escaped "${CMAKE_CUDA_FLAGS_${upper}}")
    string(APPEND flags "$<$<CONFIG:${configuration}>:flags ${escaped}\n>")
  endforeach()
  string(REPLACE ">" "$<ANGLE-R>" escaped "${CMAKE_CUDA_FLAGS}")
  set(flags "flags ${escaped}\n${flags}")
  _cudaguard_lines(flags option "$<TARGET_PROPERTY:${target},COMPILE_OPTIONS>")
  string(APPEND text "$<$<COMPILE_LANGUAGE:CUDA>:${flags}>")

  # Of a language that the project had before, nothing is known any more.
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  file(GLOB_RECURSE known "${CMAKE_CURRENT_BINARY_DIR}/cudaguard/${target}/facts.*")
  foreach(file IN LISTS known)
    string(REGEX REPLACE ".*\\." "" language "${file}")
    if(NOT language IN_LIST languages)
      file(REMOVE "${file}")
    endif()
  endforeach()
  file(GENERATE OUTPUT "${folder}/facts.$<COMPILE_LANGUAGE>" CONTENT "${text}" TARGET ${target})
endfunction()

# A target that writes cudaguard.lock at the top of the project: built when it is asked for, and at no other time. And what
# has been said is forgotten by `clean`.
function(_cudaguard_lock command)
  get_property(folders GLOBAL PROPERTY CUDAGUARD_GUARDED)
  list(JOIN folders "\n" text)
  set(list "${CMAKE_BINARY_DIR}/CMakeFiles/cudaguard-targets.$<CONFIG>")
  file(GENERATE OUTPUT "${list}" CONTENT "${text}\n")
  add_custom_target(cudaguard-lock COMMAND "${command}" cmake lock --targets "${list}" VERBATIM)
  set_property(DIRECTORY APPEND PROPERTY ADDITIONAL_CLEAN_FILES "${CMAKE_BINARY_DIR}/CMakeFiles/cudaguard-said")
endfunction()

# cudaguard_embed(<target> [COMPONENT <name>] [VERSION <version>] [POLICY <file>] [CUDNN_INCLUDE_DIR <folder>]
#                 [ARCHITECTURES <arch>...])
function(cudaguard_embed target)
  set(keywords COMPONENT VERSION POLICY CUDNN_INCLUDE_DIR)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "${keywords}" ARCHITECTURES)
  set(where "cudaguard_embed(${target})")
  if(arg_UNPARSED_ARGUMENTS)
    list(JOIN arg_UNPARSED_ARGUMENTS ", " words)
    message(FATAL_ERROR "${where}: ${words}: unknown. Known are COMPONENT, VERSION, POLICY, CUDNN_INCLUDE_DIR and "
                        "ARCHITECTURES.")
  endif()
  if(arg_KEYWORDS_MISSING_VALUES)
    list(JOIN arg_KEYWORDS_MISSING_VALUES ", " words)
    message(FATAL_ERROR "${where}: a value is missing behind ${words}")
  endif()
  if(NOT TARGET ${target})
    message(FATAL_ERROR "${where}: there is no such target; call it after add_executable or add_library")
  endif()
  get_target_property(alias ${target} ALIASED_TARGET)
  if(alias)
    message(FATAL_ERROR "${where}: is an alias; name ${alias} itself")
  endif()
  get_target_property(imported ${target} IMPORTED)
  get_target_property(type ${target} TYPE)
  if(imported OR NOT type MATCHES "^(EXECUTABLE|SHARED_LIBRARY|MODULE_LIBRARY|STATIC_LIBRARY|OBJECT_LIBRARY)$")
    message(FATAL_ERROR "${where}: only what this project compiles and links can be guarded: executables and libraries")
  endif()
  get_target_property(home ${target} SOURCE_DIR)
  if(NOT home STREQUAL CMAKE_CURRENT_SOURCE_DIR)
    message(FATAL_ERROR "${where}: call it where the target is made, in ${home}/CMakeLists.txt")
  endif()
  get_target_property(done ${target} CUDAGUARD_COMPONENT)
  if(done)
    message(FATAL_ERROR "${where}: called twice; it is guarded as ${done} already")
  endif()

  # Also where there will be no guard: what includes cudaguard.h compiles everywhere.
  get_property(include GLOBAL PROPERTY CUDAGUARD_INCLUDE_DIR)
  if(include)
    set_property(TARGET ${target} APPEND PROPERTY INCLUDE_DIRECTORIES "${include}")
  endif()
  _cudaguard_begin(${target} can)
  if(NOT can)
    return()
  endif()

  if(NOT DEFINED arg_COMPONENT)
    set(arg_COMPONENT "${target}")
  endif()
  if(NOT DEFINED arg_VERSION)
    set(arg_VERSION "${PROJECT_VERSION}")
    if(NOT arg_VERSION)
      set(arg_VERSION 0.0.0)
    endif()
  endif()
  foreach(path IN ITEMS POLICY CUDNN_INCLUDE_DIR)
    if(DEFINED arg_${path})
      get_filename_component(arg_${path} "${arg_${path}}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
    endif()
  endforeach()
  foreach(keyword IN LISTS keywords ITEMS ARCHITECTURES)
    set_property(TARGET ${target} PROPERTY CUDAGUARD_${keyword} "${arg_${keyword}}")
  endforeach()

  set(folder "${CMAKE_CURRENT_BINARY_DIR}/cudaguard/${target}")
  get_property(multi GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
  if(multi)
    string(APPEND folder "/$<CONFIG>")
  endif()
  cmake_language(EVAL CODE "cmake_language(DEFER CALL _cudaguard_facts [==[${target}]==] [==[${folder}]==])")
  get_property(others GLOBAL PROPERTY CUDAGUARD_GUARDED SET)
  set_property(GLOBAL APPEND PROPERTY CUDAGUARD_GUARDED "${folder}")
  if(NOT others)
    cmake_language(EVAL CODE
      "cmake_language(DEFER DIRECTORY [==[${CMAKE_SOURCE_DIR}]==] CALL _cudaguard_lock [==[${CUDAGUARD_COMMAND}]==])")
  endif()
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  set(facts "")
  foreach(language IN LISTS languages)
    if(NOT language STREQUAL "NONE")
      list(APPEND facts "${folder}/facts.${language}")
    endif()
  endforeach()
  set(objects "${folder}/cudaguard-note.o" "${folder}/cudaguard-shim.o")
  set(depfile DEPFILE "${folder}/embed.d")
  if(CMAKE_CROSS_CONFIGS AND CMAKE_VERSION VERSION_LESS 4)
    # CMake 3.25 crashes on one there.
    if(NOT others)
      message(STATUS "cudaguard: with CMAKE_CROSS_CONFIGS and CMake ${CMAKE_VERSION}, a header that changes makes no target "
                     "be judged anew")
    endif()
    set(depfile "")
  endif()
  add_custom_command(
    OUTPUT ${objects}
    COMMAND "${CUDAGUARD_COMMAND}" cmake embed --facts "${folder}" --out "${folder}" --depfile "${folder}/embed.d"
    DEPENDS ${facts}
    ${depfile}
    COMMENT "Judging what ${target} is built with"
    VERBATIM)

  if(type MATCHES "^(STATIC|OBJECT)_LIBRARY$")
    # An archive hands on only what somebody refers to, and nobody refers to a note: whoever links the library gets the
    # objects themselves.
    add_custom_target(${target}-cudaguard DEPENDS ${objects})
    add_dependencies(${target} ${target}-cudaguard)
    foreach(object IN LISTS objects)
      set_property(TARGET ${target} APPEND PROPERTY INTERFACE_LINK_LIBRARIES "$<BUILD_INTERFACE:${object}>")
    endforeach()
    return()
  endif()
  target_sources(${target} PRIVATE ${objects})
  add_custom_command(TARGET ${target} POST_BUILD
    COMMAND "${CUDAGUARD_COMMAND}" cmake seal --facts "${folder}" "$<TARGET_FILE:${target}>"
    VERBATIM)
endfunction()

# cudaguard_add_test(<target> HOST <file>... [NAME <name>]): a test for each host file, whether the target would run there.
function(cudaguard_add_test target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" NAME HOST)
  set(where "cudaguard_add_test(${target})")
  if(arg_UNPARSED_ARGUMENTS)
    list(JOIN arg_UNPARSED_ARGUMENTS ", " words)
    message(FATAL_ERROR "${where}: ${words}: unknown. Known are HOST and NAME.")
  endif()
  if(NOT TARGET ${target})
    message(FATAL_ERROR "${where}: there is no such target; call it after add_executable or add_library")
  endif()
  get_target_property(type ${target} TYPE)
  if(NOT type MATCHES "^(EXECUTABLE|SHARED_LIBRARY|MODULE_LIBRARY)$")
    message(FATAL_ERROR "${where}: only what is linked can be verified: an executable, a shared library or a module")
  endif()
  if(NOT arg_HOST)
    message(FATAL_ERROR "${where}: name the machine, as `cargo cudaguard probe` writes it there: HOST <file>")
  endif()
  list(LENGTH arg_HOST number)
  if(DEFINED arg_NAME AND number GREATER 1)
    message(FATAL_ERROR "${where}: NAME is for one HOST; each of several is named by its file")
  endif()
  _cudaguard_missing(missing)
  if(missing)
    message(FATAL_ERROR "cudaguard: ${missing}")
  endif()
  foreach(host IN LISTS arg_HOST)
    get_filename_component(file "${host}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
    get_filename_component(stem "${host}" NAME_WLE)
    set(name "cudaguard.${target}.${stem}")
    if(DEFINED arg_NAME)
      set(name "${arg_NAME}")
    endif()
    add_test(NAME "${name}" COMMAND "${CUDAGUARD_COMMAND}" verify "$<TARGET_FILE:${target}>" --host "${file}")
  endforeach()
endfunction()

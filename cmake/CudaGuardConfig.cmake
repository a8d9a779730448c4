# The package configuration file for find_package(CudaGuard): below a prefix, or in a checkout if CudaGuard_DIR or
# CMAKE_PREFIX_PATH is this directory.
include("${CMAKE_CURRENT_LIST_DIR}/CudaGuard.cmake")
_cudaguard_missing(_cudaguard_text)
if(_cudaguard_text AND CMAKE_SYSTEM_NAME STREQUAL "Linux")
  set(CudaGuard_FOUND FALSE)
  set(CudaGuard_NOT_FOUND_MESSAGE "${_cudaguard_text}")
endif()
unset(_cudaguard_text)

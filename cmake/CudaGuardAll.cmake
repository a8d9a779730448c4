# Guards a project that may not be touched: -DCMAKE_PROJECT_<name>_INCLUDE=<this file>, with the name that its project() gives.
include("${CMAKE_CURRENT_LIST_DIR}/CudaGuard.cmake")
cudaguard_embed_all()

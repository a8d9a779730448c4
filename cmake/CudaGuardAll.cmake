# Guards a project without changes to its files: -DCMAKE_PROJECT_<name>_INCLUDE=<this file>, where <name> is the name in project().
include("${CMAKE_CURRENT_LIST_DIR}/CudaGuard.cmake")
cudaguard_embed_all()

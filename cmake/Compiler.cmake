# The compiler that belongs to LLVM's own packages, where none is named: before project(), which would take the system's.
# scikit-build-core puts Python's own compiler into CXX, so there only CMAKE_CXX_COMPILER is heard.
if(NOT DEFINED CMAKE_CXX_COMPILER AND NOT DEFINED CMAKE_TOOLCHAIN_FILE AND (SKBUILD OR NOT DEFINED ENV{CXX}))
  find_program(TRITON_METAL_CLANG NAMES clang++
    PATHS /usr/lib/llvm-22/bin /opt/homebrew/opt/llvm@22/bin /opt/homebrew/opt/llvm/bin NO_DEFAULT_PATH)
  if(TRITON_METAL_CLANG)
    get_filename_component(_bin "${TRITON_METAL_CLANG}" DIRECTORY)
    set(CMAKE_CXX_COMPILER "${TRITON_METAL_CLANG}" CACHE FILEPATH "")
    set(CMAKE_C_COMPILER "${_bin}/clang" CACHE FILEPATH "")
  endif()
endif()

# Debian's cross compilers for aarch64, with the arm64 libraries that `ops/setup cross` unpacks. Executables run under
# qemu-aarch64, which finds the loader and the C library below the same folder.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
if(DEFINED ENV{PREREGD_AARCH64_ROOT})
  set(root $ENV{PREREGD_AARCH64_ROOT})
else()
  cmake_path(SET root NORMALIZE ${CMAKE_CURRENT_LIST_DIR}/../../build/aarch64-root)
endif()
if(NOT EXISTS ${root}/unpacked)
  message(FATAL_ERROR "${root} has no arm64 libraries: run ops/setup cross")
endif()
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_SYSROOT ${root})
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L ${root})
# OpenBLAS has a folder of its own, which packages' scripts would link to
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${root})
set(ENV{PKG_CONFIG_LIBDIR}
  ${root}/usr/lib/aarch64-linux-gnu/pkgconfig:${root}/usr/lib/aarch64-linux-gnu/openblas-pthread/pkgconfig)

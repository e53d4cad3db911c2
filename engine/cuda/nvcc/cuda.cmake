# CUDA: finds nvcc, chooses the architectures, and says which files it compiles. Nothing here runs with TAPEDECK_CUDA=off.
#   tapedeck_cuda            TRUE in a build with CUDA
#   tapedeck_cuda_headers    the folder of cuda_runtime_api.h and cublasLt.h
#   tapedeck_mark_cuda(...)  of these sources, those that launch kernels are compiled by nvcc
# Of ops/ that is all but the strips, which are for the CPU. Files outside of ops/ that launch include engine/launch.h
# themselves. tests/test_tree.cpp holds that no other file comes by that header, because a kernel compiled by the C++
# compiler alone cannot run on a GPU.
function(tapedeck_mark_cuda)
  if(NOT tapedeck_cuda)
    return()
  endif()
  foreach(source ${ARGN})
    file(STRINGS ${source} launches REGEX "^#include \"engine/(launch|cuda/launch_gpu)\\.h\"")
    if(launches OR (source MATCHES "/ops/[a-z_]+\\.cpp$" AND NOT source MATCHES "_strips\\.cpp$"))
      set_source_files_properties(${source} PROPERTIES LANGUAGE CUDA)
    elseif(source MATCHES "/engine/cuda/")
      set_source_files_properties(${source} PROPERTIES
        COMPILE_OPTIONS "-isystem;${tapedeck_cuda_headers}")
    endif()
  endforeach()
endfunction()

if(TAPEDECK_CUDA STREQUAL "off" OR TAPEDECK_RACE)
  return()
endif()

# ---- nvcc -------------------------------------------------------------------------------------------------------
find_program(TAPEDECK_NVCC nvcc HINTS /usr/local/cuda/bin)
set(why_not "finds no nvcc, neither on PATH nor in /usr/local/cuda/bin")
if(TAPEDECK_NVCC)
  execute_process(COMMAND ${TAPEDECK_NVCC} --version OUTPUT_VARIABLE version ERROR_QUIET)
  string(REGEX MATCH "release ([0-9]+\\.[0-9]+)" version "${version}")
  set(version ${CMAKE_MATCH_1})
  set(why_not)
  if(NOT version VERSION_GREATER_EQUAL 13.0)
    set(why_not "finds ${TAPEDECK_NVCC} of CUDA ${version}, and needs CUDA 13")
  endif()
endif()
if(why_not AND TAPEDECK_CUDA STREQUAL "on")
  message(FATAL_ERROR "TAPEDECK_CUDA is on, but CMake ${why_not}: install the CUDA toolkit, put nvcc on PATH, or say off")
elseif(why_not)
  message(STATUS "no CUDA: CMake ${why_not}")
  return()
endif()

# ---- Architectures ----------------------------------------------------------------------------------------------
# Those of the GPUs in this machine; without one, A100's and H100's, and H100's as PTX, which later ones can translate.
set(TAPEDECK_CUDA_ARCHITECTURES "" CACHE STRING "as 90-real;80-real; empty: of the GPUs here, else sm_80 and sm_90")
set(architectures ${TAPEDECK_CUDA_ARCHITECTURES})
if(NOT architectures)
  execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
    OUTPUT_VARIABLE found ERROR_QUIET RESULT_VARIABLE failed)
  string(REGEX MATCHALL "[0-9]+\\.[0-9]+" found "${found}")
  if(found AND failed EQUAL 0)
    list(REMOVE_DUPLICATES found)
    list(TRANSFORM found REPLACE "\\." "")
    list(TRANSFORM found APPEND "-real")
    set(architectures ${found})
  else()
    set(architectures 80-real 90)
  endif()
endif()

set(CMAKE_CUDA_COMPILER ${TAPEDECK_NVCC})
set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER})  # nvcc would take the first g++ on PATH
set(CMAKE_CUDA_ARCHITECTURES ${architectures})
set(CMAKE_CUDA_RUNTIME_LIBRARY Static)  # the program starts where there is no CUDA
enable_language(CUDA)
set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_SOURCE_DIR}/engine/cuda/nvcc/nvcc.sh ${CMAKE_CXX_COMPILER_LAUNCHER})
set(CMAKE_CUDA_USE_RESPONSE_FILE_FOR_INCLUDES OFF)  # which ccache does not read
set(tapedeck_cuda TRUE)
get_filename_component(tapedeck_cuda_headers ${TAPEDECK_NVCC}/../../include ABSOLUTE)

if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know that of nvcc 13
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
endif()
# The host's flags go through -Xcompiler, where a comma has to be escaped.
set(host_flags ${flags})
list(TRANSFORM host_flags REPLACE "," "\\\\,")
list(JOIN host_flags "," host_flags)
add_compile_options("$<$<COMPILE_LANGUAGE:CUDA>:-Xptxas=-v;-Xcompiler=${host_flags}>")
if(TAPEDECK_STANDALONE)  # to be carried: kernels at a fifth of their size, for a slower start
  add_compile_options("$<$<COMPILE_LANGUAGE:CUDA>:-compress-mode=size>")
endif()
list(JOIN architectures " and " architectures_text)
string(APPEND libraries ", CUDA ${version} for ${architectures_text}")

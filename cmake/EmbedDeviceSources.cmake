# SPDX-FileCopyrightText: The Vitrine authors
# SPDX-License-Identifier: GPL-3.0-only
# Turns the files of kernels/device into one source file.
# cmake -DROOT=kernels -DOUTPUT=file.cpp -P EmbedDeviceSources.cmake
file(GLOB_RECURSE files RELATIVE ${ROOT} ${ROOT}/device/*.cuh ${ROOT}/device/*.h ${ROOT}/device/*.json)
list(SORT files)
set(text "// Made from kernels/device at build time.\n#include \"kernels/cuda/jit/kernel_pack.h\"\n\n")
string(APPEND text "namespace vitrine::kernels {\n\n")
string(APPEND text "std::vector<std::pair<std::string_view, std::string_view>> builtinDeviceFiles() {\n    return {\n")
foreach(file ${files})
  file(READ ${ROOT}/${file} content)
  string(APPEND text "{\"${file}\", R\"vitrine(${content})vitrine\"},\n")
endforeach()
string(APPEND text "};\n}\n\n} // namespace vitrine::kernels\n")
file(WRITE ${OUTPUT} "${text}")

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <cstdlib>
#include <cxxabi.h>
#include <string_view>

#include "profiler/gpu/gpu_profiler.h"

namespace vitrine::profiler {

namespace {

/// Where the parameter list of a demangled function begins: the last top-level "(" that closes at the end.
std::size_t parametersBegin(std::string_view name) {
    if (!name.ends_with(')')) {
        return name.size();
    }
    int depth = 0;
    for (std::size_t i = name.size(); i-- > 0;) {
        depth += name[i] == ')' ? 1 : name[i] == '(' ? -1 : 0;
        if (depth == 0) {
            return i;
        }
    }
    return name.size();
}

} // namespace

std::string kernelName(const char* symbol) {
    int status = -1;
    char* const demangled = abi::__cxa_demangle(symbol, nullptr, nullptr, &status);
    if (status != 0 || demangled == nullptr) {
        std::free(demangled);
        return symbol;
    }
    std::string name = demangled;
    std::free(demangled);
    name.resize(parametersBegin(name));
    if (name.starts_with("void ")) {
        name.erase(0, 5);
    }
    return name.empty() ? symbol : name;
}

} // namespace vitrine::profiler

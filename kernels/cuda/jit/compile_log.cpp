// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <array>
#include <charconv>

#include "kernels/cuda/jit/nvrtc.h"

namespace vitrine::kernels {

namespace {

/// The number before `word` in `line`: 32 of "Used 32 registers"; 0 when there is none.
std::int64_t numberBefore(std::string_view line, std::string_view word) {
    const std::size_t at = line.find(word);
    if (at == std::string_view::npos) {
        return 0;
    }
    std::size_t end = at;
    while (end > 0 && line[end - 1] == ' ') {
        --end;
    }
    std::size_t begin = end;
    while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') {
        --begin;
    }
    std::int64_t value = 0;
    std::from_chars(line.data() + begin, line.data() + end, value);
    return value;
}

/// What is between the first pair of quotes.
std::string quoted(std::string_view line) {
    const std::size_t begin = line.find('\'');
    const std::size_t end = begin == std::string_view::npos ? begin : line.find('\'', begin + 1);
    return end == std::string_view::npos ? std::string() : std::string(line.substr(begin + 1, end - begin - 1));
}

bool costsSpeed(std::string_view line) {
    // C7504 setmaxnreg ignored; C7508 to C7520: wgmma serialised, for one reason or another.
    constexpr std::array<std::string_view, 4> kSigns = {"setmaxnreg", "wgmma", "serializ", "(C75"};
    for (const std::string_view sign : kSigns) {
        if (line.find(sign) != std::string_view::npos) {
            return true;
        }
    }
    return false;
}

} // namespace

void readCompileLog(std::string_view log, CompiledKernel& out) {
    while (!log.empty()) {
        const std::size_t end = log.find('\n');
        const std::string_view line = log.substr(0, end);
        log.remove_prefix(end == std::string_view::npos ? log.size() : end + 1);
        if (line.find("Compiling entry function") != std::string_view::npos) {
            out.resources.emplace_back().entry = quoted(line);
            out.resources.back().cubinBytes = static_cast<std::int64_t>(out.image.size());
        } else if (line.find("spill stores") != std::string_view::npos && !out.resources.empty()) {
            KernelResources& resources = out.resources.back();
            const auto spills = static_cast<int>(numberBefore(line, "bytes spill stores"));
            resources.spillBytes += spills;
            if (spills > 0) {
                out.warnings.push_back(resources.entry + ": spills " + std::to_string(spills) + " bytes");
            }
        } else if (line.find("Used ") != std::string_view::npos && !out.resources.empty()) {
            out.resources.back().registers = static_cast<int>(numberBefore(line, "registers"));
            out.resources.back().staticShared = numberBefore(line, "bytes smem");
        } else if (costsSpeed(line)) {
            out.warnings.emplace_back(line);
        }
    }
}

} // namespace vitrine::kernels

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/quant/module_pattern.h"

#include <array>
#include <fmt/format.h>
#include <memory>
#include <utility>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/error.h"

namespace vitrine::engine {
namespace {

constexpr std::string_view kRegex = "re:";
constexpr std::size_t kLongestPattern = 1000;
constexpr std::uint32_t kMostSteps = 10000;
constexpr std::uint32_t kMostKiB = 512; ///< of a search: patterns with many groups remember all of them at every step

template <auto Free> struct FreeWith {
    template <class T> void operator()(T* object) const { Free(object); }
};

struct CompiledPattern {
    explicit CompiledPattern(std::string_view pattern)
        : code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), PCRE2_ANCHORED | PCRE2_UTF,
                             &error, &at, nullptr)) {}

    int error = 0; ///< with `at`: why there is no code
    PCRE2_SIZE at = 0;
    std::unique_ptr<pcre2_code, FreeWith<pcre2_code_free>> code;
};

bool searchFromBegin(std::string_view pattern, std::string_view text) {
    const auto code = std::move(CompiledPattern(pattern).code);
    const std::unique_ptr<pcre2_match_context, FreeWith<pcre2_match_context_free>> limits(
        pcre2_match_context_create(nullptr));
    if (code == nullptr || limits == nullptr) {
        return false;
    }
    pcre2_set_match_limit(limits.get(), kMostSteps);
    pcre2_set_heap_limit(limits.get(), kMostKiB);
    const std::unique_ptr<pcre2_match_data, FreeWith<pcre2_match_data_free>> data(
        pcre2_match_data_create_from_pattern(code.get(), nullptr));
    return data != nullptr && pcre2_match(code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), 0, 0,
                                          data.get(), limits.get()) >= 0;
}

} // namespace

void requireModulePattern(const std::string& pattern) {
    if (pattern.size() > kLongestPattern) {
        throw base::BadInput(fmt::format("a pattern has {} bytes, and {} at most are read; write several shorter ones",
                                         pattern.size(), kLongestPattern));
    }
    if (!pattern.starts_with(kRegex)) {
        return;
    }
    if (const CompiledPattern compiled(std::string_view(pattern).substr(kRegex.size())); compiled.code == nullptr) {
        std::array<PCRE2_UCHAR, 256> what{};
        pcre2_get_error_message(compiled.error, what.data(), what.size());
        throw base::BadInput(fmt::format("{}: is no regular expression: {} at character {}", pattern,
                                         reinterpret_cast<const char*>(what.data()), compiled.at + kRegex.size() + 1));
    }
}

bool matchesModule(const std::string& pattern, std::string_view module) {
    if (pattern.empty() || pattern.size() > kLongestPattern) {
        return false;
    }
    if (pattern.starts_with(kRegex)) {
        return searchFromBegin(std::string_view(pattern).substr(kRegex.size()), module);
    }
    return module == pattern || module.ends_with("." + pattern) || module.starts_with(pattern + ".") ||
           module.find("." + pattern + ".") != std::string_view::npos;
}

} // namespace vitrine::engine

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The answer has a match of the expected pattern (PCRE2). A search does a bounded amount of work, whatever the pattern:
// it looks at the end of an answer, and each thing that the matcher tries and each byte that it passes is counted. A
// search that takes more steps than it may has found nothing.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/error.h"
#include "engine/rl/problems/checker_list.h"
#include "engine/tokenizer/json_field.h"
#include "engine/tokenizer/unicode_text.h"

namespace vitrine::engine {

namespace {

constexpr std::size_t kLongestAnswerPattern = 4000;
constexpr std::size_t kSearchedBytes = std::size_t{64} << 10; ///< of an answer, at its end
constexpr std::size_t kStepsOfAByte = 200;
constexpr std::size_t kStepsOfASearch = 100'000;
constexpr std::uint32_t kMostKiBOfASearch = 16 * 1024;

template <auto Free> struct FreeOfPattern {
    template <class T> void operator()(T* object) const { Free(object); }
};

struct AnswerPattern {
    explicit AnswerPattern(std::string_view pattern)
        // A callout before each thing of the pattern counts steps over all places where a match may begin, which the
        // match limit does not.
        : code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                             PCRE2_UTF | PCRE2_AUTO_CALLOUT | PCRE2_NEVER_BACKSLASH_C, &error, &at, nullptr)) {}

    /// A reference back compares any number of bytes in one step.
    bool refersBack() const {
        std::uint32_t highest = 0;
        return pcre2_pattern_info(code.get(), PCRE2_INFO_BACKREFMAX, &highest) != 0 || highest > 0;
    }

    int error = 0; ///< with `at`: why there is no code
    PCRE2_SIZE at = 0;
    std::unique_ptr<pcre2_code, FreeOfPattern<pcre2_code_free>> code;
};

struct SearchBudget {
    std::size_t steps;
    std::size_t last; ///< where the matcher was
};

int countSteps(pcre2_callout_block* block, void* data) {
    SearchBudget& budget = *static_cast<SearchBudget*>(data);
    const std::size_t now = block->current_position;
    const std::size_t passed = now > budget.last ? now - budget.last : budget.last - now;
    budget.last = now;
    if (passed + 1 > budget.steps) {
        return PCRE2_ERROR_CALLOUT;
    }
    budget.steps -= passed + 1;
    return 0;
}

void requirePattern(const nlohmann::json& answer) {
    if (!answer.is_string()) {
        throw base::BadInput(fmt::format("answer: must be a regular expression as text, not {}", answer.type_name()));
    }
    const auto& pattern = answer.get_ref<const std::string&>();
    if (pattern.empty()) {
        throw base::BadInput("answer: is empty, which all answers match; give a regular expression");
    }
    if (pattern.size() > kLongestAnswerPattern) {
        throw base::BadInput(fmt::format("answer: the pattern has {} bytes, and {} at most are read; shorten it",
                                         pattern.size(), kLongestAnswerPattern));
    }
    const AnswerPattern compiled(pattern);
    if (compiled.code == nullptr) {
        std::array<PCRE2_UCHAR, 256> what{};
        pcre2_get_error_message(compiled.error, what.data(), what.size());
        throw base::BadInput(fmt::format("answer: is no regular expression: {} at character {}",
                                         reinterpret_cast<const char*>(what.data()), compiled.at + 1));
    }
    if (compiled.refersBack()) {
        throw base::BadInput("answer: the pattern refers back to a group, which can take very long; write it without");
    }
}

double judgePattern(const nlohmann::json& expected, std::string_view answer) {
    const AnswerPattern pattern(expected.get_ref<const std::string&>());
    const std::unique_ptr<pcre2_match_context, FreeOfPattern<pcre2_match_context_free>> context(
        pcre2_match_context_create(nullptr));
    if (pattern.code == nullptr || context == nullptr || pattern.refersBack()) {
        return 0;
    }
    const std::string text = isValidUtf8(answer) ? std::string(answer) : replaceInvalidUtf8(answer);
    std::size_t from = text.size() - std::min(text.size(), kSearchedBytes);
    while (from < text.size() && (static_cast<unsigned char>(text[from]) & 0xC0U) == 0x80U) {
        ++from;
    }
    SearchBudget budget = {kStepsOfASearch + kStepsOfAByte * (text.size() - from), from};
    pcre2_set_callout(context.get(), countSteps, &budget);
    pcre2_set_heap_limit(context.get(), kMostKiBOfASearch);
    const std::unique_ptr<pcre2_match_data, FreeOfPattern<pcre2_match_data_free>> data(
        pcre2_match_data_create_from_pattern(pattern.code.get(), nullptr));
    const bool found =
        data != nullptr && pcre2_match(pattern.code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                                       PCRE2_NO_UTF_CHECK, data.get(), context.get()) >= 0;
    return found ? 1 : 0;
}

} // namespace

const Checker& regexChecker() {
    static const Checker kChecker = {"regex", "a match of the expected pattern in the answer", requirePattern,
                                     judgePattern};
    return kChecker;
}

} // namespace vitrine::engine

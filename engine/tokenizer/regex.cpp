// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/tokenizer/regex.h"

#include <array>
#include <fmt/format.h>

#include "base/error.h"
#include "engine/tokenizer/regex_translate.h"
#include "engine/tokenizer/unicode_text.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace vitrine::engine {

namespace {

// Together these bound one search to well under a second, whatever the pattern.
constexpr std::uint32_t kMatchLimit = 20'000'000;
constexpr std::uint32_t kHeapLimitKib = 64 * 1024;
constexpr std::size_t kLongestPattern = 64 * 1024;
constexpr std::size_t kJitStackStart = 64 * 1024;
constexpr std::size_t kJitStackEnd = 64 * 1024 * 1024;

template <auto Free> struct Freer {
    template <typename T> void operator()(T* pointer) const noexcept { Free(pointer); }
};
using CompileContext = std::unique_ptr<pcre2_compile_context, Freer<pcre2_compile_context_free>>;
using MatchContext = std::unique_ptr<pcre2_match_context, Freer<pcre2_match_context_free>>;
using MatchData = std::unique_ptr<pcre2_match_data, Freer<pcre2_match_data_free>>;
using JitStack = std::unique_ptr<pcre2_jit_stack, Freer<pcre2_jit_stack_free>>;

std::string describe(int error) {
    std::array<PCRE2_UCHAR, 256> text{};
    pcre2_get_error_message(error, text.data(), text.size());
    return reinterpret_cast<const char*>(text.data());
}

} // namespace

struct Regex::Code {
    std::unique_ptr<pcre2_code, Freer<pcre2_code_free>> compiled;
    bool jit = false;
};

Regex::Regex(std::string_view pattern, std::string where) : code_(std::make_unique<Code>()), where_(std::move(where)) {
    if (pattern.size() > kLongestPattern) {
        throw base::BadInput(
            fmt::format("{}: the regular expression is longer than {} bytes", where_, kLongestPattern));
    }
    const std::string translated = translateOnigurumaPattern(pattern, where_);
    CompileContext context(pcre2_compile_context_create(nullptr));
    if (!context) {
        throw base::Internal("no memory for a regular expression");
    }
    pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
    int error = 0;
    PCRE2_SIZE offset = 0;
    code_->compiled.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                                        PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &error,
                                        &offset, context.get()));
    if (!code_->compiled) {
        throw base::BadInput(fmt::format("{}: not a regular expression: {}", where_, describe(error)));
    }
    code_->jit = pcre2_jit_compile(code_->compiled.get(), PCRE2_JIT_COMPLETE) == 0;
}

Regex::~Regex() = default;
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;

std::vector<std::pair<std::size_t, std::size_t>> Regex::findAll(std::string_view text) const {
    MatchData data(pcre2_match_data_create_from_pattern(code_->compiled.get(), nullptr));
    MatchContext context(pcre2_match_context_create(nullptr));
    JitStack stack;
    if (!data || !context) {
        throw base::Internal("no memory for a regular expression");
    }
    pcre2_set_match_limit(context.get(), kMatchLimit);
    pcre2_set_heap_limit(context.get(), kHeapLimitKib);
    const auto match = [&](std::size_t from, std::uint32_t options) {
        return pcre2_match(code_->compiled.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                           PCRE2_NO_UTF_CHECK | options, data.get(), context.get());
    };

    std::vector<std::pair<std::size_t, std::size_t>> found;
    std::size_t from = 0;
    std::size_t lastEnd = PCRE2_UNSET;
    while (from <= text.size()) {
        int result = match(from, 0);
        if (result == PCRE2_ERROR_JIT_STACKLIMIT && !stack) {
            // The machine stack's 32 KiB are enough for all but odd patterns on long texts.
            stack.reset(pcre2_jit_stack_create(kJitStackStart, kJitStackEnd, nullptr));
            pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
            result = match(from, 0);
        }
        if (result == PCRE2_ERROR_JIT_STACKLIMIT) {
            result = match(from, PCRE2_NO_JIT);
        }
        if (result == PCRE2_ERROR_NOMATCH) {
            break;
        }
        if (result < 0) {
            throw base::BadInput(fmt::format("{}: the regular expression cannot be applied to a text of {} bytes: {}",
                                             where_, text.size(), describe(result)));
        }
        const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(data.get());
        const std::size_t begin = bounds[0];
        const std::size_t end = bounds[1];
        if (begin > end || begin < from) {
            throw base::BadInput(where_ + ": the regular expression matches backwards");
        }
        if (begin == end && lastEnd == end) {
            from += from < text.size() ? utf8Length(text[from]) : 1;
            continue;
        }
        found.emplace_back(begin, end);
        from = lastEnd = end;
    }
    return found;
}

} // namespace vitrine::engine

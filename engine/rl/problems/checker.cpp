// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/rl/problems/checker.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "engine/rl/problems/checker_list.h"

namespace vitrine::engine {

std::span<const Checker> checkers() {
    static const std::array<Checker, 5> kCheckers = {exactChecker(), numberChecker(), regexChecker(), choiceChecker(),
                                                     mathChecker()};
    return kCheckers;
}

const Checker* findChecker(std::string_view name) {
    const auto found = std::ranges::find(checkers(), name, &Checker::name);
    return found == checkers().end() ? nullptr : &*found;
}

std::string expectedText(const nlohmann::json& expected) {
    if (expected.is_string()) {
        return expected.get<std::string>();
    }
    if (expected.is_number() || expected.is_boolean()) {
        return expected.dump();
    }
    throw base::BadInput(fmt::format("answer: must be text or a number, not {}", expected.type_name()));
}

std::string_view trimmedText(std::string_view text) {
    constexpr std::string_view kAround{" \t\r\n\v\f\0", 7};
    const std::size_t begin = text.find_first_not_of(kAround);
    return begin == std::string_view::npos ? std::string_view()
                                           : text.substr(begin, text.find_last_not_of(kAround) - begin + 1);
}

std::string_view behindHashes(std::string_view text) {
    constexpr std::string_view kHashes = "####";
    const std::size_t at = text.rfind(kHashes);
    return trimmedText(at == std::string_view::npos ? text : text.substr(at + kHashes.size()));
}

std::size_t lastPlaceOf(std::string_view text, std::string_view word) {
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
    const auto found = std::ranges::find_end(text, word, {}, lower);
    return found.empty() ? std::string_view::npos : static_cast<std::size_t>(found.begin() - text.begin());
}

} // namespace vitrine::engine

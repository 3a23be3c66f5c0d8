// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// "Sort ascending: 7, 3." The answer's last line counts, behind its last colon. 1: it is the sorted list; else at most
// 0.5, by the share of items in their right place. No two items of a list are the same, and none is sorted already.

#include <algorithm>
#include <array>
#include <cstddef>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "engine/rl/problems/task_list.h"

namespace vitrine::engine {

namespace {

constexpr double kForRightPlaces = 0.5;

struct SortingLevel {
    std::int64_t items;
    std::int64_t largest; ///< number
    bool words;           ///< half of the lists are of words
};
constexpr std::array<SortingLevel, 10> kSortingLevels = {{{2, 9, false},
                                                          {3, 9, false},
                                                          {3, 99, true},
                                                          {4, 99, true},
                                                          {5, 99, true},
                                                          {6, 999, true},
                                                          {8, 999, true},
                                                          {10, 9999, true},
                                                          {13, 9999, true},
                                                          {16, 99999, true}}};

constexpr std::array<std::string_view, 48> kSortedWords = {
    "apple",  "ball",  "bear", "bird", "boat", "book", "bread", "cake",  "cat",   "chair", "cloud", "cow",
    "dog",    "door",  "duck", "egg",  "fish", "fox",  "frog",  "game",  "grass", "hat",   "house", "jar",
    "king",   "lake",  "lamp", "leaf", "lion", "milk", "moon",  "mouse", "night", "owl",   "park",  "pond",
    "rabbit", "river", "road", "shoe", "snow", "star", "sun",   "table", "tree",  "water", "wind",  "wolf"};

/// Different numbers from 0 to `largest`, which is at least `count` - 1, in a random order.
std::vector<std::int64_t> drawnItems(std::int64_t count, std::int64_t largest, ProblemDraws& draws) {
    // Floyd's way to choose without repeating a draw. It has no order yet.
    std::vector<std::int64_t> items;
    items.reserve(static_cast<std::size_t>(count));
    for (std::int64_t bound = largest - count + 1; bound <= largest; ++bound) {
        const std::int64_t item = draws.between(0, bound);
        const bool isThere = std::ranges::find(items, item) != items.end();
        items.push_back(isThere ? bound : item);
    }
    for (std::size_t i = items.size(); i > 1; --i) {
        std::swap(items[i - 1], items[static_cast<std::size_t>(draws.between(0, static_cast<std::int64_t>(i) - 1))]);
    }
    if (std::ranges::is_sorted(items)) {
        std::swap(items.front(), items.back());
    }
    return items;
}

TaskProblem makeSorting(std::int64_t difficulty, ProblemDraws& draws) {
    const SortingLevel& level = kSortingLevels.at(static_cast<std::size_t>(difficulty - 1));
    const bool words = level.words && draws.between(0, 1) == 1;
    std::vector<std::int64_t> items =
        drawnItems(level.items, words ? static_cast<std::int64_t>(kSortedWords.size()) - 1 : level.largest, draws);
    const auto texts = [&] {
        std::vector<std::string> out;
        out.reserve(items.size());
        for (const std::int64_t item : items) {
            out.push_back(words ? std::string(kSortedWords.at(static_cast<std::size_t>(item))) : std::to_string(item));
        }
        return out;
    };
    std::string question = fmt::format("Sort {}: {}. Answer with the list, separated by commas.",
                                       words ? "by the alphabet" : "from small to large", fmt::join(texts(), ", "));
    std::ranges::sort(items); // the words of the table are sorted
    return {std::move(question), std::make_shared<const nlohmann::json>(nlohmann::json{{"answer", texts()}})};
}

/// Without what may stand around a list or an item.
std::string_view bareItem(std::string_view text) {
    constexpr std::string_view kAround = " \t\r\n.[]()\"'*";
    const std::size_t begin = text.find_first_not_of(kAround);
    return begin == std::string_view::npos ? std::string_view()
                                           : text.substr(begin, text.find_last_not_of(kAround) - begin + 1);
}

double checkSorting(const nlohmann::json& facts, std::string_view answer) {
    answer = bareItem(answer);
    answer.remove_prefix(answer.find_last_of(":\n") + 1); // npos + 1 is 0
    const nlohmann::json& right = facts.at("answer");
    std::size_t items = 0, inPlace = 0;
    for (bool more = !bareItem(answer).empty(); more; ++items) {
        const std::size_t comma = answer.find(',');
        more = comma != std::string_view::npos;
        const std::string_view item = bareItem(answer.substr(0, comma));
        inPlace += items < right.size() && right[items].get_ref<const std::string&>() == item ? 1 : 0;
        answer.remove_prefix(more ? comma + 1 : answer.size());
    }
    if (inPlace == right.size() && items == right.size()) {
        return 1;
    }
    return kForRightPlaces * static_cast<double>(inPlace) / static_cast<double>(std::max(items, right.size()));
}

} // namespace

const Task& sortingTask() {
    static const Task kTask = {"sorting", "Numbers and words to sort", kSortingLevels.size(), makeSorting,
                               checkSorting};
    return kTask;
}

} // namespace vitrine::engine

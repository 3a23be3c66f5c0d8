// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// "How often does the letter e occur in greet?" The answer's last number counts. 1: it is right; 0.1: it is another
// number; 0: there is none. Words are random letters of a small alphabet that has the asked one, which occurs once at
// least.

#include <array>
#include <cstddef>
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "engine/rl/problems/answer_number.h"
#include "engine/rl/problems/task_list.h"

namespace vitrine::engine {

namespace {

constexpr double kForAnyCount = 0.1;

struct LettersLevel {
    std::int64_t letters; ///< of the word
    std::int64_t others;  ///< letters of the alphabet besides the asked one
};
constexpr std::array<LettersLevel, 10> kLettersLevels = {
    {{3, 1}, {4, 1}, {5, 2}, {6, 2}, {8, 3}, {10, 3}, {13, 4}, {17, 4}, {23, 5}, {32, 6}}};

char drawnLetter(ProblemDraws& draws) {
    return static_cast<char>('a' + draws.between(0, 25));
}

TaskProblem makeLetters(std::int64_t difficulty, ProblemDraws& draws) {
    const LettersLevel& level = kLettersLevels.at(static_cast<std::size_t>(difficulty - 1));
    const char asked = drawnLetter(draws);
    std::string alphabet(1, asked);
    for (std::int64_t i = 0; i < level.others; ++i) {
        // Another letter than the asked one. The others may be the same.
        alphabet += static_cast<char>('a' + (asked - 'a' + draws.between(1, 25)) % 26);
    }
    std::string word;
    for (std::int64_t i = 0; i < level.letters; ++i) {
        word += alphabet.at(static_cast<std::size_t>(draws.between(0, level.others)));
    }
    word.at(static_cast<std::size_t>(draws.between(0, level.letters - 1))) = asked;
    std::int64_t count = 0;
    for (const char letter : word) {
        count += letter == asked ? 1 : 0;
    }
    return {fmt::format("How often does the letter {} occur in {}? Answer with the number.", asked, word),
            std::make_shared<const nlohmann::json>(nlohmann::json{{"answer", count}})};
}

double checkLetters(const nlohmann::json& facts, std::string_view answer) {
    const std::optional<double> number = lastNumber(answer);
    if (!number) {
        return 0;
    }
    return *number == facts.at("answer").get<double>() ? 1 : kForAnyCount;
}

} // namespace

const Task& lettersTask() {
    static const Task kTask = {"letters", "How often a letter occurs in a word", kLettersLevels.size(), makeLetters,
                               checkLetters};
    return kTask;
}

} // namespace vitrine::engine

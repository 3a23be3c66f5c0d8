// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// "Write about the sea. Use exactly 5 words. End with \"!\"." The reward is the share of the demands that the answer
// meets, and 0 for an answer without a letter. Words are what stands between white space; demands of words are met in
// any case of letters.

#include <algorithm>
#include <array>
#include <cstddef>
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "engine/rl/problems/task_list.h"

namespace vitrine::engine {

namespace {

/// Demands by how easy they are; each is made once at most.
enum class Demand { EndMark, Contains, Lower, BeginWord, Words, Without, EndWord };
constexpr std::array<std::string_view, 7> kDemandNames = {"end_mark", "contains", "lower",   "begin_word",
                                                          "words",    "without",  "end_word"};

struct FormatLevel {
    std::int64_t demands;
    std::int64_t kinds; ///< the first ones of the enum
};
constexpr std::array<FormatLevel, 10> kFormatLevels = {
    {{1, 2}, {1, 4}, {2, 4}, {2, 5}, {2, 7}, {3, 6}, {3, 7}, {4, 7}, {5, 7}, {6, 7}}};

constexpr std::array<std::string_view, 24> kTopics = {
    "a cat",  "a dog",  "the sea",  "the moon",  "the sun",  "rain",   "snow",  "a house",
    "a tree", "a bird", "a friend", "a garden",  "a river",  "a ball", "a cow", "the wind",
    "bread",  "a road", "a school", "the night", "a flower", "a boat", "a hat", "a star"};
// The letters of kUnusedLetters are in none of these words, so that all demands can be met together.
constexpr std::array<std::string_view, 8> kContained = {"the", "a", "and", "is", "to", "in", "one", "so"};
constexpr std::array<std::string_view, 6> kFirstWords = {"once", "the", "one", "here", "in", "a"};
constexpr std::array<std::string_view, 6> kLastWords = {"end", "home", "day", "there", "sun", "again"};
constexpr std::string_view kMarks = ".!?";
constexpr std::string_view kUnusedLetters = "bfjklpqvwxz";
constexpr std::int64_t kFewestWords = 4; ///< a first, a contained and a last word have room

template <std::size_t Count>
std::string drawnWord(const std::array<std::string_view, Count>& words, ProblemDraws& draws) {
    return std::string(words.at(static_cast<std::size_t>(draws.between(0, Count - 1))));
}

struct MadeDemand {
    std::string text;
    nlohmann::json value; ///< what the check needs
};

MadeDemand makeDemand(Demand demand, ProblemDraws& draws) {
    switch (demand) {
    case Demand::EndMark: {
        const char mark = kMarks.at(static_cast<std::size_t>(draws.between(0, 2)));
        return {fmt::format("End with the mark \"{}\".", mark), std::string(1, mark)};
    }
    case Demand::Contains: {
        const std::string word = drawnWord(kContained, draws);
        return {fmt::format("Use the word \"{}\".", word), word};
    }
    case Demand::Lower:
        return {"Use no capital letters.", true};
    case Demand::BeginWord: {
        const std::string word = drawnWord(kFirstWords, draws);
        return {fmt::format("Begin with the word \"{}\".", word), word};
    }
    case Demand::Words: {
        const std::int64_t count = draws.between(kFewestWords, 12);
        return {fmt::format("Use exactly {} words.", count), count};
    }
    case Demand::Without: {
        const char letter =
            kUnusedLetters.at(static_cast<std::size_t>(draws.between(0, std::int64_t{kUnusedLetters.size()} - 1)));
        return {fmt::format("Do not use the letter \"{}\".", letter), std::string(1, letter)};
    }
    case Demand::EndWord:
        break;
    }
    const std::string word = drawnWord(kLastWords, draws);
    return {fmt::format("The last word must be \"{}\".", word), word};
}

TaskProblem makeFormat(std::int64_t difficulty, ProblemDraws& draws) {
    const FormatLevel& level = kFormatLevels.at(static_cast<std::size_t>(difficulty - 1));
    std::string question = fmt::format("Write about {}.", drawnWord(kTopics, draws));
    nlohmann::json facts = nlohmann::json::object();
    std::int64_t left = level.demands;
    for (std::int64_t kind = 0; kind < level.kinds; ++kind) {
        if (draws.between(1, level.kinds - kind) <= left) { // chooses `left` of the kinds that are left
            MadeDemand made = makeDemand(static_cast<Demand>(kind), draws);
            question += " " + made.text;
            facts[std::string(kDemandNames.at(static_cast<std::size_t>(kind)))] = std::move(made.value);
            --left;
        }
    }
    return {std::move(question), std::make_shared<const nlohmann::json>(std::move(facts))};
}

bool isSpaceOfAnswer(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

char lowerOf(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool isLetterOfAnswer(char c) {
    return lowerOf(c) >= 'a' && lowerOf(c) <= 'z';
}

/// What an answer has, found in one walk.
class AnswerWords {
public:
    /// Looks for the word `wanted`; empty: for none. The answer outlives it.
    AnswerWords(std::string_view answer, std::string_view wanted) {
        while (!answer.empty() && isSpaceOfAnswer(answer.back())) {
            answer.remove_suffix(1);
        }
        end = answer.empty() ? '\0' : answer.back();
        for (std::size_t at = 0; at < answer.size(); ++at) {
            const std::size_t begin = at;
            while (at < answer.size() && !isSpaceOfAnswer(answer[at])) {
                hasLetter = hasLetter || isLetterOfAnswer(answer[at]);
                hasCapital = hasCapital || (answer[at] >= 'A' && answer[at] <= 'Z');
                ++at;
            }
            if (at > begin) {
                add(answer.substr(begin, at - begin), wanted);
            }
        }
    }

    std::int64_t count = 0;
    std::string_view first, last; ///< without marks around them
    bool hasWanted = false;
    bool hasLetter = false;
    bool hasCapital = false;
    char end = '\0';

    static bool same(std::string_view a, std::string_view b) { return std::ranges::equal(a, b, {}, lowerOf, lowerOf); }

private:
    void add(std::string_view word, std::string_view wanted) {
        while (!word.empty() && !isLetterOfAnswer(word.front())) {
            word.remove_prefix(1);
        }
        while (!word.empty() && !isLetterOfAnswer(word.back())) {
            word.remove_suffix(1);
        }
        first = count == 0 ? word : first;
        last = word;
        hasWanted = hasWanted || (!wanted.empty() && same(word, wanted));
        ++count;
    }
};

bool isMet(std::string_view name, const nlohmann::json& value, std::string_view answer, const AnswerWords& words) {
    const auto text = value.is_string() ? std::string_view(value.get_ref<const std::string&>()) : std::string_view();
    switch (static_cast<Demand>(std::ranges::find(kDemandNames, name) - kDemandNames.begin())) {
    case Demand::EndMark:
        return words.end == text.front();
    case Demand::Contains:
        return words.hasWanted;
    case Demand::Lower:
        return !words.hasCapital;
    case Demand::BeginWord:
        return AnswerWords::same(words.first, text);
    case Demand::Words:
        return words.count == value.get<std::int64_t>();
    case Demand::Without:
        return std::ranges::none_of(answer, [&](char c) { return lowerOf(c) == text.front(); });
    case Demand::EndWord:
        return AnswerWords::same(words.last, text);
    }
    return false;
}

double checkFormat(const nlohmann::json& facts, std::string_view answer) {
    const auto contains = facts.find("contains");
    const AnswerWords words(answer, contains == facts.end() ? std::string() : contains->get<std::string>());
    if (!words.hasLetter) {
        return 0;
    }
    std::size_t met = 0;
    for (const auto& [name, value] : facts.items()) {
        met += isMet(name, value, answer, words) ? 1 : 0;
    }
    return static_cast<double>(met) / static_cast<double>(facts.size());
}

} // namespace

const Task& formatTask() {
    static const Task kTask = {"format", "Answers of a given form", kFormatLevels.size(), makeFormat, checkFormat};
    return kTask;
}

} // namespace vitrine::engine

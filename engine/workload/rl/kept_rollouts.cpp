// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/rl/kept_rollouts.h"

#include <algorithm>

#include "engine/tokenizer/tokenizer.h"

namespace vitrine::engine {

namespace {

constexpr std::int64_t kFirstSteps = 3;
constexpr std::int64_t kMostEvaluated = 20;
constexpr std::int64_t kSpreadSteps = KeptSteps::kMost - kFirstSteps - 1; ///< the newest one is the last of them
constexpr std::int64_t kMostAnswers = std::int64_t{1} << 19;              ///< 40 MB of a session that is open

std::int64_t strideFor(std::int64_t all, std::int64_t most) {
    return std::max<std::int64_t>(1, (all + most - 1) / most);
}

std::string_view withoutEnds(std::string_view text) {
    constexpr std::string_view kBlank = " \t\r\n";
    const std::size_t first = text.find_first_not_of(kBlank);
    return first == std::string_view::npos ? std::string_view()
                                           : text.substr(first, text.find_last_not_of(kBlank) + 1 - first);
}

} // namespace

KeptSteps::KeptSteps(std::int64_t steps, std::int64_t evalEvery, std::int64_t answers)
    : steps_(steps), evalEvery_(std::max<std::int64_t>(evalEvery, 0)), every_(1), everyEvaluation_(1),
      everyAnswers_(strideFor(steps * std::max<std::int64_t>(answers, 1), kMostAnswers)) {
    const std::int64_t evaluated = evalEvery_ > 0 ? steps / evalEvery_ : 0;
    everyEvaluation_ = strideFor(evaluated, kMostEvaluated);
    every_ = strideFor(steps, kSpreadSteps - std::min(evaluated, kMostEvaluated));
}

bool KeptSteps::tokens(std::int64_t number) const {
    const bool evaluated = evalEvery_ > 0 && number % evalEvery_ == 0 && number / evalEvery_ % everyEvaluation_ == 0;
    return steps_ <= kMost || number <= kFirstSteps || evaluated || number % every_ == 0;
}

bool KeptSteps::answers(std::int64_t number) const {
    return number % everyAnswers_ == 0 || tokens(number);
}

void RolloutRecords::report(kernels::Tracer& tracer) const {
    const base::TimeNs now = tracer.now();
    std::size_t next = 0;
    for (base::RolloutEvent row : rows) {
        row.time = now;
        tracer.record(row);
        for (; next < tokens.size() && tokens[next].event.row == row.row; ++next) {
            base::RolloutTokenEvent token = tokens[next].event;
            token.time = now;
            token.text = tracer.intern(tokens[next].text);
            tracer.record(token);
        }
    }
}

std::int64_t rowsOfWholeGroups(const Rollouts& rollouts, std::span<const std::pair<std::size_t, std::size_t>> places,
                               std::int64_t most) {
    std::int64_t whole = 0, tokens = 0;
    for (std::int64_t row = 0; row < rollouts.rows; ++row) {
        const auto at = static_cast<std::size_t>(row);
        if (row > 0 && places[at].first != places[at - 1].first) {
            whole = row;
        }
        tokens += rollouts.lengths[at];
        if (tokens > most) {
            return whole > 0 ? whole : row; // of a first group that is too large, the answers that fit
        }
    }
    return rollouts.rows;
}

std::string askedText(const Problem& problem) {
    return problem.messages.empty() ? problem.text : problem.messages.back().text();
}

std::vector<std::string> questionTexts(const Tokenizer& tokenizer, std::span<const std::int32_t> prompt,
                                       std::string_view question) {
    std::vector<std::string> out;
    std::string all;
    for (const std::int32_t id : prompt) {
        out.push_back(tokenizer.isSpecial(id) ? std::string() : tokenizer.bytesOf(id));
        all += out.back();
    }
    const std::string_view asked = withoutEnds(question);
    const std::size_t begin = asked.empty() ? std::string::npos : all.rfind(asked);
    if (begin == std::string::npos) {
        return out;
    }
    const std::size_t end = begin + asked.size();
    std::size_t at = 0;
    for (std::string& text : out) {
        const std::size_t from = std::clamp(at, begin, end), to = std::clamp(at + text.size(), begin, end);
        const std::string part = to > from ? text.substr(from - at, to - from) : std::string();
        at += text.size();
        text = part;
    }
    return out;
}

} // namespace vitrine::engine

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the model of a training run answered to fixed prompts, step by step. Values; any thread.

#include <QStringList>
#include <cstdint>
#include <string>
#include <vector>

namespace vitrine::ui {

struct TrainingAnswer {
    QString text;
    std::int64_t tokens = 0;
};

/// The answers after one step, in the order of the prompts.
struct AnswerSet {
    std::int64_t step = 0;
    std::vector<TrainingAnswer> answers;
};

struct TrainingAnswers {
    QStringList prompts;
    std::vector<AnswerSet> sets; ///< by step

    bool empty() const { return sets.empty(); }
    /// The set of a step; null: there is none.
    const AnswerSet* at(std::int64_t step) const;

    /// From the results of a run, finished or not; what is damaged is left out.
    static TrainingAnswers read(const std::string& metricsJson);
};

} // namespace vitrine::ui

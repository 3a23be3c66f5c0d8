// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/finetune/training_answers.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_values.h"
#include "engine/workload/experiment/results.h"
#include "ui/models/common/format.h"

namespace vitrine::ui {

const AnswerSet* TrainingAnswers::at(std::int64_t step) const {
    const auto found = std::ranges::lower_bound(sets, step, {}, &AnswerSet::step);
    return found != sets.end() && found->step == step ? &*found : nullptr;
}

TrainingAnswers TrainingAnswers::read(const std::string& metricsJson) {
    TrainingAnswers out;
    if (metricsJson.find('"' + std::string(engine::result::kAnswers.key) + '"') == std::string::npos) {
        return out; // of a long run the results are long: they are not read for nothing
    }
    const nlohmann::json metrics = base::parsedObject(metricsJson);
    const auto rows = metrics.find(engine::result::kAnswers.key);
    if (rows == metrics.end() || !rows->is_array()) {
        return out;
    }
    for (const nlohmann::json& row : *rows) {
        if (!row.is_object() || !row.contains("step") || !row["step"].is_number_integer()) {
            continue;
        }
        const auto step = row["step"].get<std::int64_t>();
        const QString prompt = textOf(base::textAt(row, "prompt"));
        auto index = out.prompts.indexOf(prompt);
        if (index < 0) {
            index = out.prompts.size();
            out.prompts << prompt;
        }
        auto set = std::ranges::lower_bound(out.sets, step, {}, &AnswerSet::step);
        if (set == out.sets.end() || set->step != step) {
            set = out.sets.insert(set, AnswerSet{step, {}});
        }
        const auto place = static_cast<std::size_t>(index);
        if (set->answers.size() <= place) {
            set->answers.resize(place + 1);
        }
        const auto tokens = row.find("tokens");
        set->answers[place] = {textOf(base::textAt(row, "text")),
                               tokens != row.end() && tokens->is_number_integer() ? tokens->get<std::int64_t>() : 0};
    }
    for (AnswerSet& set : out.sets) {
        set.answers.resize(static_cast<std::size_t>(out.prompts.size()));
    }
    return out;
}

} // namespace vitrine::ui

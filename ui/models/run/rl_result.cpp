// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/run/rl_result.h"

#include <QObject>
#include <QStringList>
#include <nlohmann/json.hpp>

#include "base/json_values.h"
#include "engine/workload/experiment/results.h"
#include "engine/workload/rl/rl_text.h"
#include "ui/models/common/format.h"
#include "ui/models/rl/rl_run.h"

namespace vitrine::ui {

namespace {

using Json = nlohmann::json;

/// "reward 0.125, answer tokens 48.0, loss 0.0312, ..": what the terminal has as a table, for letters of any width.
QString stepLine(const std::vector<std::string>& head, const std::vector<std::string>& row) {
    QStringList parts;
    for (std::size_t i = 1; i < row.size(); ++i) {
        if (row[i] != unknownText().toStdString()) {
            parts << textOf(head[i]) + QLatin1Char(' ') + textOf(row[i]);
        }
    }
    return QObject::tr("Step %1: %2").arg(textOf(row.front()), parts.join(QStringLiteral(", ")));
}

QString answerTitle(const Json& row) {
    const auto reward = base::numberAt(row, "reward");
    return reward ? QObject::tr("reward %1").arg(*reward, 0, 'f', 2) : QObject::tr("no reward");
}

/// The answers that a step kept, below their problem.
void addAnswers(std::vector<RlResultPart>& out, const Json& rows, std::int64_t step) {
    bool asked = false;
    for (const Json& row : rows) {
        if (!row.is_object() || row.value("step", std::int64_t{0}) != step) {
            continue;
        }
        if (!asked) {
            out.push_back({QObject::tr("step %1").arg(countText(step)), textOf(base::textAt(row, "prompt")), true});
            asked = true;
        }
        out.push_back({answerTitle(row), textOf(base::textAt(row, "text"))});
    }
}

} // namespace

std::vector<RlResultPart> rlResultParts(const sessions::RunInfo& run) {
    std::vector<RlResultPart> out;
    const Json metrics = base::parsedObject(run.metricsJson);
    const std::vector<std::string> facts = isRlRun(run) ? engine::rlFacts(metrics) : std::vector<std::string>();
    if (facts.empty()) {
        return out;
    }
    QStringList lines;
    for (const std::string& line : facts) {
        lines << textOf(line).left(1).toUpper() + textOf(line).mid(1) + QLatin1Char('.');
    }
    out.push_back({QObject::tr("result"), lines.join(QLatin1Char('\n'))});
    const std::vector<std::vector<std::string>> rows = engine::rlStepRows(metrics);
    lines.clear();
    for (std::size_t i = 1; i < rows.size(); ++i) {
        lines << stepLine(rows.front(), rows[i]);
    }
    out.push_back({QObject::tr("steps"), lines.join(QLatin1Char('\n')), true});
    const Json& answers = engine::rowsOf(metrics, engine::result::kSampledAnswers);
    if (!answers.empty() && answers.front().is_object()) {
        const auto first = answers.front().value("step", std::int64_t{0});
        const auto last = answers.back().value("step", std::int64_t{0});
        if (first != last) {
            addAnswers(out, answers, first);
        }
        addAnswers(out, answers, last);
    }
    return out;
}

} // namespace vitrine::ui

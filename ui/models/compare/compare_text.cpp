// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/compare/compare_text.h"

#include <QObject>
#include <QStringList>
#include <algorithm>

#include "engine/workload/experiment/comparison_words.h"
#include "ui/models/common/format.h"

namespace vitrine::ui {

engine::ComparedRun comparedRun(const sessions::RunInfo& run) {
    return {run.id,
            run.storedSpecJson.empty() ? run.specJson : run.storedSpecJson,
            run.environmentJson,
            run.metricsJson,
            run.status == sessions::RunStatus::Done,
            run.status == sessions::RunStatus::OutOfMemory,
            std::string(sessions::runStatusName(run.status)),
            run.storedSpecJson.empty() ? std::string() : run.specJson};
}

std::vector<engine::ComparedRun> comparedRuns(const std::vector<sessions::RunInfo>& runs) {
    std::vector<engine::ComparedRun> out;
    for (const sessions::RunInfo& run : runs) {
        out.push_back(comparedRun(run));
    }
    return out;
}

namespace {

QString surroundingLines(const engine::ComparedRun& a, const engine::ComparedRun& b) {
    QStringList lines;
    for (const engine::SurroundingDifference& row : engine::allSurroundings(a, b)) {
        lines << (row.a == row.b ? QObject::tr("%1: %2", "surrounding").arg(textOf(row.words), textOf(row.a))
                                 : QObject::tr("%1: A %2, B %3").arg(textOf(row.words), textOf(row.a), textOf(row.b)));
    }
    return lines.join(QLatin1Char('\n'));
}

} // namespace

CompareText compareText(const sessions::RunInfo& a, const sessions::RunInfo& b,
                        const std::vector<sessions::RunInfo>& all) {
    const engine::ComparedRun left = comparedRun(a), right = comparedRun(b);
    CompareText words;
    const auto reasons = engine::whyIncomparable(left, right);
    words.nothing = engine::allIncomparable(reasons);
    words.runAgain = std::ranges::any_of(reasons, [](const engine::Incomparability& reason) {
        return reason.what == engine::Incomparable::Times && !reason.planned;
    });
    words.surroundings = surroundingLines(left, right);
    words.notComparable = textOf(engine::incomparableSentence(left, right));
    const engine::ComparisonWords said =
        engine::comparisonWords(left, right, engine::compareResults(left, right, comparedRuns(all)));
    words.sentence = textOf(said.sentence);
    words.cause = textOf(said.other);
    words.answers = textOf(said.answers);
    return words;
}

QString runNumber(const sessions::RunInfo& run) {
    return QStringLiteral("#%1").arg(run.id);
}

} // namespace vitrine::ui

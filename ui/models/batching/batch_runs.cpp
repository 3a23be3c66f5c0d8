// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/batching/batch_runs.h"

#include <QObject>
#include <QStringList>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json_values.h"
#include "engine/workload/experiment/experiment.h"
#include "engine/workload/experiment/results.h"
#include "engine/workload/experiment/workload_table.h"
#include "ui/models/common/format.h"

namespace vitrine::ui {

namespace {

QString requestCountText(double count) {
    return count == 1 ? QObject::tr("1 request") : QObject::tr("%1 requests").arg(countText(std::llround(count)));
}

using engine::Experiment;

bool sameTrace(const std::optional<Experiment>& a, const std::optional<Experiment>& b) {
    return a && b &&
           std::ranges::all_of(std::initializer_list<const char*>{"model", "trace", "requests", "prompt_tokens",
                                                                  "new_tokens", "rate", "seed"},
                               [&](const char* key) { return a->valueText(key) == b->valueText(key); });
}

} // namespace

std::span<const char* const> batchSettingKeys() {
    static constexpr const char* kKeys[] = {
        "mode",           "slots",      "scheduler", "preemption", "kv_dtype", "token_budget", "gather_steps",
        "share_prefixes", "swap_space", "kv_pages",  "page_size",  "weights",  "backend",      "device_profile"};
    return kKeys;
}

std::map<std::string, std::string> batchSettings(const sessions::RunInfo& run) {
    const auto experiment = Experiment::read(run.specJson);
    const nlohmann::json metrics = base::parsedObject(run.metricsJson);
    std::map<std::string, std::string> settings;
    for (const char* key : batchSettingKeys()) {
        if (experiment && experiment->has(key)) {
            settings[key] = experiment->valueText(key);
        }
    }
    if (const QString mode = textOf(engine::textOf(metrics, engine::result::kMode)); !mode.isEmpty()) {
        settings.try_emplace("mode", mode.toStdString());
    }
    return settings;
}

QString batchSettingText(std::string_view key, const std::string& value) {
    const QString text = textOf(value);
    if (key == "share_prefixes") {
        return value == "true" ? QObject::tr("shared prefixes") : QObject::tr("no shared prefixes");
    }
    static const std::map<std::string_view, const char*> kWords = {
        {"slots", QT_TRANSLATE_NOOP("QObject", "%1 slots")},
        {"preemption", QT_TRANSLATE_NOOP("QObject", "preemption %1")},
        {"kv_dtype", QT_TRANSLATE_NOOP("QObject", "KV %1")},
        {"token_budget", QT_TRANSLATE_NOOP("QObject", "%1 tokens a step")},
        {"gather_steps", QT_TRANSLATE_NOOP("QObject", "gather %1")},
        {"swap_space", QT_TRANSLATE_NOOP("QObject", "swap space %1")},
        {"kv_pages", QT_TRANSLATE_NOOP("QObject", "%1 KV pages")},
        {"page_size", QT_TRANSLATE_NOOP("QObject", "pages of %1 tokens")}};
    const auto words = kWords.find(key);
    return words == kWords.end() ? text : QObject::tr(words->second).arg(text);
}

bool isBatchRun(const sessions::RunInfo& run) {
    const engine::Workload* workload = engine::workloadOfRun(run.workload);
    return workload != nullptr && engine::showsIn(*workload, "batching");
}

bool repliesToTrace(const sessions::RunInfo& run) {
    const engine::Workload* workload = engine::workloadOfRun(run.workload);
    return workload != nullptr && workload->manyAnswers;
}

bool sameBatchTrace(const sessions::RunInfo& a, const sessions::RunInfo& b) {
    return sameTrace(Experiment::read(a.specJson), Experiment::read(b.specJson));
}

std::vector<sessions::RunId> batchTraces(const std::vector<sessions::RunInfo>& runs) {
    std::vector<std::pair<sessions::RunId, std::optional<Experiment>>> known;
    for (auto run = runs.rbegin(); run != runs.rend(); ++run) {
        auto spec = isBatchRun(*run) ? Experiment::read(run->specJson) : std::nullopt;
        if (isBatchRun(*run) && std::ranges::none_of(known, [&](const auto& k) { return sameTrace(k.second, spec); })) {
            known.emplace_back(run->id, std::move(spec));
        }
    }
    std::vector<sessions::RunId> newest;
    newest.reserve(known.size());
    for (const auto& [id, spec] : known) {
        newest.push_back(id);
    }
    return newest;
}

sessions::RunId batchPartner(const std::vector<sessions::RunInfo>& runs, sessions::RunId id) {
    const auto self = std::find_if(runs.begin(), runs.end(), [id](const auto& run) { return run.id == id; });
    if (self == runs.end()) {
        return 0;
    }
    const auto mine = Experiment::read(self->specJson);
    sessions::RunId best = 0;
    int bestScore = 0;
    for (const sessions::RunInfo& run : runs) {
        const auto other = Experiment::read(run.specJson);
        if (run.id == id || !isBatchRun(run) || !sameTrace(mine, other)) {
            continue;
        }
        const auto differs = [&](const char* key) { return other->valueText(key) != mine->valueText(key); };
        const int score = 1 + (differs("mode") ? 2 : 0) + (differs("slots") ? 0 : 1);
        if (score >= bestScore) {
            best = run.id;
            bestScore = score;
        }
    }
    return best;
}

QString traceText(const sessions::RunInfo& run) {
    const auto experiment = Experiment::read(run.specJson);
    const QString trace = experiment ? textOf(experiment->text("trace")) : QString();
    QStringList words;
    if (trace.isEmpty()) {
        return {}; // a server: its requests came over HTTP
    }
    if (trace.contains(QLatin1Char('/')) || trace.contains(QLatin1Char('.'))) {
        // What the experiment says of made traces does not hold for a file.
        words << trace.section(QLatin1Char('/'), -1);
        if (const auto requests = engine::numberOf(base::parsedObject(run.metricsJson), engine::result::kRequests)) {
            words << requestCountText(*requests);
        }
        return words.join(QStringLiteral(", "));
    }
    if (!trace.isEmpty()) {
        const QString answer = textOf(experiment->text("new_tokens"));
        words << (answer.isEmpty() ? trace : trace + QLatin1Char(' ') + QString(answer).replace(u'-', u'\u2013'));
    }
    words << requestCountText(static_cast<double>(experiment->integer("requests")))
          << QObject::tr("seed %1").arg(experiment->integer("seed"));
    return words.join(QStringLiteral(", "));
}

QStringList batchSentences(const sessions::RunInfo& run) {
    const nlohmann::json metrics = base::parsedObject(run.metricsJson);
    const auto requests = isBatchRun(run) ? engine::numberOf(metrics, engine::result::kRequests) : std::nullopt;
    if (!requests) {
        return {};
    }
    using namespace engine::result;
    const auto count = [&](const engine::ResultField& field) { return engine::numberOf(metrics, field).value_or(0); };
    const auto seconds = [&](const engine::ResultField& field, const char* share) {
        const nlohmann::json* found = engine::valueOf(metrics, field);
        return found != nullptr && found->is_object()
                   ? durationText(
                         static_cast<base::TimeNs>(std::llround(base::numberAt(*found, share).value_or(0) * 1e9)))
                   : unknownText();
    };
    QString ends = QObject::tr("%1 of %2 finished")
                       .arg(countText(std::llround(count(kFinishedRequests))), requestCountText(*requests));
    for (const auto& [field, words] : {std::pair(&kRefusedRequests, QT_TRANSLATE_NOOP("QObject", "%1 refused")),
                                       std::pair(&kCancelledRequests, QT_TRANSLATE_NOOP("QObject", "%1 cancelled")),
                                       std::pair(&kFailedRequests, QT_TRANSLATE_NOOP("QObject", "%1 failed"))}) {
        if (count(*field) > 0) {
            ends += QStringLiteral(", ") + QObject::tr(words).arg(countText(std::llround(count(*field))));
        }
    }
    QStringList sentences = {
        ends + QLatin1Char('.'),
        QObject::tr("%1 tokens in %2 steps, %3 tokens/s; %4 of the slots' steps gave a token.")
            .arg(countText(std::llround(count(kGeneratedTokens))), countText(std::llround(count(kSteps))),
                 countText(std::llround(count(kTokensPerSecond))), shareText(count(kSlotUtilization)))};
    if (count(kFinishedRequests) > 0) {
        sentences << QObject::tr(
                         "First tokens after %1 (p50) and %2 (p95), each token after them %3 (p50) and %4 (p95), "
                         "whole answers after %5 (p50) and %6 (p95).")
                         .arg(seconds(kTtft, "p50"), seconds(kTtft, "p95"), seconds(kTpot, "p50"),
                              seconds(kTpot, "p95"), seconds(kE2e, "p50"), seconds(kE2e, "p95"));
    }
    if (count(kPreemptions) > 0) {
        sentences << QObject::tr("Pages ran short; preemptions: %1.").arg(countText(std::llround(count(kPreemptions))));
    }
    sentences << QObject::tr("The Batching view shows slots and requests, the KV cache view the pages.");
    return sentences;
}

} // namespace vitrine::ui

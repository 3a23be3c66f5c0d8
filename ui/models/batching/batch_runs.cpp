// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/batching/batch_runs.h"

#include <QObject>
#include <QStringList>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json_values.h"
#include "engine/workload/experiment/workload_table.h"
#include "ui/models/common/format.h"

namespace vitrine::ui {

namespace {

QString requestCountText(double count) {
    return count == 1 ? QObject::tr("1 request") : QObject::tr("%1 requests").arg(countText(std::llround(count)));
}

bool sameTrace(const nlohmann::json& a, const nlohmann::json& b) {
    return std::ranges::all_of(
        std::initializer_list<const char*>{"model", "trace", "requests", "prompt_tokens", "new_tokens", "rate", "seed"},
        [&](const char* key) { return a.value(key, nlohmann::json()) == b.value(key, nlohmann::json()); });
}

} // namespace

std::span<const char* const> batchSettingKeys() {
    static constexpr const char* kKeys[] = {
        "mode",           "slots",      "scheduler", "preemption", "kv_dtype", "token_budget", "gather_steps",
        "share_prefixes", "swap_space", "kv_pages",  "page_size",  "weights",  "backend",      "device_profile"};
    return kKeys;
}

std::map<std::string, std::string> batchSettings(const sessions::RunInfo& run) {
    const nlohmann::json spec = base::parsedObject(run.specJson), metrics = base::parsedObject(run.metricsJson);
    std::map<std::string, std::string> settings;
    for (const char* key : batchSettingKeys()) {
        if (const auto found = spec.find(key); found != spec.end()) {
            settings[key] = found->is_string() ? found->get<std::string>() : found->dump();
        }
    }
    if (const QString mode = textOf(base::textAt(metrics, "mode")); !mode.isEmpty()) {
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

bool sameBatchTrace(const sessions::RunInfo& a, const sessions::RunInfo& b) {
    return sameTrace(base::parsedObject(a.specJson), base::parsedObject(b.specJson));
}

std::vector<sessions::RunId> batchTraces(const std::vector<sessions::RunInfo>& runs) {
    std::vector<std::pair<sessions::RunId, nlohmann::json>> known;
    for (auto run = runs.rbegin(); run != runs.rend(); ++run) {
        nlohmann::json spec = isBatchRun(*run) ? base::parsedObject(run->specJson) : nlohmann::json();
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
    const nlohmann::json mine = base::parsedObject(self->specJson);
    sessions::RunId best = 0;
    int bestScore = 0;
    for (const sessions::RunInfo& run : runs) {
        const nlohmann::json other = base::parsedObject(run.specJson);
        if (run.id == id || !isBatchRun(run) || !sameTrace(mine, other)) {
            continue;
        }
        const auto differs = [&](const char* key, const nlohmann::json& unset) {
            return other.value(key, unset) != mine.value(key, unset);
        };
        const int score = 1 + (differs("mode", "continuous") ? 2 : 0) + (differs("slots", nlohmann::json()) ? 0 : 1);
        if (score >= bestScore) {
            best = run.id;
            bestScore = score;
        }
    }
    return best;
}

QString traceText(const sessions::RunInfo& run) {
    const nlohmann::json spec = base::parsedObject(run.specJson);
    const QString trace = textOf(base::textAt(spec, "trace"));
    QStringList words;
    if (trace.isEmpty()) {
        return {}; // a server: its requests came over HTTP
    }
    if (trace.contains(QLatin1Char('/')) || trace.contains(QLatin1Char('.'))) {
        // What the experiment says of made traces does not hold for a file.
        words << trace.section(QLatin1Char('/'), -1);
        if (const auto requests = base::numberAt(base::parsedObject(run.metricsJson), "requests")) {
            words << requestCountText(*requests);
        }
        return words.join(QStringLiteral(", "));
    }
    if (!trace.isEmpty()) {
        const QString answer = textOf(base::textAt(spec, "new_tokens"));
        words << (answer.isEmpty() ? trace : trace + QLatin1Char(' ') + QString(answer).replace(u'-', u'\u2013'));
    }
    if (const auto requests = base::numberAt(spec, "requests")) {
        words << requestCountText(*requests);
    }
    if (const auto seed = base::numberAt(spec, "seed")) {
        words << QObject::tr("seed %1").arg(QString::number(*seed, 'f', 0));
    }
    return words.join(QStringLiteral(", "));
}

QStringList batchSentences(const sessions::RunInfo& run) {
    const nlohmann::json metrics = base::parsedObject(run.metricsJson);
    const auto requests = isBatchRun(run) ? base::numberAt(metrics, "requests") : std::nullopt;
    if (!requests) {
        return {};
    }
    const auto count = [&](const char* key) { return base::numberAt(metrics, key).value_or(0); };
    const auto seconds = [&](const char* key, const char* share) {
        const auto found = metrics.find(key);
        return found != metrics.end() && found->is_object()
                   ? durationText(
                         static_cast<base::TimeNs>(std::llround(base::numberAt(*found, share).value_or(0) * 1e9)))
                   : unknownText();
    };
    QString ends = QObject::tr("%1 of %2 finished")
                       .arg(countText(std::llround(count("finished_requests"))), requestCountText(*requests));
    for (const auto& [key, words] : {std::pair("refused_requests", QT_TRANSLATE_NOOP("QObject", "%1 refused")),
                                     std::pair("cancelled_requests", QT_TRANSLATE_NOOP("QObject", "%1 cancelled")),
                                     std::pair("failed_requests", QT_TRANSLATE_NOOP("QObject", "%1 failed"))}) {
        if (count(key) > 0) {
            ends += QStringLiteral(", ") + QObject::tr(words).arg(countText(std::llround(count(key))));
        }
    }
    QStringList sentences = {
        ends + QLatin1Char('.'),
        QObject::tr("%1 tokens in %2 steps, %3 tokens/s; %4 of the slots' steps gave a token.")
            .arg(countText(std::llround(count("generated_tokens"))), countText(std::llround(count("steps"))),
                 countText(std::llround(count("tokens_per_second"))), shareText(count("slot_utilization")))};
    if (count("finished_requests") > 0) {
        sentences << QObject::tr(
                         "First tokens after %1 (p50) and %2 (p95), each token after them %3 (p50) and %4 (p95), "
                         "whole answers after %5 (p50) and %6 (p95).")
                         .arg(seconds("ttft", "p50"), seconds("ttft", "p95"), seconds("tpot", "p50"),
                              seconds("tpot", "p95"), seconds("e2e", "p50"), seconds("e2e", "p95"));
    }
    if (count("preemptions") > 0) {
        sentences
            << QObject::tr("Pages ran short; preemptions: %1.").arg(countText(std::llround(count("preemptions"))));
    }
    sentences << QObject::tr("The Batching view shows slots and requests, the KV cache view the pages.");
    return sentences;
}

} // namespace vitrine::ui

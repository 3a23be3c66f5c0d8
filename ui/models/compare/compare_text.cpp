// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/compare/compare_text.h"

#include <QObject>
#include <QStringList>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json_values.h"
#include "engine/workload/experiment/experiment.h"
#include "engine/workload/experiment/results.h"
#include "ui/models/common/format.h"
#include "ui/models/compare/compare_summary.h"
#include "ui/models/session/run_summary.h"
#include "ui/models/session/session_document.h"

namespace vitrine::ui {

namespace {

using sessions::RunInfo;

QString sizeOf(double bytes) {
    return bytesText(static_cast<std::uint64_t>(std::llround(std::clamp(std::abs(bytes), 0.0, 9e18))));
}

/// " because its weights are 26.14 GiB smaller": the category that changed most in the direction of the whole. `low` is
/// the run with the lower peak; `lowIsA` says which words fit.
QString becauseOf(const RunSummary& low, const RunSummary& high, double saved, bool lowIsA) {
    if (!low.peakByCategory || !high.peakByCategory) {
        return {};
    }
    std::size_t most = 0;
    double largest = 0;
    for (std::size_t i = 0; i < low.peakByCategory->size(); ++i) {
        const double less =
            static_cast<double>((*high.peakByCategory)[i]) - static_cast<double>((*low.peakByCategory)[i]);
        if (less > largest) {
            largest = less;
            most = i;
        }
    }
    if (largest <= 0) {
        return {};
    }
    using C = base::MemoryCategory;
    const auto category = static_cast<C>(most);
    const bool plural =
        category == C::Weights || category == C::Activations || category == C::Gradients || category == C::Logits;
    const QString name = category == C::KvCache
                             ? QObject::tr("KV cache")
                             : textOf(base::categoryName(category)).replace(QLatin1Char('_'), QLatin1Char(' '));
    const QString verb = plural ? QObject::tr("are") : QObject::tr("is");
    const QString size = lowIsA ? QObject::tr("smaller") : QObject::tr("larger");
    return largest >= saved * 0.5
               ? QObject::tr(" because its %1 %2 %3 %4").arg(name, verb, sizeOf(largest), size)
               : QObject::tr("; the largest part is its %1, which %2 %3 %4").arg(name, verb, sizeOf(largest), size);
}

QString failure(const RunInfo& run, QChar letter) {
    return run.status == sessions::RunStatus::Done ? QString()
                                                   : QObject::tr("%1: %2").arg(letter).arg(statusText(run.status));
}

/// "decodes 1.20 times faster", for the run that `lowIsA` names; nothing when equal or unknown.
void addSpeed(QStringList& out, const RunInfo& a, const RunInfo& b, const char* metric, bool lower,
              const QString& verb) {
    const auto x = runMetric(a, metric), y = runMetric(b, metric);
    if (!x || !y || *x <= 0 || *y <= 0 || std::abs(*x - *y) <= 0.005 * std::max(*x, *y)) {
        return;
    }
    const bool faster = (*x < *y) == lower;
    out << QObject::tr("A %1 %2 times %3")
               .arg(verb, QString::number(std::max(*x, *y) / std::min(*x, *y), 'f', 2),
                    faster ? QObject::tr("faster") : QObject::tr("slower"));
}

/// Whether the run loaded nothing, because a run before it had: its load time is none.
bool tookWeightsOver(const RunInfo& run) {
    return engine::flagOf(base::parsedObject(run.metricsJson), engine::result::kWeightsKept).value_or(false);
}

} // namespace

CompareText compareText(const RunInfo& a, const RunInfo& b) {
    CompareText words;
    const RunSummary left = runSummary(a), right = runSummary(b);
    const double peakA = static_cast<double>(left.peak.value_or(0)),
                 peakB = static_cast<double>(right.peak.value_or(0));
    if (!left.peak || !right.peak) {
        words.sentence =
            QObject::tr("The peak of %1 is not known.").arg(!left.peak ? QStringLiteral("A") : QStringLiteral("B"));
    } else if (std::abs(peakA - peakB) <= kSameShare * std::max(peakA, peakB)) {
        words.sentence = QObject::tr("A and B have the same peak, %1.").arg(bytesText(*left.peak));
    } else {
        const bool less = peakA < peakB;
        words.sentence =
            QObject::tr("A uses %1 %2 at its peak%3.")
                .arg(sizeOf(peakA - peakB), less ? QObject::tr("less") : QObject::tr("more"),
                     less ? becauseOf(left, right, peakB - peakA, true) : becauseOf(right, left, peakA - peakB, false));
    }
    QStringList parts;
    for (const QString& text : {failure(a, QLatin1Char('A')), failure(b, QLatin1Char('B'))}) {
        if (!text.isEmpty()) {
            parts << text;
        }
    }
    QStringList speed;
    addSpeed(speed, a, b, "decode_tokens_per_second", false, QObject::tr("decodes"));
    addSpeed(speed, a, b, "prefill_seconds", true, QObject::tr("prefills"));
    const bool overA = tookWeightsOver(a), overB = tookWeightsOver(b);
    if (!overA && !overB) {
        addSpeed(speed, a, b, "load_seconds", true, QObject::tr("loads"));
    }
    if (!speed.isEmpty()) {
        parts << speed.join(QStringLiteral(", "));
    }
    if (overA != overB) {
        parts << QObject::tr("%1 took its weights over from the run before")
                     .arg(overA ? QLatin1Char('A') : QLatin1Char('B'));
    }
    const auto differences = engine::diffExperiments(base::parsedObject(a.specJson), base::parsedObject(b.specJson));
    if (differences.empty()) {
        parts << QObject::tr("Both have the same settings");
    } else {
        QStringList keys;
        for (std::size_t i = 0; i < std::min<std::size_t>(3, differences.size()); ++i) {
            const auto shortened = [](const std::string& text) {
                const QString value = QString::fromStdString(text);
                return value.size() > 28 ? value.left(26) + QStringLiteral("…") : value;
            };
            keys << QObject::tr("%1 (A %2, B %3)")
                        .arg(QString::fromStdString(differences[i].key), shortened(differences[i].a),
                             shortened(differences[i].b));
        }
        const auto more = static_cast<int>(differences.size()) - 3;
        parts << QObject::tr("Set differently: %1%2")
                     .arg(keys.join(QStringLiteral(", ")),
                          more > 0 ? QObject::tr(" and %1 more").arg(more) : QString());
    }
    words.cause = parts.join(QStringLiteral(". ")) + QLatin1Char('.');
    return words;
}

} // namespace vitrine::ui

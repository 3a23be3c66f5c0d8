// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The sentences of load_tables.h.
#include <QObject>
#include <QStringList>
#include <algorithm>
#include <cmath>

#include "ui/models/common/format.h"
#include "ui/models/load/load_tables.h"

namespace vitrine::ui {

namespace {

QString times(double ratio) {
    return QString::number(ratio, 'f', ratio >= 100 ? 0 : 2);
}

/// What the smaller load costs, and whether that was measured.
QString costText(const QStringList& costs, const AfterLoad& mine, const AfterLoad& theirs, bool predicted) {
    QString same;
    if (costs.isEmpty() && mine.prefill && theirs.prefill && mine.promptTokens == theirs.promptTokens &&
        std::abs(*mine.prefill - *theirs.prefill) <= 0.005 * std::max(*mine.prefill, *theirs.prefill)) {
        same =
            QObject::tr("Prefill of %1 tokens takes the same time: arithmetic bounds its products, and packed weights "
                        "do not change that. ")
                .arg(countText(mine.promptTokens));
    }
    const bool measured = mine.decode && theirs.decode;
    const QString nothing = predicted
                                ? QObject::tr("These figures are predicted: load both on a device to measure them.")
                                : QObject::tr("No loss of speed was measured.");
    const QString rest =
        predicted ? QObject::tr("These figures are predicted.") : QObject::tr("No other loss of speed was measured.");
    return !costs.isEmpty()
               ? costs.join(QLatin1Char(' ')) + (measured || predicted ? QLatin1Char(' ') + rest : QString())
           : measured  ? same + nothing
           : predicted ? QObject::tr("Times and rates are predicted. Plan with a prompt to see decode and prefill "
                                     "here.")
                       : QObject::tr("Not measured yet: load again with a prompt, or generate once with each "
                                     "kind of weights, to see decode and prefill here.");
}

} // namespace

LoadText loadText(const LoadPair& pair, const AfterLoad& after, const AfterLoad& afterB) {
    LoadText words;
    if (!pair.a || !pair.b) {
        if (pair.a) {
            words.number = bytesText(pair.a->residentWeights());
            words.sentence =
                QObject::tr("of weights are resident. Choose a baseline B, or load with both weights, to compare.");
        }
        return words;
    }
    const LoadSide &a = *pair.a, &b = *pair.b;
    const auto bytesA = static_cast<double>(a.residentWeights()), bytesB = static_cast<double>(b.residentWeights());
    if (bytesA <= 0 || bytesB <= 0) {
        words.number = unknownText();
        words.sentence = QObject::tr("One of the loads did not finish.");
        return words;
    }
    const bool less = bytesA <= bytesB;
    const bool kinds = a.weights != b.weights && !a.weights.isEmpty() && !b.weights.isEmpty();
    const LoadSide& small = less ? a : b;
    const LoadSide& large = less ? b : a;
    const double ratio = std::max(bytesA, bytesB) / std::min(bytesA, bytesB);
    const QString who = less ? QStringLiteral("A") : QStringLiteral("B");
    words.number = ratio < 1.0005 ? QStringLiteral("=") : ratioText(ratio);
    if (ratio < 1.0005) {
        words.sentence = QObject::tr("A and B hold the same memory: %1.").arg(bytesText(a.residentWeights()));
    } else if (kinds) {
        words.sentence =
            QObject::tr("less memory when %1: %2 instead of %3.")
                .arg(small.weights, bytesText(small.residentWeights()), bytesText(large.residentWeights()));
    } else {
        words.sentence = QObject::tr("less memory in %1: %2 instead of %3.")
                             .arg(who, bytesText(small.residentWeights()), bytesText(large.residentWeights()));
    }
    QStringList also, costs;
    const auto compare = [&](std::optional<double> mine, std::optional<double> theirs, bool lower,
                             const QString& faster, const QString& slower) {
        if (!mine || !theirs || *mine <= 0 || *theirs <= 0 ||
            std::abs(*mine - *theirs) <= 0.005 * std::max(*mine, *theirs)) {
            return;
        }
        const double factor = std::max(*mine, *theirs) / std::min(*mine, *theirs);
        ((*mine < *theirs) == lower ? also : costs)
            << ((*mine < *theirs) == lower ? faster : slower).arg(times(factor));
    };
    compare(small.seconds, large.seconds, true, QObject::tr("loads %1 times faster"),
            QObject::tr("The load is %1 times slower."));
    const AfterLoad& mine = less ? after : afterB;
    const AfterLoad& theirs = less ? afterB : after;
    compare(mine.decode, theirs.decode, false, QObject::tr("decodes %1 times faster"),
            QObject::tr("Decoding is %1 times slower."));
    compare(mine.prefill, theirs.prefill, false, QObject::tr("prefills %1 times faster"),
            QObject::tr("Prefill is %1 times slower: products multiply from packed weights."));
    if (!also.isEmpty()) {
        const QString last = also.takeLast();
        words.sentence +=
            QLatin1Char(' ') + (also.isEmpty()
                                    ? QObject::tr("It also %1.").arg(last)
                                    : QObject::tr("It also %1 and %2.").arg(also.join(QStringLiteral(", ")), last));
    }
    words.cost = costText(costs, mine, theirs, mine.priced || theirs.priced || a.predicted || b.predicted);
    return words;
}

} // namespace vitrine::ui

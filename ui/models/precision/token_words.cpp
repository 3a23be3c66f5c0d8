// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/precision/token_words.h"

#include <QObject>
#include <algorithm>
#include <cmath>

#include "ui/models/common/format.h"
#include "ui/models/precision/number_ticks.h"

namespace vitrine::ui {

namespace {

/// The text of a candidate, where the result knows it.
QString candidateText(const engine::PrecisionResult& result, std::int32_t id) {
    const engine::LabText& text = result.text;
    const auto same = std::ranges::find(text.ids, id);
    if (same != text.ids.end()) {
        return QString::fromStdString(text.pieces[static_cast<std::size_t>(same - text.ids.begin())]);
    }
    const auto found =
        std::ranges::lower_bound(text.candidatePieces, id, {}, [](const auto& entry) { return entry.first; });
    return found != text.candidatePieces.end() && found->first == id ? QString::fromStdString(found->second)
                                                                     : QObject::tr("id %1").arg(id);
}

QString quoted(QString text) {
    text.replace(QLatin1Char('\n'), QStringLiteral("⏎"));
    return QStringLiteral("“%1”").arg(text);
}

/// The most likely candidate that is not the token itself.
const engine::TokenCandidate& nextBest(const engine::TokenEffect& effect, std::int32_t id) {
    return effect.best[0].id == id ? effect.best[1] : effect.best[0];
}

} // namespace

float tokenChange(const engine::PrecisionResult& result, std::size_t a, std::size_t b, std::size_t token) {
    return token == 0 ? 0.0F : result.token(a, token).logprob - result.token(b, token).logprob;
}

TokenWords tokenWords(const engine::PrecisionResult& result, std::size_t a, std::size_t b, std::size_t token) {
    TokenWords words;
    const std::int32_t id = result.text.ids[token];
    words.token = quoted(QString::fromStdString(result.text.pieces[token]));
    words.place = QObject::tr("token %1, id %2").arg(countText(static_cast<qint64>(token))).arg(id);
    if (token == 0) {
        words.difference = QObject::tr("the first token has nothing before it");
        return words;
    }
    const engine::TokenEffect &inA = result.token(a, token), &inB = result.token(b, token);
    words.b = QObject::tr("B %1").arg(decimalText(inB.logprob, 2));
    words.a = QObject::tr("A %1").arg(decimalText(inA.logprob, 2));
    words.difference = QObject::tr("difference %1").arg(signedDecimalText(tokenChange(result, a, b, token), 2));
    const engine::TokenCandidate &nextA = nextBest(inA, id), &nextB = nextBest(inB, id);
    words.next = nextA.id == nextB.id
                     ? QObject::tr("Next best in both: %1").arg(quoted(candidateText(result, nextA.id)))
                     : QObject::tr("Next best: B %1, A %2")
                           .arg(quoted(candidateText(result, nextB.id)), quoted(candidateText(result, nextA.id)));
    const auto share = [](float logprob) { return shareText(std::exp(static_cast<double>(logprob))); };
    words.shares = QObject::tr("B: %1 and %2, A: %3 and %4")
                       .arg(share(inB.logprob), share(nextB.logprob), share(inA.logprob), share(nextA.logprob));
    return words;
}

} // namespace vitrine::ui

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/finetune/loss_curves.h"

#include <cmath>

#include "ui/models/common/format.h"
#include "ui/models/finetune/training_text.h"

namespace vitrine::ui {

namespace {

/// The value of the step that is nearest to a place; nothing beyond the last step or where it is no number.
std::optional<double> lossAt(const LossCurve& curve, base::TimeNs place) {
    const auto nearest = curve.smoothed.nearest(place);
    if (!nearest || place > curve.end) {
        return std::nullopt;
    }
    const double loss = curve.smoothed.value(*nearest);
    return std::isfinite(loss) ? std::optional(loss) : std::nullopt;
}

QString lossPlaceText(LossAxis axis, base::TimeNs place) {
    switch (axis) {
    case LossAxis::Steps:
        return QObject::tr("Step %1").arg(countText((place + kStepLength / 2) / kStepLength));
    case LossAxis::Tokens:
        return QObject::tr("%1 tokens").arg(countText(place / kTokenLength));
    case LossAxis::Time:
        break;
    }
    return durationText(place);
}

} // namespace

LossCurve lossCurve(const TrainingRun& run, LossAxis axis) {
    LossCurve curve;
    curve.raw.reserve(run.steps().size());
    curve.smoothed.reserve(run.steps().size());
    std::int64_t tokens = 0;
    for (std::size_t i = 0; i < run.steps().size(); ++i) {
        const base::TrainingStepEvent& step = run.steps()[i];
        tokens += step.tokens;
        const base::TimeNs place = axis == LossAxis::Steps    ? step.step * kStepLength
                                   : axis == LossAxis::Tokens ? tokens * kTokenLength
                                                              : step.end - run.steps().front().begin;
        curve.raw.add(place, run.loss().value(i));
        curve.smoothed.add(place, run.smoothed().value(i));
        curve.end = place;
    }
    return curve;
}

QString lossReadout(const LossCurve& a, const LossCurve* b, LossAxis axis, base::TimeNs place) {
    const auto inA = lossAt(a, place), inB = b != nullptr ? lossAt(*b, place) : std::nullopt;
    if (!inA && !inB) {
        return {};
    }
    QStringList parts;
    if (inA) {
        parts << QObject::tr("A %1").arg(lossText(*inA));
    }
    if (inB) {
        parts << QObject::tr("B %1").arg(lossText(*inB));
    }
    if (inA && inB) {
        const double change = *inB - *inA;
        parts << QObject::tr("B − A %1%2")
                     .arg(change < 0 ? QStringLiteral("−") : QStringLiteral("+"), lossText(std::abs(change)));
    }
    return QObject::tr("%1, smoothed loss: %2").arg(lossPlaceText(axis, place), parts.join(QStringLiteral(", ")));
}

} // namespace vitrine::ui

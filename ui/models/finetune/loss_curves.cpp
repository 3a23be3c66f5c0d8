// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/finetune/loss_curves.h"

#include <cmath>
#include <limits>

#include "ui/models/common/format.h"
#include "ui/models/finetune/training_text.h"

namespace vitrine::ui {

namespace {

/// The smoothed loss of the step that is nearest to a place; not finite beyond the last step.
double lossAt(const LossCurve& curve, base::TimeNs place) {
    const auto nearest = curve.smoothed.nearest(place);
    return nearest && place <= curve.end ? curve.smoothed.value(*nearest) : std::numeric_limits<double>::quiet_NaN();
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
    const double inA = lossAt(a, place);
    const double inB = b != nullptr ? lossAt(*b, place) : std::numeric_limits<double>::quiet_NaN();
    QStringList parts;
    if (std::isfinite(inA)) {
        parts << QObject::tr("A %1").arg(lossText(inA));
    }
    if (std::isfinite(inB)) {
        parts << QObject::tr("B %1").arg(lossText(inB));
    }
    if (parts.isEmpty()) {
        return {};
    }
    if (std::isfinite(inB - inA)) {
        parts << QObject::tr("B − A %1%2")
                     .arg(inB < inA ? QStringLiteral("−") : QStringLiteral("+"), lossText(std::abs(inB - inA)));
    }
    return QObject::tr("%1, smoothed loss: %2").arg(lossPlaceText(axis, place), parts.join(QStringLiteral(", ")));
}

} // namespace vitrine::ui

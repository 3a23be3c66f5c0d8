// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Losses of training runs over steps, tokens and time, and the words about two of them.
#include "ui/models/finetune/loss_curves.h"

#include <QTest>

#include "tests/ui/models/finetune/training_script.h"
#include "ui/models/finetune/training_text.h"

using namespace vitrine;
using test::TrainingScript;
using ui::LossAxis;

namespace {

ui::LossCurve curveOf(const TrainingScript& script, LossAxis axis) {
    return ui::lossCurve(*ui::TrainingRun::make(script.info(), *script.timeline(), 0), axis);
}

} // namespace

class LossCurvesTest final : public QObject {
    Q_OBJECT

private slots:
    void aStepStandsWhereItEnds() {
        const TrainingScript script{.steps = 5};
        QCOMPARE(curveOf(script, LossAxis::Steps).raw.place(2), 3 * ui::kStepLength);
        QCOMPARE(curveOf(script, LossAxis::Tokens).raw.place(2), 300 * ui::kTokenLength);
        const ui::LossCurve time = curveOf(script, LossAxis::Time);
        QCOMPARE(time.raw.place(0), test::ns(test::kStepSeconds * 0.9)); // from the begin of the first step
        QCOMPARE(time.end, time.raw.place(4));
        QCOMPARE(time.raw.value(2), script.loss(3));
    }

    void tokensOfARunThatWentOnBeginAtItsFirstStep() {
        const TrainingScript script{.steps = 2, .first = 11};
        QCOMPARE(curveOf(script, LossAxis::Steps).raw.place(0), 11 * ui::kStepLength);
        QCOMPARE(curveOf(script, LossAxis::Tokens).raw.place(0), 100 * ui::kTokenLength);
    }

    void wordsNameBothAndTheirDifference() {
        const TrainingScript script{.steps = 5}, more{.steps = 9};
        const ui::LossCurve a = curveOf(script, LossAxis::Steps), b = curveOf(more, LossAxis::Steps);
        const QString loss = ui::lossText(script.loss(4)), later = ui::lossText(more.loss(8));
        QCOMPARE(ui::lossReadout(a, &b, LossAxis::Steps, 4 * ui::kStepLength),
                 QStringLiteral("Step 4, smoothed loss: A %1, B %1, B − A +%2").arg(loss, ui::lossText(0)));
        QCOMPARE(ui::lossReadout(a, &b, LossAxis::Steps, 8 * ui::kStepLength), // A has ended
                 QStringLiteral("Step 8, smoothed loss: B %1").arg(later));
        QVERIFY(ui::lossReadout(a, nullptr, LossAxis::Steps, 8 * ui::kStepLength).isEmpty());
    }

    void runsWithoutStepsHaveNothing() {
        const ui::LossCurve none = curveOf({}, LossAxis::Time);
        QVERIFY(none.raw.empty() && none.end == 0);
        QVERIFY(ui::lossReadout(none, &none, LossAxis::Time, 0).isEmpty());
    }
};

QTEST_GUILESS_MAIN(LossCurvesTest)
#include "loss_curves_test.moc"

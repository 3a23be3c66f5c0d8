// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Two runs of reinforcement learning in the Compare view.
#include "ui/views/compare/rl_compare_page.h"

#include <QTest>
#include <QWidget>

#include "tests/ui/models/common/patience.h"
#include "tests/ui/models/rl/rl_script.h"
#include "ui/views/compare/compare_view.h"
#include "ui/widgets/base/theme.h"
#include "ui/widgets/timeline/lane_stack.h"
#include "ui/widgets/timeline/series_lane.h"

using namespace vitrine;
using test::RlScript;

class RlComparePageTest final : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() { ui::Theme::instance().install(); }

    void tableCurvesAndSentence() {
        ui::SessionDocument document;
        ui::TimeCursor time;
        QWidget window; // as in the program, the view does not say how large its window is
        ui::CompareView view({&document, &time, nullptr, nullptr}, &window);
        window.resize(1080, 820);
        view.resize(1080, 820);
        window.show();
        const RlScript a{.steps = 20, .evalEvery = 10, .memory = true};
        const RlScript b{.steps = 12, .evalEvery = 10, .memory = true, .difference = 0.019};
        document.show(QStringLiteral("x.vitrine"), {a.info(1), b.info(2)}, {{1, a.timeline()}, {2, b.timeline()}});
        document.setRunA(1);
        document.setRunB(2);
        ui::RlComparePage& page = *view.policies();
        QTRY_VERIFY(page.isVisible() && view.settled() && page.table()->rowCount() > 0);
        QVERIFY(!view.stack()->isVisible());
        QCOMPARE(page.noteText(), QStringLiteral("Step 12, the last that both have"));
        QVERIFY(view.sentence()->text().startsWith(
            QStringLiteral("After step 10 both runs have an evaluation reward of 0.493; the log-probability")));
        QCOMPARE(page.rewardLane()->plots().front().series.size(), std::size_t(4));
        QVERIFY(page.stepCursor()->showsAll());
        QVERIFY(view.picture({1080, 820}, 1).width() > 0);
        view.extent()->setCurrent(1);
        QVERIFY(view.stack()->isVisible() && !page.isVisible());
        QVERIFY(!view.sentence()->text().startsWith(QStringLiteral("After step 10")));
    }
};

QTEST_MAIN(RlComparePageTest)
#include "rl_compare_page_test.moc"

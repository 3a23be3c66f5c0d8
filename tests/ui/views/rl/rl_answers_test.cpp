// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The answers of a step in the RL view: of one run, of two beside each other, and where they were not kept.
#include <QScrollBar>
#include <QTest>

#include "tests/ui/models/common/patience.h"
#include "tests/ui/views/rl/shown_rl.h"
#include "ui/views/rl/rl_answer_box.h"
#include "ui/views/rl/rl_group_box.h"
#include "ui/views/rl/rl_panel.h"
#include "ui/views/rl/rl_samples_page.h"
#include "ui/widgets/plots/fact_table.h"
#include "ui/widgets/plots/scored_text.h"

using namespace vitrine;
using test::RlScript;
using test::ShownRl;

class RlAnswersTest final : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() { ui::Theme::instance().install(); }

    void answers() {
        ShownRl shown;
        shown.show({.steps = 3, .answers = true});
        QTRY_VERIFY(shown.view.samples() != nullptr && !shown.view.samples()->groups.empty());
        QCOMPARE(shown.view.panel()->samplesText(), QStringLiteral("group 1 of 4"));
        QVERIFY(shown.view.panel()->group()->promptText().endsWith(QStringLiteral("2+0")));
        const ui::RlAnswerBox* box = shown.view.panel()->group()->box();
        QCOMPARE(box->headText(), QStringLiteral("Answer 1"));
        QCOMPARE(box->text()->tokenCount(), 2);
        QVERIFY(box->tokenText().contains(QStringLiteral("+0.0010"))); // the token that differs most
        emit shown.view.panel()->groupWanted(1);
        QCOMPARE(shown.view.panel()->samplesText(), QStringLiteral("group 2 of 4"));
        shown.view.showPage(ui::RlView::Samples);
        QVERIFY(!shown.view.wantsInspector());
        QCOMPARE(shown.view.samplesPage()->groups()->currentIndex().row(), 1);
        shown.view.samplesPage()->orders()->setCurrent(1);
        QVERIFY(shown.view.perform(QStringLiteral("select.previous"))); // 0, 2, 1, 3 by variance
        QCOMPARE(shown.view.panel()->samplesText(), QStringLiteral("group 3 of 4"));
        QVERIFY(shown.view.picture({1440, 820}, 1).width() > 0);
    }

    /// Answers of A and B to one prompt stand beside each other, or under each other in a narrow column.
    void answersOfBoth() {
        ShownRl shown;
        shown.show({.steps = 3, .answers = true}, RlScript{.steps = 3, .answers = true});
        QTRY_VERIFY(shown.view.settled() && shown.view.panel()->group()->secondBox()->sample() != nullptr);
        ui::RlGroupBox* narrow = shown.view.panel()->group();
        QCOMPARE(narrow->box()->headText(), QStringLiteral("A: Answer 1"));
        QCOMPARE(narrow->secondBox()->headText(), QStringLiteral("B: Answer 1"));
        QCOMPARE(narrow->table()->model()->columnCount(), 5);
        narrow->chooseAnswer(2);
        QCOMPARE(narrow->box()->headText(), QStringLiteral("A: Answer 3"));
        QCOMPARE(narrow->secondBox()->headText(), QStringLiteral("B: Answer 3"));
        shown.view.panel()->resize(376, 780);
        shown.view.panel()->show();
        QTRY_VERIFY(!narrow->sideBySide());
        // All of it is seen at once: no bar of a token is reached by scrolling alone.
        QCOMPARE(shown.view.panel()->verticalScrollBar()->maximum(), 0);
        shown.view.showPage(ui::RlView::Samples);
        shown.view.resize(1372, 800);
        ui::RlGroupBox* wide = shown.view.samplesPage()->group();
        QTRY_VERIFY(wide->sideBySide());
        QVERIFY(wide->box()->isVisible() && wide->secondBox()->isVisible());
        QCOMPARE(wide->box()->geometry().top(), wide->secondBox()->geometry().top());
    }

    void bKeptNoAnswers() {
        ShownRl shown;
        shown.show({.steps = 3, .answers = true}, RlScript{.steps = 2});
        QTRY_VERIFY(shown.view.samples() != nullptr && !shown.view.samples()->groups.empty());
        const ui::RlGroupBox* group = shown.view.panel()->group();
        QCOMPARE(shown.view.panel()->samplesText(), QStringLiteral("group 1 of 4"));
        QCOMPARE(group->secondBox()->missingText(), QStringLiteral("B has no step 3."));
        shown.view.chooseStep(2);
        QTRY_COMPARE(group->secondBox()->missingText(), QStringLiteral("B kept no samples of step 2."));
    }

    /// The answers of B alone are shown too.
    void aKeptNoAnswers() {
        ShownRl shown;
        shown.show({.steps = 3}, RlScript{.steps = 3, .answers = true});
        QTRY_VERIFY(shown.view.samples() != nullptr && !shown.view.samples()->groups.empty());
        const ui::RlGroupBox* group = shown.view.panel()->group();
        QCOMPARE(group->box()->missingText(), QStringLiteral("A kept no samples of step 3."));
        QCOMPARE(group->secondBox()->headText(), QStringLiteral("B: Answer 1"));
    }

    /// Below the view, figures and answers are two tabs.
    void aWidePanelHasTabs() {
        ShownRl shown;
        shown.show({.steps = 3, .answers = true});
        QTRY_VERIFY(shown.view.samples() != nullptr && !shown.view.samples()->groups.empty());
        ui::RlPanel* panel = shown.view.panel();
        panel->resize(980, 190);
        panel->show();
        QTRY_VERIFY(!panel->tabs()->isHidden());
        QVERIFY(!panel->figures()->parentWidget()->isHidden() && panel->group()->parentWidget()->isHidden());
        QCOMPARE(panel->figures()->model()->rowCount(), 6); // and as many beside them
        panel->tabs()->setCurrent(1);
        QVERIFY(panel->figures()->parentWidget()->isHidden() && !panel->group()->parentWidget()->isHidden());
        panel->resize(376, 700);
        QTRY_VERIFY(panel->tabs()->isHidden());
        QCOMPARE(panel->figures()->model()->rowCount(), 12);
        QVERIFY(!panel->figures()->parentWidget()->isHidden() && !panel->group()->parentWidget()->isHidden());
    }

    void answersThatWereNotKept() {
        ShownRl shown;
        shown.show({.steps = 3});
        QTRY_VERIFY(shown.view.settled());
        QTRY_VERIFY(shown.view.panel()->samplesText().contains(QStringLiteral("not kept")));
    }
};

QTEST_MAIN(RlAnswersTest)
#include "rl_answers_test.moc"

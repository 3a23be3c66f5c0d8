// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The Precision lab: without a run, with one, what clicks and keys choose, and its narrow form.
#include "ui/views/precision/precision_view.h"

#include <QCheckBox>
#include <QClipboard>
#include <QGuiApplication>
#include <QPushButton>
#include <QSignalSpy>
#include <QTableView>
#include <QTest>

#include "tests/profiler/analysis/scripted_run.h"
#include "tests/ui/models/common/patience.h"
#include "tests/ui/models/precision/invented_lab.h"
#include "ui/views/precision/keep_panel.h"
#include "ui/views/precision/lab_head.h"
#include "ui/views/precision/lab_panel.h"
#include "ui/views/precision/token_readout.h"
#include "ui/widgets/plots/expert_strip.h"
#include "ui/widgets/plots/fact_table.h"
#include "ui/widgets/plots/group_grid.h"
#include "ui/widgets/plots/group_strip.h"
#include "ui/widgets/plots/scored_text.h"

using namespace vitrine;

namespace {

/// A view of a small invented model.
struct ShownLab {
    ui::SessionDocument document;
    ui::TimeCursor time;
    ui::PrecisionView view{{&document, &time, nullptr, nullptr}};

    explicit ShownLab(const test::LabShape& shape = {6, 8, 400}) {
        view.setTensorSource(test::inventedSource());
        view.inspector()->setParent(&view);
        view.resize(1100, 800);
        view.show();
        document.show(QStringLiteral("x.vitrine"), {test::inventedRun(test::inventedLab(shape))}, {});
    }
    const engine::LabWeight& looked() const { return view.data()->result.weights[*view.weight()]; }
    void press(QWidget* widget, Qt::Key key, Qt::KeyboardModifiers modifiers = Qt::NoModifier) {
        QTest::keyClick(widget, key, modifiers);
    }
};

} // namespace

class PrecisionViewTest final : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() { ui::Theme::instance().install(); }

    void withoutALabRunItOffersOne() {
        ui::SessionDocument document;
        ui::TimeCursor time;
        ui::PrecisionView view({&document, &time, nullptr, nullptr});
        const std::unique_ptr<QWidget> inspector(view.inspector());
        view.show();
        document.show(QStringLiteral("x.vitrine"),
                      {test::runInfo(1, "generate", "{}",
                                     R"({"vitrine": 1, "workload": "generate", "model": "synthetic:tiny-llama"})")},
                      {});
        QVERIFY(view.emptyShown());
        QCOMPARE(view.emptyText(), QStringLiteral("One format in this session."));
        QSignalSpy wanted(&view, &ui::View::experimentWanted);
        for (auto* button : view.findChildren<QPushButton*>()) {
            if (button->text() == QStringLiteral("Compare with BF16")) {
                button->click();
            }
        }
        QCOMPARE(wanted.size(), 1);
        QVERIFY(wanted[0][0].toString().contains(QStringLiteral("\"workload\":\"precision\"")));
        QVERIFY(wanted[0][0].toString().contains(QStringLiteral("synthetic:tiny-llama")));
    }

    void damagedMetricsAreNoMap() {
        ui::SessionDocument document;
        ui::TimeCursor time;
        ui::PrecisionView view({&document, &time, nullptr, nullptr});
        const std::unique_ptr<QWidget> inspector(view.inspector());
        view.show();
        sessions::RunInfo run = test::inventedRun(test::inventedLab({2, 0, 0}));
        run.metricsJson.resize(run.metricsJson.size() / 2);
        document.show(QStringLiteral("x.vitrine"), {run}, {});
        QTRY_VERIFY(view.settled());
        QTRY_COMPARE(view.emptyText(), QStringLiteral("This run kept no comparison of weights."));
    }

    void itShowsTheWorstMatrixOfTheFirstFourBitFormat() {
        ShownLab lab;
        QTRY_VERIFY(lab.view.data() && lab.view.settled());
        QVERIFY(!lab.view.emptyShown());
        QCOMPARE(lab.view.formatA(), std::size_t(2)); // MXFP4 is listed before the integers
        QCOMPARE(lab.view.formatB(), std::size_t(0));
        QCOMPARE(lab.view.map()->content().rows.size(), std::size_t(8));
        QCOMPARE(lab.view.map()->content().columns, 6);
        QVERIFY(lab.view.weight().has_value());
        QTRY_VERIFY(lab.view.groupHead()->title().startsWith(QStringLiteral("Group ")));
        QVERIFY(lab.view.tensorHead()->facts().contains(QStringLiteral("[2048, 768]")));
        QVERIFY(lab.view.grid()->spoken().contains(QStringLiteral("Group ")));
        QCOMPARE(lab.view.strip()->columns().front().first, std::int64_t(0));
    }

    void aCellOfExpertsShowsTheOneLookedAtLastElseTheWorst() {
        ShownLab lab;
        QTRY_VERIFY(lab.view.data() && lab.view.settled());
        const auto rowOf = [&](const std::string& role) {
            const auto& roles = lab.view.cells().roles;
            return static_cast<int>(std::ranges::find(roles, role) - roles.begin());
        };
        const auto click = [&](int row, int column) {
            const QRectF cell = lab.view.map()->cellRect({row, column});
            QTest::mouseClick(lab.view.map(), Qt::LeftButton, {}, cell.center().toPoint());
        };
        click(rowOf("up"), 3);
        QCOMPARE(lab.looked().role, std::string("up"));
        QCOMPARE(lab.looked().layer, 3);
        const auto& cell = lab.view.cells().cell(static_cast<std::size_t>(rowOf("up")), 3);
        QCOMPARE(lab.view.weight(), ui::worstWeightOf(lab.view.data()->result, lab.view.formatA(), cell));
        lab.view.selectWeight(cell.weights[5]);
        click(rowOf("down"), 3); // the same layer: the same expert
        QCOMPARE(lab.looked().expert, std::int64_t(5));
        QCOMPARE(lab.looked().role, std::string("down"));
        lab.press(lab.view.map(), Qt::Key_Left);
        QCOMPARE(lab.looked().layer, 2);
    }

    void spaceFlipsTheFormatsAndColoursKeepTheirMeaning() {
        ShownLab lab;
        QTRY_VERIFY(lab.view.data() && lab.view.settled());
        lab.view.setFormats(4, 3);
        QTRY_VERIFY(lab.view.settled());
        const ui::ErrorScale before = lab.view.map()->content().scale;
        const float error = lab.view.map()->content().values.front();
        lab.press(lab.view.map(), Qt::Key_Space);
        QCOMPARE(lab.view.formatA(), std::size_t(3));
        QCOMPARE(lab.view.formatB(), std::size_t(4));
        QCOMPARE(lab.view.map()->content().scale.least, before.least);
        QCOMPARE(lab.view.map()->content().scale.width, before.width);
        QVERIFY(lab.view.map()->content().values.front() < error); // groups of 128 lose more
        lab.view.setFormats(0, 4);
        QTRY_VERIFY(lab.view.settled());
        QVERIFY(lab.view.tensorHead()->facts().contains(QStringLiteral("reference")));
        QVERIFY(lab.view.keep()->isHidden());
    }

    void aRowOfTheFormatsBecomesA() {
        ShownLab lab;
        QTRY_VERIFY(lab.view.data() && lab.view.settled());
        lab.view.formatList()->setCurrentIndex(lab.view.formatList()->model()->index(4, 0));
        QCOMPARE(lab.view.formatA(), std::size_t(4));
        // A format is not compared with itself: A and B change places.
        lab.view.setFormats(0, 0);
        QCOMPARE(lab.view.formatA(), std::size_t(0));
        QCOMPARE(lab.view.formatB(), std::size_t(4));
    }

    void aWorstGroupIsShown() {
        ShownLab lab;
        QTRY_VERIFY(lab.view.data() && lab.view.settled());
        QTRY_VERIFY(lab.view.worstList()->model()->rowCount() > 3);
        const QString first = lab.view.groupHead()->title();
        lab.view.worstList()->setCurrentIndex(lab.view.worstList()->model()->index(2, 0));
        QTRY_VERIFY(lab.view.groupHead()->title() != first);
        QVERIFY(lab.view.groupHead()->title().startsWith(
            QStringLiteral("Group %1:").arg(lab.view.worstList()->model()->index(2, 0).data().toString())));
        // The search field takes a number of a group.
        QCOMPARE(lab.view.find(QStringLiteral("12"), 1), QStringLiteral("group"));
        QTRY_VERIFY(lab.view.groupHead()->title().startsWith(QStringLiteral("Group 12:")));
    }

    void aTensorThatCannotBeReadSaysWhy() {
        ShownLab lab;
        QTRY_VERIFY(lab.view.data() && lab.view.settled());
        ui::TensorSource broken = test::inventedSource();
        broken.tensor = [](const ui::PrecisionData&, std::size_t, std::size_t, const base::StopToken&) {
            auto answer = std::make_shared<ui::PrecisionTensor>();
            answer->error = QStringLiteral("model.safetensors: it is gone");
            return std::shared_ptr<const ui::PrecisionTensor>(answer);
        };
        lab.view.setTensorSource(broken);
        QTRY_COMPARE(lab.view.tensorHead()->facts(), QStringLiteral("model.safetensors: it is gone"));
        QCOMPARE(lab.view.worstList()->model()->rowCount(), 0);
    }

    void keptRolesAddUpAndGoToTheForms() {
        ShownLab lab;
        QTRY_VERIFY(lab.view.data() && lab.view.settled());
        lab.view.setFormats(4, 0);
        ui::KeepPanel* keep = lab.view.keep();
        const auto row = std::ranges::find(keep->rows(), std::string("o_proj"), &ui::KeepRow::pattern);
        QVERIFY(row != keep->rows().end());
        const int at = static_cast<int>(row - keep->rows().begin());
        QVERIFY(keep->box(0) == nullptr); // the embedding is kept anyway
        const QString before = keep->sumText();
        keep->box(at)->click();
        QVERIFY(keep->sumText() != before);
        QVERIFY(keep->sumText().endsWith(QStringLiteral("6.72"))); // 7.43 - 0.71 thousandths
        QSignalSpy wanted(&lab.view, &ui::View::experimentWanted);
        keep->convertButton()->click();
        keep->measureButton()->click();
        QCOMPARE(wanted.size(), 2);
        QVERIFY(wanted[0][0].toString().contains(QStringLiteral("\"group_size\":32")));
        QVERIFY(wanted[0][0].toString().contains(QStringLiteral("o_proj")));
        QVERIFY(wanted[1][0].toString().contains(QStringLiteral("\"workload\":\"precision\"")));
        QVERIFY(wanted[1][0].toString().contains(QStringLiteral("\"ignore\":[\"o_proj\"]")));
    }

    void theHeadOfTheInspectorCopiesTheTensor() {
        ShownLab lab;
        QTRY_VERIFY(lab.view.data() && lab.view.settled());
        QTRY_VERIFY(lab.view.worstList()->model()->rowCount() > 3);
        for (auto* button : lab.view.inspectorHeader()->findChildren<QPushButton*>()) {
            if (button->accessibleName().startsWith(QStringLiteral("Copy"))) {
                button->click();
            }
        }
        const QString copied = QGuiApplication::clipboard()->text();
        QVERIFY(copied.startsWith(QString::fromStdString(lab.looked().name)));
        QVERIFY(copied.contains(QStringLiteral("[2048, 768]")) && copied.contains(QStringLiteral("| BF16 |")));
    }

    void theRuleOfAIsInTheToolBar() {
        ShownLab lab;
        QTRY_VERIFY(lab.view.data() && lab.view.settled());
        lab.view.setFormats(4, 0);
        QVERIFY(lab.view.toolNote().startsWith(QStringLiteral("Rule: s = max(|w|) / 7.5")));
        QSignalSpy changed(&lab.view, &ui::View::availabilityChanged);
        lab.view.setFormats(0, 4);
        QCOMPARE(changed.size(), 1);
        QVERIFY(lab.view.toolNote().isEmpty());
    }

    void tokensHaveAReadout() {
        ShownLab lab;
        QTRY_VERIFY(lab.view.data() && lab.view.settled());
        lab.view.text()->setCurrentToken(9);
        const ui::TokenWords words = lab.view.tokenReadout()->words();
        QVERIFY(words.place.startsWith(QStringLiteral("token 9,")));
        QVERIFY(words.difference.startsWith(QStringLiteral("difference ")));
        lab.view.text()->setCurrentToken(0);
        QVERIFY(lab.view.tokenReadout()->words().difference.contains(QStringLiteral("nothing before it")));
    }

    void theMapFillsInWhileTheRunGoesOn() {
        engine::PrecisionResult whole = test::inventedLab({6, 8, 400});
        const auto partOf = [&](std::size_t known) {
            engine::PrecisionResult part = whole;
            part.text = {};
            part.tokens.clear();
            for (std::size_t i = known; i < part.effects.size(); ++i) {
                part.effects[i].error = {};
            }
            sessions::RunInfo run = test::inventedRun(part);
            run.status = sessions::RunStatus::Running;
            return run;
        };
        const std::size_t weights = whole.weights.size();
        ShownLab lab;
        lab.document.show(QStringLiteral("live.vitrine"), {partOf(weights + 20)}, {});
        QTRY_VERIFY(lab.view.data() && lab.view.data()->live && lab.view.settled());
        const auto known = [&] {
            const auto& values = lab.view.map()->content().values;
            return std::ranges::count_if(values, [](float value) { return !std::isnan(value); });
        };
        QCOMPARE(lab.view.formatA(), std::size_t(1)); // what the run is at
        const auto before = known();
        QVERIFY(before > 0 && before < static_cast<std::ptrdiff_t>(lab.view.map()->content().values.size()));
        QVERIFY(!lab.view.weight()); // nobody chose one, and the worst is not known
        lab.document.show(QStringLiteral("live.vitrine"), {partOf(weights + weights / 2)}, {});
        QTRY_VERIFY(known() > before);
        lab.document.show(QStringLiteral("live.vitrine"), {partOf(2 * weights + 5)}, {});
        QTRY_COMPARE(lab.view.formatA(), std::size_t(2));
        lab.document.show(QStringLiteral("live.vitrine"), {test::inventedRun(whole)}, {});
        QTRY_VERIFY(lab.view.data() && !lab.view.data()->live && lab.view.text()->isVisible());
        QVERIFY(lab.view.weight());
    }

    void aPinStaysBesideWhatIsLookedAt() {
        ShownLab lab;
        QTRY_VERIFY(lab.view.data() && lab.view.settled());
        auto* panel = lab.view.findChild<ui::LabPanel*>();
        QVERIFY(panel != nullptr);
        QVERIFY(panel->pinTable()->isHidden());
        panel->pinButton()->click();
        const ui::LabPin pin = panel->pin();
        QVERIFY(pin.tensor != nullptr && pin.group != nullptr);
        const auto cell = [&](int row, int column) {
            return panel->pinTable()->model()->index(row, column).data().toString();
        };
        QCOMPARE(cell(0, 2), pin.format);
        QCOMPARE(cell(0, 1), cell(0, 2));
        lab.view.setFormats(4, 0);
        lab.view.selectWeight(0);
        QTRY_VERIFY(lab.view.settled());
        QCOMPARE(panel->pin(), pin);
        QCOMPARE(cell(0, 1), QStringLiteral("INT4, g32"));
        QCOMPARE(cell(0, 2), QStringLiteral("MXFP4"));
        QVERIFY(!panel->pinTable()->isHidden());
        panel->pinButton()->click();
        QVERIFY(panel->pinTable()->isHidden());
        QVERIFY(panel->pin().tensor == nullptr);
    }

    void aTokenOpensTheStepThatScoredIt() {
        profiler::testing::ScriptedRun script;
        script.time = 100;
        script.begin(base::ScopeKind::Phase, "score", 2);
        for (int step = 0; step < 2; ++step) {
            script.begin(base::ScopeKind::Step, "prefill", -1, 4);
            script.time += 1000;
            script.end();
        }
        script.end();
        const sessions::RunInfo run = test::inventedRun(test::inventedLab({6, 8, 400}));
        ShownLab lab;
        lab.document.show(QStringLiteral("y.vitrine"), {run}, {{run.id, script.timeline()}});
        QTRY_VERIFY(lab.view.data() && lab.view.settled());
        QCOMPARE(lab.view.formatA(), std::size_t(2));
        lab.time.setExtent({0, 3000}); // as the window does it
        QSignalSpy opened(&lab.view, &ui::View::openView);
        emit lab.view.text()->tokenOpened(6);
        QCOMPARE(opened.size(), 1);
        QCOMPARE(opened[0][0].toString(), QStringLiteral("memory")); // no kernels were recorded
        QCOMPARE(lab.time.cursor(), std::optional<base::TimeNs>(1100));
        lab.view.openToken(9); // behind the steps that were kept
        QCOMPARE(opened.size(), 1);
        QVERIFY(lab.view.readout().contains(QStringLiteral("no events")));
    }

    void withoutATextItOffersToScoreOne() {
        ShownLab lab({3, 4, 0, false});
        QTRY_VERIFY(lab.view.data() && lab.view.settled());
        QSignalSpy wanted(&lab.view, &ui::View::experimentWanted);
        for (auto* button : lab.view.findChildren<QPushButton*>()) {
            if (button->text() == QStringLiteral("Score 1,024 tokens")) {
                button->click();
            }
        }
        QCOMPARE(wanted.size(), 1);
        QVERIFY(wanted[0][0].toString().contains(QStringLiteral("\"text_tokens\":1024")));
        QVERIFY(lab.view.keep()->measureButton()->isHidden()); // single effects are not known
    }

    void aDenseModelHasNoStripOfExperts() {
        ShownLab lab({4, 0, 50});
        QTRY_VERIFY(lab.view.data() && lab.view.settled());
        QVERIFY(lab.view.experts()->isHidden());
    }

    void aNarrowPageHasOnePartBelowTheGroup() {
        ShownLab lab;
        QTRY_VERIFY(lab.view.data() && lab.view.settled());
        QVERIFY(lab.view.worstList()->isVisible() && lab.view.text()->isVisible());
        lab.view.resize(960, 640);
        QTRY_VERIFY(!lab.view.worstList()->isVisible());
        QVERIFY(lab.view.text()->isVisible());
        QVERIFY(!lab.view.formatList()->isVisible());
        lab.view.resize(1100, 800);
        QTRY_VERIFY(lab.view.worstList()->isVisible() && lab.view.formatList()->isVisible());
    }
};

QTEST_MAIN(PrecisionViewTest)
#include "precision_view_test.moc"

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The Planner view: without a model, filled by a run, changed by its form, and the changes that it offers.
#include "ui/views/planner/planner_view.h"

#include <QCheckBox>
#include <QComboBox>
#include <QLineEdit>
#include <QPushButton>
#include <QSignalSpy>
#include <QTableView>
#include <QTest>
#include <algorithm>
#include <cmath>
#include <memory>

#include "engine/workload/experiment/experiment.h"
#include "tests/ui/models/common/patience.h"
#include "tests/ui/models/common/played_runs.h"
#include "ui/models/common/flat_tree.h"
#include "ui/models/planner/plan_words.h"
#include "ui/models/run/experiment_form.h"
#include "ui/views/planner/change_list.h"
#include "ui/views/planner/plan_budget.h"
#include "ui/views/planner/plan_curves.h"
#include "ui/views/planner/plan_form.h"
#include "ui/widgets/forms/named_combo.h"
#include "ui/widgets/forms/number_slider.h"
#include "ui/widgets/plots/fact_table.h"

using namespace vitrine;

namespace {

QString training(const QString& more = {}) {
    return QStringLiteral(R"({"vitrine": 1, "workload": "finetune", "model": "synthetic:qwen3-4b", "method": "lora",)"
                          R"("prompt_length": 16384, "checkpoint": "offload", "tiled_mlp": "on",)"
                          R"("device_profile": "l4"%1})")
        .arg(more);
}

sessions::RunInfo trainingRun() {
    sessions::RunInfo run;
    run.id = 1;
    run.name = "lora";
    run.workload = "finetune";
    run.specJson = training().toStdString();
    run.status = sessions::RunStatus::Done;
    return run;
}

} // namespace

class PlannerViewTest final : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() { ui::Theme::instance().install(); }

    void withoutAModelItAsksForOne() {
        ui::SessionDocument document;
        ui::TimeCursor time;
        ui::PlannerView view({&document, &time, nullptr, nullptr});
        view.show();
        QTRY_VERIFY(view.settled());
        QVERIFY(view.emptyShown());
        QVERIFY(view.emptyText().contains(QStringLiteral("Choose a model")));
        QVERIFY(!view.answer());
    }

    void aModelThatIsNoneSaysWhy() {
        ui::SessionDocument document;
        ui::TimeCursor time;
        ui::PlannerView view({&document, &time, nullptr, nullptr});
        view.show();
        view.modelChoice()->setCurrentText(QStringLiteral("synthetic:none-of-these"));
        emit view.modelChoice()->lineEdit()->editingFinished();
        QTRY_VERIFY(view.emptyText().contains(QStringLiteral("none-of-these")));
        // Nothing is offered for a plan that does not exist.
        const std::unique_ptr<QWidget> inspector(view.inspector());
        inspector->show();
        for (const auto* button : inspector->findChildren<QPushButton*>()) {
            QVERIFY(!button->isVisible());
        }
    }

    void aRunFillsIt() {
        ui::SessionDocument document;
        ui::TimeCursor time;
        ui::PlannerView view({&document, &time, nullptr, nullptr});
        view.show();
        document.show(QStringLiteral("x.vitrine"), {trainingRun()}, {});
        QTRY_VERIFY(view.answer() && view.answer()->complete);
        QVERIFY(!view.emptyShown());
        QCOMPARE(view.draft().model(), QStringLiteral("synthetic:qwen3-4b"));
        QCOMPARE(view.deviceChoice()->currentData().toString(), QStringLiteral("l4"));
        QCOMPARE(view.answer()->context, 16384);
        QCOMPARE(view.sets()->model()->rowCount(), 4);
        QCOMPARE(view.curves()->shown().curves.size(), std::size_t(4));
        QVERIFY(view.verdict().contains(QStringLiteral("the longest context is")));
        QVERIFY(view.curves()->spoken().contains(QStringLiteral("16,384")));
    }

    void theBudgetSaysWhatIsHeldAndItsTimesAreNamed() {
        ui::SessionDocument document;
        ui::TimeCursor time;
        ui::PlannerView view({&document, &time, nullptr, nullptr});
        view.show();
        view.takeExperiment(training());
        QTRY_VERIFY(view.answer() && view.answer()->complete);
        QVERIFY(view.budget()->spoken().contains(QStringLiteral("weights")));
        const ui::FlatTreePtr facts = ui::planFactTable(*view.answer(), view.band());
        const bool named = std::ranges::any_of(facts->nodes, [](const ui::FlatNode& node) {
            return node.cells[0].text == QStringLiteral("Times are") && !node.cells[1].text.isEmpty();
        });
        QVERIFY(named);
        QVERIFY(view.curves()->svg().contains("this plan"));
    }

    void wherePeaksAreOpensTheStepOfARun() {
        ui::SessionDocument document;
        ui::TimeCursor time;
        ui::PlannerView view({&document, &time, nullptr, nullptr});
        QSignalSpy opened(&view, &ui::View::openView);
        view.show();
        document.show(QStringLiteral("x.vitrine"), {trainingRun()}, {});
        QTRY_VERIFY(view.answer() && view.answer()->complete);
        const QModelIndex where = view.sets()->model()->index(0, 3);
        emit view.sets()->view()->clicked(where); // the run of this model is in the session
        QCOMPARE(opened.size(), 1);
        QCOMPARE(opened[0][0].toString(), QStringLiteral("fine-tune/step"));
    }

    void theFormChangesThePlan() {
        ui::SessionDocument document;
        ui::TimeCursor time;
        ui::PlannerView view({&document, &time, nullptr, nullptr});
        view.show();
        view.takeExperiment(training());
        QTRY_VERIFY(view.answer() && view.answer()->complete);
        const std::uint64_t before = view.answer()->set().price.reserved;
        QTest::keyClicks(view.form()->context()->field(), QStringLiteral("x"));
        view.form()->context()->field()->setText(QStringLiteral("32k"));
        emit view.form()->context()->field()->editingFinished();
        QTRY_VERIFY(view.answer()->complete && view.answer()->context == 32000);
        QVERIFY(view.answer()->set().price.reserved > before);
        QCOMPARE(view.answer()->chosen, std::size_t(3));
        view.form()->check(2)->setChecked(false); // tiled MLP
        QTRY_VERIFY(view.answer()->complete && view.answer()->chosen == 2);
        emit view.bars()->itemClicked(0);
        QTRY_VERIFY(view.answer()->complete && view.answer()->chosen == 0);
        QVERIFY(!view.form()->check(0)->isChecked());
        emit view.curves()->contextPicked(8192);
        QTRY_VERIFY(view.answer()->complete && view.answer()->context == 8192);
    }

    void aChangeThatIsTriedFits() {
        ui::SessionDocument document;
        ui::TimeCursor time;
        ui::PlannerView view({&document, &time, nullptr, nullptr});
        view.show();
        // A number of chunks of its own: the program's choice would follow the budget.
        view.takeExperiment(training(QStringLiteral(R"(, "loss_chunks": "16")")));
        QTRY_VERIFY(view.answer() && view.answer()->complete);
        const quint64 less = view.answer()->set().price.reserved - (quint64(128) << 20);
        view.takeExperiment(training(QStringLiteral(R"(, "loss_chunks": "16", "vram_budget": %1)").arg(less)));
        QTRY_VERIFY(view.answer()->complete && view.answer()->set().price.budget == less);
        QVERIFY(!view.answer()->set().price.fits);
        QVERIFY(view.verdict().contains(QStringLiteral("too much")));
        const std::int64_t longest = view.answer()->set().line.longest;
        QVERIFY(view.changes()->tryButton(0) != nullptr);
        view.changes()->tryButton(0)->click();
        QTRY_VERIFY(view.answer()->complete && view.answer()->set().price.fits);
        QVERIFY(longest >= 0);
        QVERIFY(view.perform(QStringLiteral("compare.swap"))); // the plan before it
        QTRY_VERIFY(view.answer()->complete && !view.answer()->set().price.fits);
    }

    void itStartsWhatItPlans() {
        ui::SessionDocument document;
        ui::TimeCursor time;
        test::PlayedRuns runs;
        ui::PlannerView view({&document, &time, &runs, nullptr});
        QSignalSpy wanted(&view, &ui::View::experimentWanted);
        view.show();
        view.takeExperiment(training());
        QTRY_VERIFY(view.answer() && view.answer()->complete);
        view.startButton()->click();
        QCOMPARE(wanted.size(), 1); // there is no session to keep it in
        const auto experiment = engine::Experiment::read(wanted[0][0].toString().toStdString());
        QVERIFY(experiment && !experiment->isPlan());
        QCOMPARE(experiment->text("tiled_mlp"), std::string("on"));
        QCOMPARE(experiment->integer("prompt_length"), 16384);
        QVERIFY(!experiment->has("device_profile"));
    }

    void generateHasASetForEachTypeOfItsCache() {
        ui::SessionDocument document;
        ui::TimeCursor time;
        ui::PlannerView view({&document, &time, nullptr, nullptr});
        view.show();
        view.takeExperiment(QStringLiteral(R"({"vitrine": 1, "workload": "generate", "model": "synthetic:qwen3-4b",)"
                                           R"("prompt_length": 8192, "device_profile": "l4"})"));
        QTRY_VERIFY(view.answer() && view.answer()->complete);
        QCOMPARE(view.answer()->sets.size(), std::size_t(3));
        QVERIFY(view.answer()->sets[2].line.longest >= view.answer()->sets[0].line.longest);
        QCOMPARE(view.workloadChoice()->currentData().toString(), QStringLiteral("generate"));
    }

    /// Reinforcement learning has lists of methods and formats, with the values that the form Run has for them.
    void listsOfReinforcementLearning() {
        ui::SessionDocument document;
        ui::TimeCursor time;
        ui::PlannerView view({&document, &time, nullptr, nullptr});
        view.show();
        view.takeExperiment(QStringLiteral(
            R"({"vitrine": 1, "workload": "rl", "model": "synthetic:qwen3-4b", "prompt_length": 64, "prompts": 4,)"
            R"("samples": 4, "max_new_tokens": 64, "method": "lora", "device_profile": "h100-80gb"})"));
        QTRY_VERIFY(view.answer() && view.answer()->complete);
        for (const char* key : {"method", "rollout", "qat"}) {
            const ui::NamedCombo* list = view.form()->choice(key);
            QVERIFY(list != nullptr && list->isVisible());
            const auto values = ui::ExperimentForm::choices(QString::fromLatin1(key));
            QCOMPARE(list->count(), static_cast<int>(values.size()));
            QCOMPARE(list->itemData(list->count() - 1).toString(), values.back().first);
        }
        QVERIFY(view.form()->check(4) == nullptr); // no switch says the same again
        ui::NamedCombo* method = view.form()->choice("method");
        QCOMPARE(method->currentText(), QStringLiteral("lora"));
        const auto choose = [&](const char* key, const char* value) {
            ui::NamedCombo* list = view.form()->choice(key);
            list->setCurrentIndex(list->findData(QString::fromLatin1(value)));
            emit list->activated(list->currentIndex());
        };
        const std::uint64_t before = view.answer()->set().price.reserved;
        choose("method", "qlora"); // of packed weights, which this model has only with QAT
        QTRY_VERIFY(view.findChild<ui::ErrorStrip*>()->sentence().contains(QStringLiteral("pack them with qat")));
        QVERIFY(!view.emptyShown() && method->isVisible());
        choose("qat", "int4");
        QTRY_VERIFY(view.settled() && view.findChild<ui::ErrorStrip*>()->sentence().isEmpty() &&
                    view.answer()->set().price.reserved != before);
        QVERIFY(view.draft().commandLine().contains(QStringLiteral("--method qlora --qat int4")));
        choose("rollout", "fp8");
        QVERIFY(view.draft().commandLine().contains(QStringLiteral("--rollout fp8")));
        choose("rollout", "");
        QVERIFY(!view.draft().commandLine().contains(QStringLiteral("--rollout")));
        view.takeExperiment(training());
        QTRY_VERIFY(view.form()->choice("method") == nullptr);
    }

    void exportedTablesAreQuoted() {
        ui::FlatTree table;
        table.columns = {{QStringLiteral("Peak, GiB"), true, QStringLiteral("Peak, bytes")}};
        table.nodes.emplace_back();
        table.nodes.back().cells = {ui::FlatCell(QStringLiteral("1.00"), QVariant(), QStringLiteral("1073741824"))};
        QCOMPARE(ui::asCommaSeparated(table), QStringLiteral("\"Peak, bytes\"\n1073741824\n"));
    }

    void theBandComesFromRuns() {
        const auto past = [](double error, const QString& model) {
            ui::PastRun run;
            run.model = model;
            run.device = QStringLiteral("l4");
            run.predicted = 1'000'000;
            run.measured = static_cast<std::uint64_t>(1'000'000 * (1 + error));
            return run;
        };
        const QString mine = QStringLiteral("a"), other = QStringLiteral("b"), device = QStringLiteral("l4");
        QCOMPARE(ui::errorBand({past(0.01, mine)}, mine, device).share, 0.03);
        const ui::ErrorBand all = ui::errorBand({past(0.01, mine), past(-0.02, other), past(0, other)}, mine, device);
        QVERIFY(!all.own && std::abs(all.share - 0.02) < 1e-6);
        const ui::ErrorBand own =
            ui::errorBand({past(0.01, mine), past(-0.005, mine), past(0, mine), past(0.5, other)}, mine, device);
        QVERIFY(own.own && std::abs(own.share - 0.01) < 1e-6 && own.runs == 3);
    }
};

QTEST_MAIN(PlannerViewTest)
#include "planner_view_test.moc"

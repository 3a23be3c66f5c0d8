// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The Run view in its window with runs that the test plays, driven by real events.
#include "ui/views/run/run_view.h"

#include <QCheckBox>
#include <QComboBox>
#include <QDir>
#include <QElapsedTimer>
#include <QHelpEvent>
#include <QLineEdit>
#include <QPushButton>
#include <QScrollBar>
#include <QTemporaryDir>
#include <QTest>
#include <QTextBlock>
#include <QTimer>
#include <nlohmann/json.hpp>

#include "tests/ui/models/common/patience.h"
#include "tests/ui/models/common/played_runs.h"
#include "tests/ui/models/finetune/training_script.h"
#include "tests/ui/views/run/run_window.h"
#include "ui/models/session/saved_tokens.h"
#include "ui/views/finetune/finetune_view.h"
#include "ui/views/run/preset_bar.h"
#include "ui/widgets/forms/option_form.h"
#include "ui/widgets/plots/token_text.h"

using namespace vitrine;

using test::PlayedRuns;

class RunViewTest final : public QObject {
    Q_OBJECT

    QTemporaryDir folder_;
    std::unique_ptr<PlayedRuns> runs_;
    std::unique_ptr<ui::MainWindow> window_;

    ui::RunView* view() const { return test::runView(*window_); }
    QLineEdit* field(const char* key) const {
        return qobject_cast<QLineEdit*>(view()->fields()->editor(QString::fromLatin1(key)));
    }
    void typeInto(QLineEdit* edit, const QString& text) const {
        edit->setFocus();
        edit->selectAll();
        QTest::keyClicks(edit, text);
    }
    void fill() const {
        view()->takeFolder(QStringLiteral("synthetic:gpt-oss-20b"));
        view()->prompt()->setFocus();
        QTest::keyClicks(view()->prompt(), QStringLiteral("Hello"));
    }
    /// What was asked before it is forgotten.
    void typeLength() {
        fill();
        QTRY_VERIFY(!runs_->prices.empty());
        QTest::qWait(250);
        runs_->prices.clear();
        typeInto(field("max_new_tokens"), QStringLiteral("4096"));
    }

private slots:
    void initTestCase() { ui::Theme::instance().install(); }

    void init() {
        runs_ = std::make_unique<PlayedRuns>();
        window_ = test::openRunWindow(runs_.get(), folder_.path());
    }

    void cleanup() {
        window_.reset();
        runs_.reset();
    }

    void formatsOfATrainingAreComparedFromTheForm() {
        const test::TrainingScript script{.steps = 5, .codes = 0.02};
        window_->document()->show(QStringLiteral("x.vitrine"),
                                  {script.info(1, R"(, "method": "full", "qat": "int4", "group_size": 8)")},
                                  {{1, script.timeline()}});
        window_->openView(QStringLiteral("fine-tune"));
        auto* training = static_cast<ui::FinetuneView*>(window_->view(QStringLiteral("fine-tune")));
        training->showPage(ui::FinetuneView::Live);
        QTRY_VERIFY(training->compareButton()->isVisible());
        training->compareButton()->click();
        QCOMPARE(window_->currentView(), view());
        QCOMPARE(view()->form()->workload(), QStringLiteral("precision"));
        QCOMPARE(view()->form()->text(QStringLiteral("model")), QStringLiteral("out"));
        QCOMPARE(view()->form()->text(QStringLiteral("formats")), QStringLiteral("bf16,int4:8:seven"));
    }

    void formFollowsTheTable() {
        for (const engine::OptionSpec& option : engine::optionTable()) {
            const QString key = QString::fromStdString(std::string(option.key));
            const bool elsewhere = key == QStringLiteral("prompt");
            QCOMPARE(view()->fields()->editor(key) != nullptr,
                     engine::optionApplies(option, "generate", false) && !elsewhere);
        }
        QVERIFY(qobject_cast<QComboBox*>(view()->fields()->editor(QStringLiteral("weights"))) != nullptr);
        QVERIFY(qobject_cast<QCheckBox*>(view()->fields()->editor(QStringLiteral("raw"))) != nullptr);
        view()->form()->setWorkload(QStringLiteral("load"));
        QVERIFY(view()->fields()->editor(QStringLiteral("temperature")) == nullptr);
        QVERIFY(view()->fields()->editor(QStringLiteral("weights")) != nullptr);
        QVERIFY(view()->prompt()->placeholderText().contains(QStringLiteral("after the load")));
    }

    void badFieldsSayWhy() {
        typeInto(field("max_new_tokens"), QStringLiteral("many"));
        QVERIFY(!view()->fields()->errorLine(QStringLiteral("max_new_tokens")).isEmpty());
        typeInto(field("max_new_tokens"), QStringLiteral("64"));
        QVERIFY(view()->fields()->errorLine(QStringLiteral("max_new_tokens")).isEmpty());
        QVERIFY(view()->fields()->dotShown(QStringLiteral("max_new_tokens")));
        typeInto(field("vram_budget"), QStringLiteral("80 pounds"));
        QVERIFY(!view()->fields()->errorLine(QStringLiteral("vram_budget")).isEmpty());
        fill();
        QTest::keyClick(window_.get(), Qt::Key_Return, Qt::ControlModifier);
        QVERIFY(!runs_->busy);
    }

    void undoesEdits() {
        typeInto(field("max_new_tokens"), QStringLiteral("64"));
        QTest::keyClick(field("max_new_tokens"), Qt::Key_Z, Qt::ControlModifier);
        QCOMPARE(view()->form()->text(QStringLiteral("max_new_tokens")), QStringLiteral("128"));
        QCOMPARE(field("max_new_tokens")->text(), QStringLiteral("128"));
        QVERIFY(!view()->fields()->dotShown(QStringLiteral("max_new_tokens")));
        view()->perform(QStringLiteral("edit.redo"));
        QCOMPARE(field("max_new_tokens")->text(), QStringLiteral("64"));
    }

    void pricesOnceAfterTyping() {
        typeLength();
        QVERIFY(runs_->prices.empty());
        QTRY_COMPARE(runs_->prices.size(), std::size_t(1));
        QCOMPARE(runs_->prices[0]["max_new_tokens"].get<int>(), 4096);
        QVERIFY(!runs_->prices[0].contains("plan")); // the controller prices where it would run
        emit runs_->priced(runs_->prices.size(),
                           QStringLiteral(R"({"fits": true, "peak_bytes": 18683267482, "budget_bytes": 85899345920,
            "peak_by_category": {"weights": 13775930368}, "device": "H200"})"),
                           {});
        QCOMPARE(view()->fitText(), QStringLiteral("fits: 17.4 of 80.0 GiB"));
        emit runs_->priced(1, QStringLiteral(R"({"fits": false, "peak_bytes": 18683267482, "budget_bytes": 10737418240,
            "short_by_bytes": 3435973837})"),
                           {});
        QCOMPARE(view()->fitText(), QStringLiteral("Will not fit by 3.20\u00a0GiB."));
        QVERIFY(view()->runButton()->isEnabled());
        emit runs_->priced(99, QStringLiteral("{}"), QStringLiteral("an older question"));
        QVERIFY(view()->fitText().startsWith(QStringLiteral("Will not fit")));
    }

    /// The plan of a whole answer fits; a run of it would end before.
    void theFitLineKnowsTheModelsContext() {
        typeLength();
        QTRY_COMPARE(runs_->prices.size(), std::size_t(1));
        emit runs_->priced(1, QStringLiteral(R"({"fits": true, "peak_bytes": 18683267482, "budget_bytes": 85899345920,
            "prompt_tokens": 1000, "max_new_tokens": 4096, "kv_cache": {"context_limit": 4096}})"),
                           {});
        QCOMPARE(view()->fitText(),
                 QStringLiteral("fits: 17.4 of 80.0 GiB; a run ends after 3,096 of 4,096 new tokens, "
                                "at the model's context of 4,096"));
        emit runs_->priced(1, QStringLiteral(R"({"fits": true, "peak_bytes": 18683267482, "budget_bytes": 85899345920,
            "prompt_tokens": 1000, "max_new_tokens": 3096, "kv_cache": {"context_limit": 4096}})"),
                           {});
        QCOMPARE(view()->fitText(), QStringLiteral("fits: 17.4 of 80.0 GiB"));
    }

    /// The controller keeps one question that has not begun: the Memory view's may take the place of this one's.
    void asksAgainWhenAnotherQuestionTookItsPlace() {
        typeLength();
        QTRY_COMPARE(runs_->prices.size(), static_cast<std::size_t>(1));
        emit runs_->priced(2, QStringLiteral(R"({"peak_bytes": 1, "budget_bytes": 2})"), {});
        QCOMPARE(runs_->prices.size(), static_cast<std::size_t>(2));
        QCOMPARE(runs_->prices[1]["max_new_tokens"].get<int>(), 4096);
        emit runs_->priced(2, QStringLiteral(R"({"peak_bytes": 18683267482, "budget_bytes": 85899345920})"), {});
        QCOMPARE(view()->fitText(), QStringLiteral("fits: 17.4 of 80.0 GiB"));
        QCOMPARE(runs_->prices.size(), static_cast<std::size_t>(2));
    }

    /// To price a batch is to plan all of its steps: who only comes back to the view does not start that again.
    void pricesAgainOnlyWhatChanged() {
        const QTemporaryDir folder;
        const QString model = folder.filePath(QStringLiteral("model"));
        QVERIFY(QDir().mkpath(model));
        fill();
        view()->takeFolder(model);
        const auto answered = [this] {
            if (!runs_->prices.empty() && view()->settled()) {
                return true;
            }
            emit runs_->priced(runs_->prices.size(), QStringLiteral(R"({"peak_bytes": 1073741824,
                "budget_bytes": 85899345920})"),
                               {});
            return false;
        };
        QTRY_VERIFY(answered());
        const auto comeBack = [&] {
            runs_->prices.clear();
            window_->openView(QStringLiteral("memory"));
            window_->openView(QStringLiteral("run"));
            QTRY_VERIFY(view()->settled() || !runs_->prices.empty());
        };
        comeBack();
        QVERIFY(runs_->prices.empty());
        QCOMPARE(view()->fitText(), QStringLiteral("fits: 1.0 of 80.0 GiB"));
        QFile config(model + QStringLiteral("/config.json"));
        QVERIFY(config.open(QIODevice::WriteOnly));
        config.write("{}");
        config.close();
        comeBack();
        QCOMPARE(runs_->prices.size(), std::size_t(1)); // the model's folder has changed
    }

    void commandLineIsExact() {
        fill();
        view()->prompt()->setPlainText(QStringLiteral("it's here"));
        typeInto(field("seed"), QStringLiteral("7"));
        QCOMPARE(view()->commandText(),
                 QStringLiteral("vitrine generate --model synthetic:gpt-oss-20b --prompt 'it'\\''s here' --seed 7 "
                                "--logprobs 5"));
    }

    void runsAndStopsByKeys() {
        fill();
        QTest::keyClick(view()->prompt(), Qt::Key_Return, Qt::ControlModifier);
        QVERIFY(runs_->busy);
        QCOMPARE(runs_->asked["prompt"].get<std::string>(), std::string("Hello"));
        QVERIFY(runs_->session.startsWith(folder_.path()));
        QCOMPARE(view()->runButton()->text(), QStringLiteral("Stop"));
        QTest::keyClick(view()->prompt(), Qt::Key_Escape);
        QCOMPARE(runs_->stops, 1);
        runs_->end(QStringLiteral("cancelled"), QStringLiteral("stopped"));
        QCOMPARE(view()->runButton()->text(), QStringLiteral("Run"));
        QVERIFY(view()->readout().startsWith(QStringLiteral("Stopped")));
    }

    void streamsTokensInChannels() {
        fill();
        QTest::keyClick(view()->prompt(), Qt::Key_Return, Qt::ControlModifier);
        runs_->say(QStringLiteral("Let me"), 0, QStringLiteral("analysis"));
        runs_->say(QStringLiteral(" think"), 1, QStringLiteral("analysis"), -3.0);
        runs_->say(QStringLiteral("It holds"), 2, QStringLiteral("final"));
        runs_->say(QStringLiteral(" keys."), 3, QStringLiteral("final"), -1.0);
        QCOMPARE(view()->text()->tokenCount(), std::size_t(0)); // batched
        QTRY_COMPARE(view()->text()->tokenCount(), std::size_t(4));
        QCOMPARE(view()->text()->plainText(), QStringLiteral("Let me thinkIt holds keys."));
        QCOMPARE(view()->text()->sectionCount(), std::size_t(3));
        QCOMPARE(view()->text()->sectionTitle(1), QStringLiteral("analysis"));
        QCOMPARE(view()->live()->valueText(3), QStringLiteral("4 of 128"));
        const QString tip = view()->text()->tokenTip(3);
        QVERIFY2(tip.contains(QStringLiteral("id 103")) && tip.contains(QStringLiteral("2.00")) &&
                     tip.contains(QStringLiteral("-1.000")) && tip.contains(QStringLiteral("60.7")),
                 qPrintable(tip));
        QTextCursor cursor = view()->text()->document()->find(QStringLiteral("holds"));
        cursor.setPosition(cursor.selectionStart());
        const QRect at = view()->text()->cursorRect(cursor);
        QCOMPARE(view()->text()->tokenAt(at.center() + QPoint(3, 0)), 2);
        runs_->end(QStringLiteral("done"), {});
        QCOMPARE(view()->live()->valueText(1), QStringLiteral("702 tok/s"));
    }

    void followsTheEndUntilTheUserScrolls() {
        fill();
        QTest::keyClick(view()->prompt(), Qt::Key_Return, Qt::ControlModifier);
        emit runs_->progress(QStringLiteral("Reading lm_head.weight"), 1, 1);
        QVERIFY(view()->readout().contains(QStringLiteral("lm_head")));
        QScrollBar* bar = view()->text()->verticalScrollBar();
        int index = 0;
        const auto write = [&] {
            for (int i = 0; i < 2000; ++i) {
                runs_->say(QStringLiteral(" words"), index++, QStringLiteral("final"));
            }
            QTRY_COMPARE(view()->text()->tokenCount(), std::size_t(index));
            QTest::qWait(20);
        };
        write();
        QVERIFY(!view()->readout().contains(QStringLiteral("lm_head")));
        write();
        QVERIFY(bar->maximum() > 0);
        QCOMPARE(bar->value(), bar->maximum());
        QWheelEvent wheel(QPointF(50, 50), view()->text()->viewport()->mapToGlobal(QPointF(50, 50)), {}, {0, 1200}, {},
                          {}, Qt::NoScrollPhase, false);
        QApplication::sendEvent(view()->text()->viewport(), &wheel);
        const int stays = bar->value();
        QVERIFY(stays < bar->maximum());
        write();
        QCOMPARE(bar->value(), stays);
    }

    void foldsThinking() {
        fill();
        QTest::keyClick(view()->prompt(), Qt::Key_Return, Qt::ControlModifier);
        runs_->say(QStringLiteral("hidden thought"), 0, QStringLiteral("analysis"));
        runs_->say(QStringLiteral("shown"), 1, QStringLiteral("final"));
        QTRY_COMPARE(view()->text()->tokenCount(), std::size_t(2));
        const QTextCursor head = view()->text()->document()->find(QStringLiteral("analysis"));
        QTextCursor start = head;
        start.setPosition(head.selectionStart());
        QTest::mouseClick(view()->text()->viewport(), Qt::LeftButton, {},
                          view()->text()->cursorRect(start).center() + QPoint(2, 0));
        QVERIFY(view()->text()->folded(1));
        QVERIFY(!view()->text()->document()->find(QStringLiteral("hidden")).block().isVisible());
        QVERIFY(view()->text()->document()->find(QStringLiteral("shown")).block().isVisible());
        view()->text()->setFolded(1, false);
        QVERIFY(view()->text()->document()->find(QStringLiteral("hidden")).block().isVisible());
    }

    void errorsAreAStrip() {
        fill();
        QTest::keyClick(view()->prompt(), Qt::Key_Return, Qt::ControlModifier);
        runs_->end(QStringLiteral("failed"), QStringLiteral("config.json: hidden_size: missing"));
        QCOMPARE(view()->findChild<ui::ErrorStrip*>()->sentence(), QStringLiteral("config.json: hidden_size: missing"));
        QVERIFY(QApplication::activeModalWidget() == nullptr);
    }

    void emptyPromptIsSaid() {
        view()->takeFolder(QStringLiteral("synthetic:gpt-oss-20b"));
        QTest::keyClick(view()->prompt(), Qt::Key_Return, Qt::ControlModifier);
        QVERIFY(!runs_->busy);
        QVERIFY(view()->readout().contains(QStringLiteral("prompt")));
    }

    void takesASpec() {
        view()->takeExperiment(QStringLiteral(
            R"({"vitrine":1,"workload":"load","model":"synthetic:qwen3-4b","weights":"both","vram_budget":17179869184})"));
        QCOMPARE(view()->form()->workload(), QStringLiteral("load"));
        QCOMPARE(field("vram_budget")->text(), QStringLiteral("16GiB"));
        QCOMPARE(qobject_cast<QComboBox*>(view()->fields()->editor(QStringLiteral("weights")))->currentText(),
                 QStringLiteral("both"));
        QVERIFY(!view()->fields()->dotShown(QStringLiteral("device")));
    }

    void aSavedRunShowsItsResult() {
        sessions::RunInfo run;
        run.id = 3;
        run.name = "load demo";
        run.workload = "load";
        run.status = sessions::RunStatus::Done;
        run.specJson = R"({"vitrine": 1, "workload": "load", "model": "synthetic:tiny-llama"})";
        run.metricsJson = R"({"peak_bytes": 1073741824})";
        window_->document()->show(QStringLiteral("one.vitrine"), {run}, {});
        QVERIFY(view()->text()->toPlainText().contains(QStringLiteral("peak_bytes: 1.00 GiB")));
        QCOMPARE(view()->live()->valueText(5), QStringLiteral("1.00\u00a0GiB"));
    }

    void aSavedRunSaysWhyItEnded() {
        sessions::RunInfo run;
        run.id = 3;
        run.name = run.workload = "generate";
        run.status = sessions::RunStatus::Done;
        run.specJson = R"({"vitrine": 1, "workload": "generate", "model": "synthetic:tiny-llama", "tokens": [1],
                          "max_new_tokens": 64})";
        run.metricsJson = R"({"generated_tokens": 64, "finish_reason": "length"})";
        window_->document()->show(QStringLiteral("one.vitrine"), {run}, {});
        QCOMPARE(view()->live()->endingText(), QStringLiteral("The run ended at the limit of 64 new tokens."));
        run.metricsJson = "{}";
        window_->document()->show(QStringLiteral("one.vitrine"), {run}, {});
        QCOMPARE(view()->live()->endingText(), QString());
    }

    void aBatchHasATraceInsteadOfAPrompt() {
        fill();
        auto* segments = view()->findChild<ui::SegmentedControl*>();
        QTest::mouseClick(segments->button(1), Qt::LeftButton);
        QCOMPARE(view()->form()->workload(), QStringLiteral("batch"));
        QVERIFY(!view()->prompt()->isVisible());
        QTest::keyClick(window_.get(), Qt::Key_Return, Qt::ControlModifier);
        QVERIFY2(!runs_->busy, "there is no trace yet");
        auto* trace = qobject_cast<QComboBox*>(view()->fields()->editor(QStringLiteral("trace")));
        QVERIFY(trace != nullptr && trace->findText(QStringLiteral("long-tail")) >= 0);
        typeInto(trace->lineEdit(), QStringLiteral("uniform"));
        typeInto(field("slots"), QStringLiteral("64"));
        QVERIFY(view()->commandText().startsWith(QStringLiteral("vitrine batch --model synthetic:gpt-oss-20b")));
        QTest::keyClick(window_.get(), Qt::Key_Return, Qt::ControlModifier);
        QVERIFY(runs_->busy);
        QVERIFY(runs_->asked == nlohmann::json({{"vitrine", 1},
                                                {"workload", "batch"},
                                                {"model", "synthetic:gpt-oss-20b"},
                                                {"trace", "uniform"},
                                                {"slots", 64}}));
        QVERIFY(view()->text()->placeholderText().contains(QStringLiteral("Batching")));
        runs_->say(QStringLiteral("of one among many"), 0, {});
        emit runs_->metric(QStringLiteral("decode_tokens"), 640);
        emit runs_->metric(QStringLiteral("tokens_per_second"), 8000);
        QTRY_COMPARE(view()->live()->valueText(3), QStringLiteral("640"));
        QCOMPARE(view()->live()->valueText(1), QStringLiteral("8,000 tok/s"));
        QVERIFY(view()->text()->plainText().isEmpty());
        runs_->end(QStringLiteral("done"), {},
                   QStringLiteral(R"({"tokens_per_second": 8733, "generated_tokens": 14535})"));
        QCOMPARE(view()->live()->valueText(1), QStringLiteral("8,733 tok/s"));
        QCOMPARE(view()->live()->valueText(3), QStringLiteral("14,535"));
        QTest::mouseClick(segments->button(0), Qt::LeftButton);
        QVERIFY(view()->prompt()->isVisible());
        QCOMPARE(view()->prompt()->toPlainText(), QStringLiteral("Hello"));
    }

    void aSavedBatchSaysWhatItDid() {
        sessions::RunInfo run;
        run.id = 3;
        run.workload = "batch";
        run.status = sessions::RunStatus::Done;
        run.specJson = R"({"vitrine": 1, "workload": "batch", "model": "synthetic:tiny-llama", "trace": "fixed"})";
        run.metricsJson = R"({"requests": 100, "finished_requests": 99, "refused_requests": 1, "steps": 397,
            "generated_tokens": 14535, "tokens_per_second": 8733.2, "slot_utilization": 0.896, "preemptions": 0,
            "ttft": {"p50": 0.567, "p95": 1.2}, "tpot": {"p50": 0.0012, "p95": 0.0015}, "e2e": {"p50": 0.7, "p95": 1.3}})";
        window_->document()->show(QStringLiteral("one.vitrine"), {run}, {});
        const QString text = view()->text()->toPlainText().replace(QChar(0xa0), QLatin1Char(' '));
        QVERIFY2(text.contains(QStringLiteral("99 of 100 requests finished, 1 refused.")), qPrintable(text));
        QVERIFY2(text.contains(QStringLiteral("14,535 tokens in 397 steps, 8,733 tokens/s; 89.6 %")), qPrintable(text));
        QVERIFY2(text.contains(QStringLiteral("First tokens after 567 ms (p50) and 1.20 s (p95)")), qPrintable(text));
        QVERIFY2(text.contains(QStringLiteral("tpot.p50: 1.20 ms")), qPrintable(text));
        QVERIFY(!text.contains(QStringLiteral("Pages ran short")));
        QCOMPARE(view()->live()->valueText(1), QStringLiteral("8,733 tok/s"));
        QCOMPARE(view()->live()->valueText(2).replace(QChar(0xa0), QLatin1Char(' ')), QStringLiteral("567 ms"));
        QCOMPARE(view()->form()->workload(), QStringLiteral("batch"));
        QCOMPARE(view()->form()->text(QStringLiteral("trace")), QStringLiteral("fixed"));
    }

    void aSavedRunFillsTheFormUntilSomethingIsTyped() {
        sessions::RunInfo first, second;
        first.id = 3;
        first.workload = second.workload = "generate";
        first.status = second.status = sessions::RunStatus::Done;
        first.specJson = R"({"vitrine": 1, "workload": "generate", "model": "synthetic:tiny-llama", "prompt": "one"})";
        second.id = 4;
        second.specJson = R"({"vitrine": 1, "workload": "generate", "model": "synthetic:qwen3-4b", "prompt": "two"})";
        window_->document()->show(QStringLiteral("one.vitrine"), {first, second}, {});
        window_->document()->setRunA(3);
        QCOMPARE(view()->form()->text(QStringLiteral("model")), QStringLiteral("synthetic:tiny-llama"));
        QCOMPARE(view()->prompt()->toPlainText(), QStringLiteral("one"));
        window_->document()->setRunA(4);
        QCOMPARE(view()->prompt()->toPlainText(), QStringLiteral("two"));
        view()->prompt()->setFocus();
        QTest::keyClicks(view()->prompt(), QStringLiteral("and more"));
        window_->document()->setRunA(3);
        QVERIFY(view()->prompt()->toPlainText().contains(QStringLiteral("and more")));
        QCOMPARE(view()->form()->text(QStringLiteral("model")), QStringLiteral("synthetic:qwen3-4b"));
    }

    void savedTokensAreReadInOrder() {
        const std::vector<sessions::RunText> texts = {
            {"tokens.000001", "{\"id\":9,\"text\":\" end\",\"logprob\":-1.5,\"time\":3000000}\n"},
            {"prompt", "Hello"},
            {"tokens.2.000000", "{\"id\":77,\"text\":\"other request\"}\n"},
            {"tokens.000000", "{\"id\":7,\"text\":\"It\",\"channel\":\"final\",\"top\":[{\"id\":8,\"logprob\":-2.0,"
                              "\"text\":\" He\"}],\"time\":2000000}\nno json\n[1]\n"}};
        const std::vector<ui::StreamedToken> tokens = ui::savedTokens(texts);
        QCOMPARE(tokens.size(), std::size_t(2));
        QCOMPARE(tokens[0].text + tokens[1].text, QStringLiteral("It end"));
        QCOMPARE(tokens[1].seconds, 0.003);
        ui::TokenText shown;
        shown.appendTokens(tokens);
        QVERIFY2(shown.tokenTip(0).contains(QStringLiteral("␣He")), qPrintable(shown.tokenTip(0)));
        QVERIFY2(shown.tokenTip(1).contains(QStringLiteral("1.00 ms")), qPrintable(shown.tokenTip(1)));
    }

    void presetsAreKeptAndFillTheForm() {
        const QString settings = folder_.filePath(QStringLiteral("presets.ini"));
        window_ = std::make_unique<ui::MainWindow>(runs_.get(), settings);
        window_->show();
        window_->openView(QStringLiteral("run"));
        QVERIFY(!view()->presets()->list()->isEnabled());
        view()->takeFolder(QStringLiteral("synthetic:gpt-oss-20b"));
        typeInto(field("max_new_tokens"), QStringLiteral("77"));
        QTimer::singleShot(0, [] { // the dialog has an event loop of its own
            QWidget* dialog = QApplication::activeModalWidget();
            QTest::keyClicks(dialog->findChild<QLineEdit*>(), QStringLiteral("long/answers"));
            QTest::keyClick(dialog, Qt::Key_Return);
        });
        QTest::mouseClick(view()->presets()->saveButton(), Qt::LeftButton);
        QCOMPARE(view()->presets()->list()->currentText(), QStringLiteral("long-answers"));
        // Another window of the same settings has it.
        window_ = std::make_unique<ui::MainWindow>(runs_.get(), settings);
        window_->show();
        window_->openView(QStringLiteral("run"));
        QCOMPARE(view()->form()->text(QStringLiteral("max_new_tokens")), QStringLiteral("128"));
        QComboBox* list = view()->presets()->list();
        QVERIFY(list->isEnabled());
        list->setFocus();
        QTest::keyClick(list, Qt::Key_Down);
        QCOMPARE(view()->form()->text(QStringLiteral("max_new_tokens")), QStringLiteral("77"));
        QCOMPARE(view()->form()->text(QStringLiteral("model")), QStringLiteral("synthetic:gpt-oss-20b"));
    }

    void manyTokensStayWhole() {
        ui::TokenText text;
        text.resize(800, 600);
        text.show();
        std::vector<ui::StreamedToken> batch(500);
        QString expected;
        for (int i = 0; i < 200; ++i) {
            for (int j = 0; j < 500; ++j) {
                batch[static_cast<std::size_t>(j)].text = QStringLiteral("t%1 ").arg(j);
                batch[static_cast<std::size_t>(j)].id = j;
                batch[static_cast<std::size_t>(j)].logprob = j % 3 == 0 ? -1.0 : -0.1;
                expected += batch[static_cast<std::size_t>(j)].text;
            }
            text.appendTokens(batch);
        }
        QCOMPARE(text.tokenCount(), std::size_t(100000));
        QCOMPARE(text.plainText(), expected); // breaks that only help drawing are not in it
        QVERIFY(text.verticalScrollBar()->value() > 0);
        QVERIFY(!text.grab().isNull());
        text.selectAll();
        text.copy();
    }

    void pictures() {
        const QString folder = qEnvironmentVariable("VITRINE_TEST_PICTURES");
        if (!folder.isEmpty()) {
            fill();
            QTest::keyClick(view()->prompt(), Qt::Key_Return, Qt::ControlModifier);
            for (int i = 0; i < 30; ++i) {
                runs_->say(i % 7 == 0 ? QStringLiteral(" unlikely") : QStringLiteral(" words"), i,
                           i < 12 ? QStringLiteral("analysis") : QStringLiteral("final"), i % 7 == 0 ? -3.0 : -0.1);
            }
            QTest::qWait(80);
            QVERIFY(window_->grab().save(QDir(folder).filePath(QStringLiteral("run-live.png"))));
        }
    }
};

QTEST_MAIN(RunViewTest)
#include "run_view_test.moc"

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The main job by mouse and keys with the program's own runs: choose a model, start, watch, stop, find the run saved,
// look at it, run it again, compare, open the session anew; measure a mask.
#include <QComboBox>
#include <QDir>
#include <QFile>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QTableView>
#include <QTemporaryDir>
#include <QTest>
#include <nlohmann/json.hpp>

#include "app/gui/host_run_controller.h"
#include "base/resource_path.h"
#include "kernels/context/context.h"
#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "tests/ui/views/run/run_window.h"
#include "ui/models/session/run_table.h"
#include "ui/views/batching/batching_view.h"
#include "ui/views/compare/compare_view.h"
#include "ui/views/mask_lab/mask_controls.h"
#include "ui/views/mask_lab/mask_lab_view.h"
#include "ui/views/memory/memory_view.h"
#include "ui/views/sessions/sessions_view.h"
#include "ui/widgets/forms/option_form.h"
#include "ui/widgets/plots/token_text.h"

using namespace vitrine;

namespace {

constexpr int kLimitMs = 60'000;

/// The demo model with a context that no run reaches before it is stopped, in a folder of its own.
QString longDemoModel(const QString& folder) {
    QDir(folder).mkpath(QStringLiteral("model"));
    const QString copy = folder + QStringLiteral("/model/");
    const QDir model(QString::fromStdString(base::resourcePath("models/vitrine-demo")));
    for (const QString& name : model.entryList(QDir::Files)) {
        QFile::copy(model.filePath(name), copy + name);
    }
    QFile config(copy + QStringLiteral("config.json"));
    config.setPermissions(QFile::ReadOwner | QFile::WriteOwner);
    config.open(QIODevice::ReadWrite);
    auto fields = nlohmann::json::parse(config.readAll().toStdString());
    fields["max_position_embeddings"] = 200'000;
    config.resize(0);
    config.write(QByteArray::fromStdString(fields.dump()));
    return copy;
}

} // namespace

class GuiRunTest final : public QObject {
    Q_OBJECT

    QTemporaryDir folder_;
    std::unique_ptr<app::HostRunController> runs_;
    std::unique_ptr<ui::MainWindow> window_;

    ui::RunView* view() const { return test::runView(*window_); }
    template <class T> T* shown(const char* id) const {
        return qobject_cast<T*>(window_->view(QString::fromLatin1(id)));
    }
    QWidget* editor(const char* key) const { return view()->fields()->editor(QString::fromLatin1(key)); }

    void typeInto(const char* key, const QString& text) const {
        QWidget* field = editor(key);
        auto* box = qobject_cast<QComboBox*>(field);
        auto* edit = box != nullptr ? box->lineEdit() : qobject_cast<QLineEdit*>(field);
        QVERIFY2(edit != nullptr, key);
        QTest::mouseClick(edit, Qt::LeftButton);
        edit->selectAll();
        QTest::keyClicks(edit, text);
        QTest::keyClick(edit, Qt::Key_Tab);
        QCOMPARE(view()->form()->text(QString::fromLatin1(key)), text);
    }

    void clickRun() const { QTest::mouseClick(view()->runButton(), Qt::LeftButton); }

    const sessions::RunInfo* lastRun() const {
        const auto& runs = window_->document()->runs();
        return runs.empty() ? nullptr : &runs.back();
    }

    bool lastRunIs(std::size_t count, sessions::RunStatus status) const {
        return window_->document()->runs().size() == count && lastRun()->status == status;
    }

private slots:
    void initTestCase() { ui::Theme::instance().install(); }

    void init() {
        runs_ = std::make_unique<app::HostRunController>();
        window_ = test::openRunWindow(runs_.get(), folder_.path());
    }

    void cleanup() {
        window_.reset();
        runs_.reset();
    }

    void servesABatchBothWays() {
        view()->setSessionFolder(folder_.filePath(QStringLiteral("batches")));
        auto* workloads = view()->findChild<ui::SegmentedControl*>();
        QTest::mouseClick(workloads->button(1), Qt::LeftButton);
        typeInto("model", QStringLiteral("synthetic:tiny-gpt-oss"));
        typeInto("trace", QStringLiteral("uniform"));
        typeInto("requests", QStringLiteral("6"));
        typeInto("new_tokens", QStringLiteral("2-20"));
        typeInto("slots", QStringLiteral("2"));
        clickRun();
        QVERIFY(runs_->running());
        QTRY_VERIFY_WITH_TIMEOUT(!runs_->running() && lastRunIs(1, sessions::RunStatus::Done), kLimitMs);
        QTRY_VERIFY_WITH_TIMEOUT(view()->text()->toPlainText().contains(QStringLiteral("6 of 6 requests finished.")),
                                 kLimitMs);
        view()->fields()->edit(QStringLiteral("mode"), QStringLiteral("static"));
        clickRun();
        QTRY_VERIFY_WITH_TIMEOUT(!runs_->running() && lastRunIs(2, sessions::RunStatus::Done), kLimitMs);
        QTest::keyClick(window_.get(), Qt::Key_5, Qt::ControlModifier);
        auto* batching = shown<ui::BatchingView>("batching");
        QCOMPARE(window_->currentView(), batching);
        QTRY_VERIFY_WITH_TIMEOUT(batching->settled() && !batching->emptyShown(), kLimitMs);
    }

    void streamsStopsAndKeeps() {
        const QString model = longDemoModel(folder_.path());
        typeInto("model", model);
        typeInto("max_new_tokens", QStringLiteral("100000"));
        view()->form()->setText(QStringLiteral("ignore_eos"), QStringLiteral("true"));
        QTest::mouseClick(view()->prompt()->viewport(), Qt::LeftButton);
        QTest::keyClicks(view()->prompt(), QStringLiteral("What does a KV cache hold?"));
        clickRun();
        QVERIFY(runs_->running());
        QCOMPARE(view()->runButton()->text(), QStringLiteral("Stop"));
        QTRY_VERIFY_WITH_TIMEOUT(view()->text()->tokenCount() >= 20, kLimitMs);
        QVERIFY(!view()->text()->plainText().isEmpty());
        clickRun();
        QTRY_VERIFY_WITH_TIMEOUT(!runs_->running(), kLimitMs);
        QTRY_VERIFY_WITH_TIMEOUT(lastRunIs(1, sessions::RunStatus::Cancelled), kLimitMs);
        QCOMPARE(window_->document()->runA(), lastRun()->id);
        const std::size_t streamed = view()->text()->tokenCount();
        QVERIFY(streamed < 100000);

        // Memory shows its events, Sessions its row.
        QTest::keyClick(window_.get(), Qt::Key_2, Qt::ControlModifier);
        auto* memory = shown<ui::MemoryView>("memory");
        QCOMPARE(window_->currentView(), memory);
        QTRY_VERIFY_WITH_TIMEOUT(memory->settled() && !memory->emptyShown(), kLimitMs);
        const auto timeline = window_->document()->timeline(lastRun()->id).timeline;
        QVERIFY(timeline && timeline->memory().events() > 100);
        QVERIFY(timeline->memory().peak(timeline->begin(), timeline->end()).maxTotal > (1U << 20));
        QTest::keyClick(window_.get(), Qt::Key_Minus, Qt::ControlModifier);
        auto* sessions = shown<ui::SessionsView>("sessions");
        QCOMPARE(window_->currentView(), sessions);
        QCOMPARE(sessions->table()->model()->rowCount(), 1);
        QCOMPARE(sessions->table()->model()->index(0, ui::RunTable::State).data().toString(),
                 ui::statusText(sessions::RunStatus::Cancelled));

        // Another window on the same file has the text with every token's facts, and the settings in the form.
        const QString file = window_->document()->path();
        const QString text = view()->text()->plainText();
        cleanup();
        init();
        window_->openFile(file);
        QTRY_VERIFY_WITH_TIMEOUT(window_->document()->isOpen() && view()->text()->tokenCount() == streamed, kLimitMs);
        QCOMPARE(view()->text()->plainText(), text);
        QVERIFY(view()->text()->toPlainText().contains(QStringLiteral("What does a KV cache hold?")));
        const QString tip = view()->text()->tokenTip(5);
        QVERIFY2(tip.count(QStringLiteral("<br>")) >= 5 && tip.contains(QStringLiteral("logprob")), qPrintable(tip));
        QCOMPARE(view()->form()->text(QStringLiteral("model")), model);
        QCOMPARE(view()->prompt()->toPlainText(), QStringLiteral("What does a KV cache hold?"));
    }

    void measuresAMaskAndKeepsIt() {
        const QString file = folder_.filePath(QStringLiteral("masks.vitrine"));
        sessions::SessionFile::open(file.toStdString(), sessions::OpenMode::CreateOrOpen);
        window_->openFile(file);
        QTRY_VERIFY_WITH_TIMEOUT(window_->document()->isOpen(), kLimitMs);
        QTest::keyClick(window_.get(), Qt::Key_6, Qt::ControlModifier);
        auto* lab = shown<ui::MaskLabView>("mask");
        QCOMPARE(window_->currentView(), lab);
        ui::MaskSizes sizes;
        sizes.heads = 2;
        sizes.kvHeads = 1;
        sizes.headDim = 16;
        sizes.queries = sizes.keys = 320;
        sizes.block = 64;
        lab->lab()->setSizes(sizes);
        lab->lab()->setSource(0, ui::exampleSource(320));
        lab->lab()->setParameter(0, "WINDOW", 64);
        QTRY_VERIFY_WITH_TIMEOUT(lab->settled(), kLimitMs);
        QTest::mouseClick(lab->controls()->measure(), Qt::LeftButton);
        QVERIFY(runs_->running());
        QTRY_VERIFY_WITH_TIMEOUT(lab->lab()->side(0).times.has_value(), kLimitMs);
        QTRY_VERIFY_WITH_TIMEOUT(lastRun() != nullptr && lastRunIs(1, sessions::RunStatus::Done), kLimitMs);
        QTRY_COMPARE_WITH_TIMEOUT(window_->document()->runA(), lastRun()->id, kLimitMs);
        QTRY_COMPARE_WITH_TIMEOUT(QString::fromStdString(lastRun()->name), QStringLiteral("sliding + document"),
                                  kLimitMs);
        const ui::MaskTimes times = *lab->lab()->side(0).times;
        QVERIFY(times.forward && times.forward->full && times.backward && times.cpu);

        // Another window on the same file: the program with its parameter and lengths, and its times.
        cleanup();
        init();
        window_->openFile(file);
        window_->openView(QStringLiteral("mask"));
        lab = shown<ui::MaskLabView>("mask");
        QTRY_VERIFY_WITH_TIMEOUT(lab->lab()->side(0).times.has_value() && lab->settled(), kLimitMs);
        const ui::MaskSource& source = lab->lab()->side(0).source;
        QCOMPARE(source.text, ui::exampleSource(320).text);
        QCOMPARE(source.captures, ui::exampleSource(320).captures);
        QCOMPARE(source.parameters.at("WINDOW"), 64.0);
        QVERIFY(lab->lab()->sizes() == sizes);
        QCOMPARE(lab->lab()->side(0).times->forward->measured, times.forward->measured);
    }

    void runsAgainAndCompares() {
        view()->setSessionFolder(folder_.filePath(QStringLiteral("again")));
        typeInto("model", QStringLiteral("synthetic:tiny-gpt-oss"));
        view()->form()->setText(QStringLiteral("prompt_length"), QStringLiteral("40"));
        typeInto("max_new_tokens", QStringLiteral("12"));
        QTest::keyClick(window_.get(), Qt::Key_Return, Qt::ControlModifier);
        QVERIFY(runs_->running());
        QTRY_VERIFY_WITH_TIMEOUT(lastRunIs(1, sessions::RunStatus::Done), kLimitMs);
        // Tokens without a text: the result is shown in its place.
        QTRY_VERIFY_WITH_TIMEOUT(view()->text()->toPlainText().contains(QStringLiteral("peak_bytes")), kLimitMs);

        auto* again = window_->findChild<QPushButton*>(QStringLiteral("runAgain"));
        QVERIFY(again != nullptr && again->isEnabled());
        QTest::mouseClick(again, Qt::LeftButton);
        QTRY_VERIFY_WITH_TIMEOUT(lastRunIs(2, sessions::RunStatus::Done), kLimitMs);
        const auto& runs = window_->document()->runs();
        QVERIFY(nlohmann::json::parse(runs[0].specJson) == nlohmann::json::parse(runs[1].specJson));

        window_->document()->setRunA(runs[1].id);
        window_->document()->setRunB(runs[0].id);
        QTest::keyClick(window_.get(), Qt::Key_0, Qt::ControlModifier);
        auto* compare = shown<ui::CompareView>("compare");
        QCOMPARE(window_->currentView(), compare);
        QTRY_VERIFY_WITH_TIMEOUT(compare->settled() && !compare->emptyShown(), kLimitMs);
        QVERIFY2(!compare->sentence()->text().isEmpty() &&
                     !compare->sentence()->text().contains(QStringLiteral("peaks")),
                 qPrintable(compare->sentence()->text()));
        QCOMPARE(compare->specModel()->rowCount(), 0);
    }

    void theProcessorIsPricedAsItself() {
        QString metrics, said;
        connect(runs_.get(), &ui::RunController::priced, this, [&](quint64, const QString& json, const QString& error) {
            metrics = json;
            said = error;
        });
        runs_->price(R"({"vitrine": 1, "workload": "generate", "model": "synthetic:tiny-gpt-oss",
                         "prompt_length": 16, "max_new_tokens": 4})");
        QTRY_VERIFY_WITH_TIMEOUT(!metrics.isEmpty() || !said.isEmpty(), kLimitMs);
        QCOMPARE(said, QString());
        const auto priced = nlohmann::json::parse(metrics.toStdString());
        QCOMPARE(priced["budget_bytes"].get<std::uint64_t>(), kernels::cpuTraits(0).memoryBytes);
        QCOMPARE(priced["dtype"].get<std::string>(), std::string("float32"));
        QVERIFY(priced["fits"].get<bool>());
    }

    void refusalsAreSaid() {
        typeInto("model", folder_.filePath(QStringLiteral("nothing-here")));
        QTest::mouseClick(view()->prompt()->viewport(), Qt::LeftButton);
        QTest::keyClicks(view()->prompt(), QStringLiteral("Hello"));
        clickRun();
        QTRY_VERIFY_WITH_TIMEOUT(!view()->findChild<ui::ErrorStrip*>()->sentence().isEmpty(), kLimitMs);
        QTRY_VERIFY_WITH_TIMEOUT(!runs_->running(), kLimitMs);
        QVERIFY(view()->findChild<ui::ErrorStrip*>()->sentence().contains(QStringLiteral("nothing-here")));
    }
};

QTEST_MAIN(GuiRunTest)
#include "run_test.moc"

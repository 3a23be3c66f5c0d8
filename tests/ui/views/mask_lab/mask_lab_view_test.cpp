// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The Mask Lab in its window: editing, sliders, A and B, runs of a session, export, keys, small windows.
#include "ui/views/mask_lab/mask_lab_view.h"

#include <QAccessible>
#include <QAction>
#include <QClipboard>
#include <QComboBox>
#include <QDir>
#include <QGuiApplication>
#include <QLineEdit>
#include <QMenu>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSlider>
#include <QTableView>
#include <QTemporaryDir>
#include <QTest>
#include <QTreeView>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/checkpoint/checkpoint.h"
#include "tests/ui/models/batching/batch_run.h"
#include "tests/ui/models/common/fake_runs.h"
#include "tests/ui/models/common/patience.h"
#include "ui/views/mask_lab/capture_panel.h"
#include "ui/views/mask_lab/heads_panel.h"
#include "ui/views/mask_lab/mask_controls.h"
#include "ui/views/mask_lab/mask_editor.h"
#include "ui/views/mask_lab/mask_exports.h"
#include "ui/views/mask_lab/mask_inspector.h"
#include "ui/views/mask_lab/number_field.h"
#include "ui/views/mask_lab/program_panel.h"
#include "ui/views/shell/main_window.h"
#include "ui/widgets/forms/code_edit.h"
#include "ui/widgets/forms/number_slider.h"
#include "ui/widgets/plots/fact_rows.h"

using namespace vitrine;
using ui::BlockMap;
using ui::MainWindow;
using ui::MaskLabView;

namespace {

/// Notes what it should start; a test ends it.
class NotedRuns final : public ui::RunController {
public:
    void start(const std::string& what, const QString& file) override {
        experiment = nlohmann::json::parse(what);
        session = file;
        isRunning = true;
        emit started(7);
    }
    void stop() override { end(QStringLiteral("cancelled"), QStringLiteral("{}")); }
    bool running() const override { return isRunning; }
    quint64 price(const std::string&) override { return 0; }
    void end(const QString& status, const QString& metrics) {
        isRunning = false;
        emit ended(status, {}, metrics);
    }

    nlohmann::json experiment;
    QString session;
    bool isRunning = false;
};

constexpr char kMetrics[] = R"({"backend": "cpu", "device": "CPU", "dtype": "float32", "batch": 1, "heads": 2,
    "kv_heads": 1, "head_dim": 64, "q_len": 512, "kv_len": 512, "block_size": 128, "block_sparsity": 0.375,
    "forward_ms": 3.5, "forward_tflops": 0.011, "full_forward_ms": 5.0, "predicted_forward_ms": 3.125,
    "backward_ms": 11.0, "backward_tflops": 0.012, "full_backward_ms": 16.0, "predicted_backward_ms": 10.0})";

sessions::RunInfo attentionRun(sessions::RunId id, const std::string& name, const std::string& text) {
    sessions::RunInfo run = test::runInfo(id, name, sessions::RunStatus::Done);
    run.workload = "attention";
    run.specJson =
        nlohmann::json{{"vitrine", 1},    {"workload", "attention"},      {"program", text},
                       {"mask", "m"},     {"random", "1,2,1,512,512,64"}, {"stands_for", "1,8,4,2048,2048,64"},
                       {"block_size", 64}}
            .dump();
    run.metricsJson = kMetrics;
    return run;
}

} // namespace

class MaskLabViewTest final : public QObject {
    Q_OBJECT

    std::unique_ptr<NotedRuns> runs_;
    std::unique_ptr<MainWindow> window_;
    QTemporaryDir folder_;

    MaskLabView* view() const { return static_cast<MaskLabView*>(window_->view(QStringLiteral("mask"))); }
    ui::CodeEdit* editor() const { return view()->editor()->program()->editor(); }
    const ui::MaskLab::Side& side(int index) const { return view()->lab()->side(index); }

    void settle() const { QTRY_VERIFY_WITH_TIMEOUT(view()->settled(), 60'000); }

    void picture(const QString& name) const {
        const QString folder = qEnvironmentVariable("VITRINE_TEST_PICTURES");
        if (!folder.isEmpty()) {
            settle();
            QTest::qWait(60);
            settle();
            QVERIFY(window_->grab().save(QDir(folder).filePath(name + QStringLiteral(".png"))));
        }
    }

    void write(const QString& text) const {
        editor()->selectAll();
        editor()->insertPlainText(text);
        settle();
    }

    /// Two runs of a session: a as A, b as B.
    void showBeside(const char* a, const std::string& programA, const char* b, const std::string& programB) {
        window_->document()->show(QStringLiteral("s.vitrine"),
                                  {attentionRun(1, b, programB), attentionRun(2, a, programA)}, {});
        window_->document()->setRunA(2);
        window_->document()->setRunB(1);
        settle();
    }

private slots:
    void initTestCase() { ui::Theme::instance().install(); }

    void init() {
        ui::Theme::instance().setMode(ui::Theme::Mode::Dark);
        runs_ = std::make_unique<NotedRuns>();
        window_ = std::make_unique<MainWindow>(runs_.get(), QString());
        window_->resize(1440, 900);
        window_->show();
        window_->openView(QStringLiteral("mask"));
        settle();
    }

    void cleanup() {
        window_.reset();
        runs_.reset();
    }

    void beginsWithTheExample() {
        QVERIFY(!view()->emptyShown());
        QVERIFY(view()->editor()->program()->status().contains(QStringLiteral("no errors")));
        QCOMPARE(view()->panel()->number(0), QStringLiteral("92.19\u00A0%"));
        QCOMPARE(view()->panel()->number(1), QStringLiteral("74.59\u00A0%"));
        QCOMPARE(view()->panel()->number(2), QStringLiteral("6.77\u00A0%"));
        QCOMPARE(view()->panel()->facts()->rows()[0].values[0].text, QStringLiteral("1,279 of 16,384"));
        QCOMPARE(view()->panel()->blockSizes()->rows().size(), std::size_t(4));
        QVERIFY(view()->editor()->heads()->sentence().contains(QStringLiteral("all 64 heads")));
        QCOMPARE(view()->editor()->captures()->editor(QStringLiteral("doc_id"))->table()->model()->rowCount(), 9);
        picture(QStringLiteral("mask-lab"));
    }

    void pointingSaysWhy() {
        view()->map()->goTo({8284, 8220}, true);
        QCOMPARE(editor()->tintedLine(), 9);
        const auto& rows = view()->panel()->reasons()->rows();
        QCOMPARE(rows.size(), std::size_t(3));
        QCOMPARE(rows[2].values[0].text, QStringLiteral("4 is not 3"));
        QVERIFY(view()->readout().startsWith(QStringLiteral("q 8,284, kv 8,220: blocked by")));
        const QTreeView* table = view()->editor()->captures()->editor(QStringLiteral("doc_id"))->table();
        QCOMPARE(table->selectionModel()->selectedRows().size(), 2); // 4 of the query, 3 of the key
        QVERIFY(view()->perform(QStringLiteral("edit.copy-why")));
        QVERIFY(QGuiApplication::clipboard()->text().contains(QStringLiteral("4 is not 3")));
        picture(QStringLiteral("mask-lab-pointed"));
        view()->perform(QStringLiteral("select.clear"));
    }

    /// Nothing below the reasons moves while the pointer goes over the map and away.
    void pointingMovesNothing() {
        for (const char* program :
             {"def mask(b, h, q, k):\n    return q >= k\n",
              "def mask(b, h, q, k):\n    return (q >= k) & (q - k < 64) & (q // 8 == k // 8)\n"}) {
            write(QString::fromLatin1(program));
            QTest::qWait(10);
            const QRect before = view()->panel()->timeHead()->geometry();
            for (const ui::MaskCell cell : {ui::MaskCell{0, 0}, ui::MaskCell{5, 900}, ui::MaskCell{900, 5}}) {
                view()->map()->goTo(cell, true);
                QTest::qWait(10);
                QCOMPARE(view()->panel()->timeHead()->geometry(), before);
            }
            view()->perform(QStringLiteral("select.clear"));
            QTest::qWait(10);
            QCOMPARE(view()->panel()->timeHead()->geometry(), before);
        }
    }

    /// Without a measurement the plan of the kernel says what a GPU would need, and it follows the program.
    void theKernelsPlanPredicts() {
        write(QStringLiteral("def mask(b, h, q, k):\n    return q >= k\n"));
        QVERIFY(side(0).plan.has_value());
        const double causal = side(0).plan->forward.masked;
        QVERIFY(causal > 0.45 * side(0).plan->forward.full && causal < 0.55 * side(0).plan->forward.full);
        QVERIFY(side(0).plan->backward.masked > 2 * causal);
        const auto& rows = view()->panel()->forward()->rows();
        QCOMPARE(rows.size(), std::size_t(2));
        QCOMPARE(rows[1].name, QStringLiteral("predicted"));
        write(QStringLiteral("def mask(b, h, q, k):\n    return (q >= k) & (q - k < 128)\n"));
        QVERIFY(side(0).plan->forward.masked < causal / 4);
    }

    void searchGoesToACell() {
        QCOMPARE(view()->find(QStringLiteral("100, 50"), 1), QString());
        QCOMPARE(view()->find(QStringLiteral("100 50"), 0), QStringLiteral("Enter goes"));
        QCOMPARE(view()->find(QStringLiteral("100 50"), 1), QStringLiteral("pinned"));
        QVERIFY(view()->map()->cell() == (ui::MaskCell{100, 50}));
        QCOMPARE(view()->find(QStringLiteral("99999 1"), 1), QStringLiteral("outside"));
        QVERIFY(window_->actionList()->action(QStringLiteral("mask.go"))->isEnabled());
        window_->actionList()->action(QStringLiteral("mask.go"))->trigger();
        QVERIFY(window_->searchField()->hasFocus());
    }

    void errorsAreUnderlinedAndSaid() {
        write(QStringLiteral("def m(b, h, q, k):\n    return q >= segment[k]\n"));
        QVERIFY(view()->editor()->program()->status().startsWith(QStringLiteral("Line 2: ")));
        const auto [begin, end] = editor()->problem();
        QCOMPARE(editor()->toPlainText().mid(begin, end - begin), QStringLiteral("segment"));
        QVERIFY(side(0).map != nullptr); // what was there stays
        QVERIFY(!view()->controls()->measure()->isEnabled());
        picture(QStringLiteral("mask-lab-error"));
        QVERIFY(view()->editor()->program()->helpButton()->isVisible());
        view()->editor()->program()->helpButton()->click();
        settle();
        QVERIFY(view()->editor()->program()->status().contains(QStringLiteral("no errors")));
        QVERIFY(view()->editor()->captures()->editor(QStringLiteral("segment")) != nullptr);
        QVERIFY(view()->editor()->captures()->editor(QStringLiteral("doc_id")) == nullptr);
        write(QStringLiteral("def m(b, h, q, k)\n    return (q >=\n"));
        QVERIFY(view()->editor()->program()->status().startsWith(QStringLiteral("Line")));
    }

    void slidersMoveTheMask() {
        QCOMPARE(view()->editor()->sliders().size(), std::size_t(1));
        ui::NumberSlider* slider = view()->editor()->sliders().front();
        const std::int64_t before = side(0).map->blocks->full;
        slider->slider()->setValue(100);
        settle();
        QVERIFY(side(0).map->blocks->full < before);
        QCOMPARE(view()->editor()->sliders().front(), slider); // the same widget, while it is held
        write(QStringLiteral("def m(b, h, q, k):\n    return q >= k\n"));
        QVERIFY(view()->editor()->sliders().empty());
    }

    void lengthsOfDocumentsAreEdited() {
        ui::CaptureEditor* documents = view()->editor()->captures()->editor(QStringLiteral("doc_id"));
        documents->editButton()->click();
        QVERIFY(documents->lengthsEdit()->isVisible());
        documents->lengthsEdit()->setPlainText(QStringLiteral("8k, x"));
        documents->editButton()->click();
        QVERIFY(documents->lengthsEdit()->isVisible());
        documents->lengthsEdit()->setPlainText(QStringLiteral("8k, 4096\n4096"));
        documents->editButton()->click();
        settle();
        QCOMPARE(documents->table()->model()->rowCount(), 3);
        QCOMPARE(side(0).source.captures[0], std::string("doc_id=documents:8192,4096,4096"));
        documents->fromRunButton()->click();
        settle();
        QCOMPARE(documents->table()->model()->rowCount(), 3); // there is no run
    }

    void blockSizeAndLengths() {
        view()->controls()->block()->setCurrentIndex(3);
        emit view() -> controls()->block()->activated(3);
        settle();
        QCOMPARE(side(0).map->shape().queryBlock, 256);
        view()->controls()->queries()->field()->setText(QStringLiteral("300"));
        emit view() -> controls()->queries()->field()->editingFinished();
        view()->controls()->keys()->field()->setText(QStringLiteral("1k"));
        emit view() -> controls()->keys()->field()->editingFinished();
        settle();
        QCOMPARE(side(0).map->queries(), 300);
        QCOMPARE(side(1).map->keys(), 1024);
        view()->controls()->keys()->field()->setText(QStringLiteral("no"));
        emit view() -> controls()->keys()->field()->editingFinished();
        QCOMPARE(view()->controls()->keys()->field()->text(), QStringLiteral("1,024"));
        emit view() -> panel()->blockSizes()->itemClicked(0);
        settle();
        QCOMPARE(side(0).map->shape().queryBlock, 32);
        picture(QStringLiteral("mask-lab-tiny"));
    }

    void aMillionTokens() {
        for (ui::NumberField* field : {view()->controls()->queries(), view()->controls()->keys()}) {
            field->field()->setText(QStringLiteral("1M"));
            emit field->field()->editingFinished();
        }
        settle();
        QCOMPARE(side(0).map->queries(), 1 << 20);
        picture(QStringLiteral("mask-lab-million"));
    }

    void sidesByButtonsAndSpace() {
        view()->perform(QStringLiteral("mask.b"));
        QCOMPARE(view()->shownSide(), 1);
        QVERIFY(editor()->text().starts_with("def causal"));
        QCOMPARE(view()->map()->side(), BlockMap::Side::B);
        view()->perform(QStringLiteral("mask.difference"));
        QCOMPARE(view()->shownSide(), 0);
        picture(QStringLiteral("mask-lab-difference"));
        view()->perform(QStringLiteral("mask.a"));
        view()->map()->setFocus();
        QTest::keyPress(view()->map(), Qt::Key_Space);
        QCOMPARE(view()->map()->side(), BlockMap::Side::B);
        QTest::keyRelease(view()->map(), Qt::Key_Space);
        QCOMPARE(view()->map()->side(), BlockMap::Side::A);
        QVERIFY(editor()->text().starts_with("WINDOW"));
        view()->perform(QStringLiteral("mask.b"));
        write(QStringLiteral("def m(b, h, q, k):\n    return q == k\n"));
        QCOMPARE(side(1).map->blocks->full, 0);
        QCOMPARE(side(0).map->blocks->full, 954);
        // Each side has its own undo.
        editor()->undo();
        settle();
        QVERIFY(side(1).source.text.starts_with("def causal"));
        view()->perform(QStringLiteral("mask.a"));
        QVERIFY(!editor()->document()->isUndoAvailable() || editor()->text().starts_with("WINDOW"));
    }

    void catalogueReplacesTheText() {
        QMenu* menu = view()->editor()->program()->catalogueButton()->menu();
        emit menu->aboutToShow();
        QVERIFY(menu->actions().size() >= 17);
        QAction* natten = nullptr;
        QAction* alibi = nullptr;
        for (QAction* action : menu->actions()) {
            natten = action->objectName() == QStringLiteral("Natten") ? action : natten;
            alibi = action->objectName() == QStringLiteral("Alibi") ? action : alibi;
        }
        natten->trigger();
        settle();
        QVERIFY(side(0).study->title() == QStringLiteral("Natten"));
        QVERIFY(editor()->text().find("def generate_natten") != std::string::npos);
        QVERIFY(!view()->editor()->sliders().empty());
        picture(QStringLiteral("mask-lab-natten"));
        editor()->undo();
        settle();
        QVERIFY(editor()->text().starts_with("WINDOW"));
        emit menu->aboutToShow();
        for (QAction* action : menu->actions()) {
            if (action->objectName() == QStringLiteral("Alibi")) {
                action->trigger();
                break;
            }
        }
        settle();
        QVERIFY(side(0).map->scores.program != nullptr);
        view()->perform(QStringLiteral("mask.scores"));
        QVERIFY(view()->controls()->scores()->isVisible());
        picture(QStringLiteral("mask-lab-score"));
    }

    void layersOfTheRunsModel() {
        window_->document()->show(QStringLiteral("s.vitrine"),
                                  {test::runInfo(1, "generate", sessions::RunStatus::Done)}, {});
        settle();
        QVERIFY(editor()->text().starts_with("WINDOW = 128")); // nobody had written anything: it opens on a layer
        QMenu* menu = view()->editor()->program()->layersButton()->menu();
        emit menu->aboutToShow();
        QAction* layer = nullptr;
        for (QAction* action : menu->actions()) {
            layer = action->text() == QStringLiteral("Layer 2, sliding 128") ? action : layer;
        }
        QVERIFY(layer != nullptr);
        layer->trigger();
        settle();
        QVERIFY(editor()->text().starts_with("WINDOW = 128"));
        QCOMPARE(view()->lab()->sizes().heads, 64);
        QCOMPARE(view()->find(QStringLiteral("layer 1"), 1), QStringLiteral("shown"));
        settle();
        QVERIFY(editor()->text().find("WINDOW") == std::string::npos);
    }

    void runsBringProgramsAndTimes() {
        const std::string causal = "def m(b, h, q, k):\n    return q >= k\n";
        const std::string near = "def m(b, h, q, k):\n    return (q >= k) & (q - k < 100)\n";
        showBeside("near", near, "all before", causal);
        QCOMPARE(editor()->text(), near);
        QCOMPARE(view()->lab()->sizes().queries, 2048);
        QCOMPARE(view()->lab()->sizes().block, 64);
        QCOMPARE(side(0).study->title(), QStringLiteral("near"));
        QVERIFY(side(0).times.has_value() && side(1).times.has_value());
        QCOMPARE(view()->panel()->forward()->rows().size(), std::size_t(5)); // the last is a GPU's
        QVERIFY(view()->panel()->forward()->rows()[4].name.endsWith(QStringLiteral("predicted")));
        QVERIFY(view()->panel()->forward()->rows()[3].name.startsWith(QStringLiteral("Saves 30.0")));
        QCOMPARE(view()->panel()->backward()->rows().size(), std::size_t(5));
        QVERIFY(view()->panel()->against()->rows().size() >= 4);
        picture(QStringLiteral("mask-lab-measured"));
        window_->document()->swapRuns();
        settle();
        QCOMPARE(editor()->text(), causal);
        QCOMPARE(side(1).source.text, near);
        write(QString::fromStdString(causal) + QStringLiteral("# more\n"));
        QVERIFY(side(0).timesStale(view()->lab()->sizes()));
        const auto& rows = view()->panel()->forward()->rows();
        QVERIFY(
            std::ranges::none_of(rows, [](const ui::FactRow& row) { return row.name == QLatin1String("measured"); }));
        const auto& against = view()->panel()->against()->rows(); // they belong to another program
        QVERIFY(
            std::ranges::none_of(against, [](const ui::FactRow& row) { return row.name == QLatin1String("Forward"); }));
        QVERIFY(!side(1).timesStale(view()->lab()->sizes()));
    }

    /// There is no ratio to nothing: the numbers stand alone, without a sign that says neither how much nor than what.
    void noRatioToNothing() {
        const std::string causal = "def m(b, h, q, k):\n    return q >= k\n";
        const std::string dilated = "def m(b, h, q, k):\n    return (q >= k) & ((q - k) % 3 == 0)\n";
        showBeside("dilated", dilated, "causal", causal);
        const auto& rows = view()->panel()->against()->rows();
        QVERIFY(!rows.empty());
        const auto& metadata = rows.back();
        QVERIFY(metadata.values[0].text != QStringLiteral("none"));
        QCOMPARE(metadata.values[1].text, QStringLiteral("none"));
        QCOMPARE(metadata.values[2].text, QString());
        window_->document()->swapRuns();
        settle();
        QVERIFY(view()->panel()->against()->rows().back().values[2].text.startsWith(QStringLiteral("▼ 100")));
    }

    void catalogueEntriesOfRunsAreShown() {
        sessions::RunInfo run = attentionRun(1, "window", "");
        run.specJson =
            R"json({"vitrine": 1, "workload": "attention", "mask": "and_masks(sliding_window(64), causal_mask)",
                           "score": "soft_cap(30)", "random": "1,2,1,512,512,64"})json";
        window_->document()->show(QStringLiteral("s.vitrine"), {run}, {});
        window_->document()->setRunA(1);
        settle();
        const std::string text = editor()->text();
        for (const char* part : {"def sliding_window(", "def causal_mask(", "def soft_cap("}) {
            const std::size_t at = text.find(part);
            QVERIFY2(at != std::string::npos && text.find(part, at + 1) == std::string::npos, part);
        }
        QVERIFY(!side(0).study->problem);
        QCOMPARE(side(0).map->keys(), 512);
        // So is one that somebody names by hand.
        write(QStringLiteral("def m(b, h, q, k):\n    return q >= k\n"));
        emit view() -> editor()->program()->expressionsChosen(QStringLiteral("and_masks(m, strided(8))"),
                                                              QStringLiteral("None"));
        settle();
        QVERIFY(editor()->text().find("def strided(") != std::string::npos);
        QVERIFY(editor()->text().find("def m(") != std::string::npos);
    }

    void lengthsOfRequestsBecomeDocuments() {
        test::BatchTrace trace;
        trace.requests = {{0, 300, 4}, {0.1, 120, 3}, {0.2, 92, 5}};
        sessions::RunInfo run = test::runInfo(1, "batch", sessions::RunStatus::Done);
        run.workload = "batch";
        window_->document()->show(QStringLiteral("s.vitrine"), {run},
                                  {{1, test::BatchRun(trace, 2, false).timeline()}});
        window_->document()->setRunA(1);
        settle();
        emit view() -> editor()->captures()->fromRunWanted(QStringLiteral("doc_id"));
        settle();
        const std::vector<std::int64_t> wanted = {300, 120, 92};
        QCOMPARE(ui::captureLengths(side(0).source.captures.front()), wanted);
    }

    void measureStartsAnExperiment() {
        window_->document()->show(QStringLiteral("s.vitrine"), {}, {});
        settle();
        view()->controls()->measure()->click();
        QVERIFY(runs_->isRunning);
        QCOMPARE(runs_->session, QStringLiteral("s.vitrine"));
        const nlohmann::json& experiment = runs_->experiment;
        QCOMPARE(experiment["workload"].get<std::string>(), std::string("attention"));
        QCOMPARE(experiment["backend"].get<std::string>(), std::string("cpu"));
        QVERIFY(experiment["backward"].get<bool>() && experiment["compare_full"].get<bool>());
        QCOMPARE(experiment["stands_for"].get<std::string>(), std::string("1,64,8,16384,16384,64"));
        QCOMPARE(experiment["mask"].get<std::string>(), std::string("mask"));
        QVERIFY(!view()->controls()->stop()->isHidden() && !view()->controls()->measure()->isEnabled());
        emit runs_->progress(QStringLiteral("Forward"), 1, 3);
        QVERIFY(view()->panel()->hint().contains(QStringLiteral("Forward, 1 of 3")));
        runs_->end(QStringLiteral("done"), QString::fromLatin1(kMetrics));
        QVERIFY(view()->controls()->stop()->isHidden() && view()->controls()->measure()->isEnabled());
        QVERIFY(side(0).times.has_value() && !side(0).timesStale(view()->lab()->sizes()));
        QCOMPARE(side(0).run, 7);
        view()->controls()->measure()->click();
        view()->controls()->measure()->click(); // does nothing while it goes on
        QVERIFY(runs_->isRunning);
        view()->controls()->stop()->click();
        QVERIFY(!runs_->isRunning);
    }

    void arraysAreWrittenAsPyTorchHasThem() {
        write(QStringLiteral("def m(b, h, q, k):\n    return q >= k\n"));
        ui::MaskSizes sizes = view()->lab()->sizes();
        sizes.queries = sizes.keys = 500;
        view()->lab()->setSizes(sizes);
        settle();
        const QString path = folder_.filePath(QStringLiteral("mask.safetensors"));
        view()->exports()->writeArrays(side(view()->shownSide()).map, path);
        settle();
        QVERIFY(view()->readout().contains(path));
        const auto file = engine::SafetensorsFile::open(path.toStdString());
        const engine::TensorEntry* counts = file->find("kv_num_blocks");
        QVERIFY(counts != nullptr);
        std::vector<std::int32_t> values(counts->bytes / 4);
        file->read(*counts, 0, values.data(), counts->bytes);
        QCOMPARE(values, (std::vector<std::int32_t>{1, 1, 1, 4})); // the last row is cut by the length
        view()->exports()->writeArrays(side(view()->shownSide()).map, QStringLiteral("/nowhere/at/all.safetensors"));
        settle();
        QVERIFY(!view()->readout().contains(QStringLiteral("/nowhere")));
    }

    void picturesAndTables() {
        view()->perform(QStringLiteral("mask.copy-picture"));
        QVERIFY(!QGuiApplication::clipboard()->image().isNull());
        window_->actionList()->action(QStringLiteral("view.table"))->trigger();
        auto* table = view()->findChild<QTableView*>();
        QVERIFY(table != nullptr);
        QCOMPARE(table->model()->rowCount(), 128);
        QCOMPARE(table->model()->index(1, 2).data().toString(), QStringLiteral("1"));
        picture(QStringLiteral("mask-lab-table"));
        window_->actionList()->action(QStringLiteral("view.table"))->trigger();
    }

    void headsAreChosen() {
        write(QStringLiteral("def m(b, h, q, k):\n    return (q >= k) & (q - k < 128 * (h + 1))\n"));
        QVERIFY(view()->editor()->heads()->sentence().contains(QStringLiteral("its own mask")));
        emit view() -> editor()->heads()->planeChosen(0, 5);
        settle();
        QCOMPARE(side(0).map->head, 5);
        QCOMPARE(view()->find(QStringLiteral("head 7"), 1), QStringLiteral("shown"));
        QCOMPARE(side(0).map->head, 7);
        picture(QStringLiteral("mask-lab-heads"));
    }

    void smallWindowFoldsTheEditor() {
        window_->resize(1024, 700);
        QTRY_VERIFY(view()->dockTab()->isVisible());
        QVERIFY(editor()->isVisible()); // the map would not be larger without it
        picture(QStringLiteral("mask-lab-1024"));
        view()->dockTab()->click();
        QVERIFY(!editor()->isVisible());
        picture(QStringLiteral("mask-lab-1024-folded"));
        view()->dockTab()->click();
        QVERIFY(editor()->isVisible());
        window_->resize(1440, 900);
        QTRY_VERIFY(!view()->dockTab()->isVisible());
        QVERIFY(editor()->isVisible());
    }

    void tabPassesThroughThePartsInOrder() {
        write(QStringLiteral(
            "W = 8\nN = 3\ndef m(b, h, q, k):\n    return (q - k < W) & (k > N) & (doc_id[q] == doc_id[k])\n"));
        const QList<QWidget*> wanted = {view()->controls()->sides()->button(0),
                                        view()->controls()->measure(),
                                        view()->editor()->program()->catalogueButton(),
                                        editor(),
                                        view()->editor()->captures()->editor(QStringLiteral("doc_id"))->table(),
                                        view()->map(),
                                        view()->panel()->facts()};
        QList<QWidget*> met;
        int sliders = 0;
        for (QWidget* at = window_->nextInFocusChain(); at != window_.get(); at = at->nextInFocusChain()) {
            if (wanted.contains(at)) {
                met << at;
            }
            const bool between = met.size() >= 4 && met.size() < 5;
            sliders += between && at->isVisible() && qobject_cast<QSlider*>(at) != nullptr ? 1 : 0;
        }
        QCOMPARE(met, wanted);
        QCOMPARE(sliders, 2);
    }

    void keysReachEverything() {
        QVERIFY(!view()->focusStops().isEmpty());
        for (const QWidget* stop : view()->focusStops()) {
            QVERIFY(stop != nullptr);
        }
        for (int i = 0; i < 8; ++i) {
            window_->actionList()->action(QStringLiteral("panel.next"))->trigger();
            QVERIFY(QApplication::focusWidget() != nullptr);
        }
        // Letters that are commands elsewhere are text in the editor.
        editor()->setFocus();
        editor()->moveCursor(QTextCursor::End);
        QTest::keyClicks(editor(), QStringLiteral("# bxg"));
        QVERIFY(editor()->text().ends_with("# bxg"));
        for (const char* name : {"Program", "Heads"}) {
            const auto widgets = view()->findChildren<QWidget*>();
            QVERIFY(std::any_of(widgets.begin(), widgets.end(), [name](const QWidget* widget) {
                return widget->accessibleName() == QLatin1String(name);
            }));
        }
    }

    void draftsAreKept() {
        const QString settings = folder_.filePath(QStringLiteral("vitrine.ini"));
        {
            MainWindow first(nullptr, settings);
            auto* lab = static_cast<MaskLabView*>(first.view(QStringLiteral("mask")));
            lab->lab()->setSource(1,
                                  {"mine", "def mine(b, h, q, k):\n    return q == k\n", "", ui::kNoMod, {}, {}, {}});
            QVERIFY(!lab->whyNot(QStringLiteral("mask.measure")).isEmpty());
        }
        const MainWindow second(nullptr, settings);
        auto* lab = static_cast<MaskLabView*>(second.view(QStringLiteral("mask")));
        QCOMPARE(lab->lab()->side(1).source.name, std::string("mine"));
        QCOMPARE(lab->lab()->side(1).source.score, std::string(ui::kNoMod));
        QVERIFY(lab->lab()->side(0).source == ui::exampleSource(16384));
        QTRY_VERIFY_WITH_TIMEOUT(lab->lab()->settled(), 60'000);
    }
};

QTEST_MAIN(MaskLabViewTest)
#include "mask_lab_view_test.moc"

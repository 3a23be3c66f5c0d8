// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The Kernels view in its window, over a generated run, a run recorded on a GPU, and runs without kernels.
#include "ui/views/kernels/kernels_view.h"

#include <QAccessible>
#include <QCheckBox>
#include <QComboBox>
#include <QDir>
#include <QLineEdit>
#include <QPushButton>
#include <QTemporaryDir>
#include <QTest>
#include <QTreeView>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/scope_facet.h"
#include "tests/fixture_paths.h"
#include "tests/ui/models/common/patience.h"
#include "tests/ui/models/kernels/kernel_run.h"
#include "ui/views/kernels/kernel_list.h"
#include "ui/views/kernels/variants_panel.h"
#include "ui/views/shell/drawer.h"
#include "ui/views/shell/main_window.h"
#include "ui/widgets/plots/flame_plot.h"
#include "ui/widgets/plots/kernel_roofline.h"
#include "ui/widgets/timeline/trace_arrows.h"

using namespace vitrine;
using test::ns;
using ui::KernelsView;
using ui::MainWindow;

namespace {

/// Notes what it should start; a test ends it.
class NotedRuns final : public ui::RunController {
public:
    void start(const std::string& what, const QString&) override {
        experiment = nlohmann::json::parse(what);
        isRunning = true;
        emit started(2);
    }
    void stop() override {}
    bool running() const override { return isRunning; }
    quint64 price(const std::string&) override { return 0; }
    void end() {
        isRunning = false;
        emit ended(QStringLiteral("done"), {}, QStringLiteral("{}"));
    }

    nlohmann::json experiment;
    bool isRunning = false;
};

} // namespace

class KernelsViewTest final : public QObject {
    Q_OBJECT

    std::unique_ptr<NotedRuns> runs_;
    std::unique_ptr<MainWindow> window_;

    KernelsView* view() const { return static_cast<KernelsView*>(window_->view(QStringLiteral("kernels"))); }
    ui::TimeCursor* time() const { return window_->timeCursor(); }

    void picture(const QString& name) const {
        const QString folder = qEnvironmentVariable("VITRINE_TEST_PICTURES");
        if (!folder.isEmpty()) {
            QTest::qWait(30);
            QVERIFY(window_->grab().save(QDir(folder).filePath(name + QStringLiteral(".png"))));
        }
    }

    void show(std::vector<sessions::RunInfo> infos, const std::map<sessions::RunId, ui::TimelinePtr>& timelines) {
        window_->document()->show(QStringLiteral("kernels.vitrine"), std::move(infos), timelines);
        window_->openView(QStringLiteral("kernels"));
        QTRY_VERIFY(view()->settled());
    }

    ui::TracePlace kernelNamed(const QString& name, int number = 0) const {
        const auto& rows = view()->kernelLane()->track()->rows;
        for (std::size_t row = 0; row < rows.size(); ++row) {
            for (std::size_t i = 0; i < rows[row].spans.size(); ++i) {
                const auto timeline = window_->document()->timeline(window_->document()->runA()).timeline;
                if (ui::traceName(*timeline, rows[row].spans[i]) == name && number-- == 0) {
                    return {row, i};
                }
            }
        }
        return {};
    }

    static QPoint middleOf(const ui::TraceLane* lane, ui::TracePlace place) {
        return lane->spanRect(place).value_or(QRectF()).center().toPoint();
    }

    /// The first layer of the first decode step.
    void zoomToLayer() { time()->jumpTo({ns(1) - 1'000'000, ns(1.45)}); }

private slots:
    void initTestCase() { ui::Theme::instance().install(); }

    void init() {
        ui::Theme::instance().setMode(ui::Theme::Mode::Dark);
        runs_ = std::make_unique<NotedRuns>();
        window_ = std::make_unique<MainWindow>(runs_.get(), QString());
        window_->resize(1440, 900);
        window_->show();
        show({test::kernelRunInfo(1, "hopper")}, {{1, test::makeKernelRun()}});
    }

    void cleanup() {
        window_.reset();
        runs_.reset();
    }

    /// Another run is read for nobody until the view is looked at.
    void worksOnlyWhenLookedAt() {
        QVERIFY(view()->trace() != nullptr);
        window_->openView(QStringLiteral("memory"));
        window_->document()->show(QStringLiteral("other.vitrine"), {test::kernelRunInfo(2, "hopper")},
                                  {{2, test::makeKernelRun()}});
        QVERIFY(view()->trace() == nullptr); // nor is the old one kept
        QTRY_VERIFY(view()->settled());
        QVERIFY(view()->trace() == nullptr);
        window_->openView(QStringLiteral("kernels"));
        QTRY_VERIFY(view()->settled() && view()->trace() != nullptr);
        QVERIFY(view()->trace()->kernels > 0);
    }

    void lanesStandInOrder() {
        QVERIFY(!view()->emptyShown());
        QStringList shown;
        for (const ui::Lane* lane : view()->stack()->lanes()) {
            if (lane->isVisible()) {
                shown << lane->title();
            }
        }
        QCOMPARE(shown, (QStringList{"Scope", "Kernels", "Copies", "Host", "DRAM read and write (dashed)", "SM active",
                                     "Tensor pipe"}));
        QVERIFY(view()->scopeLane()->pinned());
        QVERIFY(view()->note().isEmpty());
        picture(QStringLiteral("kernels-generated"));
    }

    void clickOnAKernelLightsItsOp() {
        zoomToLayer();
        ui::TraceLane* lane = view()->kernelLane();
        lane->grab();
        const ui::TracePlace place = kernelNamed(QStringLiteral("mxfp4_down"));
        QTest::mouseClick(lane, Qt::LeftButton, {}, middleOf(lane, place));
        QVERIFY(lane->chosen() == place);
        QCOMPARE(time()->selection().scope, lane->span(place).scope);
        QCOMPARE(view()->panel()->kernel(), QStringLiteral("mxfp4_down"));
        view()->scopeLane()->grab();
        std::size_t lit = 0;
        for (const auto& arrow : view()->arrows()->arrows()) {
            lit += arrow.lit ? 1 : 0;
            QVERIFY(arrow.to.y() > arrow.from.y());
        }
        QCOMPARE(lit, std::size_t(2)); // gate_up and down
        picture(QStringLiteral("kernels-op"));
        view()->findChild<QCheckBox*>()->setChecked(false);
        QVERIFY(view()->arrows()->arrows().empty());
    }

    void bracketsWalkTheChain() {
        zoomToLayer();
        ui::TraceLane* lane = view()->kernelLane();
        const std::uint64_t op = lane->span(kernelNamed(QStringLiteral("mxfp4_gate_up"))).scope;
        QVERIFY(!view()->whyNot(QStringLiteral("select.link-next")).isEmpty());
        time()->select({0, op});
        QVERIFY(view()->whyNot(QStringLiteral("select.link-next")).isEmpty());
        QVERIFY(view()->perform(QStringLiteral("select.link-next")));
        QVERIFY(lane->chosen() == kernelNamed(QStringLiteral("mxfp4_gate_up")));
        QVERIFY(view()->perform(QStringLiteral("select.link-next")));
        QVERIFY(lane->chosen() == kernelNamed(QStringLiteral("mxfp4_down")));
        QVERIFY(view()->readout().startsWith(QStringLiteral("Kernel 2 of 2: mxfp4_down")));
        QVERIFY(view()->perform(QStringLiteral("select.link-back")));
        QVERIFY(lane->chosen() == kernelNamed(QStringLiteral("mxfp4_gate_up")));
    }

    void anAllocationLightsTheOpThatMadeIt() {
        const auto timeline = window_->document()->timeline(1).timeline;
        const profiler::AllocationRow row = timeline->memory().allocations()[0];
        time()->select({row.id, 0});
        QCOMPARE(view()->whyNot(QStringLiteral("select.link-next")).isEmpty(), false); // LmHead launched none here
        time()->setRange({ns(2.9), ns(3)});
        view()->scopeLane()->grab();
        QVERIFY(view()->trace()->placeOfScope(row.scope).has_value());
    }

    /// Whoever selects it, in this view or in another one.
    void theInspectorFollowsTheSelection() {
        const auto timeline = window_->document()->timeline(1).timeline;
        const ui::TraceLane* lane = view()->kernelLane();
        const std::uint64_t qkv = lane->span(kernelNamed(QStringLiteral("qkv_project"))).scope;
        time()->select({0, qkv});
        QCOMPARE(view()->panel()->name(), QStringLiteral("qkv_project"));
        const std::uint64_t layer = timeline->scopes().row(qkv)->parent;
        time()->select({0, layer});
        QCOMPARE(view()->panel()->name(), QStringLiteral("layer 0"));
        QVERIFY(view()->panel()->asText().contains(QStringLiteral("3, 21"))); // kernels, 21 ms of them
        const profiler::AllocationRow row = timeline->memory().allocations()[0];
        time()->select({row.id, 0});
        QCOMPARE(view()->panel()->name(), QStringLiteral("LmHead"));
        QVERIFY(view()->panel()->asText().contains(QStringLiteral("none recorded")));
        time()->select({});
        QVERIFY(view()->panel()->asText().contains(QStringLiteral("share of all kernels")));
    }

    /// A load with a kernel of its own, ten idle seconds, then two steps.
    void opensOnTheStepsAndCountsNothingElse() {
        test::RecordedRun run;
        run.span("Kernels", "convert", 0.1, 0.2, 0, 0);
        run.span("Read", "weights", 0.1, 0.2, 0, 0);
        for (int i = 0; i < 10; ++i) {
            run.counter("gpu.sm_active", i, 0);
            run.counter("gpu.tensor_active", i, 0);
        }
        for (int i = 0; i < 2; ++i) {
            const double at = 10 + 0.5 * i;
            const auto step = run.scope(base::ScopeKind::Step, "decode", at, at + 0.5, 0, i);
            const auto op = run.scope(base::ScopeKind::Op, "LmHead", at, at + 0.4, step);
            run.span("Kernels", "gemv", at + 0.1, at + 0.4, 0, op);
            run.counter("gpu.sm_active", at + 0.2, 0.75);
        }
        run.counter("gpu.sm_active", 12, 0);
        show({test::kernelRunInfo(5, "hopper")}, {{5, run.timeline()}});
        QTRY_COMPARE(time()->range().begin, ns(10));
        QCOMPARE(time()->range().end, ns(11));
        const auto lane = [this](const char* title) {
            const auto& lanes = view()->stack()->lanes();
            return *std::ranges::find_if(lanes,
                                         [&](const ui::Lane* one) { return one->title() == QLatin1String(title); });
        };
        time()->jumpTo(time()->extent());
        QTRY_VERIFY(lane("SM active")->facts().contains(QStringLiteral("mean 75")));
        QVERIFY(!lane("SM active")->collapsed());
        QVERIFY(lane("Tensor pipe")->collapsed()); // it has no sample of the work
        QVERIFY(lane("Host")->collapsed());
        QVERIFY(!lane("Tensor pipe")->facts().contains(QStringLiteral("0.0")));
    }

    void keysWalkAndAreSpoken() {
        zoomToLayer();
        ui::TraceLane* lane = view()->kernelLane();
        lane->setFocus();
        QVERIFY(lane->step(1));
        const auto first = lane->chosen();
        QVERIFY(first.has_value());
        QVERIFY(view()->perform(QStringLiteral("select.next")));
        QVERIFY(lane->chosen() != first);
        QVERIFY(view()->perform(QStringLiteral("select.previous")));
        QVERIFY(lane->chosen() == first);
        QAccessibleInterface* accessible = QAccessible::queryAccessibleInterface(lane);
        QVERIFY(accessible != nullptr);
        QCOMPARE(accessible->role(), QAccessible::Chart);
        QCOMPARE(accessible->text(QAccessible::Name), QStringLiteral("Kernels"));
        QVERIFY(accessible->text(QAccessible::Value).contains(QStringLiteral("step")) ||
                accessible->text(QAccessible::Value).contains(QStringLiteral("decode")));
        const ui::TimeRange before = time()->range();
        QTest::keyClick(lane, Qt::Key_W);
        QVERIFY(time()->range().length() < before.length());
        view()->scopeLane()->setFocus();
        QTest::keyClick(view()->scopeLane(), Qt::Key_Down);
        QVERIFY(lane->hasFocus());
    }

    void eventsGiveEveryKernelTheSameRoom() {
        view()->stack()->setAxisKind(ui::AxisKind::Events);
        const ui::AxisMap& axis = view()->stack()->axis();
        QCOMPARE(axis.lastEvent() - axis.firstEvent(), std::uint64_t(14));
        const auto& begins = view()->trace()->eventBegins;
        const double room = axis.width() / 14;
        for (std::size_t i = 1; i < begins.size(); ++i) {
            QVERIFY(std::abs(axis.x(begins[i]) - room * static_cast<double>(i)) < 2);
        }
    }

    void pointerAndRangeAreRead() {
        zoomToLayer();
        ui::TraceLane* lane = view()->kernelLane();
        lane->grab();
        QTest::mouseMove(lane, middleOf(lane, kernelNamed(QStringLiteral("mxfp4_gate_up"))));
        QTRY_VERIFY(view()->readout().startsWith(QStringLiteral("mxfp4_gate_up, 10")));
        QVERIFY(view()->readout().contains(QStringLiteral("ExpertMlp")));
        time()->setMeasured(ui::TimeRange{ns(1), ns(2)});
        QVERIFY(view()->readout().contains(QStringLiteral("6 kernels")));
    }

    void searchFindsKernelsAndOps() {
        QCOMPARE(view()->find(QStringLiteral("mxfp4_down"), 0), QStringLiteral("0 of 4"));
        QCOMPARE(view()->find(QStringLiteral("mxfp4_down"), 1), QStringLiteral("2 of 4"));
        QVERIFY(time()->selection().scope != 0);
        QCOMPARE(view()->find(QStringLiteral("EXPERT"), 0), QStringLiteral("0 of 4"));
        QCOMPARE(view()->find(QStringLiteral("zzz"), 0), QStringLiteral("none"));
        QCOMPARE(view()->find(QString(), 0), QString());
    }

    void tableFollowsRangeAndFilter() {
        view()->perform(QStringLiteral("kernels.table"));
        QCOMPARE(view()->page(), KernelsView::Table);
        QTRY_VERIFY(view()->settled());
        ui::KernelList* list = view()->list();
        QCOMPARE(list->model()->rowCount(), 5); // four kernels and the sum
        list->filter()->setText(QStringLiteral("mlp"));
        QCOMPARE(list->model()->rowCount(), 3);
        list->filter()->setText(QStringLiteral("no such thing"));
        QCOMPARE(list->model()->rowCount(), 0);
        QVERIFY(!list->table()->isVisible());
        list->filter()->clear();
        QVERIFY(list->table()->isVisible());
        time()->setMeasured(ui::TimeRange{0, ns(0.95)});
        QTRY_COMPARE(list->model()->rowCount(), 1);
        time()->setMeasured({});
        QTRY_COMPARE(list->model()->rowCount(), 5);
        list->table()->sortByColumn(ui::KernelName, Qt::AscendingOrder);
        QCOMPARE(list->model()->index(0, 0).data().toString(), QStringLiteral("mxfp4_down"));
        QVERIFY(list->text().contains(QStringLiteral("qkv_project")));
        picture(QStringLiteral("kernels-table"));
    }

    void flameZoomsAndComesBack() {
        view()->perform(QStringLiteral("kernels.flame"));
        QTRY_VERIFY(view()->settled());
        ui::FlamePlot* flame = view()->flame();
        flame->grab();
        flame->setFocus();
        QTest::keyClick(flame, Qt::Key_Down); // the root
        QTest::keyClick(flame, Qt::Key_Down); // its largest child
        QVERIFY(flame->spoken().startsWith(QStringLiteral("prefill: 600")));
        QTest::keyClick(flame, Qt::Key_Return);
        QVERIFY(flame->zoomed() > 0);
        QTest::keyClick(flame, Qt::Key_Backspace);
        QCOMPARE(flame->zoomed(), std::size_t(0));
        picture(QStringLiteral("kernels-flame"));
        QVERIFY(view()->perform(QStringLiteral("view.table")));
        QVERIFY(view()->header()->tableShown());
    }

    void comparisonStartsTheSameExperimentWithAnotherVariant() {
        view()->perform(QStringLiteral("kernels.variants"));
        ui::VariantsPanel* page = view()->variants();
        QTRY_VERIFY(page->button()->isVisible());
        page->table()->setCurrentIndex(page->table()->model()->index(0, 0));
        for (int i = 0; i < page->table()->model()->rowCount(); ++i) {
            const QModelIndex index = page->table()->model()->index(i, 0);
            if (index.data().toString() == QLatin1String("expert_gemm")) {
                page->table()->setCurrentIndex(index);
            }
        }
        QVERIFY(page->whyNot().isEmpty());
        page->candidates()->setCurrentIndex(page->candidates()->findText(QStringLiteral("builtin/portable")));
        picture(QStringLiteral("kernels-variants"));
        QTest::mouseClick(page->button(), Qt::LeftButton);
        QVERIFY(runs_->running());
        QVERIFY(runs_->experiment["kernel"] ==
                nlohmann::json::parse(R"(["Route=builtin/block", "expert_gemm=builtin/portable"])"));
        QVERIFY(!page->whyNot().isEmpty());
        runs_->end();
        // The new run comes into the list a moment later.
        show({test::kernelRunInfo(1, "hopper"), test::kernelRunInfo(2, "portable")},
             {{1, test::makeKernelRun()}, {2, test::makeKernelRun(2)}});
        QCOMPARE(window_->document()->runA(), sessions::RunId(1));
        QCOMPARE(window_->document()->runB(), sessions::RunId(2));
        QTRY_COMPARE(page->table()->model()->columnCount(), ui::VariantDelta + 1);
        picture(QStringLiteral("kernels-variants-ab"));
    }

    void processorRunsShowOpsAndSimd() {
        sessions::RunInfo info = test::runInfo(3, "generate", "{}", R"({"simd": "auto"})");
        info.environmentJson = R"({"backend": "cpu", "cpu": "Xeon", "simd": "cpu-avx2"})";
        show({info}, {{3, test::makeCpuRun()}});
        QVERIFY(view()->note().startsWith(QStringLiteral("Kernels are recorded on a GPU.")));
        QVERIFY(view()->scopeLane()->isVisible());
        QVERIFY(!view()->kernelLane()->isVisible());
        picture(QStringLiteral("kernels-cpu"));
        view()->showPage(KernelsView::Variants);
        QTRY_COMPARE(view()->variants()->table()->model()->rowCount(), 1);
        QCOMPARE(view()->variants()->candidates()->count(), 1); // scalar; avx2 is in use
        view()->showPage(KernelsView::Table);
        QTRY_VERIFY(view()->settled());
        QVERIFY(!view()->list()->table()->isVisible());
        picture(QStringLiteral("kernels-cpu-table"));
    }

    void nothingIsSaidInWords() {
        test::RecordedRun nothing;
        show({test::runInfo(4, "generate", "{}")}, {{4, nothing.timeline()}});
        QTRY_VERIFY(view()->emptyShown());
        QVERIFY(view()->emptyText().contains(QStringLiteral("profile set to full")));
        picture(QStringLiteral("kernels-nothing"));
        window_->document()->close();
        QVERIFY(view()->emptyText().startsWith(QStringLiteral("No session is open.")));
        view()->perform(QStringLiteral("select.next")); // and nothing falls over
        view()->perform(QStringLiteral("select.link-next"));
        for (int page = 0; page < 4; ++page) {
            view()->showPage(static_cast<KernelsView::Page>(page));
        }
    }

    void drawerListsKernelsToo() {
        window_->actionList()->action(QStringLiteral("panel.drawer"))->trigger();
        auto* drawer = window_->findChild<ui::Drawer*>();
        QVERIFY(drawer != nullptr);
        drawer->setCurrentWidget(drawer->kernels());
        QTRY_COMPARE(drawer->kernels()->model()->rowCount(), 5);
        const QModelIndex row = drawer->kernels()->model()->index(0, 0);
        QTest::mouseClick(drawer->kernels()->table()->viewport(), Qt::LeftButton, {},
                          drawer->kernels()->table()->visualRect(row).center());
        QVERIFY(time()->selection().scope != 0);
        picture(QStringLiteral("kernels-drawer"));
    }

    void recordedRunsOpen() {
        // A session that is open is written to: a copy.
        const QTemporaryDir folder;
        const QString path = folder.filePath(QStringLiteral("kernels-h200.vitrine"));
        QVERIFY(QFile::copy(QString::fromStdString(test::fixture("sessions/kernels-h200.vitrine")), path));
        window_->document()->open(path);
        QTRY_VERIFY(window_->document()->runs().size() == 2 && view()->settled() && view()->trace() != nullptr &&
                    view()->trace()->kernels > 0);
        window_->document()->setRunB(1);
        QCOMPARE(view()->trace()->kernels, std::uint64_t(1136));
        QVERIFY(view()->trace()->projected > 0);
        QTRY_VERIFY(view()->settled() && view()->panel()->roofline()->dots().size() > 3);
        view()->showPage(KernelsView::Variants);
        QTRY_COMPARE(view()->variants()->table()->model()->columnCount(), ui::VariantDelta + 1);
        view()->showPage(KernelsView::Trace);
        const auto& rows = view()->kernelLane()->track()->rows;
        const ui::TraceSpan& last = rows.front().spans[rows.front().spans.size() / 2];
        time()->jumpTo({last.begin - 60'000, last.begin + 60'000});
        time()->select({0, last.scope});
        for (const auto mode : {ui::Theme::Mode::Dark, ui::Theme::Mode::Light}) {
            ui::Theme::instance().setMode(mode);
            for (const QSize size : {QSize(1440, 900), QSize(1024, 700)}) {
                window_->resize(size);
                const QString name = mode == ui::Theme::Mode::Dark ? QStringLiteral("dark") : QStringLiteral("light");
                for (int page = 0; page < 4; ++page) {
                    view()->showPage(static_cast<KernelsView::Page>(page));
                    QTRY_VERIFY(view()->settled());
                    picture(QStringLiteral("recorded-%1-%2-%3").arg(size.width()).arg(page).arg(name));
                }
            }
        }
        // The smallest window that must show the main plot.
        view()->showPage(KernelsView::Trace);
        QVERIFY(view()->stack()->width() >= 900);
        QVERIFY(!view()->kernelLane()->collapsed() && !view()->scopeLane()->collapsed());
        QVERIFY(view()->kernelLane()->geometry().bottom() <= view()->stack()->height());
        window_->document()->close();
    }
};

QTEST_MAIN(KernelsViewTest)
#include "kernels_view_test.moc"

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The KV cache view: the formula, the measured points, the curve's cursor by mouse and keys, and its table twins.
#include "ui/views/kv_cache/kv_view.h"

#include <QAbstractItemModelTester>
#include <QAccessible>
#include <QCheckBox>
#include <QSignalSpy>
#include <QTableView>
#include <QTest>
#include <nlohmann/json.hpp>

#include "tests/ui/models/common/patience.h"
#include "tests/ui/models/kv_cache/kv_run.h"
#include "tests/ui/models/session/recorded_run.h"
#include "ui/models/batching/request_choice.h"
#include "ui/models/common/format.h"
#include "ui/models/kv_cache/kv_pages.h"
#include "ui/models/kv_cache/kv_tables.h"
#include "ui/views/kv_cache/kv_pool_panel.h"
#include "ui/widgets/plots/bar_plot.h"
#include "ui/widgets/plots/chart.h"
#include "ui/widgets/plots/fact_table.h"
#include "ui/widgets/plots/layer_plot.h"
#include "ui/widgets/plots/page_map.h"

using namespace vitrine;
using test::generateRun;
using test::kToken;

namespace {

/// Pages of 64 tokens for full layers, a ring of 127 tokens for sliding ones.
ui::TimelinePtr growth(int tokens) {
    test::RecordedRun run;
    for (int t = 1; t <= tokens; ++t) {
        const double time = 0.001 * t;
        run.counter("kv_bytes.full", time, static_cast<double>((t + 63) / 64 * 64) * kToken);
        run.counter("kv_bytes.sliding", time, 127.0 * kToken);
        run.counter("kv_tokens", time, t);
    }
    return run.timeline();
}

/// The same with the blocks of the pages.
ui::TimelinePtr growthInPages(int tokens) {
    test::RecordedRun run;
    run.alloc(base::MemoryCategory::Weights, "lm_head", 1e6, 0, -1);
    run.alloc(base::MemoryCategory::KvCache, "kv_cache.sliding", 127.0 * kToken, 0.001, -1);
    for (int page = 0; page * 64 < tokens; ++page) {
        run.alloc(base::MemoryCategory::KvCache, "kv_cache.full", 64.0 * kToken, 0.001 * (page * 64 + 1), -1);
    }
    for (int t = 1; t <= tokens; ++t) {
        run.counter("kv_bytes.full", 0.001 * t, static_cast<double>((t + 63) / 64 * 64) * kToken);
        run.counter("kv_tokens", 0.001 * t, t);
    }
    return run.timeline();
}

} // namespace

class KvViewTest final : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() { ui::Theme::instance().install(); }

    void formula() {
        const auto geometry = ui::kvGeometry(generateRun(true));
        QVERIFY(geometry);
        QCOMPARE(geometry->window(), 128);
        QCOMPARE(geometry->full(1000), 1000 * kToken);
        QCOMPARE(geometry->sliding(100), 100 * kToken);
        QCOMPARE(geometry->sliding(127), 127 * kToken);
        QCOMPARE(geometry->sliding(1000), 127 * kToken);
        QCOMPARE(geometry->noWindow(1000), 2000 * kToken);
        QCOMPARE(geometry->groups.front().name, QStringLiteral("full"));
    }

    void sequencesShareTokens() {
        const auto geometry = ui::kvGeometry(generateRun(true, 4));
        QVERIFY(geometry);
        QCOMPARE(geometry->sliding(4000), 4 * 127 * kToken);
        QCOMPARE(geometry->full(4000), 4000 * kToken);
        QCOMPARE(geometry->knee(), 4 * 127.0);
    }

    void damagedMetrics_data() {
        QTest::addColumn<QByteArray>("metrics");
        QTest::newRow("none") << QByteArray("{}");
        QTest::newRow("text") << QByteArray("no json");
        QTest::newRow("list") << QByteArray(R"({"kv_cache": []})");
        QTest::newRow("rows") << QByteArray(R"({"kv_cache": {"groups": [1, "x", {}, {"bytes_per_token": -4}]}})");
        QTest::newRow("huge") << QByteArray(R"({"kv_cache": {"groups": [{"bytes_per_token": 1e300}]}})");
    }

    void damagedMetrics() {
        QFETCH(QByteArray, metrics);
        sessions::RunInfo run = generateRun(false);
        run.metricsJson = metrics.toStdString();
        QVERIFY(!ui::kvGeometry(run));
    }

    void heldKeptAndRounding() {
        const auto timeline = growth(1000);
        const ui::KvSummary facts = ui::kvSummary(generateRun(true), timeline.get());
        QCOMPARE(facts.maxTokens(), 1000);
        QCOMPARE(facts.samples.back().full, 1024 * kToken);
        QCOMPARE(facts.samples.back().sliding, 127 * kToken);
        QCOMPARE(facts.geometry->kept(1000), (1000 + 127) * kToken);
        QCOMPARE(facts.geometry->pages(1000), (1024 + 127) * kToken);
        QCOMPARE(facts.unexplained(facts.samples.back()), std::optional<std::int64_t>(0));
        ui::KvSample odd = facts.samples.back();
        odd.full += 5;
        QCOMPARE(facts.unexplained(odd), std::optional<std::int64_t>(5));
        QCOMPARE(facts.at(-5).tokens, facts.samples.front().tokens);
        QCOMPARE(facts.at(1'000'000).tokens, 1000);
        QCOMPARE(ui::thinned(facts.samples, 10).size(), std::size_t(10));
        QCOMPARE(ui::thinned(facts.samples, 10).back().tokens, 1000);
    }

    /// Sequences of the cache are used again: whose page it is follows the admissions.
    void pagesNameTheirRequests() {
        test::RecordedRun run;
        const auto admit = [&](int request, base::TimeNs time) {
            run.record(base::RequestEvent{time, request, base::RequestChange::Arrived, -1, -1, 100, {}});
            // Sessions of earlier versions have the sequence as the text of the reason.
            run.record(request == 12
                           ? base::RequestEvent{time, request, base::RequestChange::Admitted, 0, 0, 0, run.word("5")}
                           : base::RequestEvent{time, request, base::RequestChange::Admitted, 0, 0, 0, {}, 5});
        };
        run.counter("kv_tokens", 1.2e-8, 100);
        run.counter("kv_bytes.full", 1.2e-8, 128.0 * kToken);
        admit(12, 10);
        run.record(base::KvPageEvent{10, 1, 0, base::PageState::Used, 5, 1});
        run.record(base::KvPageEvent{10, 1, 1, base::PageState::Used, 5, 1});
        run.record(base::KvPageEvent{15, 1, 0, base::PageState::Used, 5, 2});
        run.record(base::RequestEvent{20, 12, base::RequestChange::Finished, 0, 0, 1, {}});
        admit(13, 20);
        run.record(base::KvPageEvent{20, 1, 0, base::PageState::Used, 5, 1}); // somebody else holds it still
        run.record(base::KvPageEvent{20, 1, 1, base::PageState::Used, 5, 1}); // taken anew
        run.record(base::KvPageEvent{20, 1, 2, base::PageState::Used, 7, 1}); // of no request, padding for instance
        run.record(base::KvPageEvent{40, 0, 0, base::PageState::Free, -1, 0});
        const auto timeline = run.timeline();
        const auto pool = ui::KvPool::make(generateRun(true), *timeline);
        const auto before = pool->at(15)[1], after = pool->at(20)[1];
        QCOMPARE(before[0].request, 12);
        QCOMPARE(before[1].request, 12);
        QCOMPARE(after[0].request, 12);
        QCOMPARE(after[1].request, 13);
        QCOMPARE(after[2].request, -1);
        QCOMPARE(ui::kvPoolWho(*pool, after[1]), QStringLiteral("request 13"));
        QCOMPARE(ui::kvPoolWho(*pool, after[2]), QStringLiteral("padding"));
        const QString words = ui::kvPoolPageText(*pool, 1, 0, before[0], 15);
        for (const char* part : {"5 full layers", "request 12 (prompt 100", "held by 2", "64 tokens", "1.5"}) {
            QVERIFY2(words.contains(QString::fromLatin1(part)), qPrintable(words));
        }
        const ui::FlatTreePtr owners = ui::kvPoolOwners(*pool, 15);
        QCOMPARE(owners->nodes.size(), std::size_t(1));
        QCOMPARE(owners->nodes[0].key, quint64(13)); // the request + 1
        QCOMPARE(owners->nodes[0].cells[3].raw, QString::number(2 * 64 * kToken));
        QVERIFY(ui::kvPoolRequestTable(*pool, 12, 15) != nullptr);
        QVERIFY(ui::kvPoolRequestTable(*pool, 99, 15) == nullptr);

        // A click on a page chooses its request, for all views, and says what it holds.
        ui::SessionDocument document;
        ui::TimeCursor time;
        time.reset({0, 50});
        ui::KvView view({&document, &time, nullptr, nullptr});
        view.resize(1080, 820);
        view.show();
        document.show(QStringLiteral("x.vitrine"), {generateRun(true)}, {{1, timeline}});
        QTRY_VERIFY(view.settled());
        view.segments()->setCurrent(1);
        time.setCursor(15);
        ui::PageMap* map = view.poolView()->map();
        QTRY_VERIFY(map->isVisible() && map->height() > 100);
        QTest::mouseClick(map, Qt::LeftButton, {}, map->cellRect(map->layoutFor(map->size()), 1, 1).center().toPoint());
        QCOMPARE(ui::RequestChoice::of(&time).request(), 12);
        QVERIFY(view.chosen()->isVisibleTo(view.inspector()));
    }

    void showsPool() {
        test::RecordedRun run;
        run.counter("kv_tokens", 0.001, 64);
        run.counter("kv_bytes.full", 0.001, 64.0 * kToken);
        for (int i = 0; i < 6; ++i) {
            run.record(
                base::KvPageEvent{test::ns(0.001 * (i + 1)), 1, i, base::PageState::Used, i / 2, i == 3 ? 2 : 1});
        }
        run.record(base::KvPageEvent{test::ns(0.01), 1, 0, base::PageState::Cached, -1, 0});
        const auto timeline = run.timeline();
        ui::SessionDocument document;
        ui::TimeCursor time;
        time.reset({0, test::ns(0.012)});
        ui::KvView view({&document, &time, nullptr, nullptr});
        view.resize(1080, 820);
        view.show();
        document.show(QStringLiteral("x.vitrine"), {generateRun(true)}, {{1, timeline}});
        QTRY_VERIFY(view.settled());
        view.segments()->setCurrent(1);
        QVERIFY(view.pool() != nullptr);
        QVERIFY(view.poolView()->isVisible());
        QCOMPARE(view.poolView()->moment(), test::ns(0.006));
        QVERIFY(view.perform(QStringLiteral("select.next")));
        QCOMPARE(*time.cursor(), test::ns(0.01));
        QVERIFY(view.perform(QStringLiteral("select.previous")));
        QCOMPARE(*time.cursor(), test::ns(0.006));
        QCOMPARE(view.values()->model()->index(1, 1).data().toString(), QStringLiteral("1")); // shared
        view.poolView()->setPlaying(true);
        QTRY_VERIFY(*time.cursor() > test::ns(0.006));
        view.poolView()->setPlaying(false);
        QVERIFY(!view.poolView()->playing());
    }

    /// A batch: what layers hold and the curve's table follow the time.
    void layersOfABatch() {
        test::RecordedRun run;
        run.record(base::RequestEvent{test::ns(0.001), 0, base::RequestChange::Arrived, -1, -1, 100, {}});
        run.record(base::RequestEvent{test::ns(0.002), 0, base::RequestChange::Admitted, 0, 0, 0, {}});
        run.counter("kv_tokens", 0.003, 100);
        run.counter("kv_bytes.full", 0.003, 128.0 * kToken);
        run.record(base::KvPageEvent{test::ns(0.002), 1, 0, base::PageState::Used, 0, 1});
        run.record(base::KvPageEvent{test::ns(0.002), 1, 1, base::PageState::Used, 0, 1});
        run.record(base::KvPageEvent{test::ns(0.002), 0, 0, base::PageState::Used, 0, 1});
        run.record(base::RequestEvent{test::ns(0.005), 0, base::RequestChange::Finished, 0, 0, 1, {}});
        run.record(base::KvPageEvent{test::ns(0.005), 1, 1, base::PageState::Free, -1, 0});
        run.record(base::KvPageEvent{test::ns(0.010), 1, 0, base::PageState::Free, -1, 0});
        const auto timeline = run.timeline();
        ui::SessionDocument document;
        ui::TimeCursor time;
        time.reset({0, test::ns(0.012)});
        ui::KvView view({&document, &time, nullptr, nullptr});
        view.resize(1000, 700);
        view.show();
        document.show(QStringLiteral("x.vitrine"), {generateRun(true)}, {{1, timeline}});
        QTRY_VERIFY(view.settled() && view.pool() != nullptr);
        view.segments()->setCurrent(2);
        const QAbstractItemModel* layers = view.layerTable()->model();
        QCOMPARE(layers->rowCount(), 2);
        const auto measuredFull = [&] { return layers->index(0, 5).data(ui::RawRole).toString(); };
        QCOMPARE(measuredFull(), QString::number(128 * kToken));
        QCOMPARE(layers->index(0, 6).data(ui::RawRole).toString(), QString::number(100 * kToken));
        QCOMPARE(layers->index(1, 5).data(ui::RawRole).toString(), QString::number(127 * kToken));
        QCOMPARE(layers->index(1, 7).data(ui::RawRole).toString(), QString::number(100 * kToken));
        time.setCursor(test::ns(0.007));
        QTRY_COMPARE(measuredFull(), QString::number(64 * kToken));
        const ui::FlatTreePtr samples = ui::kvPoolSampleTable(*view.pool(), 11);
        QCOMPARE(samples->nodes.size(), std::size_t(11));
        QCOMPARE(samples->columns[0].title, QStringLiteral("Time"));
        view.segments()->setCurrent(0);
        view.header()->setTableShown(true);
        QCOMPARE(view.sampleTable()->model()->headerData(0, Qt::Horizontal).toString(), QStringLiteral("Time"));
        QCOMPARE(view.sampleTable()->model()->rowCount(), 500);
    }

    /// A server that nobody asked anything: the reason, and no table of nothing beside it.
    void noRequestNoTable() {
        sessions::RunInfo info = generateRun(true);
        info.workload = "serve";
        nlohmann::json metrics = nlohmann::json::parse(info.metricsJson);
        metrics["requests"] = 0;
        info.metricsJson = metrics.dump();
        test::RecordedRun run;
        run.alloc(base::MemoryCategory::Weights, "lm_head", 1e6, 0, -1);
        ui::SessionDocument document;
        ui::TimeCursor time;
        ui::KvView view({&document, &time, nullptr, nullptr});
        view.resize(1000, 700);
        view.show();
        document.show(QStringLiteral("x.vitrine"), {info}, {{1, run.timeline()}});
        QTRY_VERIFY(view.settled());
        QTRY_VERIFY(view.emptyText().contains(QStringLiteral("No request came while it went on.")));
        QVERIFY(!view.values()->isVisibleTo(view.inspector()));
    }

    void layerNames() {
        QCOMPARE(ui::layerListText({0, 1, 2, 3, 4}), QStringLiteral("0 to 4"));
        QCOMPARE(ui::layerListText({0, 2, 4, 6, 8}), QStringLiteral("0, 2, … 8"));
        QCOMPARE(ui::layerListText({3, 7}), QStringLiteral("3, 7"));
        QCOMPARE(ui::layerListText({}), QString());
    }

    void models() {
        const auto timeline = growth(300);
        const ui::KvSummary facts = ui::kvSummary(generateRun(true), timeline.get());
        ui::FlatTreeModel samples, layers;
        QAbstractItemModelTester a(&samples), b(&layers);
        samples.setTree(ui::kvSampleTable(facts));
        layers.setTree(ui::kvLayerTable(facts, ui::kvGroupBytes(facts, 300)));
        QCOMPARE(samples.rowCount(), 300);
        QCOMPARE(layers.rowCount(), 2);
        QCOMPARE(layers.index(1, 5).data(ui::RawRole).toString(), QString::number(127 * kToken));
        samples.sort(0, Qt::DescendingOrder);
        QCOMPARE(samples.index(0, 0).data().toString(), QStringLiteral("300"));
    }

    void showsCurve() {
        ui::SessionDocument document;
        ui::TimeCursor time;
        ui::KvView view({&document, &time, nullptr, nullptr});
        view.resize(1080, 820);
        view.show();
        QVERIFY(view.emptyShown());
        const auto timeline = growth(1000);
        document.show(QStringLiteral("x.vitrine"), {generateRun(true)}, {{1, timeline}});
        QTRY_VERIFY(view.settled());
        QVERIFY(!view.emptyShown());
        QCOMPARE(view.chart()->seriesCount(), std::size_t(5)); // two areas, two lines, dots
        const QWidget* inspector = view.inspector();
        QVERIFY(inspector != nullptr);
        QCOMPARE(view.values()->model()->index(2, 1).data().toString(), ui::bytesText((1024 + 127) * kToken));

        // Where the formula bends: the mark of the window stands at the kept tokens.
        QTRY_VERIFY(view.chart()->plotArea().width() > 600);
        QTest::qWait(50); // Qt Charts lays its labels out when it paints
        const QPointF at = view.chart()->place({500, 0});
        QTest::mouseMove(view.chart(), QPointF(at.x(), view.chart()->plotArea().center().y()).toPoint());
        QTRY_VERIFY(view.chart()->cursor().has_value());
        QVERIFY2(std::abs(*view.chart()->cursor() - 500) < 3, qPrintable(QString::number(*view.chart()->cursor())));
        QVERIFY(view.readout().contains(QStringLiteral("tokens")));
        view.chart()->setFocus();
        QTest::keyClick(view.chart(), Qt::Key_End);
        QCOMPARE(*view.chart()->cursor(), 1000.0);
        QTest::keyClick(view.chart(), Qt::Key_Left);
        QCOMPARE(*view.chart()->cursor(), 999.0);
        QTest::keyClick(view.chart(), Qt::Key_Escape);
        QVERIFY(!view.chart()->cursor());
    }

    void checksTakeLinesAway() {
        ui::SessionDocument document;
        ui::TimeCursor time;
        ui::KvView view({&document, &time, nullptr, nullptr});
        view.show();
        const auto timeline = growth(1000);
        document.show(QStringLiteral("x.vitrine"), {generateRun(true)}, {{1, timeline}});
        QTRY_VERIFY(view.settled());
        const auto checks = view.header()->findChildren<QCheckBox*>();
        QCOMPARE(checks.size(), 3); // the third replays a pool
        QTest::mouseClick(checks[1], Qt::LeftButton, {}, QPoint(6, checks[1]->height() / 2));
        QCOMPARE(view.chart()->seriesCount(), std::size_t(4));
        QTest::mouseClick(checks[0], Qt::LeftButton, {}, QPoint(6, checks[0]->height() / 2));
        QCOMPARE(view.chart()->seriesCount(), std::size_t(3));
    }

    void withoutGeometry() {
        ui::SessionDocument document;
        ui::TimeCursor time;
        ui::KvView view({&document, &time, nullptr, nullptr});
        view.show();
        const auto timeline = growth(40);
        document.show(QStringLiteral("x.vitrine"), {generateRun(false)}, {{1, timeline}});
        QTRY_VERIFY(view.settled());
        QVERIFY(!view.emptyShown());
        QCOMPARE(view.chart()->seriesCount(), std::size_t(3));
    }

    void saysWhyEmpty() {
        ui::SessionDocument document;
        ui::TimeCursor time;
        ui::KvView view({&document, &time, nullptr, nullptr});
        view.show();
        sessions::RunInfo load = generateRun(false);
        load.workload = "load";
        test::RecordedRun recorded;
        recorded.alloc(base::MemoryCategory::Weights, "w", 1000, 0, -1);
        const ui::TimelinePtr timeline = recorded.timeline();
        sessions::RunInfo generate = generateRun(true);
        generate.id = 2;
        document.show(QStringLiteral("x.vitrine"), {generate, load}, {{1, timeline}, {2, growth(20)}});
        document.setRunA(1);
        QTRY_VERIFY(view.settled());
        QVERIFY(view.emptyText().contains(QStringLiteral("A load keeps none")));
    }

    void tableTwin() {
        ui::SessionDocument document;
        ui::TimeCursor time;
        ui::KvView view({&document, &time, nullptr, nullptr});
        view.show();
        document.show(QStringLiteral("x.vitrine"), {generateRun(true)}, {{1, growth(50)}});
        QTRY_VERIFY(view.settled());
        QVERIFY(view.perform(QStringLiteral("view.table")));
        auto* table = qobject_cast<QTableView*>(view.focusStops().value(0));
        QVERIFY(table != nullptr && table->isVisible());
        QCOMPARE(table->model()->rowCount(), 50);
    }

    /// The labels of the run before do not stay under those of this one.
    void axesAreThoseOfTheRun() {
        const auto picture = [](bool before) {
            ui::SessionDocument document;
            ui::TimeCursor time;
            ui::KvView view({&document, &time, nullptr, nullptr});
            view.resize(1000, 700);
            view.show();
            sessions::RunInfo first = generateRun(true), second = generateRun(true);
            first.id = 1;
            second.id = 2;
            if (before) {
                document.show(QStringLiteral("x.vitrine"), {first}, {{1, growth(37)}});
                static_cast<void>(QTest::qWaitFor([&] { return view.settled(); }, test::kPatienceMs));
            }
            document.show(QStringLiteral("x.vitrine"), {second}, {{2, growth(1000)}});
            static_cast<void>(QTest::qWaitFor([&] { return view.settled(); }, test::kPatienceMs));
            return view.picture({1000, 700}, 1);
        };
        QCOMPARE(picture(true), picture(false));
    }

    void layersAreBars() {
        ui::SessionDocument document;
        ui::TimeCursor time;
        ui::KvView view({&document, &time, nullptr, nullptr});
        view.resize(1000, 700);
        view.show();
        document.show(QStringLiteral("x.vitrine"), {generateRun(true)}, {{1, growth(1000)}});
        QTRY_VERIFY(view.settled());
        QTest::mouseClick(view.segments()->button(2), Qt::LeftButton);
        ui::LayerPlot* bars = view.bars();
        QTRY_VERIFY(bars->isVisible() && bars->height() > 300);
        const QRectF second = bars->rowRect(1, bars->size());
        QTest::mouseMove(bars, second.center().toPoint());
        QTRY_VERIFY2(view.readout().contains(QStringLiteral("Layer 1")), qPrintable(view.readout()));
        bars->setFocus();
        QTest::keyClick(bars, Qt::Key_Up);
        QVERIFY2(view.readout().contains(QStringLiteral("Layer 0")), qPrintable(view.readout()));
        QTest::keyClick(bars, Qt::Key_Escape);
        QVERIFY(view.readout().isEmpty());
        // A full layer's bar is as long as the scale, in the colour of the category.
        const QImage image = bars->picture(bars->size(), 1);
        const QColor fill = ui::themeTokens().category(base::MemoryCategory::KvCache).fill;
        bool full = false;
        for (std::size_t i = 0; i < 4; ++i) {
            const QRectF row = bars->rowRect(i, bars->size());
            full = full || image.pixelColor(QPointF(row.right() - 40, row.center().y()).toPoint()) == fill;
        }
        QVERIFY(full);
    }

    void pagesOfGroups() {
        const auto timeline = growthInPages(1000);
        const ui::KvSummary facts = ui::kvSummary(generateRun(true), timeline.get());
        const ui::KvPages pages = ui::kvPages(facts, *timeline, facts.at(1000));
        QCOMPARE(pages.groups.size(), std::size_t(2));
        QCOMPARE(pages.groups.front().name, QStringLiteral("full"));
        QCOMPARE(pages.count(0), std::size_t(16));
        QCOMPARE(pages.count(1), std::size_t(1));
        QCOMPARE(*pages.pages[14].used, 1.0);
        QCOMPARE(*pages.pages[15].used, (1000 - 15 * 64) / 64.0);
        QCOMPARE(*pages.pages[16].used, 1.0); // the ring keeps 127 tokens
        QCOMPARE(ui::kvPages(facts, *timeline, facts.at(100)).count(0), std::size_t(2));
        QVERIFY(ui::kvPageText(pages, *timeline, 15).startsWith(QStringLiteral("Page 15, full: 64 tokens, 1.5")));
        QCOMPARE(ui::kvPageTable(pages, *timeline)->nodes.size(), std::size_t(17));
        QCOMPARE(ui::kvPageTable(pages, *timeline, 3)->nodes.size(), std::size_t(3));
        // Sequences share the tokens: whose page is how full is not known.
        const ui::KvSummary shared = ui::kvSummary(generateRun(true, 4), timeline.get());
        QVERIFY(!ui::kvPages(shared, *timeline, shared.at(1000)).pages.front().used);
        QVERIFY(ui::kvPages(ui::KvSummary(), *timeline, {}).pages.empty());
    }

    void pagesAreCells() {
        ui::SessionDocument document;
        ui::TimeCursor time;
        ui::KvView view({&document, &time, nullptr, nullptr});
        view.resize(1000, 700);
        view.show();
        document.show(QStringLiteral("x.vitrine"), {generateRun(true)}, {{1, growthInPages(1000)}});
        QTRY_VERIFY(view.settled());
        QTest::mouseClick(view.segments()->button(1), Qt::LeftButton);
        ui::PageMap* map = view.pageMap();
        QTRY_VERIFY(map->isVisible() && map->height() > 300);
        const auto layout = map->layoutFor(map->size());
        QCOMPARE(layout.pages, std::size_t(1));
        QTest::mouseMove(map, map->cellRect(layout, 0, 15).center().toPoint());
        QTRY_VERIFY2(view.readout().contains(QStringLiteral("Page 15, full")), qPrintable(view.readout()));
        map->setFocus();
        QTest::keyClick(map, Qt::Key_Right);
        QVERIFY2(view.readout().contains(QStringLiteral("Page 0, sliding")), qPrintable(view.readout()));
        const QImage image = map->picture(map->size(), 1);
        const QColor fill = ui::themeTokens().category(base::MemoryCategory::KvCache).fill;
        const QRectF last = map->cellRect(layout, 0, 15);
        QCOMPARE(image.pixelColor(QPointF(last.left() + 2, last.bottom() - 3).toPoint()), fill);
        QVERIFY(image.pixelColor(QPointF(last.left() + 2, last.top() + 2).toPoint()) != fill); // 62 % are in use
        // Where 10 px are too large, a cell stands for several pages.
        QVERIFY(map->layoutFor({60, 90}).pages > 1);
        document.show(QStringLiteral("x.vitrine"), {generateRun(false)}, {{1, growth(10)}});
        QTRY_VERIFY(view.settled());
        QVERIFY(!map->picture({400, 300}, 1).isNull());
    }

    void accessible() {
        ui::SessionDocument document;
        ui::TimeCursor time;
        ui::KvView view({&document, &time, nullptr, nullptr});
        view.show();
        document.show(QStringLiteral("x.vitrine"), {generateRun(true)}, {{1, growth(50)}});
        QTRY_VERIFY(view.settled());
        view.chart()->setCursor(50);
        QAccessibleInterface* interface = QAccessible::queryAccessibleInterface(view.chart());
        QVERIFY(interface != nullptr);
        QCOMPARE(interface->role(), QAccessible::Chart);
        QCOMPARE(interface->text(QAccessible::Name), view.chart()->title());
        QVERIFY(interface->text(QAccessible::Value).contains(QStringLiteral("50 tokens")));
    }

    void pictures_data() {
        QTest::addColumn<bool>("dark");
        QTest::newRow("dark") << true;
        QTest::newRow("light") << false;
    }

    void pictures() {
        QFETCH(bool, dark);
        ui::Theme::instance().setMode(dark ? ui::Theme::Mode::Dark : ui::Theme::Mode::Light);
        ui::SessionDocument document;
        ui::TimeCursor time;
        ui::KvView view({&document, &time, nullptr, nullptr});
        view.resize(1000, 700);
        view.show();
        document.show(QStringLiteral("x.vitrine"), {generateRun(true)}, {{1, growth(1000)}});
        QTRY_VERIFY(view.settled());
        QTest::qWait(10);
        const QImage image = view.picture({1000, 700}, 2);
        QCOMPARE(image.size(), QSize(2000, 1400));
        // Full layers are the lower area, sampled at 90 % of the tokens and 20 % of the bytes.
        const QPointF at = view.chart()->mapTo(&view, view.chart()->place({900, 4}).toPoint());
        const QColor seen = image.pixelColor((at * 2).toPoint());
        const QColor fill = ui::themeTokens().category(base::MemoryCategory::KvCache).fill;
        QVERIFY2(std::abs(seen.red() - fill.red()) < 8 && std::abs(seen.green() - fill.green()) < 8,
                 qPrintable(seen.name()));
    }
};

QTEST_MAIN(KvViewTest)
#include "kv_view_test.moc"

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Two loads: what the facts say, heights of the painted parts, one axis for both, tables and words.
#include "ui/views/load/load_view.h"

#include <QAbstractItemModelTester>
#include <QAccessible>
#include <QCheckBox>
#include <QTableView>
#include <QTest>

#include "tests/ui/models/common/patience.h"
#include "tests/ui/models/session/recorded_run.h"
#include "ui/models/common/format.h"
#include "ui/models/load/load_tables.h"
#include "ui/views/load/load_plots.h"
#include "ui/widgets/plots/bar_plot.h"

using namespace vitrine;
using base::MemoryCategory;

namespace {

constexpr double kGiB = static_cast<double>(1ULL << 30);

/// One load: embedding, experts and attention one after the other, with staging for the expanded experts.
void addLoad(test::RecordedRun& run, double begin, double length, double experts, double staging) {
    const std::uint64_t scope = run.scope(base::ScopeKind::Phase, "load", begin, begin + length);
    const double end = begin + length;
    run.alloc(MemoryCategory::Weights, "model.embed_tokens.weight", 2 * kGiB, begin + 0.1 * length, end + 0.001, scope);
    if (staging > 0) {
        run.alloc(MemoryCategory::Workspace, "staging", staging, begin + 0.2 * length, begin + 0.9 * length, scope);
    }
    run.alloc(MemoryCategory::Weights, "model.layers.0.mlp.experts.gate_up_proj_blocks", experts, begin + 0.5 * length,
              end + 0.001, scope, staging > 0 ? "" : "MXFP4");
    run.alloc(MemoryCategory::Weights, "model.layers.0.self_attn.q_proj.weight", 1 * kGiB, begin + 0.6 * length,
              end + 0.001, scope);
    run.span("Read", "model.embed_tokens.weight", begin, begin + 0.8 * length, 8e9);
    if (staging > 0) {
        run.span("Expand", "experts", begin + 0.2 * length, begin + 0.9 * length, experts);
    }
}

ui::TimelinePtr bothLoads() {
    test::RecordedRun run;
    addLoad(run, 0, 0.4, 9 * kGiB, 0);
    addLoad(run, 0.5, 0.6, 36 * kGiB, 1 * kGiB);
    return run.timeline();
}

sessions::RunInfo loadRun() {
    return test::runInfo(1, "load", R"({"variants": [
        {"weights": "quantized", "seconds": 0.4, "disk_bytes": 12884901888, "bytes_read": 12884901888,
         "host_peak_bytes": 0, "budget_bytes": 85899345920, "after_load": {"prompt_tokens": 8192,
         "prefill_tokens_per_second": 100000, "decode_tokens_per_second": 440, "context_tokens": 2840123}},
        {"weights": "dequantized", "seconds": 0.6, "disk_bytes": 12884901888, "bytes_read": 12884901888,
         "host_peak_bytes": 0, "budget_bytes": 85899345920, "after_load": {"prompt_tokens": 8192,
         "prefill_tokens_per_second": 100000, "decode_tokens_per_second": 290, "context_tokens": 1660999}}],
        "time_base": "virtual"})",
                         R"({"vitrine": 1, "workload": "load", "model": "synthetic:gpt-oss-20b", "weights": "both"})");
}

sessions::RunInfo generateRun(int id, const char* weights, double rate, const char* ids) {
    return test::runInfo(
        id, "generate",
        std::string(R"({"decode_tokens_per_second": )") + std::to_string(rate) +
            R"(, "prefill_seconds": 2, "prompt_tokens": 100, "ids": )" + ids + "}",
        std::string(
            R"({"vitrine": 1, "workload": "generate", "model": "synthetic:gpt-oss-20b", "prompt": "x", "weights": ")") +
            weights + "\"}");
}

ui::LoadPair pairOf(const ui::TimelinePtr& timeline) {
    ui::LoadPair pair;
    pair.a = ui::loadSide(loadRun(), *timeline, 0);
    pair.b = ui::loadSide(loadRun(), *timeline, 1);
    pair.fromOneRun = true;
    return pair;
}

} // namespace

class LoadViewTest final : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() { ui::Theme::instance().install(); }

    void sides() {
        const ui::LoadPair pair = pairOf(bothLoads());
        QCOMPARE(pair.a->title, QStringLiteral("Quantized"));
        QCOMPARE(pair.b->title, QStringLiteral("Dequantized"));
        QCOMPARE(pair.a->residentWeights(), std::uint64_t(12 * kGiB));
        QCOMPARE(pair.b->residentWeights(), std::uint64_t(39 * kGiB));
        QCOMPARE(pair.b->peak, std::uint64_t(40 * kGiB));
        QCOMPARE(pair.b->transient, std::uint64_t(kGiB));
        QCOMPARE(pair.a->transient, std::uint64_t(0));
        QCOMPARE(pair.b->length, test::ns(0.6));
        QCOMPARE(pair.b->resident[std::size_t(ui::LoadShare::Experts)], std::uint64_t(36 * kGiB));
        QCOMPARE(pair.b->resident[std::size_t(ui::LoadShare::Attention)], std::uint64_t(kGiB));
        QCOMPARE(pair.a->at(test::ns(0.1)).total(), std::uint64_t(2 * kGiB));
        QCOMPARE(pair.a->at(test::ns(99)).total(), std::uint64_t(12 * kGiB)); // the next load does not end it
        QCOMPARE(pair.a->formats.size(), std::size_t(1));
        QCOMPARE(pair.a->formats.front().name, QStringLiteral("MXFP4"));
        QCOMPARE(pair.a->formats.front().bytes, std::uint64_t(9 * kGiB));
        QVERIFY(pair.b->formats.empty()); // it was expanded
        const ui::FlatTreePtr memory = ui::loadMemoryTable(pair);
        QVERIFY(std::ranges::any_of(memory->nodes, [](const ui::FlatNode& node) {
            return node.cells[0].text.contains(QStringLiteral("MXFP4"));
        }));
        QVERIFY(pair.a->stage("Expand") == nullptr);
        QVERIFY(pair.b->stage("Expand") != nullptr);
    }

    void choosesLoads() {
        const std::vector<sessions::RunInfo> runs = {loadRun(), generateRun(2, "quantized", 7, "[1]"),
                                                     generateRun(3, "dequantized", 7, "[1]")};
        QVERIFY(ui::chooseLoads(runs, 1, 0).oneRun);
        const ui::LoadChoice two = ui::chooseLoads(runs, 2, 3);
        QVERIFY(!two.oneRun && two.a == 2 && two.b == 3);
        QCOMPARE(ui::chooseLoads(runs, 2, 0).a, 1); // the session's latest pair
        QCOMPARE(ui::chooseLoads({}, 0, 0).a, 0);
    }

    void overlayDrawsBothLines() {
        ui::SessionDocument document;
        ui::TimeCursor time;
        ui::LoadView view({&document, &time, nullptr, nullptr});
        view.resize(1000, 700);
        view.show();
        document.show(QStringLiteral("x.vitrine"), {loadRun()}, {{1, bothLoads()}});
        auto* layout = view.header()->findChild<ui::SegmentedControl*>();
        QTest::mouseClick(layout->button(1), Qt::LeftButton);
        QTRY_VERIFY(view.settled());
        QTest::qWait(30); // and is painted
        const QImage image = view.grab().toImage().convertToFormat(QImage::Format_RGB32);
        const auto longest = [&](const QColor& color) { // pixels of a colour in the row that has most of them
            int most = 0;
            for (int y = 60; y < image.height(); ++y) {
                int count = 0;
                for (int x = 80; x < image.width(); ++x) {
                    count += image.pixel(x, y) == color.rgb() ? 1 : 0;
                }
                most = std::max(most, count);
            }
            return most;
        };
        const int a = longest(ui::themeTokens().compareA), b = longest(ui::themeTokens().compareB);
        QVERIFY2(a > 200, qPrintable(QString::number(a)));           // solid, to the end of the plot
        QVERIFY2(b > 60 && b < 400, qPrintable(QString::number(b))); // dashed
    }

    void words() {
        const ui::LoadPair pair = pairOf(bothLoads());
        ui::AfterLoad fast, slow;
        fast.decode = 700;
        slow.decode = 350;
        fast.prefill = 100;
        slow.prefill = 150;
        const ui::LoadText words = ui::loadText(pair, fast, slow);
        QCOMPARE(words.number, QStringLiteral("3.25x"));
        QVERIFY(words.sentence.startsWith(QStringLiteral("less memory when quantized")));
        QVERIFY(words.sentence.contains(QStringLiteral("loads 1.50 times faster and decodes 2.00 times faster")));
        QVERIFY(words.cost.contains(QStringLiteral("Prefill is 1.50 times slower")));
        ui::LoadPair alone;
        alone.a = pair.a;
        QVERIFY(ui::loadText(alone, {}, {}).sentence.contains(QStringLiteral("Choose a baseline")));
        ui::LoadPair same = pair;
        same.b = same.a;
        QCOMPARE(ui::loadText(same, {}, {}).number, QStringLiteral("="));
    }

    void pricesOfBothKinds() {
        const ui::LoadPair pair = pairOf(bothLoads());
        const auto row = [](const ui::FlatTreePtr& table, const QString& name) {
            for (const ui::FlatNode& node : table->nodes) {
                if (node.cells[0].text == name) {
                    return node.cells[1].text + QLatin1Char(' ') + node.cells[2].text;
                }
            }
            return QString();
        };
        QCOMPARE(row(ui::loadTable(pair), QStringLiteral("on disk, GiB")), QStringLiteral("12.00 12.00"));
        QCOMPARE(row(ui::loadMemoryTable(pair), QStringLiteral("pinned host")), QStringLiteral("0.00 0.00"));
        const auto a = ui::measuredAfterLoad(loadRun(), 0), b = ui::measuredAfterLoad(loadRun(), 1);
        QVERIFY(a && b && a->priced);
        const ui::FlatTreePtr after = ui::afterLoadTable(*a, *b);
        QCOMPARE(row(after, QStringLiteral("context, K tokens")), QStringLiteral("2,840 1,660"));
        const QString cost = ui::loadText(pair, *a, *b).cost;
        QVERIFY2(cost.startsWith(QStringLiteral("Prefill of 8,192 tokens takes the same time")), qPrintable(cost));
        QVERIFY2(cost.contains(QStringLiteral("figures are predicted")), qPrintable(cost));
        QVERIFY2(!cost.contains(QStringLiteral("measured")), qPrintable(cost));
        QCOMPARE(after->columns[0].title, QStringLiteral("After the load, predicted"));
        QCOMPARE(ui::loadTable(pair)->columns[0].title, QStringLiteral("Load, predicted"));
        QVERIFY(ui::sideSummary(*pair.a).contains(QStringLiteral("predicted")));
        QVERIFY(ui::loadText(pair, {}, {}).cost.contains(QStringLiteral("predicted")));
        const ui::FlatTreePtr unknown = ui::unknownAgreement();
        QCOMPARE(unknown->nodes[0].cells[1].text, QStringLiteral("not known"));
        QVERIFY(unknown->nodes[0].cells[1].tip.contains(QStringLiteral("on a device")));
    }

    void ratios() {
        QCOMPARE(ui::ratioCell(1.0, 2.0, true).text, QStringLiteral("▼ 2.00x"));
        QCOMPARE(*ui::ratioCell(1.0, 2.0, true).delta, -1);
        QCOMPARE(*ui::ratioCell(1.0, 2.0, false).delta, 1);
        QCOMPARE(*ui::ratioCell(1.0, 2.0, std::nullopt).delta, 2);
        QCOMPARE(*ui::ratioCell(3.0, 3.0, true).delta, 0);
        QCOMPARE(ui::ratioCell(0.0, 3.0, true).text, QStringLiteral("▼ only B"));
        QVERIFY(!ui::ratioCell(std::nullopt, 3.0, true).delta);
    }

    void agreement() {
        const std::vector<sessions::RunInfo> runs = {loadRun(), generateRun(2, "quantized", 7, "[1, 2, 3, 4]"),
                                                     generateRun(3, "dequantized", 7, "[1, 2, 9, 4]")};
        const ui::AfterLoad a = ui::afterLoad(runs, runs[0], QStringLiteral("quantized"));
        const ui::AfterLoad b = ui::afterLoad(runs, runs[0], QStringLiteral("dequantized"));
        QCOMPARE(*a.decode, 7.0);
        QCOMPARE(*a.prefill, 50.0);
        const ui::FlatTreePtr table = ui::agreementTable(a, b);
        QVERIFY(table);
        QCOMPARE(table->nodes[0].cells[1].text, QStringLiteral("3 of 4"));
        QCOMPARE(table->nodes[1].cells[1].text, QStringLiteral("token 3"));
        QVERIFY(!ui::agreementTable(a, {}));
    }

    void models() {
        const ui::LoadPair pair = pairOf(bothLoads());
        for (const ui::FlatTreePtr& table : {ui::loadTable(pair), ui::loadMemoryTable(pair), ui::loadTwin(pair)}) {
            ui::FlatTreeModel model;
            QAbstractItemModelTester tester(&model);
            model.setTree(table);
            QVERIFY(model.rowCount() > 2);
            model.sort(1, Qt::DescendingOrder);
        }
    }

    void heights_data() {
        QTest::addColumn<bool>("dark");
        QTest::addColumn<double>("dpr");
        QTest::newRow("dark") << true << 1.0;
        QTest::newRow("light 2x") << false << 2.0;
    }

    /// At the end of B the experts reach 36 GiB and the whole 39 GiB, in pixels.
    void heights() {
        QFETCH(bool, dark);
        QFETCH(double, dpr);
        ui::Theme::instance().setMode(dark ? ui::Theme::Mode::Dark : ui::Theme::Mode::Light);
        const ui::LoadPair pair = pairOf(bothLoads());
        const ui::PlotFrame frame{{860, 200}, dpr};
        const auto axis = ui::AxisMap::ofTime({0, test::ns(0.7)}, 800);
        const QImage image =
            ui::paintLoad(*pair.b, ui::LoadGrouping::Part, axis, pair.b->peak, frame, ui::themeTokens());
        QCOMPARE(image.size(), (QSizeF(860, 200) * dpr).toSize());
        const double perGiB = 200 / (40 * 1.14 * 1.05);
        const auto at = [&](double gib) {
            return image.pixelColor(static_cast<int>(600 * dpr), static_cast<int>((200 - gib * perGiB) * dpr));
        };
        const ui::ThemeTokens& t = ui::themeTokens();
        QCOMPARE(at(10), t.category(MemoryCategory::Weights).fill);
        QCOMPARE(at(34), t.category(MemoryCategory::Weights).fill);
        QVERIFY(at(38.5) != t.category(MemoryCategory::Weights).fill); // attention
        QVERIFY(at(38.5) != t.canvas);
        QCOMPARE(at(43), t.canvas);
    }

    void showsBoth() {
        ui::SessionDocument document;
        ui::TimeCursor time;
        ui::LoadView view({&document, &time, nullptr, nullptr});
        view.resize(1080, 820);
        view.show();
        QVERIFY(view.emptyShown());
        document.show(QStringLiteral("x.vitrine"), {loadRun()}, {{1, bothLoads()}});
        QVERIFY(!view.emptyShown() && view.settled());
        QVERIFY(view.inspector() != nullptr);
        QCOMPARE(view.number()->text(), QStringLiteral("3.25x"));
        QVERIFY(view.bars()->isVisible());
        // A wheel over A zooms both, and the cursor of A is that of B.
        ui::LoadLane* lane = view.lane(0);
        const QPoint middle(lane->width() / 2, lane->height() / 2);
        QTest::mouseClick(lane, Qt::LeftButton, {}, middle);
        QVERIFY(view.timeA()->cursor());
        QCOMPARE(view.timeB()->cursor(), view.timeA()->cursor());
        QVERIFY(view.readout().startsWith(QStringLiteral("Cursor")));
        lane->setFocus();
        view.timeA()->zoom(0.5, test::ns(0.2));
        QCOMPARE(view.timeB()->range(), view.timeA()->range());
        // With an axis each, B's zoom is its own.
        QTest::mouseClick(view.sameAxis(), Qt::LeftButton, {}, QPoint(6, view.sameAxis()->height() / 2));
        const ui::TimeRange before = view.timeB()->range();
        view.timeA()->zoom(0.5, test::ns(0.1));
        QCOMPARE(view.timeB()->range(), before);
        QVERIFY(view.timeA()->extent().end < view.timeB()->extent().end);
    }

    void aThirdFormatHasItsLane() {
        ui::SessionDocument document;
        ui::TimeCursor time;
        ui::LoadView view({&document, &time, nullptr, nullptr});
        view.resize(1080, 820);
        view.show();
        std::vector<sessions::RunInfo> runs;
        std::map<sessions::RunId, ui::TimelinePtr> timelines;
        for (const int id : {1, 2, 3}) {
            runs.push_back(test::runInfo(id, "load", R"({"load_seconds": 0.4})",
                                         R"({"vitrine": 1, "workload": "load", "model": "/models/)" +
                                             std::to_string(id) + R"("})"));
            test::RecordedRun run;
            addLoad(run, 0, 0.2 * id, id * kGiB, 0);
            timelines[id] = run.timeline();
        }
        document.show(QStringLiteral("x.vitrine"), runs, timelines);
        document.setRunA(1);
        document.setRunB(2);
        QTRY_VERIFY(view.settled() && view.pair().c);
        QCOMPARE(view.pair().c->run, sessions::RunId(3));
        QVERIFY(view.lane(2)->isVisible());
        view.timeA()->setCursor(test::ns(0.5));
        QVERIFY(view.readout().contains(QStringLiteral(", C ")));
        document.show(QStringLiteral("y.vitrine"), {loadRun()}, {{1, bothLoads()}});
        QTRY_VERIFY(!view.pair().c);
        QVERIFY(!view.lane(2)->isVisible());
    }

    void smallWindowKeepsPlots() {
        ui::SessionDocument document;
        ui::TimeCursor time;
        ui::LoadView view({&document, &time, nullptr, nullptr});
        view.resize(960, 360);
        view.show();
        document.show(QStringLiteral("x.vitrine"), {loadRun()}, {{1, bothLoads()}});
        QVERIFY(!view.bars()->isVisible());
        QVERIFY(view.lane(0)->height() >= 80);
    }

    void twinAndAccessible() {
        ui::SessionDocument document;
        ui::TimeCursor time;
        ui::LoadView view({&document, &time, nullptr, nullptr});
        view.resize(1080, 820);
        view.show();
        document.show(QStringLiteral("x.vitrine"), {loadRun()}, {{1, bothLoads()}});
        QVERIFY(view.perform(QStringLiteral("view.table")));
        auto* table = qobject_cast<QTableView*>(view.focusStops().value(0));
        QVERIFY(table != nullptr && table->isVisible());
        QVERIFY(table->model()->rowCount() >= 5);
        QAccessibleInterface* bars = QAccessible::queryAccessibleInterface(view.bars());
        QVERIFY(bars != nullptr);
        QCOMPARE(bars->role(), QAccessible::Chart);
        QVERIFY(bars->text(QAccessible::Value).contains(QStringLiteral("A 9.00")));
    }
};

QTEST_MAIN(LoadViewTest)
#include "load_view_test.moc"

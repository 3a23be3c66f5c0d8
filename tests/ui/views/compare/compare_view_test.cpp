// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Comparing runs: words, tables, noise, the common axis and the painted difference.
#include "ui/views/compare/compare_view.h"

#include <QAbstractItemModelTester>
#include <QCheckBox>
#include <QClipboard>
#include <QComboBox>
#include <QGuiApplication>
#include <QHeaderView>
#include <QImage>
#include <QPainter>
#include <QPushButton>
#include <QScrollBar>
#include <QSignalSpy>
#include <QStyleOptionViewItem>
#include <QTableView>
#include <QTest>

#include "engine/workload/experiment/result_fields.h"
#include "tests/ui/models/common/patience.h"
#include "tests/ui/models/session/recorded_run.h"
#include "ui/models/common/format.h"
#include "ui/models/common/result_values.h"
#include "ui/models/compare/compare_text.h"
#include "ui/models/compare/op_change_table.h"
#include "ui/widgets/base/paint.h"
#include "ui/widgets/base/theme.h"
#include "ui/widgets/plots/compare_delegates.h"
#include "ui/widgets/plots/fact_table.h"
#include "ui/widgets/timeline/compare_lane.h"
#include "ui/widgets/timeline/difference_lane.h"
#include "ui/widgets/timeline/lane_stack.h"

using namespace vitrine;
using base::MemoryCategory;

namespace {

constexpr double kGiB = static_cast<double>(1ULL << 30);

std::string metricsOf(double weights, double logits, double rate) {
    const auto bytes = [](double gib) { return std::to_string(static_cast<long long>(gib * kGiB)); };
    return R"({"peak_bytes": )" + bytes(weights + logits) + R"(, "decode_tokens_per_second": )" + std::to_string(rate) +
           R"(, "ids": [1, 2, 3], "peak_by_category": {"weights": )" + bytes(weights) + R"(, "logits": )" +
           bytes(logits) + "}}";
}

sessions::RunInfo run(int id, double weights, double logits, double rate, const char* mode) {
    return test::runInfo(id, "generate", metricsOf(weights, logits, rate),
                         std::string(R"({"vitrine": 1, "workload": "generate", "model": "m", "weights": ")") + mode +
                             "\"}");
}

/// Load for `load` seconds, then decode for a second; weights in GiB.
ui::TimelinePtr timeline(double load, double weights) {
    test::RecordedRun recorded;
    const auto loading = recorded.scope(base::ScopeKind::Phase, "load", 0, load);
    recorded.alloc(MemoryCategory::Weights, "w", weights * kGiB, 0, -1, loading);
    const auto decoding = recorded.scope(base::ScopeKind::Phase, "decode", load, load + 1);
    recorded.alloc(MemoryCategory::Logits, "logits", 1 * kGiB, load + 0.2, load + 0.9, decoding);
    return recorded.timeline();
}

} // namespace

class CompareViewTest final : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() { ui::Theme::instance().install(); }

    void words() {
        const auto a = run(1, 10, 62, 300, "quantized"), b = run(2, 10, 1, 300, "quantized");
        const ui::CompareText words = ui::compareText(a, b, {a, b});
        QCOMPARE(words.sentence, QStringLiteral("B peaks 61.00 GiB lower: logits 61.00 GiB less."));
        QVERIFY(words.notComparable.isEmpty() && !words.nothing);
        QCOMPARE(ui::compareText(a, a, {a}).sentence, QStringLiteral("#1 and #1 are the same within the noise."));
        auto other = b;
        other.specJson = R"({"vitrine": 1, "workload": "generate", "model": "n"})";
        QVERIFY(ui::compareText(a, other, {a, other}).nothing);
        other = b;
        other.specJson = R"({"vitrine": 1, "workload": "generate", "model": "m", "weights": "quantized", "seed": 4})";
        QCOMPARE(ui::compareText(a, other, {a, other}).notComparable,
                 QStringLiteral("Not comparable: answers (other seed)."));
    }

    void units() {
        QCOMPARE(ui::metricText("peak_bytes", kGiB), QStringLiteral("1.00\u00A0GiB"));
        QCOMPARE(ui::metricText("decode_tokens_per_second", 12345.0), QStringLiteral("12,345\u00A0tok/s"));
        QCOMPARE(ui::metricText("load_seconds", 0.0412), QStringLiteral("41.2\u00A0ms"));
        QCOMPARE(ui::metricText("steps", 1234.0), QStringLiteral("1,234"));
        QCOMPARE(ui::metricText("x", std::nullopt), QStringLiteral("–"));
    }

    /// Repeats of A differ by 10 tok/s: a difference of 7 is noise, one of 15 is not.
    void noise() {
        const std::vector<sessions::RunInfo> all = {run(1, 12, 1, 95, "quantized"), run(2, 12, 1, 105, "quantized"),
                                                    run(3, 12, 1, 98, "dequantized"), run(4, 12, 1, 80, "dequantized")};
        QCOMPARE(ui::metricTable({all[1], all[2]}, {all[0], all[1], all[2]}, true)->nodes.size(), std::size_t(0));
        const ui::FlatTreePtr table = ui::metricTable({all[0], all[3]}, {all[0], all[1], all[3]}, true);
        QCOMPARE(table->nodes.size(), std::size_t(1));
        QCOMPARE(table->nodes[0].cells[3].text, QStringLiteral("▼ −15 tok/s"));
        QCOMPARE(*table->nodes[0].cells[3].delta, 1);
        QCOMPARE(table->nodes[0].cells[4].text, QStringLiteral("±10 tok/s"));
        const ui::FlatTreePtr lone = ui::metricTable({all[0], all[3]}, {all[0], all[3]}, true);
        QCOMPARE(lone->nodes[0].cells[4].text, QStringLiteral("no repeats"));
    }

    void threeRuns() {
        const std::vector<sessions::RunInfo> all = {run(1, 12, 1, 95, "quantized"), run(2, 40, 1, 90, "dequantized"),
                                                    run(3, 20, 1, 80, "quantized")};
        ui::FlatTreeModel model;
        QAbstractItemModelTester tester(&model);
        model.setTree(ui::metricTable(all, all, false));
        QCOMPARE(model.columnCount(), 6);
        QCOMPARE(model.headerData(3, Qt::Horizontal).toString(), QStringLiteral("C #3"));
        model.sort(1, Qt::AscendingOrder);
    }

    /// What an error says of holders is no result, and a run that did not end is not better for it.
    void resultsOnly() {
        auto a = run(1, 12, 1, 95, "quantized");
        const auto b = run(2, 40, 1, 90, "dequantized");
        a.metricsJson.pop_back();
        a.metricsJson += R"(, "error": {"held_bytes": 5, "holders": [{"bytes": 4}]}, "zeta": 3})";
        const ui::FlatTreePtr table = ui::metricTable({a, b}, {a, b}, false);
        QCOMPARE(table->nodes.front().cells[0].text, QStringLiteral("peak memory"));
        QCOMPARE(table->nodes[1].cells[0].text, QStringLiteral("decode rate"));
        QCOMPARE(*table->nodes[1].cells[3].delta, 1); // B decodes slower
        for (const ui::FlatNode& node : table->nodes) {
            QVERIFY2(!node.cells[0].text.contains(QStringLiteral("holders")), qPrintable(node.cells[0].text));
        }
        a.status = sessions::RunStatus::OutOfMemory;
        const ui::FlatTreePtr unjudged = ui::metricTable({a, b}, {a, b}, false);
        QCOMPARE(*unjudged->nodes.front().cells[3].delta, 2); // differs, neither better nor worse
    }

    void tablesFillTheirWidth() {
        ui::SessionDocument document;
        ui::TimeCursor time;
        ui::CompareView view({&document, &time, nullptr, nullptr});
        view.resize(1020, 780);
        view.show();
        auto a = run(1, 12, 1, 95, "quantized");
        a.name = "generate gpt-oss-20b, long";
        const auto b = run(2, 36, 1, 90, "dequantized");
        document.show(QStringLiteral("x.vitrine"), {a, b}, {{1, timeline(1, 12)}, {2, timeline(2, 36)}});
        document.setRunA(1);
        document.setRunB(2);
        QTRY_VERIFY(view.settled());
        QTest::qWait(20); // and is laid out
        int tables = 0;
        for (const QTableView* table : view.findChildren<QTableView*>()) {
            if (table->isVisible()) {
                ++tables;
                QVERIFY(!table->horizontalScrollBar()->isVisible());
                QCOMPARE(table->horizontalHeader()->length(), table->viewport()->width());
            }
        }
        QCOMPARE(tables, 2);
        QVERIFY(view.pickerA()->width() >=
                view.pickerA()->fontMetrics().horizontalAdvance(view.pickerA()->currentText()));
    }

    void settings() {
        const auto a = run(1, 12, 1, 95, "quantized"), b = run(2, 40, 1, 90, "dequantized");
        QCOMPARE(ui::specTable(a, b, true)->nodes.size(), std::size_t(1));
        QCOMPARE(ui::specTable(a, b, false)->nodes.size(), std::size_t(4));
        QCOMPARE(ui::specTable(a, a, true)->nodes.size(), std::size_t(0));
        auto older = a, newer = a;
        older.environmentJson = "{}";
        newer.environmentJson = R"({"driver_version": "560"})";
        const ui::FlatTreePtr surroundings = ui::specTable(older, newer, true);
        QCOMPARE(surroundings->nodes.size(), std::size_t(2));
        QVERIFY(surroundings->nodes[0].cells[0].text.startsWith(QStringLiteral("Measured surroundings, 1 of ")));
        QCOMPARE(surroundings->nodes[1].cells[2].text, QStringLiteral("560"));
    }

    void peaks() {
        const ui::TimelinePtr a = timeline(1, 12), b = timeline(2, 36);
        const ui::FlatTreePtr table = ui::peakTable(a.get(), b.get(), profiler::GroupBy::Category);
        QCOMPARE(table->nodes.size(), std::size_t(3));
        QCOMPARE(table->nodes[0].cells[0].text, QStringLiteral("weights"));
        QCOMPARE(table->columns[0].title, QStringLiteral("At the peak, MiB"));
        QCOMPARE(table->nodes[0].cells[3].text, QStringLiteral("▲ +24,576"));
        QCOMPARE(*table->nodes[0].cells[3].delta, 1);
        QCOMPARE(*table->nodes[0].cells[3].share, 1.0); // the largest change is a whole bar
        QCOMPARE(table->nodes[1].cells[3].text, QStringLiteral("="));
        QVERIFY(table->nodes[2].emphasis);
        QVERIFY(ui::peakTable(nullptr, nullptr, profiler::GroupBy::Layer)->nodes.empty());
        QVERIFY(!ui::peakTable(a.get(), b.get(), profiler::GroupBy::Op)->nodes.empty());
    }

    /// The total fits beside its bars, and a change that its unit cannot say has its own.
    void peaksFitTheInspector() {
        ui::FactTable table(QStringLiteral("Bytes at the peak"));
        const ui::TimelinePtr a = timeline(1, 12), b = timeline(2, 36);
        const ui::FlatTreePtr tree = ui::peakTable(a.get(), b.get(), profiler::GroupBy::Category);
        const QFont bold = ui::Theme::instance().font(ui::TypeRole::Table, true);
        for (const auto& [column, width] : {std::pair{1, 57}, std::pair{2, 57}, std::pair{3, 82}}) {
            const QString& text = tree->nodes.back().cells[static_cast<std::size_t>(column)].text;
            QVERIFY2(ui::textWidth(text, bold) < width - 4, qPrintable(text));
        }
        const ui::TimelinePtr close = timeline(1, 12.0000001);
        QVERIFY(!ui::peakTable(a.get(), close.get(), profiler::GroupBy::Category)
                     ->nodes[0]
                     .cells[3]
                     .text.contains(QStringLiteral("+0")));
    }

    /// Repeats are drawn: A's dot stands in its hatched band, B's square right of it.
    void paintsRepeats() {
        const std::vector<sessions::RunInfo> all = {run(1, 12, 1, 95, "quantized"), run(2, 12, 1, 105, "quantized"),
                                                    run(3, 12, 1, 150, "dequantized")};
        const ui::FlatTreePtr tree = ui::metricTable({all[0], all[2]}, all, true);
        QCOMPARE(tree->nodes[0].cells[4].marks, (std::vector<double>{95, 95, 105, 150, 150, 150, 10}));
        ui::FlatTreeModel model;
        model.setTree(tree);
        QImage image(140, 24, QImage::Format_ARGB32_Premultiplied);
        QPainter painter(&image);
        QStyleOptionViewItem option;
        option.rect = QRect(0, 0, 140, 24);
        const ui::NoiseDelegate delegate;
        delegate.paint(&painter, option, model.index(0, 4));
        painter.end();
        const int dot = 12 + static_cast<int>(116 * 10.0 / 65); // 95 on a scale from 85 to 150
        QCOMPARE(image.pixelColor(dot, 8), ui::themeTokens().compareA);
        QVERIFY(image.pixelColor(125, 15) != ui::themeTokens().canvas); // the edge of B's square
        QVERIFY(tree->nodes[0].cells[1].tip.contains(QStringLiteral("in 2 runs")));
    }

    /// Ops of prefill stand beside each other where the host timed them, and only there.
    void timesOfOps() {
        const auto recorded = [](double matmul) {
            test::RecordedRun run;
            const auto phase = run.scope(base::ScopeKind::Phase, "prefill", 0, 1);
            run.scope(base::ScopeKind::Op, "Matmul", 0.1, 0.1 + matmul, phase);
            run.scope(base::ScopeKind::Op, "RmsNorm", 0.9, 0.95, phase);
            return run.timeline();
        };
        const ui::TimelinePtr x = recorded(0.2), y = recorded(0.5);
        auto a = run(1, 12, 1, 95, "quantized"), b = run(2, 36, 1, 90, "dequantized");
        for (sessions::RunInfo* info : {&a, &b}) {
            info->specJson.pop_back();
            info->specJson += R"(, "profile": "full"})";
            info->environmentJson = R"({"backend": "cpu"})";
        }
        const ui::FlatTreePtr table = ui::prefillOpTable(a, x.get(), b, y.get());
        QCOMPARE(table->nodes.size(), std::size_t(4));
        QCOMPARE(table->nodes[0].cells[0].text, QStringLiteral("Matmul"));
        QCOMPARE(table->nodes[0].cells[3].text, QStringLiteral("▲ +300.0"));
        QCOMPARE(table->nodes[1].cells[3].text, QStringLiteral("="));
        QCOMPARE(table->nodes[2].cells[0].text, QStringLiteral("other"));
        QCOMPARE(table->nodes[3].cells[3].text, QStringLiteral("="));
        b.environmentJson = R"({"backend": "cuda"})";
        QVERIFY(ui::prefillOpTable(a, x.get(), b, y.get())->nodes.empty());
    }

    /// Times of other drivers do not compare: the strip says what differs and offers B again.
    void offersBAgain() {
        ui::SessionDocument document;
        ui::TimeCursor time;
        ui::CompareView view({&document, &time, nullptr, nullptr});
        view.resize(1020, 780);
        view.show();
        auto a = run(1, 12, 1, 95, "quantized"), b = run(2, 36, 1, 90, "dequantized");
        a.environmentJson = R"({"driver_version": "550", "time_base": "monotonic"})";
        b.environmentJson = R"({"driver_version": "560", "time_base": "monotonic"})";
        document.show(QStringLiteral("x.vitrine"), {a, b}, {{1, timeline(1, 12)}, {2, timeline(2, 36)}});
        document.setRunA(1);
        document.setRunB(2);
        QVERIFY2(view.notice()->sentence().contains(QStringLiteral("other driver version")),
                 qPrintable(view.notice()->sentence()));
        QCOMPARE(view.notice()->details(), QStringLiteral("driver version: A 550, B 560"));
        QVERIFY(view.notice()->actionButton()->isVisible());
        QSignalSpy wanted(&view, &ui::View::experimentWanted);
        QTest::mouseClick(view.notice()->actionButton(), Qt::LeftButton);
        QCOMPARE(wanted.size(), 1);
        QVERIFY(wanted[0][0].toString().contains(QStringLiteral("dequantized")));
        // The answers of both are the ids 1, 2, 3.
        QCOMPARE(view.answers()->text(), QStringLiteral("The answers are the same: 3 tokens."));
    }

    /// Columns where B is lower are filled in goodFill between the lines; where it is higher, in badFill.
    void paintsDifference() {
        ui::CompareInput input;
        input.top = 100;
        input.columns.resize(400);
        for (std::size_t i = 0; i < 400; ++i) {
            profiler::MemoryColumn low, high;
            low.maxTotal = 20;
            high.maxTotal = 80;
            input.columns[i].a = i < 200 ? high : low;
            input.columns[i].b = i < 200 ? low : high;
        }
        const ui::PlotFrame frame{{460, 105}, 1};
        const QImage image = ui::paintCompare(input, frame, ui::themeTokens());
        const auto y = [](double value) { return static_cast<int>(105 - value / 105 * 105); };
        QCOMPARE(image.pixelColor(60 + 20, y(45)), ui::themeTokens().goodFill);
        QCOMPARE(image.pixelColor(60 + 380, y(45)), ui::themeTokens().badFill);
        QCOMPARE(image.pixelColor(60 + 20, y(90)), ui::themeTokens().canvas);
        QCOMPARE(image.pixelColor(60 + 20, y(10)), ui::themeTokens().canvas);
    }

    void aligns() {
        ui::SessionDocument document;
        ui::TimeCursor time;
        ui::CompareView view({&document, &time, nullptr, nullptr});
        view.resize(1080, 820);
        view.show();
        QVERIFY(view.emptyShown());
        const auto a = run(1, 12, 1, 95, "quantized"), b = run(2, 36, 1, 90, "dequantized");
        document.show(QStringLiteral("x.vitrine"), {a, b}, {{1, timeline(1, 12)}, {2, timeline(2, 36)}});
        document.setRunA(1);
        document.setRunB(2);
        QVERIFY(!view.emptyShown());
        // By phase both runs are stretched: a load of 1.5 s on average, and one decode; by time for the longer run.
        QVERIFY(std::abs(double(view.axis()->extent().length()) - 2.5e9) < 2e7);
        // A band is as wide in both runs as the curve under it, and names its own time.
        const auto& bands = view.stack()->bands()->rows();
        QCOMPARE(bands.size(), std::size_t(2));
        QVERIFY(bands[0].bands[0].range == bands[1].bands[0].range);
        QCOMPARE(bands[0].bands[0].label, QStringLiteral("load 1.00\u00A0s"));
        QCOMPARE(bands[1].bands[0].label, QStringLiteral("load 2.00\u00A0s"));
        view.axis()->setCursor(test::ns(2.0)); // in the decode of both
        QVERIFY(view.readout().contains(QStringLiteral("A 13.00")) &&
                view.readout().contains(QStringLiteral("B 37.00")));
        QTest::mouseClick(view.alignment()->button(2), Qt::LeftButton);
        view.axis()->setCursor(test::ns(2.1)); // A has ended
        QVERIFY2(view.readout().contains(QStringLiteral("B 36.00")), qPrintable(view.readout()));
        QCOMPARE(view.specModel()->rowCount(), 1);
        const auto* changed = view.header()->findChild<QCheckBox*>();
        QTest::mouseClick(const_cast<QCheckBox*>(changed), Qt::LeftButton, {}, QPoint(6, changed->height() / 2));
        QVERIFY(view.specModel()->rowCount() > 1);
        view.inspector();
        QCOMPARE(view.deltas()->model()->rowCount(), 3);
        QVERIFY(view.perform(QStringLiteral("edit.copy-why")));
        const QString text = QGuiApplication::clipboard()->text();
        QVERIFY(text.startsWith(QStringLiteral("**B peaks")));
        QVERIFY(text.contains(QStringLiteral("| weights | quantized | dequantized |")));
        QVERIFY(text.contains(QStringLiteral("The answers are the same: 3 tokens.")));
        QVERIFY(view.perform(QStringLiteral("view.table")));
        QVERIFY(qobject_cast<QTableView*>(view.focusStops().value(0)) != nullptr);
    }

    /// A gets B's place when it is chosen there; without a B it is refused with a word.
    void noRunIsItsOwnBaseline() {
        ui::SessionDocument document;
        ui::TimeCursor time;
        ui::CompareView view({&document, &time, nullptr, nullptr});
        view.show();
        const auto a = run(1, 12, 1, 95, "quantized"), b = run(2, 36, 1, 90, "dequantized");
        document.show(QStringLiteral("x.vitrine"), {a, b}, {{1, timeline(1, 12)}, {2, timeline(2, 36)}});
        document.setRunA(1);
        document.setRunB(2);
        QVERIFY(document.chooseRun(false, 1));
        QCOMPARE(document.runA(), sessions::RunId(2));
        QCOMPARE(document.runB(), sessions::RunId(1));
        document.setRunB(0);
        const int row = view.pickerB()->findData(QVariant::fromValue<qlonglong>(2));
        emit view.pickerB()->activated(row);
        QCOMPARE(document.runB(), sessions::RunId(0));
        QVERIFY2(view.readout().contains(QStringLiteral("#2 is A")), qPrintable(view.readout()));
        QVERIFY(view.pickerA()->currentText().startsWith(QStringLiteral("A #2 ")));
    }

    /// Runs of other models get their settings and no change, unless one asks for the numbers.
    void notComparable() {
        ui::SessionDocument document;
        ui::TimeCursor time;
        ui::CompareView view({&document, &time, nullptr, nullptr});
        view.resize(1020, 780);
        view.show();
        const auto a = run(1, 12, 1, 95, "quantized"), c = run(3, 13, 1, 95, "dequantized");
        auto b = run(2, 36, 1, 90, "quantized");
        b.specJson = R"({"vitrine": 1, "workload": "generate", "model": "n"})";
        document.show(QStringLiteral("x.vitrine"), {a, b, c},
                      {{1, timeline(1, 12)}, {2, timeline(2, 36)}, {3, timeline(1, 13)}});
        document.setRunA(1);
        document.setRunB(2);
        QVERIFY(view.sentence()->text().startsWith(QStringLiteral("#1 and #2 cannot be compared:")));
        QVERIFY(view.notice()->isVisible());
        QVERIFY(!view.stack()->isVisible());
        QCOMPARE(view.metricModel()->columnCount(), 3); // no B − A
        QVERIFY(view.showNumbers()->isVisible());
        QTest::mouseClick(view.showNumbers(), Qt::LeftButton);
        QVERIFY(view.metricModel()->rowCount() > 0);
        QVERIFY(view.metricModel()->headerData(2, Qt::Horizontal).toString() == QStringLiteral("B #2"));
        document.setRunB(3);
        QVERIFY(!view.notice()->isVisible());
        QVERIFY(view.stack()->isVisible());
        QVERIFY(view.sentence()->text().startsWith(QStringLiteral("B peaks")));
    }

    /// What B has less of hangs below zero.
    void paintsTheDifferenceByCategory() {
        ui::DifferenceInput input;
        input.columns.resize(400);
        for (auto& column : input.columns) {
            column.a = profiler::MemoryColumn();
            column.b = profiler::MemoryColumn();
            column.a->atMax[static_cast<std::size_t>(MemoryCategory::KvCache)] = 80;
            column.b->atMax[static_cast<std::size_t>(MemoryCategory::Weights)] = 20;
        }
        QCOMPARE(ui::differenceSpan(input.columns).above, 20.0);
        QCOMPARE(ui::differenceSpan(input.columns).below, 80.0);
        const QImage image = ui::paintDifference(input, {{460, 116}, 1}, ui::themeTokens());
        QCOMPARE(image.pixelColor(260, 18), ui::themeTokens().category(MemoryCategory::Weights).fill);
        QCOMPARE(image.pixelColor(260, 4), ui::themeTokens().canvas);
    }

    void offersABaseline() {
        ui::SessionDocument document;
        ui::TimeCursor time;
        ui::CompareView view({&document, &time, nullptr, nullptr});
        view.show();
        document.show(QStringLiteral("x.vitrine"), {run(1, 12, 1, 95, "quantized")}, {{1, timeline(1, 12)}});
        QVERIFY(view.emptyText().contains(QStringLiteral("This session holds one")));
        document.show(QStringLiteral("x.vitrine"), {run(1, 12, 1, 95, "quantized"), run(2, 12, 1, 95, "quantized")},
                      {{1, timeline(1, 12)}});
        document.setRunA(2);
        document.setRunB(0);
        QVERIFY(view.emptyText().contains(QStringLiteral("No baseline is chosen")));
        QVERIFY(!view.whyNot(QStringLiteral("edit.copy-why")).isEmpty());
    }
};

QTEST_MAIN(CompareViewTest)
#include "compare_view_test.moc"

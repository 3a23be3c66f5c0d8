// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/kv_cache/kv_limits.h"

#include <QTest>
#include <nlohmann/json.hpp>

#include "sessions/run_info.h"
#include "ui/models/common/format.h"
#include "ui/views/kv_cache/kv_curve_chart.h"

using namespace vitrine;

namespace {

constexpr std::uint64_t kMiB = 1 << 20;

/// gpt-oss-20b's cache: 12 full layers, 12 with a window of 128, 24,576 B for a token of each.
ui::KvSummary gptOss(std::int64_t tokens, bool planned = false) {
    ui::KvSummary facts;
    facts.planned = planned;
    ui::KvGeometry geometry;
    geometry.dtype = QStringLiteral("bfloat16");
    geometry.headDim = 64;
    geometry.contextLimit = 131072;
    geometry.groups = {{QStringLiteral("full"), {1, 3}, 0, 24576, 64},
                       {QStringLiteral("sliding"), {0, 2}, 128, 24576, 127}};
    facts.geometry = geometry;
    const auto full = geometry.groups[0].pageBytes(static_cast<double>(tokens));
    const auto sliding = geometry.groups[1].pageBytes(static_cast<double>(tokens));
    facts.samples = {{0, tokens, full, sliding}};
    return facts;
}

} // namespace

class KvLimitsTest final : public QObject {
    Q_OBJECT

private slots:
    void tokensWithinAreTheMostThatFit() {
        const ui::KvGeometry geometry = *gptOss(100).geometry;
        for (const std::uint64_t bytes :
             {std::uint64_t{0}, std::uint64_t{1}, kMiB, 100 * kMiB, 4096 * kMiB, std::uint64_t{1} << 62}) {
            const std::int64_t most = ui::kvTokensWithin(geometry, bytes);
            QVERIFY(geometry.pages(static_cast<double>(most)) <= bytes || most == 0);
            QVERIFY(most == std::int64_t{1} << 40 || geometry.pages(static_cast<double>(most + 1)) > bytes);
        }
    }

    void anotherTypeTakesAScaleForEachRow() {
        const ui::KvGeometry geometry = *gptOss(100).geometry;
        QCOMPARE(ui::kvInType(geometry, QStringLiteral("int8"))->groups[0].bytesPerToken, 24576ULL * 68 / 128);
        QCOMPARE(ui::kvInType(geometry, QStringLiteral("float32"))->groups[0].bytesPerToken, 24576ULL * 2);
        ui::KvGeometry unknown = geometry;
        unknown.headDim = 0;
        QVERIFY(!ui::kvInType(unknown, QStringLiteral("int8")));
    }

    void sentencesSayWhatWindowsSave() {
        const ui::KvRoom room{16384 * kMiB, 14725 * kMiB};
        const ui::KvSentences words = ui::kvSentences(gptOss(20461), room);
        QVERIFY2(
            words.first.startsWith(QStringLiteral(
                "The window of 2 layers saves **477\u00A0MiB** at 20,461 tokens, half of the cache; from 128 tokens")),
            qPrintable(words.first));
        QVERIFY2(
            words.second.startsWith(QStringLiteral(
                "Held 483\u00A0MiB instead of 960\u00A0MiB. Under the budget of 16.00\u00A0GiB memory ends at 70,")),
            qPrintable(words.second));
        QVERIFY(words.second.endsWith(QStringLiteral("With an FP8 or INT8 cache the model ends first, at 131,072.")));
        QVERIFY(ui::kvSentences(gptOss(20), room).first.contains(QStringLiteral("nothing yet")));
        ui::KvSummary full = gptOss(1000);
        full.geometry->groups.pop_back();
        QVERIFY(ui::kvSentences(full, std::nullopt).first.startsWith(QStringLiteral("Every token takes")));
        QVERIFY(ui::kvSentences({}, room).first.isEmpty());
    }

    void sequencesShareTheModelsContext() {
        ui::KvSummary facts = gptOss(20461);
        facts.geometry->sequences = 4;
        facts.ending = QStringLiteral("ended: 4 at a stop token");
        const QString second = ui::kvSentences(facts, ui::KvRoom{163840 * kMiB, 14725 * kMiB}).second;
        QVERIFY2(second.contains(QStringLiteral("The run ended: 4 at a stop token. The model ends first, at 524,288 "
                                                "tokens of 4 sequences together.")),
                 qPrintable(second));
    }

    void plansAreNotMeasured() {
        const ui::KvSentences words = ui::kvSentences(gptOss(5000, true), std::nullopt);
        QVERIFY(words.second.startsWith(QStringLiteral("Planned pages:")));
        for (const ui::ChartSeries& series : ui::kvCurveChart(gptOss(5000, true), {}).series) {
            QVERIFY(series.kind != ui::ChartSeries::Kind::Dots);
        }
    }

    void curvesAreStairs() {
        ui::KvSummary facts = gptOss(4096);
        facts.samples.push_back(gptOss(4097).samples.front());
        facts.samples.push_back(gptOss(5000).samples.front());
        const ui::KvCurveChart curve = ui::kvCurveChart(facts, {});
        const std::vector<QPointF>& points = curve.series.front().points;
        QCOMPARE(points.front(), QPointF(4096, 0)); // nothing before the first sample
        for (std::size_t i = 1; i < points.size(); ++i) {
            QVERIFY(points[i].x() == points[i - 1].x() || points[i].y() == points[i - 1].y());
        }
    }

    void changesArePriced() {
        const ui::FlatTreePtr table = ui::kvChangeTable(gptOss(20461), ui::KvRoom{16384 * kMiB, 14725 * kMiB}, 20461);
        QStringList names;
        for (const ui::FlatNode& row : table->nodes) {
            names << row.cells[0].text;
        }
        QCOMPARE(names, QStringList({QStringLiteral("As it is"), QStringLiteral("FP8 cache"),
                                     QStringLiteral("INT8 cache"), QStringLiteral("Pages of 16"),
                                     QStringLiteral("Pages of 256"), QStringLiteral("No windows")}));
        QCOMPARE(table->nodes[2].cells[3].text, QStringLiteral("131,072"));
        QVERIFY(table->nodes[5].cells[2].delta > 0);
    }
};

QTEST_MAIN(KvLimitsTest)
#include "kv_limits_test.moc"

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/common/plot_series.h"

#include <QTest>
#include <cmath>
#include <limits>

using namespace vitrine;
using ui::PlotSeries;

class PlotSeriesTest final : public QObject {
    Q_OBJECT

private slots:
    void nothing() {
        const PlotSeries series;
        QVERIFY(series.samples(ui::AxisMap::ofTime({0, 100}, 100), 100).empty());
        QVERIFY(!series.span());
        QVERIFY(!series.nearest(5));
    }

    void fewValuesAreDrawnAsTheyAre() {
        PlotSeries series;
        for (int i = 0; i <= 10; ++i) {
            series.add(i * 10, i);
        }
        const auto all = series.samples(ui::AxisMap::ofTime({0, 100}, 200), 200);
        QCOMPARE(all.size(), std::size_t(11));
        QCOMPARE(all[3].x, 60.0);
        QCOMPARE(all[3].value, 3.0);
        // The neighbours beyond both edges, so that the line goes on to them.
        const auto part = series.samples(ui::AxisMap::ofTime({35, 55}, 200), 200);
        QCOMPARE(part.size(), std::size_t(4));
        QCOMPARE(part.front().value, 3.0);
        QCOMPARE(part.back().value, 6.0);
    }

    void manyValuesAreSummarisedForEachColumn() {
        PlotSeries series;
        for (int i = 0; i < 100'000; ++i) {
            series.add(i, i == 54'321 ? 1000.0 : std::sin(i));
        }
        const auto samples = series.samples(ui::AxisMap::ofTime({0, 100'000}, 500), 500);
        QVERIFY(samples.size() <= 502);
        double highest = 0;
        for (const ui::PlotSample& sample : samples) {
            QVERIFY(sample.low <= sample.value && sample.value <= sample.high);
            highest = std::max(highest, sample.high);
        }
        QCOMPARE(highest, 1000.0); // one value among 100,000 is seen
    }

    void whatIsNoNumberBreaksTheLine() {
        const double nan = std::numeric_limits<double>::quiet_NaN();
        PlotSeries series;
        series.add(0, 1);
        series.add(10, nan);
        series.add(20, 3);
        const auto samples = series.samples(ui::AxisMap::ofTime({0, 20}, 100), 100);
        QVERIFY(std::isnan(samples[1].value));
        QCOMPARE(series.span()->first, 1.0);
        QCOMPARE(series.span()->second, 3.0);
        QVERIFY(!series.span({5, 15}));
    }

    void nearest() {
        PlotSeries series;
        series.add(10, 1);
        series.add(20, 2);
        QCOMPARE(*series.nearest(-5), std::size_t(0));
        QCOMPARE(*series.nearest(14), std::size_t(0));
        QCOMPARE(*series.nearest(16), std::size_t(1));
        QCOMPARE(*series.nearest(999), std::size_t(1));
    }

    void scales() {
        const ui::PlotScale loss = ui::plotScale(1.21, 1.97, 5);
        QCOMPARE(loss.text(loss.low), QStringLiteral("1.2"));
        QCOMPARE(loss.text(loss.high), QStringLiteral("2.0"));
        QCOMPARE(loss.lines(), 5);
        const ui::PlotScale speed = ui::plotScale(9'012, 9'990, 2);
        QCOMPARE(speed.text(speed.low), QStringLiteral("9,000"));
        QVERIFY(speed.high >= 9'990);
        for (const auto& [low, high] : {std::pair(0.0, 0.0), {1e-300, 1e-300}, {-5.0, 5.0}, {3.0, 3.0}, {0.0, 1e300}}) {
            const ui::PlotScale scale = ui::plotScale(low, high, 4);
            QVERIFY(scale.low <= low && scale.high >= high * (1 - 1e-9) && scale.low < scale.high);
            QVERIFY(scale.lines() <= 6);
        }
        const ui::PlotScale none = ui::plotScale(std::numeric_limits<double>::quiet_NaN(), 1, 4);
        QVERIFY(none.low < none.high);
    }

    /// A few values far away do not decide the scale, but two values are both usual.
    void usualSpan() {
        ui::PlotSeries series;
        series.add(0, 1000);
        for (int i = 1; i < 300; ++i) {
            series.add(i, 1 + i / 300.0);
        }
        series.add(300, -50);
        const auto usual = series.usualSpan({0, 300});
        QVERIFY(usual && usual->first >= 1 && usual->second <= 2);
        QCOMPARE(series.usualSpan({0, 1})->second, 1000.0);
        QVERIFY(!series.usualSpan({400, 500}));
    }
};

QTEST_GUILESS_MAIN(PlotSeriesTest)
#include "plot_series_test.moc"

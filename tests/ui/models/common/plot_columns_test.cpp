// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/common/plot_columns.h"

#include <QTest>
#include <cmath>
#include <limits>

using namespace vitrine;
using ui::AxisMap;
using ui::PlotColumns;
using ui::PlotSeries;

namespace {

bool equal(double a, double b) {
    return a == b || (std::isnan(a) && std::isnan(b));
}

bool equal(const std::vector<ui::PlotSample>& a, const std::vector<ui::PlotSample>& b) {
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](const auto& x, const auto& y) {
               return equal(x.x, y.x) && equal(x.value, y.value) && equal(x.low, y.low) && equal(x.high, y.high);
           });
}

} // namespace

class PlotColumnsTest final : public QObject {
    Q_OBJECT

private slots:
    void growingGivesTheSameSamples() {
        // From one value to many in a column, beyond the right edge, with values that are no numbers.
        const AxisMap axis = AxisMap::ofTime({50, 850}, 90);
        PlotSeries series;
        PlotColumns columns;
        for (int i = 0; i < 1000; ++i) {
            series.add(i, i % 37 == 0 ? std::numeric_limits<double>::quiet_NaN() : std::sin(i));
            QVERIFY2(equal(columns.samples(series, axis, 90), series.samples(axis, 90)),
                     qPrintable(QString::number(i)));
        }
    }

    void moreValuesCostTheirColumnsOnly() {
        for (const int before : {1000, 100'000}) {
            const AxisMap axis = AxisMap::ofTime({0, 2 * before}, 400);
            PlotSeries series;
            for (int i = 0; i < before; ++i) {
                series.add(i, i);
            }
            PlotColumns columns;
            columns.samples(series, axis, 400);
            const auto first = columns.made();
            for (int i = before; i < before + 50; ++i) {
                series.add(i, i);
                columns.samples(series, axis, 400);
            }
            QVERIFY(columns.made() - first <= 50 * 2);
        }
    }

    void anotherAxisOrSeriesBeginsAnew() {
        PlotSeries series, other;
        for (int i = 0; i < 500; ++i) {
            series.add(i, i);
            other.add(i, -i);
        }
        PlotColumns columns;
        for (const AxisMap& axis : {AxisMap::ofTime({0, 500}, 100), AxisMap::ofTime({100, 300}, 100),
                                    AxisMap::ofTime({100, 300}, 400), AxisMap::ofTime({800, 900}, 100)}) {
            const int count = static_cast<int>(axis.width());
            QVERIFY(equal(columns.samples(series, axis, count), series.samples(axis, count)));
            QVERIFY(equal(columns.samples(other, axis, count), other.samples(axis, count)));
            columns.forget();
            QVERIFY(equal(columns.samples(series, axis, count), series.samples(axis, count)));
        }
        QVERIFY(columns.samples(PlotSeries(), AxisMap::ofTime({0, 500}, 100), 100).empty());
    }
};

QTEST_GUILESS_MAIN(PlotColumnsTest)
#include "plot_columns_test.moc"

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Lanes of lines on any scale, and the strip of marks above them.
#include "ui/widgets/timeline/series_lane.h"

#include <QImage>
#include <QSignalSpy>
#include <QTest>
#include <limits>

#include "ui/widgets/plots/fact_strip.h"
#include "ui/widgets/timeline/mark_strip.h"

using namespace vitrine;

namespace {

constexpr int kWidth = 460; // 400 beside the gutter

int pixelsOf(const QImage& image, const QColor& color) {
    int count = 0;
    for (int y = 0; y < image.height(); ++y) {
        for (int x = static_cast<int>(ui::kGutter); x < image.width(); ++x) {
            count += image.pixelColor(x, y) == color ? 1 : 0;
        }
    }
    return count;
}

ui::LaneSeries seriesOf(std::shared_ptr<const ui::PlotSeries> values, ui::LaneSeries::Mark mark) {
    return {QStringLiteral("loss"),
            [values](const ui::AxisMap& axis, int columns) { return values->samples(axis, columns); },
            [](const ui::ThemeTokens& t) { return t.accent; }, mark};
}

} // namespace

class SeriesLaneTest final : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() { ui::Theme::instance().install(); }

    void scaleNeedNotBeginAtZero() {
        ui::TimeCursor time;
        ui::SeriesLane lane(QStringLiteral("Loss"), QStringLiteral("nats"), &time, nullptr);
        lane.setSeries({}, ui::plotScale(1.2, 2.0, 4));
        const QRectF plot(60, 0, 400, 100);
        QVERIFY(lane.yOf(1.2, plot) > lane.yOf(2.0, plot));
        QCOMPARE(lane.yOf(-50, plot), lane.yOf(lane.scale().low, plot)); // stays inside
    }

    /// One high value among many is painted however many share its column.
    void noPeakIsLost() {
        ui::TimeCursor time;
        time.reset({0, 100'000});
        ui::SeriesLane lane(QStringLiteral("Norm"), {}, &time, nullptr);
        lane.setPlotHeight(100, 0);
        lane.resize(kWidth, 123);
        lane.setAxis(ui::AxisMap::ofTime({0, 100'000}, 400));
        auto values = std::make_shared<ui::PlotSeries>();
        for (int i = 0; i < 100'000; ++i) {
            values->add(i, i == 50'000 ? 10 : 1);
        }
        lane.setSeries({seriesOf(values, ui::LaneSeries::Mark::Thin)}, ui::plotScale(0, 10, 2));
        const QImage image = lane.picture(1);
        const int high = static_cast<int>(lane.yOf(9.5, QRectF(60, 0, 400, image.height())));
        bool seen = false;
        for (int x = 255; x <= 265; ++x) {
            seen = seen || image.pixelColor(x, high) == ui::themeTokens().accent;
        }
        QVERIFY(seen);
    }

    void oneValueIsADotAndNoNumbersAreAGap() {
        ui::TimeCursor time;
        ui::SeriesLane lane(QStringLiteral("Loss"), {}, &time, nullptr);
        lane.resize(kWidth, 123);
        lane.setAxis(ui::AxisMap::ofTime({0, 100}, 400));
        auto one = std::make_shared<ui::PlotSeries>();
        one->add(50, 1);
        lane.setSeries({seriesOf(one, ui::LaneSeries::Mark::Thin)}, ui::plotScale(0, 2, 2));
        QVERIFY(pixelsOf(lane.picture(1), ui::themeTokens().accent) >= 4);
        auto none = std::make_shared<ui::PlotSeries>();
        none->add(50, std::numeric_limits<double>::quiet_NaN());
        lane.setSeries({seriesOf(none, ui::LaneSeries::Mark::Bold)}, {});
        QCOMPARE(pixelsOf(lane.picture(1), ui::themeTokens().accent), 0);
    }

    /// Steps that come one by one: the picture is that of all at once, and only columns at its end are painted.
    void newValuesArePaintedAtTheEndOnly() {
        ui::TimeCursor time;
        time.reset({0, 600});
        const auto made = [&time] {
            auto lane = std::make_unique<ui::SeriesLane>(QStringLiteral("Loss"), QString(), &time, nullptr);
            lane->setPlotHeight(100, 0);
            lane->resize(kWidth, 123);
            lane->show(); // a hidden one is painted whole each time
            lane->setAxis(ui::AxisMap::ofTime({0, 600}, 400));
            return lane;
        };
        const auto show = [](ui::SeriesLane& lane, int values, std::optional<base::TimeNs> same) {
            auto raw = std::make_shared<ui::PlotSeries>(), smooth = std::make_shared<ui::PlotSeries>();
            for (int i = 0; i < values; ++i) {
                raw->add(i, 1 + std::sin(i * 1.7));
                smooth->add(i, 1 + std::sin(i * 0.05));
            }
            lane.setSeries({seriesOf(raw, ui::LaneSeries::Mark::Thin), seriesOf(smooth, ui::LaneSeries::Mark::Bold)},
                           ui::plotScale(0, 2, 2), same);
            lane.setLimit(1.5, QStringLiteral("clip"));
            lane.setEnd(values - 1, QString::number(values), true);
            return lane.grab().toImage();
        };
        const auto grown = made();
        show(*grown, 410, {}); // more than columns from the begin
        const std::int64_t first = grown->paintedColumns();
        for (int values = 411; values < 560; ++values) {
            const QImage image = show(*grown, values, values - 2);
            const auto fresh = made();
            QVERIFY2(image == show(*fresh, values, {}), qPrintable(QString::number(values)));
        }
        QVERIFY(first >= 400);
        const std::int64_t each = (grown->paintedColumns() - first) / 149;
        QVERIFY2(each < 160, qPrintable(QString::number(each))); // what is right of the end holds its label
    }

    void marksAreFoundByTheirPlace() {
        ui::TimeCursor time;
        time.reset({0, 1000});
        ui::MarkStrip strip(QStringLiteral("Saved"), &time, nullptr);
        strip.resize(kWidth, 17);
        strip.setAxis(ui::AxisMap::ofTime({0, 1000}, 400));
        ui::MarkRow row{QStringLiteral("Saved"), {}};
        for (const base::TimeNs place : {250, 500}) {
            ui::StripMark mark;
            mark.place = place;
            row.marks.push_back(mark);
        }
        strip.setRows({row});
        QSignalSpy clicked(&strip, &ui::MarkStrip::markClicked);
        QTest::mouseClick(&strip, Qt::LeftButton, {}, QPoint(60 + 203, 8));
        QCOMPARE(clicked.count(), 1);
        QCOMPARE(clicked.front().at(1).toInt(), 1);
        QCOMPARE(*time.cursor(), base::TimeNs(500)); // the mark's own place
        QTest::mouseClick(&strip, Qt::LeftButton, {}, QPoint(60 + 320, 8));
        QCOMPARE(clicked.count(), 1);
        QVERIFY(strip.grab().width() > 0);
    }

    void factsGiveWayFromTheRight() {
        ui::FactStrip strip(QStringLiteral("Form"), QStringLiteral("Copy to form"), nullptr);
        strip.setFacts({{QStringLiteral("Model"), QString(200, QLatin1Char('m'))},
                        {QStringLiteral("Seed"), QStringLiteral("17")}});
        strip.resize(300, 28);
        QVERIFY(strip.toolTip().endsWith(QLatin1String("Seed 17")));
        QVERIFY(strip.grab().width() > 0);
    }
};

QTEST_MAIN(SeriesLaneTest)
#include "series_lane_test.moc"

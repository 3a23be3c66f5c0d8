// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The plots of the Precision lab: colours, geometry, keys, and data that are none, tiny or huge.
#include <QPainter>
#include <QSignalSpy>
#include <QTest>
#include <cmath>
#include <limits>

#include "tests/ui/models/common/patience.h"
#include "ui/widgets/base/theme.h"
#include "ui/widgets/plots/expert_strip.h"
#include "ui/widgets/plots/group_grid.h"
#include "ui/widgets/plots/group_strip.h"
#include "ui/widgets/plots/heat_map.h"
#include "ui/widgets/plots/histogram_lane.h"
#include "ui/widgets/plots/scored_text.h"

using namespace vitrine;

namespace {

/// OKLab lightness of an sRGB colour.
double lightnessOf(const QColor& color) {
    const auto linear = [](double v) { return v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4); };
    const double r = linear(color.redF()), g = linear(color.greenF()), b = linear(color.blueF());
    const double l = std::cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
    const double m = std::cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
    const double s = std::cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
    return 0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s;
}

ui::HeatMapContent mapOf(int rows, int columns, float value) {
    ui::HeatMapContent content;
    for (int row = 0; row < rows; ++row) {
        content.rows.push_back(QString::number(row));
    }
    content.columns = columns;
    content.values.assign(static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns), value);
    content.words = [](int row, int column) { return QStringLiteral("%1 %2").arg(row).arg(column); };
    return content;
}

engine::GroupDetail groupOf(std::vector<float> values, float step) {
    engine::GroupDetail group;
    group.step = step;
    for (int code = -7; code <= 7; ++code) {
        group.levels.push_back(static_cast<float>(code) * step);
    }
    group.zeroLevel = 7;
    for (const float value : values) {
        const int code = std::clamp(static_cast<int>(std::lround(value / step)), -7, 7);
        group.codes.push_back(code + 7);
        group.rounded.push_back(static_cast<float>(code) * step);
    }
    group.values = std::move(values);
    return group;
}

QColor pixelAt(const QImage& image, QPointF at) {
    return image.pixelColor(at.toPoint());
}

} // namespace

class PrecisionPlotsTest final : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() { ui::Theme::instance().install(); }

    void theRampIsEvenInLightness() {
        for (int step = 0; step < ui::ErrorScale::kSteps; ++step) {
            const double wanted = 0.29 + 0.60 * step / (ui::ErrorScale::kSteps - 1);
            QVERIFY(std::abs(lightnessOf(ui::heatColor(step)) - wanted) < 0.02);
            QVERIFY(ui::contrastRatio(ui::heatColor(step), ui::heatInk(step)) >= 4.5);
        }
    }

    void fewLayersHaveWiderCells() {
        ui::HeatMap map(QStringLiteral("map"), nullptr);
        map.resize(1023, 160);
        map.setContent(mapOf(8, 6, 20));
        QCOMPARE(map.cellRect({0, 0}).size(), QSizeF(35, 16));
        map.setContent(mapOf(8, 40, 20));
        QCOMPARE(map.cellRect({0, 0}).size(), QSizeF(20, 16));
        map.setContent(mapOf(8, 64, 20));
        QCOMPARE(map.cellRect({0, 0}).size(), QSizeF(15, 15));
    }

    void cellsAreWhereTheyArePaintedAndClicked() {
        ui::HeatMap map(QStringLiteral("map"), nullptr);
        map.resize(1023, 160);
        ui::HeatMapContent content = mapOf(8, 48, 20);
        content.values[content.at(2, 5)] = 15;
        content.values[content.at(3, 6)] = std::numeric_limits<float>::quiet_NaN();
        map.setContent(content);
        map.show();
        QCOMPARE(map.cellRect({0, 1}).left() - map.cellRect({0, 0}).left(), 18.0);
        QCOMPARE(map.cellRect({0, 0}).size(), QSizeF(17, 16));
        const QImage image = map.picture(map.size(), 1);
        QCOMPARE(pixelAt(image, map.cellRect({2, 5}).topLeft() + QPointF(2, 2)), ui::heatColor(9));
        QCOMPARE(pixelAt(image, map.cellRect({2, 6}).topLeft() + QPointF(2, 2)), ui::heatColor(1));
        QCOMPARE(pixelAt(image, map.cellRect({3, 6}).center()).alpha(), 255);
        QVERIFY(pixelAt(image, map.cellRect({3, 6}).center()) == ui::themeTokens().canvas);
        QSignalSpy chosen(&map, &ui::HeatMap::cellChosen), row(&map, &ui::HeatMap::rowChosen),
            column(&map, &ui::HeatMap::columnChosen);
        QTest::mouseClick(&map, Qt::LeftButton, {}, map.cellRect({2, 5}).center().toPoint());
        QCOMPARE(chosen.size(), 1);
        QCOMPARE(chosen[0][0].toInt(), 2);
        QCOMPARE(chosen[0][1].toInt(), 5);
        QTest::mouseClick(&map, Qt::LeftButton, {}, QPoint(20, static_cast<int>(map.cellRect({4, 0}).center().y())));
        QCOMPARE(row.size(), 1);
        QCOMPARE(row[0][0].toInt(), 4);
        QTest::mouseClick(&map, Qt::LeftButton, {},
                          QPoint(static_cast<int>(map.cellRect({0, 7}).center().x()), map.height() - 6));
        QCOMPARE(column.size(), 1);
        QCOMPARE(column[0][0].toInt(), 7);
    }

    void arrowsMoveTheFrameAndStopAtTheEdges() {
        ui::HeatMap map(QStringLiteral("map"), nullptr);
        map.resize(800, 160);
        map.setContent(mapOf(2, 3, 18));
        map.show();
        QTest::keyClick(&map, Qt::Key_Right); // the first key takes the first cell
        QCOMPARE(map.selected(), std::optional(ui::HeatMap::Cell(0, 0)));
        QTest::keyClick(&map, Qt::Key_Up);
        QTest::keyClick(&map, Qt::Key_Down);
        QTest::keyClick(&map, Qt::Key_Down);
        QTest::keyClick(&map, Qt::Key_Right);
        QCOMPARE(map.selected(), std::optional(ui::HeatMap::Cell(1, 1)));
        QCOMPARE(map.spoken(), QStringLiteral("1 1"));
    }

    void manyLayersAreNarrowAndScrollToTheChosenOne() {
        ui::HeatMap map(QStringLiteral("map"), nullptr);
        map.resize(600, 160);
        map.setContent(mapOf(8, 64, 18));
        map.show();
        QCOMPARE(map.cellRect({0, 0}).width(), 15.0);
        map.setContent(mapOf(8, 400, 18));
        QCOMPARE(map.cellRect({0, 0}).width(), 12.0);
        QCOMPARE(map.offset().x(), 0.0);
        map.setSelected(ui::HeatMap::Cell(0, 399));
        QVERIFY(map.offset().x() > 4000);
        QVERIFY(map.rect().contains(map.cellRect({0, 399}).toRect()));
        map.setContent(mapOf(1000, 4000, 18)); // only what is in view is painted
        QVERIFY(!map.picture(map.size(), 1).isNull());
        map.setContent({});
        QVERIFY(!map.picture(map.size(), 1).isNull());
        QVERIFY(!map.selected());
        QTest::keyClick(&map, Qt::Key_Right);
        QVERIFY(!map.selected());
    }

    void theHistogramMergesBinsToBarsAndCountsAll() {
        auto histogram = std::make_shared<engine::ValueHistogram>();
        histogram->range = 1;
        histogram->before.assign(10'001, 1);
        histogram->after.assign(10'001, 0);
        histogram->after[5000] = 10'001;
        ui::HistogramLane lane(QStringLiteral("weights"), nullptr);
        lane.resize(320, 138);
        lane.setHistogram(histogram, QStringLiteral("A, INT4"), QStringLiteral("B, BF16"));
        lane.show();
        QTest::keyClick(&lane, Qt::Key_Right); // begins in the middle
        QVERIFY(lane.spoken().contains(QStringLiteral("A 10,001")));
        QTest::keyClick(&lane, Qt::Key_Left);
        QVERIFY(lane.spoken().contains(QStringLiteral("A 0")));
        lane.setHistogram(nullptr, {}, {});
        QCOMPARE(lane.spoken(), QString());
        QVERIFY(!lane.picture({320, 138}, 1).isNull());
        auto empty = std::make_shared<engine::ValueHistogram>(); // a matrix of zeros
        empty->before = empty->after = {0, 64, 0};
        lane.setHistogram(empty, {}, {});
        QVERIFY(!lane.picture({320, 138}, 1).isNull());
    }

    void theStripFindsTheWorstGroupAmongMany() {
        auto groups = std::make_shared<std::vector<float>>(1'000'000, 0.001F);
        (*groups)[654'321] = 0.02F;
        ui::GroupStrip strip(QStringLiteral("groups"), nullptr);
        strip.resize(410, 138);
        strip.setGroups(groups);
        strip.show();
        QTRY_VERIFY(strip.settled());
        QVERIFY(strip.columns().size() <= 410);
        QSignalSpy chosen(&strip, &ui::GroupStrip::groupChosen);
        QTest::keyClick(&strip, Qt::Key_Right); // the first key goes to the worst column
        QTest::keyClick(&strip, Qt::Key_Return);
        QCOMPARE(chosen.size(), 1);
        QCOMPARE(chosen[0][0].toLongLong(), 654'321LL);
        strip.setChosen(654'321);
        QVERIFY(!strip.picture({410, 138}, 2).isNull());
        strip.setGroups(std::make_shared<std::vector<float>>(std::vector<float>{0.0F}));
        QTRY_VERIFY(strip.settled());
        QCOMPARE(strip.columns().size(), std::size_t(1));
        strip.setGroups(nullptr);
        QVERIFY(strip.columns().empty());
    }

    void theGridWalksFromTheWorstWeight() {
        std::vector<float> values(32, 0.01F);
        values[3] = 0.7F;
        values[9] = -0.047F; // half a step away from both levels
        ui::GroupGrid grid(QStringLiteral("group"), nullptr);
        grid.resize(1023, 184);
        grid.setGroup(std::make_shared<engine::GroupDetail>(groupOf(values, 0.1F)));
        grid.show();
        QVERIFY(
            grid.spoken().contains(QStringLiteral("weight 3 of the row sets the scale: 31 of 32 weights become 0")));
        QTest::keyClick(&grid, Qt::Key_Right);
        QCOMPARE(grid.currentWeight(), 9);
        QVERIFY(grid.spoken().contains(QStringLiteral("−0.047")));
        QTest::keyClick(&grid, Qt::Key_Right);
        QCOMPARE(grid.currentWeight(), 10);
        grid.setGroup(std::make_shared<engine::GroupDetail>(groupOf(std::vector<float>(4096, 0.05F), 0.1F)));
        for (int i = 0; i < 80; ++i) {
            QTest::keyClick(&grid, Qt::Key_Right);
        }
        QVERIFY(grid.offset().x() > 0); // the cursor stays in view
        grid.setGroup(std::make_shared<engine::GroupDetail>());
        QVERIFY(!grid.picture({1023, 184}, 1).isNull());
        grid.setGroup(nullptr);
        QCOMPARE(grid.spoken(), QString());
    }

    void expertsAreWalkedAndChosen() {
        ui::ExpertStrip strip(QStringLiteral("experts"), nullptr);
        strip.resize(348, 112);
        strip.setExperts({17, 18, std::numeric_limits<float>::quiet_NaN(), 16}, {}, 1);
        strip.show();
        QVERIFY(strip.spoken().contains(QStringLiteral("Expert 1: 18.00 dB")));
        QSignalSpy clicked(&strip, &ui::ItemPlot::itemClicked);
        QTest::keyClick(&strip, Qt::Key_Right);
        QTest::keyClick(&strip, Qt::Key_Right);
        QTest::keyClick(&strip, Qt::Key_Right);
        QTest::keyClick(&strip, Qt::Key_Return);
        QCOMPARE(clicked[0][0].toInt(), 3);
        strip.setExperts({}, {}, 0);
        QVERIFY(!strip.picture({348, 112}, 1).isNull());
        strip.setExperts({std::numeric_limits<float>::infinity()}, {}, 0);
        QVERIFY(!strip.picture({348, 112}, 1).isNull());
    }

    void textIsWalkedTokenByToken() {
        std::vector<ui::ScoredText::Token> tokens;
        for (int i = 0; i < 5000; ++i) {
            tokens.push_back(
                {i % 40 == 39 ? QStringLiteral("end\n") : QStringLiteral("word "), i == 3000 ? -0.3F : 0.01F});
        }
        ui::ScoredText text(QStringLiteral("text"), nullptr);
        text.resize(400, 180);
        text.setTokens(tokens, [](int token) { return QString::number(token); });
        text.show();
        QTest::keyClick(&text, Qt::Key_Right);
        QCOMPARE(text.currentToken(), 0);
        QCOMPARE(text.spoken(), QStringLiteral("0"));
        QTest::keyClick(&text, Qt::Key_Right, Qt::ShiftModifier);
        QCOMPARE(text.currentToken(), 3000);
        const auto [first, last] = text.inView();
        QVERIFY(first <= 3000 && last > 3000);
        QVERIFY(last - first < 300);
        const std::vector<QRectF> rects = text.rectsOf(3000);
        QVERIFY(!rects.empty());
        QCOMPARE(text.tokenAt(rects.front().center()), 3000);
        QVERIFY(pixelAt(text.picture(text.size(), 1), rects.front().topLeft() + QPointF(2, 3)) !=
                ui::themeTokens().canvas);
        QCOMPARE(text.nextLarge(1), -1);
        QTest::keyClick(&text, Qt::Key_Right, Qt::ShiftModifier); // there is none: it stays
        QCOMPARE(text.currentToken(), 3000);
        // The same text in another format keeps the place.
        text.setTokens(tokens, [](int token) { return QString::number(token); });
        QCOMPARE(text.currentToken(), 3000);
    }

    void oddTextIsNoTrouble() {
        ui::ScoredText text(QStringLiteral("text"), nullptr);
        text.resize(300, 150);
        text.show();
        text.setTokens({}, {});
        QTest::keyClick(&text, Qt::Key_Right);
        QCOMPARE(text.currentToken(), -1);
        std::vector<ui::ScoredText::Token> tokens = {{QString(), 1},
                                                     {QStringLiteral("\n"), -1},
                                                     {QString(QChar(0)), std::numeric_limits<float>::quiet_NaN()},
                                                     {QString(100'000, QLatin1Char('x')), 0.5F},
                                                     {QStringLiteral("עברית"), -0.5F}};
        text.setTokens(tokens, [](int token) { return QString::number(token); });
        for (int i = 0; i < 5; ++i) {
            QTest::keyClick(&text, Qt::Key_Right);
            QVERIFY(!text.picture(text.size(), 1).isNull());
        }
        QCOMPARE(text.currentToken(), 4);
        const auto rects = text.rectsOf(4);
        QVERIFY(!rects.empty());
        QCOMPARE(text.tokenAt(rects.front().center()), 4);
    }
};

QTEST_MAIN(PrecisionPlotsTest)
#include "precision_plots_test.moc"

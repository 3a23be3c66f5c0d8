// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Painters are pure functions: heights of columns and sampled pixels against the values they show.
#include <QTest>

#include "tests/ui/models/common/fake_runs.h"
#include "ui/widgets/timeline/allocation_painter.h"
#include "ui/widgets/timeline/lane_stack.h"
#include "ui/widgets/timeline/lanes.h"
#include "ui/widgets/timeline/stack_painter.h"

using namespace vitrine;
using namespace vitrine::ui;
using test::seconds;

class PaintersTest final : public QObject {
    Q_OBJECT

    static ThemeTokens tokens(bool dark) {
        Theme::instance().setMode(dark ? Theme::Mode::Dark : Theme::Mode::Light);
        return themeTokens();
    }

    static StackInput input(const profiler::RunTimeline& run, double width, int columns) {
        StackInput in;
        in.axis = AxisMap::ofTime({0, run.end()}, width);
        in.model = categoryStack(run, in.axis, columns);
        in.labels = false;
        return in;
    }

private slots:
    void initTestCase() { Theme::instance().install(); }

    void columnHeightsAreTheValues_data() {
        QTest::addColumn<double>("dpr");
        QTest::addColumn<bool>("dark");
        for (const double dpr : {1.0, 1.5, 2.0}) {
            QTest::addRow("dark %g", dpr) << dpr << true;
            QTest::addRow("light %g", dpr) << dpr << false;
        }
    }

    void columnHeightsAreTheValues() {
        QFETCH(double, dpr);
        QFETCH(bool, dark);
        const ThemeTokens theme = tokens(dark);
        const auto run = test::makeOutOfMemoryRun();
        const PlotFrame frame{QSizeF(460, 300), dpr, kGutter};
        const StackInput in = input(*run, 400, frame.columns());
        const QImage image = paintStack(in, frame, theme);
        QCOMPARE(image.size(), QSize(int(460 * dpr), int(300 * dpr)));
        const ByteScale scale = stackScale(in, frame.plot().height());
        const int left = static_cast<int>(std::lround(kGutter * dpr));
        for (std::size_t c = 3; c < in.model->columns.size(); c += 17) {
            const double wanted =
                static_cast<double>(in.model->columns[c].total) / static_cast<double>(scale.top) * image.height();
            int top = 0; // first row of data from above
            while (top < image.height() && !isData(image.pixelColor(left + static_cast<int>(c), top), theme)) {
                ++top;
            }
            QVERIFY2(
                std::abs(image.height() - top - wanted) <= 2.01,
                qPrintable(QStringLiteral("column %1: %2 px, want %3").arg(c).arg(image.height() - top).arg(wanted)));
        }
    }

    void layersHaveTheirColours() {
        const ThemeTokens theme = tokens(true);
        const auto run = test::makeGenerateRun(3);
        const PlotFrame frame{QSizeF(460, 300), 1, kGutter};
        const StackInput in = input(*run, 400, 400);
        const QImage image = paintStack(in, frame, theme);
        const QColor weights = theme.category(base::MemoryCategory::Weights).fill;
        QCOMPARE(image.pixelColor(int(kGutter) + 390, 298), weights);
        QCOMPARE(image.pixelColor(int(kGutter) + 390, 2), theme.canvas);
    }

    void peakAndBudgetKeepOffEachOther() {
        // The peak right under the budget at the left edge, where the budget's words want to stand.
        const ThemeTokens theme = tokens(true);
        const auto run = test::makeGenerateRun(3);
        const PlotFrame frame{QSizeF(460, 300), 1, kGutter};
        StackInput in = input(*run, 400, 400);
        in.peak = run->memory().peak(0, run->end() + 1);
        in.peak->maxTime = in.axis.time(30);
        in.budget = in.peak->maxTotal + in.peak->maxTotal / 200;
        in.top = in.peak->maxTotal;
        const QImage image = paintStack(in, frame, theme);
        const double y =
            frame.plot().top() + stackScale(in, frame.plot().height()).y(static_cast<double>(in.peak->maxTotal));
        int words = 0, triangle = 0;
        for (int x = static_cast<int>(kGutter) + 24; x <= static_cast<int>(kGutter) + 36; ++x) {
            for (int row = static_cast<int>(y) - 18; row < static_cast<int>(y) - 10;
                 ++row) { // above the triangle: only words could be here
                words += image.pixelColor(x, row) == theme.bad ? 1 : 0;
            }
            triangle += image.pixelColor(x, static_cast<int>(y) - 7) == theme.text1 ? 1 : 0;
        }
        QCOMPARE(words, 0);
        QVERIFY(triangle >= 3);
    }

    void isolatedLayersStandOnTheGround() {
        const ThemeTokens theme = tokens(true);
        const auto run = test::makeGenerateRun(3);
        const PlotFrame frame{QSizeF(460, 300), 1, kGutter};
        StackInput in = input(*run, 400, 400);
        const int kv = static_cast<int>(base::MemoryCategory::KvCache);
        in.only = {kv};
        in.top = 48 * test::kMiB;
        const QImage image = paintStack(in, frame, theme);
        const QColor fill = theme.category(base::MemoryCategory::KvCache).fill;
        int hits = 0; // hatched, so count
        for (int y = 290; y < 300; ++y) {
            hits += image.pixelColor(static_cast<int>(kGutter) + 399, y) == fill ? 1 : 0;
        }
        QVERIFY(hits >= 4);
        QCOMPARE(stackSpans(*in.model, 399, in.only).back().top, 48 * test::kMiB);
    }

    void budgetAndGhostArePainted() {
        const ThemeTokens theme = tokens(true);
        const auto run = test::makeOutOfMemoryRun();
        const PlotFrame frame{QSizeF(660, 300), 1, kGutter};
        StackInput in = input(*run, 600, 600);
        in.axis = AxisMap::ofTime({0, run->end() + run->end() / 10}, 600);
        in.model = categoryStack(*run, in.axis, 600);
        in.budget = 80 * test::kGiB;
        in.failures.assign(run->memory().outOfMemory().begin(), run->memory().outOfMemory().end());
        const ByteScale scale = stackScale(in, 300);
        QVERIFY(scale.top > in.failures[0].reserved + in.failures[0].requested); // the ghost is inside
        const QImage image = paintStack(in, frame, theme);
        const int y = static_cast<int>(std::floor(scale.y(80.0 * test::kGiB)));
        int red = 0;
        for (int x = 200; x < 500; ++x) {
            red += image.pixelColor(x, y) == theme.bad ? 1 : 0;
        }
        QVERIFY2(red > 120 && red < 260, qPrintable(QString::number(red))); // dashes 6-3
        // Nothing recorded after the failure: no data there, but the ghost's frame.
        QVERIFY(!in.model->columns.back().present);
    }

    void tinyAndEmptySizes() {
        const ThemeTokens theme = tokens(true);
        const auto run = test::makeOutOfMemoryRun();
        for (const QSizeF size : {QSizeF(0, 0), QSizeF(1, 1), QSizeF(61, 2), QSizeF(70, 10)}) {
            const PlotFrame frame{size, 2, kGutter};
            StackInput in = input(*run, frame.plot().width(), frame.columns());
            in.budget = UINT64_MAX;
            QVERIFY(!paintStack(in, frame, theme).isNull());
            QVERIFY(!paintAllocations({run, in.axis, true, in.budget, {}, {}, {}}, frame, theme).image.isNull());
        }
        const auto nothing = test::TimelineScript().timeline();
        const PlotFrame frame{QSizeF(400, 100), 1, kGutter};
        QVERIFY(!paintStack(input(*nothing, 340, 340), frame, theme).isNull());
        QCOMPARE(
            paintAllocations({nothing, AxisMap::ofTime({0, 100}, 340), true, {}, {}, {}, {}}, frame, theme).hits.size(),
            std::size_t(0));
    }

    void allocationsLieAtTheirPlace() {
        const ThemeTokens theme = tokens(false);
        const auto run = test::makeOutOfMemoryRun();
        const PlotFrame frame{QSizeF(1060, 400), 1, kGutter};
        const AllocationInput in{run, AxisMap::ofTime({0, run->end()}, 1000), true, 80 * test::kGiB, {}, {}, {}};
        const AllocationPicture picture = paintAllocations(in, frame, theme);
        QVERIFY(picture.shapes > 100);
        const ByteScale scale = allocationScale(in, 400);
        std::uint64_t small = 0;
        for (const AllocationHit& hit : picture.hits) {
            const auto row = run->memory().allocations()[hit.row];
            if (hit.count > 1) {
                small += hit.count;
                QVERIFY(hit.rect.height() >= 3); // never nothing
                continue;
            }
            const double width = in.axis.x(row.freed < 0 ? run->end() : row.freed) - in.axis.x(row.born);
            QVERIFY(std::abs(hit.rect.width() - std::max(1.0, width)) <= 1.01 || hit.rect.height() == 3);
            if (hit.rect.height() > 20 && hit.rect.width() > 20) {
                QVERIFY(std::abs(hit.rect.top() - scale.y(double(row.address + row.bytes))) <= 1.0);
            }
        }
        QVERIFY(picture.small >= small);
        // One can look at a category alone.
        AllocationInput only = in;
        only.categories = {static_cast<int>(base::MemoryCategory::Logits)};
        QCOMPARE(paintAllocations(only, frame, theme).shapes, std::uint64_t(5));
    }

    void hatchesAreNotScaled() {
        // A tile's line stays about 1 px wide at every ratio.
        for (const double dpr : {1.0, 2.0}) {
            const PlotFrame frame{QSizeF(60, 60), dpr, 0};
            QImage image = frame.canvas(Qt::black);
            QPainter painter(&image);
            painter.fillRect(QRectF(0, 0, 60, 60), hatchBrush(Hatch::Horizontal, 6, Qt::white, dpr));
            painter.end();
            int white = 0;
            for (int y = 0; y < image.height(); ++y) {
                white += image.pixelColor(5, y) == QColor(Qt::white) ? 1 : 0;
            }
            QCOMPARE(white, int(10 * dpr));
        }
    }

    void spansTooSmallAreAHatch() {
        const ThemeTokens theme = tokens(true);
        SpanRow row;
        row.title = QStringLiteral("Read");
        for (int i = 0; i < 1000; ++i) {
            row.spans.push_back({{i * 10, i * 10 + 5}, QStringLiteral("x"), 0});
        }
        const PlotFrame frame{QSizeF(160, 30), 1, kGutter};
        const QImage image = paintSpans({row}, AxisMap::ofTime({0, 10'000}, 100), 19, frame, theme);
        int other = 0;
        for (int x = 62; x < 158; ++x) {
            for (int y = 4; y < 14; ++y) {
                other += image.pixelColor(x, y) != theme.band ? 1 : 0;
            }
        }
        QVERIFY(other > 100);
    }

    /// Where records were lost, a lane of the memory timeline is hatched, and nowhere else.
    void gapsAreHatched() {
        const ThemeTokens theme = tokens(true);
        test::TimelineScript script = test::generateScript(50);
        const base::TimeNs end = script.timeline()->end(), third = end / 3, late = end * 9 / 10;
        script.add(base::GapEvent{third, 2 * third, 1234, 7});
        script.add(base::GapEvent{late, late, 1, 0}); // a single record
        const auto run = script.timeline();
        TimeCursor time;
        time.reset({0, end});
        LaneStack stack(&time, 0, nullptr);
        auto* lane = new StackLane(QStringLiteral("Memory"), &time, &stack);
        stack.addLane(lane);
        stack.resize(1000, 300);
        stack.show();
        QVERIFY(QTest::qWaitForWindowExposed(&stack));
        lane->setTimeline(run);
        lane->setTop(3 * run->memory().peak(0, end).maxTotal); // room above the data
        const QImage plain = lane->picture(1);                 // the lane does not know of the gaps yet
        stack.setTimeline(run);
        const QImage hatched = lane->picture(1);
        const QRectF plot = lane->frame().plot();
        const auto x = [&](base::TimeNs at) { return plot.left() + lane->axis().x(at); };
        const auto within = [](double place, double from, double to) { return place + 1 > from && place < to; };
        const int empty = static_cast<int>(plot.top()) + 30; // above the data, below the words
        int changed = 0, lines = 0, missing = 0, elsewhere = 0, atSingle = 0;
        for (int column = 0; column < plain.width(); ++column) {
            bool differs = false;
            for (int row = 0; row < plain.height(); ++row) {
                differs = differs || plain.pixel(column, row) != hatched.pixel(column, row);
            }
            const bool inGap = within(column, x(third), x(2 * third));
            const bool inSingle = within(column, x(late), x(late) + 3);
            missing += inGap && !differs ? 1 : 0;
            elsewhere += differs && !inGap && !inSingle ? 1 : 0;
            atSingle += differs && inSingle ? 1 : 0;
            changed += inGap ? 1 : 0;
            lines += inGap && hatched.pixelColor(column, empty) != plain.pixelColor(column, empty) ? 1 : 0;
        }
        QVERIFY(changed > 250);
        QCOMPARE(missing, 0);
        QCOMPARE(elsewhere, 0);
        QVERIFY(atSingle >= 3); // at least 3 px wide, so that it is seen
        // Over the empty plot there are lines in the colour of warnings, with room between them.
        QVERIFY2(lines > changed / 12 && lines < changed / 2, qPrintable(QString::number(lines)));
        int words = 0;
        for (int column = static_cast<int>(x(third)) + 6; column < static_cast<int>(x(third)) + 100; ++column) {
            for (int row = static_cast<int>(plot.top()) + 4; row < static_cast<int>(plot.top()) + 16; ++row) {
                words += hatched.pixelColor(column, row).lightness() > theme.text1.lightness() - 40 ? 1 : 0;
            }
        }
        QVERIFY2(words > 50, qPrintable(QString::number(words))); // "1,234 records lost"
    }

private:
    static bool isData(const QColor& color, const ThemeTokens& theme) {
        for (const QColor& chrome : {theme.canvas, theme.line0, theme.line1}) {
            if (color == chrome) {
                return false;
            }
        }
        return true;
    }
};

QTEST_MAIN(PaintersTest)
#include "painters_test.moc"

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Lanes of a GPU's counters under the memory of a run: which are there, what they say, where their lines lie.
#include "ui/widgets/timeline/counter_lane.h"

#include <QTest>

#include "tests/ui/models/common/fake_runs.h"

using namespace vitrine;
using namespace vitrine::ui;

namespace {

constexpr int kMemory = 0, kActive = 1, kPower = 2, kTemperature = 3;

} // namespace

class CounterLaneTest final : public QObject {
    Q_OBJECT

    TimeCursor time_;
    QWidget parent_;
    test::TimelineScript run_;
    base::TimeNs end_ = 0;
    std::vector<CounterLane*> lanes_;

    void show() {
        for (CounterLane* lane : lanes_) {
            lane->setTimeline(run_.timeline());
        }
    }

private slots:
    void initTestCase() { Theme::instance().install(); }

    void init() {
        run_ = test::generateScript(3);
        end_ = run_.timeline()->end();
        time_.reset({0, end_});
        lanes_ = makeGpuCounterLanes(&time_, &parent_);
        QCOMPARE(lanes_.size(), std::size_t{4});
    }

    void cleanup() { qDeleteAll(std::exchange(lanes_, {})); }

    void runsWithoutCountersHaveNoLanes() {
        show();
        for (const CounterLane* lane : lanes_) {
            QVERIFY(!lane->recorded());
            QVERIFY(lane->isHidden());
            QVERIFY(lane->facts().isEmpty());
        }
    }

    void startFoldedAndSayMeanAndMost() {
        run_.addCounter("gpu.power_w", 0, 100);
        run_.addCounter("gpu.power_w", static_cast<double>(end_) * 0.5e-9, 300);
        show();
        CounterLane* power = lanes_[kPower];
        QVERIFY(power->recorded());
        QVERIFY(!power->isHidden());
        QVERIFY(power->collapsed());
        QVERIFY(!lanes_[kTemperature]->recorded());
        QCOMPARE(power->top(), 500.0);
        QVERIFY2(power->facts().contains(QStringLiteral("mean 200\u00A0W, most 300\u00A0W")),
                 qPrintable(power->facts()));
        time_.setCursor(end_ / 4);
        QVERIFY2(power->facts().endsWith(QStringLiteral("100\u00A0W")), qPrintable(power->facts()));
        QVERIFY(power->spoken().contains(QStringLiteral("100\u00A0W")));
    }

    void twoCountersShareAScale() {
        run_.addCounter("gpu.dram_read_bytes_per_second", 0, 3.1e12);
        run_.addCounter("gpu.dram_write_bytes_per_second", 0, 0.4e12);
        show();
        QCOMPARE(lanes_[kMemory]->top(), 5e12);
        QVERIFY(lanes_[kMemory]->facts().contains(QStringLiteral("read")));
        QVERIFY(lanes_[kMemory]->facts().contains(QStringLiteral("write")));
    }

    void linesLieWhereTheValuesAre() {
        run_.addCounter("gpu.sm_active", 0, 0.5);
        show();
        CounterLane* lane = lanes_[kActive];
        lane->setCollapsed(false);
        lane->resize(460, 23 + 48);
        lane->setAxis(AxisMap::ofTime(time_.range(), 400));
        const QImage image = lane->picture(1);
        QVERIFY(!image.isNull());
        // 0.5 of a scale that ends 4 px from both edges lies in the middle.
        const int middle = image.height() / 2;
        bool found = false;
        for (int y = middle - 2; y <= middle + 2; ++y) {
            found = found || image.pixelColor(260, y) == themeTokens().text1;
        }
        QVERIFY(found);
        QCOMPARE(image.pixelColor(260, image.height() / 5), themeTokens().canvas);
    }

    void absurdSamplesStayInsideTheLane() {
        run_.addCounter("gpu.sm_active", 0, 1.04);
        run_.addCounter("gpu.power_w", 0, 0);
        run_.addCounter("gpu.temperature_c", 0, -4);
        show();
        QVERIFY(lanes_[kActive]->facts().contains(QStringLiteral("most 100\u00A0%")));
        for (CounterLane* lane : lanes_) {
            if (lane->recorded()) {
                QVERIFY(lane->top() > 0);
                lane->setCollapsed(false);
                lane->resize(460, 71);
                lane->setAxis(AxisMap::ofTime(time_.range(), 400));
                QVERIFY(!lane->picture(2).isNull());
            }
        }
    }
};

QTEST_MAIN(CounterLaneTest)
#include "counter_lane_test.moc"

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// What this machine says of its devices: the processor always, GPUs where there are any; nothing is asked while nobody
// looks.
#include <QCoreApplication>
#include <QSignalSpy>
#include <QTest>

#include "app/gui/machine_device_feed.h"

using namespace vitrine;

namespace {

constexpr int kLimitMs = 60'000;

} // namespace

class DeviceFeedTest final : public QObject {
    Q_OBJECT

private slots:
    void findsTheProcessor() {
        app::MachineDeviceFeed feed;
        QTRY_VERIFY_WITH_TIMEOUT(!feed.devices().empty(), kLimitMs);
        const ui::DeviceEntry processor = feed.devices().back();
        QCOMPARE(processor.backend, QStringLiteral("cpu"));
        QVERIFY(processor.cores > 0);
        QVERIFY(processor.memoryBytes > 0);
        QVERIFY(feed.chosen() >= 0);
        if (feed.devices().size() == 1) { // without a GPU somebody has to say why
            QVERIFY(!feed.notes().isEmpty());
        }
    }

    void readsWhatIsWatchedAndNothingElse() {
        app::MachineDeviceFeed feed;
        QTRY_VERIFY_WITH_TIMEOUT(!feed.devices().empty(), kLimitMs);
        const int processor = static_cast<int>(feed.devices().size()) - 1;
        QSignalSpy changes(&feed, &ui::DeviceFeed::readingsChanged);
        feed.watch({processor, 99});
        QTRY_VERIFY_WITH_TIMEOUT(feed.reading(processor) && feed.reading(processor)->busy, kLimitMs);
        QVERIFY(!feed.reading(99));
        const ui::DeviceReading reading = *feed.reading(processor);
        QVERIFY(reading.own && *reading.own > 1 << 20);
        QVERIFY(reading.used && *reading.used <= *reading.total);
        QVERIFY(*ui::plausible(reading).busy >= 0);
        feed.watch({});
        QCoreApplication::processEvents(); // readings of the time until now
        const auto before = changes.count();
        QTest::qWait(2000);                     // time for four readings
        QVERIFY(changes.count() <= before + 1); // one may have been under way
    }
};

QTEST_GUILESS_MAIN(DeviceFeedTest)
#include "device_feed_test.moc"

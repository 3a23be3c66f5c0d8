// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The device of the next run in the tool bar: what it shows, when it asks, how it gives way, and what it makes of
// devices that vanish or report nonsense.
#include "ui/views/shell/device_strip.h"

#include <QMenu>
#include <QTest>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/ui/models/common/fake_runs.h"
#include "tests/ui/models/common/patience.h"
#include "ui/views/run/run_view.h"
#include "ui/views/shell/main_window.h"
#include "ui/widgets/forms/option_form.h"

using namespace vitrine;
using namespace vitrine::ui;

namespace {

constexpr std::uint64_t kGib = 1ULL << 30;

class FakeFeed final : public DeviceFeed {
public:
    std::vector<DeviceEntry> devices() const override { return entries; }
    std::optional<DeviceReading> reading(int device) const override {
        const auto found = readings.find(device);
        return found == readings.end() ? std::nullopt : std::optional(found->second);
    }
    void watch(const std::set<int>& devices) override { watched = devices; }
    QStringList notes() const override { return off; }

    void addGpus(int count) {
        for (int i = 0; i < count; ++i) {
            DeviceEntry entry;
            entry.backend = QStringLiteral("cuda");
            entry.ordinal = i;
            entry.name = QStringLiteral("NVIDIA H200");
            entry.driver = QStringLiteral("driver 580.95.05");
            entry.memoryBytes = 140 * kGib;
            entries.push_back(entry);
        }
    }
    void addProcessor() {
        DeviceEntry entry;
        entry.backend = QStringLiteral("cpu");
        entry.name = QStringLiteral("Some processor");
        entry.cores = 2;
        entry.memoryBytes = 24 * kGib;
        entries.push_back(entry);
    }

    std::vector<DeviceEntry> entries;
    std::map<int, DeviceReading> readings;
    std::set<int> watched;
    QStringList off;
};

DeviceReading busyGpu() {
    DeviceReading reading;
    reading.total = 140 * kGib;
    reading.used = 23 * kGib;
    reading.own = 14 * kGib;
    reading.busy = 0.97;
    reading.power = 412.3;
    reading.powerLimit = 700;
    reading.temperature = 61;
    reading.clock = 1.98e9;
    return reading;
}

QStringList menuTexts(const DeviceStrip& strip) {
    QStringList texts;
    for (const QAction* action : strip.menu()->actions()) {
        texts << action->text();
    }
    return texts;
}

} // namespace

class DeviceStripTest final : public QObject {
    Q_OBJECT

private slots:
    void showsWhatTheDeviceSays() {
        FakeFeed feed;
        feed.addGpus(1);
        feed.addProcessor();
        feed.readings[0] = busyGpu();
        MainWindow window(nullptr, {}, nullptr, &feed);
        window.resize(1440, 900);
        window.show();
        const QStringList expected{QStringLiteral("H200"),       QStringLiteral("23.0 of 140.0\u00A0GiB"),
                                   QStringLiteral("97\u00A0%"),  QStringLiteral("412\u00A0W"),
                                   QStringLiteral("61\u00A0°C"), QStringLiteral("1.98\u00A0GHz")};
        QTRY_COMPARE(window.deviceStrip()->shownTexts(), expected);
        for (const QString& text : expected) {
            QVERIFY(window.deviceStrip()->spoken().contains(text));
        }
        const QString lines = deviceLines(feed.entries[0], feed.readings[0]).join(QLatin1Char('\n'));
        for (const char* words :
             {"driver 580.95.05", "runs 14.00", "others 9.00", "117.00", "412\u00A0W of 700\u00A0W"}) {
            QVERIFY2(lines.contains(QString::fromUtf8(words)), qPrintable(lines));
        }
    }

    void keepsItsWidthWhileReadingsChange() {
        FakeFeed feed;
        feed.addGpus(1);
        feed.readings[0] = busyGpu();
        MainWindow window(nullptr, {}, nullptr, &feed);
        window.show();
        const int width = window.deviceStrip()->width();
        feed.readings[0].busy = 0;
        feed.readings[0].power = 7;
        feed.readings[0].used = kGib;
        emit feed.readingsChanged();
        QCoreApplication::processEvents();
        QCOMPARE(window.deviceStrip()->width(), width);
    }

    void asksOnlyWhileItIsSeen() {
        FakeFeed feed;
        feed.addGpus(2);
        MainWindow window(nullptr, {}, nullptr, &feed);
        QVERIFY(feed.watched.empty());
        window.show();
        QTRY_COMPARE(feed.watched, std::set<int>{0});
        feed.choose(1);
        QCOMPARE(feed.watched, std::set<int>{1});
        window.showMinimized();
        QTRY_VERIFY(feed.watched.empty());
        window.showNormal();
        QTRY_COMPARE(feed.watched, std::set<int>{1});
        window.hide();
        QTRY_VERIFY(feed.watched.empty());
    }

    void listsEightDevicesAndReadsThemWhileTheMenuIsOpen() {
        FakeFeed feed;
        feed.addGpus(8);
        feed.addProcessor();
        for (int i = 0; i < 8; ++i) {
            feed.readings[i] = busyGpu();
            feed.readings[i].used = static_cast<std::uint64_t>(i + 20) * kGib;
        }
        MainWindow window(nullptr, {}, nullptr, &feed);
        window.show();
        DeviceStrip* strip = window.deviceStrip();
        emit strip->menu()->aboutToShow();
        QCOMPARE(feed.watched.size(), std::size_t{9});
        const QStringList texts = menuTexts(*strip);
        QCOMPARE(texts.size(), 10);
        QVERIFY2(texts[4].contains(QStringLiteral("GPU 3: NVIDIA H200, 23.0 of 140.0")), qPrintable(texts[4]));
        QVERIFY2(texts[9].startsWith(QStringLiteral("CPU, 2 cores, 24\u00A0GiB")), qPrintable(texts[9]));
        strip->menu()->actions()[6]->trigger();
        emit strip->menu()->aboutToHide();
        QCOMPARE(feed.chosen(), 5);
        QCOMPARE(feed.watched, std::set<int>{5});
        auto* run = static_cast<RunView*>(window.view(QStringLiteral("run")));
        QCOMPARE(run->form()->text(QStringLiteral("backend")), QStringLiteral("cuda"));
        QCOMPARE(run->form()->text(QStringLiteral("device")), QStringLiteral("5"));
    }

    void followsTheForm() {
        FakeFeed feed;
        feed.addGpus(2);
        feed.addProcessor();
        MainWindow window(nullptr, {}, nullptr, &feed);
        QCOMPARE(feed.choice(), -1);
        auto* run = static_cast<RunView*>(window.view(QStringLiteral("run")));
        run->fields()->edit(QStringLiteral("device"), QStringLiteral("1"));
        QCOMPARE(feed.chosen(), 1);
        run->fields()->edit(QStringLiteral("backend"), QStringLiteral("cpu"));
        QCOMPARE(feed.chosen(), 2);
        run->fields()->edit(QStringLiteral("backend"), QStringLiteral("cuda"));
        run->fields()->edit(QStringLiteral("device"), QStringLiteral("7"));
        QCOMPARE(feed.choice(), -1); // there is no such device
        feed.choose(-1);
        feed.choose(0);
        QCOMPARE(run->form()->text(QStringLiteral("device")), QStringLiteral("0"));
    }

    void saysWhatIsOffWithoutADriver() {
        FakeFeed feed;
        feed.addProcessor();
        feed.readings[0].total = 24 * kGib;
        feed.readings[0].used = 9 * kGib;
        feed.readings[0].busy = 0.126;
        feed.off << QStringLiteral("cuda off: the NVIDIA driver (libcuda.so.1) was not found; install it");
        MainWindow window(nullptr, {}, nullptr, &feed);
        window.show();
        const QStringList expected{QStringLiteral("CPU, 2 cores, 24\u00A0GiB"), QStringLiteral("9.0\u00A0GiB used"),
                                   QStringLiteral("13\u00A0%")};
        QTRY_COMPARE(window.deviceStrip()->shownTexts(), expected);
        emit window.deviceStrip()->menu()->aboutToShow();
        QVERIFY(menuTexts(*window.deviceStrip()).contains(feed.off.first()));
    }

    void choosesAutomaticallyWhatRunsCanUse() {
        FakeFeed feed;
        feed.addGpus(1);
        feed.addProcessor();
        feed.entries[0].whyNot = QStringLiteral("NVRTC was not found; install the CUDA toolkit");
        QCOMPARE(feed.chosen(), 1);
        QVERIFY(deviceLines(feed.entries[0], {}).join(QLatin1Char('\n')).contains(feed.entries[0].whyNot));
    }

    void saysThatADeviceVanished() {
        FakeFeed feed;
        feed.addGpus(1);
        feed.readings[0] = busyGpu();
        MainWindow window(nullptr, {}, nullptr, &feed);
        window.show();
        feed.readings[0] = {};
        emit feed.readingsChanged();
        const QStringList expected{QStringLiteral("H200"), QStringLiteral("does not answer")};
        QTRY_COMPARE(window.deviceStrip()->shownTexts(), expected);
        feed.entries.clear(); // not even listed any more
        feed.choose(-1);
        emit feed.devicesChanged();
        QTRY_COMPARE(window.deviceStrip()->shownTexts(), QStringList{QStringLiteral("looking for devices")});
        QVERIFY(feed.watched.empty());
    }

    void leavesOutNonsense() {
        DeviceReading reading;
        reading.total = std::numeric_limits<std::uint64_t>::max();
        reading.used = std::numeric_limits<std::uint64_t>::max();
        reading.own = 5;
        reading.busy = 17;
        reading.power = -3;
        reading.powerLimit = std::numeric_limits<double>::infinity();
        reading.temperature = 4294967295.0;
        reading.clock = std::nan("");
        const DeviceReading nothing = plausible(reading);
        QVERIFY(silent(nothing));
        QVERIFY(!nothing.own && !nothing.powerLimit);

        DeviceReading swapped = busyGpu();
        swapped.own = 60 * kGib; // asked a moment later than what is used in all
        QCOMPARE(*plausible(swapped).own, 23 * kGib);
        swapped.used = 141 * kGib;
        QVERIFY(!plausible(swapped).used);
        QVERIFY(!silent(plausible(swapped)));
        QCOMPARE(hertzText(std::nullopt), QStringLiteral("–"));
        QCOMPARE(celsiusText(-4.0), QStringLiteral("−4\u00A0°C"));
    }

    void givesWayInNarrowWindows() {
        FakeFeed feed;
        feed.addGpus(1);
        feed.readings[0] = busyGpu();
        MainWindow window(nullptr, {}, nullptr, &feed);
        window.resize(1024, 700);
        window.show();
        QTRY_COMPARE(window.deviceStrip()->shownTexts(), QStringList());
        QVERIFY(window.deviceStrip()->width() >= 56);
        window.resize(1440, 900);
        QTRY_COMPARE(window.deviceStrip()->shownTexts().size(), 6);
        // As little room as there may be beside long titles: whole parts go, the last ones first.
        const int full = window.deviceStrip()->width();
        window.deviceStrip()->fit(full - 1);
        QCOMPARE(window.deviceStrip()->shownTexts().size(), 5);
        window.deviceStrip()->fit(0);
        QCOMPARE(window.deviceStrip()->shownTexts().size(), 0);
    }

    void withoutAFeedItShowsTheRun() {
        MainWindow window(nullptr, {});
        window.show();
        QVERIFY(!window.deviceStrip()->isVisible());
        QVERIFY(window.deviceStrip()->menu() == nullptr);
    }
};

QTEST_MAIN(DeviceStripTest)
#include "device_strip_test.moc"

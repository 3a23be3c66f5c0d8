// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/common/device_feed.h"

#include <algorithm>
#include <cmath>

#include "ui/models/common/format.h"

namespace vitrine::ui {

namespace {

constexpr double kGib = 1ULL << 30;
constexpr QChar kSpace(0x00A0); // a unit stays with its number

// Far above what any device has; a driver that loses one gives all ones.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 50;
constexpr double kMostWatts = 1e5;
constexpr double kMostHertz = 1e11;
constexpr double kLeastCelsius = -60, kMostCelsius = 200;

void keepWithin(std::optional<double>& value, double least, double most) {
    if (value && !(*value >= least && *value <= most)) { // also what is no number
        value.reset();
    }
}

QString gibNumber(std::uint64_t bytes) {
    return QString::number(static_cast<double>(bytes) / kGib, 'f', 1);
}

QString withUnit(const QString& number, const QString& unit) {
    return number + kSpace + unit;
}

QString memoryByWhom(const DeviceReading& reading) {
    if (!reading.total || !reading.used) {
        return {};
    }
    const QString all =
        DeviceFeed::tr("Memory: %1 of %2 used, %3 free")
            .arg(bytesText(*reading.used), bytesText(*reading.total), bytesText(*reading.total - *reading.used));
    return !reading.own ? all
                        : DeviceFeed::tr("%1; by this program and its runs %2, by others %3")
                              .arg(all, bytesText(*reading.own), bytesText(*reading.used - *reading.own));
}

} // namespace

DeviceReading plausible(DeviceReading reading) {
    if (reading.total && (*reading.total == 0 || *reading.total > kMostBytes)) {
        reading.total.reset();
    }
    if (reading.used && (*reading.used > reading.total.value_or(kMostBytes))) {
        reading.used.reset();
    }
    if (!reading.used) {
        reading.own.reset();
    } else if (reading.own) {
        reading.own = std::min(*reading.own, *reading.used); // two questions, asked one after the other
    }
    keepWithin(reading.busy, 0, 1);
    keepWithin(reading.power, 0, kMostWatts);
    keepWithin(reading.powerLimit, 1, kMostWatts);
    keepWithin(reading.temperature, kLeastCelsius, kMostCelsius);
    keepWithin(reading.clock, 0, kMostHertz);
    return reading;
}

bool silent(const DeviceReading& reading) {
    return !reading.total && !reading.used && !reading.busy && !reading.power && !reading.temperature && !reading.clock;
}

int DeviceFeed::chosen() const {
    const std::vector<DeviceEntry> known = devices();
    if (choice_ >= 0 && choice_ < static_cast<int>(known.size())) {
        return choice_;
    }
    const auto usable =
        std::find_if(known.begin(), known.end(), [](const auto& entry) { return entry.whyNot.isEmpty(); });
    return usable == known.end() ? -1 : static_cast<int>(usable - known.begin());
}

void DeviceFeed::choose(int device) {
    if (device != choice_) {
        choice_ = device;
        emit choiceChanged();
    }
}

QString deviceTitle(const DeviceEntry& device) {
    if (device.gpu()) {
        QString name = device.name;
        for (const QLatin1String maker :
             {QLatin1String("NVIDIA "), QLatin1String("GeForce "), QLatin1String("Tesla ")}) {
            if (name.startsWith(maker)) {
                name.remove(0, maker.size());
            }
        }
        return name.isEmpty() ? DeviceFeed::tr("GPU %1").arg(device.ordinal) : name;
    }
    const auto gib = std::llround(static_cast<double>(device.memoryBytes) / kGib);
    const QString cores = device.cores == 1 ? DeviceFeed::tr("1 core") : DeviceFeed::tr("%1 cores").arg(device.cores);
    return DeviceFeed::tr("CPU, %1, %2").arg(cores, withUnit(countText(gib), QStringLiteral("GiB")));
}

QString deviceMemoryText(const DeviceEntry& device, const std::optional<DeviceReading>& reading) {
    const bool used = reading && reading->used;
    if (!device.gpu()) {
        return used ? DeviceFeed::tr("%1 used").arg(withUnit(gibNumber(*reading->used), QStringLiteral("GiB")))
                    : QString();
    }
    const std::uint64_t total = reading && reading->total ? *reading->total : device.memoryBytes;
    const QString all = withUnit(gibNumber(total), QStringLiteral("GiB"));
    return used ? DeviceFeed::tr("%1 of %2").arg(gibNumber(*reading->used), all) : all;
}

QStringList deviceLines(const DeviceEntry& device, const std::optional<DeviceReading>& reading) {
    QStringList lines;
    QString first = device.gpu() ? DeviceFeed::tr("GPU %1: %2").arg(device.ordinal).arg(device.name) : device.name;
    first += QStringLiteral(", ") + bytesText(device.memoryBytes);
    lines << (device.driver.isEmpty() ? first : first + QStringLiteral(", ") + device.driver);
    if (!device.whyNot.isEmpty()) {
        lines << DeviceFeed::tr("Runs cannot use it: %1").arg(device.whyNot);
    }
    if (!reading) {
        return lines;
    }
    if (silent(*reading)) {
        lines << DeviceFeed::tr("It does not answer any more. Look at the system's log; a restart brings it back.");
        return lines;
    }
    if (const QString memory = memoryByWhom(*reading); !memory.isEmpty()) {
        lines << memory;
    }
    if (reading->busy) {
        lines << DeviceFeed::tr("Busy: %1").arg(shareText(*reading->busy));
    }
    if (reading->power) {
        lines << (reading->powerLimit
                      ? DeviceFeed::tr("Power: %1 of %2").arg(wattsText(reading->power), wattsText(reading->powerLimit))
                      : DeviceFeed::tr("Power: %1").arg(wattsText(reading->power)));
    }
    if (reading->temperature) {
        lines << DeviceFeed::tr("Temperature: %1").arg(celsiusText(reading->temperature));
    }
    if (reading->clock) {
        lines << DeviceFeed::tr("Clock: %1").arg(hertzText(reading->clock));
    }
    if (!reading->heldBack.isEmpty()) {
        lines << DeviceFeed::tr("Held back by: %1").arg(reading->heldBack.join(QStringLiteral(", ")));
    }
    return lines;
}

QString wattsText(std::optional<double> watts) {
    return watts ? withUnit(countText(std::llround(*watts)), QStringLiteral("W")) : unknownText();
}

QString celsiusText(std::optional<double> degrees) {
    if (!degrees) {
        return unknownText();
    }
    const auto whole = std::llround(*degrees);
    const QString number = whole < 0 ? QChar(0x2212) + QString::number(-whole) : QString::number(whole);
    return withUnit(number, QStringLiteral("°C"));
}

QString hertzText(std::optional<double> hertz) {
    return hertz ? withUnit(QString::number(*hertz * 1e-9, 'f', 2), QStringLiteral("GHz")) : unknownText();
}

} // namespace vitrine::ui

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The devices of this machine and what they say of themselves now, without knowing how: the program implements it over
// the driver. Also which of them the next run takes. Belongs to the GUI thread; every signal is emitted there, and no
// call waits.

#include <QObject>
#include <QString>
#include <QStringList>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

namespace vitrine::ui {

struct DeviceEntry {
    QString backend;  ///< of the option table: "cuda" or "cpu"
    int ordinal = 0;  ///< of the device option
    QString name;     ///< "NVIDIA H200", or the processor's
    QString driver;   ///< "driver 580.95"; empty for a processor
    QString whyNot{}; ///< why runs cannot use it; empty: they can
    int cores = 0;    ///< of a processor
    std::uint64_t memoryBytes = 0;

    bool gpu() const { return backend != QLatin1String("cpu"); }
};

/// Empty: the device or its driver does not say.
struct DeviceReading {
    std::optional<std::uint64_t> total, used; ///< bytes; used by everyone
    std::optional<std::uint64_t> own;         ///< bytes, by this program and the runs that it started
    std::optional<double> busy;               ///< share of the last moment in which something ran, 0 to 1
    std::optional<double> power, powerLimit;  ///< watts
    std::optional<double> temperature;        ///< degrees Celsius
    std::optional<double> clock;              ///< hertz
    QStringList heldBack{};                   ///< why the clock is not higher
};

/// Without the values that no device can have: what a driver gives while it loses a device is not shown.
DeviceReading plausible(DeviceReading reading);
/// True when the device gives nothing at all: it was taken away, or fell off the bus.
bool silent(const DeviceReading& reading);

class DeviceFeed : public QObject {
    Q_OBJECT

public:
    using QObject::QObject;

    /// GPUs by number, then the processor. Empty until they were looked for.
    virtual std::vector<DeviceEntry> devices() const = 0;
    /// The last reading of a device, not older than a second while it is watched; nothing before the first one.
    virtual std::optional<DeviceReading> reading(int device) const = 0;
    /// Asks these twice a second from now on, and no others: none while nobody looks.
    virtual void watch(const std::set<int>& devices) = 0;
    /// One sentence for each thing that is off, with what to install.
    virtual QStringList notes() const = 0;

    /// The device of the next run as an index, or -1: the first one that runs can use.
    int choice() const { return choice_; }
    /// The same with -1 resolved; -1 while no device is known.
    int chosen() const;
    void choose(int device);

signals:
    void devicesChanged();
    void readingsChanged();
    void choiceChanged();

private:
    int choice_ = -1;
};

/// "H200" of "NVIDIA H200"; "CPU, 2 cores, 24 GiB" of a processor.
QString deviceTitle(const DeviceEntry& device);
/// "23.1 of 139.8 GiB"; the unit is the total's. Of a processor "9.1 GiB used".
QString deviceMemoryText(const DeviceEntry& device, const std::optional<DeviceReading>& reading);
/// Everything that is known of a device in lines: name, driver, memory by whom, load, power, temperature, clock.
QStringList deviceLines(const DeviceEntry& device, const std::optional<DeviceReading>& reading);

QString wattsText(std::optional<double> watts);     ///< "412 W"
QString celsiusText(std::optional<double> degrees); ///< "61 °C"
QString hertzText(std::optional<double> hertz);     ///< "1.98 GHz"

} // namespace vitrine::ui

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// DeviceFeed over NVML and /proc. The driver is asked on a thread of its own, which sleeps while nobody looks; no CUDA
// context is made in this process.

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "ui/models/common/device_feed.h"

namespace vitrine::app {

class MachineDeviceFeed final : public ui::DeviceFeed {
    Q_OBJECT

public:
    /// Begins to look for devices.
    explicit MachineDeviceFeed(QObject* parent = nullptr);
    ~MachineDeviceFeed() override;

    std::vector<ui::DeviceEntry> devices() const override { return devices_; }
    std::optional<ui::DeviceReading> reading(int device) const override;
    void watch(const std::set<int>& devices) override;
    QStringList notes() const override { return notes_; }

private:
    struct Found; ///< what the thread knows of the devices
    void loop();
    void report(const Found& found);
    void readOnce(Found& found, const std::set<int>& wanted);

    std::vector<ui::DeviceEntry> devices_;
    QStringList notes_;
    std::map<int, ui::DeviceReading> readings_;

    std::mutex mutex_;
    std::condition_variable wake_;
    std::set<int> wanted_;
    bool ending_ = false;
    std::thread thread_;
};

} // namespace vitrine::app

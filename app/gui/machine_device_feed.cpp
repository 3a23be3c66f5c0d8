// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/gui/machine_device_feed.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <unistd.h>

#include "app/runner/machine/machine_report.h"
#include "kernels/cuda/cuda_context.h"
#include "profiler/gpu/nvml_monitor.h"

namespace vitrine::app {

namespace {

using Json = nlohmann::json;

constexpr auto kPeriod = std::chrono::milliseconds(500);
constexpr std::size_t kMostProcesses = 256;

/// This process and all that it started, which is where runs on a GPU happen.
std::vector<int> ownProcesses() {
    std::vector<int> processes{::getpid()};
    for (std::size_t i = 0; i < processes.size() && processes.size() < kMostProcesses; ++i) {
        std::error_code gone; // a process may end while it is looked at
        const std::filesystem::path tasks = "/proc/" + std::to_string(processes[i]) + "/task";
        for (std::filesystem::directory_iterator task(tasks, gone), end; !gone && task != end; task.increment(gone)) {
            std::ifstream file(task->path() / "children");
            for (int child = 0; file >> child;) {
                processes.push_back(child);
            }
        }
    }
    return processes;
}

std::uint64_t residentBytes(int process) {
    std::ifstream file("/proc/" + std::to_string(process) + "/statm");
    std::uint64_t all = 0, resident = 0;
    file >> all >> resident;
    return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

/// Ticks of all processors since the system's start: in all, and those in which nothing ran.
struct ProcessorTicks {
    std::uint64_t all = 0, idle = 0;
};

ProcessorTicks processorTicks() {
    std::ifstream file("/proc/stat");
    std::string line;
    std::getline(file, line);
    std::istringstream words(line);
    std::string name;
    words >> name;
    ProcessorTicks ticks;
    std::uint64_t value = 0;
    constexpr int kIdle = 3, kWaiting = 4, kGuest = 8; // guests are counted among the first two
    for (int i = 0; i < kGuest && words >> value; ++i) {
        ticks.all += value;
        ticks.idle += i == kIdle || i == kWaiting ? value : 0;
    }
    return ticks;
}

ui::DeviceReading processorReading(const std::vector<int>& processes, ProcessorTicks& last) {
    std::ifstream file("/proc/meminfo");
    std::string key, rest;
    std::uint64_t kibibytes = 0;
    std::optional<std::uint64_t> total, available;
    while (file >> key >> kibibytes && std::getline(file, rest)) {
        if (key == "MemTotal:") {
            total = kibibytes << 10;
        } else if (key == "MemAvailable:") {
            available = kibibytes << 10;
        }
    }
    ui::DeviceReading reading;
    reading.total = total;
    if (total && available && *available <= *total) {
        reading.used = *total - *available;
    }
    std::uint64_t own = 0;
    for (const int process : processes) {
        own += residentBytes(process);
    }
    reading.own = own;
    const ProcessorTicks now = processorTicks();
    if (last.all != 0 && now.all > last.all && now.idle >= last.idle) {
        reading.busy = 1 - static_cast<double>(now.idle - last.idle) / static_cast<double>(now.all - last.all);
    }
    last = now;
    return reading;
}

ui::DeviceReading gpuReading(const profiler::NvmlMonitor& monitor, const std::vector<int>& processes) {
    const profiler::GpuReading measured = monitor.read(processes);
    ui::DeviceReading reading{.total = measured.memoryTotal,
                              .used = measured.memoryUsed,
                              .own = measured.memoryProcess,
                              .busy = measured.busy,
                              .power = measured.power,
                              .powerLimit = measured.powerLimit,
                              .temperature = measured.temperature,
                              .clock = measured.smClock};
    for (const std::string& text : profiler::clockReasonTexts(measured.clockReasons.value_or(0))) {
        reading.heldBack << QString::fromStdString(text);
    }
    return reading;
}

QString driverOf(const Json& report) {
    for (const Json& library : report["libraries"]) {
        if (library.value("name", "") == "NVML") {
            return QString::fromStdString(library.value("version", ""));
        }
    }
    return {};
}

QString whyNoCuda(const Json& report) {
    for (const Json& backend : report["backends"]) {
        if (backend.value("name", "") == "cuda" && !backend.value("available", false)) {
            return QString::fromStdString(backend.value("reason", ""));
        }
    }
    return {};
}

} // namespace

struct MachineDeviceFeed::Found {
    std::vector<ui::DeviceEntry> devices;
    std::vector<std::unique_ptr<profiler::NvmlMonitor>> monitors; ///< of each device; null where there is none
    QStringList notes;
    ProcessorTicks ticks; ///< at the last reading

    Found() {
        const Json report = machineReport();
        for (const std::string& sentence : whatIsOff(report)) {
            notes << QString::fromStdString(sentence);
        }
        for (const kernels::CudaDeviceInfo& device : kernels::cudaDevices()) {
            ui::DeviceEntry entry;
            entry.backend = QStringLiteral("cuda");
            entry.ordinal = device.ordinal;
            entry.name = QString::fromStdString(device.name);
            entry.driver = driverOf(report);
            entry.whyNot = whyNoCuda(report);
            entry.memoryBytes = device.memoryBytes;
            devices.push_back(std::move(entry));
            std::string why;
            monitors.push_back(profiler::NvmlMonitor::open(device.pciBusId, why));
        }
        const Json& machine = report["machine"];
        ui::DeviceEntry entry;
        entry.backend = QStringLiteral("cpu");
        entry.name = QString::fromStdString(machine.value("cpu", ""));
        entry.cores = machine.value("cores", 0);
        entry.memoryBytes = machine.value("memory_bytes", std::uint64_t{0});
        devices.push_back(std::move(entry));
        monitors.push_back(nullptr);
    }
};

MachineDeviceFeed::MachineDeviceFeed(QObject* parent) : DeviceFeed(parent), thread_([this] { loop(); }) {}

MachineDeviceFeed::~MachineDeviceFeed() {
    {
        const std::lock_guard lock(mutex_);
        ending_ = true;
    }
    wake_.notify_all();
    thread_.join();
}

std::optional<ui::DeviceReading> MachineDeviceFeed::reading(int device) const {
    const auto found = readings_.find(device);
    return found == readings_.end() ? std::nullopt : std::optional(found->second);
}

void MachineDeviceFeed::watch(const std::set<int>& devices) {
    const std::lock_guard lock(mutex_);
    if (devices != wanted_) {
        wanted_ = devices;
        wake_.notify_all();
    }
}

void MachineDeviceFeed::loop() {
    try {
        Found found;
        report(found);
        std::unique_lock lock(mutex_);
        while (!ending_) {
            if (wanted_.empty()) {
                wake_.wait(lock, [this] { return ending_ || !wanted_.empty(); });
                continue;
            }
            const std::set<int> wanted = wanted_;
            lock.unlock();
            readOnce(found, wanted);
            lock.lock();
            wake_.wait_for(lock, kPeriod, [&] { return ending_ || wanted_ != wanted; });
        }
    } catch (const std::exception& error) {
        QMetaObject::invokeMethod(
            this,
            [this, text = QString::fromUtf8(error.what())] {
                notes_ << text;
                emit devicesChanged();
            },
            Qt::QueuedConnection);
    }
}

void MachineDeviceFeed::report(const Found& found) {
    QMetaObject::invokeMethod(
        this,
        [this, devices = found.devices, notes = found.notes] {
            devices_ = devices;
            notes_ = notes;
            emit devicesChanged();
        },
        Qt::QueuedConnection);
}

void MachineDeviceFeed::readOnce(Found& found, const std::set<int>& wanted) {
    const std::vector<int> processes = ownProcesses();
    std::map<int, ui::DeviceReading> readings;
    for (const int device : wanted) {
        const auto at = static_cast<std::size_t>(device);
        if (device < 0 || at >= found.devices.size()) {
            continue;
        }
        if (!found.devices[at].gpu()) {
            readings[device] = processorReading(processes, found.ticks);
        } else if (found.monitors[at] != nullptr) {
            readings[device] = gpuReading(*found.monitors[at], processes);
        }
    }
    QMetaObject::invokeMethod(
        this,
        [this, readings] {
            for (const auto& [device, reading] : readings) {
                readings_[device] = reading;
            }
            emit readingsChanged();
        },
        Qt::QueuedConnection);
}

} // namespace vitrine::app

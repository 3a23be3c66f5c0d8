// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The queue of the desktop program: prices what waits, lets the queue's driver start the next run when nothing runs,
// looks after a failure whether the device's memory came back, and keeps the queue in the session after each change of
// state. A queue that comes with a session never starts by itself. Belongs to the GUI thread. A run that is started
// elsewhere makes the queue wait for its end.

#include <QObject>
#include <QString>
#include <QTimer>
#include <optional>
#include <string>

#include "engine/workload/sweep/queue_driver.h"
#include "ui/models/common/device_feed.h"
#include "ui/models/common/latest_job.h"
#include "ui/models/common/run_controller.h"
#include "ui/models/session/session_document.h"

namespace vitrine::ui {

class QueueRunner final : public QObject, private engine::QueueHost {
    Q_OBJECT

public:
    /// `runs` may be null: nothing can be started then. `devices` too: memory is not looked at then.
    QueueRunner(SessionDocument* document, RunController* runs, QObject* parent, DeviceFeed* devices = nullptr);

    const engine::RunQueue& queue() const { return driver_.queue(); }
    bool canRun() const { return runs_ != nullptr; }
    bool pricing() const { return pricing_.busy(); }
    /// How long a device has to give memory back after a failed run before it is looked at.
    void setSettleTime(int milliseconds) { memoryCheck_.setInterval(milliseconds); }
    /// Where runs go when no session is open; empty: they are not kept.
    void setFile(const QString& file) { file_ = file; }

    // Changes; each is kept in the session.
    /// Adds an experiment; it starts at once where nothing runs. Returns its number.
    std::int64_t add(const std::string& experimentJson);
    /// Adds a sweep. Returns its name; throws base::BadInput.
    std::string addSweep(const engine::SweepPlan& plan);
    void remove(std::int64_t number);
    void move(std::int64_t number, std::size_t place);
    void hold(std::int64_t number, bool on);
    /// Takes the nearest change that fits.
    void useNearest(std::int64_t number);
    /// An interrupted run goes on from its last checkpoint, or begins again where its output has none, when its turn
    /// comes. `resume`: the queue, which paused with it, goes on too.
    void goOnWith(std::int64_t number, bool resume);
    /// Ends the running one, or an interrupted one that is not gone on with.
    void end(std::int64_t number);
    void endSweep(const std::string& sweep);
    void pauseAfterRun(bool on);
    void resume();
    void setGoOnAfterFailure(bool on);
    void setRule(const std::string& sweep, const std::optional<engine::StopRule>& rule);

signals:
    void changed();  ///< order, states, prices, rules
    void progress(); ///< the running one has come further
    void failed(const QString& sentence);
    void said(const QString& sentence); ///< what became of a command

private:
    void load();
    void settle(); ///< after a change: keep, price, start
    void priceNext();
    void startNext();
    void onEnded(engine::QueueEnd::How how, const QString& error, const std::string& metrics);
    void bringBack(std::int64_t number); ///< a run whose process was lost

    // What the driver asks for.
    void start(const engine::QueuedRun& run) override;
    void stop() override;
    bool isRecorded(const std::string& spec) const override;
    void keep(const engine::RunQueue& queue) override;
    void mark(const engine::QueuedRun& run) override;

    engine::RunQueue& edited() { return driver_.queue(); } ///< the queue, to change it
    /// Memory of the GPU that runs take, as it is read now; nothing without a GPU or a reading.
    std::optional<DeviceReading> gpuReading() const;
    void checkMemory(); ///< pauses the queue where more is held than before the first run

    SessionDocument* document_;
    RunController* runs_;
    engine::QueueDriver driver_{*this};
    LatestJob<engine::QueuePrice> pricing_;
    LatestJob<engine::GoingOn> finding_, findingLost_; ///< where an interrupted or a lost run goes on
    QString file_, loadedFrom_;
    DeviceFeed* devices_;
    std::optional<DeviceReading> before_; ///< before the first run of the queue
    QTimer memoryCheck_;                  ///< active: nothing starts until memory was looked at
    bool loading_ = false;
};

} // namespace vitrine::ui

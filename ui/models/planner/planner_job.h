// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Prices what-if questions on one thread of its own: a newer question ends the one in progress. Belongs to the GUI
// thread; signals are emitted there.

#include <QObject>
#include <QString>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "base/stop.h"
#include "engine/workload/planner/what_if.h"

namespace vitrine::ui {

using WhatIfPtr = std::shared_ptr<const engine::WhatIf>;

class PlannerJob final : public QObject {
    Q_OBJECT

public:
    explicit PlannerJob(QObject* parent);
    ~PlannerJob() override;

    void ask(const engine::Experiment& experiment, std::int64_t context);
    /// Ends the question in progress; what was found stays found.
    void cancel();
    bool busy() const { return asked_ != answered_; }

signals:
    /// More is known of the newest question; the last of its answers is complete.
    void found(const vitrine::ui::WhatIfPtr& answer, double seconds);
    void failed(const QString& error); ///< the newest question has no answer
    void busyChanged();

private:
    struct Question {
        engine::Experiment experiment;
        std::int64_t context = 0;
        std::uint64_t number = 0;
        base::StopToken stop;
    };
    void loop();
    void answer(engine::WhatIfPlanner& planner, const Question& question);
    void deliver(std::uint64_t number, WhatIfPtr answer, double seconds, const QString& error);
    void endCurrent(); ///< with the mutex held

    std::uint64_t asked_ = 0, answered_ = 0; ///< GUI thread
    std::mutex mutex_;
    std::condition_variable wake_;
    std::optional<Question> waiting_;
    base::StopSource current_;
    bool ending_ = false;
    std::thread thread_;
};

} // namespace vitrine::ui

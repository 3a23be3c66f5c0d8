// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Prices what-if questions on one thread of its own: a newer question ends the one in progress. Belongs to the GUI
// thread; signals are emitted there.

#include <QObject>
#include <QString>
#include <cstdint>
#include <memory>

#include "base/stop.h"
#include "engine/workload/planner/what_if.h"
#include "ui/models/common/question_thread.h"

namespace vitrine::ui {

using WhatIfPtr = std::shared_ptr<const engine::WhatIf>;

class PlannerJob final : public QObject {
    Q_OBJECT

public:
    explicit PlannerJob(QObject* parent);

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
    };
    void answer(const Question& question, const base::StopToken& stop);
    void deliver(std::uint64_t number, WhatIfPtr answer, double seconds, const QString& error);

    std::uint64_t asked_ = 0, answered_ = 0; ///< GUI thread
    engine::WhatIfPlanner planner_;          ///< of the thread alone
    QuestionThread<Question> thread_;
};

} // namespace vitrine::ui

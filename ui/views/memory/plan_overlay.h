// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The plan of a run's own experiment: a plan that the session holds, else one that is made now on the Meta backend.

#include <QObject>

#include "ui/widgets/base/view.h"

namespace vitrine::ui {

class PlanOverlay final : public QObject {
    Q_OBJECT

public:
    PlanOverlay(const ViewServices& context, QObject* parent);

    /// Forgets the plan of another run.
    void setRun(sessions::RunId run);
    /// Asks for the plan the first time that it is shown.
    void setShown(bool shown);
    /// Null until it is there, and while it is not shown.
    TimelinePtr timeline() const { return shown_ ? timeline_ : nullptr; }
    bool waiting() const { return ticket_ != 0 || (shown_ && sessionRun_ != 0 && !complete_); }
    QString error() const { return error_; }
    /// Empty: a plan can be had. Otherwise why not.
    QString whyNot() const;

signals:
    void changed();

private:
    void ask();
    void takeSessionPlan();
    ViewServices context_;
    sessions::RunId run_ = 0, sessionRun_ = 0;
    bool shown_ = false, asked_ = false, complete_ = false;
    quint64 ticket_ = 0;
    TimelinePtr timeline_;
    QString error_;
};

} // namespace vitrine::ui

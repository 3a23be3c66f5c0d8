// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The bar at the bottom of the Data page: whether the run fits, the nearest change where it does not, what it holds at
// its peak, how long it takes, and the buttons that start it.

#include <QTimer>
#include <functional>

#include "engine/workload/sweep/run_queue.h"
#include "ui/models/common/latest_job.h"
#include "ui/models/common/run_controller.h"
#include "ui/widgets/base/controls.h"

class QPushButton;

namespace vitrine::ui {

class BudgetBar;

class DataBar final : public Surface {
    Q_OBJECT

public:
    /// `runs` may be null: then nothing is priced and nothing can be started. `experiment` makes what is priced.
    DataBar(RunController* runs, std::function<std::string()> experiment, QWidget* parent);

    /// Prices again soon.
    void refresh();
    /// Steps of an epoch; 0: not known.
    void setSteps(std::int64_t steps);
    /// False: there is nothing to train on; `why` says it.
    void setStartable(bool on, const QString& why = {});
    double stepSeconds() const { return stepSeconds_; }
    bool settled() const { return !timer_.isActive() && ticket_ == 0 && !searching_.busy(); }
    /// Takes the nearest change; shown where there is one.
    QPushButton* tryButton() const { return try_; }
    QString spareText() const { return spare_->text(); }
    QList<QWidget*> stops() const;

signals:
    void startWanted();
    void commandWanted();
    void experimentWanted(const QString& experimentJson); ///< with the nearest change
    void stepSecondsChanged(double seconds);

private:
    void price();
    void take(quint64 ticket, const QString& metrics, const QString& error);
    void showPrice(const QString& metrics);
    void showTime();
    void searchNearest();
    void showNearest(const engine::QueuePrice& price);

    RunController* runs_;
    std::function<std::string()> experiment_;
    QTimer timer_;
    quint64 ticket_ = 0; ///< of the price that is awaited; 0: none
    std::int64_t steps_ = 0;
    double stepSeconds_ = 0;
    TextLabel *mark_ = nullptr, *verdict_ = nullptr, *spare_ = nullptr, *parts_ = nullptr, *budget_ = nullptr,
              *time_ = nullptr, *count_ = nullptr;
    BudgetBar* bar_ = nullptr;
    QPushButton *command_ = nullptr, *start_ = nullptr, *try_ = nullptr;
    std::string asked_; ///< the experiment that was priced last
    QString nearest_;   ///< the same with the nearest change
    LatestJob<engine::QueuePrice> searching_;
};

} // namespace vitrine::ui

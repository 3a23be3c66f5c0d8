// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the form's run would need: a sentence for the header, a bar against the budget and the parts at the peak. Priced
// again a moment after the last change.

#include <QTimer>
#include <functional>

#include "ui/models/common/run_controller.h"
#include "ui/widgets/base/controls.h"

class QPushButton;

namespace vitrine::ui {

class BudgetBar;

class FitLine final : public QObject {
    Q_OBJECT

public:
    /// `experiment` makes what is to be priced, as JSON; empty: nothing yet. `runs` may be null: then nothing is
    /// priced.
    FitLine(RunController* runs, std::function<std::string()> experiment, QWidget* parent);

    /// Parts that the view lays out.
    TextLabel* sentence() const { return sentence_; }
    QPushButton* whyButton() const { return why_; }
    QWidget* details() const { return details_; }

    /// Prices again soon, unless nothing that the last price was made of has changed.
    void refresh() { timer_.start(); }
    /// Nothing waits to be priced.
    bool settled() const { return !timer_.isActive() && !waiting_; }

private:
    void price();
    void take(quint64 ticket, const QString& metrics, const QString& error);
    void showPrice();
    void sayNothing(const QString& error);
    void showDetails();

    RunController* runs_;
    std::function<std::string()> experiment_;
    TextLabel *sentence_, *parts_;
    QPushButton* why_;
    QWidget* details_;
    BudgetBar* bar_;
    QTimer timer_;
    quint64 ticket_ = 0; ///< of the last price that was asked for
    bool waiting_ = false;
    QString asked_; ///< what was priced last: the experiment and its files as they were
    QString lastPrice_;
    bool priced_ = false;
};

} // namespace vitrine::ui

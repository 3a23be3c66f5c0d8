// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Throughput and latency of one token against the number of slots, a line for each kind of batching, and the row that
// runs what is missing: numbers of slots, kinds of batching, Run sweep.

#include <QWidget>

#include "ui/models/batching/batch_sweep.h"
#include "ui/models/batching/sweep_runner.h"

class QCheckBox;
class QLineEdit;
class QPushButton;
class QStackedLayout;

namespace vitrine::ui {

class Chart;
class EmptyState;
class TextLabel;

class SweepPanel final : public QWidget {
    Q_OBJECT

public:
    /// `runs` may be null.
    SweepPanel(RunController* runs, QWidget* parent);

    void setSweep(const Sweep& sweep);
    /// The run whose trace is repeated into that session file; without one nothing can be run.
    void setSource(std::optional<sessions::RunInfo> run, const QString& sessionFile);
    Chart* rate() const { return rate_; }
    Chart* latency() const { return latency_; }
    QLineEdit* slotCounts() const { return slotCounts_; }
    QPushButton* button() const { return button_; }
    const SweepRunner& runner() const { return *runner_; }
    /// Said instead of the plots while there are fewer than two numbers of slots; empty: plots.
    void setEmpty(const QString& text);
    bool emptyShown() const;
    QList<QWidget*> focusStops() const;

signals:
    void readoutChanged(const QString& text);
    void failed(const QString& reason); ///< of a sweep, one sentence

private:
    QWidget* makeBar();
    void fill(Chart* chart, const Sweep& sweep, bool rate);
    void updateBar();
    void runOrStop();
    std::vector<std::string> experiments() const;

    SweepRunner* runner_;
    std::optional<sessions::RunInfo> source_;
    QString file_;
    bool canRun_;
    QStackedLayout* stack_;
    EmptyState* empty_;
    QWidget* plots_;
    Chart *rate_, *latency_;
    QLineEdit* slotCounts_;
    QCheckBox *static_, *continuous_;
    QPushButton* button_;
    TextLabel* state_;
};

} // namespace vitrine::ui

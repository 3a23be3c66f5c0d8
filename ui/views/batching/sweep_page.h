// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Throughput and latency of one token against the number of slots, a line for each kind of batching.

#include <QWidget>

#include "ui/models/batch_sweep.h"

class QStackedLayout;

namespace vitrine::ui {

class Chart;
class EmptyState;

class SweepPage final : public QWidget {
    Q_OBJECT

public:
    explicit SweepPage(QWidget* parent);

    void setSweep(const Sweep& sweep);
    Chart* rate() const { return rate_; }
    Chart* latency() const { return latency_; }
    /// Said instead of the plots while there are fewer than two numbers of slots.
    void setEmpty(const QString& text, const QString& button, std::function<void()> action);
    bool emptyShown() const;

signals:
    void readoutChanged(const QString& text);

private:
    void fill(Chart* chart, const Sweep& sweep, bool rate);
    QStackedLayout* stack_;
    EmptyState* empty_;
    QWidget* plots_;
    Chart *rate_, *latency_;
};

} // namespace vitrine::ui

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The inspector of the queue page: the form of a sweep (what varies, what is fixed, the stop rule) and the running run
// against the rule. A new sweep is put together here before it is added.

#include <QScrollArea>
#include <map>
#include <optional>
#include <string>

#include "engine/workload/sweep/run_queue.h"
#include "ui/widgets/base/controls.h"

class QCheckBox;
class QComboBox;
class QLineEdit;
class QPushButton;
class QVBoxLayout;

namespace vitrine::ui {

class ChipRow;
class FactRows;

class QueuePanel final : public QScrollArea {
    Q_OBJECT

public:
    QueuePanel();
    DockHeader* header() const { return header_; }

    /// Shows a sweep of the queue; without one the run that is chosen.
    void setQueue(const engine::RunQueue& queue, const std::string& sweep, std::int64_t chosen, std::int64_t nowMs);
    /// Begins a new sweep from an experiment, perhaps with the values of another one.
    void beginDraft(engine::SweepPlan plan);
    void endDraft();
    bool drafting() const { return draft_.has_value(); }
    QList<QWidget*> stops() const;
    QPushButton* startButton() const { return start_; }

signals:
    void sweepWanted(const engine::SweepPlan& plan);
    void copyWanted();
    void ruleChanged(const std::optional<engine::StopRule>& rule);
    void endWanted(qint64 number);
    void endSweepWanted();
    void liveWanted(qint64 number);
    void draftEnded();

private:
    void buildSweep(QWidget* content);
    void buildRule(QWidget* content);
    void buildAgainst(QWidget* content);
    void showPlan(const engine::SweepPlan& plan, bool editable);
    void showChips(const engine::SweepPlan& plan, bool editable);
    void showFixed(const std::string& spec, const engine::SweepPlan* plan);
    void showCounts(const engine::RunQueue& queue, const std::string& sweep, std::int64_t nowMs);
    void showAgainst(const engine::RunQueue& queue, const std::string& sweep);
    void updateDraft();
    void takeRule();
    std::optional<engine::StopRule> ruleOfFields() const;

    DockHeader* header_;
    QPushButton* copy_;
    QWidget *sweepBox_ = nullptr, *ruleBox_ = nullptr, *againstBox_ = nullptr, *buttons_ = nullptr;
    TextLabel *number_ = nullptr, *shape_ = nullptr, *times_ = nullptr;
    DockHeader *variesHead_ = nullptr, *fixedHead_ = nullptr, *ruleHead_ = nullptr, *againstHead_ = nullptr;
    QVBoxLayout* chips_ = nullptr;
    std::map<std::string, ChipRow*> rows_;
    QComboBox *order_ = nullptr, *another_ = nullptr;
    FactRows *fixed_ = nullptr, *against_ = nullptr;
    QCheckBox* rule_ = nullptr;
    QLineEdit *above_ = nullptr, *from_ = nullptr;
    TextLabel* ruleSide_ = nullptr; ///< "above the best at the same step,"
    TextLabel* goesOn_ = nullptr;
    QPushButton *live_ = nullptr, *end_ = nullptr, *endSweep_ = nullptr, *start_ = nullptr, *cancel_ = nullptr;
    std::optional<engine::SweepPlan> draft_;
    std::int64_t running_ = 0;
    bool filling_ = false;
};

} // namespace vitrine::ui

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Why out of memory: the sentence, the budget as a bar, what held the memory, what changed, what would have fitted.

#include <QWidget>
#include <array>

#include "ui/models/common/flat_tree.h"
#include "ui/models/memory/oom_summary.h"
#include "ui/widgets/base/view.h"

class QGridLayout;
class QPushButton;
class QScrollArea;
class QTableView;
class QTreeView;

namespace vitrine::ui {

class BudgetBar;
class FitPanel;
class LaneStack;
class PhasePlot;
class StackLane;

class OomPanel final : public QWidget {
    Q_OBJECT

public:
    OomPanel(const ViewServices& context, QWidget* parent);

    void setRun(sessions::RunId run, TimelinePtr timeline);
    void nextFailure();
    QString asText() const;
    QString sentence() const;
    bool waiting() const;
    QTreeView* holders() const { return holders_; }
    QTreeView* changes() const { return changes_; }
    QTableView* twin() const { return twin_; }
    QPushButton* tableButton() const { return table_; }

signals:
    void backWanted();
    void goWanted(qint64 time);
    void experimentWanted(const QString& experimentJson);

protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void showEvent(QShowEvent* event) override;
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void build();
    QWidget* makeHead();
    QWidget* makeTop(QWidget* parent);
    QWidget* makeMiddle(QWidget* parent);
    void refresh();
    void showTable(bool table);
    void updateTwin();
    void fitColumns();
    void arrange();
    ViewServices context_;
    TimelinePtr timeline_;
    sessions::RunId run_ = 0;
    std::size_t failure_ = 0;
    bool stale_ = true;
    OomSummary facts_;
    QLabel* sentence_;
    QLabel* cause_;
    TextLabel* which_;
    BudgetBar* bar_;
    QGridLayout* columns_;
    QWidget *holdersColumn_, *fitColumn_;
    std::array<QWidget*, 2> dividers_{};
    PhasePlot* phases_;
    bool narrow_ = false;
    SegmentedControl* group_;
    QTreeView *holders_, *changes_;
    FlatTreeModel *holdersModel_, *changesModel_;
    TextLabel* changesTitle_;
    QWidget* changesColumn_;
    FitPanel* fit_;
    QPushButton* table_;
    QScrollArea* page_;
    QTableView* twin_;
    FlatTreeModel* twinModel_;
    TimeCursor* stripTime_;
    LaneStack* strip_;
    StackLane* stripLane_;
};

} // namespace vitrine::ui

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What changed between runs A and B: in words, in settings, in results, over time and at the peak.

#include "ui/models/compare/compare_facts.h"
#include "ui/widgets/base/view.h"

class QBoxLayout;
class QComboBox;
class QMenu;
class QPushButton;
class QCheckBox;
class QTableView;

namespace vitrine::ui {

class CompareLane;
class FactTable;
class LaneStack;

class CompareView final : public View {
    Q_OBJECT

public:
    explicit CompareView(const ViewContext& context, QWidget* parent = nullptr);

    QWidget* inspector() override;
    QWidget* inspectorHeader() override;
    bool perform(const QString& action) override;
    QString whyNot(const QString& action) const override;
    QList<QWidget*> focusStops() const override;
    bool settled() const override;
    void activated() override;

    TextLabel* sentence() const { return sentence_; }
    TextLabel* cause() const { return cause_; }
    FlatTreeModel* specModel() const { return specModel_; }
    FlatTreeModel* metricModel() const { return metricModel_; }
    FactTable* deltas() const { return deltas_; }
    CompareLane* lane() const { return lane_; }
    TimeCursor* axis() const { return time_; }
    SegmentedControl* alignment() const { return align_; }
    QComboBox* pickerA() const { return pickA_; }
    QComboBox* pickerB() const { return pickB_; }
    /// Runs of the metrics table beyond A and B.
    void setExtraRuns(std::vector<sessions::RunId> runs);
    QString asText() const;

protected:
    void resizeEvent(QResizeEvent* event) override;

private:
    void buildHeader();
    void buildBody();
    void buildInspector();
    void reload();
    void refresh();
    void fillPickers();
    void fillMore();
    void updateTables();
    void updateLane();
    void updateDeltas();
    void sayWhyEmpty();
    std::vector<sessions::RunInfo> shownRuns() const;
    TimelinePtr timelineOf(sessions::RunId id) const;

    bool stale_ = true, filling_ = false;
    sessions::RunId a_ = 0, b_ = 0;
    std::vector<sessions::RunId> extra_;
    QComboBox *pickA_ = nullptr, *pickB_ = nullptr, *groupBy_ = nullptr;
    QPushButton *more_ = nullptr, *copy_ = nullptr;
    QMenu* moreMenu_ = nullptr;
    SegmentedControl* align_ = nullptr;
    QCheckBox* changedOnly_ = nullptr;
    TextLabel *sentence_ = nullptr, *cause_ = nullptr, *specTitle_ = nullptr;
    QWidget* tables_ = nullptr;
    QTableView *specView_ = nullptr, *metricView_ = nullptr, *twin_ = nullptr;
    FlatTreeModel *specModel_ = nullptr, *metricModel_ = nullptr, *twinModel_ = nullptr;
    TimeCursor* time_ = nullptr;
    LaneStack* stack_ = nullptr;
    CompareLane* lane_ = nullptr;
    QWidget* panel_ = nullptr;
    DockHeader* panelHeader_ = nullptr;
    FactTable* deltas_ = nullptr;
};

} // namespace vitrine::ui

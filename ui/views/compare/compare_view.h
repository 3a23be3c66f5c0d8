// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What changed between runs A and B: in words, in settings, in results, over time and at the peak.

#include "ui/models/compare/compare_summary.h"
#include "ui/models/compare/compare_text.h"
#include "ui/views/common/document_view.h"

class QBoxLayout;
class QComboBox;
class QMenu;
class QPushButton;
class QCheckBox;
class QTableView;

namespace vitrine::ui {

class CompareLane;
class CompareRuler;
class DifferenceLane;
class ErrorStrip;
class FactTable;
class LaneStack;
class RlComparePage;
class TrainingCompare;

class CompareView final : public DocumentView {
    Q_OBJECT

public:
    explicit CompareView(const ViewServices& context, QWidget* parent = nullptr);

    QWidget* inspector() override;
    QWidget* inspectorHeader() override;
    QString whyNot(const QString& action) const override;

    TextLabel* sentence() const { return sentence_; }
    TextLabel* cause() const { return cause_; }
    TextLabel* answers() const { return answers_; }
    FlatTreeModel* specModel() const { return specModel_; }
    FlatTreeModel* metricModel() const { return metricModel_; }
    FactTable* deltas() const { return deltas_; }
    FactTable* opTimes() const { return opTimes_; }
    CompareLane* lane() const { return lane_; }
    LaneStack* stack() const { return stack_; }
    /// What is shown of two training runs in place of stack(); the segments choose.
    TrainingCompare* training() const { return training_; }
    /// The same of two runs of reinforcement learning.
    RlComparePage* policies() const { return policies_; }
    SegmentedControl* extent() const { return extent_; }
    bool settled() const override;
    ErrorStrip* notice() const { return notice_; }
    QPushButton* showNumbers() const { return showNumbers_; }
    TimeCursor* axis() const { return time_; }
    SegmentedControl* alignment() const { return align_; }
    QComboBox* pickerA() const { return pickA_; }
    QComboBox* pickerB() const { return pickB_; }
    /// Runs of the metrics table beyond A and B.
    void setExtraRuns(std::vector<sessions::RunId> runs);
    QString asText() const;

protected:
    void refresh() override;
    std::vector<sessions::RunId> shownRuns() const override { return {a_, b_}; }
    TimeCursor* ownAxis() const override;
    QList<LaneStack*> laneStacks() const override;
    QList<QWidget*> bodyStops() const override;
    QString whyText() const override { return asText(); }
    void resizeEvent(QResizeEvent* event) override;

private:
    void buildHeader();
    QWidget* buildOffers(QWidget* parent);
    void buildBody();
    void buildInspector();
    void fillPickers();
    void fillMore();
    void updateTables();
    void updateLane();
    /// Shows training runs step by step or the whole runs; true: their steps are shown.
    bool updateTraining();
    void sayPolicies();
    void showWords(const CompareText& words);
    void showTables();
    void updateBands(const profiler::Alignment& alignment);
    void chooseRun(bool first, sessions::RunId id);
    /// "Reading run 15, 40 %"; empty when both were read.
    QString readingText() const;
    void showComparable(const CompareText& words);
    void updateDeltas();
    void sayWhyEmpty();
    std::vector<sessions::RunInfo> comparedRuns() const; ///< A, B and the extra ones; empty without both

    bool filling_ = false, nothingComparable_ = false;
    sessions::RunId a_ = 0, b_ = 0;
    std::vector<sessions::RunId> extra_;
    QComboBox *pickA_ = nullptr, *pickB_ = nullptr, *groupBy_ = nullptr;
    QPushButton *more_ = nullptr, *copy_ = nullptr;
    QMenu* moreMenu_ = nullptr;
    SegmentedControl *align_ = nullptr, *extent_ = nullptr;
    QCheckBox* changedOnly_ = nullptr;
    TextLabel *sentence_ = nullptr, *cause_ = nullptr, *answers_ = nullptr, *specTitle_ = nullptr;
    QWidget* tables_ = nullptr;
    QTableView *specView_ = nullptr, *metricView_ = nullptr;
    FlatTreeModel *specModel_ = nullptr, *metricModel_ = nullptr;
    TimeCursor* time_ = nullptr;
    LaneStack* stack_ = nullptr;
    TrainingCompare* training_ = nullptr;
    RlComparePage* policies_ = nullptr;
    CompareLane* lane_ = nullptr;
    DifferenceLane* difference_ = nullptr;
    CompareRuler *rulerA_ = nullptr, *rulerB_ = nullptr;
    ErrorStrip* notice_ = nullptr;
    QWidget *anyway_ = nullptr, *metricBox_ = nullptr;
    QPushButton *showNumbers_ = nullptr, *partner_ = nullptr;
    sessions::RunId partnerRun_ = 0;
    QWidget* panel_ = nullptr;
    DockHeader* panelHeader_ = nullptr;
    FactTable *deltas_ = nullptr, *opTimes_ = nullptr;
};

} // namespace vitrine::ui

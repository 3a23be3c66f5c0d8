// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The what-if page: whether an experiment fits a device, up to which context, what each technique buys, and what would
// make it fit. Nothing is allocated: all numbers are plans on Meta, priced on a thread of their own while the form
// changes.

#include <QScrollArea>
#include <QTimer>
#include <optional>
#include <vector>

#include "ui/models/common/latest_job.h"
#include "ui/models/planner/past_plans.h"
#include "ui/models/planner/plan_draft.h"
#include "ui/models/planner/planner_job.h"
#include "ui/views/common/document_view.h"
#include "ui/views/planner/past_dots.h"

class QComboBox;
class QPushButton;

namespace vitrine::ui {

class ChangeList;
class Chart;
class FactTable;
class LimitBars;
class NamedCombo;
class PlanBudget;
class PlanCurves;
class PlanForm;
class SetDelegate;

class PlannerView final : public DocumentView {
    Q_OBJECT

public:
    explicit PlannerView(const ViewServices& context, QWidget* parent = nullptr);

    QWidget* inspector() override { return panel_; }
    QWidget* inspectorHeader() override;
    bool settled() const override;
    bool perform(const QString& action) override;
    QString whyNot(const QString& action) const override;
    void takeExperiment(const QString& experimentJson) override;
    void activated() override;
    void deactivated() override;

    const PlanDraft& draft() const { return draft_; }
    const WhatIfPtr& answer() const { return answer_; } ///< the last one; null before the first
    ErrorBand band() const;
    PlanForm* form() const { return form_; }
    PlanCurves* curves() const { return curves_; }
    LimitBars* bars() const { return bars_; }
    FactTable* sets() const { return sets_; }
    ChangeList* changes() const { return changes_; }
    Chart* past() const { return past_; }
    QComboBox* modelChoice() const;
    QComboBox* deviceChoice() const;
    QComboBox* workloadChoice() const;
    QPushButton* startButton() const { return start_; }
    QString verdict() const;
    PlanBudget* budget() const { return budget_; }

protected:
    void resizeEvent(QResizeEvent* event) override;
    void refresh() override;
    QList<QWidget*> bodyStops() const override;
    QString copyText() const override;

private:
    void buildHeader();
    void buildBody();
    QWidget* buildTop(QWidget* parent);
    QWidget* buildTable(QWidget* parent);
    void buildInspector();
    void fillChoices();
    void markOwnDevices();
    void fit(); ///< parts of the page to its width
    void setDraft(PlanDraft draft);
    void draftChanged();
    void ask();
    void take(const WhatIfPtr& answer, double seconds);
    void sayFailure(const QString& error);
    void updateBusy();
    void updateAll();
    void updateBudget();
    void updateCurves();
    void updateTables();
    void updateVerdict();
    void updateChanges();
    void updateGoal();
    void updatePast();
    void updateTwin();
    void takeSet(int set);
    void tryChange(int row);
    void start();
    void exportTable();
    void exportPicture();
    void exportCommand();
    bool writeFile(const QString& path, const QByteArray& bytes);
    void clickSet(int set, int column);
    void openStepOf(const std::string& place);
    void openPast(int series, int point);
    void readPast();
    bool sayWhatIsMissing();

    PlanDraft draft_;
    std::optional<PlanDraft> before_; ///< the plan that a tried change replaced: X brings it back
    PlanDraft asked_, planned_;       ///< what is being priced, and what answer_ is of
    bool touched_ = false;            ///< the form was used: run A no longer fills it
    sessions::RunId filledBy_ = 0;
    WhatIfPtr answer_;
    std::int64_t axisTop_ = 1;
    PlannerJob* job_;
    QTimer delay_, busyDelay_;
    std::vector<PastRun> pastRuns_;
    std::vector<sessions::RunId> pastIds_; ///< the finished runs that they are of
    bool pastKnown_ = false;
    PastDots pastDots_; ///< of pastRuns_
    LatestJob<std::vector<PastRun>> pastJob_;

    NamedCombo *model_, *device_, *workload_;
    QPushButton *export_, *cancel_;
    PlanForm* form_;
    PlanBudget* budget_;
    TextLabel *budgetFacts_, *curveFacts_, *barFacts_, *setsTitle_, *pastFacts_;
    PlanCurves* curves_;
    LimitBars* bars_;
    FactTable* sets_;
    SetDelegate* setLook_;
    Chart* past_;
    QScrollArea* panel_;
    DockHeader* panelHeader_;
    TextLabel *mark_, *sentence_, *reason_, *stops_, *panelFacts_, *factsSet_, *slopesLine_;
    QWidget *slopesHead_, *top_; ///< top_: the verdict and Start where the page is narrow
    TextLabel* topSentence_;
    QPushButton* topStart_;
    QPushButton *start_, *copy_;
    FactTable *facts_, *slopes_;
    TextLabel *changesTitle_, *changesFacts_, *note_, *goalFacts_, *goal_;
    QWidget* goalHead_;
    ChangeList* changes_;
};

} // namespace vitrine::ui

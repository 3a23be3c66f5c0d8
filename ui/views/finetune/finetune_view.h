// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Fine-tuning: the form of a run, the run itself as it trains, and one of its steps. While it trains, loss, learning
// rate, gradient norm, changed codes and speed stand over the memory of each step on one axis of steps.

#include <memory>
#include <optional>

#include "ui/models/common/latest_job.h"
#include "ui/models/common/pace.h"
#include "ui/models/finetune/training_run.h"
#include "ui/views/common/document_view.h"

class QPushButton;
class QStackedWidget;

namespace vitrine::ui {

class AnswerTable;
class DataPage;
class FactStrip;
class FinetuneForm;
class FinetunePanel;
class LiveLanes;
class MarkStrip;
class SeriesLane;
class StackLane;
class StepPage;

class FinetuneView final : public DocumentView {
    Q_OBJECT

public:
    enum Page : std::uint8_t { Form, Data, Live, Step };
    enum Range : std::uint8_t { SoFar, Last100, All };

    explicit FinetuneView(const ViewServices& context, QWidget* parent = nullptr);

    QWidget* inspector() override;
    QWidget* inspectorHeader() override;
    bool wantsInspector() const override;
    bool settled() const override;
    bool perform(const QString& action) override;
    QString whyNot(const QString& action) const override;
    bool undoesItself() const override { return page() == Form; }
    QString find(const QString& text, int direction) override;
    void takeExperiment(const QString& experimentJson) override;
    void takeFolder(const QString& path) override;
    void takeData(const QString& path) override;
    void activated() override;

    Page page() const;
    void showPage(Page page);
    void showPage(const QString& page) override; ///< "step"
    FinetuneForm* form() const { return form_; }
    DataPage* dataPage() const { return data_; }
    FinetunePanel* panel() const { return panel_; }
    StepPage* stepPage() const { return step_; }
    /// The page Step with this step of run A.
    void openStep(std::int64_t step);
    SegmentedControl* ranges() const { return ranges_; }
    QCheckBox* follow() const { return follow_; }
    QPushButton* runButton() const { return run_; }
    QPushButton* saveButton() const { return save_; }
    QPushButton* tryButton() const { return try_; }
    QPushButton* compareButton() const { return compare_; }
    const TrainingRunPtr& training() const { return training_; }
    SeriesLane* lossLane() const;
    StackLane* memoryLane() const;
    MarkStrip* marks() const;
    AnswerTable* answers() const { return answers_; }
    TimeCursor* axis() const { return time_; }
    QString liveText() const; ///< what the page says in place of lanes; empty: it shows them
    /// Where a session file is made when none is open.
    void setSessionFolder(const QString& folder) { sessionFolder_ = folder; }

protected:
    void refresh() override;
    void onRuns() override;
    std::vector<sessions::RunId> shownRuns() const override;
    TimeCursor* ownAxis() const override;
    QList<LaneStack*> laneStacks() const override;
    QList<QWidget*> bodyStops() const override;
    QString copyText() const override { return shownText(); }
    QString whyText() const override;

private:
    struct Built {
        TrainingRunPtr training;
        TimelinePtr timeline;
        std::uint64_t peak = 0; ///< of its steps
    };
    void buildHeader();
    void buildData();
    void buildLive();
    void buildStep();
    void updateStep(); ///< the page Step gets the runs as they are now
    void connectRuns();
    void start();
    void stop();
    void take(Built built);
    void clear();
    void showRunError();
    double smoothing() const;
    void updateLive(); ///< lanes or the words in their place
    void updateAnswers();
    void updateExtent();
    void applyRange();
    void updateFacts(); ///< header facts of the lanes, readout: at the cursor or at the end
    void updateTwin();
    void updateButtons();
    void updateComparing(const sessions::RunInfo* ended); ///< null: no run that has ended is shown
    void updateHeader();
    void shareCursor();
    /// The form with a checkpoint, and one option changed where `key` names one.
    void continueFrom(std::int64_t step, bool branch, const QString& key, const QString& value);
    QString whyNothing() const;
    bool running() const;

    SegmentedControl *pages_ = nullptr, *ranges_ = nullptr;
    QCheckBox *follow_ = nullptr, *plan_ = nullptr;
    QComboBox* smoothing_ = nullptr;
    QPushButton *run_ = nullptr, *save_ = nullptr, *try_ = nullptr, *compare_ = nullptr;
    QWidget* fitBox_ = nullptr; ///< what the form's run would need; it shows and hides its parts itself
    QStackedWidget *body_ = nullptr, *live_ = nullptr;
    FinetuneForm* form_ = nullptr;
    DataPage* data_ = nullptr;
    FactStrip* facts_ = nullptr;
    EmptyState* nothing_ = nullptr;
    TimeCursor* time_;
    LiveLanes* lanes_ = nullptr;
    AnswerTable* answers_ = nullptr;
    QStackedWidget *inspectors_ = nullptr, *inspectorHeads_ = nullptr; ///< of the pages that have one: Data, Live, Step
    FinetunePanel* panel_;
    StepPage* step_ = nullptr;
    LatestJob<Built> job_; ///< goes through all steps of the run
    Pace pace_;            ///< of a run that goes on
    TrainingRunPtr training_;
    TimelinePtr timeline_;
    std::uint64_t peak_ = 0;
    sessions::RunId shownRun_ = 0;
    sessions::RunId startedRun_ = 0; ///< becomes A when the session knows it
    bool started_ = false;           ///< this view has asked for the run that begins
    bool placing_ = false;           ///< the range is being set by the segments
    bool placed_ = true;             ///< it is what they say: nobody has looked elsewhere since
    QString sessionFolder_;
};

} // namespace vitrine::ui

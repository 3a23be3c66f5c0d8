// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Reinforcement learning: the curves of a run and its baseline over steps, time or sampled tokens, the memory of one
// step, what limits it, and its answers.

#include <memory>
#include <optional>

#include "ui/models/common/latest_job.h"
#include "ui/models/common/pace.h"
#include "ui/models/rl/rl_curves.h"
#include "ui/models/rl/rl_limit.h"
#include "ui/models/rl/rl_reference.h"
#include "ui/models/rl/rl_samples.h"
#include "ui/models/rl/rl_step_text.h"
#include "ui/views/common/document_view.h"

class QPushButton;
class QScrollArea;
class QStackedWidget;

namespace vitrine::ui {

class RlLanes;
class RlPanel;
class RlSamplesPage;
class RlStepPane;

class RlView final : public DocumentView {
    Q_OBJECT

public:
    enum Page : std::uint8_t { Curves, Samples };

    explicit RlView(const ViewServices& context, QWidget* parent = nullptr);

    QWidget* inspector() override;
    QWidget* inspectorHeader() override;
    int inspectorWidth() const override { return 376; }
    bool wantsInspector() const override;
    bool settled() const override;
    bool perform(const QString& action) override;
    QString whyNot(const QString& action) const override;
    void activated() override;

    Page page() const;
    void showPage(Page page);
    void showPage(const QString& page) override; ///< "samples"
    RlSamplesPage* samplesPage() const { return samplesPage_; }
    /// Whose groups are listed: of A, or of B where A kept none.
    const RlSamplesPtr& samples() const;
    QString sentenceText() const; ///< what limits the step, without marks
    QString changeText() const;   ///< and what would change it
    QPushButton* tryButton() const { return try_; }
    RlLanes* lanes() const { return lanes_; }
    RlStepPane* stepPane() const { return step_; }
    RlPanel* panel() const { return panel_; }
    SegmentedControl* axes() const { return axes_; }
    TimeCursor* axis() const { return time_; }
    const RlStepPair& shown() const { return pair_; }
    QString nothingText() const; ///< what the page says in place of lanes; empty: it shows them
    /// The cursor at a step.
    void chooseStep(std::int64_t step);

protected:
    void refresh() override;
    std::vector<sessions::RunId> shownRuns() const override;
    TimeCursor* ownAxis() const override { return time_; }
    QList<LaneStack*> laneStacks() const override;
    QList<QWidget*> bodyStops() const override;
    QString copyText() const override { return shownText(); }
    QString whyText() const override;
    void resizeEvent(QResizeEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    bool eventFilter(QObject* watched, QEvent* event) override; ///< of lanes: keys, and what scrolls them

private:
    /// The runs whose steps are shown; 0: none.
    struct Runs {
        sessions::RunId a = 0, b = 0;
        friend bool operator==(const Runs&, const Runs&) = default;
    };
    struct Built {
        RlCurvesPtr a, b;
        TimelinePtr timeline, timelineB;
    };
    struct Sampled {
        RlSamplesPtr a, b;
        std::optional<std::int64_t> nearest; ///< see nearestKept_
    };
    /// What answers are read from.
    struct SampledFrom {
        TimelinePtr a, b;
        Runs runs;
        std::int64_t step = -1;
        friend bool operator==(const SampledFrom&, const SampledFrom&) = default;
    };
    void buildHeader();
    void buildBody();
    void take(Built built);
    void updateBody();
    void updateExtent();
    void updateStep();
    void updatePanel();
    void updateTwin();
    void updateLimit();
    void updateReference();
    void updateSamples();
    void takeSamples(Sampled sampled);
    void showGroup();
    void groupBy(int direction);
    RlGroupPair shownGroups() const;
    std::size_t groupToRead() const;
    QString whyNoSamples(bool ofB) const;
    QWidget* buildSentence(QWidget* parent);
    bool takeKey(const QKeyEvent& event);
    /// Moves the cursor by steps, or to the next evaluation.
    void stepBy(std::int64_t steps);
    void nextEvaluation();
    QString whyNothing() const;
    RlAxis chosenAxis() const { return static_cast<RlAxis>(axes_->current()); }

    SegmentedControl *pages_ = nullptr, *axes_ = nullptr;
    QCheckBox *groups_ = nullptr, *reference_ = nullptr;
    QScrollArea* scroll_ = nullptr;                       ///< of the lanes, where the window is low
    QStackedWidget *body_ = nullptr, *content_ = nullptr; ///< content_: the pages
    QWidget* sentenceRow_ = nullptr;
    TextLabel *sentence_ = nullptr, *change_ = nullptr;
    QPushButton* try_ = nullptr;
    RlSamplesPage* samplesPage_ = nullptr;
    EmptyState* nothing_ = nullptr;
    TimeCursor* time_;
    RlLanes* lanes_ = nullptr;
    RlStepPane* step_ = nullptr;
    RlPanel* panel_;
    LatestJob<Built> job_; ///< goes through all steps of both runs
    Pace pace_;            ///< of a run that goes on
    Runs runs_;
    RlCurvesPtr a_, b_;
    TimelinePtr timeline_, timelineB_; ///< timeline_: of A
    RlStepPair pair_;
    std::optional<RlChange> wanted_; ///< what "Try" tries
    LatestJob<Sampled> sampling_;
    RlSamplesPtr samplesA_, samplesB_;
    SampledFrom sampledFrom_; ///< what the samples were read from, or are being read from
    std::size_t group_ = 0;   ///< of samples()->groups
    bool smooth_ = false;
    std::optional<std::int64_t> nearestKept_;                    ///< the step, where the chosen one has no tokens
    std::optional<std::pair<std::int64_t, std::int64_t>> range_; ///< of steps whose means are shown
    LatestJob<FlatTreePtr> averaging_;
    LatestJob<std::optional<RlReference>> referring_;
    std::optional<RlReference> found_;
    std::pair<sessions::RunId, std::ptrdiff_t> referredTo_; ///< what it was looked for: A, and how many runs had ended
};

} // namespace vitrine::ui

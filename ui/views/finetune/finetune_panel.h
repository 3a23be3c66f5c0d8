// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The inspector of a training run: time, what each memory technique buys, checkpoints and how to go on from one, what
// is trained.

#include <QScrollArea>

#include "ui/models/common/latest_job.h"
#include "ui/models/finetune/switch_prices.h"
#include "ui/models/finetune/training_run.h"
#include "ui/widgets/base/controls.h"

namespace vitrine::ui {

class FactTable;
class SwitchSection;

class FinetunePanel final : public QScrollArea {
    Q_OBJECT

public:
    FinetunePanel();

    DockHeader* header() const { return header_; }
    /// Below the view it scrolls: it asks for no more than its share.
    QSize sizeHint() const override { return {200, 120}; }
    /// Null: nothing was recorded. `info` null: there is no run.
    /// `runs` are those of the session, which the error of plans comes from; `peak` is that of the run's steps.
    void setRun(const sessions::RunInfo* info, const TrainingRunPtr& training,
                const std::vector<sessions::RunInfo>& runs = {}, std::uint64_t peak = 0);
    /// No plan is being made.
    bool settled() const { return !job_.busy(); }
    SwitchSection* switches() const { return switches_; }
    QString numberText() const { return number_->text(); }
    QString howText() const { return how_->text(); }
    FactTable* trained() const { return trained_; }
    FactTable* checkpoints() const { return checkpoints_; }
    QPushButton* branchButton() const { return branch_; }
    QPushButton* resumeButton() const { return resume_; }
    /// Chooses a checkpoint's row; the newest one is chosen at first.
    void choose(std::int64_t step);
    QString asText() const;

signals:
    /// The form with that checkpoint is wanted; nothing starts by itself.
    void continueWanted(qint64 step, bool branch);
    /// The same as a branch with one option changed.
    void branchWanted(qint64 step, const QString& key, const QString& value);
    /// What the planner says of the run; 0: nothing.
    void planKnown(quint64 bytes, const vitrine::ui::ErrorBand& band);
    /// The planned peak with one switch the other way; nothing: none is chosen.
    void outlineWanted(std::optional<quint64> bytes, const QString& label);

private:
    void buildCheckpoints(QWidget* content);
    void updateButtons();
    void updateSwitches();
    void askPrices(const std::vector<sessions::RunInfo>& runs);

    DockHeader *header_, *checkpointHeader_ = nullptr;
    TextLabel* checkpointRule_ = nullptr;
    SwitchSection* switches_ = nullptr;
    LatestJob<std::optional<SwitchPrices>> job_; ///< takes some plans
    std::optional<SwitchPrices> prices_;
    std::optional<MeasuredPair> measured_;
    std::optional<sessions::RunInfo> info_;
    TrainingRunPtr training_;
    std::string asked_; ///< what the prices are of
    TextLabel *number_, *how_, *doneAt_, *hint_ = nullptr;
    FactTable *time_, *trained_, *checkpoints_ = nullptr;
    QWidget* buttons_ = nullptr;
    QPushButton *branch_ = nullptr, *resume_ = nullptr;
    std::int64_t chosen_ = 0; ///< 0: the newest
    std::int64_t newest_ = 0;
    bool live_ = false, unfinished_ = false, hasOutput_ = false;
};

} // namespace vitrine::ui

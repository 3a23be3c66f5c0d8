// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The inspector of a training run: time, what is trained, checkpoints and how to go on from one.

#include <QScrollArea>

#include "ui/models/finetune/training_run.h"
#include "ui/widgets/base/controls.h"

namespace vitrine::ui {

class FactTable;

class FinetunePanel final : public QScrollArea {
    Q_OBJECT

public:
    FinetunePanel();

    DockHeader* header() const { return header_; }
    /// Below the view it scrolls: it asks for no more than its share.
    QSize sizeHint() const override { return {200, 120}; }
    /// Null: nothing was recorded. `info` null: there is no run.
    void setRun(const sessions::RunInfo* info, const TrainingRunPtr& training);
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

private:
    void buildCheckpoints(QWidget* content);
    void updateButtons();

    DockHeader *header_, *checkpointHeader_ = nullptr;
    TextLabel *number_, *how_, *doneAt_, *hint_ = nullptr;
    FactTable *time_, *trained_, *checkpoints_ = nullptr;
    QWidget* buttons_ = nullptr;
    QPushButton *branch_ = nullptr, *resume_ = nullptr;
    std::int64_t chosen_ = 0; ///< 0: the newest
    std::int64_t newest_ = 0;
    bool live_ = false, unfinished_ = false, hasOutput_ = false;
};

} // namespace vitrine::ui

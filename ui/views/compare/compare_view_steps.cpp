// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Runs that go step by step: which page shows them, and what is said of them.
#include "ui/models/finetune/training_text.h"
#include "ui/models/rl/rl_run.h"
#include "ui/views/compare/compare_view.h"
#include "ui/views/compare/rl_compare_page.h"
#include "ui/views/compare/training_compare.h"
#include "ui/widgets/timeline/lane_stack.h"

namespace vitrine::ui {

bool CompareView::updateTraining() {
    const sessions::RunInfo *a = runInfo(a_), *b = runInfo(b_);
    const auto are = [&](bool (*kind)(const sessions::RunInfo&)) {
        return a != nullptr && b != nullptr && a_ != b_ && !nothingComparable_ && kind(*a) && kind(*b);
    };
    const bool trained = are(isTrainingRun), policies = are(isRlRun);
    const bool steps = (trained || policies) && extent_->current() == 0;
    extent_->setVisible(trained || policies);
    extent_->button(0)->setText(policies ? tr("By step") : tr("One step"));
    align_->setVisible(!steps);
    training_->setVisible(steps && trained);
    policies_->setVisible(steps && policies);
    stack_->setVisible(!steps && !nothingComparable_);
    showTables();
    if (steps && trained) {
        training_->setRuns({*a, timelineOf(a_).timeline}, {*b, timelineOf(b_).timeline});
    } else if (steps) {
        policies_->setRuns(*a, timelineOf(a_).timeline, *b, timelineOf(b_).timeline);
    }
    if (policies) {
        sayPolicies();
    }
    return steps;
}

/// Rewards and steps say more of such runs than what a run as a whole took, which is said where that is shown.
void CompareView::sayPolicies() {
    const std::vector<sessions::RunInfo> runs = comparedRuns();
    if (runs.size() < 2) {
        return;
    }
    CompareText words = compareText(runs[0], runs[1], document()->runs());
    if (policies_->isVisibleTo(this) && !policies_->words().sentence.isEmpty()) {
        words.sentence = policies_->words().sentence;
        words.cause = policies_->words().other;
    }
    showWords(words);
}

} // namespace vitrine::ui

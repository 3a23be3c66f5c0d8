// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Words and tables about a training run, and the experiments that go on from it. Pure functions; any thread.

#include <QString>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sessions/session_file.h"
#include "ui/models/common/flat_tree.h"
#include "ui/models/finetune/training_run.h"

namespace vitrine::ui {

/// Whether the run was started by the workload finetune, and not as a plan.
bool isTrainingRun(const sessions::RunInfo& run);

/// A length of time as people say it: "7.04 s", "3 min 43 s", "1 h 10 min", "2 d 3 h".
QString longTimeText(double seconds);

/// What the run was started with, in one line of names and values.
std::vector<std::pair<QString, QString>> trainingFacts(const sessions::RunInfo& run);

/// The first section of the inspector.
struct TrainingTimeText {
    QString title;  ///< "Time left", "Time"
    QString number; ///< large
    QString how;    ///< how it was made, and what is done
};
TrainingTimeText trainingTimeText(const sessions::RunInfo& run, const TrainingRun* training);

/// Elapsed time, tokens, speed of the last steps.
FlatTreePtr trainingTimeTable(const TrainingRun& training);
/// What is trained and how.
FlatTreePtr trainedTable(const sessions::RunInfo& run, const TrainingRun* training);
/// "every 50 steps, the last 3 are kept"; empty of a run that saves none.
QString checkpointRuleText(const sessions::RunInfo& run);
/// The newest `most` checkpoints that are kept, newest first, and the best one; the key is the step.
FlatTreePtr checkpointTable(const TrainingRun& training, std::size_t most = 30);
/// At most `most` steps, evenly chosen, the last one among them, with their loss, rate, norm and speed, and changed
/// codes where the run counted them.
FlatTreePtr trainingStepTable(const TrainingRun& training, std::size_t most = 1000);

/// "Step 287: loss 1.336, smoothed 1.312, rate 1.74e-4, norm 0.34, 9,332 tok/s", and ", 2.6 % of codes changed" where
/// they were counted; an index of training.steps().
QString trainingStepText(const TrainingRun& training, std::size_t index);

QString lossText(double value);           ///< "1.336"; "not a number" where it is none
QString rateOfLearningText(double value); ///< "1.74e−4"
QString codesText(double share);          ///< "2.6 %", "0.0131 %": of weight codes that a step changed
/// "0.0002, warm-up 50 steps, cosine"; empty where the run does not say it.
QString scheduleText(const sessions::RunInfo& run);

/// The experiment that goes on from a checkpoint of the run: where the run stopped, in its folder (`branch` false), or
/// with a folder of its own, to be changed first. Nothing where the run has no output folder.
std::optional<std::string> experimentFrom(const sessions::RunInfo& run, std::int64_t step, bool branch);
/// The experiment that answers a prompt with the adapter that the run has saved. Nothing where it has saved none.
std::optional<std::string> experimentTrying(const sessions::RunInfo& run);

/// The format that a run which has ended well trained its weights for, as the Precision lab writes it:
/// "int4:32:seven". Empty: none.
std::string formatTrainedFor(const sessions::RunInfo& run);
/// The experiment that compares what the run has saved in BF16 and in that format. Nothing where it has saved nothing.
std::optional<std::string> experimentComparing(const sessions::RunInfo& run);

} // namespace vitrine::ui

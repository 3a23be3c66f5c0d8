// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Words and tables about a training step and its baseline. Differences are A − B and are taken from the numbers as they
// are shown, so that columns add up. Pure functions; any thread.

#include <QString>
#include <cstdint>
#include <optional>

#include "ui/models/common/flat_tree.h"
#include "ui/models/finetune/step_advice.h"
#include "ui/models/finetune/step_pair.h"

namespace vitrine::ui {

/// "Chunked loss, offload, tiled MLP": the memory techniques that the step's own records show.
QString techniquesText(const profiler::StepAnatomy& step);

/// "the loss", "the MLP backward of layer 23", "the optimizer": where an instant lies.
QString placeInStep(const profiler::StepAnatomy& step, base::TimeNs time);
/// "forward", "backward, each layer recomputed first", ...
QString phaseTitle(const profiler::StepAnatomy& step, const profiler::StepPhase& phase);
QString partTitle(const profiler::StepPart& part, bool withLayer);

/// "The peak is <b>20.01 GiB</b>, in the loss: one chunk of 4,096 tokens holds <b>4.60 GiB</b> of logits and gradient."
/// Rich text. Says so where no memory was recorded.
QString stepSentence(const profiler::StepAnatomy& step);
/// Where the next peak is, which change lowers the first one, what offload saves, and the peak of B.
QString stepSecondText(const StepPair& pair, const std::optional<StepAdvice>& advice);

/// The large number and the sentence below it.
struct StepResultText {
    QString number, sentence;
};
StepResultText stepResult(const StepPair& pair);

FlatTreePtr phasePeakTable(const StepPair& pair);
FlatTreePtr phaseTimeTable(const StepPair& pair);
FlatTreePtr peakCategoryTable(const StepPair& pair);
/// Empty where no side offloads.
FlatTreePtr offloadTable(const StepPair& pair, const std::optional<StepAdvice>& advice);
/// Loss and gradients of both; empty without B.
FlatTreePtr agreementTable(const StepPair& pair);
/// All layers and chunks with their time, peak and B's peak: what "Show as table" gives.
FlatTreePtr stepItemTable(const StepPair& pair);

/// "2.46 s, backward of layer 21: A 17.77 GiB, B 28.89 GiB, A to B −11.12 GiB"; `at` counts from the begin of A's step.
/// Or "B − A +11.12 GiB" at its end, as the Compare view counts.
enum class StepChange : std::uint8_t { AToB, BMinusA };
QString stepReadout(const StepPair& pair, base::TimeNs at, bool byPhase, StepChange change = StepChange::AToB);
/// What stands in the free part of a lane of copies: count, bytes, rate, time each, hidden or waited for.
QString copiesText(const profiler::StepAnatomy& step, bool toHost);
/// "7.04 s, peak 20.01 GiB, budget 80.00 GiB is off this scale"
QString sideFacts(const StepSide& side, std::uint64_t top);

} // namespace vitrine::ui

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/rl/rl_limit.h"

#include <QObject>
#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "base/json_values.h"
#include "engine/workload/experiment/experiment.h"
#include "profiler/timeline/run_events.h"
#include "profiler/timeline/run_timeline.h"
#include "ui/models/common/format.h"
#include "ui/models/rl/rl_curves.h"
#include "ui/models/rl/rl_step_text.h"

namespace vitrine::ui {

namespace {

constexpr double kLastAnswers = 0.02;   ///< share of the answers of a step that count as its last ones
constexpr double kLeastWait = 0.1;      ///< of a step, from which on waiting for them is what limits it
constexpr double kRecomputePart = 0.25; ///< of training: a forward pass of two, and a backward pass of two
constexpr std::int64_t kTokenGrid = 16; ///< partial_tokens are given in multiples of it

double wholeSeconds(const engine::RlStep& step) {
    double sum = 0;
    for (int part = 0; part < kRlTimeParts; ++part) {
        const double seconds = timePartSeconds(step, static_cast<RlTimePart>(part));
        sum += std::isfinite(seconds) ? seconds : 0;
    }
    return std::isfinite(step.seconds) && step.seconds > 0 ? step.seconds : sum;
}

RlLimitKind kindOf(RlTimePart part) {
    constexpr std::array kKinds{RlLimitKind::Rollout, RlLimitKind::Judging, RlLimitKind::LogProbs, RlLimitKind::Train,
                                RlLimitKind::Weights};
    return kKinds[static_cast<std::size_t>(part)];
}

QString savingText(double seconds, double of) {
    return QObject::tr("%1 of %2 a step (−%3)")
        .arg(stepTimeText(of - seconds), stepTimeText(of), shareText(of > 0 ? seconds / of : 0));
}

/// Whether the run that said this keeps less than all activations.
bool computesLayersTwice(const std::string& metricsJson) {
    const std::string kept = base::textIn(metricsJson, "checkpoint");
    return !kept.empty() && kept != "none";
}

} // namespace

std::optional<RlTail> rolloutTail(const profiler::RunTimeline& timeline, TimeRange rollout, std::int64_t most) {
    const std::span<const base::BatchStepEvent> all = profiler::events<base::BatchStepEvent>(timeline);
    const auto first = std::ranges::lower_bound(all, rollout.begin, {}, &base::BatchStepEvent::begin);
    const auto last = std::ranges::lower_bound(all, rollout.end, {}, &base::BatchStepEvent::begin);
    auto begin = last;
    while (begin != first) {
        const base::BatchStepEvent& before = *std::prev(begin);
        if (before.running > most || before.queued > 0) {
            break;
        }
        --begin;
    }
    if (begin == last || begin == first) {
        return std::nullopt; // all the time, or never: nobody waits for the last ones
    }
    RlTail out;
    out.seconds = static_cast<double>(std::prev(last)->end - begin->begin) * 1e-9;
    out.answers = begin->running;
    out.steps = begin - first;
    return out;
}

std::optional<RlLimit> rlLimit(const RlRun& run, std::size_t index, const RlStepMemory* memory) {
    const engine::RlStep& step = run.step(index);
    RlLimit out;
    out.stepSeconds = wholeSeconds(step);
    for (int i = 0; i < kRlTimeParts; ++i) {
        const auto part = static_cast<RlTimePart>(i);
        if (const double seconds = timePartSeconds(step, part); std::isfinite(seconds) && seconds > out.seconds) {
            out.seconds = seconds;
            out.kind = kindOf(part);
        }
    }
    if (out.seconds <= 0) {
        return std::nullopt;
    }
    out.of = run.demand().answers();
    const RlPhase* rollout = nullptr;
    if (memory != nullptr) {
        const auto found = std::ranges::find(memory->phases, RlPhaseKind::Rollout, &RlPhase::kind);
        rollout = found == memory->phases.end() ? nullptr : &*found;
    }
    if (rollout == nullptr || out.of < 2) {
        return out;
    }
    const auto most = std::max<std::int64_t>(1, std::llround(kLastAnswers * static_cast<double>(out.of)));
    const auto tail = rolloutTail(*memory->timeline, rollout->range, most);
    if (tail && tail->seconds > kLeastWait * out.stepSeconds) {
        out.kind = RlLimitKind::LastAnswers;
        out.seconds = tail->seconds;
        out.answers = tail->answers;
        out.tokens = tail->steps;
    }
    return out;
}

QString limitSentence(const RlLimit& limit) {
    const QString share = QObject::tr("<b>%1</b> of the step").arg(shareText(limit.share()));
    switch (limit.kind) {
    case RlLimitKind::LastAnswers:
        return QObject::tr("Rollouts wait for <b>%1 of %2 answers</b>: %3.")
            .arg(countText(limit.answers), countText(limit.of), share);
    case RlLimitKind::Judging:
        return QObject::tr("Nothing is sampled while <b>the last answers are judged</b>: %1.").arg(share);
    case RlLimitKind::LogProbs:
        return QObject::tr("Training waits for <b>log-probabilities of the reference</b>: %1.").arg(share);
    case RlLimitKind::Train:
        return QObject::tr("<b>Training</b> takes the most: %1.").arg(share);
    case RlLimitKind::Weights:
        return QObject::tr("<b>Changing between training and sampling</b> takes the most: %1.").arg(share);
    case RlLimitKind::Rollout:
        break;
    }
    return QObject::tr("<b>Sampling</b> takes the most: %1.").arg(share);
}

std::optional<RlChange> limitChange(const RlLimit& limit, const std::string& specJson, const std::string& metricsJson) {
    const auto spec = engine::Experiment::read(specJson);
    if (!spec) {
        return std::nullopt;
    }
    const auto saves = [&](double seconds) { return savingText(seconds, limit.stepSeconds); };
    const auto changed = [&](const char* key, const engine::OptionValue& value, const QString& words) {
        engine::Experiment other = *spec;
        other.set(key, value);
        return RlChange{key, words, other.jsonText()};
    };
    switch (limit.kind) {
    case RlLimitKind::LastAnswers: {
        if (limit.tokens < 1 || spec->maybeInteger("partial_tokens").value_or(0) > 0) {
            return std::nullopt;
        }
        const std::int64_t tokens = (limit.tokens + kTokenGrid - 1) / kTokenGrid * kTokenGrid;
        return changed("partial_tokens", tokens,
                       QObject::tr("partial_tokens %1 lets them go on in the next step: about %2")
                           .arg(countText(tokens), saves(limit.seconds)));
    }
    case RlLimitKind::Judging: {
        const std::int64_t processes = spec->maybeInteger("reward_processes").value_or(0);
        if (!spec->has("reward_command") || processes < 1) {
            return std::nullopt;
        }
        return changed("reward_processes", 2 * processes,
                       QObject::tr("reward_processes %1 instead of %2 would halve it at best: %3")
                           .arg(countText(2 * processes), countText(processes), saves(limit.seconds / 2)));
    }
    case RlLimitKind::LogProbs:
        if (spec->maybeReal("kl").value_or(0) <= 0) {
            return std::nullopt;
        }
        return changed("kl", 0.0, QObject::tr("kl 0 needs no reference: %1").arg(saves(limit.seconds)));
    case RlLimitKind::Train:
        if (!computesLayersTwice(metricsJson)) {
            return std::nullopt;
        }
        return changed("checkpoint", std::string("none"),
                       QObject::tr("checkpoint none computes no layer twice, if the activations fit: at best %1")
                           .arg(saves(kRecomputePart * limit.seconds)));
    case RlLimitKind::Rollout:
        if (const std::int64_t running = spec->maybeInteger("slots").value_or(0); running > 0 && running < limit.of) {
            const std::int64_t more = std::min(2 * running, limit.of);
            const double kept = static_cast<double>(running) / static_cast<double>(more);
            return changed(
                "slots", more,
                QObject::tr("slots %1 instead of %2 samples more answers in a step of the sampler: at best %3")
                    .arg(countText(more), countText(running), saves(limit.seconds * (1 - kept))));
        }
        return std::nullopt;
    case RlLimitKind::Weights:
        break;
    }
    return std::nullopt;
}

} // namespace vitrine::ui

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/planner/plan_words.h"

#include <QCoreApplication>
#include <QObject>
#include <QStringList>
#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/trace.h"
#include "engine/workload/experiment/experiment.h"
#include "kernels/core/device_traits.h"
#include "ui/models/common/format.h"
#include "ui/models/planner/plan_draft.h"
#include "ui/models/run/experiment_form.h"

namespace vitrine::ui {

namespace {

std::uint64_t magnitude(std::int64_t bytes) {
    return static_cast<std::uint64_t>(std::abs(bytes));
}

std::uint64_t upperEnd(const engine::PlanPrice& price, const ErrorBand& band) {
    return static_cast<std::uint64_t>(static_cast<double>(price.reserved) * (1 + band.share));
}

QString editName(const engine::OptionEdit& edit, const engine::Experiment& experiment) {
    const QString after = textOf(engine::edited(experiment, {edit}).valueText(edit.key));
    const QString before = textOf(experiment.valueText(edit.key));
    if (edit.key == "prompt_length" || edit.key == "prompt_tokens") {
        return QObject::tr("Context %1").arg(countText(after.toLongLong()));
    }
    if (edit.key == "device_profile") {
        return QObject::tr("Device %1").arg(textOf(kernels::loadDeviceProfile(after.toStdString()).name));
    }
    if (edit.key == "tp") {
        return QObject::tr("%1 such devices").arg(countText(after.toLongLong()));
    }
    if (edit.key == "tiled_mlp") {
        return QObject::tr("Tiled MLP");
    }
    if (edit.key == "checkpoint") {
        return after == QLatin1String("offload") ? QObject::tr("Offload of layer inputs")
                                                 : QObject::tr("Only layer inputs kept");
    }
    if (edit.key == "loss_chunks") {
        return after == QLatin1String("auto") ? QObject::tr("Chunked loss")
                                              : QObject::tr("Loss in %1 chunks").arg(countText(after.toLongLong()));
    }
    if (edit.key == "optimizer") {
        return QObject::tr("8-bit AdamW");
    }
    if (edit.key == "kv_dtype") {
        return QObject::tr("KV cache in %1").arg(after);
    }
    if (edit.key == "rollout") {
        return QObject::tr("Rollouts with %1 weights").arg(after);
    }
    if (edit.key == "qat") {
        return QObject::tr("Quantization-aware training in %1").arg(after);
    }
    if (edit.key == "prefill_chunk") {
        return QObject::tr("Prefill in steps of %1 tokens").arg(countText(after.toLongLong()));
    }
    if (edit.key == "weights") {
        return QObject::tr("Packed weights");
    }
    const QString label = ExperimentForm::label(textOf(edit.key));
    return before.isEmpty() ? QObject::tr("%1 %2").arg(label, after)
                            : QObject::tr("%1 %2 instead of %3").arg(label, after, before);
}

} // namespace

QString planPlaceText(const std::string& place) {
    return place.empty() ? unknownText() : textOf(place);
}

PlanVerdict planVerdict(const engine::PlanPrice& price, const ErrorBand& band) {
    if (!price.fits) {
        return PlanVerdict::DoesNotFit;
    }
    return upperEnd(price, band) <= price.budget ? PlanVerdict::Fits : PlanVerdict::Tight;
}

QString longestText(const engine::WhatIfSet& set) {
    return !set.lineKnown ? unknownText() : countText(set.line.longest);
}

QString verdictText(const engine::WhatIfSet& set, const ErrorBand& band) {
    const QString bytes = bytesText(magnitude(set.price.spare()));
    QString longest;
    if (set.lineKnown) {
        longest = set.line.longest == 0 ? QObject::tr("; no context fits")
                  : set.line.open       ? QObject::tr("; a context of %1 fits too").arg(longestText(set))
                                        : QObject::tr("; the longest context is %1").arg(longestText(set));
    }
    switch (planVerdict(set.price, band)) {
    case PlanVerdict::Fits:
        return QObject::tr("Fits with %1 to spare%2.").arg(bytes, longest);
    case PlanVerdict::Tight:
        return QObject::tr("Fits in the middle of the error band only%1.").arg(longest);
    case PlanVerdict::DoesNotFit:
        return QObject::tr("%1 too much%2.").arg(bytes, longest);
    }
    return {};
}

QString verdictReason(const engine::WhatIfSet& set, const ErrorBand& band) {
    const engine::PlanPrice& price = set.price;
    const QString upper = bytesText(upperEnd(price, band));
    const QString from = band.runs == 0 ? QObject::tr("No past runs: the error band of 3 % is assumed.")
                         : band.own     ? QObject::tr("The error band of %1 is that of %2 runs of this model here.")
                                          .arg(shareText(band.share))
                                          .arg(band.runs)
                                    : QObject::tr("The error band of %1 is that of all %2 runs of the session.")
                                          .arg(shareText(band.share))
                                          .arg(band.runs);
    switch (planVerdict(price, band)) {
    case PlanVerdict::Fits:
        return QObject::tr("It fits at the upper end of the error band too: %1. %2").arg(upper, from);
    case PlanVerdict::Tight:
        return QObject::tr("%1 to spare, but the upper end of the error band is %2. %3")
            .arg(bytesText(magnitude(price.spare())), upper, from);
    case PlanVerdict::DoesNotFit:
        return price.place.empty()
                   ? QObject::tr("It needs %1 of %2. %3").arg(bytesText(price.reserved), bytesText(price.budget), from)
                   : QObject::tr("It needs %1 of %2, the most in %3. %4")
                         .arg(bytesText(price.reserved), bytesText(price.budget), planPlaceText(price.place), from);
    }
    return {};
}

QString setName(const engine::PlanSetSpec& spec) {
    if (spec.edits.size() == 1 && spec.edits.front().key == "kv_dtype") {
        return QObject::tr("KV cache in %1").arg(textOf(spec.name));
    }
    return QObject::tr(spec.name.c_str());
}

QString switchName(const engine::PlanSwitchSpec& spec) {
    return QObject::tr(spec.name.c_str());
}

QString changeName(const engine::PlanChange& change, const engine::Experiment& experiment) {
    QStringList names;
    for (const engine::OptionEdit& edit : change.edits) {
        if (edit.key != "vram_budget") {
            QString name = editName(edit, experiment);
            if (!names.isEmpty() && name.size() > 1 && name[1].isLower()) {
                name[0] = name[0].toLower();
            }
            names << name;
        }
    }
    return names.join(QObject::tr(" and "));
}

QString changeEffect(const engine::PlanChange& change) {
    static const std::pair<const char*, const char*> kEffects[] = {
        {"weights", QT_TRANSLATE_NOOP("Planner", "they stay as the checkpoint stores them")},
        {"dtype", QT_TRANSLATE_NOOP("Planner", "activations and cache take half the bytes")},
        {"prefill_chunk", QT_TRANSLATE_NOOP("Planner", "the arena of a prefill step is smaller")},
        {"token_budget", QT_TRANSLATE_NOOP("Planner", "the arena of a step is smaller")},
        {"kv_dtype", QT_TRANSLATE_NOOP("Planner", "a byte for each element and a scale for each head")},
        {"sliding_cache", QT_TRANSLATE_NOOP("Planner", "sliding layers keep only their window")},
        {"slots", QT_TRANSLATE_NOOP("Planner", "fewer requests run together")},
        {"rollout", QT_TRANSLATE_NOOP("Planner", "answers are sampled with packed copies of the weights")},
        {"qat", QT_TRANSLATE_NOOP("Planner", "rollouts use the packed copies of training")},
        {"prompts", QT_TRANSLATE_NOOP("Planner", "a step asks fewer problems")},
        {"max_new_tokens", QT_TRANSLATE_NOOP("Planner", "answers end earlier")},
        {"prompt_length", QT_TRANSLATE_NOOP("Planner", "the longest that fits with nothing else changed")},
        {"prompt_tokens", QT_TRANSLATE_NOOP("Planner", "the longest that fits with nothing else changed")},
        {"batch", QT_TRANSLATE_NOOP("Planner", "the largest that fits with nothing else changed")},
        {"tiled_mlp", QT_TRANSLATE_NOOP("Planner", "the MLP runs in parts of the sequence")},
        {"checkpoint", QT_TRANSLATE_NOOP("Planner", "the rest is computed again in the backward pass")},
        {"loss_chunks", QT_TRANSLATE_NOOP("Planner", "logits of one chunk at a time")},
        {"optimizer", QT_TRANSLATE_NOOP("Planner", "moments take a byte each")},
        {"train", QT_TRANSLATE_NOOP("Planner", "fewer parameters are trained")},
        {"rank", QT_TRANSLATE_NOOP("Planner", "the adapter is smaller")},
        {"method", QT_TRANSLATE_NOOP("Planner", "the weights stay as they are, an adapter is trained")}};
    const auto found = std::ranges::find(kEffects, change.edits.front().key,
                                         [](const auto& effect) { return std::string_view(effect.first); });
    const bool known = change.edits.size() == 1 && found != std::end(kEffects);
    return known ? QCoreApplication::translate("Planner", found->second) : QString();
}

QString changeReason(const engine::PlanChange& change) {
    if (change.moreDevices()) {
        return QObject::tr("%1 on each").arg(bytesText(change.price.reserved));
    }
    if (change.otherDevice) {
        return bytesText(change.price.budget);
    }
    if (!change.price.fits) {
        return change.edits.size() == 1 ? QObject::tr("not enough alone") : QObject::tr("not enough together");
    }
    const QString effect = changeEffect(change);
    return !effect.isEmpty() || change.price.place.empty()
               ? effect
               : QObject::tr("the peak is then in %1").arg(planPlaceText(change.price.place));
}

QString stepChangeText(double seconds, double before) {
    if (seconds <= 0 || before <= 0) {
        return unknownText();
    }
    const double change = (seconds / before - 1) * 100;
    const QString sign = change > 0.05 ? QStringLiteral("+") : change < -0.05 ? QStringLiteral("\u2212") : QString();
    return QStringLiteral("%1%2\u00A0%").arg(sign).arg(std::abs(change), 0, 'f', std::abs(change) < 10 ? 1 : 0);
}

QString goalFacts(const engine::WhatIf& answer) {
    const engine::PlanPrice& price = answer.goal.price;
    if (!price.known()) {
        return {};
    }
    const QString bytes = bytesText(magnitude(price.spare()));
    return (price.fits ? QObject::tr("set %1: %2 spare") : QObject::tr("set %1: %2 over"))
        .arg(answer.chosen + 1)
        .arg(bytes);
}

QString goalText(const engine::WhatIf& answer, const engine::Experiment& experiment) {
    const engine::WhatIfGoal& goal = answer.goal;
    if (!goal.price.known()) {
        return {};
    }
    if (goal.price.fits) {
        return QObject::tr("It fits on this device.");
    }
    return goal.device
               ? QObject::tr("%1 has the room, with %2 to spare.")
                     .arg(changeName(*goal.device, experiment), bytesText(magnitude(goal.device->price.spare())))
               : QObject::tr("No device that is known has the room.");
}

QString timesFromText(const std::string& from) {
    return from == "data sheet" ? QObject::tr("from the data sheet") : QObject::tr(from.c_str());
}

std::int64_t contextAxisTop(const engine::WhatIf& answer) {
    std::int64_t most = answer.context;
    for (const engine::WhatIfSet& set : answer.sets) {
        most = std::max(most, set.line.longest);
    }
    const double wanted = static_cast<double>(most) * 1.13;
    const double decade = std::pow(10.0, std::floor(std::log10(std::max(wanted, 10.0))));
    return static_cast<std::int64_t>(std::ceil(wanted / (decade / 20)) * (decade / 20));
}

} // namespace vitrine::ui

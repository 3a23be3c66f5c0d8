// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/finetune/step_rows.h"

#include <algorithm>

#include "ui/models/common/format.h"
#include "ui/models/finetune/step_text.h"

namespace vitrine::ui {

using profiler::StepAnatomy;
using profiler::TrainingPhase;

namespace {

QString itemTip(const StepAnatomy& step, const profiler::StepItem& item) {
    QString name = placeInStep(step, item.begin);
    if (item.phase == TrainingPhase::Loss) {
        name = QObject::tr("loss chunk %1").arg(item.index + 1);
    } else if (item.phase == TrainingPhase::Backward) {
        name = QObject::tr("backward of layer %1").arg(item.index);
    }
    name.remove(0, name.startsWith(QLatin1String("the ")) ? 4 : 0);
    return QObject::tr("%1: %2, peak %3").arg(name, durationText(item.end - item.begin), bytesText(item.peak.maxTotal));
}

} // namespace

TimeRange rangeInStep(const StepAnatomy& step, base::TimeNs begin, base::TimeNs end) {
    return {begin - step.begin, end - step.begin};
}

PartRow stepPhaseRow(const StepAnatomy& step) {
    PartRow row{QObject::tr("Phase"), {}, {}, true};
    for (const profiler::StepPhase& phase : step.phases) {
        StripPart part;
        part.range = rangeInStep(step, phase.begin, phase.end);
        part.label = phaseTitle(step, phase);
        part.shortLabel = textOf(profiler::phaseName(phase.kind));
        part.dark = true;
        part.ahead = step.passes == 1 && &phase != &step.phases.front();
        part.tip = QObject::tr("%1: %2, peak %3")
                       .arg(part.shortLabel, durationText(phase.end - phase.begin), bytesText(phase.peak.maxTotal));
        row.parts.push_back(part);
    }
    return row;
}

PartRow stepLayerRow(const StepAnatomy& step) {
    PartRow row{QObject::tr("Layer"), {}, {}, false};
    for (const profiler::StepItem& item : step.items) {
        StripPart part;
        part.range = rangeInStep(step, item.begin, item.end);
        part.dark = item.index % 2 != 0;
        part.tip = itemTip(step, item);
        if (item.phase == TrainingPhase::Backward) {
            part.label = QString::number(item.index);
        }
        row.parts.push_back(part);
    }
    for (const profiler::StepPhase& phase : step.phases) {
        if (phase.kind == TrainingPhase::Forward && phase.items > 1) {
            const auto& first = step.items[phase.firstItem];
            const auto& last = step.items[phase.firstItem + phase.items - 1];
            row.captions.emplace_back(rangeInStep(step, first.begin, last.end),
                                      QObject::tr("%1 to %2").arg(first.index).arg(last.index));
        }
    }
    return row;
}

PartRow stepPartRow(const StepAnatomy& step) {
    PartRow row{QObject::tr("Part"), {}, {}, true};
    for (const profiler::StepItem& item : step.items) {
        if (item.phase == TrainingPhase::Backward) {
            continue;
        }
        StripPart part;
        part.range = rangeInStep(step, item.begin, item.end);
        part.dark = item.index % 2 != 0 || item.index < 0;
        part.label = item.phase == TrainingPhase::Loss      ? QString::number(item.index + 1)
                     : item.phase == TrainingPhase::Forward ? QObject::tr("layer %1").arg(item.index)
                                                            : textOf(profiler::phaseName(item.phase));
        part.shortLabel = item.index >= 0 ? QString::number(item.index) : QString();
        part.tip = itemTip(step, item);
        row.parts.push_back(part);
    }
    std::int32_t layer = -1;
    for (const profiler::StepPart& each : step.parts) {
        StripPart part;
        part.range = rangeInStep(step, each.begin, each.end);
        part.dark = each.kind != profiler::StepPartKind::Mlp;
        part.label = partTitle(each, each.layer != layer);
        part.shortLabel = each.layer != layer                              ? QString::number(each.layer)
                          : each.kind == profiler::StepPartKind::Mlp       ? QObject::tr("MLP")
                          : each.kind == profiler::StepPartKind::Recompute ? QString()
                                                                           : QObject::tr("attention");
        part.tip = QObject::tr("%1: %2").arg(partTitle(each, true), durationText(each.end - each.begin));
        layer = each.layer;
        row.parts.push_back(part);
    }
    std::ranges::stable_sort(row.parts, {}, [](const StripPart& part) { return part.range.begin; });
    return row;
}

std::vector<base::TimeNs> phaseBorders(const StepAnatomy& step) {
    std::vector<base::TimeNs> borders;
    for (std::size_t i = 1; i < step.phases.size(); ++i) {
        borders.push_back(step.phases[i].begin - step.begin);
    }
    return borders;
}

} // namespace vitrine::ui

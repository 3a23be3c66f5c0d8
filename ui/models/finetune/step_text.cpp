// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/finetune/step_text.h"

#include <QObject>
#include <QStringList>
#include <algorithm>
#include <cmath>

#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/memory_totals.h"
#include "profiler/timeline/run_timeline.h"
#include "ui/models/common/format.h"
#include "ui/models/finetune/training_text.h"

namespace vitrine::ui {

namespace {

using profiler::HeldSet;
using profiler::StepAnatomy;
using profiler::TrainingPhase;

QString strongText(const QString& text) {
    return QStringLiteral("<b>%1</b>").arg(text.toHtmlEscaped());
}

QString seconds(base::TimeNs time) {
    return longTimeText(static_cast<double>(time) * 1e-9);
}

/// "layer inputs 0 to 3 hold 8.44 GiB"; `strong` marks the bytes.
QString holdsText(const StepAnatomy& step, const HeldSet& set, bool strong) {
    const QString bytes = strong ? strongText(bytesText(set.bytes)) : bytesText(set.bytes);
    if (set.category == base::MemoryCategory::Logits) {
        const profiler::StepPhase* phase = step.phaseAt(step.peak.maxTime);
        const bool chunks = phase != nullptr && phase->kind == TrainingPhase::Loss && phase->items > 1;
        if (chunks && set.rows > 0) {
            return QObject::tr("one chunk of %1 tokens holds %2 of logits and gradient")
                .arg(countText(set.rows), bytes);
        }
        return QObject::tr("the logits of all tokens at once hold %1").arg(bytes);
    }
    const QString name = textOf(set.name).replace(QLatin1String("checkpoint"), QLatin1String("layer input"));
    return (set.tensors > 1 ? QObject::tr("%1 hold %2") : QObject::tr("%1 holds %2"))
        .arg(strong ? name.toHtmlEscaped() : name, bytes);
}

const profiler::StepPart* partAt(const StepAnatomy& step, base::TimeNs time) {
    const auto next = std::ranges::upper_bound(step.parts, time, {}, &profiler::StepPart::begin);
    return next == step.parts.begin() || time > (next - 1)->end ? nullptr : &*(next - 1);
}

QString adviceText(const StepAdvice& advice) {
    QStringList sentences;
    if (!advice.change.isEmpty()) {
        const QString change = advice.change;
        sentences << QObject::tr("%1 would lower the peak by %2, by the plan%3.")
                         .arg(change, bytesText(advice.peak - advice.changed),
                              advice.place.isEmpty()
                                  ? QString()
                                  : QObject::tr("; it is then %1, in %2").arg(bytesText(advice.changed), advice.place));
    }
    if (advice.otherwise && advice.offloaded && *advice.otherwise > advice.peak) {
        sentences << QObject::tr("Offload saves %1 of the peak here.").arg(bytesText(*advice.otherwise - advice.peak));
    } else if (advice.otherwise && !advice.offloaded) {
        const QString host =
            advice.host > 0 ? QObject::tr(" and take %1 of the host").arg(bytesText(advice.host)) : QString();
        sentences << (*advice.otherwise < advice.peak ? QObject::tr("Offload would save %1 of it%2.")
                                                            .arg(bytesText(advice.peak - *advice.otherwise), host)
                                                      : QObject::tr("Offload would save nothing here."));
    }
    return sentences.join(QLatin1Char(' '));
}

} // namespace

QString techniquesText(const StepAnatomy& step) {
    QStringList names;
    const bool chunks = std::ranges::any_of(step.phases, [](const profiler::StepPhase& phase) {
        return phase.kind == TrainingPhase::Loss && phase.items > 1;
    });
    const bool tiles = std::ranges::any_of(step.parts, [](const profiler::StepPart& part) { return part.tiles > 1; });
    const bool again = std::ranges::any_of(
        step.parts, [](const profiler::StepPart& part) { return part.kind == profiler::StepPartKind::Recompute; });
    if (chunks) {
        names << QObject::tr("chunked loss");
    }
    if (!step.copies.empty()) {
        names << QObject::tr("offload");
    } else if (again) {
        names << QObject::tr("recompute");
    }
    if (tiles) {
        names << QObject::tr("tiled MLP");
    }
    QString text = names.isEmpty()    ? QObject::tr("no memory technique")
                   : names.size() > 1 ? names.join(QStringLiteral(", "))
                                      : QObject::tr("%1 only").arg(names.front());
    text[0] = text[0].toUpper();
    return text;
}

QString placeInStep(const StepAnatomy& step, base::TimeNs time) {
    const profiler::StepPhase* phase = step.phaseAt(time);
    if (phase == nullptr) {
        return QObject::tr("no phase");
    }
    const profiler::StepItem* item = step.itemAt(time);
    switch (phase->kind) {
    case TrainingPhase::Merge:
        return QObject::tr("the merge");
    case TrainingPhase::Quantize:
        return QObject::tr("the quantization");
    case TrainingPhase::Loss:
        return QObject::tr("the loss");
    case TrainingPhase::Optimizer:
        return QObject::tr("the optimizer");
    case TrainingPhase::Forward:
        return item != nullptr ? QObject::tr("the forward of layer %1").arg(item->index) : QObject::tr("the forward");
    case TrainingPhase::Backward:
        break;
    }
    if (const profiler::StepPart* part = partAt(step, time)) {
        switch (part->kind) {
        case profiler::StepPartKind::Recompute:
            return QObject::tr("the recompute of layer %1").arg(part->layer);
        case profiler::StepPartKind::Mlp:
            return QObject::tr("the MLP backward of layer %1").arg(part->layer);
        case profiler::StepPartKind::AttentionBackward:
            return QObject::tr("the attention backward of layer %1").arg(part->layer);
        }
    }
    return item != nullptr ? QObject::tr("the backward of layer %1").arg(item->index) : QObject::tr("the backward");
}

QString phaseTitle(const StepAnatomy& step, const profiler::StepPhase& phase) {
    const QString name = textOf(profiler::phaseName(phase.kind));
    if (phase.kind == TrainingPhase::Optimizer) {
        return QObject::tr("%1, %2").arg(name, seconds(phase.end - phase.begin));
    }
    const bool again =
        phase.kind == TrainingPhase::Backward && std::ranges::any_of(step.parts, [](const profiler::StepPart& part) {
            return part.kind == profiler::StepPartKind::Recompute;
        });
    return again ? QObject::tr("%1, each layer recomputed first").arg(name) : name;
}

QString partTitle(const profiler::StepPart& part, bool withLayer) {
    QString name = part.kind == profiler::StepPartKind::Recompute ? QObject::tr("recompute")
                   : part.kind == profiler::StepPartKind::Mlp
                       ? (part.tiles > 1 ? QObject::tr("MLP, %1 tiles").arg(part.tiles) : QObject::tr("MLP"))
                       : QObject::tr("attention backward");
    return withLayer ? QStringLiteral("%1 %2").arg(part.layer).arg(name) : name;
}

QString stepSentence(const StepAnatomy& step) {
    if (step.peak.maxTotal == 0) {
        return QObject::tr("This step recorded no memory events.");
    }
    const QString where =
        QObject::tr("The peak is %1, in %2")
            .arg(strongText(peakText(step.peak.maxTotal, step.peak.incomplete)), placeInStep(step, step.peak.maxTime));
    const HeldSet* cause = step.cause();
    return cause == nullptr ? where + QLatin1Char('.')
                            : QStringLiteral("%1: %2.").arg(where, holdsText(step, *cause, true));
}

QString stepSecondText(const StepPair& pair, const std::optional<StepAdvice>& advice) {
    const StepAnatomy& a = pair.a.anatomy;
    if (a.peak.maxTotal == 0) {
        return {};
    }
    QStringList sentences;
    if (advice) {
        sentences << adviceText(*advice);
    }
    if (a.nextPhase) {
        const profiler::MemoryColumn& next = a.phases[*a.nextPhase].peak;
        sentences
            << QObject::tr("The next peak is %1, in %2.").arg(bytesText(next.maxTotal), placeInStep(a, next.maxTime));
    }
    if (pair.b && pair.b->anatomy.peak.maxTotal > 0) {
        const StepAnatomy& b = pair.b->anatomy;
        QString text = QObject::tr("B (%1) peaks at %2, in %3")
                           .arg(techniquesText(b), bytesText(b.peak.maxTotal), placeInStep(b, b.peak.maxTime));
        if (const HeldSet* cause = b.cause()) {
            text += QObject::tr(", where %1").arg(holdsText(b, *cause, false));
        }
        sentences << text + QLatin1Char('.');
    }
    sentences.removeAll(QString());
    return sentences.join(QLatin1Char(' '));
}

StepResultText stepResult(const StepPair& pair) {
    const StepAnatomy& a = pair.a.anatomy;
    if (!pair.b) {
        return {bytesText(a.peak.maxTotal), QObject::tr("at the peak. The step takes %1.").arg(seconds(a.length()))};
    }
    const StepAnatomy& b = pair.b->anatomy;
    const auto change = static_cast<std::int64_t>(a.peak.maxTotal) - static_cast<std::int64_t>(b.peak.maxTotal);
    const base::TimeNs longer = a.length() - b.length();
    const double share = b.length() > 0 ? static_cast<double>(longer) / static_cast<double>(b.length()) : 0;
    return {change == 0 ? QStringLiteral("=") : signedBytesText(change),
            QObject::tr("at the peak: %1 instead of %2. The step takes %3 %4, %5.")
                .arg(bytesText(a.peak.maxTotal), bytesText(b.peak.maxTotal), seconds(std::abs(longer)),
                     longer < 0 ? QObject::tr("less") : QObject::tr("longer"), shareText(std::abs(share)))};
}

QString stepReadout(const StepPair& pair, base::TimeNs at, bool byPhase, StepChange change) {
    const StepAnatomy& a = pair.a.anatomy;
    const auto totalAt = [](const StepSide& side, base::TimeNs time) {
        return profiler::totalBytes(side.timeline->memory().at(time));
    };
    const std::uint64_t held = totalAt(pair.a, a.begin + at);
    QString place = placeInStep(a, a.begin + at);
    place.remove(0, place.startsWith(QLatin1String("the ")) ? 4 : 0);
    QString text = QObject::tr("%1, %2: A %3").arg(instantText(at), place, bytesText(held));
    if (pair.b) {
        const base::TimeNs time = pair.b->anatomy.begin + (byPhase ? pair.phases.timeInB(at) : at);
        const std::uint64_t other = totalAt(*pair.b, time);
        const auto less = static_cast<std::int64_t>(held) - static_cast<std::int64_t>(other);
        text += QObject::tr(", B %1, ").arg(bytesText(other));
        text += change == StepChange::AToB ? QObject::tr("A to B %1").arg(signedBytesText(less))
                                           : QObject::tr("B − A %1").arg(signedBytesText(-less));
    }
    return text;
}

QString copiesText(const StepAnatomy& step, bool toHost) {
    std::uint64_t bytes = 0;
    base::TimeNs time = 0, waited = 0;
    int count = 0;
    for (const profiler::StepCopy& copy : step.copies) {
        if (copy.toHost == toHost) {
            ++count;
            bytes += copy.bytes;
            time += copy.end - copy.begin;
            waited += copy.waited;
        }
    }
    if (count == 0) {
        return {};
    }
    const QString each = bytesText(bytes / static_cast<std::uint64_t>(count));
    QStringList words{toHost ? QObject::tr("%1 layer inputs of %2 to host memory").arg(count).arg(each)
                             : QObject::tr("the same %1 back, one layer ahead").arg(count)};
    if (!step.copiesTimed) {
        return words.front() + (toHost ? QObject::tr("; how long each took was not recorded") : QString());
    }
    if (time > 0) {
        words << rateText(static_cast<double>(bytes) / (static_cast<double>(time) * 1e-9))
              << QObject::tr("%1 each").arg(durationText(time / count));
    }
    words << (waited > 0 ? QObject::tr("%1 waited for").arg(durationText(waited))
                         : QObject::tr("hidden behind compute"));
    return words.join(QStringLiteral(", "));
}

QString sideFacts(const StepSide& side, std::uint64_t top) {
    QStringList words{seconds(side.length()),
                      QObject::tr("peak %1").arg(peakText(side.anatomy.peak.maxTotal, side.anatomy.peak.incomplete))};
    if (side.budget && *side.budget > top) {
        words << QObject::tr("budget %1 is off this scale").arg(bytesText(*side.budget));
    }
    return words.join(QStringLiteral(", "));
}

} // namespace vitrine::ui

// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// What the page Step shows: words, bands, lanes and the range in detail.
#include <QCheckBox>
#include <QPushButton>
#include <QStackedWidget>
#include <algorithm>
#include <utility>

#include "profiler/timeline/run_timeline.h"
#include "ui/models/common/format.h"
#include "ui/views/finetune/step_page.h"
#include "ui/views/finetune/step_panel.h"
#include "ui/views/finetune/step_rows.h"
#include "ui/widgets/timeline/copy_lane.h"
#include "ui/widgets/timeline/lane_stack.h"
#include "ui/widgets/timeline/part_strip.h"
#include "ui/widgets/timeline/step_lane.h"

namespace vitrine::ui {

namespace {

using profiler::StepAnatomy;

std::vector<LaneCopy> laneCopies(const StepAnatomy& step, bool named) {
    std::vector<LaneCopy> out;
    for (const profiler::StepCopy& copy : step.copies) {
        QString label = named ? QObject::tr("layer %1 input").arg(copy.layer) : QString();
        if (named && copy.end > copy.begin) {
            label += QObject::tr(", %1").arg(durationText(copy.end - copy.begin));
        }
        out.push_back({rangeInStep(step, copy.begin, copy.end), copy.toHost, copy.waited, label});
    }
    return out;
}

} // namespace

const profiler::PhaseMap* StepPage::phasesOfB() const {
    return byPhase() && pair_ != nullptr ? &pair_->phases : nullptr;
}

/// A side's peak with its place on the axis.
std::optional<profiler::MemoryColumn> StepPage::peakAt(bool a) const {
    const StepSide* side = a ? &pair_->a : pair_->b ? &*pair_->b : nullptr;
    return side != nullptr ? stepPeak(*side, a ? nullptr : phasesOfB()) : std::nullopt;
}

void StepPage::showPair() {
    const bool shown = pair_ != nullptr;
    pages_->setCurrentIndex(shown ? 0 : 1);
    panel_->setPair(pair_, advice_);
    memory_->setEnabled(shown);
    if (!shown) {
        const QString text = !why_.isEmpty() ? why_
                             : job_.busy()   ? tr("Reading the step.")
                             : timelineA_
                                 ? tr("The layers of this step were not recorded: the profile was off, or an earlier "
                                      "version recorded the run.")
                                 : tr("No fine-tuning run in this session.");
        nothing_->set(text, timelineA_ == nullptr ? tr("Open the form") : QString(), [this] { emit formWanted(); });
        readout_.clear();
        updateNarrow();
        return;
    }
    const StepPair& pair = *pair_;
    sentence_->setText(stepSentence(pair.a.anatomy));
    second_->setText(stepSecondText(pair, advice_));
    align_->setEnabled(pair.b.has_value());
    if (const auto other = stepBaseline(spec_)) {
        baselineButton_->setText(other->button);
    }
    const base::TimeNs longest = byPhase() || !pair.b ? pair.a.length() : std::max(pair.a.length(), pair.b->length());
    if (time_->extent().end != longest) {
        placing_ = true;
        time_->setExtent({0, longest});
        time_->fitAll();
        placing_ = false;
    }
    showBands();
    showLanes();
    showDetail();
    updateNarrow();
    updateReadout();
}

void StepPage::showBands() {
    bands_->setRows({stepPhaseRow(pair_->a.anatomy), stepLayerRow(pair_->a.anatomy)});
    parts_->setRows({stepPartRow(pair_->a.anatomy)});
}

void StepPage::showLanes() {
    const StepPairPtr pair = pair_;
    const std::uint64_t top = pair->top();
    const bool same = sameScale_->isChecked() || !pair->b;
    const std::uint64_t topA = same ? top : pair->a.anatomy.peak.maxTotal;
    const QString unit = QString::fromLatin1(byteGrid(topA).unitName);
    laneA_->setTitle(techniquesText(pair->a.anatomy));
    laneA_->setNote(unit);
    laneA_->setFacts(sideFacts(pair->a, topA));
    laneA_->setModels([pair](const AxisMap& axis, int columns) { return stepStack(pair->a, nullptr, axis, columns); });
    laneA_->setTop(topA);
    laneA_->setPeak(peakAt(true));
    laneA_->setGuides(phaseBorders(pair->a.anatomy));
    const bool copies = copies_->isChecked() && !pair->a.anatomy.copies.empty();
    copiesA_->setVisible(copies);
    copiesDetail_->setVisible(copies);
    copiesA_->setCopies(laneCopies(pair->a.anatomy, false),
                        {copiesText(pair->a.anatomy, true), copiesText(pair->a.anatomy, false)});
    copiesDetail_->setCopies(laneCopies(pair->a.anatomy, true), {tr("none in this range"), tr("none in this range")});
    if (!pair->b) {
        return;
    }
    const std::uint64_t topB = same ? top : pair->b->anatomy.peak.maxTotal;
    laneB_->setTitle(techniquesText(pair->b->anatomy));
    laneB_->setNote(byPhase() ? tr("%1, drawn in A’s phases").arg(unit) : unit);
    laneB_->setFacts(sideFacts(*pair->b, topB));
    laneB_->setModels([pair, phased = byPhase()](const AxisMap& axis, int columns) {
        return stepStack(*pair->b, phased ? &pair->phases : nullptr, axis, columns);
    });
    laneB_->setTop(topB);
    laneB_->setPeak(peakAt(false));
    laneB_->setGuides(byPhase() ? phaseBorders(pair->a.anatomy) : phaseBorders(pair->b->anatomy));
}

void StepPage::showDetail() {
    const StepPairPtr pair = pair_;
    StepLane::Maker dashed;
    if (pair->b) {
        dashed = [pair, phased = byPhase()](const AxisMap& axis, int columns) {
            return stepStack(*pair->b, phased ? &pair->phases : nullptr, axis, columns);
        };
    }
    detail_->setModels([pair](const AxisMap& axis, int columns) { return stepStack(pair->a, nullptr, axis, columns); },
                       dashed);
    detail_->setTop(pair->top());
    detail_->setGuides(phaseBorders(pair->a.anatomy));
    std::vector<LaneNote> notes;
    if (const auto peak = peakAt(true)) {
        notes.push_back({peak->maxTime, peak->maxTotal, tr("A peak %1").arg(bytesText(peak->maxTotal)), false});
    }
    const StepAnatomy& a = pair->a.anatomy;
    if (a.nextPhase) {
        const profiler::MemoryColumn& next = a.phases[*a.nextPhase].peak;
        notes.push_back({next.maxTime - a.begin, next.maxTotal,
                         tr("A %1, %2").arg(bytesText(next.maxTotal), placeInStep(a, next.maxTime)), false});
    }
    if (const auto peak = peakAt(false)) {
        const StepAnatomy& b = pair->b->anatomy;
        notes.push_back({peak->maxTime, peak->maxTotal,
                         tr("B peak %1: %2").arg(bytesText(peak->maxTotal), placeInStep(b, b.peak.maxTime)), true});
    }
    detail_->setNotes(std::move(notes));
    const TimeGrid grid = timeGrid(detailRange_, 900);
    detailTitle_->setText(
        tr("Detail %1 to %2")
            .arg(instantText(detailRange_.begin, grid.step), instantText(detailRange_.end, grid.step)));
    detailNote_->setText(!pair->b    ? QString()
                         : byPhase() ? tr("A stacked, B dashed: total at the same point of the phase")
                                     : tr("A stacked, B dashed: total after the same time"));
}

void StepPage::setDetail(TimeRange range, bool remember) {
    if (range.begin > range.end) {
        std::swap(range.begin, range.end);
    }
    const base::TimeNs longest = std::max(time_->extent().end, pair_->a.length());
    range.begin = std::clamp<base::TimeNs>(range.begin, 0, longest);
    range.end = std::clamp<base::TimeNs>(range.end, 0, longest);
    if (range.length() <= 0) {
        range = {0, longest};
    }
    if (remember && detailRange_.length() > 0 && !(range == detailRange_)) {
        detailBefore_ = detailRange_;
    }
    detailRange_ = range;
    placing_ = true;
    time_->setMeasured(range);
    closerTime_->setExtent({0, longest});
    closerTime_->setRange(range, false);
    placing_ = false;
    showDetail();
}

void StepPage::showPeak() {
    if (pair_ == nullptr || pair_->a.anatomy.peak.maxTotal == 0) {
        return;
    }
    const TimeRange range = detailAroundPeak(pair_->a.anatomy);
    setDetail(range == detailRange_ ? detailBefore_ : range);
    time_->setCursor(pair_->a.anatomy.peak.maxTime - pair_->a.anatomy.begin);
}

void StepPage::stepItem(int direction) {
    if (pair_ == nullptr) {
        return;
    }
    const StepAnatomy& a = pair_->a.anatomy;
    const base::TimeNs at = a.begin + time_->cursor().value_or(detailRange_.begin);
    const profiler::StepItem* now = a.itemAt(at);
    std::ptrdiff_t next = 0;
    if (now != nullptr) {
        next = now - a.items.data() + direction;
    } else {
        const auto after = std::ranges::upper_bound(a.items, at, {}, &profiler::StepItem::begin);
        next = after - a.items.begin() - (direction < 0 ? 1 : 0);
    }
    if (next < 0 || next >= static_cast<std::ptrdiff_t>(a.items.size())) {
        return;
    }
    const profiler::StepItem& item = a.items[static_cast<std::size_t>(next)];
    setDetail(rangeInStep(a, item.begin, item.end));
    time_->setCursor(item.begin - a.begin + (item.end - item.begin) / 2);
}

void StepPage::updateReadout() {
    if (pair_ == nullptr) {
        return;
    }
    std::optional<base::TimeNs> at = time_->cursor();
    for (const TimeStrip* strip : {static_cast<const TimeStrip*>(laneA_), static_cast<const TimeStrip*>(laneB_),
                                   static_cast<const TimeStrip*>(bands_), static_cast<const TimeStrip*>(copiesA_),
                                   static_cast<const TimeStrip*>(detail_), static_cast<const TimeStrip*>(parts_),
                                   static_cast<const TimeStrip*>(copiesDetail_)}) {
        at = strip->hovered() ? strip->hovered() : at;
    }
    const profiler::StepAnatomy& a = pair_->a.anatomy;
    readout_ = a.peak.maxTotal == 0 ? QString() : stepReadout(*pair_, at.value_or(a.peak.maxTime - a.begin), byPhase());
    std::vector<TimeMark> marks;
    if (at) {
        marks.push_back({*at, TimeMark::Kind::Cursor, instantText(*at, timeGrid(detailRange_, 900).step), 0, 0});
    }
    closer_->setMarks(marks);
    emit readoutChanged(readout_);
}

} // namespace vitrine::ui

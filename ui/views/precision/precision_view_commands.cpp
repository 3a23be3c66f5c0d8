// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// What the Precision lab does with what it shows: finds matrices, hands out tables, prepares further runs.

#include "ui/models/common/format.h"
#include "ui/models/planner/plan_words.h"
#include "ui/models/precision/precision_tables.h"
#include "ui/models/precision/token_place.h"
#include "ui/views/precision/lab_export.h"
#include "ui/views/precision/precision_view.h"

namespace vitrine::ui {

bool PrecisionView::perform(const QString& action) {
    if (action == QLatin1String("compare.swap") && data_) {
        flip(); // A and B are formats of one run here
        return true;
    }
    return DocumentView::perform(action);
}

QString PrecisionView::whyNot(const QString& action) const {
    if (action == QLatin1String("compare.swap")) {
        return data_ ? QString() : tr("no formats are compared");
    }
    return DocumentView::whyNot(action);
}

void PrecisionView::openToken(int token) {
    wantedToken_ = token;
    goToToken();
}

std::vector<sessions::RunId> PrecisionView::shownRuns() const {
    return wantedToken_ && shownRun_ != 0 ? std::vector{shownRun_} : std::vector<sessions::RunId>();
}

void PrecisionView::onEvents(sessions::RunId) {
    goToToken();
}

void PrecisionView::goToToken() {
    if (!wantedToken_ || !data_ || document() == nullptr) {
        return;
    }
    const TimelineState state = timelineOf(shownRun_);
    if (!read(shownRun_)) {
        setReadout(tr("Reading the events of this run."));
        return;
    }
    const auto token = static_cast<std::size_t>(*wantedToken_);
    wantedToken_.reset();
    const std::optional<TimeRange> place = state.timeline ? whenScored(*state.timeline, a_, token) : std::nullopt;
    if (!place) {
        setReadout(token == 0 ? tr("Token 0 has nothing before it, so no step scored it.")
                              : tr("This run kept no events of the steps that scored its text."));
        return;
    }
    document()->setRunA(shownRun_);
    if (context().time != nullptr) {
        context().time->jumpTo(*place);
        context().time->setCursor(place->begin);
    }
    emit openView(recordsKernels(*state.timeline) ? QStringLiteral("kernels") : QStringLiteral("memory"));
}

QString PrecisionView::toolNote() const {
    return data_ ? ruleWords(data_->result.formats[a_].name) : QString();
}

QString PrecisionView::copyText() const {
    return data_ ? asMarkdown(*formatTable(*data_)) : QString();
}

QString PrecisionView::find(const QString& text, int direction) {
    if (!data_ || text.trimmed().isEmpty()) {
        return {};
    }
    bool number = false;
    if (const qlonglong group = text.trimmed().remove(QLatin1Char(',')).toLongLong(&number); number) {
        const bool inside = tensor_ && group >= 0 && group < static_cast<qlonglong>(tensor_->detail.groupRms.size());
        if (inside && direction != 0) {
            askGroup(group);
        }
        return inside ? tr("group") : tr("no such group");
    }
    const std::vector<std::size_t> hits = weightsNamed(data_->result, text);
    if (hits.empty()) {
        return tr("no tensor");
    }
    auto at = std::ranges::lower_bound(hits, weight_.value_or(0));
    if (direction > 0 && at != hits.end() && *at == weight_) {
        ++at;
    } else if (direction < 0) {
        at = at == hits.begin() ? hits.end() - 1 : at - 1;
    }
    at = at == hits.end() ? hits.begin() : at;
    if (direction != 0 || text != found_) {
        selectWeight(*at);
    }
    found_ = text;
    return tr("%1 of %2").arg(countText(at - hits.begin() + 1), countText(static_cast<qint64>(hits.size())));
}

void PrecisionView::say(const Exported& exported) {
    showError(exported.error);
    if (!exported.done.isEmpty()) {
        setReadout(exported.done);
    }
}

void PrecisionView::wantAfter(const std::function<QString(const std::string&)>& next) {
    if (const sessions::RunInfo* run = labRun(); run != nullptr) {
        emit experimentWanted(next(run->specJson));
    }
}

} // namespace vitrine::ui

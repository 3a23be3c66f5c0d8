// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// What the Precision lab does with what it shows: finds matrices, hands out tables, prepares further runs.
#include <QBuffer>
#include <QFileDialog>
#include <QPainter>

#include "profiler/timeline/kernel_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "ui/models/common/format.h"
#include "ui/models/planner/plan_words.h"
#include "ui/models/precision/precision_tables.h"
#include "ui/models/precision/token_place.h"
#include "ui/views/common/save_file.h"
#include "ui/views/precision/keep_panel.h"
#include "ui/views/precision/precision_view.h"
#include "ui/widgets/plots/vector_picture.h"

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
    const profiler::RunTimeline& timeline = *state.timeline;
    const bool kernels = std::ranges::any_of(timeline.kernels().spans(), [&](const base::SpanEvent& span) {
        return timeline.text(span.lane.value) == "Kernels";
    });
    emit openView(kernels ? QStringLiteral("kernels") : QStringLiteral("memory"));
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
    std::vector<std::size_t> hits;
    const std::vector<engine::LabWeight>& weights = data_->result.weights;
    for (std::size_t i = 0; i < weights.size(); ++i) {
        if (QString::fromStdString(weights[i].name).contains(text, Qt::CaseInsensitive) ||
            weightTitle(weights[i]).contains(text, Qt::CaseInsensitive)) {
            hits.push_back(i);
        }
    }
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

void PrecisionView::save(const QString& path, const QByteArray& bytes, const QString& what) {
    if (path.isEmpty()) {
        return;
    }
    const QString error = saveFile(path, bytes);
    showError(error);
    if (error.isEmpty()) {
        setReadout(tr("%1 is in %2").arg(what, path));
    }
}

void PrecisionView::exportTable() {
    if (data_) {
        const QString path = QFileDialog::getSaveFileName(this, tr("Export the errors of all weights"),
                                                          QStringLiteral("precision.csv"), tr("CSV (*.csv)"));
        save(path, asCommaSeparated(*mapTable(data_->result, cells_, a_)).toUtf8(), tr("The table"));
    }
}

void PrecisionView::exportPicture() {
    if (!data_) {
        return;
    }
    const QString path = QFileDialog::getSaveFileName(this, tr("Export the map"), QStringLiteral("precision.svg"),
                                                      tr("SVG (*.svg);;PNG (*.png)"));
    QByteArray bytes;
    if (path.endsWith(QLatin1String(".png"), Qt::CaseInsensitive)) {
        QBuffer buffer(&bytes);
        buffer.open(QIODevice::WriteOnly);
        map_->picture(map_->size(), 2).save(&buffer, "PNG");
    } else {
        bytes = vectorPicture(map_->size(), map_->title(), formatTitle(a_), [this](QPainter& painter) {
            painter.fillRect(map_->rect(), themeTokens().canvas);
            map_->paintInto(painter, map_->size());
        });
    }
    save(path, bytes, tr("The map"));
}

void PrecisionView::wantScores() {
    if (const sessions::RunInfo* run = labRun(); run != nullptr) {
        emit experimentWanted(scoreExperiment(run->specJson, kTokensToScore));
    }
}

void PrecisionView::wantMeasured() {
    if (const sessions::RunInfo* run = labRun(); run != nullptr) {
        emit experimentWanted(measureExperiment(run->specJson, keep()->checkedPatterns()));
    }
}

void PrecisionView::wantKeepEffects() {
    if (const sessions::RunInfo* run = labRun(); run != nullptr) {
        emit experimentWanted(keepEffectsExperiment(run->specJson));
    }
}

} // namespace vitrine::ui
